//! Shadow doorbells: doorbells in host memory beside the registers, and up to where a host need not ring (Base §5.8 and B.5).
//!
//! The host writes each new tail and head into a page of its own, and into the register only where the device asks for it: where
//! the move passes the event index that the device keeps for that doorbell in a second page. A device that looks by itself asks for
//! nothing, and before it sleeps it asks for the next move.

use crate::spec::PAGE_BYTES;
use units::{HostAddress, QueueId};

/// Queues that a page has doorbells for, the admin queue among them.
pub const QUEUES_MAX: u16 = (PAGE_BYTES / 8) as u16;

/// Where the two doorbells of a queue lie in either page, as in the registers with CAP.DSTRD = 0: a word whose low half is of the
/// tail of the submission queue, and its high half of the head of the completion queue.
pub fn place(page: HostAddress, queue: QueueId) -> HostAddress {
    assert!(queue.0 < QUEUES_MAX);
    page + 8 * u64::from(queue.0)
}

/// Whether a host that moves a doorbell has to write the register too: the move passes the event index.
pub const fn has_to_ring(event: u32, from: u32, to: u32) -> bool {
    (to as u16).wrapping_sub(event as u16).wrapping_sub(1) < (to as u16).wrapping_sub(from as u16)
}

/// The event index of a device that has seen a doorbell at `position` and looks by itself: half a queue away. So a host rings neither
/// for a move that the device sees before the host has looked whether it has to ring, nor for those to come, if each is shorter than
/// half a queue and the device looks again before they are half a queue together.
pub const fn unasked(position: u32, entries: u32) -> u32 {
    position.wrapping_add(entries - entries / 2) % entries
}

/// The event index of a device that has seen a doorbell at `position` and is to be told of the next move.
pub const fn asked(position: u32) -> u32 {
    position
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule as the specification has it in words: a ring is due if the event index is one of the positions that the doorbell
    /// leaves, going up from the old one; at the end of the queue the positions up to 65,535 count as left.
    fn passes(event: u32, from: u32, to: u32) -> bool {
        let mut at = from as u16;
        while at != to as u16 {
            if at == event as u16 {
                return true;
            }
            at = at.wrapping_add(1);
        }
        false
    }

    #[test]
    fn doorbells_lie_as_registers_do() {
        use crate::spec::registers::{DOORBELLS, Doorbell};
        for queue in [0, 1, 511].map(QueueId) {
            let at = place(HostAddress(0x5000), queue).0 - 0x5000;
            assert_eq!(at, u64::from(Doorbell::SubmissionTail(queue).offset() - DOORBELLS));
            assert_eq!(at + 4, u64::from(Doorbell::CompletionHead(queue).offset() - DOORBELLS));
        }
    }

    proptest! {
        #[test]
        fn a_host_rings_where_it_passes_the_event_index(event in 0u32..64, from in 0u32..64, to in 0u32..64) {
            prop_assert_eq!(has_to_ring(event, from, to), passes(event, from, to));
        }

        /// A host that goes on from what the device has seen, in moves of any length: asked, it rings with the first of them;
        /// unasked with none within half a queue. Nor with the move that the device has just seen.
        #[test]
        fn a_device_is_told_of_the_first_move_or_of_none(
            entries in 2u32..200, seen in 0u32..200, before in 1u32..100,
            moves in prop::collection::vec(1u32..50, 1..20),
        ) {
            let seen = seen % entries;
            let (half, before) = (entries - entries / 2, before.min((entries / 2).saturating_sub(1)));
            let came_from = (seen + entries - before) % entries;
            prop_assert!(before == 0 || !has_to_ring(unasked(seen, entries), came_from, seen));
            let (mut at, mut moved) = (seen, 0);
            for (number, length) in moves.into_iter().enumerate() {
                let length = length.min(entries - 1 - moved);
                let to = (at + length) % entries;
                if length > 0 {
                    prop_assert!(moved + length > half || !has_to_ring(unasked(seen, entries), at, to));
                    prop_assert_eq!(has_to_ring(asked(seen), at, to), number == 0);
                }
                (at, moved) = (to, moved + length);
            }
        }
    }
}
