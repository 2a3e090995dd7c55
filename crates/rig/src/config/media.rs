//! How the device's flash fails.

use super::ConfigError;
use super::layered::Layered;
use crate::config::field::Field;
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

fn get<T: Field>(from: &Layered, key: &str) -> Result<T, ConfigError> {
    from.get(&format!("{TABLE}.{key}"))
}
