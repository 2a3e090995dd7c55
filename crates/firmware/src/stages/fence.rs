//! Fences: whoever raises one is told when every page that was sent to be programmed before it is programmed.
//!
//! A block may be erased only behind a fence: what supersedes its pages must be on flash first, or a power cut between the two
//! loses both.

use crate::message::Requester;
use prefetch_index::prefetch_index;
use std::collections::VecDeque;

/// A fence that something is still to be programmed before.
#[derive(Clone, Copy, Debug)]
struct Fence {
    number: u32,
    /// Pages before it that are not programmed.
    left: u32,
    requester: Requester,
}

/// The pages that one thread has to be programmed, each in a frame of its own, and the fences among them.
#[derive(Debug)]
pub(crate) struct Fences {
    /// For each frame that is being programmed, the number of the first fence behind it.
    behind: Box<[u32]>,
    under_way: u32,
    raised: u32,
    waiting: VecDeque<Fence>,
}

impl Fences {
    /// Among pages in so many frames.
    pub(crate) fn new(frames: u32) -> Fences {
        let behind = vec![0; frames as usize].into_boxed_slice();
        Fences { behind, under_way: 0, raised: 0, waiting: VecDeque::new() }
    }

    /// A frame is to be programmed.
    #[inline]
    pub(crate) fn program(&mut self, frame: u32) {
        self.behind[frame as usize] = self.raised;
        self.under_way += 1;
    }

    /// Brings near what is known of a frame.
    #[inline]
    pub(crate) fn prefetch(&self, frame: u32) {
        prefetch_index(&self.behind[..], frame as usize);
    }

    /// A fence is raised; whether nothing is before it.
    pub(crate) fn raise(&mut self, requester: Requester) -> bool {
        if self.under_way > 0 {
            self.waiting.push_back(Fence { number: self.raised, left: self.under_way, requester });
            self.raised = self.raised.wrapping_add(1);
        }
        self.under_way == 0
    }

    /// A frame is programmed, or will not be.
    #[inline]
    pub(crate) fn programmed(&mut self, frame: u32) {
        self.under_way -= 1;
        if self.waiting.is_empty() {
            return;
        }
        let behind = self.behind[frame as usize];
        for fence in &mut self.waiting {
            // Numbers go round; fences that wait are few.
            fence.left -= u32::from((fence.number.wrapping_sub(behind) as i32) >= 0);
        }
    }

    /// A fence that nothing is before any more: fences come down in the order they were raised.
    #[inline]
    pub(crate) fn lowered(&mut self) -> Option<Requester> {
        self.waiting.pop_front_if(|fence| fence.left == 0).map(|fence| fence.requester)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Asker;

    fn requester(tag: u32) -> Requester {
        Requester { group: Asker::Bgc, index: 0, tag }
    }

    #[test]
    fn a_fence_waits_for_what_came_before_it_only() {
        let mut fences = Fences::new(10);
        assert!(fences.raise(requester(0)), "nothing is before it");
        fences.program(3);
        fences.program(5);
        assert!(!fences.raise(requester(1)));
        fences.program(4);
        assert!(!fences.raise(requester(2)));
        fences.program(9);
        fences.programmed(9);
        fences.programmed(3);
        assert!(fences.lowered().is_none());
        fences.programmed(5);
        assert_eq!(fences.lowered().map(|requester| requester.tag), Some(1));
        assert!(fences.lowered().is_none());
        fences.programmed(4);
        assert_eq!(fences.lowered().map(|requester| requester.tag), Some(2));
        assert!(fences.raise(requester(3)));
    }
}
