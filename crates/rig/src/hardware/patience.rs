//! How long a host waits for any answer before it says that the drive stands still.
//!
//! Firmware that works in idle times never comes to rest, so that nothing but this tells.

use units::{Span, Time};

/// How long a host waits for any answer before it gives the drive up, beside what flash and link may take: as good as the time-out of a
/// host's driver.
const PATIENCE: Span = Span::from_secs(20);

/// As many groups may be reclaimed before a host is answered, and pages read or commands moved in turn: a Deallocate of 256 ranges may
/// write thousands of pages.
const STEPS: u64 = 64;

/// Looks, each as long after the last as patience lasts, at whether anything was answered meanwhile.
pub(super) struct Patience {
    lasts: Span,
    look_at: Time,
    /// What had been answered at the last look, and whether anything was outstanding: what is sent after it has not waited so long.
    answered: u64,
    waited: bool,
}

impl Patience {
    pub(super) fn of(lasts: Span) -> Self {
        Patience { lasts, look_at: Time::ZERO, answered: 0, waited: false }
    }

    /// With a drive whose longest step takes so long. Beyond what the clock can say there is no last look.
    pub(super) fn of_drive(longest: Span) -> Self {
        Patience::of(PATIENCE.saturating_add(longest.saturating_mul(STEPS)))
    }

    /// A phase began, of which nothing is answered yet.
    pub(super) fn begin(&mut self, now: Time, outstanding: u64) {
        (self.look_at, self.answered, self.waited) = (now.saturating_add(self.lasts), 0, outstanding > 0);
    }

    /// When the next look is due.
    pub(super) fn next_look(&self) -> Time {
        self.look_at
    }

    /// Whether something has been outstanding since the last look and nothing was answered; before the next look is due, not.
    pub(super) fn is_over(&mut self, now: Time, outstanding: u64, answered: u64) -> bool {
        if now < self.look_at {
            return false;
        }
        let before = std::mem::replace(&mut self.answered, answered);
        let waited = std::mem::replace(&mut self.waited, outstanding > 0);
        self.look_at = now.saturating_add(self.lasts);
        waited && outstanding > 0 && before == answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn a_drive_that_is_as_slow_as_can_be_is_waited_for_for_ever() {
        assert_eq!(Patience::of_drive(Span::from_secs(2)).lasts, Span::from_secs(20 + 64 * 2));
        // Four planes of 65,536 pages, an operation of a second, and a second for each further plane.
        let mut patience = Patience::of_drive(Span::from_secs(4 * 4 * 65_536));
        patience.begin(at(1), 1);
        assert_eq!(patience.next_look(), Time::NEVER);
        assert!(!patience.is_over(at(1_000_000), 1, 0));
    }

    #[test]
    fn what_was_sent_since_the_last_look_has_not_waited_for_as_long() {
        let mut patience = Patience::of(Span::from_secs(20));
        patience.begin(at(0), 1);
        assert_eq!(patience.next_look(), at(20));
        assert!(!patience.is_over(at(20), 0, 1), "the first was answered");
        assert!(!patience.is_over(at(40), 1, 1), "the second came just before");
        assert!(!patience.is_over(at(59), 1, 1), "no look is due");
        assert!(patience.is_over(at(60), 1, 1));
    }

    #[test]
    fn what_is_outstanding_from_the_beginning_on_waits_once() {
        let mut patience = Patience::of(Span::from_secs(20));
        patience.begin(at(7), 16);
        assert!(!patience.is_over(at(26), 16, 0));
        assert!(patience.is_over(at(27), 16, 0));
        patience.begin(at(30), 16);
        assert!(!patience.is_over(at(50), 16, 4), "some were answered");
    }
}
