//! What the operations of flash take at most, whichever their pages.

use crate::Device;
use std::ops::{Add, Mul};
use units::Span;

/// What an operation takes of its die and of the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Needs {
    /// The array works.
    pub(super) array: Span,
    /// The bus is held.
    pub(super) bus: Span,
    /// What was read is decoded.
    pub(super) decoder: Span,
}

impl Needs {
    /// A page is programmed, maybe together with others.
    pub(super) fn program(device: &Device) -> Self {
        let timing = &device.timing;
        let (array, page) = (longest(timing.program), device.drive.geometry.shape().page + timing.oob_moved);
        let further = if device.settings.flash.multi_plane { timing.further_plane } else { Span::ZERO };
        let commands = timing.cycle * u64::from(timing.cycles.program + timing.cycles.status);
        Needs { array: array + further, bus: timing.bus.beats(page.0) + commands, decoder: Span::ZERO }
    }

    /// Pages are read and cannot be corrected, as many as share a transaction.
    pub(super) fn read(device: &Device) -> Self {
        let (timing, planes) = (&device.timing, planes(device));
        let (array, page) = (longest(timing.read), device.drive.geometry.shape().page + timing.oob_moved);
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
    pub(super) fn erase(device: &Device) -> Self {
        let (timing, planes) = (&device.timing, planes(device));
        let commands = u64::from(timing.cycles.erase) * planes + u64::from(timing.cycles.status);
        let array = timing.erase + timing.further_plane * (planes - 1);
        Needs { array, bus: timing.cycle * commands, decoder: Span::ZERO }
    }

    /// A program or an erase is suspended and goes on.
    pub(super) fn suspension(device: &Device) -> Self {
        let (timing, suspend) = (&device.timing, &device.timing.suspend);
        let array = suspend.program_latency.max(suspend.erase_latency) + suspend.resume_overhead;
        let commands = u64::from(timing.cycles.suspend + timing.cycles.resume);
        Needs { array, bus: timing.cycle * commands, decoder: Span::ZERO }
    }

    /// Of each the more.
    pub(super) fn max(self, other: Self) -> Self {
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

/// Pages, or blocks, that share a transaction.
fn planes(device: &Device) -> u64 {
    if device.settings.flash.multi_plane { device.drive.geometry.shape().planes_per_die.into() } else { 1 }
}

fn longest(times: [Span; 3]) -> Span {
    times.into_iter().max().unwrap_or(Span::ZERO)
}
