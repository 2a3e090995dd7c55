//! The host's side of the queues: putting commands in and taking completions out (Base §3.3.1.2).

use crate::HostMemory;
use crate::spec::{COMPLETION_BYTES, Completion, SUBMISSION_BYTES, Submission};
use units::{HostAddress, QueueId};

/// What this machine brings near at a time.
const LINE_BYTES: u64 = 64;

/// A submission queue as the host sees it.
#[derive(Clone, Copy, Debug)]
pub struct HostSubmissionQueue {
    base: HostAddress,
    last: u16,
    head: u16,
    tail: u16,
}

impl HostSubmissionQueue {
    /// An empty queue of 2 to 65,536 entries.
    pub fn new(base: HostAddress, entries: u32) -> Self {
        assert!((2..=0x1_0000).contains(&entries), "a queue of {entries} entries");
        HostSubmissionQueue { base, last: (entries - 1) as u16, head: 0, tail: 0 }
    }

    /// Puts a command in. The value is the tail to ring the doorbell with, once for as many commands as one likes;
    /// `None` where the queue is full.
    #[inline]
    pub fn push(&mut self, memory: &(impl HostMemory + ?Sized), submission: Submission) -> Option<u16> {
        let next = if self.tail == self.last { 0 } else { self.tail + 1 };
        if next == self.head {
            return None;
        }
        memory.write_words(self.base + self.tail as u64 * SUBMISSION_BYTES, &submission.0);
        // The last word of the next entry: where entries do not begin a line, its first is near already.
        memory.prefetch(self.base + ((next as u64 + 1) * SUBMISSION_BYTES - 8));
        self.tail = next;
        Some(next)
    }

    /// A completion said how far the device has fetched.
    #[inline]
    pub fn fetched_to(&mut self, head: u16) {
        assert!(head <= self.last, "the device's head {head} is outside the queue");
        self.head = head;
    }

    /// The tail as it stands.
    #[inline]
    pub fn tail(&self) -> u16 {
        self.tail
    }
}

/// A completion queue as the host sees it. Its memory must be zero before the device is told of it.
#[derive(Clone, Copy, Debug)]
pub struct HostCompletionQueue {
    base: HostAddress,
    last: u16,
    head: u16,
    phase: bool,
}

impl HostCompletionQueue {
    /// An empty queue of 2 to 65,536 entries.
    pub fn new(base: HostAddress, entries: u32) -> Self {
        assert!((2..=0x1_0000).contains(&entries), "a queue of {entries} entries");
        HostCompletionQueue { base, last: (entries - 1) as u16, head: 0, phase: true }
    }

    /// Takes the next completion, if its phase tag says that it is there.
    #[inline]
    pub fn reap(&mut self, memory: &(impl HostMemory + ?Sized)) -> Option<Completion> {
        let at = self.base + self.head as u64 * COMPLETION_BYTES;
        let mut completion = Completion::default();
        // The word with the phase first: whatever was written before it is there once it is seen.
        memory.read_words(at + 8, &mut completion.0[1..]);
        if completion.phase() != self.phase {
            return None;
        }
        memory.read_words(at, &mut completion.0[..1]);
        memory.prefetch(at + LINE_BYTES);
        self.phase ^= self.head == self.last;
        self.head = if self.head == self.last { 0 } else { self.head + 1 };
        Some(completion)
    }

    /// The value to ring the head doorbell with, once for as many completions as one likes.
    #[inline]
    pub fn head(&self) -> u16 {
        self.head
    }
}

/// A submission queue with a completion queue of its own.
#[derive(Clone, Copy, Debug)]
pub struct HostQueuePair {
    id: QueueId,
    submissions: HostSubmissionQueue,
    completions: HostCompletionQueue,
}

impl HostQueuePair {
    /// A pair under the identifier `id`.
    pub fn new(id: QueueId, submissions: HostSubmissionQueue, completions: HostCompletionQueue) -> Self {
        HostQueuePair { id, submissions, completions }
    }

    /// The identifier of both queues.
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// As [`HostSubmissionQueue::push`].
    #[inline]
    pub fn push(&mut self, memory: &(impl HostMemory + ?Sized), submission: Submission) -> Option<u16> {
        self.submissions.push(memory, submission)
    }

    /// As [`HostCompletionQueue::reap`]; also learns which submission entries are free again.
    #[inline]
    pub fn reap(&mut self, memory: &(impl HostMemory + ?Sized)) -> Option<Completion> {
        let completion = self.completions.reap(memory)?;
        self.submissions.fetched_to(completion.sq_head());
        Some(completion)
    }

    /// As [`HostSubmissionQueue::tail`].
    #[inline]
    pub fn tail(&self) -> u16 {
        self.submissions.tail()
    }

    /// As [`HostCompletionQueue::head`].
    #[inline]
    pub fn head(&self) -> u16 {
        self.completions.head()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::SmallMemory;
    use crate::spec::Status;
    use crate::{CompletionQueue, SubmissionQueue};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A device that completes commands in order, at most as many as it has room to post.
    fn serve(memory: &SmallMemory, queue: &mut SubmissionQueue, completions: &mut CompletionQueue, limit: u32) {
        let Some(run) = queue.take(limit.min(completions.free())) else { return };
        for at in 0..run.entries {
            let mut submission = Submission::default();
            memory.read_words(run.at + u64::from(at) * SUBMISSION_BYTES, &mut submission.0);
            let place = completions.reserve(1).expect("room was asked for");
            let completion = Completion::new(
                submission.slba(),
                queue.head(),
                QueueId(1),
                submission.command_id(),
                place.phase,
                Status::SUCCESS,
            );
            memory.write_words(place.at, &completion.0);
        }
    }

    proptest! {
        /// Both ends against a plain queue: nothing is lost, doubled or reordered over many wraps, and full is noticed
        /// in time.
        #[test]
        fn both_ends_agree(
            entries in 2u32..20, completion_entries in 2u32..20,
            steps in prop::collection::vec((0u8..3, 1u32..20), 1..400),
        ) {
            let memory = SmallMemory::with_words(20 * 8 + 20 * 2);
            let at = HostAddress(20 * 64);
            let mut host = HostQueuePair::new(
                QueueId(1),
                HostSubmissionQueue::new(HostAddress(0), entries),
                HostCompletionQueue::new(at, completion_entries),
            );
            let mut device = SubmissionQueue::new(HostAddress(0), entries);
            let mut completions = CompletionQueue::new(at, completion_entries);
            let mut model = VecDeque::new();
            let mut sent = 0u64;
            for (step, count) in steps {
                match step {
                    0 => {
                        let before = host.tail();
                        for _ in 0..count {
                            let write = Submission::write(1, sent, 1, Default::default());
                            match host.push(&memory, write.with_command_id(sent as u16)) {
                                Some(_) => model.push_back(sent),
                                None => break,
                            }
                            sent += 1;
                        }
                        if host.tail() != before {
                            prop_assert_eq!(device.ring(u32::from(host.tail())), Ok(()));
                        }
                    }
                    1 => serve(&memory, &mut device, &mut completions, count),
                    _ => {
                        let before = host.head();
                        let reaped = std::iter::from_fn(|| host.reap(&memory)).take(count as usize);
                        for completion in reaped {
                            prop_assert_eq!(Some(completion.result()), model.pop_front());
                            prop_assert_eq!(completion.command_id(), completion.result() as u16);
                        }
                        if host.head() != before {
                            prop_assert_eq!(completions.ring(u32::from(host.head())), Ok(()));
                        }
                    }
                }
                prop_assert!(model.len() as u32 <= (entries - 1) + (completion_entries - 1));
            }
        }
    }
}
