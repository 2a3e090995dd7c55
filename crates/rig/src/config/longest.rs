//! The longest times that keys of the hardware may hold. A host gives a drive up that answers nothing for 20 s of virtual time, as a
//! fault of the firmware; what one step of the hardware takes has to stay so far below that it is one whenever that happens.

use super::ConfigError;
use super::field::{Field, unit_of};
use super::layered::Layered;
use units::Span;

/// The beginning of keys, and the longest time that one of them may hold. Of several that fit the first counts.
const LONGEST: &[(&str, Span)] = &[
    // Taken as often as an instruction is issued.
    ("processor.stall_per_slot_ns", Span::from_micros(1)),
    // A command meets hundreds of these, and waits behind those of others.
    ("processor.", Span::from_micros(100)),
    // Taken for each bit that is corrected, again at each level of a retry.
    ("device.media.decode_bit_ns", Span::from_millis(1)),
    ("device.", Span::from_secs(1)),
    ("flash.", Span::from_secs(1)),
    ("pipeline.", Span::from_secs(1)),
];

/// The longest time that an issue slot of the processor may take. The shipped processors have pieces of work of 1,100 slots, and a
/// command of 256 pages has one of them for each.
pub(super) const SLOT: Span = Span::from_micros(50);

/// The longest time that one piece of work may take, where its thread issues in every slot that is its own.
pub(super) const WORK: Span = Span::from_millis(100);

/// The longest time that a key of the hardware may hold.
pub(super) fn of(key: &str) -> Option<Span> {
    let is_time = unit_of(key).is_some() && !key.ends_with("_per_s");
    LONGEST.iter().find(|(start, _)| is_time && key.starts_with(start)).map(|(_, longest)| *longest)
}

/// Refuses the first key of the hardware that holds a longer time. What is no time is for who reads it.
pub(super) fn check(from: &Layered) -> Result<(), ConfigError> {
    for (key, setting) in from.iter() {
        let Some(longest) = of(&key.path) else { continue };
        if Span::read(&setting.value, &key.path).is_some_and(|span| span > longest) {
            return Err(from.refuse(&key.path, format!("at most {longest}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::Layers;

    /// Too long, longer than any time can be, and none.
    #[test]
    fn whatever_is_wrong_with_a_time_its_limit_is_the_same() {
        for (key, limit) in [
            ("device.timing.read_lsb_us", "1 s"),
            ("processor.hops.first_ns", "100 us"),
            ("processor.stall_per_slot_ns", "1 us"),
            ("journal.interval_ms", "1000000 s"),
        ] {
            let refused = |value: &str| {
                let layers = Layers::new().set(&format!("{key}={value}")).expect("a key");
                layers.resolve().err().expect("it is refused").to_string()
            };
            for value in ["-1", "1e20", "2000000s"] {
                let said = refused(value);
                assert!(said.ends_with(&format!(" {limit}")), "{said}");
            }
        }
    }
}
