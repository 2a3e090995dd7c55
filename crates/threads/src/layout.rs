//! How many threads there are, and which stage takes its turns on which.

use stage::{Part, Place, Vocabulary};

/// The threads that a blueprint is dealt to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Threads of the operating system, one at least.
    pub threads: usize,
    /// Whether each is bound to a processor: thread t to the t-th of those this process may use, round robin.
    pub pin: bool,
}

impl Layout {
    /// The thread of each stage, in the order of the plan.
    ///
    /// Core c of the plan lives on thread c modulo their number, so stages of one core stay together. Hardware is dealt
    /// out one stage at a time, from the last thread down: to the threads that no core is left for if there are any,
    /// else to all of them.
    pub fn homes<V: Vocabulary>(&self, parts: &[Part<V>]) -> Vec<usize> {
        assert!(self.threads > 0, "a layout has at least one thread");
        let cores = |part: &Part<V>| match part.place {
            Place::Core(core) => core.index() + 1,
            Place::Hardware => 0,
        };
        let spare = self.threads.saturating_sub(parts.iter().map(cores).max().unwrap_or(0));
        let for_hardware = if spare > 0 { spare } else { self.threads };
        let mut dealt = 0;
        let home = |part: &Part<V>| match part.place {
            Place::Core(core) => core.index() % self.threads,
            Place::Hardware => {
                dealt += 1;
                self.threads - 1 - (dealt - 1) % for_hardware
            }
        };
        parts.iter().map(home).collect()
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
    fn cores_are_dealt_round_robin_and_hardware_to_what_they_leave() {
        let core = |at| Place::Core(CoreId(at));
        let places = [core(0), core(1), core(2), core(1), Place::Hardware, Place::Hardware, Place::Hardware];
        let parts = places.map(|place| Part::<Mute> { name: String::new(), group: "", place, inbox: 0, stage: None });
        let homes = |threads| Layout { threads, pin: false }.homes(&parts);
        assert_eq!(homes(1), [0; 7]);
        assert_eq!(homes(2), [0, 1, 0, 1, 1, 0, 1], "no thread is left, so hardware goes to all");
        assert_eq!(homes(4), [0, 1, 2, 1, 3, 3, 3]);
        assert_eq!(homes(5), [0, 1, 2, 1, 4, 3, 4]);
    }
}
