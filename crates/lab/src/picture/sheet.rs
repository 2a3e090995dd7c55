//! The sheet that panels lie on: title, legend, colours for light and dark, and the SVG around it all.

use super::chart::{DASHES, Panel};
use super::letters::{bold_width, lines, width};
use std::fmt::Write;

/// On white and, the second of each, on black. The first ten are told apart by most people who see few colours, and the others lie as
/// far from them and from each other as is left.
const COLOURS: [(&str, &str); 20] = [
    ("#1f5fb4", "#6aa8ff"),
    ("#d4572a", "#ff9a6b"),
    ("#2b8a57", "#62d197"),
    ("#9c3f95", "#e28fdf"),
    ("#8a6a12", "#e0bb4d"),
    ("#b92f50", "#ff86a0"),
    ("#2590a8", "#6fd6ee"),
    ("#5f6670", "#aab2bd"),
    ("#4b3fa6", "#a79cff"),
    ("#6b8f12", "#b7dd55"),
    ("#9f1ded", "#af42f0"),
    ("#39050b", "#ec132e"),
    ("#1a310c", "#64ec13"),
    ("#ed1db9", "#ec13b6"),
    ("#0eaa0e", "#29a329"),
    ("#c27a70", "#996c66"),
    ("#81875a", "#f4fac6"),
    ("#723d1d", "#ec6413"),
    ("#0c2831", "#2985a3"),
    ("#1d51ed", "#426ef0"),
];
const GAP: f64 = 18.0;
/// The letters of the title, of what is below it, and of the legend.
const TITLE: f64 = 15.0;
const SOURCE: f64 = 11.0;
const NAME: f64 = 12.0;
/// From one line of what is below the title to the next.
const LINE: f64 = 14.0;
/// What a legend's name has before it, its colour, and behind it.
const BESIDE_NAME: f64 = 25.0;

/// A title, a legend and panels.
pub(super) struct Sheet {
    title: String,
    source: String,
    legend: Vec<String>,
    /// Places in the legend whose lines are dashed.
    dashed: Vec<usize>,
    pub(super) panels: Vec<Panel>,
}

impl Sheet {
    pub(super) fn new(title: &str, source: &str) -> Sheet {
        Sheet { title: title.into(), source: source.into(), legend: Vec::new(), dashed: Vec::new(), panels: Vec::new() }
    }

    /// The colour of a name, the same in all panels and no other name's.
    pub(super) fn colour(&mut self, name: &str) -> usize {
        let known = self.legend.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.legend.push(name.into());
            self.legend.len() - 1
        })
    }

    /// The same of a line, which the legend shows as it is drawn.
    pub(super) fn line_colour(&mut self, name: &str, dashed: bool) -> usize {
        let colour = self.colour(name);
        if dashed && !self.dashed.contains(&colour) {
            self.dashed.push(colour);
        }
        colour
    }

    pub(super) fn to_svg(&self) -> String {
        let columns = match self.panels.len() {
            1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        let sizes: Vec<(f64, f64)> = self.panels.iter().map(Panel::size).collect();
        let rows: Vec<&[(f64, f64)]> = sizes.chunks(columns).collect();
        let width_of = |row: &[(f64, f64)]| row.iter().map(|size| size.0 + GAP).sum::<f64>() + GAP;
        let wide = rows.iter().map(|row| width_of(row)).fold(self.least_width(), f64::max);
        let (source, source_height) = self.source(wide);
        let (legend, legend_height) = self.legend(wide, 64.0 + source_height);
        let mut y = 54.0 + source_height + legend_height;
        let mut body = String::new();
        let mut panels = self.panels.iter();
        for row in rows {
            let mut x = GAP;
            for (size, panel) in row.iter().zip(&mut panels) {
                writeln!(body, "<g transform=\"translate({x:.1} {y:.1})\">{}</g>", panel.to_svg())
                    .expect("strings do not fail");
                x += size.0 + GAP;
            }
            y += row.iter().map(|size| size.1).fold(0.0, f64::max) + GAP;
        }
        let title = escaped(&self.title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide:.0} {y:.0}\" width=\"{wide:.0}\" height=\"{y:.0}\" \
             role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>{title}</title>\n<style>{}</style>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n<text class=\"ink\" x=\"{GAP}\" y=\"24\" font-size=\"{TITLE}\" \
             font-weight=\"600\">{title}</text>\n{source}{legend}{body}</svg>\n",
            style(self.legend.len())
        )
    }

    /// What the title, each word below it and each name of the legend need.
    fn least_width(&self) -> f64 {
        let words = self.source.split_whitespace().map(|word| width(word, SOURCE));
        let names = self.legend.iter().map(|name| BESIDE_NAME + width(name, NAME));
        let title = bold_width(&self.title, TITLE);
        words.chain(names).fold(title, f64::max).max(344.0) + 2.0 * GAP
    }

    /// Where it is from, in as many lines as that needs, and the height of those after the first.
    fn source(&self, wide: f64) -> (String, f64) {
        let (mut text, mut below) = (String::new(), 0.0);
        for (at, line) in lines(&self.source, SOURCE, wide - 2.0 * GAP).iter().enumerate() {
            below = LINE * at as f64;
            let (y, line) = (42.0 + below, escaped(line));
            writeln!(text, "<text class=\"soft\" x=\"{GAP}\" y=\"{y}\" font-size=\"{SOURCE}\">{line}</text>")
                .expect("strings do not fail");
        }
        (text, below)
    }

    /// Names beside their colours from that height on, in as many lines as they need, and how high it is.
    fn legend(&self, wide: f64, top: f64) -> (String, f64) {
        let (mut x, mut y, mut text) = (GAP, top, String::new());
        for (at, name) in self.legend.iter().enumerate() {
            let length = BESIDE_NAME + width(name, NAME);
            if x > GAP && x + length > wide - GAP {
                (x, y) = (GAP, y + 18.0);
            }
            let (name, left) = (escaped(name), x + 15.0);
            let sign = match self.dashed.contains(&at) {
                true => {
                    let (middle, [from, to]) = (y - 4.5, [x - 5.0, x + 11.0]);
                    format!("<path class=\"l{at}\" d=\"M{from:.1} {middle:.1}H{to:.1}\"{DASHES}/>")
                }
                false => {
                    let top = y - 9.5;
                    format!("<rect class=\"f{at}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"10\" height=\"10\" rx=\"2\"/>")
                }
            };
            writeln!(text, "{sign}<text class=\"ink\" x=\"{left:.1}\" y=\"{y:.1}\">{name}</text>")
                .expect("strings do not fail");
            x += length;
        }
        (text, y - top + 24.0)
    }
}

/// The rules of a sheet with so many colours.
fn style(colours: usize) -> String {
    let of = |paper, ink, soft, grid, dark: bool| {
        let mut rules = format!(
            ".paper{{fill:{paper}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}.grid{{stroke:{grid}}}.edge{{stroke:{soft}}}\
             .range{{stroke:{ink};fill:none}}"
        );
        for at in 0..colours {
            let colour = colour(at, dark);
            write!(rules, ".f{at}{{fill:{colour}}}.l{at}{{stroke:{colour};fill:none;stroke-width:2}}")
                .expect("strings do not fail");
        }
        rules
    };
    let light = of("#ffffff", "#1b1f24", "#57606a", "#dfe3e8", false);
    let dark = of("#14171b", "#e6edf3", "#9aa4af", "#2c333b", true);
    format!("{light}@media (prefers-color-scheme: dark){{{dark}}}")
}

/// The colour of a place in the legend. Beyond those that are chosen hues go round in steps that meet none again before all are taken.
fn colour(at: usize, dark: bool) -> String {
    match COLOURS.get(at) {
        Some((light, night)) => (if dark { *night } else { *light }).to_owned(),
        None => format!("hsl({} 55% {}%)", at * 137 % 360, if dark { 70 } else { 40 }),
    }
}

/// Text as SVG holds it: without the signs that no XML has, however they are written (XML 1.0 §2.2).
pub(super) fn escaped(text: &str) -> String {
    let is_held =
        |sign: &char| !matches!(sign, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    let text: String = text.chars().filter(is_held).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Left edges of what begins with these words, of each.
    fn lefts(svg: &str, what: &str) -> Vec<f64> {
        let left = |text: &str| text.split_once("x=\"").and_then(|(_, rest)| rest.split('"').next()?.parse().ok());
        svg.split(what).skip(1).map(|text| left(text).expect("where it begins")).collect()
    }

    #[test]
    fn a_long_source_is_broken_and_pushes_down_what_is_below_it() {
        let long =
            "where it is from, and whoever asks has to read all of it before anything else is seen here".repeat(2);
        let [short, broken] = ["here", &long].map(|source| Sheet::new("Title", source).to_svg());
        let height = |svg: &str| svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse().ok());
        let [low, high]: [f64; 2] = [&short, &broken].map(|svg| height(svg).expect("its height"));
        assert_eq!(high - low, LINE * (broken.matches("class=\"soft\"").count() - 1) as f64);
        assert!(high > low && broken.contains("viewBox=\"0 0 380 "), "{broken}");
    }

    #[test]
    fn a_colour_lies_beside_its_own_name_and_over_no_other() {
        let mut sheet = Sheet::new("Title", "here");
        for name in ["MANY CAPITALS, AND MM", "small", "SLC", "MLC"] {
            sheet.colour(name);
        }
        let (legend, _) = sheet.legend(1_000.0, 64.0);
        let (colours, names) = (lefts(&legend, "<rect "), lefts(&legend, "<text "));
        for ((name, left), next) in sheet.legend.iter().zip(&names).zip(&colours[1..]) {
            // As wide as DejaVu Sans draws capitals on the mean; most fonts are narrower.
            let capitals = name.chars().filter(char::is_ascii_uppercase).count() as f64;
            assert!(left + 8.5 * capitals + 6.6 * (name.len() as f64 - capitals) < *next + 6.6, "{name}: {legend}");
        }
        assert_eq!(colours.len(), 4);
    }

    #[test]
    fn no_two_names_have_one_colour() {
        let mut sheet = Sheet::new("Title", "here");
        let classes: BTreeSet<usize> = (0..60).map(|at| sheet.colour(&format!("name {at}"))).collect();
        assert_eq!((classes.len(), sheet.colour("name 7")), (60, 7));
        for dark in [false, true] {
            let colours: BTreeSet<String> = classes.iter().map(|at| colour(*at, dark)).collect();
            assert_eq!(colours.len(), 60);
            let (svg, last) = (sheet.to_svg(), colour(59, dark));
            assert!(svg.contains(&format!(".f59{{fill:{last}}}.l59{{stroke:{last};")) && svg.contains("class=\"f59\""));
        }
    }

    #[test]
    fn no_text_makes_the_picture_ill_formed() {
        assert_eq!(escaped("a\u{1}<b>\u{1b}[0m & \"c\"\u{ffff}\ttab"), "a&lt;b&gt;[0m &amp; &quot;c&quot;\ttab");
    }
}
