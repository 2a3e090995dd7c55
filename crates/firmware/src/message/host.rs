//! What the host and the controller tell each other over the link: doorbells one way, interrupts the other.

use units::QueueId;

/// A write of a doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorbellWrite {
    /// The queue.
    pub queue: QueueId,
    /// Whether it is the head of the completion queue, and not the tail of the submission queue.
    pub completions: bool,
    /// The value.
    pub value: u32,
}

/// The host wrote a doorbell, or two one after the other: what it has taken from a completion queue, and what it has put into the
/// submission queue instead.
#[derive(Clone, Copy, Debug)]
pub struct DoorbellsWritten {
    /// The first.
    pub first: DoorbellWrite,
    /// The second.
    pub second: Option<DoorbellWrite>,
}

/// The device raised an interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt {
    /// Its vector.
    pub vector: u16,
}
