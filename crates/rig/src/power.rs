//! What keeps a drive alive for a moment when the power fails: how much energy it holds, and whether that is enough.

#[cfg(test)]
mod tests;

use crate::Device;
use crate::needs::{Needs, tries};
use firmware::architecture::Architecture;
use firmware::{MappingScheme, Settings, Tables};
use sim::Processor;
use stage::Price;
use thiserror::Error;
use units::Span;

/// Capacitors, and what the drive takes from them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerBudget {
    /// Energy that can be taken, J.
    pub energy_j: f64,
    /// What the drive takes without its dies, W.
    pub hold_w: f64,
    /// What a die takes while it works, W.
    pub die_w: f64,
    /// What the firmware takes for a page beside flash, at most: see [`PowerBudget::page_on`].
    pub page: Span,
}

/// A drive whose buffer cannot be kept.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("device.power.{field} is {value}; expected {expected}")]
pub struct PowerError {
    /// The key below `device.power`.
    pub field: &'static str,
    /// What it was.
    pub value: String,
    /// What it may be.
    pub expected: String,
    /// The least energy that would do, J, where it is too little.
    pub needed: Option<f64>,
}

/// Turns that a page takes from the buffer to flash and back, at most, each with a message that it takes and one that it sends.
const TURNS: u64 = 16;

impl PowerBudget {
    /// What firmware on a processor takes for a page: every kind of work once, of which a page has fewer than half, and the turns and
    /// messages between, where all threads of its core issue all the time.
    pub fn page_on(processor: &Processor) -> Span {
        let slot = processor.thread_slot.max(processor.core_slot * u64::from(processor.threads_per_core));
        let of = |price: &Price| slot * price.slots + price.stall;
        let work: Span = processor.prices.iter().map(of).sum();
        let hops = &processor.hops;
        let way = hops.publish + hops.first.max(hops.hardware) + hops.further * u64::from(processor.cores);
        let turn = of(&processor.turn) + of(&processor.switch) + of(&processor.send) + way + processor.lines.memory;
        work + turn * TURNS
    }

    /// The energy for the worst that can be when the power fails, J: every page buffer of the drive holds a page that is to be
    /// programmed, all on one die and one after another, each behind a wait for fellows that do not come; and every die has just been
    /// given as many erases as it takes at a time, or reads of which each is tried to the end of the retry table. What stands in line
    /// behind those is dropped.
    pub fn needed(&self, tables: &Tables, device: &Device) -> f64 {
        let (flash, geometry) = (&device.settings.flash, &device.drive.geometry);
        let (pages, dies, given) = (tables.frames.count(), geometry.die_count(), u64::from(flash.depth()));
        let tries = tries(device);
        let (read, erases) = (Needs::read(device), Needs::erase(device) * given);
        let begun = if flash.suspend {
            // Each read may suspend what then goes on, and an erase may have been suspended before.
            let suspension = Needs::suspension(device);
            (read + suspension) * (given * tries) + erases + suspension
        } else {
            (read * (given * tries)).max(erases)
        };
        // One bus is all dies' of a channel.
        let bus = begun.bus * u64::from(geometry.dies_per_channel());
        let told = self.page * (2 * given * u64::from(dies));
        let program = Needs::program(device);
        let page = program.array + program.bus + flash.gather + self.page;
        let lasts = f64::from(pages) * page.secs_f64() + (begun.array + begun.decoder + bus + told).secs_f64();
        let works = f64::from(pages) * program.array.secs_f64() + f64::from(dies) * begun.array.secs_f64();
        self.hold_w * lasts + self.die_w * works
    }

    /// What was taken in so long, while dies worked for so long together, J.
    pub(crate) fn taken(&self, lasted: Span, dies_worked: Span) -> f64 {
        self.hold_w * lasted.secs_f64() + self.die_w * dies_worked.secs_f64()
    }

    /// Checks the values by themselves, and that the firmware can do it at all.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn check(
        &self,
        architecture: &dyn Architecture,
        settings: &Settings,
        programs_fail: bool,
    ) -> Result<(), PowerError> {
        for (field, value) in [("energy_j", self.energy_j), ("hold_w", self.hold_w), ("die_w", self.die_w)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(PowerError {
                    field,
                    value: value.to_string(),
                    expected: "a number above 0".into(),
                    needed: None,
                });
            }
        }
        let refuse = |reason: String| {
            let expected = format!("false: {reason}");
            Err(PowerError { field: "protected", value: "true".into(), expected, needed: None })
        };
        if !architecture.drains() {
            return refuse(format!("{} does not bring its cache to flash when the power fails", architecture.name()));
        }
        if settings.parts.cache == 0 {
            return refuse("without a buffer there is nothing to protect".into());
        }
        if settings.mapping != MappingScheme::Page {
            return refuse("hybrid mapping keeps no room for it".into());
        }
        if programs_fail {
            return refuse("a program that fails is not reckoned with (device.media.program_failures)".into());
        }
        Ok(())
    }

    /// Checks that the energy is enough for the worst.
    ///
    /// # Errors
    /// With less than that, how much it takes.
    pub fn check_energy(&self, needed: f64) -> Result<(), PowerError> {
        if self.energy_j >= needed {
            return Ok(());
        }
        let expected = format!(
            "{} at least, to program every page buffer, one after another (cache.size_bytes), behind what dies have begun",
            (needed * 1e3).ceil() / 1e3
        );
        Err(PowerError { field: "energy_j", value: self.energy_j.to_string(), expected, needed: Some(needed) })
    }
}

/// What was done between the power failure and the end of the energy, or of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drained {
    /// How long it took.
    pub took: Span,
    /// Energy taken, J.
    pub joules: f64,
    /// Pages programmed.
    pub pages: u64,
    /// Whether the buffer was on flash before the energy was used up.
    pub is_whole: bool,
}
