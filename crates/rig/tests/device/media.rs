//! Flash that fails: what cannot be corrected is told, what is answered is right, in every architecture and both worlds.

use crate::configured;
use crate::small::{Small, budget, mixed, processor, ten_times_as_fast};
use firmware::architecture::{ARCHITECTURES, Architecture, DEFAULT};
use firmware::{GroupState, MappingScheme, ReclaimSettings};
use flash::{ErrorModel, FaultSettings, ReadRetry};
use host::{Pace, Phase, Rounds};
use report::{Media, Summary};
use rig::config::Layers;
use rig::{Device, Fill, Session, run_on_threads};
use threads::Layout;
use units::{Bytes, Lpn, SECTOR_BYTES, Span};
use workload::{Arrivals, Parameters, Pattern, Recipe};

/// Flash at the end of its life: of 9,200 bits of a word 14 are wrong on average, and of reads from worn blocks more.
pub(crate) fn worn() -> FaultSettings {
    FaultSettings {
        errors: ErrorModel { base: 1.5e-3, disturb: 2e-6, disturb_exponent: 1.0, ..ErrorModel::default() },
        block_sigma: 0.3,
        correctable: 24,
        decode: Span::from_micros(1),
        decode_bit: Span::from_nanos(500),
        retry: ReadRetry { levels: 2, factor: 0.8 },
        ..FaultSettings::sound()
    }
}

fn reads(sectors: u64, ios: u64) -> Phase {
    let source = Recipe::fixed("reads", Pattern::Random, 1.0, 4096).source(&Parameters::new(sectors, 1));
    Phase { ios: Some(ios), ..Phase::new("reads", Box::new(source.expect("a drawable workload")), Pace::Closed) }
}

fn run(device: &Device, small: &Small, ios: u64) -> (Summary, u64) {
    let phase = mixed("mixed", small.seed, small.sectors(), ios);
    let name = device.architecture.name();
    // While the reads go on, PipeSSD's last erases are done: until then its tables are ahead of flash.
    let phases = vec![phase, reads(small.sectors(), 400)];
    let mut session = Session::new(device, "small", processor(), small.seed, phases, 0).expect("it can be built");
    let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
    session.next_phase().expect("another").unwrap_or_else(|error| panic!("{name}: {error}"));
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
        let (summary, digest) = run(&device, &small, 4_000);
        let media = media(&summary);
        assert!(media.bit_errors > media.corrected && media.corrected > 5_000, "{}: {media:?}", architecture.name());
        assert!(media.retries > media.uncorrectable, "{}: {media:?}", architecture.name());
        assert!(media.uncorrectable > 0 && media.failed_commands > 0, "{}: {media:?}", architecture.name());
        assert_eq!(run(&device, &small, 4_000).1, digest, "{} repeats", architecture.name());
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
        let device = Device { faults: Some(worn()), ..ten_times_as_fast(small.device()) };
        let phase = mixed("mixed", 1, small.sectors(), 600);
        let layout = Layout::on(2);
        let ran = run_on_threads(&device, "small", 1, vec![phase], layout, Some(Span::from_secs(300)));
        let summary = ran.unwrap_or_else(|error| panic!("{}: {error}", architecture.name())).remove(0);
        assert!(media(&summary).corrected > 200, "{}: {:?}", architecture.name(), summary.media);
    }
}

/// Bits that never fail, so that what a test sees comes from operations that do.
pub(crate) fn failing(program_failures: f64, erase_failures: f64) -> FaultSettings {
    FaultSettings { errors: ErrorModel::default(), program_failures, erase_failures, ..worn() }
}

fn that_replace_blocks() -> impl Iterator<Item = &'static dyn Architecture> {
    ARCHITECTURES.iter().copied().filter(|architecture| architecture.replaces_blocks())
}

#[test]
fn pages_find_another_place_and_blocks_that_fail_are_used_no_more() {
    for architecture in that_replace_blocks() {
        let small = Small { architecture, fill: Fill::Random { times: 1.0 }, ..Small::default() };
        let device = Device { faults: Some(failing(0.001, 0.01)), ..small.device() };
        let (summary, digest) = run(&device, &small, 8_000);
        let media = media(&summary);
        assert!(media.bad_blocks >= 10 && media.failed_operations >= 10, "{}: {media:?}", architecture.name());
        assert_eq!((media.failed_commands, media.uncorrectable), (0, 0), "{}: {media:?}", architecture.name());
        assert_eq!(run(&device, &small, 8_000).1, digest, "{} repeats", architecture.name());
    }
}

/// What a group holds of which a program failed is moved by BGC, however busy the drive is, and the group retired; when hosts hardly ask
/// for anything none is left to be, and each page is where it went.
#[test]
fn groups_of_which_a_program_failed_are_emptied_and_retired() {
    for architecture in that_replace_blocks() {
        let name = architecture.name();
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let device = Device { faults: Some(failing(0.001, 0.0)), ..small.device() };
        let rarely = Arrivals::Poisson { per_second: 200.0 };
        let rare = Recipe { arrivals: rarely, ..Recipe::fixed("rare", Pattern::Random, 1.0, 4096) };
        let rare = Box::new(rare.source(&Parameters::new(small.sectors(), 2)).expect("a drawable workload"));
        let rare = Phase { ios: Some(200), ..Phase::new("rare", rare, Pace::Timed) };
        let phases = vec![mixed("mixed", 1, small.sectors(), 6_000), rare, reads(small.sectors(), 8_000)];
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        let mut next = |what: &str| {
            let summary = session.next_phase().expect(what).unwrap_or_else(|error| panic!("{name}, {what}: {error}"));
            session.check_invariants().unwrap_or_else(|error| panic!("{name}, {what}: {error}"));
            assert_eq!(media(&summary).failed_commands, 0, "{name}, {what}");
            let groups = &session.tables().groups;
            let bad = (0..groups.count()).filter(|&group| groups.is_bad(group));
            let (retired, waiting): (Vec<u32>, Vec<u32>) =
                bad.partition(|&group| groups.state(group) == GroupState::Retired);
            assert!(retired.iter().all(|&group| groups.valid_count(group) == 0), "{name}, {what}: {retired:?}");
            (retired.len(), waiting.len(), groups.flawed())
        };
        let (retired, waiting, _) = next("mixed");
        assert!(retired >= 4, "{name}: {retired} groups retired, {waiting} to be");
        // Of the programs that move what they hold some fail, too.
        let (all, left, flawed) = next("rare");
        assert!(all >= retired + waiting && (left, flawed) == (0, 0), "{name}: {all} retired, {left} to be, {flawed}");
        assert_eq!(next("reads"), (all, 0, 0), "{name}");
    }
}

#[test]
fn blocks_that_are_bad_from_the_factory_are_never_used() {
    for &architecture in ARCHITECTURES {
        for fill in [Fill::Sequential, Fill::Random { times: 1.0 }] {
            let small = Small { architecture, fill, ..Small::default() };
            let device =
                Device { faults: Some(FaultSettings { factory_bad: 0.02, ..failing(0.0, 0.0) }), ..small.device() };
            let (summary, _) = run(&device, &small, 4_000);
            // Of 512 blocks about 10 are bad, and the other plane of their groups is lost with them.
            assert!((6..40).contains(&media(&summary).bad_blocks), "{}: {:?}", architecture.name(), summary.media);
        }
    }
}

/// Drives of which every erase fails, or one in four, so that they wear down while they work; and such that stand few erases: all
/// architectures, and hybrid mapping where there is that.
fn that_wear_out() -> Vec<(String, u64, Device)> {
    let mut all = Vec::new();
    for &architecture in ARCHITECTURES {
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let device = small.device();
        let name = architecture.name();
        for erase_failures in [1.0, 0.25].into_iter().filter(|_| architecture.retires_blocks()) {
            let faults = Some(failing(0.0, erase_failures));
            all.push((
                format!("{name}, {erase_failures} of erases fail"),
                small.sectors(),
                Device { faults, ..device.clone() },
            ));
        }
        // One erase is less than PipeSSD keeps of each block.
        for erase_limit in [1, 2, 3].into_iter().filter(|&erases| erases > 1 || architecture.retires_blocks()) {
            let faults = Some(failing(0.0, 0.0));
            let worn = Device { faults, erase_limit, ..device.clone() };
            all.push((format!("{name}, blocks stand {erase_limit} erases"), small.sectors(), worn));
        }
    }
    // More may be dirty in the cache than there is room beyond what is mapped.
    let architecture = *ARCHITECTURES.iter().find(|architecture| !architecture.retires_blocks()).expect("there is one");
    let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
    let mut device = Device { faults: Some(failing(0.0, 0.0)), erase_limit: 3, ..small.device() };
    device.settings.cache.size = Bytes(small.sectors() * SECTOR_BYTES / 2);
    all.push((format!("{}, with a large cache", architecture.name()), small.sectors(), device));
    let mapping = MappingScheme::Hybrid { log_blocks: 1, data_blocks: 8 };
    let small = Small { mapping, fill: Fill::Sequential, ..Small::default() };
    for (erase_failures, erase_limit) in [(1.0, 100), (0.25, 100), (0.0, 1), (0.0, 2)] {
        let device = Device { faults: Some(failing(0.0, erase_failures)), erase_limit, ..small.device() };
        all.push((format!("hybrid, {erase_failures} fail, blocks stand {erase_limit}"), small.sectors(), device));
    }
    all
}

#[test]
fn a_drive_without_spare_blocks_takes_no_more_writes_and_keeps_what_it_has() {
    for (name, sectors, device) in that_wear_out() {
        // Two phases wear out a drive that loses blocks. Of one whose blocks stand so many erases each may take a phase.
        let lasts = if device.erase_limit < 100 { u64::from(device.erase_limit) + 1 } else { 2 };
        let mut phases: Vec<Phase> = (0..=lasts).map(|seed| mixed("mixed", seed + 1, sectors, 7_000)).collect();
        phases.push(reads(sectors, 4_000));
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        let mut last = Vec::new();
        while let Some(ended) = session.next_phase() {
            last.push(ended.unwrap_or_else(|error| panic!("{name}: {error}")));
        }
        session.check_invariants().unwrap_or_else(|error| panic!("{name}: {error}"));
        let (read, mixed) = (last.pop().expect("reads"), last.pop().expect("another"));
        assert!(session.tables().groups.is_read_only(), "{name}: {:?}", mixed.media);
        let failed = media(&mixed).failed_commands;
        // Half of the requests write, flush or deallocate.
        assert!((2_000..4_200).contains(&failed), "{name}: {failed} of 7,000 commands failed");
        let (writes, moved) = (mixed.write.ios, mixed.write.bandwidth);
        assert!(writes > 2_000 && moved == 0.0, "{name}: {writes} writes that failed moved {moved} bytes a second");
        assert_eq!(media(&read).failed_commands, 0, "{name}: reads go on");
        assert!(read.data.expect("it is checked").checked > 10_000, "{name}: reads go on");
    }
}

/// What the buffer of a protected drive was answered for is on flash when the power is gone, also where no group is erased any more:
/// what is kept for it is nobody else's.
#[test]
fn a_protected_drive_without_spare_blocks_keeps_what_is_in_its_buffer() {
    let drain = |architecture: &&dyn Architecture| architecture.drains() && architecture.retires_blocks();
    for architecture in ARCHITECTURES.iter().copied().filter(drain) {
        for (erase_failures, paced, seed) in [(1.0, false, 1), (1.0, true, 2), (0.25, false, 3), (0.25, true, 4)] {
            let name = format!("{}, {erase_failures} of erases fail, paced {paced}", architecture.name());
            let small = Small { architecture, fill: Fill::Sequential, blocks: [64, 16], ..Small::default() };
            let mut device = Device { faults: Some(failing(0.0, erase_failures)), ..small.device() };
            device.settings.cache.size = Bytes(4096 * u64::from(device.settings.parts.cache.max(64)));
            device.settings.reclaim.paced = paced;
            device.drive.write_through = false;
            device.power = Some(budget(1_000.0));
            let recipe = Recipe::fixed("writes", Pattern::Random, 0.0, 4096);
            let writes = Box::new(recipe.source(&Parameters::new(small.sectors(), seed)).expect("drawable"));
            let writes =
                Phase { rounds: Rounds::one(Some(60_000), None), ..Phase::new("writes", writes, Pace::Closed) };
            let mut session =
                Session::new(&device, "small", processor(), seed, vec![writes], 0).expect("it can be built");
            session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
            let tables = session.tables();
            assert!(tables.groups.is_read_only(), "{name}");
            let held = (0..tables.cache_entries).filter(|&entry| tables.tags.get(entry) != 0).count() as u64;
            let recovery = session.lose_power(&device, processor()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let drained = recovery.drained.expect("it is protected");
            assert!(drained.is_whole && drained.pages >= held, "{name}: {held} pages held, {drained:?}");
        }
    }
}

fn timeless() -> sim::Processor {
    let layers = Layers::new().flag("--device", "small").and_then(|layers| layers.flag("--processor", "timeless"));
    layers.and_then(|layers| layers.resolve()).expect("a configuration").processor
}

/// Blocks that are lost one by one cost no command anything while there are others, with several workers on cores that take no time, too.
#[test]
fn a_drive_that_loses_blocks_goes_on_while_it_has_others() {
    let hybrid = |log_blocks, data_blocks| MappingScheme::Hybrid { log_blocks, data_blocks };
    let page = ARCHITECTURES.iter().map(|&architecture| (architecture, MappingScheme::Page));
    let others = [hybrid(1, 8), hybrid(4, 8)].map(|mapping| (DEFAULT, mapping));
    for (architecture, mapping) in page.chain(others).filter(|(architecture, _)| architecture.retires_blocks()) {
        for processor in [processor(), timeless()] {
            let small = Small { architecture, mapping, fill: Fill::Sequential, blocks: [64, 16], ..Small::default() };
            let device = Device { faults: Some(failing(0.0, 0.01)), ..small.device() };
            let name = format!("{}, {mapping:?}, {}", architecture.name(), processor.name);
            let phase = mixed("mixed", 1, small.sectors(), 12_000);
            let mut session = Session::new(&device, "small", processor, 1, vec![phase], 0).expect("it can be built");
            let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
            session.check_invariants().unwrap_or_else(|error| panic!("{name}: {error}"));
            let media = media(&summary);
            assert!(media.failed_operations >= 3 && media.failed_commands == 0, "{name}: {media:?}");
        }
    }
}

/// Of many workers one reclaims, if erases have failed and little is free: what the others fill is its room, too. Commands failed here
/// while most of the spare groups were left.
#[test]
fn a_drive_of_many_workers_goes_on_while_it_has_others() {
    for (workers, over_provisioning, erase_failures, seed, ios) in
        [(32, 0.2, 0.004, 4, 36_000), (8, 0.2, 0.004, 1, 40_000), (32, 0.5, 0.03, 1, 50_000)]
    {
        let (seed, ios) = (seed.to_string(), ios.to_string());
        let flags = [
            ("--device", "small"),
            ("--architecture", "tradition"),
            ("--workload", "randwrite"),
            ("--payload", "none"),
            ("--seed", &seed),
            ("--ios", &ios),
        ];
        let sets = [
            "device.media.faults=true",
            "cache.size_bytes=256KiB",
            "device.blocks_per_plane=64",
            &format!("device.media.erase_failures={erase_failures}"),
            &format!("threads.worker={workers}"),
            &format!("device.over_provisioning={over_provisioning}"),
        ];
        let summary = configured::run(&flags, &sets).expect("right answers");
        let media = media(&summary);
        assert!(media.failed_operations >= 8 && media.failed_commands == 0, "{workers} workers: {media:?}");
    }
}

/// A write whose program fails when there is no other place is taken back: what was there before counts again, after a power cut too,
/// whatever checkpoint was being written meanwhile.
#[test]
fn what_a_failed_write_would_have_replaced_outlives_a_power_cut() {
    for architecture in that_replace_blocks() {
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let mut device = Device { faults: Some(failing(1.0, 0.0)), ..small.device() };
        device.drive.write_through = true;
        device.drive.keeps_journal = true;
        let journal = &mut device.settings.journal;
        (journal.interval, journal.patience, journal.busy_share) = (Span::from_micros(200), Span::ZERO, 1.0);
        journal.only_when_idle = false;
        let name = architecture.name();
        let recipe = Recipe::fixed("writes", Pattern::Random, 0.0, 4096);
        let writes = Box::new(recipe.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload"));
        let writes = Phase { rounds: Rounds::one(Some(64), None), ..Phase::new("writes", writes, Pace::Closed) };
        let recipe = Recipe { arrivals: Arrivals::Poisson { per_second: 9_000.0 }, ..recipe };
        let recipe = Recipe { read_fraction: 1.0, ..recipe };
        let rare = Box::new(recipe.source(&Parameters::new(small.sectors(), 2)).expect("a drawable workload"));
        let rare = Phase { rounds: Rounds::one(Some(5), None), ..Phase::new("reads", rare, Pace::Timed) };
        let mut session =
            Session::new(&device, "small", processor(), 1, vec![writes, rare], 0).expect("it can be built");
        while let Some(ended) = session.next_phase() {
            ended.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(session.tables().groups.is_read_only(), "{name}");
        let mapping = &session.tables().mapping;
        let mapped =
            (0..small.sectors().div_ceil(8) as u32).filter(|&lpn| mapping.get(Lpn(lpn)).is_some()).count() as u64;
        let recovery = session.lose_power(&device, processor()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(recovery.mapped, mapped, "{name}");
        assert!(mapped > 100, "{name}: {mapped}");
    }
}

/// Checkpoints wear the journal's own blocks, of which none replaces another.
#[test]
fn a_drive_with_a_worn_out_journal_takes_no_more_writes_and_keeps_what_it_has() {
    for architecture in that_replace_blocks() {
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let mut device = Device { faults: Some(failing(0.0, 0.0)), erase_limit: 2, ..small.device() };
        let journal = &mut device.settings.journal;
        (journal.interval, journal.only_when_idle, journal.busy_share) = (Span::from_millis(1), false, 1.0);
        device.settings.cache.size = Bytes(4096 * u64::from(device.settings.parts.cache.max(2)));
        let name = architecture.name();
        let arrivals = Arrivals::Poisson { per_second: 3_000.0 };
        let recipe = Recipe { arrivals, ..Recipe::fixed("writes", Pattern::Random, 0.0, 4096) };
        let writes = Box::new(recipe.source(&Parameters::new(2_048, 1)).expect("a drawable workload"));
        let rounds = Rounds::one(None, Some(Span::from_secs(2)));
        let phases = vec![Phase { rounds, ..Phase::new("writes", writes, Pace::Timed) }, reads(small.sectors(), 4_000)];
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        let written = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
        let read = session.next_phase().expect("another").unwrap_or_else(|error| panic!("{name}: {error}"));
        session.check_invariants().unwrap_or_else(|error| panic!("{name}: {error}"));
        let journal = written.journal.as_ref().expect("it writes checkpoints");
        assert_eq!(journal.erase_count_max, 2, "{name}: {journal:?}");
        assert!(session.tables().groups.is_read_only(), "{name}: {journal:?}");
        assert!(read.data.expect("it is checked").checked > 10_000, "{name}: reads go on");
    }
}

/// One victim at a time and hosts that never rest leave no moment without a reclaim: groups that failed are emptied all the same.
#[test]
fn a_busy_drive_empties_groups_that_failed() {
    let cases = that_replace_blocks().flat_map(|architecture| [(architecture, false), (architecture, true)]);
    for (architecture, paced) in cases {
        let small = Small { architecture, fill: Fill::Random { times: 1.0 }, blocks: [64, 16], ..Small::default() };
        let mut device = Device { faults: Some(failing(0.0005, 0.0)), ..small.device() };
        device.settings.reclaim = ReclaimSettings { victims: 1, paced, ..device.settings.reclaim };
        let recipe = Recipe::fixed("writes", Pattern::Random, 0.0, 4096);
        let writes = Box::new(recipe.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload"));
        let writes = Phase { ios: Some(20_000), ..Phase::new("writes", writes, Pace::Closed) };
        let name = architecture.name();
        let mut session = Session::new(&device, "small", processor(), 1, vec![writes], 0).expect("it can be built");
        let summary = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
        let (failed, left) = (media(&summary).bad_blocks, session.tables().groups.flawed());
        assert!(failed >= 6 && left <= 2, "{name}, {paced}: of {failed} groups that failed {left} are still in use");
    }
}

#[test]
fn groups_that_are_close_to_the_limit_are_rewritten_in_time() {
    for architecture in that_replace_blocks() {
        let lost = |weak| {
            let disturbed = ErrorModel { base: 5e-4, disturb: 1e-6, disturb_exponent: 1.0, ..ErrorModel::default() };
            let retry = ReadRetry { levels: 0, factor: 1.0 };
            let faults = FaultSettings { errors: disturbed, block_sigma: 0.0, retry, weak, ..worn() };
            let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
            let device = Device { faults: Some(faults), ..small.device() };
            let mut session =
                Session::new(&device, "small", processor(), 1, vec![reads(512, 60_000)], 0).expect("it can be built");
            let summary = session.next_phase().expect("one phase").expect("nothing is wrong");
            media(&summary).uncorrectable
        };
        let (left, scrubbed) = (lost(0.0), lost(0.7));
        assert!(left > 100 && scrubbed * 20 < left, "{}: {scrubbed} scrubbed, {left} left", architecture.name());
    }
}

/// What overwrites before the run have worn is worn: bits come back wrong as after as many cycles, and a drive at its limit takes no more
/// writes.
#[test]
fn erases_before_the_run_are_cycles_of_flash() {
    let errors = ErrorModel { wear: 1e-5, wear_exponent: 1.0, ..ErrorModel::default() };
    let corrected = |times, cycles| {
        let small = Small { fill: Fill::Random { times }, ..Small::default() };
        let faults = FaultSettings { errors, cycles, block_sigma: 0.0, ..worn() };
        let phases = vec![reads(small.sectors(), 2_000)];
        let device = Device { faults: Some(faults), ..small.device() };
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        media(&session.next_phase().expect("one phase").expect("it answers")).bit_errors as f64
    };
    // Blocks were erased once after one overwrite in the steady state, or never.
    let (fresh, erased, cycled) = (corrected(1.0, 0), corrected(100.0, 0), corrected(1.0, 99));
    assert!(fresh < erased / 20.0 && (0.95..1.05).contains(&(erased / cycled)), "{fresh}, {erased}, {cycled}");
    for architecture in that_replace_blocks() {
        let name = architecture.name();
        let small = Small { architecture, fill: Fill::Random { times: 3.0 }, blocks: [64, 16], ..Small::default() };
        let device = Device { faults: Some(failing(0.0, 0.0)), erase_limit: 4, ..small.device() };
        let phases = vec![mixed("mixed", 1, small.sectors(), 20_000)];
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
        let groups = &session.tables().groups;
        assert!(groups.is_read_only() && groups.erases().1 == 4, "{name}: {:?} erases", groups.erases());
        session.check_invariants().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Its pages would be no better on blocks as worn, and each time others would be lost.
#[test]
fn flash_that_cannot_be_read_from_the_beginning_is_not_rewritten() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let errors = ErrorModel { base: 2.5e-3, ..ErrorModel::default() };
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let device =
            Device { faults: Some(FaultSettings { errors, block_sigma: 0.0, weak: 0.7, ..worn() }), ..small.device() };
        let phases = (0..6).map(|_| reads(small.sectors(), 4_000)).collect();
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        let mut failed = Vec::new();
        while let Some(summary) = session.next_phase() {
            let summary = summary.unwrap_or_else(|error| panic!("{name}: {error}"));
            failed.push(media(&summary).failed_commands);
            let programs = summary.flash.expect("it has flash").programs;
            assert!(programs < 40, "{name}: {programs} programs for reads");
        }
        let (first, last) = (failed[0], failed[5]);
        assert!(first > 40 && last * 10 < first * 13, "{name}: {failed:?} reads failed");
    }
}

#[test]
fn on_real_threads_pages_find_another_place_too() {
    for architecture in that_replace_blocks() {
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let device = Device { faults: Some(failing(0.01, 0.02)), ..ten_times_as_fast(small.device()) };
        let phase = mixed("mixed", 1, small.sectors(), 600);
        let layout = Layout::on(2);
        let ran = run_on_threads(&device, "small", 1, vec![phase], layout, Some(Span::from_secs(300)));
        let summary = ran.unwrap_or_else(|error| panic!("{}: {error}", architecture.name())).remove(0);
        let media = media(&summary);
        assert!(media.failed_operations > 0, "{}: {media:?}", architecture.name());
        assert_eq!(media.failed_commands, 0, "{}: {media:?}", architecture.name());
    }
}

/// FCMD finds flaws while TRANS gives out places: what was to be kept free grows between its asking and its giving. That is a matter of
/// nanoseconds, so that it takes many requests to meet.
#[test]
fn a_flaw_that_another_thread_finds_takes_no_place_from_the_host() {
    let flags = [
        ("--device", "small"),
        ("--cores", "6"),
        ("--workload", "mixed"),
        ("--precondition", "seq"),
        ("--ios", "150000"),
    ];
    let sets = "device.channels=1 device.dies_per_package=1 device.planes_per_die=1 device.pages_per_block=2 \
        device.blocks_per_plane=120 device.kind=slc device.over_provisioning=1.0 device.media.faults=true \
        device.media.rber_base=0.0012 device.media.rber_disturb=1e-5 threads.nvmq=1 threads.ilock=1 threads.cache=0 \
        threads.trans=1 threads.bgc=1 threads.fcmd=1 threads.log=0 run.world=threads \
        run.timing=false run.payload=fingerprint host.queues=1 host.depth=16 workload.block_bytes=4096 \
        workload.read_fraction=0.5";
    let resolved = configured::resolved(&flags, &sets.split_whitespace().collect::<Vec<_>>());
    for seed in 1..=2 {
        let (layout, longest) = (Layout::on(2), Some(Span::from_secs(300)));
        let ran = run_on_threads(&resolved.plan(), "small", seed, resolved.phases(), layout, longest);
        let summary = ran.unwrap_or_else(|error| panic!("seed {seed}: {error}")).remove(0);
        assert!(media(&summary).corrected > 10_000, "seed {seed}: {:?}", summary.media);
    }
}
