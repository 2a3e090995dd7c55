//! What holds for every channel whatever is submitted: nothing overlaps, nothing is lost, and polling changes nothing.

use crate::small::*;
use flash::*;
use proptest::prelude::*;
use units::*;

/// Times of a few nanoseconds, so that phases of different dies often end at the same time and every nanosecond can be
/// polled.
fn short_timing() -> impl Strategy<Value = Timing> {
    let spans = || prop::array::uniform3((1u64..90).prop_map(Span::from_nanos));
    let cycles =
        prop::array::uniform8(0u32..4).prop_map(|[read, read_out, program, erase, status, cache, suspend, resume]| {
            CommandCycles { read, read_out, program, erase, status, cache, suspend, resume }
        });
    let suspend = (0u32..4, 0u32..4, 1u32..4, prop::array::uniform3((0u64..20).prop_map(Span::from_nanos)));
    let array = (spans(), spans(), (1u64..200).prop_map(Span::from_nanos), (0u64..4).prop_map(Span::from_nanos));
    // As short as the rest, or long enough for a read to come between.
    let cache = (any::<bool>(), 0u64..400, prop_oneof![0u64..20, 0u64..3_600]);
    (cycles, suspend, array, cache).prop_map(|(cycles, suspend, (read, program, erase, further_plane), cache)| {
        let (programs_max, erases_max, reads_max, [program_latency, erase_latency, resume_overhead]) = suspend;
        let program = program.map(|span| span * 40);
        let shortest = *program.iter().min().unwrap();
        Timing {
            bus: MegaTransfers(4_800),
            cycle: Span::from_nanos(1),
            cycles,
            // 4,320 B take 900 ns.
            oob_moved: Bytes(224),
            read: read.map(|span| span * 20),
            program,
            erase: erase * 40,
            further_plane,
            cache_commands: cache.0,
            cache_read_busy: Span::from_nanos(cache.1),
            cache_program_busy: Span::from_nanos(cache.2).min(shortest),
            suspend: Suspend { programs_max, erases_max, reads_max, program_latency, erase_latency, resume_overhead },
        }
    })
}

fn load() -> impl Strategy<Value = Vec<(Time, Transaction)>> {
    let operation = prop_oneof![3 => Just(Operation::Read), 3 => Just(Operation::Program), 1 => Just(Operation::Erase)];
    let one = (0u64..3_000, operation, 0u16..4, 1u32..=PLANES, 0u32..2, 0u32..PAGES_PER_BLOCK, any::<bool>());
    prop::collection::vec(one, 1..40).prop_map(|drawn| {
        let (mut now, mut page) = (Time::ZERO, 0);
        let numbered = drawn.into_iter().zip(0..);
        let submit = |((gap, operation, die, planes, block, random_page, follow), tag)| {
            // Half of the submissions fall on the time of the one before; half go on at the next page.
            now += Span::from_nanos(u64::saturating_sub(gap, 1_500));
            page = if follow { (page + 1) % PAGES_PER_BLOCK } else { random_page };
            (now, transaction(operation, die, planes, block, page, tag))
        };
        numbered.map(submit).collect()
    })
}

/// Polls every nanosecond; otherwise like `drive`.
fn drive_every_nanosecond(channel: &mut Channel, submissions: &[(Time, Transaction)], until: Time) -> Vec<Finished> {
    let mut finished = Vec::new();
    let mut waiting = submissions.iter().peekable();
    for nanos in 0..=until.nanos() + 1 {
        let now = Time::from_picos(nanos * 1_000);
        channel.poll(now, &mut finished);
        while let Some((_, transaction)) = waiting.next_if(|(at, _)| *at == now) {
            channel.submit(now, *transaction);
            channel.poll(now, &mut finished);
        }
    }
    finished
}

/// Panics where the array of a transaction works before its pre-dma phase is over or after its post-dma phase has
/// begun.
fn assert_in_sequence(finished: &[Finished], phases: &[PhaseRecord]) {
    for record in phases {
        let of_tag = find(finished, record.tag.0);
        match record.phase {
            Phase::ReadCommand | Phase::EraseCommand | Phase::DataIn => {
                assert!(record.to <= of_tag.array, "{record:?}")
            }
            Phase::Array => assert!(of_tag.array <= record.from && record.to <= of_tag.at, "{record:?}"),
            Phase::DataOut | Phase::Status => {
                let is_array = |other: &&PhaseRecord| other.tag == record.tag && other.phase == Phase::Array;
                let array_end = phases.iter().filter(is_array).map(|array| array.to).max();
                assert!(array_end <= Some(record.from) && record.to == of_tag.at, "{record:?}");
            }
            Phase::CacheTurn | Phase::Suspend | Phase::Resume => {}
        }
    }
}

/// How long one or more of these phases went on.
fn covered<'a>(phases: impl Iterator<Item = &'a PhaseRecord>) -> Span {
    let mut phases: Vec<_> = phases.map(|record| (record.from, record.to)).collect();
    phases.sort();
    let mut until = Time::ZERO;
    let lengths = phases.into_iter().map(|(from, to)| {
        let length = to.since(from.max(until));
        until = until.max(to);
        length
    });
    lengths.sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_overlaps_and_nothing_is_lost(timing in short_timing(), load in load()) {
        let mut channel = channel(&timing);
        let finished = drive(&mut channel, &load);
        prop_assert_eq!(finished.len(), load.len());
        prop_assert!(finished.is_sorted_by_key(|finished| finished.at));
        for one in &finished {
            prop_assert!(one.submitted <= one.started && one.started <= one.array && one.array < one.at);
        }
        let phases: Vec<_> = channel.drain_phases().collect();
        assert_exclusive(&phases);
        assert_in_sequence(&finished, &phases);
        let total = |array: bool| -> Span {
            let of_kind = phases.iter().filter(|record| (record.phase == Phase::Array) == array);
            of_kind.map(|record| record.to - record.from).sum()
        };
        let elapsed = finished.last().unwrap().at - Time::ZERO;
        let usage = channel.usage();
        prop_assert_eq!(usage.bus_busy, total(false));
        prop_assert_eq!(usage.die_busy.iter().copied().sum::<Span>(), total(true));
        prop_assert!(usage.bus_busy <= elapsed && usage.die_busy.iter().all(|busy| *busy <= elapsed));
        prop_assert!(usage.commands_waited <= usage.dies_taken && usage.dies_taken <= elapsed * 4);
        let held: Span = usage.die_held.iter().copied().sum();
        prop_assert!(held <= usage.dies_taken, "{held} of {}", usage.dies_taken);
        for (die, &held) in (0..).zip(&usage.die_held) {
            prop_assert_eq!(held, covered(phases.iter().filter(|record| record.die == DieId(die))));
        }
        prop_assert_eq!(usage.transactions, load.len() as u64);
        let pages: u64 = load.iter().map(|(_, transaction)| u64::from(transaction.slot_count)).sum();
        prop_assert_eq!(usage.pages_read + usage.pages_programmed + usage.blocks_erased, pages);
    }

    #[test]
    fn what_is_under_way_counts_as_far_as_it_is(timing in short_timing(), load in load(), percent in 0u64..100) {
        let mut whole = channel(&timing);
        let end = drive(&mut whole, &load).last().unwrap().at;
        let then = Time::from_picos(end.picos() / 100 * percent);
        let begun = whole.drain_phases().filter(|record| record.from < then);
        let phases: Vec<_> = begun.map(|record| PhaseRecord { to: record.to.min(then), ..record }).collect();
        let mut cut = channel(&timing);
        load.iter().filter(|(at, _)| *at <= then).for_each(|(at, transaction)| cut.submit(*at, *transaction));
        let usage = cut.usage_at(then);
        let on_bus = phases.iter().filter(|record| record.phase != Phase::Array);
        prop_assert_eq!(usage.bus_busy, on_bus.map(|record| record.to - record.from).sum::<Span>());
        for (die, (&busy, &held)) in (0..).zip(usage.die_busy.iter().zip(&usage.die_held)) {
            let of_die = || phases.iter().filter(|record| record.die == DieId(die));
            let worked = of_die().filter(|record| record.phase == Phase::Array);
            prop_assert_eq!(busy, worked.map(|record| record.to - record.from).sum::<Span>());
            prop_assert_eq!(held, covered(of_die()));
        }
        let held: Span = usage.die_held.iter().copied().sum();
        prop_assert!(held <= usage.dies_taken && usage.dies_taken <= (then - Time::ZERO) * 4);
    }

    #[test]
    fn polling_changes_nothing(timing in short_timing(), load in load()) {
        let mut on_demand = channel(&timing);
        let expected = drive(&mut on_demand, &load);
        let end = expected.last().unwrap().at;
        let mut eager = channel(&timing);
        prop_assert_eq!(&drive_every_nanosecond(&mut eager, &load, end), &expected);
        let mut never = channel(&timing);
        load.iter().for_each(|(at, transaction)| never.submit(*at, *transaction));
        let mut finished = Vec::new();
        never.poll(end, &mut finished);
        prop_assert_eq!(&finished, &expected);
        prop_assert_eq!(on_demand.usage(), eager.usage());
        prop_assert_eq!(on_demand.usage(), never.usage());
        prop_assert_eq!(never.next_event(), None);
    }

    /// With cache commands and without: only a suspension lets a transaction overtake.
    #[test]
    fn without_suspend_a_die_serves_in_order_of_submission(timing in short_timing(), load in load()) {
        let timing = Timing { suspend: Suspend::OFF, ..timing };
        let finished = drive(&mut channel(&timing), &load);
        for die in 0..4 {
            let of_die = finished.iter().filter(|finished| finished.transaction.die == DieId(die));
            prop_assert!(of_die.map(|finished| finished.transaction.tag.0).is_sorted());
        }
    }
}
