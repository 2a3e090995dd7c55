//! Tags and seals: they cost no work, every hand-over is checked, and what is wrong inside the drive never reaches a host as good.

use crate::small::{Small, mixed, processor};
use firmware::Mutation;
use firmware::architecture::ARCHITECTURES;
use flash::FaultSettings;
use report::Summary;
use rig::{Device, Fill, Session, SessionError};
use units::Span;

fn with_tags(mut device: Device, sector_words: usize) -> Device {
    device.drive.tags = true;
    device.drive.sector_words = sector_words;
    device
}

/// A run of so many requests of every kind: its summary and digest, or what the oracle or the drive's own checks say.
fn run(device: &Device, small: &Small, ios: u64) -> Result<(Summary, u64), SessionError> {
    let phase = mixed("mixed", small.seed, small.sectors(), ios);
    let mut session = Session::new(device, "small", processor(), small.seed, vec![phase], 0)?;
    let summary = session.next_phase().expect("one phase")?;
    Ok((summary, session.digest()))
}

#[test]
fn sealed_sectors_come_back_in_every_architecture_and_cost_no_work() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = Small { architecture, fill: Fill::Random { times: 0.5 }, ..Small::default() };
        for words in [1, 64] {
            let device = with_tags(small.device(), words);
            let (summary, digest) = run(&device, &small, 4_000).unwrap_or_else(|error| panic!("{name}: {error}"));
            // With every byte kept buffers are longer, and the processor's caches hold less of other tables.
            if words == 1 {
                let mut bare = device;
                bare.drive.tags = false;
                let (_, plain) = run(&bare, &small, 4_000).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(digest, plain, "{name} takes the same times");
            }
            assert!(summary.data.is_some_and(|data| data.checked > 2_000 && data.mismatches == 0), "{name}");
        }
    }
}

/// With seals a flipped bit is an error that the host is told of; without them it is wrong data.
#[test]
fn bits_that_flip_in_the_drive_s_memory_are_told_and_never_returned() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = Small { architecture, ..Small::default() };
        let flipping = Device { memory_flips: 0.05, ..with_tags(small.device(), 64) };
        let (summary, digest) = run(&flipping, &small, 4_000).unwrap_or_else(|error| panic!("{name}: {error}"));
        let media = summary.media.expect("memory fails");
        assert!(media.damaged_sectors > 10 && media.failed_commands > 0, "{name}: {media:?}");
        assert_eq!(summary.data.map(|data| data.mismatches), Some(0), "{name}");
        assert_eq!(run(&flipping, &small, 4_000).expect("as before").1, digest, "{name} repeats");
        let mut bare = flipping;
        bare.drive.tags = false;
        let wrong = run(&bare, &small, 4_000);
        let wrong = wrong.is_err() || wrong.is_ok_and(|(summary, _)| summary.data.is_some_and(|it| it.mismatches > 0));
        assert!(wrong, "{name} returns what it holds where nothing checks it");
    }
}

/// What flips in pages of the journal is not believed, so that recovery reads every page.
#[test]
fn a_drive_whose_journal_is_damaged_in_memory_is_recovered_without_it() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = Small { architecture, ..Small::default() };
        for flips in [0.2, 1.0] {
            let mut device = Device { memory_flips: flips, ..with_tags(small.device(), 64) };
            device.drive.keeps_journal = true;
            device.settings.journal.only_when_idle = false;
            device.settings.journal.interval = Span::from_millis(1);
            let phase = mixed("mixed", small.seed, small.sectors(), 4_000);
            let mut session =
                Session::new(&device, "small", processor(), small.seed, vec![phase], 0).expect("a device");
            let _ = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
            let recovery = session.lose_power(&device, processor()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(flips < 1.0 || recovery.checkpoint.is_none(), "{name}: {recovery:?}");
        }
    }
}

/// A read of another page than the one that was asked for: flash returns it without an error, and only the seals know.
#[test]
fn a_read_of_the_wrong_page_is_caught_by_its_place() {
    let small = Small { fill: Fill::Sequential, ..Small::default() };
    // The host is ready for answers that say that data are lost.
    let mut device = Device { faults: Some(FaultSettings::sound()), ..with_tags(small.device(), 1) };
    device.settings.mutation = Some(Mutation::MisdirectRead);
    let (summary, _) = run(&device, &small, 4_000).expect("what is wrong is told as lost");
    let media = summary.media.expect("it can fail");
    assert!(media.damaged_sectors > 10 && media.failed_commands > 10, "{media:?}");
    assert_eq!(summary.data.map(|data| data.mismatches), Some(0));
    device.drive.tags = false;
    let wrong = run(&device, &small, 4_000);
    assert!(wrong.is_err() || wrong.is_ok_and(|(summary, _)| summary.data.is_some_and(|it| it.mismatches > 0)));
}
