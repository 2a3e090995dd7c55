//! Which submission queue is served next: round robin, or weighted round robin with urgent class (Base §3.4.4).

use crate::ready_set::ReadySet;
use crate::spec::QueuePriority;
use std::ops::ControlFlow;
use units::QueueId;

/// How queues compete, as CC.AMS says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arbitration {
    /// All queues, the admin queue among them, in one circle (Base §3.4.4.1).
    #[default]
    RoundRobin,
    /// The admin queue first, then urgent queues, then three classes that share by weight (Base §3.4.4.2).
    Weighted,
}

/// Burst and weights, as the Arbitration feature holds them (Base §5.27.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbitrationShares {
    /// Most commands taken from a queue at once; `u32::MAX` is without limit.
    pub burst: u32,
    /// Commands of the high, the medium and the low class in a round: 1 to 256.
    pub weights: [u32; 3],
}

impl ArbitrationShares {
    /// From dword 11 of the feature.
    pub const fn from_feature(value: u32) -> Self {
        let burst = if value & 7 == 7 { u32::MAX } else { 1 << (value & 7) };
        ArbitrationShares {
            burst,
            weights: [(value >> 24 & 0xff) + 1, (value >> 16 & 0xff) + 1, (value >> 8 & 0xff) + 1],
        }
    }
}

/// Leave to take commands from a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The queue.
    pub queue: QueueId,
    /// Most commands to take; at least 1.
    pub commands: u32,
    class: u8,
}

/// The class that holds every queue under round robin, and the admin queue under weights.
const FIRST: usize = 0;
const URGENT: usize = 1;
const WEIGHTED: std::ops::Range<usize> = 2..5;

#[derive(Clone, Debug)]
struct Class {
    ready: ReadySet,
    /// Queues that have commands and may not be served for now: they keep their place before lower classes.
    waiting: ReadySet,
    last: QueueId,
    credit: u32,
}

/// Chooses among queues that have commands. The device tells it which those are.
#[derive(Clone, Debug)]
pub struct Arbiter {
    mode: Arbitration,
    shares: ArbitrationShares,
    class_of: Box<[u8]>,
    classes: [Class; 5],
}

impl Arbiter {
    /// For queues with identifiers below `queues` (at most 65,536, the admin queue counted), none of them ready, all
    /// urgent.
    pub fn new(queues: usize, mode: Arbitration, shares: ArbitrationShares) -> Self {
        let set = || ReadySet::new(queues);
        let class = || Class { ready: set(), waiting: set(), last: QueueId(u16::MAX), credit: 0 };
        let place = |queue| if queue == 0 || mode == Arbitration::RoundRobin { FIRST } else { URGENT };
        let class_of = (0..queues).map(|queue| place(queue) as u8).collect();
        let mut arbiter = Arbiter { mode, shares, class_of, classes: std::array::from_fn(|_| class()) };
        arbiter.begin_round();
        arbiter
    }

    /// Puts an I/O queue into a class. Without effect under round robin.
    pub fn set_priority(&mut self, queue: QueueId, priority: QueuePriority) {
        if self.mode == Arbitration::RoundRobin || queue.0 == 0 {
            return;
        }
        let (was_ready, waited) = (self.is_ready(queue), self.class_mut(queue).waiting.contains(queue));
        self.idle(queue);
        self.class_of[queue.index()] = (URGENT + priority as usize) as u8;
        match (was_ready, waited) {
            (true, _) => self.ready(queue),
            (_, true) => self.wait(queue),
            _ => {}
        }
    }

    /// The queue has commands.
    #[inline]
    pub fn ready(&mut self, queue: QueueId) {
        self.leave(queue);
        self.class_mut(queue).ready.insert(queue);
    }

    /// The queue has no more commands, or may not be served for now and gives way to lower classes.
    #[inline]
    pub fn idle(&mut self, queue: QueueId) {
        self.leave(queue);
        self.class_mut(queue).ready.remove(queue);
    }

    /// The queue has commands and may not be served for now, and soon will: until it is ready or idle no lower class is served, and no
    /// round begins while its class has commands left in this one. Under round robin there is nobody to give way.
    pub fn wait(&mut self, queue: QueueId) {
        let class = self.class_mut(queue);
        class.ready.remove(queue);
        class.waiting.insert(queue);
    }

    /// The queue does not wait.
    #[inline]
    fn leave(&mut self, queue: QueueId) {
        if self.mode == Arbitration::Weighted {
            self.class_mut(queue).waiting.remove(queue);
        }
    }

    /// Whether the queue waits to be served.
    #[inline]
    pub fn is_ready(&self, queue: QueueId) -> bool {
        self.classes[self.class_of[queue.index()] as usize].ready.contains(queue)
    }

    /// The queue to serve next. It stays ready; what it is granted counts as used until [`Arbiter::give_back`].
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an arbiter is not an iterator: what it yields depends on calls between"
    )]
    pub fn next(&mut self) -> Option<Grant> {
        if self.mode == Arbitration::RoundRobin {
            return self.grant(FIRST, self.shares.burst);
        }
        self.next_by_class()
    }

    /// The queue had `unused` commands fewer than it was granted: its class may take them elsewhere in this round.
    #[inline]
    pub fn give_back(&mut self, grant: Grant, unused: u32) {
        let class = grant.class as usize;
        if WEIGHTED.contains(&class) {
            let weight = self.shares.weights[class - WEIGHTED.start];
            let credit = &mut self.classes[class].credit;
            *credit = weight.min(*credit + unused.min(grant.commands));
        }
    }

    fn next_by_class(&mut self) -> Option<Grant> {
        for class in [FIRST, URGENT] {
            if let ControlFlow::Break(served) = self.serve(class, self.shares.burst) {
                return served;
            }
        }
        // What is left of one round, and the next one.
        for _ in 0..2 {
            for class in WEIGHTED {
                let commands = self.shares.burst.min(self.classes[class].credit);
                if let ControlFlow::Break(served) = self.serve(class, commands) {
                    return served;
                }
            }
            self.begin_round();
        }
        None
    }

    /// Whether a class has its turn, and who of it is served: nobody where those with commands wait.
    fn serve(&mut self, class: usize, commands: u32) -> ControlFlow<Option<Grant>> {
        match self.grant(class, commands) {
            Some(grant) => ControlFlow::Break(Some(grant)),
            None if commands > 0 && !self.classes[class].waiting.is_empty() => ControlFlow::Break(None),
            None => ControlFlow::Continue(()),
        }
    }

    #[inline]
    fn grant(&mut self, class: usize, commands: u32) -> Option<Grant> {
        if commands == 0 {
            return None;
        }
        let place = &mut self.classes[class];
        let queue = place.ready.after(place.last)?;
        place.last = queue;
        place.credit = place.credit.saturating_sub(commands);
        Some(Grant { queue, commands, class: class as u8 })
    }

    fn begin_round(&mut self) {
        for (class, weight) in WEIGHTED.zip(self.shares.weights) {
            self.classes[class].credit = weight;
        }
    }

    #[inline]
    fn class_mut(&mut self, queue: QueueId) -> &mut Class {
        &mut self.classes[self.class_of[queue.index()] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHARES: ArbitrationShares = ArbitrationShares { burst: 4, weights: [8, 5, 2] };

    #[test]
    fn the_feature_counts_from_zero() {
        let shares = ArbitrationShares::from_feature(0xff_07_00_02);
        assert_eq!(shares, ArbitrationShares { burst: 4, weights: [256, 8, 1] });
        assert_eq!(ArbitrationShares::from_feature(7).burst, u32::MAX);
    }

    #[test]
    fn nobody_ready_nobody_served() {
        for mode in [Arbitration::RoundRobin, Arbitration::Weighted] {
            let mut arbiter = Arbiter::new(0x1_0000, mode, SHARES);
            arbiter.ready(QueueId(u16::MAX));
            assert_eq!(arbiter.next().map(|grant| grant.queue), Some(QueueId(u16::MAX)));
            arbiter.idle(QueueId(u16::MAX));
            assert_eq!(arbiter.next(), None);
        }
    }

    #[test]
    fn admin_then_urgent_then_weights() {
        let mut arbiter = Arbiter::new(8, Arbitration::Weighted, SHARES);
        for (queue, priority) in [(2, QueuePriority::Low), (3, QueuePriority::High), (4, QueuePriority::Medium)] {
            arbiter.set_priority(QueueId(queue), priority);
            arbiter.ready(QueueId(queue));
        }
        arbiter.ready(QueueId(1));
        arbiter.ready(QueueId(0));
        assert_eq!(arbiter.next().unwrap().queue, QueueId(0));
        arbiter.idle(QueueId(0));
        assert_eq!(arbiter.next().unwrap().queue, QueueId(1));
        arbiter.idle(QueueId(1));
        let round = std::array::from_fn(|_| arbiter.next().map(|grant| (grant.queue.0, grant.commands)).unwrap());
        assert_eq!(round, [(3, 4), (3, 4), (4, 4), (4, 1), (2, 2), (3, 4), (3, 4)]);
    }

    /// Credits of a drive come back one at a time, and who had the last one is asked for more only when it has answered.
    #[test]
    fn nobody_goes_before_a_queue_of_a_higher_class_that_waits() {
        let weights = [16, 4, 1];
        let mut arbiter = Arbiter::new(8, Arbitration::Weighted, ArbitrationShares { burst: 64, weights });
        let classes = [QueuePriority::Urgent, QueuePriority::High, QueuePriority::Medium, QueuePriority::Low];
        for (queue, priority) in (1..).map(QueueId).zip(classes) {
            arbiter.set_priority(queue, priority);
            arbiter.ready(queue);
        }
        arbiter.wait(QueueId(1));
        assert_eq!(arbiter.next(), None, "the urgent one waits");
        arbiter.idle(QueueId(1));
        let mut served = [0; 3];
        for _ in 0..2100 {
            let grant = arbiter.next().expect("whoever waited is ready again");
            arbiter.give_back(grant, grant.commands - 1);
            let class = grant.queue.index() - 2;
            served[class] += 1;
            arbiter.wait(grant.queue);
            if served[class] % weights[class] > 0 {
                assert_eq!(arbiter.next(), None, "its class has some left in this round");
            }
            arbiter.ready(grant.queue);
        }
        assert_eq!(served, [1600, 400, 100]);
    }

    #[test]
    fn a_queue_that_waits_waits_in_its_new_class() {
        let mut arbiter = Arbiter::new(8, Arbitration::Weighted, SHARES);
        arbiter.set_priority(QueueId(2), QueuePriority::Medium);
        arbiter.ready(QueueId(2));
        arbiter.wait(QueueId(1));
        arbiter.set_priority(QueueId(1), QueuePriority::Low);
        assert_eq!(arbiter.next().map(|grant| grant.queue.0), Some(2));
        arbiter.set_priority(QueueId(1), QueuePriority::High);
        assert_eq!(arbiter.next(), None);
    }

    #[test]
    fn what_a_short_queue_leaves_goes_to_its_class() {
        let mut arbiter = Arbiter::new(8, Arbitration::Weighted, SHARES);
        for queue in [1, 2] {
            arbiter.set_priority(QueueId(queue), QueuePriority::Low);
            arbiter.ready(QueueId(queue));
        }
        let grant = arbiter.next().unwrap();
        arbiter.give_back(grant, 1);
        assert_eq!(arbiter.next().map(|grant| (grant.queue.0, grant.commands)), Some((2, 1)));
    }

    proptest! {
        /// Between two services of a queue every other queue that was ready all the while is served.
        #[test]
        fn round_robin_passes_nobody_over(steps in prop::collection::vec((0u16..300, 0u8..4), 1..600)) {
            let mut arbiter = Arbiter::new(300, Arbitration::RoundRobin, SHARES);
            let mut served = [0usize; 300];
            let mut ready_since = [usize::MAX; 300];
            for (now, (queue, step)) in steps.into_iter().enumerate().map(|(at, step)| (at + 1, step)) {
                match step {
                    0 => {
                        arbiter.idle(QueueId(queue));
                        ready_since[queue as usize] = usize::MAX;
                    }
                    1 => {
                        arbiter.ready(QueueId(queue));
                        ready_since[queue as usize] = ready_since[queue as usize].min(now);
                    }
                    _ => {
                        let Some(grant) = arbiter.next() else {
                            prop_assert!(ready_since.iter().all(|since| *since == usize::MAX));
                            continue;
                        };
                        let before = served[grant.queue.index()];
                        prop_assert!(ready_since[grant.queue.index()] < now);
                        if before > 0 {
                            for other in (0..300).filter(|other| ready_since[*other] < before) {
                                let in_turn = other == grant.queue.index() || served[other] > before;
                                prop_assert!(in_turn, "{other} passed over");
                            }
                        }
                        served[grant.queue.index()] = now;
                    }
                }
            }
        }

        /// With every class busy, whole rounds share out exactly by weight, whatever the burst.
        #[test]
        fn weights_are_shares(
            weights in [1u32..=256, 1u32..=256, 1u32..=256], burst_bits in 0u32..8, queues in 1u16..5,
        ) {
            let feature = burst_bits | (weights[0] - 1) << 24 | (weights[1] - 1) << 16 | (weights[2] - 1) << 8;
            let shares = ArbitrationShares::from_feature(feature);
            prop_assert_eq!(shares.weights, weights);
            let mut arbiter = Arbiter::new(64, Arbitration::Weighted, shares);
            let classes = [QueuePriority::High, QueuePriority::Medium, QueuePriority::Low];
            for queue in 0..3 * queues {
                arbiter.set_priority(QueueId(queue + 1), classes[queue as usize % 3]);
                arbiter.ready(QueueId(queue + 1));
            }
            let mut served = [0u32; 3];
            while served.iter().sum::<u32>() < 5 * weights.iter().sum::<u32>() {
                let grant = arbiter.next().unwrap();
                prop_assert!(grant.commands <= shares.burst);
                served[(grant.queue.index() - 1) % 3] += grant.commands;
            }
            prop_assert_eq!(served, weights.map(|weight| 5 * weight));
        }
    }
}
