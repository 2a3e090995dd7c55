//! Power cuts: whatever a drive promised is there when it is switched on again, for every architecture; and planted bugs, each of
//! which must be found.

use firmware::architecture::ARCHITECTURES;
use firmware::{MUTATIONS, Mutation};
use rig::check::small::{Small, mixed, processor};
use rig::check::{Case, shrink, sweep};
use rig::{Device, Fill, Session};
use units::Span;

/// Cases that every run of the tests tries, over all architectures.
const CASES: u64 = 154;

/// Seeds from which on each planted bug is looked for, on DeepFlash, and within how many it must be found. docs/durability.md has the
/// same table.
const FOUND: &[(Mutation, u64, u64)] = &[
    (Mutation::SkipOutOfBand, 0, 8),
    (Mutation::ReleaseEarly, 0, 8),
    (Mutation::LoseEvicted, 0, 8),
    (Mutation::AnswerEarly, 0, 8),
    (Mutation::FlushEarly, 0, 8),
    (Mutation::EraseUnfenced, 240, 8),
    (Mutation::ShortScan, 0, 8),
    (Mutation::OldestWins, 0, 8),
    (Mutation::VersionsAnew, 24, 8),
    (Mutation::WrongCount, 0, 8),
    (Mutation::ForgetDiscard, 4, 8),
    (Mutation::ReuseBeforeCheckpoint, 80, 8),
    (Mutation::DropCheckpointTail, 0, 8),
    (Mutation::CommitUnfenced, 380, 8),
    (Mutation::TrustTornCheckpoint, 0, 8),
];

#[test]
fn what_was_promised_survives_power_cuts() {
    let outcome = sweep(CASES, 2, Case::of_seed, || {});
    if let Some((after, failure)) = outcome.failure {
        panic!("after {after} cases: {failure}");
    }
    let all = outcome.all();
    assert!(all.cuts >= 300, "{} cuts", all.cuts);
    assert!(all.cuts_in_recovery >= 20, "{} cuts in recovery", all.cuts_in_recovery);
    assert!(all.from_checkpoint >= 60, "{} recoveries from a checkpoint that was written", all.from_checkpoint);
    assert_eq!(outcome.totals.len(), ARCHITECTURES.len(), "every architecture has its turn");
    for (architecture, totals) in &outcome.totals {
        assert!(totals.torn_pages > 0 && totals.erases > 0, "nothing to lose on {architecture}: {totals:?}");
    }
}

/// Groups that the newest checkpoint knows whole are not read page by page, however often the journal went round before.
#[test]
fn recovery_reads_little_of_a_drive_that_has_a_checkpoint() {
    let mut small = Small { fill: Fill::Sequential, blocks: [32, 32], ..Small::default() };
    small.architecture = ARCHITECTURES[0];
    let mut device = small.device();
    device.drive.keeps_journal = true;
    device.settings.journal.only_when_idle = false;
    let recover = |device: &Device, ios| {
        let phases = vec![mixed("mixed", 7, small.sectors(), ios)];
        let mut session = Session::new(device, "small", processor(), 7, phases, 0).expect("a device that can be built");
        let checkpoints =
            session.next_phase().expect("a phase").expect("it holds").journal.map(|kept| kept.checkpoints);
        let recovery = session.lose_power(device, processor()).expect("it can be recovered");
        (recovery, checkpoints.unwrap_or(0))
    };
    device.settings.journal.interval = Span::from_millis(1);
    let (often, checkpoints) = recover(&device, 4_000);
    assert!(checkpoints > 10, "{checkpoints} checkpoints");
    assert_eq!(often.checkpoint, Some(checkpoints + 1), "behind the one of its past");
    device.settings.journal.interval = Span::from_secs(100);
    let (never, checkpoints) = recover(&device, 4_000);
    assert_eq!((never.checkpoint, checkpoints), (Some(1), 0));
    assert!(never.replayed > 2 * often.replayed, "{} and {} pages", never.replayed, often.replayed);
    assert_eq!((often.dropped, never.dropped), (0, 0));
    let all = device.drive.geometry.page_count();
    assert!(often.pages_read < u64::from(all) / 2, "{} of {all} pages read", often.pages_read);
}

#[test]
fn every_planted_bug_is_found() {
    for planted in MUTATIONS {
        let &(_, first, within) =
            FOUND.iter().find(|(mutation, ..)| *mutation == planted.mutation).expect("every planted bug has its seeds");
        let case = |index| Case { mutation: Some(planted.mutation), ..Case::of(first + index, ARCHITECTURES[0]) };
        let outcome = sweep(within, 2, case, || {});
        let Some((_, failure)) = outcome.failure else {
            panic!("{} is not found within {within} seeds from {first}", planted.name);
        };
        let said = failure.to_string();
        let repeats = format!("--architecture {} --mutation {}", ARCHITECTURES[0].name(), planted.name);
        assert!(said.contains(&repeats), "{said} does not say how to repeat it");
    }
}

#[test]
fn a_failing_case_is_made_smaller_and_still_fails() {
    let case = Case { mutation: Some(Mutation::FlushEarly), ..Case::of(1, ARCHITECTURES[0]) };
    let failure = case.run().expect_err("a Flush that keeps nothing is found");
    let smallest = shrink(failure).case;
    assert!(smallest.plain && smallest.one_queue && smallest.ios < case.ios, "{smallest:?}");
    smallest.run().expect_err("it is a case that fails");
}
