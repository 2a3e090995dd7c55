//! When completions raise an interrupt: at once, or gathered until there are enough or the first has waited long enough
//! (Base §5.27.1.6).

use units::{Span, Time};

/// What the host allows, as the Interrupt Coalescing feature holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoalescingSettings {
    /// Completions to gather, counted from zero: 0 gathers none.
    pub threshold: u8,
    /// The longest a completion may wait, in units of 100 us: 0 lets none wait.
    pub time: u8,
}

impl CoalescingSettings {
    /// Every completion interrupts: the reset value, and that of the admin queue and of vectors exempt from coalescing
    /// (Base §5.27.1.7).
    pub const NONE: CoalescingSettings = CoalescingSettings { threshold: 0, time: 0 };

    /// From dword 11 of the feature.
    pub const fn from_feature(value: u32) -> Self {
        CoalescingSettings { threshold: value as u8, time: (value >> 8) as u8 }
    }

    #[inline]
    fn longest_wait(self) -> Span {
        Span::from_micros(100) * u64::from(self.time)
    }
}

/// When to interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Now.
    Now,
    /// At this time, unless completions bring it forward. The time stays the same until the interrupt is raised.
    At(Time),
}

/// The completions of one vector that no interrupt has told of yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescer {
    waiting: u32,
    deadline: Time,
}

impl Coalescer {
    /// `count` completions were posted. `None` where there is nothing to tell.
    ///
    /// The specification recommends that completions with an error are not gathered: pass [`CoalescingSettings::NONE`]
    /// for them.
    #[inline]
    pub fn on_completions(&mut self, now: Time, count: u32, settings: CoalescingSettings) -> Option<Interrupt> {
        if self.waiting == 0 {
            self.deadline = now + settings.longest_wait();
        }
        self.waiting = self.waiting.saturating_add(count);
        self.raise(now, self.waiting > u32::from(settings.threshold))
    }

    /// The time of an [`Interrupt::At`] has come, or of one that was overtaken: then there is a later time, or nothing.
    #[inline]
    pub fn on_timer(&mut self, now: Time) -> Option<Interrupt> {
        self.raise(now, false)
    }

    #[inline]
    fn raise(&mut self, now: Time, enough: bool) -> Option<Interrupt> {
        if self.waiting == 0 {
            return None;
        }
        if enough || now >= self.deadline {
            self.waiting = 0;
            return Some(Interrupt::Now);
        }
        Some(Interrupt::At(self.deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn without_coalescing_every_completion_interrupts() {
        let mut vector = Coalescer::default();
        assert_eq!(vector.on_completions(micros(1), 1, CoalescingSettings::NONE), Some(Interrupt::Now));
        assert_eq!(vector.on_completions(micros(2), 0, CoalescingSettings::NONE), None);
        assert_eq!(vector.on_timer(micros(3)), None);
    }

    #[test]
    fn the_threshold_or_the_time_of_the_first_decides() {
        let settings = CoalescingSettings::from_feature(0x0203);
        let mut vector = Coalescer::default();
        assert_eq!(vector.on_completions(micros(10), 1, settings), Some(Interrupt::At(micros(210))));
        assert_eq!(vector.on_completions(micros(100), 2, settings), Some(Interrupt::At(micros(210))));
        assert_eq!(vector.on_completions(micros(150), 1, settings), Some(Interrupt::Now));
        assert_eq!(vector.on_completions(micros(200), 1, settings), Some(Interrupt::At(micros(400))));
        assert_eq!(
            vector.on_timer(micros(210)),
            Some(Interrupt::At(micros(400))),
            "the timer of the first batch is stale"
        );
        assert_eq!(vector.on_timer(micros(400)), Some(Interrupt::Now));
    }

    proptest! {
        /// Whatever the settings, no completion waits longer than they allow and none is forgotten.
        #[test]
        fn nothing_waits_too_long(
            feature in 0u32..0x1_0000, steps in prop::collection::vec((0u64..300, 1u32..5), 1..100),
        ) {
            let settings = CoalescingSettings::from_feature(feature);
            let (mut vector, mut now, mut oldest, mut alarm) = (Coalescer::default(), Time::ZERO, None, Time::NEVER);
            for (wait, count) in steps {
                let next = now + Span::from_micros(wait);
                while alarm <= next {
                    now = alarm;
                    alarm = match vector.on_timer(now) {
                        Some(Interrupt::At(later)) => later,
                        Some(Interrupt::Now) => { oldest = None; Time::NEVER }
                        None => Time::NEVER,
                    };
                }
                now = next;
                let since = *oldest.get_or_insert(now);
                match vector.on_completions(now, count, settings) {
                    Some(Interrupt::Now) => oldest = None,
                    Some(Interrupt::At(time)) => {
                        prop_assert!(time > now && time - since == settings.longest_wait());
                        alarm = alarm.min(time);
                    }
                    None => prop_assert!(false, "completions forgotten"),
                }
            }
        }
    }
}
