//! What the tests of the channel share: a small array, transactions on it, and a driver that polls only when told to.

use flash::*;
use units::*;

pub(crate) const PLANES: u32 = 4;
pub(crate) const PAGES_PER_BLOCK: u32 = 12;

pub(crate) fn geometry(kind: CellKind) -> Geometry {
    let shape = Shape {
        channels: 2,
        packages_per_channel: 2,
        dies_per_package: 2,
        planes_per_die: PLANES,
        blocks_per_plane: 8,
        pages_per_block: PAGES_PER_BLOCK,
        page: Bytes(4096),
        oob: Bytes(224),
        kind,
    };
    Geometry::new(shape).unwrap()
}

/// MLC of 53 us reads and 0.9 ms programs on a bus of 400 MT/s; no suspend, no cache commands.
pub(crate) fn timing() -> Timing {
    Timing {
        bus: MegaTransfers(400),
        cycle: Span::from_nanos(25),
        cycles: CommandCycles::ONFI,
        oob_moved: Bytes(224),
        read: [Span::from_micros(40), Span::from_micros(53), Span::from_micros(65)],
        program: [Span::from_micros(500), Span::from_micros(900), Span::from_micros(1300)],
        erase: Span::from_micros(2300),
        further_plane: Span::from_nanos(500),
        cache_commands: false,
        cache_read_busy: Span::from_micros(3),
        cache_program_busy: Span::from_micros(5),
        suspend: Suspend::OFF,
    }
}

pub(crate) fn channel(timing: &Timing) -> Channel {
    let geometry = geometry(CellKind::Mlc);
    timing.validate(&geometry).unwrap();
    let mut channel = Channel::new(&geometry, timing, ChannelId(0));
    channel.record_phases();
    channel
}

/// A transaction over the first `planes` planes of a die of channel 0, at one page of one row of blocks.
pub(crate) fn transaction(operation: Operation, die: u16, planes: u32, block: u32, page: u32, tag: u32) -> Transaction {
    let geometry = geometry(CellKind::Mlc);
    let mut slots = [PageSlot::default(); PLANES_MAX];
    for plane in 0..planes {
        let at = PageAddress { channel: ChannelId(0), die: DieId(die), plane, block, page };
        slots[plane as usize] = PageSlot { ppn: geometry.ppn(at), frame: 0 };
    }
    Transaction {
        operation,
        die: DieId(die),
        tag: TransactionTag(tag),
        slot_count: planes as u8,
        pieces: [0; PLANES_MAX],
        slots,
    }
}

/// One page in block 0.
pub(crate) fn single(operation: Operation, die: u16, page: u32, tag: u32) -> Transaction {
    transaction(operation, die, 1, 0, page, tag)
}

/// Submits all at their times (ascending), polling only when the channel asks for it, and waits for the last.
pub(crate) fn drive(channel: &mut Channel, submissions: &[(Time, Transaction)]) -> Vec<Finished> {
    let mut finished = Vec::new();
    for (at, transaction) in submissions {
        while let Some(due) = channel.next_event()
            && due < *at
        {
            channel.poll(due, &mut finished);
        }
        channel.submit(*at, *transaction);
    }
    while let Some(due) = channel.next_event() {
        channel.poll(due, &mut finished);
    }
    finished
}

/// Submits all at time zero.
pub(crate) fn drive_at_once(channel: &mut Channel, transactions: &[Transaction]) -> Vec<Finished> {
    let submissions: Vec<_> = transactions.iter().map(|transaction| (Time::ZERO, *transaction)).collect();
    drive(channel, &submissions)
}

/// Start-to-end time of the transaction with a tag.
pub(crate) fn latency(finished: &[Finished], tag: u32) -> Span {
    let of_tag = find(finished, tag);
    of_tag.at - of_tag.submitted
}

pub(crate) fn find(finished: &[Finished], tag: u32) -> &Finished {
    finished.iter().find(|finished| finished.transaction.tag.0 == tag).unwrap()
}

/// Panics where two phases that hold the same thing overlap.
pub(crate) fn assert_exclusive(phases: &[PhaseRecord]) {
    let mut lanes: Vec<Vec<&PhaseRecord>> = vec![Vec::new(); 17];
    for phase in phases {
        let lane = if phase.phase == Phase::Array { 1 + phase.die.index() } else { 0 };
        lanes[lane].push(phase);
    }
    for lane in &mut lanes {
        lane.sort_by_key(|phase| (phase.from, phase.to));
        for pair in lane.windows(2) {
            assert!(pair[0].to <= pair[1].from, "{:?} overlaps {:?}", pair[0], pair[1]);
        }
    }
}
