//! The least energy that a drive is built with is enough whatever its dies are doing when the power fails.

use crate::check::protected::{charge_least, one_die as one_die_of};
use crate::check::small::{Small, budget, processor};
use crate::hardware::Fate;
use crate::power::{Drained, PowerBudget};
use crate::session::{Session, SessionError};
use crate::{Device, Fill};
use firmware::Mutation;
use firmware::architecture::DEFAULT;
use flash::{ErrorModel, FaultSettings, ReadRetry, Suspend};
use host::{Pace, Phase};
use sim::Processor;
use units::{Bytes, Span, Time};
use workload::{Parameters, Pattern, Recipe};

/// A full drive of one die with four planes, whose blocks are erased one by one and slowly, and which holds a buffer of a few pages.
fn one_die() -> Device {
    let small = Small { architecture: DEFAULT, fill: Fill::Random { times: 3.0 }, ..Small::default() };
    let mut device = small.device();
    device.drive.geometry = one_die_of(&device.drive.geometry);
    device.drive.namespaces = vec![u64::from(device.drive.geometry.page_count()) * 8 * 3 / 5];
    device.timing.erase = Span::from_millis(200);
    device.settings.flash.multi_plane = false;
    device.settings.cache.size = Bytes::kib(32);
    device.settings.cache.spare_frames = 2;
    (device.settings.commands, device.settings.frames, device.settings.reclaim.window) = (8, 8, 8);
    device
}

/// The power fails amid random reads and writes of a page: what the drive took to bring its buffer to flash.
fn fail_after(device: &Device, reads: f64, moment: Span) -> Result<Drained, SessionError> {
    fail_on(processor(), device, reads, moment)
}

fn fail_on(processor: Processor, device: &Device, reads: f64, moment: Span) -> Result<Drained, SessionError> {
    fail(run_until(processor, device, reads, moment)?)
}

fn run_until(processor: Processor, device: &Device, reads: f64, moment: Span) -> Result<Session, SessionError> {
    let recipe = Recipe::fixed("pages", Pattern::Random, reads, 4096);
    let source = recipe.source(&Parameters::new(device.drive.namespaces[0], 7)).expect("a drawable workload");
    let phase = Phase { ios: Some(1_000_000), ..Phase::new("pages", Box::new(source), Pace::Closed) };
    let mut session = Session::new(device, "small", processor, 7, vec![phase], 0)?;
    session.run_before(Time::ZERO + moment)?;
    Ok(session)
}

fn fail(session: Session) -> Result<Drained, SessionError> {
    Ok(session.cut(&mut || Fate::Torn)?.drained.expect("it is protected"))
}

/// Whenever the power fails, the least energy is enough, and once it takes so long at least; with dies that do what stood in line,
/// whether anybody waits for it or not, it is not.
fn expect_enough(mut device: Device, reads: f64, every: Span, least: Span) {
    let moments = || (1..100).map(|moment| every * moment);
    charge_least(&mut device, budget(0.0));
    let drained = moments().map(|moment| {
        fail_after(&device, reads, moment).unwrap_or_else(|error| panic!("the power failed after {moment}: {error}"))
    });
    let longest = drained.map(|drained| drained.took).max();
    assert!(longest >= Some(least), "dies had begun nothing: {longest:?}");
    device.settings.mutation = Some(Mutation::EraseAnyway);
    let short = moments().find_map(|moment| fail_after(&device, reads, moment).err());
    let said = short.expect("the planted bug is found").to_string();
    assert!(said.contains("the energy was used up"), "{said}");
}

/// The blocks of a group are erased one after another, where they are not erased together.
#[test]
fn a_buffer_does_not_wait_for_erases_that_have_not_begun() {
    let device = one_die();
    expect_enough(device, 0.0, Span::from_millis(100), Span::from_millis(150));
}

/// A die is given two of them, of which it has begun one.
#[test]
fn erases_that_dies_are_given_ahead_are_reckoned_with() {
    let mut device = one_die();
    device.settings.flash.ahead = true;
    expect_enough(device, 0.0, Span::from_millis(100), Span::from_millis(350));
}

/// An erase that is suspended takes longer.
#[test]
fn an_erase_that_is_suspended_is_reckoned_with() {
    let mut device = one_die();
    device.settings.flash.suspend = true;
    device.timing.suspend = Suspend {
        programs_max: 4,
        erases_max: 4,
        reads_max: 4,
        program_latency: Span::from_micros(20),
        erase_latency: Span::from_millis(5),
        resume_overhead: Span::from_millis(5),
    };
    expect_enough(device, 0.5, Span::from_millis(100), Span::from_millis(200));
}

/// Reads are tried again and again, as each page of such a drive is, and most are for hosts that are gone.
#[test]
fn a_buffer_does_not_wait_for_reads_that_have_not_begun() {
    let mut device = one_die();
    device.timing.erase = Span::from_millis(2);
    device.drive.sector_words = 2;
    device.faults = Some(FaultSettings {
        errors: ErrorModel { base: 2.2e-3, ..ErrorModel::default() },
        block_sigma: 0.1,
        decode: Span::from_millis(2),
        decode_bit: Span::from_micros(1),
        retry: ReadRetry { levels: 60, factor: 1.0 },
        ..FaultSettings::sound()
    });
    expect_enough(device, 0.7, Span::from_millis(37), Span::from_millis(125));
}

/// The firmware's part of a page is reckoned from the processor that it runs on: where that is slow, it is the most of it.
#[test]
fn a_slow_processor_brings_the_buffer_to_flash_all_the_same() {
    let slow = Processor { thread_slot: Span::from_micros(50), core_slot: Span::from_micros(12), ..processor() };
    let mut device = one_die();
    device.timing.program = [Span::from_micros(20); 3];
    device.timing.erase = Span::from_micros(200);
    let mut drained = |page| {
        charge_least(&mut device, PowerBudget { page, ..budget(0.0) });
        fail_on(slow.clone(), &device, 0.0, Span::from_secs(5))
    };
    let whole = drained(PowerBudget::page_on(&slow)).expect("enough for a slow processor");
    assert!(whole.is_whole && whole.took > Span::from_millis(50), "{whole:?}");
    let short = drained(PowerBudget::page_on(&processor())).expect_err("enough for a fast one").to_string();
    assert!(short.contains("the energy was used up"), "{short}");
}

/// What a die had done of an operation when the power failed costs nothing, and it cannot work for longer than the drive is kept; and what
/// was taken when the buffer is on flash must not be more than there was.
#[test]
fn energy_is_taken_from_when_the_power_fails_and_what_is_overspent_is_not_enough() {
    let mut device = Small::default().device();
    charge_least(&mut device, budget(0.0));
    let dies = u64::from(device.drive.geometry.die_count());
    for moment in (1..40).map(|moment| Span::from_micros(67) * moment) {
        let run = || run_until(processor(), &device, 0.5, moment).expect("a run without faults");
        let Drained { took, joules, .. } = fail(run()).expect("it is enough");
        let [least, most] = [Span::ZERO, took * dies].map(|worked| budget(0.0).taken(took, worked));
        assert!((least..=most).contains(&joules), "{joules} J after {moment}, {least} to {most} in {took}");
        for (share, is_enough) in [(1.0 + 1e-9, true), (1.0 - 1e-9, false)] {
            let mut session = run();
            session.power.as_mut().expect("it is protected").energy_j = joules * share;
            assert_eq!(fail(session).is_ok(), is_enough, "{joules} J after {moment}");
        }
    }
}
