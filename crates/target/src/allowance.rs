//! How much of the serving thread those get who have proved nothing, or who only discover: what they like while no host wants it, and
//! little while one does. They share it, each in its turn.

use crate::subsystem::ConnectionId;
use units::{Span, Time};

/// One part of so many of the thread is theirs, all together, while hosts use the drive. As much is left to those who prove who they are
/// by powers of large numbers, however busy these here are ([`crate::proof`]): both together have a fifth.
const PARTS: u64 = 10;

/// How long they have the thread at a time, but for what was begun: a host's command waits so long at most.
const SLICE: Span = Span::from_micros(100);

/// The most of them that have their turn in a slice.
pub(crate) const VISITS_MAX: usize = 16;

/// What one of them has done in its turn: so many units, of one read.
pub(crate) const UNITS_A_VISIT: u32 = 4;

/// Connections accepted in a slice.
pub(crate) const ACCEPTED_MAX: usize = 16;

/// Where no host has come with anything for so long, none waits for the thread.
const LULL: Span = Span::from_millis(1);

/// What they have had, and when they may go on.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    /// When their next slice is, while hosts use the drive.
    due: Time,
    /// When a host last had anything.
    busy_at: Time,
    /// The connection whose turn it is.
    next: ConnectionId,
}

impl Allowance {
    /// A host had something, or the drive works for one.
    pub(crate) fn note_busy(&mut self, now: Time) {
        self.busy_at = now;
    }

    /// When they may have the thread.
    pub(crate) fn due(&self) -> Time {
        self.due.min(self.busy_at + LULL)
    }

    /// The connection that has its turn first: each is the first some time, and none comes again before the others.
    pub(crate) fn first(&self) -> ConnectionId {
        self.next
    }

    /// A slice begins.
    pub(crate) fn begin(&self, now: Time) -> Slice {
        Slice { began: now, last: now, spent: Span::ZERO, visits: 0 }
    }

    /// A connection has had its turn.
    pub(crate) fn visited(&mut self, slice: &mut Slice, connection: ConnectionId) {
        self.next = connection + 1;
        slice.visits += 1;
    }

    /// A slice is over; how much of it was at the cost of hosts.
    pub(crate) fn end(&mut self, slice: &Slice) -> Span {
        self.due = slice.last + slice.spent * (PARTS - 1);
        if slice.began < self.busy_at + LULL { slice.spent } else { Span::ZERO }
    }
}

/// A slice of the thread that they have.
#[derive(Debug)]
pub(crate) struct Slice {
    began: Time,
    last: Time,
    spent: Span,
    visits: usize,
}

impl Slice {
    /// It is `now`. What was spent on powers since the last time is counted elsewhere.
    pub(crate) fn pass(&mut self, now: Time, powers: Span) {
        self.spent += now.since(self.last).saturating_sub(powers);
        self.last = now;
    }

    /// Whether no more is to be begun in it. One of those who are there has its turn, whatever those took who have come.
    pub(crate) fn is_over(&self) -> bool {
        self.visits > 0 && self.spent >= SLICE || self.visits >= VISITS_MAX
    }

    /// Whether those who have come are to wait for those who were there: half of it is theirs.
    pub(crate) fn is_half_over(&self) -> bool {
        self.spent * 2 >= SLICE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second in which so many of them always have something that takes so long each, and a host something else in every moment that is
    /// left to it, or nothing; how long each of them had.
    fn second(crowd: usize, each: Span, is_host_busy: bool) -> Vec<Span> {
        let mut allowance = Allowance::default();
        let mut had = vec![Span::ZERO; crowd];
        let (mut now, end) = (Time::ZERO, Time::ZERO + Span::from_secs(1));
        while now < end {
            if is_host_busy {
                allowance.note_busy(now);
            }
            if now < allowance.due() {
                now += Span::from_micros(10);
                continue;
            }
            let (mut slice, first) = (allowance.begin(now), allowance.first());
            for turn in 0..crowd {
                if slice.is_over() {
                    break;
                }
                let at = (first + turn) % crowd;
                now += each;
                had[at] += each;
                allowance.visited(&mut slice, at);
                slice.pass(now, Span::ZERO);
            }
            allowance.end(&slice);
        }
        had
    }

    #[test]
    fn however_many_they_are_they_have_a_tenth_and_each_as_much_as_the_others() {
        for (crowd, each) in [(1, 5), (64, 5), (64, 40), (300, 40), (64, 2_000)] {
            let each = Span::from_micros(each);
            let had = second(crowd, each, true);
            let all: u64 = had.iter().map(|had| had.nanos()).sum();
            assert!((80_000_000..=105_000_000).contains(&all), "{crowd} of {each:?}: {all} ns of a second");
            let (most, least) = (had.iter().max().unwrap(), had.iter().min().unwrap());
            assert!(*most - *least <= each, "{crowd} of {each:?}: {least:?} to {most:?}");
        }
    }

    #[test]
    fn while_no_host_wants_anything_they_have_the_thread() {
        let all: u64 = second(64, Span::from_micros(40), false).iter().map(|had| had.nanos()).sum();
        assert!(all > 990_000_000, "{all} ns of a second");
    }

    #[test]
    fn a_power_is_counted_by_those_who_pace_powers() {
        let mut allowance = Allowance::default();
        let start = Time::ZERO + Span::from_secs(1);
        let mut slice = allowance.begin(start);
        slice.pass(start + Span::from_millis(19), Span::from_millis(20));
        allowance.visited(&mut slice, 0);
        assert!(!slice.is_over());
        slice.pass(start + Span::from_micros(19_030), Span::ZERO);
        assert_eq!(allowance.end(&slice), Span::ZERO, "no host was there");
        allowance.note_busy(start + Span::from_millis(19));
        assert_eq!(allowance.due(), start + Span::from_micros(19_300));
        assert_eq!(allowance.end(&slice), Span::from_micros(30));
    }
}
