//! What the operations of flash take at most, whichever their pages.

use crate::Device;
use std::ops::{Add, Mul};
use units::{SECTOR_BYTES, Span};

/// What an operation takes of its die and of the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Needs {
    /// The array works.
    pub(crate) array: Span,
    /// The bus is held.
    pub(crate) bus: Span,
    /// What was read is decoded.
    pub(crate) decoder: Span,
}

impl Needs {
    /// A page is programmed, maybe together with others.
    pub(crate) fn program(device: &Device) -> Self {
        let timing = &device.timing;
        let shape = device.drive.geometry.shape();
        let (array, page) = (timing.longest_program(shape.kind), shape.page + timing.oob_moved);
        let further = if device.settings.flash.multi_plane { timing.further_plane } else { Span::ZERO };
        let commands = timing.cycle * u64::from(timing.cycles.program + timing.cycles.status);
        Needs { array: array + further, bus: timing.bus.beats(page.0) + commands, decoder: Span::ZERO }
    }

    /// Pages are read and cannot be corrected, as many as share a transaction.
    pub(crate) fn read(device: &Device) -> Self {
        let (timing, planes) = (&device.timing, planes(device));
        let shape = device.drive.geometry.shape();
        let (array, page) = (timing.longest_read(shape.kind), shape.page + timing.oob_moved);
        let turn = if device.flash_timing().cache_commands { timing.cache_read_busy } else { Span::ZERO };
        let commands = u64::from(timing.cycles.read + timing.cycles.read_out) * planes + u64::from(timing.cycles.cache);
        Needs {
            array: array + timing.further_plane * (planes - 1) + turn,
            bus: timing.bus.beats((page * planes).0) + timing.cycle * commands,
            decoder: device
                .faults
                .map_or(Span::ZERO, |faults| faults.decode + faults.decode_bit * u64::from(faults.correctable)),
        }
    }

    /// Blocks are erased, as many as share a transaction.
    pub(crate) fn erase(device: &Device) -> Self {
        let (timing, planes) = (&device.timing, planes(device));
        let commands = u64::from(timing.cycles.erase) * planes + u64::from(timing.cycles.status);
        let array = timing.erase + timing.further_plane * (planes - 1);
        Needs { array, bus: timing.cycle * commands, decoder: Span::ZERO }
    }

    /// A program or an erase is suspended and goes on.
    pub(crate) fn suspension(device: &Device) -> Self {
        let (timing, suspend) = (&device.timing, &device.timing.suspend);
        let array = suspend.program_latency.max(suspend.erase_latency) + suspend.resume_overhead;
        let commands = u64::from(timing.cycles.suspend + timing.cycles.resume);
        Needs { array, bus: timing.cycle * commands, decoder: Span::ZERO }
    }

    /// Of each the more.
    pub(crate) fn max(self, other: Self) -> Self {
        Needs {
            array: self.array.max(other.array),
            bus: self.bus.max(other.bus),
            decoder: self.decoder.max(other.decoder),
        }
    }
}

impl Add for Needs {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Needs { array: self.array + other.array, bus: self.bus + other.bus, decoder: self.decoder + other.decoder }
    }
}

impl Mul<u64> for Needs {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Needs { array: self.array * times, bus: self.bus * times, decoder: self.decoder * times }
    }
}

/// How often a page that cannot be corrected is read.
pub(crate) fn tries(device: &Device) -> u64 {
    1 + device.faults.map_or(0, |faults| u64::from(faults.retry.levels))
}

/// What the steps that an answer waits for take together, each at its longest: a group is reclaimed, a page is read to the end of the retry
/// table, and what a command moves goes over the link.
pub(crate) fn longest_step(device: &Device) -> Span {
    let read = Needs::read(device) * tries(device);
    let read = read.array.saturating_add(read.bus).saturating_add(read.decoder);
    let transfer = device.link.occupies(u64::from(device.drive.transfer_sectors) * SECTOR_BYTES);
    device.timing.longest_reclaim(&device.drive.geometry).saturating_add(read).saturating_add(transfer)
}

/// Pages, or blocks, that share a transaction.
fn planes(device: &Device) -> u64 {
    if device.settings.flash.multi_plane { device.drive.geometry.shape().planes_per_die.into() } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    /// Not even the energy of a protected drive is reckoned for them.
    #[test]
    fn pages_of_types_that_the_cells_lack_take_nothing() {
        let of = |sets: &[&str]| {
            let layers = Layers::new().flag("--device", "small").expect("a device");
            let layers = sets.iter().try_fold(layers, |layers, set| layers.set(set)).expect("keys");
            let device = layers.resolve().expect("a configuration").plan();
            [Needs::program(&device), Needs::read(&device)]
        };
        let usual = of(&[]);
        assert_eq!(of(&["device.timing.program_csb_us=100000", "device.timing.read_csb_us=100000"]), usual);
        let slow = of(&["device.timing.program_msb_us=1000", "device.timing.read_msb_us=100"]);
        let longer = [0, 1].map(|at| (slow[at].array - usual[at].array).nanos());
        assert_eq!(longer, [100_000, 47_000]);
    }

    /// A host waits for all of it together.
    #[test]
    fn whatever_takes_long_makes_the_longest_step_longer() {
        let of = |sets: &[&str]| {
            let layers = sets.iter().try_fold(Layers::new(), |layers, set| layers.set(set)).expect("keys");
            longest_step(&layers.resolve().expect("a configuration").plan())
        };
        let usual = of(&["device.media.faults=true"]);
        let retries = ["device.media.faults=true", "device.media.decode_us=1000000", "device.media.retry_levels=64"];
        assert!(of(&retries) > usual + Span::from_secs(64), "{}", of(&retries));
        let link = ["device.media.faults=true", "device.link.raw_bytes_per_s=1000000", "device.link.payload_bytes=64"];
        assert!(of(&link) > usual + Span::from_millis(100), "{}", of(&link));
    }
}
