//! The way from one thread to another: a ring that holds all that can be under way on it, written and read in batches.

use rtrb::{Consumer, Producer, RingBuffer};
use units::StageId;

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
    batch: Vec<Letter<M>>,
}

/// The end that one other thread reads.
#[derive(Debug)]
pub(crate) struct Receiver<M> {
    ring: Consumer<Letter<M>>,
}

/// A ring with room for `capacity` letters.
pub(crate) fn ring<M>(capacity: usize) -> (Sender<M>, Receiver<M>) {
    let (producer, consumer) = RingBuffer::new(capacity);
    (Sender { ring: producer, batch: Vec::new() }, Receiver { ring: consumer })
}

impl<M: Copy> Sender<M> {
    /// Puts a letter into the batch that the next [`Sender::flush`] sends.
    #[inline]
    pub(crate) fn push(&mut self, letter: Letter<M>) {
        self.batch.push(letter);
    }

    /// Makes the batch visible to the receiver at once; whether there was anything. More than the ring holds is more
    /// than the blueprint's edges admit.
    #[inline]
    pub(crate) fn flush(&mut self) -> bool {
        if self.batch.is_empty() {
            return false;
        }
        let sent = self.ring.push_entire_slice(&self.batch);
        let capacity = self.ring.buffer().capacity();
        assert!(
            sent.is_ok(),
            "more than the {capacity} messages that the plan admits are under way between two threads"
        );
        self.batch.clear();
        true
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
        /// Against a queue of the standard library; batches wrap around the end of the ring.
        #[test]
        fn letters_come_once_and_in_order(steps in proptest::collection::vec((0usize..6, 0usize..6), 1..100)) {
            let (mut sender, mut receiver) = ring(13);
            let (mut model, mut next) = (VecDeque::new(), 0u16);
            for (pushes, pops) in steps {
                for _ in 0..pushes.min(13 - model.len()) {
                    sender.push(Letter { to: StageId(next), message: next });
                    model.push_back(next);
                    next += 1;
                }
                sender.flush();
                let mut taken = Vec::new();
                receiver.pop_batch(pops, |letter| taken.push((letter.to.0, letter.message)));
                let expected: Vec<_> = model.drain(..pops.min(model.len())).map(|it| (it, it)).collect();
                prop_assert_eq!(taken, expected);
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
