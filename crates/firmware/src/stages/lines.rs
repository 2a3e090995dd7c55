//! Lines at the spots of a lock region, which are its pages or its units: who is there, and who waits for that.
//!
//! One that comes waits at each of its spots for those that came there before it, unless both only look. So whoever waits nowhere may go,
//! and one that leaves costs what it touched, however many wait.

use crate::message::Extent;
use crate::stages::waiting::{Line, Places};

/// Who is at a spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Present {
    Nobody,
    /// So many that only look.
    Readers(u16),
    /// The one that changes it.
    Writer(u16),
}

impl Present {
    /// Who is there when another comes, unless that one must wait.
    #[inline]
    fn with(self, who: u16, changes: bool) -> Option<Present> {
        match (self, changes) {
            (Present::Nobody, true) => Some(Present::Writer(who)),
            (Present::Nobody, false) => Some(Present::Readers(1)),
            (Present::Readers(count), false) => Some(Present::Readers(count + 1)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Spot {
    present: Present,
    waiting: Line,
}

/// One in a line, by its number, and whether it changes what it waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    who: u16,
    changes: bool,
}

/// The lines of one region.
#[derive(Debug)]
pub(crate) struct Lines {
    spots: Box<[Spot]>,
}

impl Lines {
    /// Nobody is at any of so many spots.
    pub(crate) fn new(spots: usize) -> Self {
        let spot = Spot { present: Present::Nobody, waiting: Line::default() };
        Lines { spots: vec![spot; spots].into() }
    }

    /// The spots of a stretch, which lies in one region.
    fn of(&mut self, extent: &Extent) -> &mut [Spot] {
        let first = extent.from as usize % self.spots.len();
        &mut self.spots[first..first + (extent.to - extent.from) as usize]
    }

    /// Whether anybody is at any spot of a stretch.
    pub(crate) fn is_any_at(&self, extent: &Extent) -> bool {
        (extent.from..extent.to).any(|spot| self.at(spot).present != Present::Nobody)
    }

    /// Who changes a spot, if anybody does.
    pub(crate) fn writer_at(&self, spot: u32) -> Option<u16> {
        if let Present::Writer(who) = self.at(spot).present { Some(who) } else { None }
    }

    fn at(&self, spot: u32) -> &Spot {
        &self.spots[spot as usize % self.spots.len()]
    }

    /// One comes: at how many spots it must wait.
    pub(crate) fn enter(&mut self, waiters: &mut Places<Waiter>, who: u16, extent: &Extent) -> u16 {
        let (mut waits, changes) = (0, extent.changes);
        for spot in self.of(extent) {
            match spot.present.with(who, changes).filter(|_| spot.waiting.is_empty()) {
                Some(present) => spot.present = present,
                None => {
                    spot.waiting.push(waiters, Waiter { who, changes });
                    waits += 1;
                }
            }
        }
        waits
    }

    /// One that waits nowhere leaves. `come` is told of those that need not wait at a spot any more, once for each such spot.
    pub(crate) fn leave(&mut self, waiters: &mut Places<Waiter>, extent: &Extent, mut come: impl FnMut(u16)) {
        for spot in self.of(extent) {
            spot.present = match spot.present {
                Present::Readers(count) if count > 1 => Present::Readers(count - 1),
                _ => Present::Nobody,
            };
            while !spot.waiting.is_empty() {
                let Waiter { who, changes } = *spot.waiting.first(waiters);
                let Some(present) = spot.present.with(who, changes) else { break };
                spot.present = present;
                spot.waiting.pop(waiters);
                come(who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_leaves_looks_at_nobody_whose_turn_does_not_come() {
        let (mut lines, mut waiters) = (Lines::new(256), Places::default());
        let page = |page: u32, changes| Extent { from: page, to: page + 1, changes };
        for who in 0..1024u16 {
            assert_eq!(lines.enter(&mut waiters, who, &page(u32::from(who) % 256, true)), u16::from(who >= 256));
        }
        for who in 1024..1028 {
            assert_eq!(lines.enter(&mut waiters, who, &page(7, false)), 1, "a read behind four writes");
        }
        let mut come = Vec::new();
        for _ in 0..4 {
            lines.leave(&mut waiters, &page(7, true), |who| come.push(who));
        }
        assert_eq!(come, [263, 519, 775, 1024, 1025, 1026, 1027]);
    }

    #[test]
    fn a_stretch_waits_at_each_of_its_spots() {
        let (mut lines, mut waiters) = (Lines::new(8), Places::default());
        let stretch = |from, to| Extent { from, to, changes: true };
        assert_eq!(lines.enter(&mut waiters, 0, &stretch(8, 10)), 0, "the second region begins with the first spot");
        assert_eq!(lines.enter(&mut waiters, 1, &stretch(12, 16)), 0);
        assert_eq!(lines.enter(&mut waiters, 2, &stretch(9, 14)), 3);
        assert_eq!((lines.writer_at(9), lines.writer_at(10), lines.writer_at(12)), (Some(0), Some(2), Some(1)));
        let mut come = Vec::new();
        lines.leave(&mut waiters, &stretch(12, 16), |who| come.push(who));
        assert_eq!(come, [2, 2]);
        lines.leave(&mut waiters, &stretch(8, 10), |who| come.push(who));
        assert_eq!(come, [2, 2, 2]);
        lines.leave(&mut waiters, &stretch(9, 14), |_| unreachable!("nobody waits"));
        assert!(!lines.is_any_at(&stretch(8, 16)));
    }
}
