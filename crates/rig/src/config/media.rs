//! How the device's flash fails.

use super::layered::Layered;
use super::{ConfigError, Device};
use crate::config::field::Field;
use crate::precondition::Fill;
use crate::wear::cycles_before;
use flash::{ErrorModel, FaultSettings, Geometry, ReadRetry};
use units::Bytes;

/// The table of these keys.
const TABLE: &str = "device.media";

/// Reads and checks the table; nothing where flash does not fail.
pub(super) fn read(from: &Layered, geometry: &Geometry, tags: Bytes) -> Result<Option<FaultSettings>, ConfigError> {
    let settings = FaultSettings {
        errors: ErrorModel {
            base: get(from, "rber_base")?,
            wear: get(from, "rber_wear")?,
            wear_exponent: get(from, "rber_wear_exponent")?,
            retention: get(from, "rber_retention")?,
            retention_wear_exponent: get(from, "rber_retention_wear_exponent")?,
            retention_exponent: get(from, "rber_retention_exponent")?,
            disturb: get(from, "rber_disturb")?,
            disturb_wear_exponent: get(from, "rber_disturb_wear_exponent")?,
            disturb_exponent: get(from, "rber_disturb_exponent")?,
        },
        cycles: get(from, "cycles")?,
        days: get(from, "days")?,
        days_per_second: get(from, "days_per_second")?,
        block_sigma: get(from, "block_sigma")?,
        code_data: get(from, "code_data_bytes")?,
        correctable: get(from, "code_correctable")?,
        decode: get(from, "decode_us")?,
        decode_bit: get(from, "decode_bit_ns")?,
        retry: ReadRetry { levels: get(from, "retry_levels")?, factor: get(from, "retry_factor")? },
        weak: get(from, "weak")?,
        program_failures: get(from, "program_failures")?,
        erase_failures: get(from, "erase_failures")?,
        factory_bad: get(from, "factory_bad")?,
    };
    // What flash would fail by is judged whether it does or not; whether the code fits the pages only where there is one.
    let faults: bool = get(from, "faults")?;
    let judged = if faults { settings.validate(geometry, tags) } else { settings.check_ranges() };
    judged.map_err(|error| from.refuse(&format!("{TABLE}.{}", error.field), error.expected))?;
    Ok(faults.then_some(settings))
}

/// Refuses a past that leaves a block no erase.
pub(super) fn check_wear(from: &Layered, device: &Device, precondition: Fill) -> Result<(), ConfigError> {
    let (limit, cycles) = (device.erase_limit, cycles_before(device.faults.as_ref()));
    if cycles >= limit {
        return Err(from.refuse("device.media.cycles", format!("less than device.erase_limit, which is {limit}")));
    }
    let left = limit - cycles;
    if precondition.erases_max() < left {
        return Ok(());
    }
    let past = if cycles > 0 { " less device.media.cycles" } else { "" };
    let most = format!("none, seq, or rand:TIMES with up to {}", left - 1);
    let expected = format!("{most}: blocks stand device.erase_limit{past} erases, {left}, and one must be left");
    Err(from.refuse("run.precondition", expected))
}

fn get<T: Field>(from: &Layered, key: &str) -> Result<T, ConfigError> {
    from.get(&format!("{TABLE}.{key}"))
}

#[cfg(test)]
mod tests {
    use crate::config::Layers;

    fn refusal(past: &str, sets: &[&str]) -> Option<String> {
        let layers = Layers::new().flag("--device", "small").and_then(|layers| layers.flag("--precondition", past));
        let layers = sets.iter().try_fold(layers.expect("flags"), |layers, set| layers.set(set)).expect("keys");
        layers.resolve().err().map(|error| error.to_string())
    }

    #[test]
    fn a_past_leaves_every_block_an_erase() {
        let (ten, worn) = ("device.erase_limit=10", ["device.media.faults=true", "device.media.cycles=6"]);
        assert_eq!([refusal("rand:9", &[ten]), refusal("rand:3", &[ten, worn[0], worn[1]])], [None, None]);
        assert_eq!(
            refusal("rand:20", &[ten, worn[1]]).as_deref(),
            Some(
                "--precondition: run.precondition is \"rand:20\"; expected none, seq, or rand:TIMES with up to 9: blocks stand \
             device.erase_limit erases, 10, and one must be left"
            )
        );
        assert_eq!(
            refusal("rand:3.1", &[ten, worn[0], worn[1]]).as_deref(),
            Some(
                "--precondition: run.precondition is \"rand:3.1\"; expected none, seq, or rand:TIMES with up to 3: blocks stand \
             device.erase_limit less device.media.cycles erases, 4, and one must be left"
            )
        );
        assert_eq!(
            refusal("seq", &["device.erase_limit=6", worn[0], worn[1]]).as_deref(),
            Some("--set: device.media.cycles is 6; expected less than device.erase_limit, which is 6")
        );
    }
}
