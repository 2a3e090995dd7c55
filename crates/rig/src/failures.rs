//! Which operations of flash may fail: those that the firmware sees to.

use firmware::architecture::Architecture;
use firmware::{MappingScheme, Settings};
use flash::{FaultSettings, FaultSettingsError};

/// Refuses operations that fail where the firmware does not see to them.
pub(crate) fn check(
    faults: &FaultSettings,
    architecture: &dyn Architecture,
    settings: &Settings,
) -> Result<(), FaultSettingsError> {
    let name = architecture.name();
    let refuse = |field, value: f64, reason| {
        Err(FaultSettingsError { field, value: value.to_string(), expected: format!("0: {reason}") })
    };
    match settings.mapping {
        _ if faults.erase_failures > 0.0 && !architecture.retires_blocks() => {
            refuse("erase_failures", faults.erase_failures, format!("{name} does not hear of erases that fail"))
        }
        _ if faults.program_failures > 0.0 && !architecture.replaces_blocks() => {
            refuse("program_failures", faults.program_failures, format!("{name} does not replace blocks that fail"))
        }
        MappingScheme::Hybrid { .. } if faults.program_failures > 0.0 => {
            let reason = "hybrid mapping does not replace blocks that fail".into();
            refuse("program_failures", faults.program_failures, reason)
        }
        _ => Ok(()),
    }
}
