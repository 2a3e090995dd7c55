//! From figures to places on paper, and which figures an axis names.

/// Figures along an axis that are all named; of more of them round ones are.
const OWN_TICKS: usize = 12;

/// A scale of numbers along one axis.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log2: bool,
    pub(super) ticks: Vec<f64>,
}

impl Scale {
    /// From at most the lowest figure up to at least the highest; zero is among them.
    pub(super) fn heights(lowest: f64, highest: f64) -> Scale {
        let (lowest, highest) = (lowest.min(0.0), highest.max(0.0));
        let step = step((highest - lowest).max(1e-12) / 4.0);
        let below = (-lowest / step - 1e-9).ceil().max(0.0) as i32;
        let above = ((highest / step - 1e-9).ceil() as i32).max(i32::from(below == 0));
        let ticks = (-below..=above).map(|at| f64::from(at) * step).collect();
        Scale { low: f64::from(-below) * step, high: f64::from(above) * step, log2: false, ticks }
    }

    /// Over all of these figures; on a logarithmic scale, and where there are few, each of them is named.
    pub(super) fn along(figures: &[f64], log2: bool) -> Scale {
        let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if log2 && low > 0.0 {
            let mut ticks = figures.to_vec();
            ticks.sort_by(f64::total_cmp);
            ticks.dedup();
            return Scale { low, high: if high > low { high } else { low * 2.0 }, log2: true, ticks };
        }
        let span = if high > low { high - low } else { 1.0 };
        let mut own = figures.to_vec();
        own.sort_by(f64::total_cmp);
        own.dedup();
        if own.len() <= OWN_TICKS {
            return Scale { low, high: low + span, log2: false, ticks: own };
        }
        let step = step(span / 5.0);
        let first = (low / step).ceil();
        let ticks =
            (0..).map(|at| (first + f64::from(at)) * step).take_while(|tick| *tick <= high + step * 1e-6).collect();
        Scale { low, high: low + span, log2: false, ticks }
    }

    /// A tick's name, in as many digits as tell it from the next.
    pub(super) fn name(&self, tick: f64) -> String {
        let step = self.ticks.windows(2).map(|pair| pair[1] - pair[0]).next().filter(|_| !self.log2);
        let apart = step.map_or(0, |step| power(tick) - power(step));
        // Steps of 2.5 have a digit more.
        written(tick, DIGITS.max(apart.max(0) as usize + 2))
    }

    /// Where a figure lies, 0 to 1.
    pub(super) fn place(&self, figure: f64) -> f64 {
        match self.log2 {
            true => libm::log2(figure / self.low) / libm::log2(self.high / self.low),
            false => (figure - self.low) / (self.high - self.low),
        }
    }
}

/// The next of 1, 2, 2.5, 5 times a power of ten.
fn step(least: f64) -> f64 {
    let power = libm::pow(10.0, libm::log10(least).floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let factor = factors.into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

/// Digits of a figure, of which zeros at its end are left out.
const DIGITS: usize = 4;

/// A figure in a few digits: `1.5M`, `250k`, `0.25`, `5e-6`.
pub(super) fn short(figure: f64) -> String {
    written(figure, DIGITS)
}

/// A figure in two digits, where there is little room.
pub(super) fn brief(figure: f64) -> String {
    written(figure, 2)
}

/// So many digits of a figure, the least of them rounded, with a unit or a power of ten where they alone would be long.
fn written(figure: f64, digits: usize) -> String {
    let figure = figure + 0.0; // What is -0 is 0.
    let rounded = format!("{figure:.*e}", digits - 1);
    let Some((mantissa, power)) = rounded.split_once('e').and_then(|(head, tail)| Some((head, tail.parse().ok()?)))
    else {
        return rounded;
    };
    let (divisor, of_unit, unit) = match power {
        9.. => (1e9, 9, "G"),
        6.. => (1e6, 6, "M"),
        4.. => (1e3, 3, "k"),
        -3.. => (1.0, 0, ""),
        _ => return format!("{}e{power}", without_zeros(mantissa)),
    };
    let decimals = (digits as i32 - 1 - (power - of_unit)).max(0) as usize;
    format!("{}{unit}", without_zeros(&format!("{:.decimals$}", figure / divisor)))
}

/// A figure without the zeros that end its decimals.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// The power of ten of a figure's first digit.
fn power(figure: f64) -> i32 {
    if figure == 0.0 { 0 } else { libm::log10(figure.abs()).floor() as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_begin_at_zero_and_end_above_the_highest() {
        assert_eq!(Scale::heights(0.0, 813.0).ticks, [0.0, 250.0, 500.0, 750.0, 1000.0]);
        assert_eq!(Scale::heights(2.0, 4.0).ticks, [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Scale::heights(0.0, 0.0).ticks.len(), 2, "nothing at all still has an axis");
        assert_eq!(Scale::heights(0.0, 4.0).place(1.0), 0.25);
    }

    #[test]
    fn heights_go_below_zero_where_figures_do() {
        assert_eq!(Scale::heights(-3.0, 5.0).ticks, [-4.0, -2.0, 0.0, 2.0, 4.0, 6.0]);
        assert_eq!(Scale::heights(-8.0, -1.0).ticks, [-8.0, -6.0, -4.0, -2.0, 0.0]);
        assert_eq!(Scale::heights(-3.0, 5.0).place(0.0), 0.4);
    }

    #[test]
    fn figures_lie_along_their_axis() {
        let cores = Scale::along(&[1.0, 4.0, 2.0, 4.0], true);
        assert_eq!((cores.ticks.as_slice(), cores.place(2.0)), (&[1.0, 2.0, 4.0][..], 0.5));
        let time = Scale::along(&[0.04, 0.24], false);
        assert_eq!(time.ticks, [0.04, 0.24], "few figures are named themselves");
        assert!((time.place(0.14) - 0.5).abs() < 1e-12);
        let many: Vec<f64> = (2..20).map(f64::from).collect();
        assert_eq!(Scale::along(&many, false).ticks, [5.0, 10.0, 15.0]);
        assert!(Scale::along(&[3.0], false).place(3.0) == 0.0 && Scale::along(&[3.0], true).place(3.0) == 0.0);
    }

    #[test]
    fn figures_are_named_shortly() {
        let named = [0.0, 0.25, 12.5, 1500.0, 25_000.0, 1.5e6, 4.8e9, 0.004].map(short);
        assert_eq!(named, ["0", "0.25", "12.5", "1500", "25k", "1.5M", "4.8G", "0.004"]);
        let named = [-0.25, 9_999.7, 99_999.0, 105_296.0, 1.0 / 3.0, 0.012_346, 0.000_25, 5.04e-6, -1e-12].map(short);
        assert_eq!(named, ["-0.25", "10k", "100k", "105.3k", "0.3333", "0.01235", "2.5e-4", "5.04e-6", "-1e-12"]);
    }

    #[test]
    fn ticks_are_named_as_what_they_are() {
        let is_named = |scale: &Scale| {
            let named: Vec<String> = scale.ticks.iter().map(|tick| scale.name(*tick)).collect();
            for (name, tick) in named.iter().zip(&scale.ticks) {
                let (digits, unit) = name.split_at(name.find(['k', 'M', 'G']).unwrap_or(name.len()));
                let unit = ["", "k", "M", "G"].iter().position(|known| *known == unit).expect("a unit");
                let said = digits.parse::<f64>().expect("a figure") * libm::pow(1e3, unit as f64);
                assert!((said - tick).abs() <= 1e-9 * tick.abs().max(said.abs()), "{tick} is {name} of {named:?}");
            }
        };
        for highest in [8e-13, 4.9e-6, 0.001, 0.11, 0.9, 3.0, 410.0, 9_000.0, 46_000.0, 1.1e6, 7e9] {
            is_named(&Scale::heights(0.0, highest));
            is_named(&Scale::heights(-highest / 3.0, highest));
        }
        for low in [0.0, 0.1, 100.0, 10_000.0, 1_234_000.0] {
            for span in [0.11, 11.0] {
                let many: Vec<f64> = (0..20).map(|at| low + span * f64::from(at) / 19.0).collect();
                is_named(&Scale::along(&many, false));
            }
        }
    }
}
