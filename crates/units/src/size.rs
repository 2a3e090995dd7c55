//! Sizes in bytes.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Units of size: one letter, or with `iB`, counts in 1,024s; with `B` in 1,000s.
const SUFFIXES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

/// A text such as `1.5 ms`: a number, and in small letters what follows it.
pub fn measure(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim().to_ascii_lowercase()))
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// So many kibibytes.
    #[inline]
    pub const fn kib(count: u64) -> Self {
        Bytes(count << 10)
    }
    /// So many mebibytes.
    #[inline]
    pub const fn mib(count: u64) -> Self {
        Bytes(count << 20)
    }
    /// As the sizes of pages and requests are said, in units of 1,024: `512 B`, `4 KiB`, `7.5 KiB`.
    pub fn binary(self) -> String {
        if self.0 < 1 << 10 {
            return format!("{} B", self.0);
        }
        let (count, unit) = scaled(self.0, 1024.0, &["KiB", "MiB", "GiB"]);
        format!("{count} {unit}")
    }
    /// Whether a text is a number with a unit of size, however many bytes that is.
    pub fn is_size(text: &str) -> bool {
        measure(text).is_some_and(|(_, suffix)| SUFFIXES.iter().any(|(name, _)| *name == suffix))
    }
    /// What a text such as `4k`, `512MiB` or `1TB` says, if it is a whole number of bytes up to 2^53.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, suffix) = measure(text)?;
        let (_, unit) = SUFFIXES.iter().find(|(name, _)| *name == suffix)?;
        let bytes = number * *unit as f64;
        // Beyond 2^53 a fraction would be rounded; no drive is that large.
        (bytes.fract() == 0.0 && bytes <= (1u64 << 53) as f64).then_some(Bytes(bytes as u64))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    #[inline]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}
impl Mul<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0 * times)
    }
}

impl fmt::Display for Bytes {
    /// Decimal units with one digit: `4.8 GB`, `512 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000 {
            return write!(f, "{} B", self.0);
        }
        let (count, unit) = scaled(self.0, 1e3, &["kB", "MB", "GB", "TB"]);
        write!(f, "{count:.1} {unit}")
    }
}

/// A number of bytes in the first unit, each `step` times the one before, in which fewer than `step` are left once they are rounded to a
/// tenth.
fn scaled(bytes: u64, step: f64, units: &[&'static str]) -> (f64, &'static str) {
    let mut left = bytes as f64;
    let (last, smaller) = units.split_last().expect("a list of units is a constant");
    for unit in smaller {
        left /= step;
        let rounded = (left * 10.0).round() / 10.0;
        if rounded < step {
            return (rounded, unit);
        }
    }
    ((left / step * 10.0).round() / 10.0, last)
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn sizes_change_their_unit_where_they_round_up() {
        let drives = [512, 4_096, 999_949, 999_950, 999_997_440, 1_024_000_000, 7_000_000_000_000_000];
        let shown = ["512 B", "4.1 kB", "999.9 kB", "1.0 MB", "1.0 GB", "1.0 GB", "7000.0 TB"];
        assert_eq!(drives.map(|bytes| Bytes(bytes).to_string()), shown);
        let pages = [1_023, 1_024, 7_680, 1_048_575, 1 << 20, 3 << 29].map(|bytes| Bytes(bytes).binary());
        assert_eq!(pages, ["1023 B", "1 KiB", "7.5 KiB", "1 MiB", "1 MiB", "1.5 GiB"]);
    }

    #[test]
    fn a_letter_counts_in_1024s_and_with_a_b_alone_in_1000s() {
        let parse = |text: &str| Bytes::parse(text).map(|bytes| bytes.0);
        for (place, letter) in (1..).zip(["k", "m", "g", "t"]) {
            for binary in [letter.to_owned(), format!("{letter}iB"), format!("{}ib", letter.to_uppercase())] {
                assert_eq!(parse(&format!("3{binary}")), Some(3 << (10 * place)), "{binary}");
            }
            assert_eq!(parse(&format!("3 {letter}B")), Some(3 * 1_000u64.pow(place)), "{letter}B");
        }
        assert_eq!(
            ["7", "7b", " 7 B ", "0.5k", ".5 KiB"].map(parse),
            [Some(7), Some(7), Some(7), Some(512), Some(512)]
        );
    }

    #[test]
    fn what_is_no_whole_number_of_bytes_or_too_many_is_no_size() {
        for text in ["", "k", "1.5", "0.3k", "1.2.3k", "-1", "4 pages", "1e3", "9007199254740994", "8193t"] {
            assert_eq!(Bytes::parse(text), None, "{text}");
        }
        assert_eq!([Bytes::parse("8192t"), Bytes::parse("9007199254740992")], [Some(Bytes(1 << 53)); 2]);
        assert_eq!(["1.5", "0.3k", "8193t", "4 pages", "k"].map(Bytes::is_size), [true, true, true, false, false]);
    }
}
