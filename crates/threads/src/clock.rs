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
        Time::ZERO + Span::from(self.began.elapsed())
    }
}
