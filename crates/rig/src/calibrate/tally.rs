//! The observer of the run: turns of the same work by the same group, and how long they took.

use firmware::{Firmware, Note};
use stage::{Cost, Probe, TurnRecord};
use std::collections::BTreeMap;
use units::{Span, StageId, Time};

/// Times kept of each kind of turn: enough for its median.
const KEPT: usize = 4_096;

/// A kind of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// A stage of the group that takes such turns.
    pub(super) stage: usize,
    /// What it did, as digits.
    pub(super) slots: u64,
    /// Messages that it left.
    pub(super) sends: u32,
}

#[derive(Debug, Default)]
struct Times {
    count: u64,
    /// The first of them, ns.
    nanos: Vec<f64>,
}

pub(super) struct Tally {
    /// Whether a stage is asked about.
    wanted: Vec<bool>,
    /// The time of the turn that is told of next.
    took: Span,
    kinds: BTreeMap<Kind, Times>,
    /// The shortest time between two looks at the clock, which is in every turn's.
    clock: f64,
}

impl Tally {
    pub(super) fn new(wanted: Vec<bool>) -> Self {
        Tally { wanted, took: Span::ZERO, kinds: BTreeMap::new(), clock: clock() }
    }

    /// Every kind of turn, how many there were, and the median of their times in ns, without reading the clock.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (Kind, u64, f64)> {
        self.kinds.iter().map(|(kind, times)| {
            let mut nanos = times.nanos.clone();
            nanos.sort_by(f64::total_cmp);
            (*kind, times.count, (nanos[nanos.len() / 2] - self.clock).max(0.0))
        })
    }
}

/// What a look at the clock takes: the median of many, ns.
fn clock() -> f64 {
    let look = || std::time::Instant::now();
    let mut spans: Vec<f64> = (0..1_001).map(|_| (look(), look())).map(|(a, b)| (b - a).as_nanos() as f64).collect();
    spans.sort_by(f64::total_cmp);
    spans[spans.len() / 2]
}

impl Probe<Firmware> for Tally {
    fn turn(&mut self, record: &TurnRecord, _subject: Option<u32>) {
        self.took = record.ended - record.started;
    }

    fn cost(&mut self, stage: StageId, cost: Cost, sends: usize) {
        if !self.wanted[stage.index()] {
            return;
        }
        let kind = Kind { stage: stage.index(), slots: cost.slots, sends: sends as u32 };
        let times = self.kinds.entry(kind).or_default();
        times.count += 1;
        if times.nanos.len() < KEPT {
            times.nanos.push(self.took.nanos_f64());
        }
    }

    fn note(&mut self, _stage: StageId, _at: Time, _note: &Note) {}
}
