//! Recovery: what runs when a drive is switched on, before the stages of its architecture are there. From what is on flash it finds
//! where every logical page is, which groups of blocks hold what, and which must be erased.
//!
//! Every page carries its logical page and a number that grows with every write (see [`flash::Oob`]): of two copies the higher
//! number is the later one. A page that was being programmed when the power failed cannot be read, and counts for nothing.
//! Where LOG has left a whole checkpoint, only groups with pages that are newer are read page by page. With hybrid mapping there is none,
//! and every page is read.
//!
//! Recovery changes nothing on flash but erasing groups in which no page is the newest of its logical page. So it can be cut
//! short anywhere and begin anew.

mod checkpoint;
mod count;
mod found;
mod hybrid;
mod reader;
mod stage;
mod tombstones;

pub use found::{Found, FoundGroup};
pub use stage::Boot;

use crate::stages::dies::DieLines;
use crate::tables::Frames;
use crate::{Blueprint, ChannelDone, Drive, FlashChannel, Settings, Tables};
use ::stage::{Address, Place, Slot};
use std::sync::Arc;
use units::CoreId;

/// A step of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
}

/// What recovery does, in order.
pub const STEPS: &[Step] = &[
    Step {
        name: "journal",
        summary: "read the journal, all dies at once, put the newest page of each map segment into the map, and choose the newest \
            checkpoint that is whole",
    },
    Step {
        name: "map",
        summary: "read those segments again of which a later checkpoint that was cut short has a page",
    },
    Step {
        name: "probe",
        summary: "read the last row of each group: one that ends with a page that the checkpoint knows has no other",
    },
    Step {
        name: "scan",
        summary: "read the pages of all other groups, up to the first row that is erased, and keep the newest copy of each \
            logical page",
    },
    Step { name: "count", summary: "count the newest copies in each group" },
    Step { name: "erase", summary: "erase groups that hold none and are not clean: erases cut short, and garbage" },
];

/// The plan of recovery.
pub struct BootDrawing {
    /// Recovery and the flash channels.
    pub blueprint: Blueprint,
    /// Where [`Boot`] is.
    pub boot: Slot<Boot>,
    /// Flash channels, in order.
    pub channels: Vec<Slot<dyn FlashChannel>>,
    /// From each channel to recovery.
    pub finished: Vec<Address<ChannelDone>>,
    /// The page buffers that it reads into.
    pub frames: Frames,
}

/// Draws recovery, on one core. It writes the map, valid pages, and what groups are, into fresh tables of the device.
pub fn draw(drive: &Arc<Drive>, settings: &Settings, tables: &Tables) -> BootDrawing {
    let mut plan = Blueprint::default();
    let shape = drive.geometry().shape();
    let count = tables.groups.dies() * tables.groups.planes();
    let words = drive.page_words().max(drive.journal_words());
    let frames = Frames::new(&mut plan.memory, (0, 0), (count, words));
    let boot = plan.reserve("boot", "boot0".into(), Place::Core(CoreId(0)));
    let reserve = |channel| plan.reserve("channel", format!("channel{channel}"), Place::Hardware);
    let channels: Vec<Slot<dyn FlashChannel>> = (0..shape.channels).map(reserve).collect();
    // A die is given two reads and two writes at most.
    let each = 4 * drive.geometry().dies_per_channel();
    let to = channels.iter().map(|&channel| plan.connect(boot, channel, each)).collect();
    let finished = channels.iter().map(|&channel| plan.connect(channel, boot, each)).collect();
    let dies = DieLines::new(1, drive.clone(), settings.flash, to);
    plan.install(boot, Boot::new(drive.pages(), settings, tables.clone(), dies, frames.clone()));
    BootDrawing { blueprint: plan, boot, channels, finished, frames }
}
