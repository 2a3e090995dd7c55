//! Whose time is: of a turn about a command, and from there until the next.

use crate::latency::{COMPLETION, DMA, FCMD, FETCH, FLASH, NVMQ, QUEUEING, place_of};
use firmware::LatencyPart;
use firmware::architecture::ThreadGroup;
use units::StageId;

/// Where time goes while a stage has a command and while it is between the stage's turn and the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) turn: u8,
    pub(crate) after: After,
}

/// Where time goes of a command between two turns about it, as the first of them left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct After {
    pub(crate) part: u8,
    /// The thread of which one part of several had the command last, if one says so.
    by: Option<StageId>,
}

impl Share {
    /// Of a stage, by its group.
    pub(crate) fn of(groups: &[ThreadGroup], group: &str) -> Self {
        let both = |part: usize| Share { turn: part as u8, after: After::of(part) };
        let of_threads = groups.iter().find(|of_threads| of_threads.name == group);
        match (group, of_threads.map_or(LatencyPart::Other, |group| group.part)) {
            ("channel", _) => both(FLASH),
            ("link", _) => both(DMA),
            (_, LatencyPart::Fcmd) => Share { turn: FCMD as u8, after: After::of(FLASH) },
            (_, work) => both(place_of(work).unwrap_or(QUEUEING)),
        }
    }

    /// Where time goes of a command that this stage has taken: where fetching is all that the stage does, it goes on with that.
    pub(crate) fn taken(self) -> After {
        After::of(if usize::from(self.turn) == FETCH { FETCH } else { NVMQ })
    }
}

impl After {
    pub(crate) const fn of(part: usize) -> Self {
        After { part: part as u8, by: None }
    }

    /// What a thread says whose part has the command; with none of them it stands in line. What FCMD has waits for the die.
    pub(crate) fn said(part: LatencyPart, by: StageId) -> Self {
        let place = if part == LatencyPart::Fcmd { FLASH } else { place_of(part).unwrap_or(QUEUEING) };
        After { by: Some(by), ..After::of(place) }
    }

    /// Whether the firmware has the command: until it is taken it is being fetched, and once it is completed it is on its way to the host,
    /// whoever sends what.
    #[inline]
    pub(crate) fn is_firmware(self) -> bool {
        !matches!(usize::from(self.part), FETCH | COMPLETION)
    }

    /// Whose the time is until a turn for a message that this stage sent: the sender's, and where several parts run in it, of that which
    /// had the command last.
    #[inline]
    pub(crate) fn until(self, shares: &[Share], from: Option<StageId>) -> u8 {
        match from {
            Some(from) if self.is_firmware() && self.by != Some(from) => shares[from.index()].after.part,
            _ => self.part,
        }
    }
}
