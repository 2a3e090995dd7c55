//! Figures as people read them: three significant digits and a unit.

/// Three significant digits, no more than the histograms hold.
fn digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// The value in the first unit (each a thousand of the one before) that keeps it below a thousand.
fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let (last, smaller) = units.split_last().expect("a list of units is a constant");
    for unit in smaller {
        if value < 999.5 {
            return format!("{} {unit}", digits(value)).trim_end().to_owned();
        }
        value /= 1e3;
    }
    format!("{} {last}", digits(value))
}

/// `950`, `12.3 k`, `1.36 M`.
pub fn count(value: f64) -> String {
    if value < 999.5 && value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    scaled(value, &["", "k", "M", "G", "T"])
}

/// A length of time given in ns: `930 ns`, `53.0 µs`, `1.30 ms`, `2.10 s`.
pub fn nanos(value: f64) -> String {
    match value {
        0.0 => "0 ns".to_owned(),
        value => scaled(value, &["ns", "µs", "ms", "s"]),
    }
}

/// An energy given in J: `1.20 µJ`, `600 mJ`.
pub(crate) fn joules(value: f64) -> String {
    match value {
        0.0 => "0 J".to_owned(),
        value => scaled(value * 1e9, &["nJ", "µJ", "mJ", "J", "kJ"]),
    }
}

/// A rate given in bytes a second, in decimal units as drives are sold: `4.79 GB/s`.
pub fn bandwidth(value: f64) -> String {
    match value {
        0.0 => "0 B/s".to_owned(),
        value => scaled(value, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
    }
}

/// A fraction in per cent: `86 %`, `3.1 %`.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        value if value >= 9.95 => format!("{value:.0} %"),
        value => format!("{value:.1} %"),
    }
}

/// A plain number: `1.83`, `12.3`.
pub(crate) fn number(value: f64) -> String {
    digits(value)
}

/// So many of what `noun` is one of: `1 core`, `12 cores`.
pub fn of(how_many: u64, noun: &str) -> String {
    format!("{how_many} {noun}{}", if how_many == 1 { "" } else { "s" })
}

/// A horizontal bar that fills `share` of `cells` character cells, to an eighth of one.
pub(crate) fn bar(share: f64, cells: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * cells as f64 * 8.0).round() as usize;
    let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    // What is there shows, however little it is.
    if bar.is_empty() && share > 0.0 { EIGHTHS[1].to_owned() } else { bar }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits_and_change_unit_where_they_round_up() {
        let counts = [0.0, 7.0, 0.5, 999.0, 999.6, 12_345.0, 999_600.0, 1_360_000.0, 5e15].map(count);
        assert_eq!(counts, ["0", "7", "0.50", "999", "1.00 k", "12.3 k", "1.00 M", "1.36 M", "5000 T"]);
        let spans = [0.0, 0.25, 930.0, 53_000.0, 999_499.0, 999_501.0, 2.1e9, 7.2e12].map(nanos);
        assert_eq!(spans, ["0 ns", "0.25 ns", "930 ns", "53.0 µs", "999 µs", "1.00 ms", "2.10 s", "7200 s"]);
        assert_eq!([0.0, 3e-5, 0.6, 1.9, 2_500.0].map(joules), ["0 J", "30.0 µJ", "600 mJ", "1.90 J", "2.50 kJ"]);
        assert_eq!([0.0, 512.0, 4.79e9].map(bandwidth), ["0 B/s", "512 B/s", "4.79 GB/s"]);
        assert_eq!(
            [0.0, 0.031, 0.0994, 0.0996, 0.86, 1.0].map(percent),
            ["0 %", "3.1 %", "9.9 %", "10 %", "86 %", "100 %"]
        );
    }

    #[test]
    fn what_would_round_up_to_a_digit_more_has_a_place_less() {
        let numbers = [9.994, 9.995, 99.94, 99.95].map(number);
        assert_eq!(numbers, ["9.99", "10.0", "99.9", "100"]);
        assert_eq!([999.4, 999.5, 1_000.0, 999_500.0].map(count), ["999", "1.00 k", "1.00 k", "1.00 M"]);
        // A hundred times this is 9.95.
        assert_eq!([0.09949999999999999, 0.0994].map(percent), ["10 %", "9.9 %"]);
        assert_eq!([0, 1, 2].map(|cores| of(cores, "core")), ["0 cores", "1 core", "2 cores"]);
        assert_eq!([5e13, 5e15].map(bandwidth), ["50.0 TB/s", "5000 TB/s"]);
    }

    #[test]
    fn bars_show_little_things_and_never_overflow() {
        assert_eq!(
            [0.0, 0.001, 0.5, 0.53, 1.0, 1.7].map(|share| bar(share, 4)),
            ["", "▏", "██", "██▏", "████", "████"]
        );
    }
}
