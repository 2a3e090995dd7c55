//! What the firmware counts is the same in both worlds: one request after another looks up the same pages and takes the same locks.
//! Which pages of one request come first is up to the world, and with it which are hit and evicted.

use firmware::architecture::ARCHITECTURES;
use host::{Pace, Phase, Rounds};
use nvme::CoalescingSettings;
use report::Summary;
use rig::check::small::{Small, mixed, processor};
use rig::{Fill, Layout, Session, run_on_threads};
use units::Span;
use workload::{Others, Parameters, Pattern, Recipe};

#[test]
fn both_worlds_count_the_same() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = Small { architecture, queues: 1, depth: 1, ..Small::default() };
        let phase = || mixed("mixed", 3, small.sectors(), 1_500);
        // Work that waits for an idle drive: a machine that is busy with other things leaves it as much time as it likes.
        let mut device = small.device();
        device.settings.reclaim.background = false;
        device.settings.journal.interval = Span::from_secs(1_000);
        let session = Session::new(&device, "small", processor(), small.seed, vec![phase()], 0);
        let modelled = session
            .expect("a device that can be built")
            .next_phase()
            .expect("one phase")
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let layout = Layout::on(2);
        device.timed = false;
        let real = run_on_threads(&device, "small", 3, vec![phase()], layout, Some(Span::from_secs(300)));
        let real = real.unwrap_or_else(|error| panic!("{name}: {error}")).remove(0);
        assert!(real.check().is_empty(), "{name}: {:?}", real.check());
        let parts = |of: &Summary| of.breakdown.iter().map(|(part, _)| part.to_owned()).collect::<Vec<_>>();
        assert!(
            real.breakdown_of.is_some_and(|of| (160..220).contains(&of)) && parts(&real) == parts(&modelled),
            "{name}"
        );
        // Flash and link take no time: a thread of the machine is all that can be full.
        let limits: Vec<_> = real.bounds().iter().map(|bound| bound.resource.as_str()).collect();
        assert_eq!(limits, ["busiest machine thread"], "{name}");
        let lookups =
            |of: &Summary| of.cache.as_ref().map(|cache| [&cache.reads, &cache.writes].map(|of| of.hits + of.misses));
        assert_eq!(lookups(&real), lookups(&modelled), "{name}");
        let taken = |of: &Summary| of.locks.as_ref().map(|locks| locks.acquires);
        let is_near = |(real, modelled): (u64, u64)| real.abs_diff(modelled) * 10 <= modelled;
        assert!(taken(&real).zip(taken(&modelled)).is_none_or(is_near), "{name}: {:?}", real.locks);
        assert_eq!(real.locks.is_some(), modelled.locks.is_some(), "{name}");
        let flash = |of: &Summary| of.flash.as_ref().map(|flash| (flash.reads, flash.programs)).expect("it has flash");
        let (real, modelled) = (flash(&real), flash(&modelled));
        // Flash that takes no time leaves the firmware less of it for what it does beside requests.
        let is_some = |real: u64, modelled: u64| real > 0 && real * 10 <= modelled * 11;
        assert!(is_some(real.0, modelled.0) && is_some(real.1, modelled.1), "{name}: {real:?} {modelled:?}");
    }
}

/// What flash and the link take of a request in real time is what they take in virtual time, and a little more: alarms ring late, never
/// early. Where a thread loses its processor in a request that is followed the shares are of something else: one run of five is without.
#[test]
fn flash_and_link_have_their_part_of_a_request_in_real_time_too() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = Small { architecture, queues: 1, depth: 1, fill: Fill::Sequential, ..Small::default() };
        let phase = || {
            let reads = Recipe::fixed("reads", Pattern::Random, 1.0, 4096);
            let source = reads.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload");
            Phase { ios: Some(500), ..Phase::new("reads", Box::new(source), Pace::Closed) }
        };
        let mut device = small.device();
        device.observed = Some(1);
        let mut session = Session::new(&device, "small", processor(), 1, vec![phase()], 0).expect("it can be built");
        let modelled = session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{name}: {error}"));
        let part = |of: &Summary, part| *of.breakdown.get(part).expect("a part");
        let media = |of: &Summary| part(of, "flash") + part(of, "dma");
        let dies = |of: &Summary| {
            of.bounds().iter().find(|bound| bound.resource == "flash dies").expect("they are busy").iops_bound
        };
        let is_whole = |_| {
            let real = run_on_threads(&device, "small", 1, vec![phase()], Layout::on(1), Some(Span::from_secs(300)));
            let real = real.unwrap_or_else(|error| panic!("{name}: {error}")).remove(0);
            assert_eq!(real.check(), [], "{name}");
            // The same pages are read in the same time, and what the drive does when it is idle is more on a slow machine.
            let (found, known) = (dies(&real), dies(&modelled));
            assert!(found < 1.05 * known, "{name}: dies allow {found} requests a second, not {known}");
            media(&real) > 0.9 * media(&modelled)
        };
        assert!((0..5).any(is_whole), "{name}: {:?}", modelled.breakdown);
    }
}

/// One interrupt brings many completions, the end of the warm-up among them: what the host counts from there on is what the parts of a
/// latency are of.
#[test]
fn parts_add_up_where_interrupts_are_coalesced() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = Small { architecture, ..Small::default() };
        let mut device = small.device();
        device.controller.coalescing = CoalescingSettings { threshold: 255, time: 10 };
        let rounds = Rounds::one(Some(20), None);
        let phases = (1..=20).map(|warm_up_ios| Phase {
            ios: None,
            rounds,
            warm_up_ios,
            ..mixed("mixed", warm_up_ios, small.sectors(), 0)
        });
        let mut session = Session::new(&device, "small", processor(), 1, phases.collect(), 0).expect("it can be built");
        while let Some(summary) = session.next_phase() {
            let summary = summary.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(summary.check().is_empty() && summary.simulated_ns > 0, "{name}: {:?}", summary.check());
        }
    }
}

/// Parts of pages that are made zeros are merged with what is left of them, in the buffer or past it: that is no write.
#[test]
fn deallocations_and_zeroes_are_no_look_ups() {
    for &architecture in ARCHITECTURES {
        for (deallocate, write_zeroes) in [(1.0, 0.0), (0.0, 1.0)] {
            let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
            let mut recipe = Recipe::fixed("zeros", Pattern::Random, 0.0, 1024);
            recipe.others = Others { deallocate, write_zeroes, ..Others::default() };
            recipe.alignment_bytes = Some(512);
            let source = recipe.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload");
            let phase = Phase { ios: Some(500), ..Phase::new("zeros", Box::new(source), Pace::Closed) };
            let mut session = small.session(vec![phase]);
            let summary = session.next_phase().expect("one phase").expect("it runs");
            let cache = summary.cache.expect("it has a cache");
            let looked = [cache.reads, cache.writes].map(|of| of.hits + of.misses);
            assert!(summary.other.ios == 500 && looked == [0, 0], "{}: {cache:?}", architecture.name());
        }
    }
}
