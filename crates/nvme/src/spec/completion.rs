//! The 16 bytes of a completion queue entry.

use super::Status;
use units::QueueId;

/// A completion queue entry (Base §3.3.3.2) as two little-endian words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Completion(pub [u64; 2]);

const _: () = assert!(size_of::<Completion>() as u64 == super::COMPLETION_BYTES);

const PHASE: u64 = 1 << 48;

impl Completion {
    /// An entry for command `command_id` of `sq_id`, whose head has come to `sq_head`.
    #[inline]
    pub const fn new(result: u64, sq_head: u16, sq_id: QueueId, command_id: u16, phase: bool, status: Status) -> Self {
        let last = sq_head as u64 | (sq_id.0 as u64) << 16 | (command_id as u64) << 32;
        Completion([result, last | (phase as u64) << 48 | (status.0 as u64) << 49])
    }

    /// What the command returns in dwords 0 and 1; most use only the low half, or nothing.
    #[inline]
    pub const fn result(&self) -> u64 {
        self.0[0]
    }

    /// The submission queue's head as the device had it: entries before it may be used again.
    #[inline]
    pub const fn sq_head(&self) -> u16 {
        self.0[1] as u16
    }

    /// The submission queue the command came by.
    #[inline]
    pub const fn sq_id(&self) -> QueueId {
        QueueId((self.0[1] >> 16) as u16)
    }

    /// The command that is done.
    #[inline]
    pub const fn command_id(&self) -> u16 {
        (self.0[1] >> 32) as u16
    }

    /// The tag that flips on each pass through the queue and so marks the entry as new (Base §3.3.3.2.2).
    #[inline]
    pub const fn phase(&self) -> bool {
        self.0[1] & PHASE != 0
    }

    /// How it went.
    #[inline]
    pub const fn status(&self) -> Status {
        Status((self.0[1] >> 49) as u16)
    }

    /// The same entry, but it went so.
    #[must_use]
    pub const fn with_status(mut self, status: Status) -> Self {
        self.0[1] = self.0[1] & !(u64::MAX << 49) | (status.0 as u64) << 49;
        self
    }

    /// The same entry with this phase: known only when the entry's place in the queue is.
    #[inline]
    #[must_use]
    pub const fn with_phase(mut self, phase: bool) -> Self {
        self.0[1] = self.0[1] & !PHASE | (phase as u64) << 48;
        self
    }
}

/// What a drive says of a command that failed to a front end that answers for it, as the result of its own completion: what of it goes
/// to the host, and what goes into the error log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The lowest source range of a Copy that was not copied whole, which its host is told (NVM §3.2.2).
    pub range: u8,
    /// The first sector of the drive in error, where there is one.
    pub sector: Option<u64>,
}

impl Failure {
    /// At a sector, of a command that is no Copy.
    pub const fn at(sector: u64) -> Self {
        Failure { range: 0, sector: Some(sector) }
    }

    /// As a result, whose top bit stays free.
    pub const fn encode(self) -> u64 {
        let sector = match self.sector {
            Some(sector) => (sector + 1) & (u64::MAX >> 9),
            None => 0,
        };
        sector << 8 | self.range as u64
    }

    /// Out of a result; one of a command that did not fail is none.
    pub const fn decode(result: u64) -> Self {
        Failure { range: result as u8, sector: (result >> 8 & (u64::MAX >> 9)).checked_sub(1) }
    }

    /// The result that the host is told.
    pub const fn told(self) -> u64 {
        self.range as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_the_specification_s() {
        let completion = Completion::new(0x1122_3344, 5, QueueId(6), 7, true, Status::LBA_OUT_OF_RANGE);
        let bytes = completion.0.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        // Dword 3: command 7, phase in bit 16, SC 80h in bits 24:17, do not retry in bit 31.
        assert_eq!(bytes, [0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0, 5, 0, 6, 0, 7, 0, 0x01, 0x81]);
    }

    proptest! {
        #[test]
        fn what_failed_comes_back(range: u8, sector in prop::option::of(0u64..1 << 54)) {
            let failure = Failure { range, sector };
            prop_assert_eq!(Failure::decode(failure.encode()), failure);
            prop_assert_eq!(failure.encode() >> 63, 0);
        }

        #[test]
        fn fields_come_back(result: u64, head: u16, queue: u16, id: u16, phase: bool, status in 0u16..0x8000) {
            let completion = Completion::new(result, head, QueueId(queue), id, phase, Status(status));
            prop_assert_eq!(completion.result(), result);
            prop_assert_eq!(completion.sq_head(), head);
            prop_assert_eq!(completion.sq_id(), QueueId(queue));
            prop_assert_eq!(completion.command_id(), id);
            prop_assert_eq!(completion.phase(), phase);
            prop_assert_eq!(completion.status(), Status(status));
            prop_assert_eq!(completion.with_phase(!phase).with_phase(phase), completion);
        }
    }
}
