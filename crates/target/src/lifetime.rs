//! What a drive has done in all its life, this time that it is on and those before: kept with it, as health pages are to tell it.

use crate::subsystem::Subsystem;
use std::time::Duration;
use units::Time;

/// What front ends have counted since the drive was made. A life is longer than what the drive's own time can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Sectors that hosts had read, compared or verified.
    pub sectors_read: u64,
    /// Sectors that hosts had written or copied.
    pub sectors_written: u64,
    /// Read, Compare and Copy commands completed.
    pub reads: u64,
    /// Write and Copy commands completed.
    pub writes: u64,
    /// Commands that lost data.
    pub media_errors: u64,
    /// Errors that were in the logs of controllers.
    pub errors: u64,
    /// What its self-tests found.
    pub tests: SelfTests,
    /// How long commands were at the drive.
    pub busy: Duration,
    /// How long it was on.
    pub powered: Duration,
}

/// Results that the log of self-tests keeps (Base §5.16.1.7).
pub const TESTS_KEPT: usize = 20;

/// Self-tests that have ended, and one that has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfTests {
    /// The newest first; behind them those that there were not.
    pub results: [SelfTestRecord; TESTS_KEPT],
    /// An extended one, which goes on with the drive (Base §8.6).
    pub under_way: Option<SelfTestUnderWay>,
}

/// A self-test that has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfTestUnderWay {
    /// What it reads, as its command named it: a namespace, all, or none.
    pub asked: u32,
    /// The namespace that it is at, where it has any.
    pub namespace: u32,
    /// Pieces of that namespace that it has read.
    pub read: u32,
}

/// A self-test that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfTestRecord {
    /// Which kind it was and how it ended, as the first byte of its result says; 0 of none.
    pub code: u8,
    /// Whole hours that the drive had been on.
    pub hours: u64,
    /// The namespace that could not be read, where that is how it ended, and what the read said: type of the status and code.
    pub failed: Option<(u32, [u8; 2])>,
}

/// Keeps with the drive what it has done.
pub type KeepLifetime = Box<dyn FnMut(&Lifetime) + Send>;

/// A drive that nobody uses says seldom that it is still on.
const IDLE: Duration = Duration::from_secs(60);

impl Lifetime {
    /// Whether more has come since `kept` than a while without commands.
    fn is_news_to(&self, kept: &Lifetime) -> bool {
        let at_that_time = Lifetime { powered: kept.powered, ..*self };
        at_that_time != *kept || self.powered >= kept.powered + IDLE
    }
}

impl Subsystem {
    /// Keeps what the drive has done up to now.
    pub(crate) fn keep_lifetime(&mut self, now: Time) {
        let lifetime = self.lifetime(now);
        if let Some(keep) = &mut self.settings.keep_lifetime {
            keep(&lifetime);
        }
        self.kept_lifetime = lifetime;
    }

    fn lifetime(&self, now: Time) -> Lifetime {
        Lifetime { errors: self.errors_of_all(), tests: self.chores.tests(), ..self.served.lifetime(now) }
    }

    /// The same where something has happened since it was kept last.
    pub(crate) fn keep_news(&mut self, now: Time) {
        if self.lifetime(now).is_news_to(&self.kept_lifetime) {
            self.keep_lifetime(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_kept_soon_and_idle_time_seldom() {
        let kept = Lifetime { powered: Duration::from_secs(100), ..Lifetime::default() };
        let after = |seconds: u64, reads| Lifetime { powered: Duration::from_secs(100 + seconds), reads, ..kept };
        assert_eq!([after(1, 0), after(59, 0), after(60, 0)].map(|now| now.is_news_to(&kept)), [false, false, true]);
        assert!(after(1, 1).is_news_to(&kept));
        let tests = SelfTests { under_way: Some(SelfTestUnderWay::default()), ..SelfTests::default() };
        assert!(Lifetime { errors: 1, ..kept }.is_news_to(&kept) && Lifetime { tests, ..kept }.is_news_to(&kept));
    }
}
