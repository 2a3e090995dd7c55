//! The way from one thread to another: a short ring, written and read in batches, and the letters that found no room in it.

use rtrb::{Consumer, Producer, RingBuffer};
use units::StageId;

/// Letters that stand in a ring at most. What a plan admits between two threads may be a hundred thousand, of which a few hundred are ever
/// under way: a ring as long as that is gone through from end to end, and each letter is written to memory that is far away by then. One of
/// this length stays in the second cache of both sides.
const RING_MAX: usize = 256;

/// A message on its way to a stage of another thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter<M> {
    pub(crate) to: StageId,
    pub(crate) message: M,
}

/// The end that one thread writes.
#[derive(Debug)]
pub(crate) struct Sender<M> {
    ring: Producer<Letter<M>>,
    /// Letters that are not in the ring yet, behind so many that are.
    batch: Vec<Letter<M>>,
    sent: usize,
    /// How many can be under way.
    admitted: usize,
}

/// The end that one other thread reads.
#[derive(Debug)]
pub(crate) struct Receiver<M> {
    ring: Consumer<Letter<M>>,
}

/// A way on which at most `admitted` letters are under way.
pub(crate) fn ring<M>(admitted: usize) -> (Sender<M>, Receiver<M>) {
    ring_of(admitted.min(RING_MAX), admitted)
}

fn ring_of<M>(length: usize, admitted: usize) -> (Sender<M>, Receiver<M>) {
    let (producer, consumer) = RingBuffer::new(length);
    (Sender { ring: producer, batch: Vec::new(), sent: 0, admitted }, Receiver { ring: consumer })
}

impl<M: Copy> Sender<M> {
    /// Puts a letter into the batch that the next [`Sender::flush`] sends.
    #[inline]
    pub(crate) fn push(&mut self, letter: Letter<M>) {
        self.batch.push(letter);
    }

    /// Makes the letters of the batch visible to the receiver, all at once where the ring has room for them; whether any were.
    #[inline]
    pub(crate) fn flush(&mut self) -> bool {
        if self.batch.is_empty() {
            return false;
        }
        if self.ring.push_entire_slice(&self.batch[self.sent..]).is_ok() {
            self.batch.clear();
            self.sent = 0;
            return true;
        }
        self.flush_part()
    }

    /// Those that the ring has room for. The others wait for the next time.
    #[cold]
    fn flush_part(&mut self) -> bool {
        let (in_ring, behind) = self.ring.push_partial_slice(&self.batch[self.sent..]);
        let sent = in_ring.len();
        let (admitted, under_way) = (self.admitted, self.ring.buffer().capacity() + behind.len());
        self.sent += sent;
        // Seldom, so that each letter is moved once at most in the mean.
        if self.sent > self.batch.len() / 2 {
            self.batch.drain(..self.sent);
            self.sent = 0;
        }
        assert!(
            under_way <= admitted,
            "more than the {admitted} messages that the plan admits are under way between two threads"
        );
        sent > 0
    }

    /// Whether letters wait for room in the ring, or for a flush.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        !self.batch.is_empty()
    }
}

impl<M: Copy> Receiver<M> {
    /// Takes at most `limit` letters, in the order they were pushed.
    #[inline]
    pub(crate) fn pop_batch(&mut self, limit: usize, each: impl FnMut(Letter<M>)) {
        let waiting = self.ring.slots().min(limit);
        if waiting > 0 {
            let letters = self.ring.read_chunk(waiting).expect("that many letters wait");
            letters.into_iter().for_each(each);
        }
    }

    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Against a queue of the standard library; batches wrap around the end of the ring, and some do not fit in.
        #[test]
        fn letters_come_once_and_in_order(
            length in 1usize..=13,
            steps in proptest::collection::vec((0usize..6, 0usize..6), 1..100),
        ) {
            let (mut sender, mut receiver) = ring_of(length, 13);
            let (mut model, mut next) = (VecDeque::new(), 0u16);
            for (pushes, pops) in steps {
                for _ in 0..pushes.min(13 - model.len()) {
                    sender.push(Letter { to: StageId(next), message: next });
                    model.push_back(next);
                    next += 1;
                }
                sender.flush();
                prop_assert_eq!(sender.is_behind(), model.len() > length);
                let mut taken = Vec::new();
                receiver.pop_batch(pops, |letter| taken.push((letter.to.0, letter.message)));
                let expected: Vec<_> = model.drain(..pops.min(model.len()).min(length)).map(|it| (it, it)).collect();
                prop_assert_eq!(taken, expected);
                sender.flush();
                prop_assert_eq!(receiver.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    #[should_panic(expected = "more than the 2 messages")]
    fn more_than_is_admitted_is_our_own_fault() {
        let (mut sender, _receiver) = ring(2);
        for message in 0..3 {
            sender.push(Letter { to: StageId(0), message });
        }
        sender.flush();
    }
}
