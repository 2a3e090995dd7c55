//! How far a page of a command is.

/// How far a page is. It travels in the tag of what was asked for, so nothing is kept for it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The page is read, to go to the host.
    Read,
    /// The page is read, because the host writes only a part of it.
    Fill,
    /// The host's sectors move into the frame.
    Gather,
    /// The frame is stored.
    Store,
    /// The page is unmapped.
    Discard,
    /// The pages of a tombstone are.
    Bury,
    /// The page is read, to be compared.
    CompareRead,
    /// The host's sectors move into a second frame, to be compared.
    CompareGather,
    /// The page is read and goes nowhere.
    Verify,
    /// The page is read, and sectors of it are kept for the next step of a Copy.
    Collect,
    /// What a Write writes behind its Compare moves into the frame.
    GatherPaired,
    /// The frame moves to the host.
    Scatter,
    /// A CACHE thread is flushing.
    Flush,
}

const PHASES: [Phase; 13] = [
    Phase::Read,
    Phase::Fill,
    Phase::Gather,
    Phase::Store,
    Phase::Discard,
    Phase::Bury,
    Phase::CompareRead,
    Phase::CompareGather,
    Phase::Verify,
    Phase::Collect,
    Phase::GatherPaired,
    Phase::Scatter,
    Phase::Flush,
];

/// Slot, phase and page in one word: 13, 4 and 15 bits.
pub(super) fn tag(slot: u16, phase: Phase, page: u32) -> u32 {
    assert!(slot < 1 << 13 && page < 1 << 15);
    u32::from(slot) << 19 | (phase as u32) << 15 | page
}

pub(super) fn untag(tag: u32) -> (u16, Phase, u32) {
    ((tag >> 19) as u16, PHASES[(tag >> 15 & 15) as usize], tag & 0x7fff)
}
