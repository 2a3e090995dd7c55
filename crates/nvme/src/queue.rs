//! The device's side of the queues: where to fetch commands and where to put completions (Base §3.3.1.2).
//!
//! A queue is 16 bytes and allocates nothing, so a device can hold all 65,536 of each kind.

use crate::spec::{COMPLETION_BYTES, SUBMISSION_BYTES};
use thiserror::Error;
use units::HostAddress;

/// A value written to a doorbell that no correct host writes; reported as an asynchronous event (Base §5.2.1, error
/// status 01h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("doorbell value {value} for a queue of {entries} entries at {was} with {room} to move")]
pub struct InvalidDoorbell {
    /// What was written.
    pub value: u32,
    /// What the doorbell held before.
    pub was: u16,
    /// How far it could have moved.
    pub room: u32,
    /// Entries of the queue.
    pub entries: u32,
}

/// Positions of a ring of 2 to 65,536 entries, of which one always stays empty: full and empty would look alike.
#[derive(Clone, Copy, Debug)]
struct Ring {
    base: HostAddress,
    last: u16,
    head: u16,
    tail: u16,
}

impl Ring {
    fn new(base: HostAddress, entries: u32) -> Self {
        assert!((2..=0x1_0000).contains(&entries), "a queue of {entries} entries");
        Ring { base, last: (entries - 1) as u16, head: 0, tail: 0 }
    }

    #[inline]
    fn entries(&self) -> u32 {
        self.last as u32 + 1
    }

    #[inline]
    fn distance(&self, from: u16, to: u16) -> u32 {
        if to >= from { (to - from) as u32 } else { self.entries() - (from - to) as u32 }
    }

    #[inline]
    fn used(&self) -> u32 {
        self.distance(self.head, self.tail)
    }

    /// `position` moved on by no more than the rest of the ring.
    #[inline]
    fn after(&self, position: u16, entries: u32) -> u16 {
        let next = position as u32 + entries;
        (if next > self.last as u32 { next - self.entries() } else { next }) as u16
    }

    /// Entries from `position` to the end of the memory.
    #[inline]
    fn until_wrap(&self, position: u16) -> u32 {
        self.entries() - position as u32
    }

    /// Checks a doorbell that is at `was` and can move by `room`.
    #[inline]
    fn checked(&self, value: u32, was: u16, room: u32) -> Result<u16, InvalidDoorbell> {
        let moved = if value <= self.last as u32 { self.distance(was, value as u16) } else { 0 };
        if moved == 0 || moved > room {
            return Err(InvalidDoorbell { value, was, room, entries: self.entries() });
        }
        Ok(value as u16)
    }
}

/// Adjoining entries of a submission queue, fetched by one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmissionRun {
    /// Where the first lies.
    pub at: HostAddress,
    /// Its position in the queue.
    pub slot: u16,
    /// How many; never 0.
    pub entries: u32,
}

/// A submission queue as the device sees it.
#[derive(Clone, Copy, Debug)]
pub struct SubmissionQueue(Ring);

impl SubmissionQueue {
    /// An empty queue of 2 to 65,536 entries.
    pub fn new(base: HostAddress, entries: u32) -> Self {
        SubmissionQueue(Ring::new(base, entries))
    }

    /// The host moved the tail to `value`.
    ///
    /// # Errors
    /// Where the value is outside the queue, moves nothing, or goes past entries not yet fetched; the tail stays where
    /// it was.
    #[inline]
    pub fn ring(&mut self, value: u32) -> Result<(), InvalidDoorbell> {
        let room = self.0.last as u32 - self.0.used();
        self.0.tail = self.0.checked(value, self.0.tail, room)?;
        Ok(())
    }

    /// Commands waiting to be fetched.
    #[inline]
    pub fn pending(&self) -> u32 {
        self.0.used()
    }

    /// Takes up to `limit` commands that lie side by side. Two calls empty the queue, wherever it wraps.
    #[inline]
    pub fn take(&mut self, limit: u32) -> Option<SubmissionRun> {
        let slot = self.0.head;
        let entries = limit.min(self.0.used()).min(self.0.until_wrap(slot));
        self.0.head = self.0.after(slot, entries);
        (entries > 0).then(|| SubmissionRun { at: self.0.base + slot as u64 * SUBMISSION_BYTES, slot, entries })
    }

    /// The head to tell the host in completions: commands before it were fetched.
    #[inline]
    pub fn head(&self) -> u16 {
        self.0.head
    }

    /// The same where so many of the last ones taken are still to be fetched.
    #[inline]
    pub fn head_before(&self, unfetched: u32) -> u16 {
        let head = u32::from(self.0.head);
        (if head < unfetched { head + self.0.entries() - unfetched } else { head - unfetched }) as u16
    }

    /// Entries of the queue.
    pub fn entries(&self) -> u32 {
        self.0.entries()
    }
}

/// Adjoining free entries of a completion queue, written by one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionRun {
    /// Where the first goes.
    pub at: HostAddress,
    /// How many; never 0.
    pub entries: u32,
    /// The phase tag they all carry.
    pub phase: bool,
}

/// A completion queue as the device sees it.
#[derive(Clone, Copy, Debug)]
pub struct CompletionQueue {
    ring: Ring,
    phase: bool,
}

impl CompletionQueue {
    /// An empty queue of 2 to 65,536 entries; its first pass carries phase 1.
    pub fn new(base: HostAddress, entries: u32) -> Self {
        CompletionQueue { ring: Ring::new(base, entries), phase: true }
    }

    /// The host moved the head to `value`.
    ///
    /// # Errors
    /// Where the value is outside the queue, moves nothing, or goes past what was posted; the head stays where it was.
    #[inline]
    pub fn ring(&mut self, value: u32) -> Result<(), InvalidDoorbell> {
        self.ring.head = self.ring.checked(value, self.ring.head, self.ring.used())?;
        Ok(())
    }

    /// Completions that may be posted before the host takes some.
    #[inline]
    pub fn free(&self) -> u32 {
        self.ring.last as u32 - self.ring.used()
    }

    /// Takes up to `limit` free entries that lie side by side. Two calls take all that are free, wherever the queue
    /// wraps.
    #[inline]
    pub fn reserve(&mut self, limit: u32) -> Option<CompletionRun> {
        let (slot, phase) = (self.ring.tail, self.phase);
        let entries = limit.min(self.free()).min(self.ring.until_wrap(slot));
        self.ring.tail = self.ring.after(slot, entries);
        self.phase ^= self.ring.tail < slot;
        (entries > 0).then(|| CompletionRun { at: self.ring.base + slot as u64 * COMPLETION_BYTES, entries, phase })
    }

    /// Entries of the queue.
    pub fn entries(&self) -> u32 {
        self.ring.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_small() {
        assert!(size_of::<SubmissionQueue>() <= 16 && size_of::<CompletionQueue>() <= 24);
    }

    #[test]
    fn a_wrapped_queue_is_fetched_in_two_runs() {
        let mut queue = SubmissionQueue::new(HostAddress(0x1000), 8);
        queue.ring(6).unwrap();
        assert_eq!(queue.take(64).map(|run| run.entries), Some(6));
        queue.ring(3).unwrap();
        assert_eq!(queue.pending(), 5);
        assert_eq!(queue.take(64), Some(SubmissionRun { at: HostAddress(0x1180), slot: 6, entries: 2 }));
        assert_eq!(queue.take(2), Some(SubmissionRun { at: HostAddress(0x1000), slot: 0, entries: 2 }));
        assert_eq!((queue.head(), queue.pending()), (2, 1));
        assert_eq!((queue.take(1).map(|run| run.slot), queue.take(1)), (Some(2), None));
    }

    #[test]
    fn doorbells_no_correct_host_rings_are_refused_and_change_nothing() {
        let mut queue = SubmissionQueue::new(HostAddress(0), 8);
        assert!(queue.ring(8).is_err() && queue.ring(0).is_err() && queue.ring(u32::MAX).is_err());
        queue.ring(7).unwrap();
        assert!(queue.ring(0).is_err(), "would make a full queue look empty");
        assert!(queue.ring(3).is_err(), "over commands that wait");
        assert_eq!(queue.pending(), 7);

        let mut queue = CompletionQueue::new(HostAddress(0), 4);
        assert!(queue.ring(1).is_err(), "nothing was posted");
        queue.reserve(2).unwrap();
        assert!(queue.ring(3).is_err() && queue.ring(4).is_err());
        queue.ring(2).unwrap();
        assert_eq!(queue.free(), 3);
    }

    #[test]
    fn the_phase_flips_with_each_pass_and_never_within_a_run() {
        let mut queue = CompletionQueue::new(HostAddress(0), 3);
        let mut phases = Vec::new();
        for head in [2, 1, 0] {
            for _ in 0..2 {
                if let Some(run) = queue.reserve(2) {
                    phases.extend((0..run.entries).map(|at| (run.at.0 / 16 + u64::from(at), run.phase)));
                }
            }
            queue.ring(head).unwrap();
        }
        assert_eq!(phases, [(0, true), (1, true), (2, true), (0, false), (1, false), (2, false)]);
    }

    #[test]
    fn the_largest_queue_holds_all_but_one_of_its_entries() {
        let mut queue = SubmissionQueue::new(HostAddress(0), 65_536);
        queue.ring(65_535).unwrap();
        assert_eq!((queue.pending(), queue.take(u32::MAX).map(|run| run.entries)), (65_535, Some(65_535)));
        queue.ring(65_534).unwrap();
        assert_eq!([queue.take(u32::MAX), queue.take(u32::MAX)].map(|run| run.unwrap().entries), [1, 65_534]);
    }
}
