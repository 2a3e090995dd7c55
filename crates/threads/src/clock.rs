//! The one place that reads the real clock.

use std::time::Instant;
use units::{Span, Time};

/// Real time since the run began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { began: Instant::now() }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        let elapsed = self.began.elapsed();
        Time::ZERO + Span::from_secs(elapsed.as_secs()) + Span::from_nanos(elapsed.subsec_nanos().into())
    }
}
