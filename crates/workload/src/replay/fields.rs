//! Fields of a line: taken one by one by name, so that every fault says which field it is.

use super::TimeUnit;
use super::error::Fault;
use crate::io::IoKind;

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

/// A whole number.
pub(super) fn number(field: &'static str, text: &str) -> Result<u64, Fault> {
    text.parse().map_err(|_| Fault::new(field, text, "a whole number from 0 to 2^64 - 1"))
}

/// A decimal number of units in picoseconds, without passing through floating point: nanoseconds since 1970 have more
/// digits than it keeps. Digits below a picosecond are dropped.
pub(super) fn time(field: &'static str, text: &str, unit: TimeUnit) -> Result<i128, Fault> {
    let fault = || Fault::new(field, text, "a time: up to 19 digits, and a fraction after a point");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_every_digit() {
        let picos = |text, unit| time("time", text, unit).map_err(|fault| fault.to_string());
        assert_eq!(picos("0.026214", TimeUnit::Seconds), Ok(26_214_000_000));
        assert_eq!(picos("128166372003061629", TimeUnit::FileTimeTicks), Ok(12_816_637_200_306_162_900_000));
        assert_eq!(picos("1.0005", TimeUnit::Nanoseconds), Ok(1_000));
        assert_eq!(picos("7.", TimeUnit::Picoseconds), Ok(7));
        for bad in ["", ".5", "-1", "1e3", "1.2.3", "12345678901234567890", "nan", "٣"] {
            assert!(picos(bad, TimeUnit::Seconds).is_err(), "{bad}");
        }
    }
}
