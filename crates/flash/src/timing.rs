//! How long everything takes: the datasheet's numbers, checked, and the table of phase lengths made from them.

use crate::command::PIECE;
use crate::ledger::Phase;
use crate::{CellKind, Geometry, Operation, PLANES_MAX, Transaction};
use thiserror::Error;
use units::{Bytes, Divisor, MegaTransfers, Ppn, Span};

/// Which of the pages that share a word line a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageType {
    /// The lowest bit; the only one of SLC.
    Lsb,
    /// The middle bit of TLC.
    Csb,
    /// The highest bit.
    Msb,
}

/// The type of a page by its position in the block.
///
/// The pages of one word line follow each other: LSB MSB LSB MSB for MLC, LSB CSB MSB for TLC. Real parts shift the
/// higher pages by a few word lines against program disturb; the shares of the types, which set the mean times, are the
/// same.
pub const fn page_type(page_in_block: u32, kind: CellKind) -> PageType {
    match kind {
        CellKind::Slc => PageType::Lsb,
        CellKind::Mlc if page_in_block.is_multiple_of(2) => PageType::Lsb,
        CellKind::Mlc => PageType::Msb,
        CellKind::Tlc => match page_in_block % 3 {
            0 => PageType::Lsb,
            1 => PageType::Csb,
            _ => PageType::Msb,
        },
    }
}

/// The types of page that cells of a kind have.
pub fn page_types(kind: CellKind) -> impl Iterator<Item = PageType> {
    (0..kind.bits()).map(move |page| page_type(page, kind))
}

/// Bus cycles of the commands with their addresses, without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandCycles {
    /// Starts sensing a page; once a plane.
    pub read: u32,
    /// Selects the register that data leave from; once a plane.
    pub read_out: u32,
    /// Before and after the data of a page to program; once a plane.
    pub program: u32,
    /// Starts an erase; once a plane.
    pub erase: u32,
    /// Asks how a program or an erase went, once a transaction.
    pub status: u32,
    /// Moves a sensed page to the cache register and starts the next.
    pub cache: u32,
    /// Suspends the running program or erase.
    pub suspend: u32,
    /// Lets it go on.
    pub resume: u32,
}

impl CommandCycles {
    /// The cycles of ONFI 4.2 section 5: 00h-30h, 06h-E0h and 80h-10h with five address cycles, 60h-D0h with three, 70h
    /// with its answer, 31h or 3Fh alone. ONFI leaves suspend and resume to the vendors; here they take one cycle.
    pub const ONFI: CommandCycles =
        CommandCycles { read: 7, read_out: 7, program: 7, erase: 5, status: 2, cache: 1, suspend: 1, resume: 1 };
}

/// Whether reads may interrupt a running program or erase, and what that costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// How often one program can be suspended; 0 switches it off.
    pub programs_max: u32,
    /// How often one erase can be suspended; 0 switches it off.
    pub erases_max: u32,
    /// How many reads one suspension serves before the operation goes on, so that reads cannot starve it.
    pub reads_max: u32,
    /// From the suspend command until a program has stopped and the die takes a read.
    pub program_latency: Span,
    /// From the suspend command until an erase has stopped and the die takes a read.
    pub erase_latency: Span,
    /// What each resume adds to the time that was left.
    pub resume_overhead: Span,
}

impl Suspend {
    /// Nothing is ever suspended.
    pub const OFF: Suspend = Suspend {
        programs_max: 0,
        erases_max: 0,
        reads_max: 1,
        program_latency: Span::ZERO,
        erase_latency: Span::ZERO,
        resume_overhead: Span::ZERO,
    };
}

/// The times of a die and its bus, as a device file gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Rate of the data bus, one byte a transfer: 1 to 4,800 MT/s.
    pub bus: MegaTransfers,
    /// One command or address cycle.
    pub cycle: Span,
    /// How many cycles each command has.
    pub cycles: CommandCycles,
    /// Out-of-band bytes that travel with each page.
    pub oob_moved: Bytes,
    /// Sensing a page, by [`PageType`]: LSB, CSB, MSB. Types that the cell kind lacks are ignored.
    pub read: [Span; 3],
    /// Programming a page, by [`PageType`].
    pub program: [Span; 3],
    /// Erasing a block.
    pub erase: Span,
    /// Added to the mem-op for each plane beyond the first.
    pub further_plane: Span,
    /// Whether the die overlaps transfers with its array by cache read and cache program.
    pub cache_commands: bool,
    /// Moving a sensed page to the cache register (tRCBSY).
    pub cache_read_busy: Span,
    /// From the start of a program until the cache register takes the next page (tPCBSY).
    pub cache_program_busy: Span,
    /// Program and erase suspend.
    pub suspend: Suspend,
}

/// A timing that no part has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field} is {value}; expected {expected}")]
pub struct TimingError {
    /// The field of the timing.
    pub field: &'static str,
    /// What it was.
    pub value: String,
    /// What it may be.
    pub expected: &'static str,
}

/// Longer than any operation of any part; keeps sums of times far from overflow.
const LONGEST: Span = Span::from_secs(1);
const CYCLES_MAX: u32 = 1_000;

impl Timing {
    /// Checks every field against its range and against the geometry.
    pub fn validate(&self, geometry: &Geometry) -> Result<(), TimingError> {
        self.validate_bus(geometry)?;
        let mut shortest_program = LONGEST;
        for kind in page_types(geometry.shape().kind).map(|kind| kind as usize) {
            operation(["read_lsb", "read_csb", "read_msb"][kind], self.read[kind])?;
            operation(["program_lsb", "program_csb", "program_msb"][kind], self.program[kind])?;
            shortest_program = shortest_program.min(self.program[kind]);
        }
        operation("erase", self.erase)?;
        let suspend = &self.suspend;
        for (field, span) in [
            ("further_plane", self.further_plane),
            ("cache_read_busy", self.cache_read_busy),
            ("suspend_program_latency", suspend.program_latency),
            ("suspend_erase_latency", suspend.erase_latency),
            ("resume_overhead", suspend.resume_overhead),
        ] {
            expect(span <= LONGEST, field, span, "at most 1 s")?;
        }
        let busy = self.cache_program_busy;
        expect(busy <= shortest_program, "cache_program_busy", busy, "no longer than the shortest program")?;
        for (field, count) in
            [("suspend_programs_max", suspend.programs_max), ("suspend_erases_max", suspend.erases_max)]
        {
            expect(count <= 1_000, field, count, "0 to 1000")?;
        }
        expect((1..=1_000).contains(&suspend.reads_max), "suspend_reads_max", suspend.reads_max, "1 to 1000")
    }

    /// Sensing the slowest pages that cells of a kind have.
    pub fn longest_read(&self, kind: CellKind) -> Span {
        longest(&self.read, kind)
    }

    /// Programming the slowest pages that cells of a kind have.
    pub fn longest_program(&self, kind: CellKind) -> Span {
        longest(&self.program, kind)
    }

    /// How long the array of a die is at work where the blocks of all its planes are programmed, a page at a time and each as slowly as can
    /// be: more than their reclaim ever takes.
    pub fn longest_reclaim(&self, geometry: &Geometry) -> Span {
        let shape = geometry.shape();
        let operation = self.erase.max(self.longest_read(shape.kind)).max(self.longest_program(shape.kind));
        let longest = operation + self.further_plane * u64::from(shape.planes_per_die - 1);
        longest * u64::from(shape.pages_per_block) * u64::from(shape.planes_per_die)
    }

    fn validate_bus(&self, geometry: &Geometry) -> Result<(), TimingError> {
        expect((1..=4_800).contains(&self.bus.0), "bus_mt_per_s", self.bus.0, "1 to 4800")?;
        expect(self.cycle <= Span::from_millis(1), "cycle", self.cycle, "at most 1 ms")?;
        expect(self.oob_moved <= geometry.shape().oob, "oob_moved", self.oob_moved, "at most the out-of-band area")?;
        let cycles = &self.cycles;
        for (field, count) in [
            ("read_cycles", cycles.read),
            ("read_out_cycles", cycles.read_out),
            ("program_cycles", cycles.program),
            ("erase_cycles", cycles.erase),
            ("status_cycles", cycles.status),
            ("cache_cycles", cycles.cache),
            ("suspend_cycles", cycles.suspend),
            ("resume_cycles", cycles.resume),
        ] {
            expect(count <= CYCLES_MAX, field, count, "at most 1000")?;
        }
        Ok(())
    }
}

/// Times of page types that the cells lack are ignored, whatever they are.
fn longest(times: &[Span; 3], kind: CellKind) -> Span {
    page_types(kind).map(|kind| times[kind as usize]).max().unwrap_or_default()
}

fn expect(holds: bool, field: &'static str, value: impl ToString, expected: &'static str) -> Result<(), TimingError> {
    if holds { Ok(()) } else { Err(TimingError { field, value: value.to_string(), expected }) }
}

fn operation(field: &'static str, span: Span) -> Result<(), TimingError> {
    expect(span > Span::ZERO && span <= LONGEST, field, span, "more than nothing and at most 1 s")
}

/// A [`Timing`] made ready for one geometry: every phase's length by its number of planes, computed once.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    bus: [[Span; PLANES_MAX + 1]; Phase::ON_BUS],
    /// By how many pieces of pages move to the controller, without the command: up to all of as many pages as there are planes.
    moved: Box<[Span]>,
    /// Pieces of a page.
    pieces: u8,
    kind: CellKind,
    pages_per_block: Divisor,
    pub(crate) timing: Timing,
}

impl Lengths {
    pub(crate) fn new(geometry: &Geometry, timing: &Timing) -> Self {
        let (cycle, cycles) = (timing.cycle, &timing.cycles);
        let page = geometry.shape().page + timing.oob_moved;
        let mut bus = [[Span::ZERO; PLANES_MAX + 1]; Phase::ON_BUS];
        for planes in 1..=PLANES_MAX as u64 {
            // Rounded once a transfer, over all its planes.
            let data = timing.bus.beats((page * planes).0);
            let mut set = |phase: Phase, span| bus[phase as usize][planes as usize] = span;
            set(Phase::ReadCommand, cycle * u64::from(cycles.read) * planes);
            set(Phase::EraseCommand, cycle * u64::from(cycles.erase) * planes);
            set(Phase::CacheTurn, cycle * u64::from(cycles.cache));
            set(Phase::Suspend, cycle * u64::from(cycles.suspend));
            set(Phase::Resume, cycle * u64::from(cycles.resume));
            set(Phase::Status, cycle * u64::from(cycles.status));
            set(Phase::DataIn, cycle * u64::from(cycles.program) * planes + data);
            set(Phase::DataOut, cycle * u64::from(cycles.read_out) * planes);
        }
        let pieces = (geometry.shape().page.0 / PIECE.0).max(1);
        // Each piece has its part of the out-of-band area.
        let moved = (0..=PLANES_MAX as u64 * pieces).map(|count| timing.bus.beats((page * count).0.div_ceil(pieces)));
        let (kind, pages_per_block) = (geometry.shape().kind, Divisor::new(geometry.shape().pages_per_block));
        Lengths { bus, moved: moved.collect(), pieces: pieces as u8, kind, pages_per_block, timing: *timing }
    }

    /// How long a phase holds the bus, without data to the controller.
    pub(crate) fn bus(&self, phase: Phase, planes: u8) -> Span {
        self.bus[phase as usize][usize::from(planes)]
    }

    /// How long a phase of a transaction holds the bus.
    #[inline]
    pub(crate) fn of(&self, phase: Phase, transaction: &Transaction) -> Span {
        let command = self.bus(phase, transaction.slot_count);
        if phase != Phase::DataOut {
            return command;
        }
        let moved = |&pieces: &u8| if pieces == 0 { self.pieces } else { pieces };
        command + self.moved[usize::from(transaction.moved().iter().map(moved).sum::<u8>())]
    }

    /// The shortest that data can take to the controller.
    pub(crate) fn shortest_data_out(&self) -> Span {
        self.bus(Phase::DataOut, 1) + self.moved[1]
    }

    /// Whether the pages of a transaction have as much as is to move.
    pub(crate) fn can_move(&self, transaction: &Transaction) -> bool {
        transaction.moved().iter().all(|&pieces| pieces <= self.pieces)
    }

    /// How long the array works: as long as the slowest of the planes, which work together.
    pub(crate) fn array(&self, transaction: &Transaction) -> Span {
        let times = match transaction.operation {
            Operation::Read => &self.timing.read,
            Operation::Program => &self.timing.program,
            Operation::Erase => return self.timing.erase + self.further_planes(transaction),
        };
        let page_time = |ppn: Ppn| times[page_type(self.pages_per_block.remainder(ppn.0), self.kind) as usize];
        let slowest = transaction.pages().iter().map(|slot| page_time(slot.ppn)).max().unwrap_or_default();
        slowest + self.further_planes(transaction)
    }

    fn further_planes(&self, transaction: &Transaction) -> Span {
        self.timing.further_plane * u64::from(transaction.slot_count - 1)
    }

    /// Whether `next` reads, on every plane, the page after the one that `previous` reads.
    pub(crate) fn follows(&self, previous: &Transaction, next: &Transaction) -> bool {
        next.operation == Operation::Read
            && previous.slot_count == next.slot_count
            && previous.pages().iter().zip(next.pages()).all(|(before, after)| {
                after.ppn.0 == before.ppn.0 + 1 && self.pages_per_block.remainder(after.ppn.0) != 0
            })
    }
}
