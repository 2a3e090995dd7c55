//! Queues with fused pairs that share few commands, drawn at random.

use super::Halves;
use nvme::spec::{Fuse, Opcode, Submission};
use proptest::prelude::*;
use units::QueueId;

#[test]
fn nothing_is_kept_where_every_queue_finds_a_command() {
    assert!(Halves::new(65, 9, 10).is_none());
    assert!(Halves::new(65, 10, 10).is_some());
}

/// A link as far as pairs go.
struct Bench {
    halves: Halves,
    credits: u32,
    /// Of each queue what the host has written and the link has not called for: halves of pairs, first or second, and others.
    rings: Vec<Vec<Fuse>>,
    /// Batches that were called for and are not here.
    under_way: Vec<(usize, Vec<Fuse>)>,
    /// First halves that wait in the SQ buffer, by queue.
    held: Vec<bool>,
    ready: Vec<usize>,
}

impl Bench {
    /// Calls for as much as there may be, from the ready queues in turn.
    fn admit(&mut self, batch: u32) {
        while self.credits > 0 && !self.ready.is_empty() {
            let queue = self.ready.remove(0);
            if !self.halves.may_begin(QueueId(queue as u16)) {
                continue;
            }
            let taken = self.rings[queue].len().min(batch.min(self.credits) as usize);
            if taken > 0 {
                let entries = self.rings[queue].drain(..taken).collect();
                self.credits -= taken as u32;
                self.halves.begin(QueueId(queue as u16), taken as u32);
                self.under_way.push((queue, entries));
            }
        }
    }

    /// A batch is here. What is whole ends at once.
    fn arrive(&mut self, at: usize) {
        let (queue, entries) = self.under_way.remove(at);
        let last = Submission::write_zeroes(1, 0, 1).with_fuse(entries[entries.len() - 1]);
        assert_eq!(last.opcode(), Opcode::WriteZeroes as u8);
        let waiting = self.halves.arrived(QueueId(queue as u16), entries.len() as u32, last.0[0]);
        self.ready.extend(waiting.iter().map(|queue| queue.index()));
        for entry in entries {
            self.held[queue] = match (entry, self.held[queue]) {
                (Fuse::First, false) => true,
                (Fuse::Second, true) => {
                    self.credits += 2;
                    false
                }
                (Fuse::Normal, false) => {
                    self.credits += 1;
                    false
                }
                _ => unreachable!("pairs are whole"),
            };
        }
        self.ready.push(queue);
    }
}

proptest! {
    /// Whatever the host writes and in whatever order it arrives, all of it comes to an end.
    #[test]
    fn pairs_never_take_every_command(
        commands in 2u32..6,
        batch in 1u32..4,
        rings in prop::collection::vec(prop::collection::vec(any::<bool>(), 1..6), 5..9),
        arrivals in prop::collection::vec(any::<prop::sample::Index>(), 200),
    ) {
        let entries = |pair: &bool| if *pair { vec![Fuse::First, Fuse::Second] } else { vec![Fuse::Normal] };
        let rings: Vec<Vec<_>> = rings.iter().map(|ring| ring.iter().flat_map(entries).collect()).collect();
        let queues = rings.len();
        let mut bench = Bench {
            halves: Halves::new(queues, queues, commands).expect("they are few"),
            credits: commands,
            rings,
            under_way: Vec::new(),
            held: vec![false; queues],
            ready: (0..queues).collect(),
        };
        for arrival in arrivals {
            bench.admit(batch);
            if bench.under_way.is_empty() {
                break;
            }
            bench.arrive(arrival.index(bench.under_way.len()));
        }
        prop_assert!(bench.rings.iter().all(Vec::is_empty), "left: {:?}, held: {:?}", bench.rings, bench.held);
        prop_assert_eq!(bench.credits, commands);
    }
}
