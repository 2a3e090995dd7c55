//! Flash that fails: what cannot be corrected is told, what is answered is right, in every architecture and both worlds.

use crate::small::{Small, mixed, processor};
use firmware::architecture::ARCHITECTURES;
use flash::{ErrorModel, FaultSettings, ReadRetry};
use report::{Media, Summary};
use rig::{Device, Fill, Session, run_on_threads};
use threads::Layout;
use units::{Bytes, Span};

/// Flash at the end of its life: of 9,200 bits of a word 14 are wrong on average, and of reads from worn blocks more.
fn worn() -> FaultSettings {
    FaultSettings {
        errors: ErrorModel { base: 1.5e-3, disturb: 2e-6, disturb_exponent: 1.0, ..ErrorModel::default() },
        cycles: 0,
        days: 0.0,
        days_per_second: 0.0,
        block_sigma: 0.3,
        code_data: Bytes(1024),
        correctable: 24,
        decode: Span::from_micros(1),
        decode_bit: Span::from_nanos(500),
        retry: ReadRetry { levels: 2, factor: 0.8 },
        weak: 0.0,
        program_failures: 0.0,
        erase_failures: 0.0,
        factory_bad: 0.0,
    }
}

fn run(device: &Device, small: &Small, ios: u64) -> (Summary, u64) {
    let phase = mixed("mixed", small.seed, small.sectors(), ios);
    let name = device.architecture.name();
    let mut session = Session::new(device, "small", processor(), small.seed, vec![phase], 0).expect("it can be built");
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
    session.check_invariants().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(summary.data.as_ref().map(|data| data.mismatches), Some(0));
    (summary, session.digest())
}

fn media(summary: &Summary) -> Media {
    summary.media.clone().expect("flash fails")
}

#[test]
fn worn_flash_is_corrected_read_again_or_given_up_but_never_wrong() {
    for &architecture in ARCHITECTURES {
        let small = Small { architecture, fill: Fill::Random { times: 1.0 }, ..Small::default() };
        let device = Device { faults: Some(worn()), ..small.device() };
        let (summary, digest) = run(&device, &small, 8_000);
        let media = media(&summary);
        assert!(media.bit_errors > media.corrected && media.corrected > 10_000, "{}: {media:?}", architecture.name());
        assert!(media.retries > media.uncorrectable, "{}: {media:?}", architecture.name());
        assert!(media.uncorrectable > 0 && media.failed_commands > 0, "{}: {media:?}", architecture.name());
        assert_eq!(run(&device, &small, 8_000).1, digest, "{} repeats", architecture.name());
    }
}

#[test]
fn with_every_byte_kept_the_code_corrects_as_many_as_are_counted_without() {
    let small = Small { fill: Fill::Sequential, ..Small::default() };
    let mut device = Device { faults: Some(worn()), ..small.device() };
    let (counted, digest) = run(&device, &small, 400);
    device.drive.sector_words = 64;
    let (decoded, same) = run(&device, &small, 400);
    assert!(media(&counted).corrected > 500);
    assert_eq!((media(&decoded), same), (media(&counted), digest), "what a page holds changes no time and no error");
}

#[test]
fn worn_flash_on_real_threads_is_never_wrong() {
    for &architecture in ARCHITECTURES {
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let device = Device { faults: Some(worn()), ..small.device() };
        let phase = mixed("mixed", 1, small.sectors(), 1_500);
        let layout = Layout { threads: 2, pin: false };
        let ran = run_on_threads(&device, "small", 1, vec![phase], layout, Span::from_secs(300));
        let summary = ran.unwrap_or_else(|error| panic!("{}: {error}", architecture.name())).remove(0);
        assert!(media(&summary).corrected > 500, "{}: {:?}", architecture.name(), summary.media);
    }
}
