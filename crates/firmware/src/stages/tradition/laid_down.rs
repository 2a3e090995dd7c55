//! Groups that workers fill and have laid down while they stand still: whoever is first has one, its worker or a reclaim.

use stage::{SharedMemory, Words};

/// A word for each group: zero where it was never laid down, even where it is, odd where it was taken since.
#[derive(Clone)]
pub(super) struct LaidDown(Words);

/// That it was this worker, and the position from which the group is filled further.
fn word(worker: u8, next: u32) -> u64 {
    (u64::from(worker) + 1) << 33 | u64::from(next) << 1
}

impl LaidDown {
    /// For so many groups. Only its worker touches the word of a group, unless a reclaim has too little room: nobody pays for that.
    pub(super) fn new(memory: &mut SharedMemory, groups: usize) -> Self {
        LaidDown(memory.beside(groups))
    }

    /// A worker stands still, and its group is anybody's that takes it, to be filled further from a position on.
    pub(super) fn put(&self, worker: u8, (group, next): (u32, u32)) {
        self.0.set(group as usize, word(worker, next));
    }

    /// The worker goes on; whether the group is still its own. Another may have filled it meanwhile, and have laid it down in its turn.
    pub(super) fn pick_up(&self, worker: u8, (group, next): (u32, u32)) -> bool {
        self.0.advance(group as usize, word(worker, next))
    }

    /// Whether a group is laid down.
    pub(super) fn has(&self, group: u32) -> bool {
        let word = self.0.get(group as usize);
        word > 0 && word & 1 == 0
    }

    /// Takes a group from whichever worker has laid it down, if one has: with the position from which it is filled further.
    pub(super) fn take(&self, group: u32) -> Option<(u32, u32)> {
        let word = self.0.get(group as usize);
        (self.has(group) && self.0.advance(group as usize, word)).then_some((group, (word >> 1) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_of_whoever_takes_it_first() {
        let laid = LaidDown::new(&mut SharedMemory::default(), 4);
        assert!(!laid.has(2) && laid.take(2).is_none() && !laid.pick_up(0, (2, 0)));
        laid.put(3, (2, 0));
        assert!(laid.has(2) && laid.pick_up(3, (2, 0)) && !laid.has(2) && laid.take(2).is_none());
        laid.put(3, (2, 7));
        assert_eq!((laid.take(2), laid.take(2)), (Some((2, 7)), None));
        assert!(!laid.pick_up(3, (2, 7)));
    }

    /// Worker 3 comes back to find the group laid down, but by the one that has got it since.
    #[test]
    fn a_group_that_another_has_laid_down_since_is_not_picked_up() {
        let laid = LaidDown::new(&mut SharedMemory::default(), 4);
        laid.put(3, (2, 7));
        laid.take(2);
        for next in [7, 9] {
            laid.put(5, (2, next));
            assert!(!laid.pick_up(3, (2, 7)) && laid.pick_up(5, (2, next)));
        }
    }

    #[test]
    fn of_two_at_once_one_has_the_group() {
        let laid = LaidDown::new(&mut SharedMemory::default(), 512);
        (0..512).for_each(|group| laid.put(1, (group, 8)));
        let (own, taken) = std::thread::scope(|scope| {
            let other = scope.spawn(|| (0..512).filter(|&group| laid.take(group).is_some()).count());
            ((0..512).filter(|&group| laid.pick_up(1, (group, 8))).count(), other.join().expect("it ends"))
        });
        assert_eq!(own + taken, 512);
    }
}
