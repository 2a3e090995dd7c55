//! Flush: what was written before it is on flash when it is answered, and it is answered however busily hosts go on writing.

use crate::small::{Small, processor};
use firmware::architecture::ARCHITECTURES;
use host::{Pace, Phase, Rounds};
use rig::Session;
use units::{Bytes, Lba, Span};
use workload::{Parameters, Pattern, Recipe, Region, Share};

/// A page that is written again faster than it can be programmed is never clean, so a Flush must not wait for that.
#[test]
fn a_flush_ends_while_one_page_is_written_again_and_again() {
    for &architecture in ARCHITECTURES {
        let small = Small { architecture, ..Small::default() };
        let mut recipe = Recipe::fixed("hot", Pattern::Random, 0.0, 4096);
        recipe.others.flush = 0.001;
        let one_page = Some(Region { start: Lba(0), sectors: 8 });
        let parameters = Parameters { region: one_page, ..Parameters::new(small.sectors(), 1) };
        let source = recipe.source(&parameters).expect("a drawable workload");
        let rounds = Rounds::one(None, Some(Span::from_millis(300)));
        let phase = Phase { rounds, ..Phase::new("hot", Box::new(source), Pace::Closed) };
        let mut session = Session::new(&small.device(), "small", processor(), 1, vec![phase], 0).expect("it builds");
        let summary = session.next_phase().expect("one phase").expect("it runs");
        session.check_invariants().expect("all is in order");
        let latency = summary.other.latency.as_ref().expect("flushes were answered");
        // A page that is being programmed, the same page once more, and what stands in line for the die.
        assert!(latency.max < 10e6, "{}: {latency:?}", architecture.name());
    }
}

/// Writes that wait for their entries take every frame that comes free: a Flush has its turns all the same. Eight pages at each end of
/// those that are written share entries, and nearly all writes are of these.
#[test]
fn a_flush_ends_while_writes_wait_for_every_frame_that_comes_free() {
    for non_blocking in [false, true] {
        let mut device = Small { queues: 8, depth: 8, ..Small::default() }.device();
        let counts = device.settings.threads.with("cache", 1);
        device.settings = device.settings.staffed(device.architecture, counts);
        device.placement = device.architecture.place(counts, 4).expect("four cores");
        let cache = &mut device.settings.cache;
        (cache.size, cache.spare_frames) = (Bytes::mib(1), 1);
        (cache.non_blocking, cache.bypass) = (non_blocking, false);
        let shares = [(49.0, 8.0), (2.0, 248.0), (49.0, 8.0)].map(|(accesses, space)| Share { accesses, space });
        let mut recipe = Recipe::fixed("shared", Pattern::Regions(shares.into()), 0.0, 4096);
        recipe.others.flush = 0.002;
        let pages = Some(Region { start: Lba(0), sectors: 264 * 8 });
        let source = recipe.source(&Parameters { region: pages, ..Parameters::new(264 * 8, 1) });
        let source = source.expect("a drawable workload");
        let phase = Phase { ios: Some(20_000), ..Phase::new("shared", Box::new(source), Pace::Closed) };
        let mut session = Session::new(&device, "small", processor(), 1, vec![phase], 0).expect("it builds");
        let summary = session.next_phase().expect("one phase").expect("it runs");
        let latency = summary.other.latency.as_ref().expect("flushes were answered");
        // As many programs, one after another, as the buffer has pages, and as many of writes between them.
        let all = device.timing.program[2].secs_f64() * 1e9 * 2.0 * 264.0;
        assert!(latency.max < 1.2 * all, "non-blocking {non_blocking}: {latency:?}, {all} ns for all of the buffer");
        assert!(summary.other.ios > 20, "non-blocking {non_blocking}: {} ended", summary.other.ios);
    }
}
