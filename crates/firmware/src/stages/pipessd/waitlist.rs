//! The waitlist: a sub-request leaves it only when its cacheline was left by the sub-request that its roadbook names (PipeSSD
//! §3.2.2). Order is kept on each line and not across lines.

use std::collections::{BTreeMap, VecDeque};

/// Slots of sub-requests that wait, by line, in the order of the pipeline.
#[derive(Debug, Default)]
pub(super) struct Waitlist {
    lines: BTreeMap<u32, VecDeque<u16>>,
}

impl Waitlist {
    /// Whether anything waits for a line.
    pub(super) fn holds(&self, line: u32) -> bool {
        self.lines.contains_key(&line)
    }

    /// A sub-request must wait.
    pub(super) fn push(&mut self, line: u32, slot: u16) {
        self.lines.entry(line).or_default().push_back(slot);
    }

    /// The first that waits for a line.
    pub(super) fn first(&self, line: u32) -> Option<u16> {
        self.lines.get(&line)?.front().copied()
    }

    /// It leaves.
    pub(super) fn pop(&mut self, line: u32) {
        let waiting = self.lines.get_mut(&line).expect("somebody waits for the line");
        waiting.pop_front();
        if waiting.is_empty() {
            self.lines.remove(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_on_a_line_and_not_across() {
        let mut waitlist = Waitlist::default();
        for (line, slot) in [(7, 0), (3, 1), (7, 2)] {
            waitlist.push(line, slot);
        }
        assert_eq!((waitlist.first(3), waitlist.first(7)), (Some(1), Some(0)));
        waitlist.pop(7);
        assert_eq!(waitlist.first(7), Some(2));
        waitlist.pop(7);
        waitlist.pop(3);
        assert!(!waitlist.holds(3) && !waitlist.holds(7));
    }
}
