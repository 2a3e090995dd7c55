//! Many cases, on several threads of this machine: what they held, or the first that went wrong.

use super::case::{Case, Failure};
use super::trial::Report;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use units::Span;

/// What cases of one architecture came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Cases.
    pub cases: u64,
    /// Power cuts, those in recovery included.
    pub cuts: u64,
    /// Power cuts in recovery.
    pub cuts_in_recovery: u64,
    /// Pages that recovery found torn.
    pub torn_pages: u64,
    /// Blocks that were erased while the drive served.
    pub erases: u64,
    /// Recoveries, and the virtual time that they took.
    pub recoveries: u64,
    /// Recoveries that began with a checkpoint which LOG had written.
    pub from_checkpoint: u64,
    /// All of it.
    pub recovering: Span,
    /// The longest.
    pub recovery_max: Span,
    /// Cuts at which a drive brought its buffer to flash, and the pages that it programmed.
    pub drains: u64,
    /// All of them.
    pub drained_pages: u64,
    /// Programs and erases that failed.
    pub failed_operations: u64,
    /// Pages that could not be read.
    pub given_up: u64,
    /// Times that a drive took no more writes when the power was cut.
    pub read_only: u64,
    /// Merges of log groups, of drives with hybrid mapping.
    pub merges: u64,
    /// Groups that were moved because they wore little.
    pub levelled: u64,
    /// Cuts while several of them were under way.
    pub cuts_in_merges: u64,
    /// Verifies, Writes Uncorrectable, Copies, fused pairs that were carried out and those of which nothing was, and commands that failed
    /// because blocks were unreadable.
    pub carried: [u64; 6],
}

impl Totals {
    fn of(report: &Report) -> Totals {
        let recoveries = report.recoveries.iter();
        Totals {
            cases: 1,
            cuts: report.cuts.into(),
            cuts_in_recovery: report.cuts_in_recovery.into(),
            torn_pages: recoveries.clone().map(|recovery| recovery.torn_pages).sum(),
            erases: report.erases,
            recoveries: recoveries.len() as u64,
            // The first one is that of the drive's past, which nobody had to write.
            from_checkpoint: recoveries.clone().filter(|recovery| recovery.checkpoint > Some(1)).count() as u64,
            recovering: recoveries.clone().map(|recovery| recovery.took).sum(),
            recovery_max: recoveries.map(|recovery| recovery.took).max().unwrap_or_default(),
            drains: report.drained.len() as u64,
            drained_pages: report.drained.iter().map(|drained| drained.pages).sum(),
            failed_operations: report.failed_operations,
            given_up: report.given_up,
            read_only: report.read_only,
            merges: report.merges,
            levelled: report.levelled,
            cuts_in_merges: report.cuts_in_merges,
            carried: report.carried,
        }
    }

    /// Adds those of other cases.
    pub fn join(&mut self, other: &Totals) {
        self.cases += other.cases;
        self.cuts += other.cuts;
        self.cuts_in_recovery += other.cuts_in_recovery;
        self.torn_pages += other.torn_pages;
        self.erases += other.erases;
        self.recoveries += other.recoveries;
        self.failed_operations += other.failed_operations;
        self.given_up += other.given_up;
        self.read_only += other.read_only;
        self.merges += other.merges;
        self.levelled += other.levelled;
        self.cuts_in_merges += other.cuts_in_merges;
        self.carried.iter_mut().zip(other.carried).for_each(|(sum, more)| *sum += more);
        self.drains += other.drains;
        self.drained_pages += other.drained_pages;
        self.from_checkpoint += other.from_checkpoint;
        self.recovering += other.recovering;
        self.recovery_max = self.recovery_max.max(other.recovery_max);
    }
}

/// What a sweep came to.
#[derive(Debug, Default)]
pub struct Sweep {
    /// Of the cases that held, by architecture.
    pub totals: BTreeMap<&'static str, Totals>,
    /// The first case that did not, and how many were before it.
    pub failure: Option<(u64, Failure)>,
}

impl Sweep {
    /// Over all architectures.
    pub fn all(&self) -> Totals {
        let mut all = Totals::default();
        self.totals.values().for_each(|totals| all.join(totals));
        all
    }
}

/// What cases came to, taken up in the order of their seeds whatever the order in which they end: of those behind one that fails some
/// are over and some never begin, and none of them counts.
#[derive(Default)]
struct InOrder {
    outcome: Sweep,
    /// The first case that is not taken up.
    next: u64,
    /// Those that held and are over before one in front of them.
    ahead: BTreeMap<u64, (&'static str, Report)>,
}

impl InOrder {
    fn held(&mut self, index: u64, architecture: &'static str, report: Report) {
        self.ahead.insert(index, (architecture, report));
        while let Some((architecture, report)) = self.ahead.remove(&self.next) {
            self.outcome.totals.entry(architecture).or_default().join(&Totals::of(&report));
            self.next += 1;
        }
    }

    fn failed(&mut self, index: u64, failure: Failure) {
        if self.outcome.failure.as_ref().is_none_or(|(first, _)| index < *first) {
            self.outcome.failure = Some((index, failure));
        }
    }
}

/// Runs cases 0 to `count`, as `case` makes them, on `jobs` threads, or as many as the system starts. Behind a case that fails no more are
/// begun; of several the first one counts, with those before it, so that the number of threads changes nothing. `goes_on` is called after
/// each case; where it says no, no more are begun.
///
/// # Panics
/// Never: a case that panics is one that fails.
pub fn sweep(count: u64, jobs: usize, case: impl Fn(u64) -> Case + Sync, goes_on: impl Fn() -> bool + Sync) -> Sweep {
    let ended = Mutex::new(InOrder::default());
    threads::together(jobs, 0..count, |index| {
        let case = case(index);
        let ran = case.run();
        let held = ran.is_ok();
        let mut ended = ended.lock().expect("nobody panics with the outcome");
        match ran {
            Ok(report) => ended.held(index, case.architecture.name(), report),
            Err(failure) => ended.failed(index, failure),
        }
        drop(ended);
        if goes_on() && held { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    ended.into_inner().expect("nobody panics with the outcome").outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_before_the_first_case_that_fails_counts_in_whatever_order_they_end() {
        let failure = |seed| Failure { case: Case::of_seed(seed), error: "it fails".into() };
        let mut ended = InOrder::default();
        ended.held(1, "deepflash", Report::default());
        ended.held(4, "deepflash", Report::default());
        ended.failed(5, failure(5));
        ended.failed(3, failure(3));
        ended.held(0, "pipessd", Report::default());
        ended.held(2, "deepflash", Report::default());
        let Sweep { totals, failure } = ended.outcome;
        assert_eq!(failure.map(|(after, failure)| (after, failure.case.seed)), Some((3, 3)));
        let cases: Vec<(&str, u64)> = totals.iter().map(|(name, totals)| (*name, totals.cases)).collect();
        assert_eq!(cases, [("deepflash", 2), ("pipessd", 1)]);
    }
}
