//! One panel: its axes, and lines, bars or areas between them.

use super::along::Place;
use super::letters::width;
use super::scale::{Scale, brief, short};
use super::sheet::escaped;
use std::fmt::Write;

/// Left of the axis: its name and those of its ticks.
const LEFT: f64 = 56.0;
/// Of it, what the axis's own name takes, and what there is beside the ticks.
const BESIDE_TICKS: f64 = 26.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 24.0;
const HEIGHT: f64 = 190.0;
/// Below the axis: names of its ticks and its own.
const BOTTOM: f64 = 40.0;
/// The same where names of categories stand on end.
const BOTTOM_TURNED: f64 = 92.0;
/// The widest bar: one that stands alone is no wall.
const BREADTH_MAX: f64 = 46.0;
/// The letters of ticks and categories.
const LETTERS: f64 = 12.0;
/// A bar that reaches less far than this says its figure: nobody could read it from its height.
const LOW: f64 = HEIGHT / 12.0;
/// The letters of that.
const SMALL_LETTERS: f64 = 9.0;
/// Of the line of what was reckoned, not measured.
pub(super) const DASHES: &str = " stroke-dasharray=\"6 4\"";

/// Axes and what stands between them.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    pub(super) log2: bool,
    pub(super) marks: Marks,
    /// The lowest and the highest figure of all panels beside it.
    pub(super) reach: (f64, f64),
}

pub(super) enum Marks {
    Lines(Vec<Line>),
    /// Bars of each category.
    Bars(Vec<(String, Vec<Bar>)>),
    Area {
        xs: Vec<Place>,
        layers: Vec<Layer>,
    },
}

pub(super) struct Line {
    pub(super) name: String,
    pub(super) colour: usize,
    pub(super) dashed: bool,
    pub(super) spots: Vec<Spot>,
}

#[derive(PartialEq)]
pub(super) struct Spot {
    pub(super) x: Place,
    pub(super) y: f64,
    pub(super) range: Option<(f64, f64)>,
}

pub(super) struct Bar {
    pub(super) segments: Vec<Segment>,
    pub(super) range: Option<(f64, f64)>,
}

pub(super) struct Segment {
    pub(super) name: String,
    pub(super) colour: usize,
    pub(super) value: f64,
}

pub(super) struct Layer {
    pub(super) name: String,
    pub(super) colour: usize,
    pub(super) heights: Vec<f64>,
}

impl Bar {
    /// How far it reaches below zero and above.
    fn ends(&self) -> [f64; 2] {
        let values = || self.segments.iter().map(|segment| segment.value);
        [values().filter(|value| *value < 0.0).sum(), values().filter(|value| *value > 0.0).sum()]
    }
}

impl Panel {
    fn width(&self) -> f64 {
        match &self.marks {
            Marks::Bars(bars) => {
                let count: usize = bars.iter().map(|(_, members)| members.len() + 1).sum();
                (count as f64 * 9.0).clamp(300.0, 1_000.0)
            }
            _ => 320.0,
        }
    }

    fn is_turned(&self) -> bool {
        let Marks::Bars(bars) = &self.marks else { return false };
        let room = self.width() / bars.len().max(1) as f64;
        bars.iter().any(|(name, _)| width(name, LETTERS) > room)
    }

    /// Width and height with axes and their names.
    pub(super) fn size(&self) -> (f64, f64) {
        let bottom = if self.is_turned() { BOTTOM_TURNED } else { BOTTOM };
        (self.left() + self.width() + RIGHT, TOP + HEIGHT + bottom)
    }

    /// Room left of the axis.
    fn left(&self) -> f64 {
        let scale = self.scale();
        let widest = scale.ticks.iter().map(|tick| width(&scale.name(*tick), LETTERS)).fold(0.0, f64::max);
        (widest + BESIDE_TICKS).max(LEFT)
    }

    fn scale(&self) -> Scale {
        Scale::heights(self.reach.0, self.reach.1)
    }

    /// The lowest and the highest figure in it, zero among them.
    pub(super) fn own_reach(&self) -> (f64, f64) {
        let of_range = |range: Option<(f64, f64)>, at: f64| range.map_or([at; 2], |(low, high)| [low, high]);
        let of_spot = |spot: &Spot| [[spot.y; 2], of_range(spot.range, spot.y)].concat();
        let of_bar = |bar: &Bar| [bar.ends(), of_range(bar.range, 0.0)].concat();
        let heights: Vec<f64> = match &self.marks {
            Marks::Lines(lines) => lines.iter().flat_map(|line| line.spots.iter().flat_map(of_spot)).collect(),
            Marks::Bars(bars) => bars.iter().flat_map(|(_, members)| members.iter().flat_map(of_bar)).collect(),
            Marks::Area { xs, layers } => {
                let sum = |at| layers.iter().map(|layer| layer.heights[at]).sum();
                (0..xs.len()).map(sum).collect()
            }
        };
        heights.into_iter().fold((0.0, 0.0), |(low, high), height| (height.min(low), height.max(high)))
    }

    pub(super) fn to_svg(&self) -> String {
        let left = self.left();
        let mut svg = Svg { text: String::new(), left, width: self.width(), scale: self.scale() };
        svg.label(left, 14.0, "start", "ink", &self.title, " font-weight=\"600\"");
        svg.heights(&self.y_label);
        let (_, height) = self.size();
        svg.label(left + svg.width / 2.0, height - 4.0, "middle", "soft", &self.x_label, "");
        match &self.marks {
            Marks::Lines(lines) => svg.lines(lines, self.log2),
            Marks::Bars(bars) => svg.bars(bars, self.is_turned()),
            Marks::Area { xs, layers } => svg.area(xs, layers),
        }
        svg.text
    }
}

/// A panel being drawn.
struct Svg {
    text: String,
    left: f64,
    width: f64,
    scale: Scale,
}

impl Svg {
    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.text.write_fmt(arguments).expect("strings do not fail");
    }

    fn label(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str, more: &str) {
        let text = escaped(text);
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{text}</text>"
        ));
    }

    /// Where a figure stands, from above.
    fn y(&self, figure: f64) -> f64 {
        TOP + HEIGHT * (1.0 - self.scale.place(figure))
    }

    fn heights(&mut self, label: &str) {
        for tick in self.scale.ticks.clone() {
            let (y, left, class) = (self.y(tick), self.left, if tick == 0.0 { "edge" } else { "grid" });
            let right = left + self.width;
            self.put(format_args!(
                "<line class=\"{class}\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            ));
            self.label(self.left - 6.0, y + 4.0, "end", "soft", &self.scale.name(tick), "");
        }
        let middle = TOP + HEIGHT / 2.0;
        self.label(12.0, middle, "middle", "soft", label, &format!(" transform=\"rotate(-90 12 {middle:.1})\""));
    }

    /// Names the figures along the horizontal axis, or the places that have names of their own, as far as there is room.
    fn along(&mut self, places: &[&Place], log2: bool) -> Scale {
        let figures: Vec<f64> = places.iter().map(|place| place.at).collect();
        let scale = Scale::along(&figures, log2);
        let named = |place: &&Place| Some((place.at, place.name.clone()?));
        let mut ticks: Vec<(f64, String)> = places.iter().filter_map(named).collect();
        ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
        ticks.dedup_by_key(|tick| tick.0);
        if ticks.is_empty() {
            ticks = scale.ticks.iter().map(|&tick| (tick, scale.name(tick))).collect();
        }
        let last = ticks.pop();
        let reach = |tick: f64, name: &str| {
            let (x, half) = (self.left + self.width * scale.place(tick), width(name, LETTERS) / 2.0 + 2.0);
            (x, x - half, x + half)
        };
        // The last one is named in any case: it says how far the axis goes.
        let free_to = last.as_ref().map_or(f64::INFINITY, |(tick, name)| reach(*tick, name).1);
        let (mut free_from, mut named) = (f64::NEG_INFINITY, Vec::new());
        for (tick, name) in ticks {
            let (x, from, to) = reach(tick, &name);
            if from >= free_from && to <= free_to {
                named.push((x, name));
                free_from = to;
            }
        }
        named.extend(last.map(|(tick, name)| (reach(tick, &name).0, name)));
        for (x, name) in named {
            self.label(x, TOP + HEIGHT + 16.0, "middle", "soft", &name, "");
        }
        scale
    }

    fn lines(&mut self, lines: &[Line], log2: bool) {
        let places: Vec<&Place> = lines.iter().flat_map(|line| line.spots.iter().map(|spot| &spot.x)).collect();
        if places.is_empty() {
            return;
        }
        let along = self.along(&places, log2);
        let (left, width) = (self.left, self.width);
        for line in lines {
            let Line { colour, .. } = line;
            let x = |spot: &Spot| left + width * along.place(spot.x.at);
            let path: Vec<String> =
                line.spots.iter().map(|spot| format!("{:.1},{:.1}", x(spot), self.y(spot.y))).collect();
            let dash = if line.dashed { DASHES } else { "" };
            self.put(format_args!("<polyline class=\"l{colour}\" points=\"{}\"{dash}/>", path.join(" ")));
            let marked = line.spots.len() <= 40 && !line.dashed;
            for spot in line.spots.iter().filter(|_| marked) {
                let (x, y) = (x(spot), self.y(spot.y));
                self.range(x, spot.range);
                let place = spot.x.name.clone().unwrap_or_else(|| short(spot.x.at));
                let said = escaped(&format!("{}: {} at {place}", line.name, short(spot.y)));
                self.put(format_args!(
                    "<circle class=\"f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{said}</title></circle>"
                ));
            }
        }
    }

    fn range(&mut self, x: f64, range: Option<(f64, f64)>) {
        let Some((low, high)) = range else { return };
        let (low, high) = (self.y(low), self.y(high));
        let (left, right) = (x - 3.0, x + 3.0);
        self.put(format_args!(
            "<path class=\"range\" d=\"M{left:.1} {low:.1}H{right:.1}M{x:.1} {low:.1}V{high:.1}M{left:.1} {high:.1}H{right:.1}\"/>"
        ));
    }

    fn bars(&mut self, bars: &[(String, Vec<Bar>)], turned: bool) {
        let room = self.width / bars.len().max(1) as f64;
        for (at, (category, members)) in bars.iter().enumerate() {
            let left = self.left + room * at as f64;
            let breadth = (room * 0.8 / members.len().max(1) as f64).min(BREADTH_MAX);
            let first = left + (room - breadth * members.len() as f64) / 2.0;
            for (slot, bar) in members.iter().enumerate() {
                self.bar(first + breadth * slot as f64, breadth, category, bar);
            }
            let (x, y) = (left + room / 2.0, TOP + HEIGHT + 16.0);
            match turned {
                false => self.label(x, y, "middle", "soft", category, ""),
                true => {
                    let turn = format!(" transform=\"rotate(-50 {x:.1} {:.1})\"", y - 4.0);
                    self.label(x, y - 4.0, "end", "soft", category, &turn);
                }
            }
        }
    }

    /// Segments above zero stand on each other, those below hang from each other.
    fn bar(&mut self, x: f64, breadth: f64, category: &str, bar: &Bar) {
        let mut ends = [0.0; 2];
        for Segment { name, colour, value } in &bar.segments {
            let end = &mut ends[usize::from(*value < 0.0)];
            let base = *end;
            *end += value;
            let (top, bottom) = (self.y(base.max(*end)), self.y(base.min(*end)));
            let (wide, high) = ((breadth - 1.0).max(0.5), bottom - top);
            let said = escaped(&format!("{name}, {category}: {}", short(*value)));
            self.put(format_args!(
                "<rect class=\"f{colour}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{high:.2}\">\
                 <title>{said}</title></rect>"
            ));
        }
        match (&bar.segments[..], bar.range) {
            ([only], None) => self.say_if_low(x + (breadth - 1.0) / 2.0, breadth, only.value),
            _ => self.range(x + breadth / 2.0, bar.range),
        }
    }

    /// The figure of a low bar at the end of it, on end where it is wider than the bar and left out where there is no room for that.
    fn say_if_low(&mut self, middle: f64, breadth: f64, value: f64) {
        let (end, zero) = (self.y(value), self.y(0.0));
        if (end - zero).abs() >= LOW || breadth < SMALL_LETTERS {
            return;
        }
        let (name, hangs, size) = (brief(value), value < 0.0, format!(" font-size=\"{SMALL_LETTERS}\""));
        if width(&name, SMALL_LETTERS) + 3.0 <= breadth {
            let y = if hangs { end + SMALL_LETTERS } else { end - 3.0 };
            return self.label(middle, y, "middle", "soft", &name, &size);
        }
        let (x, y, anchor) = if hangs { (middle + 3.0, end + 3.0, "end") } else { (middle + 3.0, end - 3.0, "start") };
        let turned = format!("{size} transform=\"rotate(-90 {x:.1} {y:.1})\"");
        self.label(x, y, anchor, "soft", &name, &turned);
    }

    fn area(&mut self, xs: &[Place], layers: &[Layer]) {
        if xs.is_empty() {
            return;
        }
        let along = self.along(&xs.iter().collect::<Vec<_>>(), false);
        let mut base = vec![0.0; xs.len()];
        for layer in layers {
            let top: Vec<f64> = base.iter().zip(&layer.heights).map(|(base, height)| base + height).collect();
            let spot = |at: usize, height: f64| {
                format!("{:.1},{:.1}", self.left + self.width * along.place(xs[at].at), self.y(height))
            };
            let over = (0..xs.len()).map(|at| spot(at, top[at]));
            let under = (0..xs.len()).rev().map(|at| spot(at, base[at]));
            let points: Vec<String> = over.chain(under).collect();
            let (colour, said) = (layer.colour, escaped(&layer.name));
            self.put(format_args!(
                "<polygon class=\"f{colour}\" points=\"{}\"><title>{said}</title></polygon>",
                points.join(" ")
            ));
            base = top;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(values: &[f64]) -> Bar {
        let segment = |value: &f64| Segment { name: "one".into(), colour: 0, value: *value };
        Bar { segments: values.iter().map(segment).collect(), range: None }
    }

    /// Two attributes of each rectangle.
    fn rectangles(svg: &str, names: [&str; 2]) -> Vec<(f64, f64)> {
        let field = |text: &str, name: &str| {
            let (_, rest) = text.split_once(&format!("{name}=\"")).expect("the attribute");
            rest.split_once('"').expect("its end").0.parse().expect("a number")
        };
        svg.split("<rect ").skip(1).map(|text| (field(text, names[0]), field(text, names[1]))).collect()
    }

    fn panel(bars: Vec<(String, Vec<Bar>)>) -> Panel {
        let (title, x_label, y_label) = (String::new(), String::new(), String::new());
        let alone = Panel { title, x_label, y_label, log2: false, marks: Marks::Bars(bars), reach: (0.0, 0.0) };
        Panel { reach: alone.own_reach(), ..alone }
    }

    #[test]
    fn bars_stand_around_their_category() {
        let bars = vec![("a".into(), vec![bar(&[1.0])]), ("b".into(), vec![bar(&[1.0]), bar(&[2.0])])];
        let drawn = rectangles(&panel(bars).to_svg(), [" x", "width"]);
        let middles = [drawn[0].0 + drawn[0].1 / 2.0, f64::midpoint(drawn[1].0, drawn[2].0 + drawn[2].1)];
        for (middle, due) in middles.into_iter().zip([LEFT + 75.0, LEFT + 225.0]) {
            assert!((middle - due).abs() < 1.0, "{middle}, its name stands at {due}");
        }
    }

    #[test]
    fn bars_too_low_to_be_read_say_their_figures() {
        let said = |bars: Vec<Bar>| {
            let svg = panel(vec![("a".into(), bars)]).to_svg();
            let small = svg.split("<text ").filter(|text| text.contains("font-size"));
            let text = |text: &str| Some(text.split_once('>')?.1.split_once('<')?.0.to_owned());
            small.filter_map(text).collect::<Vec<_>>()
        };
        assert_eq!(
            said(vec![bar(&[100.0]), bar(&[4.236]), bar(&[0.0]), bar(&[-7.5]), bar(&[9.0])]),
            ["4.2", "0", "-7.5", "9"]
        );
        assert!(said(vec![bar(&[100.0]), bar(&[1.0, 2.0])]).is_empty(), "what has parts is no figure");
        let ranged = Bar { range: Some((0.0, 3.0)), ..bar(&[1.0]) };
        assert!(said(vec![bar(&[100.0]), ranged]).is_empty(), "marks stand there");
        assert!(said((0..200).map(|at| bar(&[f64::from(at)])).collect()).is_empty(), "no room");
    }

    #[test]
    fn bars_below_zero_hang_from_its_line() {
        let bars = vec![("a".into(), vec![bar(&[5.0])]), ("b".into(), vec![bar(&[-1.0, 2.0, -2.0])])];
        // From -4 to 6: zero lies at 0.6 of the height, and a unit is a tenth of it.
        let (zero, unit) = (TOP + 0.6 * HEIGHT, HEIGHT / 10.0);
        let expected = [(zero - 5.0 * unit, 5.0), (zero, 1.0), (zero - 2.0 * unit, 2.0), (zero + unit, 2.0)];
        let drawn = rectangles(&panel(bars).to_svg(), [" y", "height"]);
        assert_eq!(drawn.len(), expected.len());
        for ((top, height), (due, units)) in drawn.into_iter().zip(expected) {
            assert!((top - due).abs() < 0.1 && (height - units * unit).abs() < 0.1, "{top} {height}, {due}");
        }
    }
}
