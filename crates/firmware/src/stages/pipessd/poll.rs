//! When a stage looks again at what one further on writes: soon at first, then less and less often while nothing has come.

use units::Span;

/// Looks that found nothing make the next one come twice as late, up to so many times the shortest.
const LONGEST: u64 = 16;

/// The looks of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll {
    shortest: Span,
    next: Span,
}

impl Poll {
    pub(super) fn new(shortest: Span) -> Self {
        Poll { shortest, next: shortest }
    }

    /// Something has come.
    pub(super) fn found(&mut self) {
        self.next = self.shortest;
    }

    /// How long to wait for the next look.
    pub(super) fn wait(&mut self) -> Span {
        let wait = self.next;
        self.next = (self.next * 2).min(self.shortest * LONGEST);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rare_until_something_comes() {
        let mut poll = Poll::new(Span::from_nanos(10));
        let waits: Vec<u64> = (0..6).map(|_| poll.wait().nanos()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 160]);
        poll.found();
        assert_eq!(poll.wait().nanos(), 10);
    }
}
