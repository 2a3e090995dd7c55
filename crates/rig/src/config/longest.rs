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

/// Refuses the first key of the hardware that holds a longer time. What is no time is for who reads it.
pub(super) fn check(from: &Layered) -> Result<(), ConfigError> {
    for (key, setting) in from.iter() {
        let Some((_, longest)) = LONGEST.iter().find(|(start, _)| key.path.starts_with(start)) else { continue };
        let is_time = unit_of(&key.path).is_some() && !key.path.ends_with("_per_s");
        if is_time && Span::read(&setting.value, &key.path).is_some_and(|span| span > *longest) {
            return Err(from.refuse(&key.path, format!("at most {longest}")));
        }
    }
    Ok(())
}
