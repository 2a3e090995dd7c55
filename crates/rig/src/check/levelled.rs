//! Cases whose hosts write a part of a full drive again and again, for long enough that what they leave alone is moved because of its wear
//! (static wear levelling), and whose power is cut meanwhile.

use super::case::Case;
use super::draw::Draw;
use crate::Device;
use host::{Pace, Phase};
use units::{Lba, Span};
use workload::{Arrivals, Others, Parameters, Pattern, Recipe, Region};

/// Tells these draws from the others.
const LEVELS: u64 = 0x5eed_000e_0000_0000;

/// Blocks of a plane and pages of a block: groups that are soon filled.
pub(super) const BLOCKS: [u32; 2] = [16, 8];

/// Times as many requests as in other cases: groups must be erased a few times each.
const LONGER: u64 = 6;

/// Whether a case is one of these: of those that write over and over every third. With a planted bug the cases are what they were.
pub(super) fn levels(case: &Case) -> bool {
    case.mutation.is_none() && case.hammers() && Draw::new(case.seed ^ LEVELS).within(0..=2) == 0
}

/// The device of such a case moves what wears little as soon as it can.
pub(super) fn hurry(case: &Case, device: &mut Device) {
    if !levels(case) {
        return;
    }
    let mut draw = Draw::new(!case.seed ^ LEVELS);
    let reclaim = &mut device.settings.reclaim;
    (reclaim.wear_gap, reclaim.wear_share) = (1, draw.of(&[0.3, 1.0]));
    (reclaim.background, reclaim.idle) = (true, Span::from_micros(200));
}

/// When its power is cut, after the one before.
pub(super) fn moment(case: &Case, leg: u32) -> Option<Span> {
    let mut draw = Draw::new(case.seed ^ LEVELS ^ u64::from(leg) << 32);
    levels(case).then(|| Span::from_millis(draw.within(100..=900).into()))
}

/// Its hosts write an eighth to a half of the first namespace, and read some of it; many rest now and then, as PipeSSD needs to move
/// anything unasked.
pub(super) fn narrow(case: &Case, seed: u64, device: &Device, phase: Phase) -> Phase {
    if !levels(case) {
        return phase;
    }
    let mut draw = Draw::new(!seed ^ LEVELS);
    let all = device.drive.namespaces[0] / 8 * 8;
    let sectors = (all / draw.of(&[2, 4, 8]) / 8 * 8).max(8);
    let mut recipe = Recipe::fixed("levelled", Pattern::Random, 0.05, 4096);
    recipe.others = Others { deallocate: 0.01, flush: 0.01, write_zeroes: 0.01, compare: 0.0 };
    recipe.alignment_bytes = Some(4096);
    let rests = draw.coin() || case.architecture.name() == "pipessd";
    let pace = if rests { Pace::Timed } else { Pace::Closed };
    if rests {
        recipe.arrivals = Arrivals::Bursty { per_second: 15_000.0, lead_ms: 0.0, on_ms: 20.0, off_ms: 10.0 };
    }
    let region = Some(Region { start: Lba(0), sectors });
    let parameters = Parameters { region, ..Parameters::new(device.drive.namespaces[0], seed) };
    let source = recipe.source(&parameters).expect("a drawable workload");
    Phase { ios: Some(case.ios * LONGER), source: Box::new(source), pace, ..phase }
}
