//! Transactions take exactly the time that the formulas of the phases give, alone and in company.

use crate::small::*;
use flash::*;
use units::*;

/// Picoseconds that a number of bytes takes at a rate in MT/s, rounded up: the formula, not the code under test.
fn data(bytes: u64, rate: u64) -> u64 {
    (bytes * 1_000_000).div_ceil(rate)
}

const PAGE: u64 = 4096 + 224;
const CYCLE: u64 = 25_000;
const MICRO: u64 = 1_000_000;

#[test]
fn single_transactions_take_their_exact_time_at_every_bus_rate() {
    for rate in [1, 333, 400, 1200, 4800] {
        let timing = Timing { bus: MegaTransfers(rate as u32), ..timing() };
        for (operation, page, expected) in [
            (Operation::Read, 0, 7 * CYCLE + 40 * MICRO + 7 * CYCLE + data(PAGE, rate)),
            (Operation::Read, 1, 7 * CYCLE + 65 * MICRO + 7 * CYCLE + data(PAGE, rate)),
            (Operation::Program, 2, 7 * CYCLE + data(PAGE, rate) + 500 * MICRO + 2 * CYCLE),
            (Operation::Program, 3, 7 * CYCLE + data(PAGE, rate) + 1300 * MICRO + 2 * CYCLE),
            (Operation::Erase, 0, 5 * CYCLE + 2300 * MICRO + 2 * CYCLE),
        ] {
            let finished = drive_at_once(&mut channel(&timing), &[single(operation, 1, page, 9)]);
            assert_eq!(finished.len(), 1);
            assert_eq!(latency(&finished, 9).picos(), expected, "{operation:?} of page {page} at {rate} MT/s");
        }
    }
    assert_eq!(data(PAGE, 4800), 900_000);
    assert_eq!(data(PAGE, 333), 12_972_973);
}

#[test]
fn a_read_moves_as_many_pieces_of_a_long_page_as_are_wanted() {
    let shape = Shape { page: Bytes(16_384), oob: Bytes(898), ..*geometry(CellKind::Mlc).shape() };
    let timing = Timing { bus: MegaTransfers(700), oob_moved: Bytes(898), ..timing() };
    let geometry = Geometry::new(shape).unwrap();
    // A quarter of the out-of-band area is no whole number of bytes: what moves is rounded up, once.
    for (wanted, bytes) in [
        (&[0][..], 17_282),
        (&[1], 4_321),
        (&[3], 12_962),
        (&[4], 17_282),
        (&[1, 3, 1, 1], 25_923),
        (&[1, 0], 21_603),
        (&[0; 4], 69_128),
    ] {
        let mut channel = Channel::new(&geometry, &timing, ChannelId(0));
        let planes = wanted.len() as u64;
        let mut read = transaction(Operation::Read, 0, planes as u32, 0, 0, 0);
        read.pieces[..wanted.len()].copy_from_slice(wanted);
        let finished = drive_at_once(&mut channel, &[read]);
        let command = 2 * 7 * CYCLE * planes + (planes - 1) * 500_000;
        assert_eq!(latency(&finished, 0).picos(), command + 40 * MICRO + data(bytes, 700), "{wanted:?}");
    }
}

#[test]
fn tlc_has_three_page_types() {
    let geometry = geometry(CellKind::Tlc);
    let mut ends = Vec::new();
    for page in 0..3 {
        let mut channel = Channel::new(&geometry, &timing(), ChannelId(0));
        let finished = drive_at_once(&mut channel, &[single(Operation::Read, 0, page, 0)]);
        ends.push((latency(&finished, 0).picos() - 14 * CYCLE - data(PAGE, 400)) / MICRO);
    }
    assert_eq!(ends, [40, 53, 65]);
}

#[test]
fn two_dies_overlap_and_one_die_does_not() {
    let timing = timing();
    let alone = latency(&drive_at_once(&mut channel(&timing), &[single(Operation::Read, 0, 0, 0)]), 0).picos();
    let two_dies = [single(Operation::Read, 0, 0, 0), single(Operation::Read, 1, 0, 1)];
    let finished = drive_at_once(&mut channel(&timing), &two_dies);
    // The second command follows the first, so its data are ready while the first die's are still on the bus.
    assert_eq!(latency(&finished, 0).picos(), alone);
    assert_eq!(latency(&finished, 1).picos(), alone + 7 * CYCLE + data(PAGE, 400));
    let one_die = [single(Operation::Read, 0, 0, 0), single(Operation::Read, 0, 0, 1)];
    let finished = drive_at_once(&mut channel(&timing), &one_die);
    assert_eq!(latency(&finished, 1).picos(), 2 * alone);
}

#[test]
fn a_read_command_goes_before_a_transfer_that_waits_longer() {
    let submissions = [
        (Time::ZERO, single(Operation::Program, 0, 0, 0)),
        (Time::from_picos(1), single(Operation::Program, 1, 0, 1)),
        (Time::from_picos(2), single(Operation::Read, 2, 0, 2)),
    ];
    let finished = drive(&mut channel(&timing()), &submissions);
    let first_transfer = 7 * CYCLE + data(PAGE, 400);
    assert_eq!(find(&finished, 2).started, Time::from_picos(first_transfer));
    assert_eq!(find(&finished, 1).started, Time::from_picos(first_transfer + 7 * CYCLE));
}

/// What follows a die's own data goes before the data of others that wait only where the channel has it by then.
#[test]
fn a_command_that_comes_when_data_end_finds_the_bus_taken() {
    let end = 14 * CYCLE + 40 * MICRO + data(PAGE, 400);
    let [first, second] =
        [(Time::ZERO, single(Operation::Read, 0, 0, 0)), (Time::ZERO, single(Operation::Read, 1, 0, 1))];
    let next = |at| (Time::from_picos(at), single(Operation::Read, 0, 2, 2));
    let data_of_second = 7 * CYCLE + data(PAGE, 400);
    // The command of the second die waits for that of the first, in either case.
    for (submissions, late) in [([first, second, next(0)], 0), ([first, second, next(end)], data_of_second)] {
        let mut channel = channel(&timing());
        let finished = drive(&mut channel, &submissions);
        assert_eq!(find(&finished, 2).started.picos(), end + late);
        let usage = channel.usage();
        assert_eq!(usage.commands_waited.picos(), 7 * CYCLE + late);
        let ends = [1, 2].map(|tag| find(&finished, tag).at.picos());
        assert_eq!(usage.dies_taken.picos(), ends.iter().sum::<u64>());
    }
}

/// A die without a transaction is not taken.
#[test]
fn a_die_is_taken_while_it_has_a_transaction() {
    let mut channel = channel(&timing());
    let later = Time::from_picos(3_000 * MICRO);
    let submissions = [(Time::ZERO, single(Operation::Erase, 0, 0, 0)), (later, single(Operation::Read, 0, 0, 1))];
    let finished = drive(&mut channel, &submissions);
    let both = latency(&finished, 0) + latency(&finished, 1);
    assert_eq!((channel.usage().dies_taken, channel.usage().commands_waited), (both, Span::ZERO));
}

/// What a die that is kept for pages that are decoded does all the same is not counted twice.
#[test]
fn a_die_is_kept_while_it_has_no_transaction() {
    let [read, next] = [(0, 0), (2, 1)].map(|(page, tag)| single(Operation::Read, 0, page, tag));
    let mut channel = channel(&timing());
    let end = drive(&mut channel, &[(Time::ZERO, read)])[0].at;
    let own = channel.usage().dies_taken;
    channel.keep(DieId(0), end + Span::from_micros(50));
    let counted = |channel: &Channel, at| {
        let usage = channel.usage_at(at);
        assert_eq!(usage.die_held[0], usage.dies_taken);
        usage.dies_taken
    };
    assert_eq!(counted(&channel, end + Span::from_micros(5)), own + Span::from_micros(5));
    assert_eq!(counted(&channel, end + Span::from_millis(1)), own + Span::from_micros(50));
    channel.submit(end + Span::from_micros(20), next);
    let mut finished = Vec::new();
    channel.poll(end + Span::from_millis(1), &mut finished);
    let both = own + (finished[0].at - finished[0].submitted);
    assert!(finished[0].at > end + Span::from_micros(50));
    assert_eq!(counted(&channel, end + Span::from_millis(1)), both + Span::from_micros(20));
}

#[test]
fn multi_plane_programs_work_together_and_transfer_one_by_one() {
    // At 700 MT/s a page has a fraction of a picosecond: four pages are rounded once, not four times.
    let mut channel = channel(&Timing { bus: MegaTransfers(700), ..timing() });
    let finished = drive_at_once(&mut channel, &[transaction(Operation::Program, 0, 4, 3, 1, 0)]);
    let expected = 4 * 7 * CYCLE + data(4 * PAGE, 700) + 1300 * MICRO + 3 * 500_000 + 2 * CYCLE;
    assert_eq!(latency(&finished, 0).picos(), expected);
    let usage = channel.usage();
    assert_eq!((usage.pages_programmed, usage.multi_plane), (4, 1));
    assert_eq!(usage.die_busy[0].picos(), 1300 * MICRO + 3 * 500_000);
}

#[test]
fn a_reclaim_takes_as_long_as_the_slowest_page_that_there_is() {
    let longest = |kind, timing: &Timing| timing.longest_reclaim(&geometry(kind)).picos();
    let pages = u64::from(PAGES_PER_BLOCK * PLANES);
    assert_eq!(longest(CellKind::Tlc, &timing()), pages * (2300 * MICRO + 3 * 500_000));
    // What the cells have no pages of is not waited for, however long it were.
    let mut odd = Timing { erase: Span::from_micros(1000), ..timing() };
    odd.program[PageType::Csb as usize] = Span::from_picos(u64::MAX);
    odd.validate(&geometry(CellKind::Mlc)).unwrap();
    assert_eq!(longest(CellKind::Mlc, &odd), pages * (1300 * MICRO + 3 * 500_000));
}

#[test]
fn reads_of_many_dies_saturate_the_bus() {
    let timing = Timing { bus: MegaTransfers(100), ..timing() };
    let mut channel = channel(&timing);
    let reads: Vec<_> = (0..400).map(|tag| single(Operation::Read, (tag % 4) as u16, 0, tag)).collect();
    let finished = drive_at_once(&mut channel, &reads);
    // A page takes 43.2 us on the bus and 40 us in the array: with four dies the bus never rests after the first
    // sensing.
    let bus = 400 * (14 * CYCLE + data(PAGE, 100));
    assert_eq!(channel.usage().bus_busy.picos(), bus);
    let end = finished.last().unwrap().at.picos();
    assert!(end - bus < 45 * MICRO, "the bus idled for {}", Span::from_picos(end - bus));
}

#[test]
fn cache_reads_sense_the_next_page_during_the_transfer() {
    let timing = Timing { cache_commands: true, read: [Span::from_micros(40); 3], ..timing() };
    let mut cached = channel(&timing);
    let reads: Vec<_> = (0..4).map(|page| single(Operation::Read, 0, page, page)).collect();
    let finished = drive_at_once(&mut cached, &reads);
    // Command, sensing, then for each page but the last: turn and sense the next (the transfer, 11 us, hides); then the
    // last turn, its busy time and the transfer.
    let turn = CYCLE + 3 * MICRO;
    let expected = 7 * CYCLE + 40 * MICRO + 3 * (turn + 40 * MICRO) + turn + 7 * CYCLE + data(PAGE, 400);
    assert_eq!(latency(&finished, 3).picos(), expected);
    assert_eq!(cached.usage().cached, 3);
    // Each page moves to the cache register, the last one too; and nothing waits for the bus.
    assert_eq!(cached.usage().die_busy[0].picos(), 4 * (40 + 3) * MICRO);
    assert_eq!((cached.usage().die_held[0].picos(), cached.usage().dies_taken.picos()), (expected, expected));
    let first = 7 * CYCLE + 40 * MICRO + turn + 7 * CYCLE + data(PAGE, 400);
    assert_eq!(latency(&finished, 0).picos(), first);
    assert_exclusive(&cached.drain_phases().collect::<Vec<_>>());
    // Pages that do not follow each other are read one by one.
    let mut scattered = channel(&timing);
    drive_at_once(&mut scattered, &[single(Operation::Read, 0, 0, 0), single(Operation::Read, 0, 2, 1)]);
    assert_eq!(scattered.usage().cached, 0);
}

#[test]
fn cache_programs_load_the_next_page_while_the_array_works() {
    let timing = Timing { cache_commands: true, program: [Span::from_micros(500); 3], ..timing() };
    let mut channel = channel(&timing);
    let programs: Vec<_> = (0..3).map(|page| single(Operation::Program, 0, page, page)).collect();
    let finished = drive_at_once(&mut channel, &programs);
    let load = 7 * CYCLE + data(PAGE, 400);
    for page in 0..3 {
        let expected = load + u64::from(page + 1) * 500 * MICRO + 2 * CYCLE;
        assert_eq!(latency(&finished, page).picos(), expected, "page {page}");
    }
    // The second load waits until the first page has left the cache register.
    assert_eq!(find(&finished, 1).started, Time::from_picos(load + 5 * MICRO));
    assert_eq!(channel.usage().cached, 2);
    assert_exclusive(&channel.drain_phases().collect::<Vec<_>>());
}

#[test]
fn a_slow_load_holds_up_the_array_under_cache_programs() {
    let timing = Timing { cache_commands: true, bus: MegaTransfers(1), ..timing() };
    let mut channel = channel(&timing);
    let programs = [single(Operation::Program, 0, 0, 0), single(Operation::Program, 0, 2, 1)];
    let finished = drive_at_once(&mut channel, &programs);
    // The second load begins 5 us after the first program does, and takes far longer than the program.
    let load = 7 * CYCLE + data(PAGE, 1);
    let second = find(&finished, 1);
    assert_eq!(second.started, Time::from_picos(load + 5 * MICRO));
    assert_eq!(second.array, Time::from_picos(2 * load + 5 * MICRO));
    assert_eq!(second.at, Time::from_picos(2 * load + 505 * MICRO + 2 * CYCLE));
}

fn suspending() -> Timing {
    let suspend = Suspend {
        programs_max: 2,
        erases_max: 1,
        reads_max: 8,
        program_latency: Span::from_micros(20),
        erase_latency: Span::from_micros(100),
        resume_overhead: Span::from_micros(7),
    };
    Timing { suspend, ..timing() }
}

#[test]
fn a_read_suspends_a_program_which_ends_later_by_exactly_what_that_costs() {
    let mut channel = channel(&suspending());
    let submissions = [
        (Time::ZERO, single(Operation::Program, 0, 0, 0)),
        (Time::ZERO + Span::from_micros(200), transaction(Operation::Read, 0, 1, 1, 0, 1)),
    ];
    let finished = drive(&mut channel, &submissions);
    let read = 7 * CYCLE + 40 * MICRO + 7 * CYCLE + data(PAGE, 400);
    assert_eq!(latency(&finished, 1).picos(), CYCLE + 20 * MICRO + read);
    let undisturbed = 7 * CYCLE + data(PAGE, 400) + 500 * MICRO + 2 * CYCLE;
    // The suspend command itself costs no progress; latency, read, resume command and overhead do.
    assert_eq!(latency(&finished, 0).picos(), undisturbed + 20 * MICRO + read + CYCLE + 7 * MICRO);
    assert_eq!(channel.usage().suspends, 1);
    assert_eq!(channel.usage().die_busy[0].picos(), (500 + 20 + 7 + 40) * MICRO);
    // Nothing waits for the bus, and the suspend command goes over it while the array works on.
    assert_eq!(
        (channel.usage().die_held[0], channel.usage().dies_taken),
        (latency(&finished, 0), latency(&finished, 0))
    );
    assert_exclusive(&channel.drain_phases().collect::<Vec<_>>());
}

/// The cache register is the running program's until its data are out of it: a suspension puts that off, by as much as it lasts, and the
/// reads that it serves need no cache register.
#[test]
fn a_suspension_keeps_what_is_left_of_the_time_until_the_cache_register_is_free() {
    let busy = 100 * MICRO;
    let timing = Timing { cache_commands: true, cache_program_busy: Span::from_picos(busy), ..suspending() };
    let begun = 7 * CYCLE + data(PAGE, 400);
    // The suspend command itself costs no progress.
    let lasts = 20 * MICRO + 14 * CYCLE + 40 * MICRO + data(PAGE, 400) + CYCLE + 7 * MICRO;
    let read = |micros, tag| (Time::ZERO + Span::from_micros(micros), transaction(Operation::Read, 0, 1, 1, 0, tag));
    let program =
        |micros, page, tag| (Time::ZERO + Span::from_micros(micros), single(Operation::Program, 0, page, tag));
    for (submissions, started, suspends) in [
        // Suspended once before the register is free, and twice.
        (vec![program(0, 0, 0), program(0, 2, 1), read(50, 2)], begun + busy + lasts, 1),
        (vec![program(0, 0, 0), program(0, 2, 1), read(50, 2), read(150, 3)], begun + busy + 2 * lasts, 2),
        // Free long before: the next program comes with the end of the resume command.
        (vec![program(0, 0, 0), read(150, 2), program(160, 2, 1)], 150 * MICRO + CYCLE + lasts - 7 * MICRO, 1),
    ] {
        let mut channel = channel(&timing);
        let finished = drive(&mut channel, &submissions);
        let (first, second) = (find(&finished, 0), find(&finished, 1));
        assert_eq!(second.started.picos(), started);
        assert_eq!(channel.usage().suspends, suspends);
        let end = begun + 500 * MICRO + suspends * lasts;
        assert_eq!((second.array.picos(), first.at.picos()), (end, end + 2 * CYCLE));
        assert_exclusive(&channel.drain_phases().collect::<Vec<_>>());
    }
}

#[test]
fn a_program_is_suspended_no_more_often_than_allowed() {
    let mut channel = channel(&suspending());
    let mut submissions = vec![(Time::ZERO, single(Operation::Program, 0, 0, 0))];
    for (tag, micros) in [(1, 50), (2, 200), (3, 350)] {
        let read = transaction(Operation::Read, 0, 1, 1, 0, tag);
        submissions.push((Time::ZERO + Span::from_micros(micros), read));
    }
    let finished = drive(&mut channel, &submissions);
    let order: Vec<u32> = finished.iter().map(|finished| finished.transaction.tag.0).collect();
    assert_eq!(order, [1, 2, 0, 3]);
    assert_eq!(channel.usage().suspends, 2);
}

#[test]
fn one_suspension_serves_no_more_reads_than_allowed() {
    let timing = Timing { suspend: Suspend { reads_max: 3, programs_max: 1, ..suspending().suspend }, ..timing() };
    let mut channel = channel(&timing);
    let mut submissions = vec![(Time::ZERO, single(Operation::Program, 0, 0, 0))];
    submissions.extend((1..=5).map(|tag| (Time::from_picos(1), transaction(Operation::Read, 0, 1, 1, 0, tag))));
    let finished = drive(&mut channel, &submissions);
    let order: Vec<u32> = finished.iter().map(|finished| finished.transaction.tag.0).collect();
    assert_eq!(order, [1, 2, 3, 0, 4, 5]);
}

#[test]
fn an_erase_is_suspended_where_a_program_is_not() {
    let timing = Timing { suspend: Suspend { programs_max: 0, ..suspending().suspend }, ..timing() };
    for (operation, suspends) in [(Operation::Erase, 1), (Operation::Program, 0)] {
        let mut channel = channel(&timing);
        let read = (Time::ZERO + Span::from_micros(100), transaction(Operation::Read, 0, 1, 1, 0, 1));
        let finished = drive(&mut channel, &[(Time::ZERO, single(operation, 0, 0, 0)), read]);
        assert_eq!(channel.usage().suspends, suspends);
        assert_eq!(finished[0].transaction.tag.0, if suspends > 0 { 1 } else { 0 });
    }
}

#[test]
fn a_suspend_that_comes_too_late_does_nothing() {
    let mut channel = channel(&suspending());
    let program_end = 7 * CYCLE + data(PAGE, 400) + 500 * MICRO;
    let late = Time::from_picos(program_end - CYCLE / 2);
    let submissions =
        [(Time::ZERO, single(Operation::Program, 0, 0, 0)), (late, transaction(Operation::Read, 0, 1, 1, 0, 1))];
    let finished = drive(&mut channel, &submissions);
    assert_eq!(find(&finished, 0).at, Time::from_picos(program_end + 2 * CYCLE));
    assert_eq!(find(&finished, 1).started, find(&finished, 0).at);
    assert_eq!(channel.usage().suspends, 0);
}

/// Where data of another die are on the bus, the status of a program waits; to the flash it is done all the same.
#[test]
fn a_power_cut_finds_done_what_only_waits_to_say_so() {
    let slow = Timing { bus: MegaTransfers(1), cache_commands: true, ..suspending() };
    let begun = 7 * CYCLE + data(PAGE, 1);
    let at = |micros| Time::from_picos(begun + micros * MICRO);
    let mut channel = channel(&slow);
    let caught = |channel: &Channel, now| {
        let caught = channel.caught(now);
        caught.iter().map(|caught| (caught.transaction.tag.0, caught.done)).collect::<Vec<_>>()
    };
    channel.submit(Time::ZERO, single(Operation::Program, 0, 0, 0));
    // Its data take 4.32 ms, during which the program that it suspends does not go on.
    channel.submit(at(100), transaction(Operation::Read, 0, 1, 1, 0, 1));
    let resumed = begun + 100 * MICRO + 20 * MICRO + 15 * CYCLE + 40 * MICRO + data(PAGE, 1) + CYCLE;
    let after = |micros| Time::from_picos(resumed + micros * MICRO);
    let mut reads = Vec::new();
    channel.poll(after(0), &mut reads);
    assert_eq!((reads.len(), caught(&channel, after(0))), (1, vec![(0, false)]));
    // 400 us but for the suspend command, and the overhead, are left. Meanwhile another die has the bus for the data of a page.
    channel.submit(after(300), single(Operation::Program, 1, 0, 2));
    assert_eq!(caught(&channel, after(406)), [(0, false)]);
    assert_eq!(caught(&channel, after(407)), [(0, true)]);
    let end = resumed + 300 * MICRO + 7 * CYCLE + data(PAGE, 1) + 2 * CYCLE;
    assert_eq!(find(&drive(&mut channel, &[]), 0).at.picos(), end);
}

/// Pages of a block are programmed in their order, and so is what was done when the power failed.
#[test]
fn what_a_power_cut_finds_done_comes_in_the_order_in_which_it_was_begun() {
    let slow = Timing { bus: MegaTransfers(20), cache_commands: true, ..timing() };
    let mut channel = channel(&slow);
    // Places of the table that are free again are taken from the last one on: those of the pages to come are in no order.
    let erases: Vec<_> = (0..3).map(|tag| single(Operation::Erase, 0, 0, tag)).collect();
    let begin = drive_at_once(&mut channel, &erases)[2].at;
    for (page, tag) in [(0, 3), (2, 4)] {
        channel.submit(begin, single(Operation::Program, 0, page, tag));
    }
    // The data of four pages on another die come before the status of either.
    let load = 7 * CYCLE + data(PAGE, 20);
    channel.submit(begin + Span::from_picos(2 * load), transaction(Operation::Program, 1, 4, 0, 0, 5));
    let caught = channel.caught(begin + Span::from_picos(load + 1_000 * MICRO));
    let caught: Vec<_> = caught.iter().map(|caught| (caught.transaction.tag.0, caught.done)).collect();
    assert_eq!(caught, [(3, true), (4, true)]);
}

#[test]
#[should_panic(expected = "pages 0 and 1 of their blocks")]
fn planes_that_read_different_pages_of_their_blocks_are_refused() {
    let mut aside = transaction(Operation::Read, 0, 2, 0, 0, 0);
    aside.slots[1].ppn.0 += 1;
    channel(&timing()).submit(Time::ZERO, aside);
}

#[test]
fn timings_that_no_part_has_are_refused_by_name() {
    let geometry = geometry(CellKind::Mlc);
    let error = Timing { bus: MegaTransfers(0), ..timing() }.validate(&geometry).unwrap_err();
    assert_eq!(error.to_string(), "bus_mt_per_s is 0; expected 1 to 4800");
    let error = Timing { oob_moved: Bytes(225), ..timing() }.validate(&geometry).unwrap_err();
    assert_eq!(error.field, "oob_moved");
    let without_middle = [Span::from_micros(40), Span::ZERO, Span::from_micros(65)];
    let no_middle_page = Timing { read: without_middle, ..timing() };
    assert_eq!(no_middle_page.validate(&geometry), Ok(()));
    let tlc = crate::small::geometry(CellKind::Tlc);
    assert_eq!(no_middle_page.validate(&tlc).unwrap_err().field, "read_csb");
    let slow_cache = Timing { cache_program_busy: Span::from_micros(501), ..timing() };
    assert_eq!(slow_cache.validate(&geometry).unwrap_err().field, "cache_program_busy");
}
