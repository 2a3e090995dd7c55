//! How many logical pages point to each tombstone: whoever takes the last of them away leaves garbage.
//!
//! The workers share the map, so two of them may leave one tombstone at the same moment, each with a page of its own under that page's
//! cacheline. Each takes one off a shared count, and only the one that finds it at one has left garbage. A page of flash that is no
//! tombstone has no count, nor has a tombstone of before a power cut that one page alone points to: such a one is read as others are.

use crate::{Tables, Turn};
use stage::{SharedMemory, Words};
use units::Ppn;

/// Bits of a count: a tombstone is of 256 pages at most.
const BITS: u32 = 16;
const PER_WORD: u32 = u64::BITS / BITS;

/// The counts. What nobody has touched of them takes no memory.
#[derive(Clone)]
pub(crate) struct Tombstones {
    counts: Words,
    /// 1 once there was one. A drive whose hosts deallocate nothing pays for no look at a count.
    any: Words,
}

impl Tombstones {
    /// With those that recovery has found.
    pub(crate) fn new(memory: &mut SharedMemory, tables: &Tables) -> Self {
        let pages = tables.groups.count() as usize * tables.groups.pages() as usize;
        let tombstones = Tombstones { counts: memory.wide(pages.div_ceil(PER_WORD as usize)), any: memory.wide(1) };
        for (at, pages) in tables.tombstones_of(0) {
            let (word, shift) = place(at);
            tombstones.counts.fetch_add(word, u64::from(pages) << shift);
            tombstones.any.set(0, 1);
        }
        tombstones
    }

    /// Whether a place is known to hold a tombstone.
    pub(super) fn is_one(&self, turn: &mut Turn<'_>, at: Ppn) -> bool {
        let (word, shift) = place(at);
        self.any.get(0) != 0 && count(turn.load(&self.counts, word), shift) != 0
    }

    /// So many pages are about to point to a tombstone: none does yet.
    pub(super) fn add(&self, turn: &mut Turn<'_>, at: Ppn, pages: u32) {
        self.any.set(0, 1);
        let (word, shift) = place(at);
        turn.fetch_add(&self.counts, word, u64::from(pages) << shift);
    }

    /// A page that points to a place does so no more; whether it was the last one there.
    pub(super) fn leave(&self, turn: &mut Turn<'_>, at: Ppn) -> bool {
        // The page at hand is one of those that are counted, so nobody else can bring the count down to zero meanwhile.
        if !self.is_one(turn, at) {
            return true;
        }
        let (word, shift) = place(at);
        count(turn.fetch_add(&self.counts, word, (1u64 << shift).wrapping_neg()), shift) == 1
    }
}

/// The word of a count, and where in it.
fn place(Ppn(at): Ppn) -> (usize, u32) {
    ((at / PER_WORD) as usize, at % PER_WORD * BITS)
}

fn count(word: u64, shift: u32) -> u64 {
    word >> shift & ((1 << BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Firmware;
    use stage::Outbox;
    use units::{StageId, Time};

    fn tombstones() -> Tombstones {
        let mut memory = SharedMemory::default();
        Tombstones { counts: memory.wide(4), any: memory.wide(1) }
    }

    fn act<R>(act: impl FnOnce(&mut Turn<'_>) -> R) -> R {
        act(&mut stage::Turn::in_real_time(StageId(0), Time::ZERO, &[], &mut Outbox::<Firmware>::default()))
    }

    #[test]
    fn whoever_takes_the_last_page_away_leaves_garbage_and_its_neighbours_count_for_themselves() {
        let all = tombstones();
        assert!(act(|turn| all.leave(turn, Ppn(5))), "a page as others");
        for (at, pages) in [(4, 256), (5, 2), (7, 1)] {
            act(|turn| all.add(turn, Ppn(at), pages));
        }
        assert!([4, 5, 7].iter().all(|&at| act(|turn| all.is_one(turn, Ppn(at)))));
        assert!(!act(|turn| all.is_one(turn, Ppn(6))));
        assert_eq!([5, 5, 7].map(|at| act(|turn| all.leave(turn, Ppn(at)))), [false, true, true]);
        assert!(!act(|turn| all.is_one(turn, Ppn(5))) && act(|turn| all.leave(turn, Ppn(6))));
        let left = (0..256).map(|_| act(|turn| all.leave(turn, Ppn(4))));
        assert_eq!(left.filter(|is_last| *is_last).count(), 1);
        assert!(act(|turn| !all.is_one(turn, Ppn(4))));
    }

    #[test]
    fn of_workers_that_leave_at_once_one_is_the_last() {
        let all = tombstones();
        for _ in 0..200 {
            act(|turn| all.add(turn, Ppn(9), 64));
            let leave = || (0..32).filter(|_| act(|turn| all.leave(turn, Ppn(9)))).count();
            let last = std::thread::scope(|scope| {
                let other = scope.spawn(leave);
                leave() + other.join().expect("it ends")
            });
            assert_eq!(last, 1);
        }
    }
}
