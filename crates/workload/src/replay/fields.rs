//! Fields of a line: taken one by one by name, so that every fault says which field it is.

use super::TimeUnit;
use super::error::Fault;
use crate::io::IoKind;

/// Whether a line has the names of fields between commas, of which the first is called so, in capitals or not.
pub(super) fn is_header(line: &str, first: &str) -> bool {
    line.split_once(',').is_some_and(|(name, _)| name.trim().eq_ignore_ascii_case(first))
}

/// The fields of one line.
pub(super) struct Fields<I>(I);

/// Fields between commas.
pub(super) fn commas(line: &str) -> Fields<impl Iterator<Item = &str>> {
    Fields(line.split(',').map(str::trim))
}

/// Fields between blanks.
pub(super) fn blanks(line: &str) -> Fields<impl Iterator<Item = &str>> {
    Fields(line.split_ascii_whitespace())
}

impl<'a, I: Iterator<Item = &'a str>> Fields<I> {
    pub(super) fn text(&mut self, field: &'static str) -> Result<&'a str, Fault> {
        self.0.next().ok_or_else(|| Fault::new(field, "", "one more field"))
    }

    pub(super) fn optional(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    pub(super) fn number(&mut self, field: &'static str) -> Result<u64, Fault> {
        number(field, self.text(field)?)
    }

    pub(super) fn time(&mut self, field: &'static str, unit: TimeUnit) -> Result<i128, Fault> {
        time(field, self.text(field)?, unit)
    }

    /// A read or a write, each with the names that the format knows, in capitals or not.
    pub(super) fn direction(
        &mut self,
        field: &'static str,
        reads: &[&str],
        writes: &[&str],
        expected: &'static str,
    ) -> Result<IoKind, Fault> {
        let text = self.text(field)?;
        let is = |names: &[&str]| names.iter().any(|name| text.eq_ignore_ascii_case(name));
        match (is(reads), is(writes)) {
            (true, _) => Ok(IoKind::Read),
            (_, true) => Ok(IoKind::Write),
            _ => Err(Fault::new(field, text, expected)),
        }
    }

    /// No field may follow.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.0.next().map_or(Ok(()), |text| Err(Fault::new("line", text, "the line to end before this field")))
    }
}

/// Far beyond picoseconds on one side and 19 digits on the other.
const EXPONENT_MAX: usize = 40;

/// A whole number.
pub(super) fn number(field: &'static str, text: &str) -> Result<u64, Fault> {
    text.parse().map_err(|_| Fault::new(field, text, "a whole number from 0 to 2^64 - 1"))
}

/// A decimal number of units in picoseconds, without passing through floating point: nanoseconds since 1970 have more
/// digits than it keeps. Digits below a picosecond are dropped.
pub(super) fn time(field: &'static str, text: &str, unit: TimeUnit) -> Result<i128, Fault> {
    let fault = || Fault::new(field, text, "a time: up to 19 digits, and a fraction after a point or an exponent");
    if let Some((mantissa, exponent)) = text.split_once(['e', 'E']) {
        let plain = without_exponent(mantissa, exponent).ok_or_else(fault)?;
        return time(field, &plain, unit).map_err(|_| fault());
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    // 19 digits, the range of a 64-bit number, keep every product below within 128 bits.
    if whole.is_empty() || whole.len() > 19 || !digits(whole) || !digits(fraction) {
        return Err(fault());
    }
    let whole: i128 = whole.parse().map_err(|_| fault())?;
    let mut scale = unit.picos();
    let mut picos = whole * scale;
    for digit in fraction.bytes() {
        scale /= 10;
        picos += i128::from(digit - b'0') * scale;
    }
    Ok(picos)
}

/// A number with its point moved by its exponent, as in `2.5e-05`.
fn without_exponent(mantissa: &str, exponent: &str) -> Option<String> {
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: isize = exponent.parse().ok()?;
    if whole.is_empty() || exponent.unsigned_abs() > EXPONENT_MAX {
        return None;
    }
    let digits = [whole, fraction].concat();
    // Where the point stands among the digits, with as many zeros before or behind them as that takes.
    let point = whole.len() as isize + exponent;
    let zeros = |count: isize| "0".repeat(count.max(0) as usize);
    let digits = format!("{}{digits}{}", zeros(-point), zeros(point - digits.len() as isize));
    let (whole, fraction) = digits.split_at_checked(point.max(0) as usize)?;
    let whole = whole.trim_start_matches('0');
    Some(format!("{}.{fraction}", if whole.is_empty() { "0" } else { whole }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_known_in_capitals_or_not() {
        assert!(["ASU,LBA,Size", "asu, lba", "Asu ,LBA"].iter().all(|line| is_header(line, "ASU")));
        assert!(!["0,ASU", "ASUS,LBA", "ASU"].iter().any(|line| is_header(line, "ASU")));
    }

    #[test]
    fn times_keep_every_digit() {
        let picos = |text, unit| time("time", text, unit).map_err(|fault| fault.to_string());
        assert_eq!(picos("0.026214", TimeUnit::Seconds), Ok(26_214_000_000));
        assert_eq!(picos("128166372003061629", TimeUnit::FileTimeTicks), Ok(12_816_637_200_306_162_900_000));
        assert_eq!(picos("1.0005", TimeUnit::Nanoseconds), Ok(1_000));
        assert_eq!(picos("7.", TimeUnit::Picoseconds), Ok(7));
        let with_exponents = [("1e3", 1_000), ("2.5e-05", 0), ("1.25E+02", 125), ("0.5e1", 5), ("1250e-2", 12)];
        for (text, seconds) in with_exponents {
            assert_eq!(picos(text, TimeUnit::Seconds).map(|picos| picos / 1_000_000_000_000), Ok(seconds), "{text}");
        }
        assert_eq!(picos("2.5e-05", TimeUnit::Seconds), Ok(25_000_000));
        for bad in [
            "",
            ".5",
            "-1",
            "1e",
            "e3",
            "1e99",
            "1e19",
            "1e-9223372036854775808",
            "1e3.5",
            "1.2.3",
            "12345678901234567890",
            "nan",
            "٣",
        ] {
            assert!(picos(bad, TimeUnit::Seconds).is_err(), "{bad}");
        }
    }
}
