//! What a TRANS thread works with while its drive is overwritten: preconditioning leaves it that.

use super::reckoning::{Reckoned, kept_for, low_water, victims_at_a_time};
use crate::{Drive, Settings, Tables};

/// Groups of a TRANS thread, or of whoever has all of them, when it begins to have another one reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Working {
    /// Those that are filled.
    pub filled: u32,
    /// Those that are free.
    pub free: u32,
}

/// How many groups a TRANS thread fills, and how many it has beyond what it needs.
fn filled_and_spare(drive: &Drive, settings: &Settings, tables: &Tables, index: u16) -> (u32, u32) {
    let reckoned = Reckoned::of(index, drive.pages(), settings, tables);
    (reckoned.filled, reckoned.spares(&tables.groups, index))
}

/// Those of a TRANS thread: as many are free as it asks for a victim with. Of the groups beyond what it needs at least half hold garbage
/// all the same.
pub(crate) fn working(drive: &Drive, settings: &Settings, tables: &Tables, index: u16) -> Working {
    let reclaim = &settings.reclaim;
    let (filled, spares) = filled_and_spare(drive, settings, tables, index);
    let victims = if reclaim.paced { 1 } else { victims_at_a_time(reclaim.victims, spares, filled) };
    let free = low_water(filled, kept_for(victims), victims);
    Working { filled, free: tables.backup.room() + free.min(spares / 2) }
}

/// Those of PipeSSD's FTL, which stands still where it has no room, whatever `reclaim.paced` says. While hosts write as fast as they can
/// all its victims are under way, and have taken room that they have not given back: it has a group for every other one beside what is
/// kept.
pub(crate) fn working_of_ftl(drive: &Drive, settings: &Settings, tables: &Tables) -> Working {
    let (filled, spares) = filled_and_spare(drive, settings, tables, 0);
    let victims = victims_at_a_time(settings.reclaim.victims, spares, filled);
    let asks_with = low_water(filled, kept_for(victims), victims);
    let free = asks_with.min(kept_for(victims) + victims.div_ceil(2));
    Working { filled, free: free.min(spares / 2) }
}
