//! One die and its channel: what may be composed of what stands in line, and in which order.

use super::*;
use crate::{Blueprint, DriveShape, Firmware, FlashChannel};
use flash::{CellKind, Geometry, Shape};
use stage::{Outbox, Place, Price};
use std::cell::RefCell;
use units::{Bytes, Span, StageId};

const PLANES: u32 = 2;
const PAGES: u32 = 32;

/// One die of two planes and what its channel was asked for.
struct Rig {
    dies: DieLines,
    asked: VecDeque<ChannelRequest>,
    prices: Vec<Price>,
}

impl Rig {
    fn new() -> Self {
        let shape = Shape {
            channels: 1,
            packages_per_channel: 1,
            dies_per_package: 1,
            planes_per_die: PLANES,
            blocks_per_plane: 8,
            pages_per_block: PAGES,
            page: Bytes(4096),
            oob: Bytes(224),
            kind: CellKind::Mlc,
        };
        let shape = DriveShape::plain(Geometry::new(shape).expect("an array"), vec![64]);
        let drive = Arc::new(Drive::new(shape, 0).expect("a drive"));
        let mut plan = Blueprint::default();
        let channel = plan.reserve::<dyn FlashChannel>("channel", "channel0".into(), Place::Hardware);
        let to = plan.connect::<ChannelRequest, _, _>(channel, channel, 64);
        let gather = Span::from_micros(10);
        let settings = FlashSettings { multi_plane: true, gather, suspend: false, cache_commands: false, ahead: false };
        let prices = vec![Price::default(); Work::KEYS.len()];
        Rig { dies: DieLines::new(1, drive, settings, vec![to]), asked: VecDeque::new(), prices }
    }

    fn act(&mut self, at: u64, act: impl Fn(&mut DieLines, &mut Turn<'_>)) {
        let mut outbox = Outbox::<Firmware>::default();
        let now = Time::ZERO + Span::from_micros(at);
        act(&mut self.dies, &mut stage::Turn::in_real_time(StageId(0), now, &self.prices, &mut outbox));
        for (_, message) in outbox.sends.drain(..) {
            let Message::ChannelRequest(request) = message else { unreachable!("there is but a channel to send to") };
            self.asked.push_back(request);
        }
    }

    /// Asks for a page of a group, whose blocks are one of each plane.
    fn ask(&mut self, at: u64, operation: Operation, place: [u32; 3]) {
        self.want(at, operation, place, 0);
    }

    /// The same, of so many pieces of it.
    fn want(&mut self, at: u64, operation: Operation, [group, plane, page]: [u32; 3], pieces: u8) {
        let request = FlashRequest {
            key: CommandKey::NONE,
            operation,
            ppn: Ppn((group * PLANES + plane) * PAGES + page),
            frame: 0,
            requester: Requester { group: Asker::Bgc, index: 0, tag: 0 },
            owner: 0,
            ticket: NO_TICKET,
            replaces: false,
            pieces,
        };
        self.act(at, |dies, turn| dies.submit(turn, &request));
    }

    /// Lets the die do one after another: what it did, and to which blocks.
    fn work_off(&mut self, mut at: u64) -> Vec<(Operation, Vec<u32>)> {
        let mut order = Vec::new();
        while let Some(ChannelRequest { transaction, .. }) = self.asked.pop_front() {
            order.push((transaction.operation, transaction.pages().iter().map(|slot| slot.ppn.0 / PAGES).collect()));
            at += 100;
            self.finish(at, transaction.tag);
        }
        order
    }

    fn finish(&mut self, at: u64, tag: TransactionTag) {
        let done = ChannelDone { key: CommandKey::NONE, channel: 0, tag, media: [Media::Good; PLANES_MAX] };
        self.act(at, |dies, turn| {
            let finished = dies.finish(turn, &done);
            dies.go_on(turn, &finished);
        });
    }
}

/// The erases of one group are no company for those of another that has been read since.
#[test]
fn an_erase_passes_no_older_read_of_what_it_erases() {
    let [first, second, other] = [1, 2, 3];
    let mut rig = Rig::new();
    rig.ask(1, Operation::Erase, [first, 0, 0]);
    // Its fellow of the other plane comes too late to go with it.
    rig.act(11, DieLines::on_wake);
    rig.ask(12, Operation::Erase, [first, 1, 0]);
    (0..20).for_each(|page| rig.ask(20 + u64::from(page), Operation::Read, [other, 0, page]));
    rig.ask(50, Operation::Read, [second, 0, 7]);
    (0..PLANES).for_each(|plane| rig.ask(3_000, Operation::Erase, [second, plane, 0]));
    let order = rig.work_off(5_000);
    let erases = |blocks: &[u32]| blocks.iter().any(|block| block / PLANES == second);
    let at = |wanted: Operation| order.iter().position(|(done, blocks)| *done == wanted && erases(blocks));
    let (read, erase) = (at(Operation::Read).expect("a read"), at(Operation::Erase).expect("an erase"));
    assert!(read < erase, "{order:?}");
}

/// Of each page as much moves as its read wants.
#[test]
fn a_transaction_moves_what_its_reads_want() {
    let mut rig = Rig::new();
    rig.ask(1, Operation::Read, [3, 0, 1]);
    (0..).zip([1, 3]).for_each(|(plane, pieces)| rig.want(2, Operation::Read, [2, plane, 0], pieces));
    let alone = rig.asked.pop_front().expect("the die was free").transaction;
    assert!(rig.asked.is_empty(), "the die is at work");
    rig.finish(100, alone.tag);
    let wanted = [alone, rig.asked[0].transaction].map(|read| (read.slot_count, read.pieces));
    assert_eq!(wanted, [(1, [0; 4]), (2, [1, 3, 0, 0])]);
}

/// The blocks of a group are erased together.
#[test]
fn an_erase_waits_for_its_fellows_on_an_idle_die() {
    let mut rig = Rig::new();
    (0..PLANES).for_each(|plane| rig.ask(1, Operation::Erase, [1, plane, 0]));
    assert_eq!(rig.work_off(2), [(Operation::Erase, vec![2, 3])]);
}

/// When the power fails a die is given programs alone: what it has begun ends, and what waited for company does not keep them.
#[test]
fn only_programs_are_kept() {
    let (one, other) = (1, 2);
    let mut rig = Rig::new();
    rig.ask(1, Operation::Read, [one, 0, 0]);
    rig.ask(2, Operation::Read, [one, 0, 1]);
    rig.ask(2, Operation::Erase, [one, 0, 0]);
    (0..PLANES).for_each(|plane| rig.ask(3, Operation::Program, [other, plane, 7]));
    rig.ask(4, Operation::Erase, [one, 1, 0]);
    let dropped = RefCell::new(Vec::new());
    rig.act(5, |dies, turn| *dropped.borrow_mut() = dies.keep_programs(turn));
    let dropped: Vec<Operation> = dropped.into_inner().iter().map(|request| request.operation).collect();
    assert_eq!(dropped, [Operation::Read, Operation::Erase, Operation::Erase]);
    let programs = (Operation::Program, vec![other * PLANES, other * PLANES + 1]);
    assert_eq!(rig.work_off(6), [(Operation::Read, vec![one * PLANES]), programs.clone()]);
    // A lone erase waits for its fellow.
    rig.ask(1_000, Operation::Erase, [one, 0, 0]);
    (0..PLANES).for_each(|plane| rig.ask(1_001, Operation::Program, [other, plane, 8]));
    assert!(rig.asked.is_empty());
    rig.act(1_002, |dies, turn| assert_eq!(dies.keep_programs(turn).len(), 1));
    assert_eq!(rig.work_off(1_003), [programs]);
}

/// A read under way, then a program, then as many reads as a die does before it lets a write through, and some.
fn with_a_write_among_reads(rig: &mut Rig, at: u64) {
    rig.ask(at, Operation::Read, [3, 0, 0]);
    rig.ask(at, Operation::Program, [1, 0, 0]);
    (1..=READS_IN_A_ROW + 4).for_each(|page| rig.ask(at, Operation::Read, [3, 0, page]));
}

/// The reads before the first program.
fn reads_before(order: &[(Operation, Vec<u32>)]) -> usize {
    order.iter().position(|(done, _)| *done == Operation::Program).expect("a program")
}

/// Reads count against a write that waits, and not those that were served before it came.
#[test]
fn a_write_lets_so_many_reads_pass_and_no_more() {
    for before in [0, READS_IN_A_ROW + 4] {
        let mut rig = Rig::new();
        for page in 0..before {
            rig.ask(u64::from(page) * 200, Operation::Read, [2, 0, page]);
            rig.work_off(u64::from(page) * 200);
        }
        with_a_write_among_reads(&mut rig, 10_000);
        assert_eq!(reads_before(&rig.work_off(10_000)), 1 + READS_IN_A_ROW as usize, "after {before}");
    }
}

/// While a lone program waits for its fellows the die does not stand still.
#[test]
fn reads_pass_a_write_that_waits_for_its_fellows() {
    let mut rig = Rig::new();
    with_a_write_among_reads(&mut rig, 1_000);
    let mut reads = 0;
    while let Some(ChannelRequest { transaction, .. }) = rig.asked.pop_front() {
        assert_eq!(transaction.operation, Operation::Read);
        reads += 1;
        rig.finish(1_001, transaction.tag);
    }
    assert_eq!(reads, READS_IN_A_ROW + 5);
    rig.act(1_010, DieLines::on_wake);
    assert_eq!(rig.asked.pop_front().expect("it has waited").transaction.operation, Operation::Program);
}
