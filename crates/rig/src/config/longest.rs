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

    #[test]
    fn no_time_of_the_hardware_is_so_long_that_the_drive_seems_to_stand_still() {
        for (key, value) in [
            ("device.link.latency_ns", "4294967295"),
            ("device.link.latency_ns", "1000000001"),
            ("device.timing.program_msb_us", "1000001"),
            ("device.media.decode_us", "\"1.1s\""),
            ("device.media.decode_bit_ns", "\"1.1ms\""),
            ("flash.gather_us", "4294967295"),
            ("pipeline.poll_ns", "4294967295"),
            ("processor.lines.memory_ns", "4294967295"),
            ("processor.lines.atomic_ns", "100001"),
            ("processor.hops.first_ns", "100001"),
            ("processor.prices.cache_find_entry.stall_ns", "100001"),
            ("processor.stall_per_slot_ns", "1001"),
        ] {
            let layers = Layers::new().set(&format!("{key}={value}")).unwrap();
            let message = layers.resolve().err().expect("it is too long").to_string();
            let start = format!("--set: {key} is {value}; expected at most 1");
            assert!(message.starts_with(&start), "{message}");
        }
        let longest = [
            ("device.link.latency_ns", "1s"),
            ("flash.gather_us", "1s"),
            ("device.timing.program_lsb_us", "1s"),
            ("processor.lines.memory_ns", "100us"),
            ("processor.stall_per_slot_ns", "1us"),
        ];
        for (key, value) in longest {
            let mut layers = Layers::new().flag("--device", "small").unwrap().flag("--ios", "300").unwrap();
            for assignment in ["cache.size_bytes=1MiB", "workload.warm_up_ios=0", &format!("{key}={value}")] {
                layers = layers.set(assignment).unwrap();
            }
            let resolved = layers.resolve().unwrap();
            let mut session = resolved.session(&resolved.plan(), resolved.phases(), 0).unwrap();
            while let Some(phase) = session.next_phase() {
                assert!(phase.is_ok(), "{key}: {:?}", phase.err());
            }
        }
    }
}
