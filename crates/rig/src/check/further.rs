//! What every second case has beside what is drawn of it otherwise: an array of another shape, other cells and times of its flash, more
//! namespaces, checkpoints close behind each other, hosts that deallocate and flush more, groups dealt by channel, other ratios of
//! hybrid mapping. The draws are apart from the others, so that the other cases are what they were.

use super::case::Case;
use super::draw::Draw;
use super::small::Small;
use crate::Device;
use firmware::{BlockDeal, LbaFormat, MappingScheme};
use flash::{CellKind, Geometry, Shape};
use units::{Bytes, Span};
use workload::Others;

/// Tells these draws from the others. The cases that once failed stay what they were.
const FURTHER: u64 = 0x5eed_000a_0000_0000;

/// Channels, dies of each, planes of these, blocks of a plane, and pages of a block: as many pages of them all as other cases have.
const ARRAYS: &[[u32; 5]] = &[
    [1, 2, 2, 64, 16],
    [2, 1, 4, 32, 16],
    [2, 2, 4, 16, 16],
    [4, 2, 1, 32, 16],
    [4, 2, 2, 8, 32],
    [4, 2, 2, 32, 8],
    [4, 2, 4, 16, 8],
    [8, 1, 2, 16, 16],
];

/// The same of cells with three bits, most with three planes: blocks have pages in threes.
const THREE_BITS: &[[u32; 5]] =
    &[[1, 2, 3, 48, 18], [2, 1, 3, 44, 18], [2, 2, 3, 20, 21], [4, 1, 3, 22, 18], [3, 2, 4, 16, 15]];

/// Log groups and logical blocks of a set of hybrid mapping.
const RATIOS: &[[u16; 2]] = &[[1, 1], [1, 4], [3, 1], [4, 4], [1, 16]];

/// Sectors that a namespace has at least: the workload has a part of them to itself.
const SECTORS_MIN: u64 = 1_640;

/// Whether a case has any of it. With a planted bug none does.
pub(super) fn goes_further(case: &Case) -> bool {
    case.mutation.is_none() && !case.plain && Draw::new(case.seed ^ FURTHER).coin()
}

/// Some have the shortest pages that there are, of which a page of the journal tells few: the map has many segments.
pub(super) fn shorten_pages(case: &Case, small: &mut Small) {
    if goes_further(case) && Draw::new(case.seed.rotate_left(48) ^ FURTHER).within(0..=4) == 0 {
        (small.page, small.blocks) = (Bytes(units::SECTOR_BYTES), [32, 16]);
    }
}

/// Changes the device of such a case, as far as it can be built then.
pub(super) fn vary(case: &Case, device: &mut Device) {
    if !goes_further(case) {
        return;
    }
    choose(&mut Draw::new(!case.seed ^ FURTHER), device, &[reshape, retime, divide, hurry, tidy]);
    choose(&mut Draw::new(case.seed.rotate_left(16) ^ FURTHER), device, &[recell, deal_by_channel, change_ratio]);
}

/// Makes every second of some changes, of those that leave a device that can be built.
fn choose(draw: &mut Draw, device: &mut Device, changes: &[fn(&mut Draw, &mut Device)]) {
    for change in changes {
        let mut changed = device.clone();
        let is_wanted = draw.coin();
        change(draw, &mut changed);
        if is_wanted && changed.draw().is_ok() {
            *device = changed;
        }
    }
}

/// The array has other dies, planes and blocks.
fn reshape(draw: &mut Draw, device: &mut Device) {
    let [channels, dies_per_package, planes_per_die, blocks_per_plane, pages_per_block] = draw.of(ARRAYS);
    let shape = *device.drive.geometry.shape();
    let shape = Shape { channels, dies_per_package, planes_per_die, blocks_per_plane, pages_per_block, ..shape };
    device.drive.geometry = Geometry::new(shape).expect("a small array");
}

/// Programs, erases and reads take other times, each for itself: what used to come first may come last.
fn retime(draw: &mut Draw, device: &mut Device) {
    let micros = Span::from_micros;
    let [slow, fast] = draw.of(&[[900, 900], [100, 100], [5_000, 5_000], [300, 2_500]]);
    device.timing.program = [micros(fast), micros(slow), micros(slow)];
    device.timing.erase = micros(draw.of(&[200, 2_300, 15_000]));
    device.timing.read = [micros(draw.of(&[5, 53, 400])); 3];
}

/// Cells hold one bit, or three in arrays where pages are; pages of a word line take different times.
fn recell(draw: &mut Draw, device: &mut Device) {
    let micros = Span::from_micros;
    let mut shape = *device.drive.geometry.shape();
    let has_three_bits = draw.coin();
    let [channels, dies_per_package, planes_per_die, blocks_per_plane, pages_per_block] = draw.of(THREE_BITS);
    shape.kind = CellKind::Slc;
    if has_three_bits {
        shape = Shape { channels, dies_per_package, planes_per_die, blocks_per_plane, pages_per_block, ..shape };
        shape.kind = CellKind::Tlc;
    }
    device.drive.geometry = Geometry::new(shape).expect("a small array");
    device.timing.read = draw.of(&[[40, 60, 80], [80, 60, 40], [5, 5, 300]]).map(micros);
    device.timing.program = draw.of(&[[500, 2_000, 5_000], [2_500, 300, 300]]).map(micros);
}

/// Each TRANS thread has the groups of some channels, instead of some of each die's.
fn deal_by_channel(_: &mut Draw, device: &mut Device) {
    device.settings.deal = BlockDeal::Channel;
}

/// A set of hybrid mapping has other numbers of log groups and of logical blocks.
fn change_ratio(draw: &mut Draw, device: &mut Device) {
    let [log_blocks, data_blocks] = draw.of(RATIOS);
    if device.settings.mapping != MappingScheme::Page {
        device.settings.mapping = MappingScheme::Hybrid { log_blocks, data_blocks };
    }
}

/// There are more namespaces, and few end where a page does.
fn divide(draw: &mut Draw, device: &mut Device) {
    let all: u64 = device.drive.namespaces.iter().sum();
    let count = draw.of(&[3u64, 5, 8]).min(all / SECTORS_MIN).max(1);
    let whole = Bytes::kib(16).0 / units::SECTOR_BYTES;
    let less = |draw: &mut Draw| match device.drive.format {
        LbaFormat::B512 => u64::from(draw.within(0..=15)),
        LbaFormat::B4096 => 8 * u64::from(draw.within(0..=3)),
    };
    let each = all / count / whole * whole;
    device.drive.namespaces = (0..count).map(|_| each - less(draw)).collect();
}

/// Checkpoints follow each other closely, on a busy drive too.
fn hurry(draw: &mut Draw, device: &mut Device) {
    let journal = &mut device.settings.journal;
    journal.interval = Span::from_micros(draw.of(&[50, 300, 1_000]));
    if draw.coin() {
        (journal.only_when_idle, journal.busy_share) = (false, 1.0);
    }
}

/// More is done while hosts rest, and sooner.
fn tidy(draw: &mut Draw, device: &mut Device) {
    let reclaim = &mut device.settings.reclaim;
    (reclaim.background, reclaim.idle) = (true, Span::from_micros(draw.of(&[20, 200])));
    reclaim.background_free = draw.of(&[0.2, 0.5, 0.9]);
    (reclaim.window, reclaim.victims) = draw.of(&[(64, 4), (1, 4), (16, 1)]);
    if draw.coin() {
        // Where cold groups are moved room is kept for that.
        (reclaim.paced, reclaim.wear_gap) = (true, 0);
    }
}

/// What hosts send beside reads and writes, as shares of all requests.
pub(super) fn others(case: &Case, flush: f64) -> Others {
    let usual = Others { deallocate: 0.03, flush, write_zeroes: 0.03, compare: 0.05 };
    if !goes_further(case) {
        return usual;
    }
    let mut draw = Draw::new(case.seed.rotate_left(32) ^ FURTHER);
    Others {
        deallocate: draw.of(&[0.03, 0.2]),
        flush: draw.of(&[0.0, flush, flush, 0.2]),
        write_zeroes: draw.of(&[0.03, 0.1]),
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::small::Small;

    /// A change that no device can have would never be made.
    #[test]
    fn each_change_is_made_often() {
        let [mut bits, mut planes, mut dealt] = [0; 3];
        for seed in 0..400 {
            let case = Case::of_seed(seed);
            let small = Small { architecture: case.architecture, blocks: [16, 16], seed, ..Small::default() };
            let mut device = small.device();
            vary(&case, &mut device);
            let shape = device.drive.geometry.shape();
            bits += u32::from(shape.kind != CellKind::Mlc);
            planes += u32::from(shape.planes_per_die == 3);
            dealt += u32::from(device.settings.deal == BlockDeal::Channel);
        }
        assert!(bits > 60 && planes > 20 && dealt > 60, "{bits} {planes} {dealt} of 400");
    }
}
