//! What values a key can hold: numbers, words, sizes and spans, read from a value and written as one.

use super::value::Value;
use super::{limits, longest};
use firmware::{AddressSplit, BlockDeal, MappingScheme, QueueAllocation, VictimPolicy};
use nvme::spec::QueuePriority;
use units::{Bytes, Span, measure};

/// A type that keys hold. The key tells the unit by its suffix.
pub(super) trait Field: Sized {
    /// `None` where the value is of another type or outside the range.
    fn read(value: &Value, key: &str) -> Option<Self>;
    /// What is expected instead.
    fn expected(key: &str) -> String;
    /// The same, of this value, where that depends on what is wrong with it.
    fn expected_for(_value: &Value, key: &str) -> String {
        Self::expected(key)
    }
    /// The value that reads back as this.
    fn write(&self, key: &str) -> Value;
}

/// A type of numbers that a key may bound.
pub(super) trait Number: Field + PartialOrd + std::fmt::Display {
    /// What one is called.
    const KIND: &str;
}

macro_rules! integers {
    ($($integer:ident)*) => {$(
        impl Field for $integer {
            fn read(value: &Value, _: &str) -> Option<Self> {
                let Value::Integer(number) = value else { return None };
                (*number).try_into().ok()
            }
            fn expected(_: &str) -> String {
                format!("a whole number from 0 to {}", (i64::MAX as u64).min(u64::from($integer::MAX)))
            }
            /// What is no whole number is not told a type's bounds: the key may have narrower ones.
            fn expected_for(value: &Value, key: &str) -> String {
                match limits::of(key) {
                    _ if !is_whole(value) => Self::KIND.into(),
                    Some(limits) => limits,
                    None => Self::expected(key),
                }
            }
            fn write(&self, _: &str) -> Value {
                Value::Integer((*self).try_into().expect("settings stay below 2^63"))
            }
        }

        impl Number for $integer {
            const KIND: &str = "a whole number";
        }
    )*};
}

integers! { u8 u16 u32 u64 }

/// Whether a value is a whole number, one with too many digits for a number of TOML included: a text then.
fn is_whole(value: &Value) -> bool {
    match value {
        Value::Integer(_) => true,
        Value::Text(text) => {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    }
}

impl Field for f64 {
    fn read(value: &Value, _: &str) -> Option<Self> {
        match value {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number).filter(|number| number.is_finite()),
            _ => None,
        }
    }
    fn expected(_: &str) -> String {
        "a number".into()
    }
    fn write(&self, _: &str) -> Value {
        Value::Float(*self)
    }
}

impl Number for f64 {
    const KIND: &str = "a number";
}

impl Field for bool {
    /// `on` and `off` are the words of the command line.
    fn read(value: &Value, _: &str) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(*flag),
            value if value.is_text("on") => Some(true),
            value if value.is_text("off") => Some(false),
            _ => None,
        }
    }
    fn expected(_: &str) -> String {
        "true or false".into()
    }
    fn write(&self, _: &str) -> Value {
        Value::Flag(*self)
    }
}

impl Field for String {
    fn read(value: &Value, _: &str) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        Some(text.clone())
    }
    fn expected(_: &str) -> String {
        "a text in quotes".into()
    }
    fn write(&self, _: &str) -> Value {
        Value::Text(self.clone())
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(value: &Value, key: &str) -> Option<Self> {
        let Value::List(values) = value else { return None };
        values.iter().map(|value| T::read(value, key)).collect()
    }
    fn expected(key: &str) -> String {
        format!("a list, each {}", T::expected(key))
    }
    fn write(&self, key: &str) -> Value {
        Value::List(self.iter().map(|value| value.write(key)).collect())
    }
}

/// Units of time in picoseconds; keys end in `_` and one of them.
const SPANS: &[(&str, f64)] = &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];

/// Far below what 64 bits of picoseconds hold, so that sums stay in range: 11 days.
const LONGEST_PICOS: f64 = 1e18;

impl Field for Bytes {
    fn read(value: &Value, _: &str) -> Option<Self> {
        let Value::Text(text) = value else { return u64::read(value, "").map(Bytes) };
        Bytes::parse(text)
    }
    fn expected(_: &str) -> String {
        "a size in bytes, as 4096, \"4k\", \"512MiB\" or \"1TB\"".into()
    }
    fn expected_for(value: &Value, key: &str) -> String {
        match value {
            Value::Text(text) if Bytes::is_size(text) => "a whole number of bytes up to 2^53".into(),
            _ => Self::expected(key),
        }
    }
    fn write(&self, _: &str) -> Value {
        self.0.write("")
    }
}

/// The unit that a key ends in; one that may hold other things than a time ends in none, and takes a time with its unit only.
pub(super) fn unit_of(key: &str) -> Option<(&'static str, f64)> {
    let suffix = key.rsplit('_').next()?;
    SPANS.iter().find(|(name, _)| *name == suffix).copied()
}

/// How many picoseconds a value says.
fn picos(value: &Value, key: &str) -> Option<f64> {
    Some(match value {
        Value::Text(text) => {
            let (number, unit) = measure(text)?;
            number * SPANS.iter().find(|(name, _)| *name == unit)?.1
        }
        value => f64::read(value, key)? * unit_of(key)?.1,
    })
}

/// The figure that a value is: a number, a size in bytes, a time in the unit of its key, 0 or 1 of what holds or does not.
pub(super) fn figure(value: &Value, key: &str) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Text(_) if key.ends_with("_bytes") => Bytes::read(value, key).map(|bytes| bytes.0 as f64),
        Value::Text(_) if unit_of(key).is_some() => Some(Span::read(value, key)?.picos() as f64 / unit_of(key)?.1),
        value => bool::read(value, key).map(|flag| f64::from(u8::from(flag))),
    }
}

impl Field for Span {
    fn read(value: &Value, key: &str) -> Option<Self> {
        let picos = picos(value, key)?;
        (0.0..=LONGEST_PICOS).contains(&picos).then(|| Span::from_picos(picos.round() as u64))
    }
    fn expected(key: &str) -> String {
        match unit_of(key) {
            Some((unit, _)) => format!("a time in {unit}, or a text such as \"1.5ms\""),
            None => "a text such as \"1.5ms\"".into(),
        }
    }
    fn expected_for(value: &Value, key: &str) -> String {
        match value {
            value if picos(value, key).is_some() => match longest::of(key) {
                Some(longest) => format!("a time from 0 to {longest}"),
                None => format!("a time from 0 to {} s", LONGEST_PICOS / 1e12),
            },
            Value::Text(text) if measure(text).is_some_and(|(_, unit)| !unit.is_empty()) => {
                let units: Vec<&str> = SPANS.iter().map(|(name, _)| *name).collect();
                format!("{}, in one of {}", Self::expected(key), units.join(", "))
            }
            _ => Self::expected(key),
        }
    }
    fn write(&self, key: &str) -> Value {
        match unit_of(key) {
            Some((_, picos)) => Value::Float(self.picos() as f64 / picos),
            None => Value::Text(format!("{}ns", self.nanos_f64())),
        }
    }
}

/// `page`, or the n:m of the hybrid mapping.
impl Field for MappingScheme {
    fn read(value: &Value, _: &str) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        if text == "page" {
            return Some(MappingScheme::Page);
        }
        let (log_blocks, data_blocks) = text.split_once(':')?;
        let count = |text: &str| text.trim().parse().ok();
        Some(MappingScheme::Hybrid { log_blocks: count(log_blocks)?, data_blocks: count(data_blocks)? })
    }
    fn expected(_: &str) -> String {
        "\"page\", or log blocks and data blocks as in \"1:8\"".into()
    }
    fn write(&self, _: &str) -> Value {
        Value::Text(self.to_string())
    }
}

/// Choices that are words.
macro_rules! words {
    ($($choice:ty, $key:literal { $($variant:ident $word:expr),* })*) => {
        /// Keys that hold one of a few words, with these words.
        pub const CHOICES: &[(&str, &[&str])] = &[$(($key, &[$($word),*])),*];

        $(
        impl Field for $choice {
            fn read(value: &Value, _: &str) -> Option<Self> {
                $(if value.is_text($word) { return Some(<$choice>::$variant); })*
                None
            }
            fn expected(_: &str) -> String {
                format!("one of {}", [$($word),*].join(", "))
            }
            fn write(&self, _: &str) -> Value {
                Value::Text(match self { $(<$choice>::$variant => $word,)* }.into())
            }
        }
    )*};
}

words! {
    QueueAllocation, "firmware.queue_allocation" { Static "static", Dynamic "dynamic" }
    AddressSplit, "firmware.address_split" { Plain "plain", Xor "xor" }
    BlockDeal, "firmware.block_deal" { Interleaved "interleaved", Channel "channel" }
    VictimPolicy, "reclaim.victim" { Greedy "greedy", CostBenefit "cost_benefit" }
    flash::CellKind, "device.kind" { Slc "slc", Mlc "mlc", Tlc "tlc" }
    nvme::Arbitration, "controller.arbitration" { RoundRobin "round_robin", Weighted "weighted" }
    QueuePriority, "host.priorities" {
        Urgent QueuePriority::Urgent.word(),
        High QueuePriority::High.word(),
        Medium QueuePriority::Medium.word(),
        Low QueuePriority::Low.word()
    }
    host::Pace, "workload.pace" { Closed "closed", Timed "timed" }
    super::Payload, "run.payload" { None "none", Fingerprint "fingerprint", Full "full" }
    super::resolved::Until, "run.until" { End "end", Steady "steady" }
    threads::Apart, "run.world_apart" { Hardware "hardware", Host "host" }
    super::resolved::WorldName, "run.world" { Sim "sim", Threads "threads" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        let read = |size| Bytes::read(&text(size), "").map(|bytes| bytes.0);
        assert_eq!([read("4k"), read("512MiB"), read("1TB")], [Some(4096), Some(512 << 20), Some(1_000_000_000_000)]);
        assert_eq!(
            [read("1.5 K"), read("0.5 B"), read("4 q"), read("k"), read("")],
            [Some(1536), None, None, None, None]
        );
        assert_eq!([read("9e9"), read("99999999TB"), read("-1k")], [None, None, None]);
        let expected = |size| Bytes::expected_for(&text(size), "");
        assert_eq!(expected("99999999TB"), "a whole number of bytes up to 2^53");
        assert_eq!(expected("4 q"), Bytes::expected(""));
        assert_eq!(Bytes::read(&Value::Integer(-1), ""), None);
    }

    #[test]
    fn spans_are_in_the_unit_of_their_key() {
        assert_eq!(Span::read(&Value::Float(0.9), "a_ms"), Some(Span::from_micros(900)));
        assert_eq!(Span::read(&text("1s"), "a_ms"), Some(Span::from_secs(1)));
        assert_eq!(Span::read(&Value::Integer(-1), "a_us"), None);
        assert_eq!(Span::read(&Value::Float(f64::NAN), "a_us"), None);
        assert_eq!(Span::read(&Value::Float(1e30), "a_us"), None);
        let expected = |value| Span::expected_for(&value, "a_ms");
        assert_eq!([expected(Value::Float(-1.0)), expected(text("2000000s"))], ["a time from 0 to 1000000 s"; 2]);
        assert_eq!(expected(text("1h")), "a time in ms, or a text such as \"1.5ms\", in one of ps, ns, us, ms, s");
        assert_eq!(expected(text("soon")), Span::expected("a_ms"));
    }

    #[test]
    fn a_figure_is_in_the_unit_of_its_key_however_it_is_written() {
        for (value, key, expected) in [
            (text("512MiB"), "a_bytes", Some(536_870_912.0)),
            (Value::Integer(4096), "a_bytes", Some(4096.0)),
            (text("1.5ms"), "a_us", Some(1500.0)),
            (Value::Float(2.5), "a_us", Some(2.5)),
            (Value::Flag(true), "a", Some(1.0)),
            (text("off"), "a", Some(0.0)),
            (text("derived"), "a_bytes", None),
            (text("none"), "a_ms", None),
            (text("xor"), "a", None),
        ] {
            assert_eq!(figure(&value, key), expected, "{key} = {value}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let spans = [0, 1, 333, 25_000_000, 123_456_789_012].map(Span::from_picos);
        for span in spans {
            for key in ["a_ns", "a_us", "a_ms", "a_s"] {
                assert_eq!(Span::read(&span.write(key), key), Some(span));
            }
        }
        for scheme in [MappingScheme::Page, MappingScheme::Hybrid { log_blocks: 1, data_blocks: 8 }] {
            assert_eq!(MappingScheme::read(&scheme.write(""), ""), Some(scheme));
        }
        assert_eq!(["1", "1:", "-1:8", "1:8:2", ""].map(|word| MappingScheme::read(&text(word), "")), [None; 5]);
        assert_eq!(bool::read(&text("off"), ""), Some(false));
        assert_eq!(VictimPolicy::read(&VictimPolicy::CostBenefit.write(""), ""), Some(VictimPolicy::CostBenefit));
    }
}
