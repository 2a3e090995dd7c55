//! How many threads there are, and which stage takes its turns on which.

use stage::{CoreDeal, Edge, Part, Place, Vocabulary};
use units::StageId;

/// The threads that a blueprint is dealt to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Threads of the operating system, one at least.
    pub threads: usize,
    /// Whether each is bound to a processor: thread t to the t-th of those this process may use, round robin.
    pub pin: bool,
    /// What leaves the thread that has all cores, where there are others.
    pub apart: Apart,
}

/// What leaves the thread that has all cores: nothing else would use the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Apart {
    /// All hardware. One thread has all firmware and nothing else.
    #[default]
    Hardware,
    /// Who tells no core anything: the host. One thread has the whole drive.
    Host,
}

impl Layout {
    /// So many threads, which are bound to no processor.
    pub fn on(threads: usize) -> Layout {
        Layout { threads, pin: false, apart: Apart::default() }
    }

    /// The thread of each stage, in the order of the plan.
    ///
    /// Cores of the plan that follow each other share a thread, for threads of a group, and groups that talk to each other, are on
    /// neighbouring cores: what stays on a thread need not cross to another. Hardware lives with most of those on cores that it tells
    /// something. Who tells no core anything, the host, lives on a thread that no core is left for, or on the last one. Where one thread
    /// has all cores and there are others, what is apart is dealt to those, one stage at a time from the last down.
    pub fn homes<V: Vocabulary>(&self, parts: &[Part<V>], edges: &[Edge]) -> Vec<usize> {
        assert!(self.threads > 0, "a layout has at least one thread");
        let core = |part: &Part<V>| match part.place {
            Place::Core(core) => Some(core),
            Place::Hardware => None,
        };
        let deal = CoreDeal::new(parts.iter().filter_map(core), self.threads);
        let home = |stage: StageId| core(&parts[stage.index()]).map(|core| deal.home(core));
        let beside = |stage: StageId| {
            let mut neighbours = vec![0; self.threads];
            for thread in edges.iter().filter(|edge| edge.from == stage).filter_map(|edge| home(edge.to)) {
                neighbours[thread] += 1;
            }
            // Of several the first.
            (0..self.threads).rev().max_by_key(|&thread| neighbours[thread]).filter(|&thread| neighbours[thread] > 0)
        };
        let spare = self.threads - deal.threads();
        let mut dealt = 0;
        let mut apart = || {
            dealt += 1;
            self.threads - 1 - (dealt - 1) % spare.max(1)
        };
        let all_apart = self.apart == Apart::Hardware && deal.threads() == 1 && spare > 0;
        let homes = (0..parts.len() as u16).map(StageId).map(|id| {
            let company = || if all_apart { None } else { beside(id) };
            home(id).or_else(company).unwrap_or_else(&mut apart)
        });
        homes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::CoreId;

    struct Mute;
    impl Vocabulary for Mute {
        type Message = ();
        type Work = ();
        type Note = ();
        const WORK: &'static [&'static str] = &[];
        fn work_index(_work: ()) -> usize {
            unreachable!("there is no work")
        }
        fn subject(_message: &()) -> Option<u32> {
            None
        }
        fn lock_granted(_lock: u32) {}
    }

    #[test]
    fn neighbouring_cores_share_a_thread_and_hardware_lives_with_whom_it_talks_to() {
        let core = |at| Place::Core(CoreId(at));
        let places = [core(0), core(1), core(2), core(1), Place::Hardware, Place::Hardware, Place::Hardware];
        let part = |place| Part::<Mute> { name: String::new(), group: "", place, inbox: 0, stage: None };
        let parts = places.map(part);
        let edge = |(from, to)| Edge { from: StageId(from), to: StageId(to), at_most: 1 };
        let edges = [(4, 0), (3, 4), (2, 4), (5, 4), (2, 6), (6, 2)].map(edge);
        let homes = |threads| Layout::on(threads).homes(&parts, &edges);
        assert_eq!(homes(1), [0; 7]);
        assert_eq!(homes(2), [0, 0, 1, 0, 0, 1, 1], "the second of hardware talks to no core");
        assert_eq!(homes(3), [0, 1, 2, 1, 0, 2, 2], "of three the first");
        assert_eq!(homes(4), [0, 1, 2, 1, 0, 3, 2], "it has a thread of its own");
        assert_eq!(homes(5), [0, 1, 2, 1, 0, 4, 2]);
        let far = [core(10), core(40), Place::Hardware].map(part);
        assert_eq!(Layout::on(2).homes(&far, &[]), [0, 1, 1], "cores that nobody uses");
        let one = [core(0), Place::Hardware, Place::Hardware, Place::Hardware].map(part);
        let edges = [(0, 1), (1, 2), (0, 3)].map(edge);
        assert_eq!(Layout::on(2).homes(&one, &edges), [0, 1, 1, 1], "all of the work that can be elsewhere");
        assert_eq!(Layout::on(3).homes(&one, &edges), [0, 2, 1, 2]);
        let edges = [(0, 1), (1, 0), (0, 2), (2, 0), (3, 1)].map(edge);
        let homes = |apart| Layout { apart, ..Layout::on(2) }.homes(&one, &edges);
        assert_eq!([Apart::Hardware, Apart::Host].map(homes), [[0, 1, 1, 1], [0, 0, 0, 1]], "a drive, and its host");
    }
}
