//! Power cuts: whatever a drive promised is there when it is switched on again, for every architecture; and planted bugs, each of
//! which must be found.

use firmware::architecture::{self, ARCHITECTURES, DEFAULT};
use firmware::{JournalSettings, MUTATIONS, Mutation, Planted, Seeds};
use rig::check::small::{Small, budget, mixed, processor};
use rig::check::{Case, once_failed, shrink, sweep};
use rig::{BuildError, Device, Fill, PowerError, Session};
use units::{Bytes, Span};

/// Cases that every run of the tests tries, over all architectures.
const CASES: u64 = 154;

/// The same in orders that only threads show.
const CASES_IN_ORDERS: u64 = 77;

#[test]
fn what_was_promised_survives_power_cuts() {
    let outcome = sweep(CASES, 2, Case::of_seed, || true);
    if let Some((after, failure)) = outcome.failure {
        panic!("after {after} cases: {failure}");
    }
    let all = outcome.all();
    assert!(all.cuts >= 300, "{} cuts", all.cuts);
    assert!(all.cuts_in_recovery >= 20, "{} cuts in recovery", all.cuts_in_recovery);
    assert!(all.drains >= 20 && all.drained_pages > all.drains, "{} drains of {} pages", all.drains, all.drained_pages);
    assert!(all.from_checkpoint >= 60, "{} recoveries from a checkpoint that was written", all.from_checkpoint);
    assert!(all.failed_operations >= 200 && all.given_up >= 100, "flash that does not fail: {all:?}");
    assert!(all.levelled >= 300, "{} groups moved because they wore little", all.levelled);
    assert!(all.merges >= 300, "{} merges of hybrid mapping", all.merges);
    assert!(all.cuts_in_merges >= 8, "{} cuts amid several merges", all.cuts_in_merges);
    let [carried @ .., unreadable] = all.carried;
    assert!(carried.iter().all(|count| *count >= 300), "Verify, Write Uncorrectable, Copy, fused pairs: {carried:?}");
    assert!(unreadable >= 100, "{unreadable} commands met blocks that a host had made unreadable");
    assert_eq!(outcome.totals.len(), ARCHITECTURES.len(), "every architecture has its turn");
    for (architecture, totals) in &outcome.totals {
        assert!(totals.torn_pages > 0 && totals.erases > 0, "nothing to lose on {architecture}: {totals:?}");
    }
}

/// The same where turns of other stages come amid turns, as on threads. Recovery is in virtual time as ever.
#[test]
fn what_was_promised_survives_power_cuts_in_orders_that_only_threads_show() {
    let outcome = sweep(CASES_IN_ORDERS, 2, |seed| Case { interleaved: true, ..Case::of_seed(seed) }, || true);
    if let Some((after, failure)) = outcome.failure {
        panic!("after {after} cases: {failure}");
    }
    let all = outcome.all();
    assert!(all.cuts >= 150 && all.erases >= 5_000, "{} cuts, {} erases", all.cuts, all.erases);
}

#[test]
fn a_case_in_a_drawn_order_is_the_same_run_again() {
    for seed in 0..ARCHITECTURES.len() as u64 {
        let [one, again] = [(); 2].map(|()| {
            let report = Case { interleaved: true, ..Case::of_seed(seed) }.run().expect("it holds");
            format!("{report:?}")
        });
        assert_eq!(one, again, "seed {seed}");
    }
}

/// Runs that once failed, as long as what is drawn from a seed stays what it is.
#[test]
fn what_once_failed_holds() {
    for case in once_failed() {
        if let Err(failure) = case.run() {
            panic!("{failure}");
        }
    }
}

/// Groups that the newest checkpoint knows whole are not read page by page, however often the journal went round before.
#[test]
fn recovery_reads_little_of_a_drive_that_has_a_checkpoint() {
    let mut small = Small { fill: Fill::Sequential, blocks: [32, 32], ..Small::default() };
    small.architecture = DEFAULT;
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
    let (often, checkpoints) = recover(&device, 5_000);
    assert!(checkpoints > 10, "{checkpoints} checkpoints");
    assert_eq!(often.checkpoint, Some(checkpoints + 1), "behind the one of its past");
    device.settings.journal.interval = Span::from_secs(100);
    let (never, checkpoints) = recover(&device, 5_000);
    assert_eq!((never.checkpoint, checkpoints), (Some(1), 0));
    assert!(never.replayed > 2 * often.replayed, "{} and {} pages", never.replayed, often.replayed);
    let all = device.drive.geometry.page_count();
    assert!(often.pages_read < u64::from(all) / 2, "{} of {all} pages read", often.pages_read);
}

/// A drive that is never idle has checkpoints all the same: after so long it waits no more, and then they take their share of the time.
#[test]
fn a_checkpoint_does_not_wait_for_an_idle_drive_for_ever() {
    let mut small = Small { fill: Fill::Sequential, blocks: [32, 32], ..Small::default() };
    small.architecture = DEFAULT;
    let mut device = small.device();
    device.drive.keeps_journal = true;
    device.settings.journal = JournalSettings {
        interval: Span::from_micros(100),
        only_when_idle: true,
        patience: Span::from_millis(5),
        busy_share: 1.0,
        ..device.settings.journal
    };
    let run = |device: &Device| {
        let phases = vec![mixed("mixed", 7, small.sectors(), 12_000)];
        let mut session = Session::new(device, "small", processor(), 7, phases, 0).expect("a device that can be built");
        let summary = session.next_phase().expect("a phase").expect("it holds");
        let checkpoints = summary.journal.expect("it has one").checkpoints;
        let recovery = session.lose_power(device, processor()).expect("it can be recovered");
        (checkpoints, recovery.replayed)
    };
    let (patient, few_replayed) = run(&device);
    assert!(patient > 5, "{patient} checkpoints");
    device.settings.journal.patience = Span::from_secs(100);
    let (never, all_replayed) = run(&device);
    assert!(never == 0 && all_replayed > 2 * few_replayed, "{never} checkpoints, {all_replayed} and {few_replayed}");
    device.settings.journal.patience = Span::ZERO;
    let (always, _) = run(&device);
    device.settings.journal.busy_share = 0.1;
    let (seldom, _) = run(&device);
    assert!(always > 4 * seldom && seldom > 1, "{always} checkpoints, {seldom} at a tenth of the time");
}

/// Looks for a planted bug with seeds that are said to find it.
fn find(planted: &Planted, seeds: &Seeds) {
    let architecture = architecture::find(seeds.architecture).expect("it is listed");
    assert!(planted.mutation.is_in(architecture), "{} is not in {}", planted.name, seeds.architecture);
    let case = |index| Case {
        mutation: Some(planted.mutation),
        interleaved: seeds.interleaved,
        ..Case::of(seeds.first + index, architecture)
    };
    let Some((_, failure)) = sweep(seeds.count, 2, case, || true).failure else {
        panic!("{} is not found by {seeds}", planted.name);
    };
    let said = failure.to_string();
    let repeats = format!("--architecture {} --mutation {}", seeds.architecture, planted.name);
    assert!(said.contains(&repeats), "{said} does not say how to repeat it");
}

#[test]
fn every_planted_bug_is_found() {
    for planted in MUTATIONS {
        let (bug, found) = (planted.name, planted.found());
        assert_eq!(found[0].architecture, DEFAULT.name(), "{bug}");
        for &own in ARCHITECTURES.iter().filter(|architecture| !architecture.has_deepflash_parts()) {
            let name = own.name();
            match (planted.mutation.is_in(own), found.iter().any(|seeds| seeds.architecture == name)) {
                (true, false) => panic!(
                    "{bug} is in {name}, and nothing says which seeds find it: look for one with `flashloom check \
                     --architecture {name} --mutation {bug} --runs 400`, then put the first of 16 seeds with it into `planted` of \
                     the architecture's file, and a row into docs/durability.md"
                ),
                (false, true) => panic!("{bug} is not in {name}: take it out of `planted` of the architecture's file"),
                _ => {}
            }
        }
        found.iter().for_each(|seeds| find(planted, seeds));
    }
}

#[test]
fn the_page_has_the_seeds_of_every_planted_bug() {
    let page = include_str!("../../../../docs/durability.md");
    for planted in MUTATIONS {
        let Planted { name, summary, .. } = planted;
        for Seeds { architecture, first, count, .. } in planted.found() {
            let row = if architecture == DEFAULT.name() {
                format!("| `{name}` | {first} | {count} seeds | {summary} |")
            } else {
                format!("| `{name}` | `{architecture}` | {first} | {count} seeds |")
            };
            assert!(page.contains(&row), "docs/durability.md lacks the row {row}");
        }
    }
}

#[test]
fn a_failing_case_is_made_smaller_and_still_fails() {
    let case = |seed| Case { mutation: Some(Mutation::FlushEarly), ..Case::of(seed, DEFAULT) };
    let (ios, failure) = (0..16)
        .find_map(|seed| case(seed).run().err().map(|failure| (case(seed).ios, failure)))
        .expect("a Flush that keeps nothing is found");
    let smallest = shrink(failure).case;
    assert!(smallest.plain && smallest.one_queue && smallest.ios < ios, "{smallest:?}");
    smallest.run().expect_err("it is a case that fails");
}

#[test]
fn a_case_that_fails_in_virtual_time_too_loses_its_order() {
    let smallest = |mutation| {
        let case = |seed| Case { mutation: Some(mutation), interleaved: true, ..Case::of(seed, DEFAULT) };
        shrink((0..16).find_map(|seed| case(seed).run().err()).expect("it is found")).case
    };
    assert!(!smallest(Mutation::FlushEarly).interleaved);
    assert!(smallest(Mutation::ClaimInSteps).interleaved, "nobody comes between two steps of an instant");
}

/// Energy decides: with as much as is asked for the buffer is on flash, with less the drive is not built.
#[test]
fn too_little_energy_for_the_buffer_is_refused() {
    let small = Small::default();
    let mut device = small.device();
    device.settings.cache.size = Bytes::kib(256);
    assert!(device.has_volatile_cache());
    device.power = Some(budget(0.001));
    let Err(BuildError::Power(PowerError { field: "energy_j", needed: Some(needed), .. })) = device.draw() else {
        panic!("a millijoule is too little");
    };
    device.power = Some(budget(needed));
    assert!(device.draw().is_ok() && !device.has_volatile_cache());
    device.architecture = architecture::find("pipessd").expect("it is listed");
    assert!(matches!(device.draw(), Err(BuildError::Power(PowerError { field: "protected", .. }))));
}
