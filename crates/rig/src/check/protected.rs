//! Drives with capacitors: a buffer as large as there is room for, and as little energy as they are built with.

use super::case::Case;
use super::draw::Draw;
use super::further::goes_further;
use super::small::budget;
use crate::power::{PowerBudget, PowerError};
use crate::{BuildError, Device, Fill};
use firmware::Mutation;
use flash::{Geometry, ReadRetry, Shape};
use units::Span;

/// Tells these draws from the others, so that seeds mean what they did before.
const APART: u64 = 0x5eed_0001_0000_0000;

/// The same for those whose blocks are erased slowly.
const SLOW: u64 = 0x5eed_000b_0000_0000;

/// Whether a case has capacitors if it can have them: every third. A planted bug of other parts is looked for where it was.
fn is_protected(draw: &mut Draw, case: &Case) -> bool {
    let other = case.mutation.is_some_and(|mutation| !mutation.concerns_protection());
    !other && draw.within(0..=2) == 0
}

/// Whether its blocks are erased slowly and one by one: those of every second case that goes further, of what is protected.
pub(super) fn erases_slowly(case: &Case, device: &Device) -> bool {
    let is_its_own = case.mutation == Some(Mutation::EraseAnyway);
    device.power.is_some() && (is_its_own || goes_further(case) && Draw::new(case.seed ^ SLOW).coin())
}

/// Protects the drive of such a case, as far as it can be built then. How much energy it has is not said yet.
pub(super) fn protect(case: &Case, device: &mut Device) {
    let mut draw = Draw::new(case.seed ^ APART);
    let may = device.architecture.drains() && device.settings.parts.cache > 0;
    if !may || !is_protected(&mut draw, case) {
        return;
    }
    let mut changed = device.clone();
    let settings = &mut changed.settings;
    let least = u64::from(settings.parts.cache);
    settings.cache.size = changed.drive.geometry.shape().page * draw.of(&[8, 24, 64]).max(least);
    settings.cache.spare_frames = draw.of(&[least as u32, 8]).max(least as u32);
    changed.drive.write_through = false;
    changed.power = Some(budget(f64::MAX));
    // Else too little flash is left for what must be kept free.
    if changed.draw().is_err() {
        return;
    }
    *device = changed;
    if erases_slowly(case, device) {
        slow_down(&mut Draw::new(!case.seed ^ SLOW), device);
    }
}

/// Erases take long and stand in line.
fn slow_down(draw: &mut Draw, device: &mut Device) {
    device.precondition.fill = Fill::Random { times: 3.0 };
    device.timing.erase = Span::from_millis(draw.of(&[20, 60, 200]));
    device.settings.flash.multi_plane = false;
    let mut changed = device.clone();
    changed.settings.reclaim.victims = draw.of(&[2, 8]);
    if draw.coin() {
        changed.drive.geometry = one_die(&device.drive.geometry);
    }
    if changed.draw().is_ok() {
        *device = changed;
    }
}

/// Protects a drive by the least energy that it is built with.
pub(crate) fn charge_least(device: &mut Device, budget: PowerBudget) {
    device.power = Some(PowerBudget { energy_j: f64::MIN_POSITIVE, ..budget });
    let Err(BuildError::Power(PowerError { needed: Some(energy_j), .. })) = device.draw() else {
        unreachable!("it can be built but for its energy")
    };
    device.power = Some(PowerBudget { energy_j, ..budget });
}

/// A small array of the same pages that is one die, of four planes.
pub(crate) fn one_die(geometry: &Geometry) -> Geometry {
    let shape = Shape { channels: 1, dies_per_package: 1, planes_per_die: 4, ..*geometry.shape() };
    let pages_per_block = 16u32.next_multiple_of(shape.kind.bits());
    Geometry::new(Shape { blocks_per_plane: 64, pages_per_block, ..shape }).expect("a small array")
}

/// Gives a protected drive the least energy that it is built with. Where erases take long, pages that cannot be read may too.
pub(super) fn charge(case: &Case, device: &mut Device) {
    if erases_slowly(case, device)
        && let Some(faults) = &mut device.faults
    {
        let mut draw = Draw::new(case.seed.rotate_left(32) ^ SLOW);
        faults.retry = ReadRetry { levels: draw.of(&[2, 8]), factor: 1.0 };
        faults.decode = Span::from_micros(draw.of(&[1, 300]));
    }
    if let Some(budget) = device.power {
        charge_least(device, budget);
    }
}
