//! What every second case has beside what is drawn of it otherwise: an array of another shape, other times of its flash, more
//! namespaces, checkpoints close behind each other, hosts that deallocate and flush more. The draws are apart from the others, so that
//! the other cases are what they were.

use super::case::Case;
use super::draw::Draw;
use super::small::Small;
use crate::Device;
use firmware::LbaFormat;
use flash::{Geometry, Shape};
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
    let mut draw = Draw::new(!case.seed ^ FURTHER);
    for change in [reshape, retime, divide, hurry, tidy] {
        let mut changed = device.clone();
        let is_wanted = draw.coin();
        change(&mut draw, &mut changed);
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
