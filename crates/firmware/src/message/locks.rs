//! What NVMQ and ILOCK threads say to each other.

use super::CommandKey;

/// What a command does under a lock: which pages it touches, and whether it changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First page.
    pub from: u32,
    /// One past the last page.
    pub to: u32,
    /// Whether it changes them.
    pub changes: bool,
}

/// A range of lock units as one owner holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockedRange {
    /// First unit.
    pub first: u32,
    /// Last unit.
    pub last: u32,
}

impl LockedRange {
    /// Whether the two have a unit in common.
    pub fn meets(self, other: LockedRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }
    /// Whether the other lies inside.
    pub fn covers(self, other: LockedRange) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// A lock that is held, as its owner and ILOCK call it: what it covers may grow while it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockId {
    /// Its ILOCK thread.
    pub thread: u8,
    /// Its number there, in use again when it has been given back.
    pub number: u16,
}

/// An NVMQ thread asks for a range of lock units.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct LockRequest {
    /// For whom.
    pub key: CommandKey,
    /// What it asks for.
    pub range: LockedRange,
    /// What will be done there.
    pub extent: Extent,
    /// Place among the requests of its queue at this thread; [`NO_TICKET`] where order does not matter.
    pub ticket: u32,
    /// Who asks.
    pub nvmq: u8,
    /// Which ILOCK thread is asked.
    pub thread: u8,
    /// Which of the command's two segments.
    pub segment: u8,
    /// Whether it waits even where forwarding is on, because it cannot be forwarded.
    pub waits: bool,
    /// Its slot at that thread.
    pub slot: u16,
    /// How many commands that thread has under way.
    pub under_way: u16,
}

/// A ticket that was dealt will not be used, because its command is refused.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct LockSkip {
    /// Whose.
    pub key: CommandKey,
    /// The ticket.
    pub ticket: u32,
    /// The command's slot at the thread that refuses it.
    pub slot: u16,
    /// Which thread that is.
    pub nvmq: u8,
    /// Which ILOCK thread is told.
    pub thread: u8,
}

/// ILOCK knows of a ticket that will not be used.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct LockSkipped {
    /// Whose.
    pub key: CommandKey,
    /// The command's slot at the thread that refuses it.
    pub slot: u16,
}

/// No place in an order.
pub const NO_TICKET: u32 = u32::MAX;

/// The ticket after one.
pub fn next_ticket(ticket: u32) -> u32 {
    // The mark for "none" is passed over.
    if ticket + 1 == NO_TICKET { 0 } else { ticket + 1 }
}

/// What came of a lock request.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct LockReply {
    /// For whom.
    pub key: CommandKey,
    /// The requester's slot.
    pub slot: u16,
    /// The requester's segment.
    pub segment: u8,
    /// The thread that owns the range: the requester itself, or to whom the request is to be forwarded.
    pub owner: u8,
    /// What the owner holds, which covers what was asked for.
    pub lock: LockId,
    /// Whether the request stood in line for a release.
    pub waited: bool,
}

/// A command is on its way to the owner of its range. The owner hears of it from ILOCK, in the order in which ILOCK decided.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct LockJoin {
    /// Who is coming.
    pub key: CommandKey,
    /// What the owner holds.
    pub lock: LockId,
    /// What will be done there.
    pub extent: Extent,
}

/// An owner gives a lock back, with the number of requests it has served under it. It is about no command: the last of them is answered,
/// and the next may have its key.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct LockRelease {
    /// What it holds.
    pub lock: LockId,
    /// Grants and forwards served.
    pub served: u32,
    /// Who held it.
    pub nvmq: u8,
    /// How many commands that thread has under way.
    pub under_way: u16,
}
