//! The data cache of PipeSSD: its lines, which NVMe Post alone writes, and what Post tells the stages before it through words that
//! they look at. So nothing runs back up the pipeline, and each word has one writer.

use crate::Turn;
use crate::message::{CommandKey, HostPlace};
use crate::tables::Tables;
use stage::{SharedMemory, Words};
use units::Lpn;

/// What a cacheline holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The sub-request that was the last on it; 0 is none yet.
    pub(crate) last: u32,
    /// Its frame.
    pub(crate) frame: u32,
    /// The page, if it holds one.
    pub(crate) lpn: Option<Lpn>,
    /// Whether flash does not have it.
    pub(crate) dirty: bool,
}

/// A sub-request that has left the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retired {
    /// Its slot, which is free.
    pub(crate) slot: u16,
    /// The line that it was the last on.
    pub(crate) line: u32,
    /// A frame that came free.
    pub(crate) frame: Option<u32>,
    /// Whether its command has failed by it.
    pub(crate) has_failed: bool,
}

const LINE_WORDS: usize = 2;
const RETIRED_WORDS: usize = 2;
const DESCRIPTOR_WORDS: usize = HostPlace::WORDS;
const PAIR_WORDS: usize = HostPlace::WORDS + 1;
const DIRTY: u64 = 1 << 32;

/// Who looks at what was retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watcher {
    /// For free slots.
    Fetch,
    /// For free frames, and lines that the waitlist waits for.
    Fil,
}

/// The words that the stages of the pipeline share.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    /// Two words a line. Writer: NVMe Post.
    lines: Words,
    /// A ring of what was retired. Writer: NVMe Post.
    retired: Words,
    /// How much was retired. Writer: NVMe Post.
    tail: Words,
    /// Where the data of each slot's sub-request lie in host memory. Writer: NVMe Fetch.
    descriptors: Words,
    /// The same for the Write of a fused pair, with its key. Writer: NVMe Fetch.
    pairs: Words,
    /// How many pages FIL has moved for reclaim. Writer: FIL.
    moved: Words,
    /// Whether the event line of each [`Watcher`] is pulled.
    pulled: Words,
    slots: usize,
}

impl Pipeline {
    /// For so many sub-requests in the pipeline. The frame of a line is its number at first.
    pub(crate) fn new(memory: &mut SharedMemory, lines: usize, slots: usize) -> Self {
        let pipeline = Pipeline {
            lines: memory.wide(lines * LINE_WORDS),
            retired: memory.wide(slots * RETIRED_WORDS),
            tail: memory.wide(Tables::line(1)),
            descriptors: memory.wide(slots * DESCRIPTOR_WORDS),
            moved: memory.wide(Tables::line(1)),
            pulled: memory.wide(Tables::line(2)),
            pairs: memory.wide(slots * PAIR_WORDS),
            slots,
        };
        for line in 0..lines {
            pipeline.lines.set(line * LINE_WORDS, line as u64);
        }
        pipeline
    }

    /// Sub-requests that can be in the pipeline.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Reads a line.
    pub(crate) fn line(&self, turn: &mut Turn<'_>, line: u32) -> Line {
        let at = line as usize * LINE_WORDS;
        let first = turn.load(&self.lines, at);
        let second = self.lines.get(at + 1);
        let lpn = (second as u32).checked_sub(1).map(Lpn);
        Line { last: (first >> 32) as u32, frame: first as u32, lpn, dirty: second & DIRTY != 0 }
    }

    /// Writes a line: NVMe Post only. Who reads the first word sees the second.
    pub(crate) fn set_line(&self, turn: &mut Turn<'_>, line: u32, held: Line) {
        let at = line as usize * LINE_WORDS;
        let tag = held.lpn.map_or(0, |lpn| u64::from(lpn.0) + 1);
        self.lines.set(at + 1, tag | if held.dirty { DIRTY } else { 0 });
        turn.store(&self.lines, at, u64::from(held.last) << 32 | u64::from(held.frame));
    }

    /// Tells that a sub-request has left the pipeline: NVMe Post only.
    ///
    /// A slot stands in the ring at most once before NVMe Fetch has taken it out, so the ring never overruns a reader.
    pub(crate) fn retire(&self, turn: &mut Turn<'_>, retired: Retired) {
        let tail = self.tail.get(0);
        let at = tail as usize % self.slots * RETIRED_WORDS;
        let Retired { slot, line, frame, has_failed } = retired;
        self.retired.set(at, u64::from(has_failed) << 48 | u64::from(slot) << 32 | u64::from(line));
        self.retired.set(at + 1, frame.map_or(0, |frame| u64::from(frame) + 1));
        turn.store(&self.tail, 0, tail + 1);
    }

    /// How many sub-requests have left the pipeline.
    pub(crate) fn retired(&self, turn: &mut Turn<'_>) -> u64 {
        turn.load(&self.tail, 0)
    }

    /// What was retired after so much, one at a time; the look at how much costs a line.
    pub(crate) fn retired_since(&self, turn: &mut Turn<'_>, head: u64) -> impl Iterator<Item = Retired> + use<> {
        let tail = self.retired(turn);
        let (ring, slots) = (self.retired.clone(), self.slots);
        (head..tail).map(move |count| {
            let at = count as usize % slots * RETIRED_WORDS;
            let (first, second) = (ring.get(at), ring.get(at + 1));
            let frame = second.checked_sub(1).map(|frame| frame as u32);
            Retired { slot: (first >> 32) as u16, line: first as u32, frame, has_failed: first >> 48 != 0 }
        })
    }

    /// Says that a watcher must look; whether its event line is to be pulled for that, or is still.
    pub(crate) fn alert(&self, turn: &mut Turn<'_>, watcher: Watcher) -> bool {
        // Both ends change the flag in one step: whichever comes second sees what the other did before.
        turn.fetch_add(&self.pulled, Tables::line(watcher as usize), 1) == 0
    }

    /// A watcher is about to look.
    pub(crate) fn hear(&self, watcher: Watcher) {
        self.pulled.take_bits(Tables::line(watcher as usize));
    }

    /// Writes where a slot's data lie: NVMe Fetch only.
    pub(crate) fn describe(&self, turn: &mut Turn<'_>, slot: u16, place: HostPlace) {
        put(turn, &self.descriptors, usize::from(slot) * DESCRIPTOR_WORDS, &place.words());
    }

    /// Reads where a slot's data lie.
    pub(crate) fn described(&self, turn: &mut Turn<'_>, slot: u16) -> HostPlace {
        HostPlace::from_words(take(turn, &self.descriptors, usize::from(slot) * DESCRIPTOR_WORDS))
    }

    /// Writes where the data of a slot's paired Write lie, and whose it is: NVMe Fetch only.
    pub(crate) fn describe_pair(&self, turn: &mut Turn<'_>, slot: u16, key: CommandKey, place: HostPlace) {
        let [first, rest, bytes] = place.words();
        put(turn, &self.pairs, usize::from(slot) * PAIR_WORDS, &[first, rest, bytes, key.0.into()]);
    }

    /// Reads where the data of a slot's paired Write lie, and whose it is.
    pub(crate) fn described_pair(&self, turn: &mut Turn<'_>, slot: u16) -> (CommandKey, HostPlace) {
        let [first, rest, bytes, key] = take(turn, &self.pairs, usize::from(slot) * PAIR_WORDS);
        (CommandKey(key as u32), HostPlace::from_words([first, rest, bytes]))
    }

    /// Counts a page that was moved: FIL only.
    pub(crate) fn count_moved(&self, turn: &mut Turn<'_>) {
        let moved = self.moved.get(0);
        turn.store(&self.moved, 0, moved + 1);
    }

    /// How many pages were moved.
    pub(crate) fn moved(&self, turn: &mut Turn<'_>) -> u64 {
        turn.load(&self.moved, 0)
    }
}

/// Writes words that are read together, for the price of their line.
fn put(turn: &mut Turn<'_>, table: &Words, at: usize, words: &[u64]) {
    turn.store(table, at, words[0]);
    table.write(at + 1, &words[1..]);
}

/// Reads them.
fn take<const N: usize>(turn: &mut Turn<'_>, table: &Words, at: usize) -> [u64; N] {
    let mut words = [turn.load(table, at); N];
    table.read(at + 1, &mut words[1..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::sample::in_turn;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use units::HostAddress;

    const SLOTS: usize = 5;

    fn pipeline() -> Pipeline {
        Pipeline::new(&mut SharedMemory::default(), 4, SLOTS)
    }

    #[test]
    fn a_line_holds_what_was_put_there_and_others_what_they_held() {
        let (pipeline, most) = (pipeline(), Some(flash::Oob::LPN_MAX));
        let empty = |frame| Line { last: 0, frame, lpn: None, dirty: false };
        for lpn in [None, Some(Lpn(0)), most] {
            for (last, dirty) in [(0, true), (u32::MAX, false)] {
                let held = Line { last, frame: u32::MAX, lpn, dirty };
                in_turn(|turn| pipeline.set_line(turn, 1, held));
                let lines = [0, 1, 2, 3].map(|line| in_turn(|turn| pipeline.line(turn, line)));
                assert_eq!(lines, [empty(0), held, empty(2), empty(3)]);
            }
        }
    }

    proptest! {
        /// A watcher is never further behind than there are slots.
        #[test]
        fn what_was_retired_comes_out_once_and_in_order(
            steps in prop::collection::vec((any::<bool>(), any::<u16>(), any::<u32>(), any::<Option<u32>>()), 1..40)
        ) {
            let (pipeline, mut waiting, mut head) = (pipeline(), VecDeque::new(), 0);
            for (looks, slot, line, frame) in steps {
                if !looks && waiting.len() < SLOTS {
                    let retired = Retired { slot, line, frame, has_failed: line % 2 == 0 };
                    in_turn(|turn| pipeline.retire(turn, retired));
                    waiting.push_back(retired);
                } else {
                    let seen: Vec<_> = in_turn(|turn| pipeline.retired_since(turn, head).collect());
                    prop_assert_eq!(&seen, &waiting.drain(..).collect::<Vec<_>>());
                    head += seen.len() as u64;
                    prop_assert_eq!(in_turn(|turn| pipeline.retired(turn)), head);
                }
            }
        }
    }

    #[test]
    fn a_watcher_is_pulled_once_until_it_looks() {
        let pipeline = pipeline();
        let alert = |watcher| in_turn(|turn| pipeline.alert(turn, watcher));
        assert_eq!([Watcher::Fetch, Watcher::Fetch, Watcher::Fil].map(alert), [true, false, true]);
        pipeline.hear(Watcher::Fetch);
        assert_eq!([Watcher::Fetch, Watcher::Fil].map(alert), [true, false]);
        pipeline.hear(Watcher::Fil);
        assert_eq!([Watcher::Fetch, Watcher::Fil].map(alert), [false, true]);
    }

    #[test]
    fn each_slot_says_where_its_own_data_and_those_of_its_pair_lie() {
        let pipeline = pipeline();
        let place =
            |slot: u16, pair: u32| HostPlace::at(HostAddress(u64::from(slot) + 1), 4096 + pair).listed_at(slot.into());
        for slot in 0..SLOTS as u16 {
            in_turn(|turn| pipeline.describe(turn, slot, place(slot, 0)));
            in_turn(|turn| pipeline.describe_pair(turn, slot, CommandKey(slot.into()), place(slot, 1)));
        }
        for slot in 0..SLOTS as u16 {
            assert_eq!(in_turn(|turn| pipeline.described(turn, slot)), place(slot, 0));
            let pair = in_turn(|turn| pipeline.described_pair(turn, slot));
            assert_eq!(pair, (CommandKey(slot.into()), place(slot, 1)));
        }
    }

    #[test]
    fn pages_that_were_moved_are_counted() {
        let pipeline = pipeline();
        (0..3).for_each(|_| in_turn(|turn| pipeline.count_moved(turn)));
        assert_eq!(in_turn(|turn| (pipeline.moved(turn), pipeline.retired(turn))), (3, 0));
    }
}
