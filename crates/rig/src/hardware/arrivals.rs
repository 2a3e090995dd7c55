//! How far a host is behind the arrivals of a phase, seen beside the driver: a request that it cannot send yet it has taken already.

use host::{Pace, Phase};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Span, Time};
use workload::{Io, Range, Source};

/// Of no request yet.
const NONE: u64 = u64::MAX;

/// A source whose last arrival is kept.
struct Watched {
    source: Box<dyn Source>,
    last: Arc<AtomicU64>,
}

impl Watched {
    fn see(&self, io: Option<Io>) -> Option<Io> {
        if let Some(at) = io.and_then(|io| io.at) {
            self.last.store(at.picos(), Ordering::Relaxed);
        }
        io
    }
}

impl Source for Watched {
    fn next_io(&mut self) -> Option<Io> {
        let io = self.source.next_io();
        self.see(io)
    }

    fn next_for(&mut self, worker: u32) -> Option<Io> {
        let io = self.source.next_for(worker);
        self.see(io)
    }

    fn ranges(&self) -> &[Range] {
        self.source.ranges()
    }

    fn len_hint(&self) -> Option<u64> {
        self.source.len_hint()
    }
}

/// The arrivals of a phase under way.
pub(super) struct Arrivals {
    began: Time,
    last: Arc<AtomicU64>,
}

impl Arrivals {
    /// Watches those of a phase that begins, if it goes by them.
    pub(super) fn watch(phase: Phase, began: Time) -> (Phase, Option<Arrivals>) {
        if phase.pace == Pace::Closed {
            return (phase, None);
        }
        let last = Arc::new(AtomicU64::new(NONE));
        let source = Box::new(Watched { source: phase.source, last: last.clone() });
        (Phase { source, ..phase }, Some(Arrivals { began, last }))
    }

    /// For how long the last request that the host has taken had waited by then; nothing where requests have no times.
    pub(super) fn behind(&self, now: Time) -> Option<Span> {
        let last = Some(self.last.load(Ordering::Relaxed)).filter(|&last| last != NONE)?;
        Some(now.since(self.began).saturating_sub(Span::from_picos(last)))
    }
}
