//! The sheet that panels lie on: title, legend, colours for light and dark, and the SVG around it all.

use super::chart::Panel;
use std::fmt::Write;

/// Told apart by most people who see few colours, on white and, the second of each, on black.
const COLOURS: [(&str, &str); 10] = [
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
];
const GAP: f64 = 18.0;
/// Width of a letter, about: no font is measured.
const LETTER: f64 = 6.6;

/// A title, a legend and panels.
pub(super) struct Sheet {
    title: String,
    source: String,
    legend: Vec<String>,
    pub(super) panels: Vec<Panel>,
}

impl Sheet {
    pub(super) fn new(title: &str, source: &str) -> Sheet {
        Sheet { title: title.into(), source: source.into(), legend: Vec::new(), panels: Vec::new() }
    }

    /// The colour of a name, the same in all panels.
    pub(super) fn colour(&mut self, name: &str) -> usize {
        let known = self.legend.iter().position(|known| known == name);
        let place = known.unwrap_or_else(|| {
            self.legend.push(name.into());
            self.legend.len() - 1
        });
        place % COLOURS.len()
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
        let title = LETTER * 1.25 * self.title.chars().count() as f64 + 2.0 * GAP;
        let width = rows.iter().map(|row| width_of(row)).fold(title.max(380.0), f64::max);
        let (legend, legend_height) = self.legend(width);
        let mut y = 54.0 + legend_height;
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
        let (title, source) = (escaped(&self.title), escaped(&self.source));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {y:.0}\" width=\"{width:.0}\" height=\"{y:.0}\" \
             role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>{title}</title>\n<style>{}</style>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n<text class=\"ink\" x=\"{GAP}\" y=\"24\" font-size=\"15\" \
             font-weight=\"600\">{title}</text>\n<text class=\"soft\" x=\"{GAP}\" y=\"42\" font-size=\"11\">{source}</text>\n\
             {legend}{body}</svg>\n",
            style()
        )
    }

    /// Names beside their colours, in as many lines as they need.
    fn legend(&self, width: f64) -> (String, f64) {
        let (mut x, mut y, mut text) = (GAP, 64.0, String::new());
        for (at, name) in self.legend.iter().enumerate() {
            let length = 22.0 + LETTER * name.chars().count() as f64;
            if x > GAP && x + length > width - GAP {
                (x, y) = (GAP, y + 18.0);
            }
            let (colour, name) = (at % COLOURS.len(), escaped(name));
            writeln!(
                text,
                "<rect class=\"f{colour}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" rx=\"2\"/>\
                 <text class=\"ink\" x=\"{:.1}\" y=\"{y:.1}\">{name}</text>",
                y - 9.5,
                x + 15.0
            )
            .expect("strings do not fail");
            x += length;
        }
        (text, y - 64.0 + 24.0)
    }
}

fn style() -> String {
    let of = |paper, ink, soft, grid, dark: bool| {
        let mut rules = format!(
            ".paper{{fill:{paper}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}.grid{{stroke:{grid}}}.edge{{stroke:{soft}}}\
             .range{{stroke:{ink};fill:none}}"
        );
        for (at, (light, night)) in COLOURS.iter().enumerate() {
            let colour = if dark { night } else { light };
            write!(rules, ".f{at}{{fill:{colour}}}.l{at}{{stroke:{colour};fill:none;stroke-width:2}}")
                .expect("strings do not fail");
        }
        rules
    };
    let light = of("#ffffff", "#1b1f24", "#57606a", "#dfe3e8", false);
    let dark = of("#14171b", "#e6edf3", "#9aa4af", "#2c333b", true);
    format!("{light}@media (prefers-color-scheme: dark){{{dark}}}")
}

/// Text as SVG holds it.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
