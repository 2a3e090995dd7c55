//! A command in the drive: what is known of it, and how far its segments and pages are.

use crate::message::Card;
use crate::stages::copy::CopyStep;
use crate::stages::entry::{self, Half, Listing, Outcome};
use crate::stages::ranges::Ranges;
use nvme::prp::PrpPlan;
use nvme::spec::{Failure, Opcode, Status};
use units::Time;

/// A part of a command's pages that lies in one lock region and is locked, worked and released as one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    /// First page of the segment, counted from the command's first.
    pub(super) from: u32,
    /// One past its last page.
    pub(super) to: u32,
    /// The next page to begin.
    pub(super) next: u32,
    /// Pages not yet done.
    pub(super) left: u32,
    /// Which member of its range it is; `None` until its lock is granted.
    pub(super) member: Option<u16>,
    /// Whether pages may begin.
    pub(super) running: bool,
    /// When its lock was asked for.
    pub(super) asked: Time,
}

impl Segment {
    pub(super) fn new(from: u32, to: u32) -> Self {
        Segment { from, to, next: from, left: to - from, ..Segment::default() }
    }
}

/// A command and how far it is. What every command touches at every step stands in one line of the processor's memory, its first
/// segment and where its data lie in the next.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Command {
    pub(super) card: Card,
    /// First page of the drive.
    pub(super) first_page: u32,
    pub(super) status: Status,
    /// Pages under way.
    pub(super) under_way: u16,
    pub(super) segment_count: u8,
    /// Segments not yet done.
    pub(super) segments_left: u8,
    pub(super) opcode: Opcode,
    /// Stands in the line for frames.
    pub(super) starving: bool,
    /// Whether its slot is free.
    over: bool,
    /// Whether there is more of it than every command has.
    has_more: bool,
    pub(super) plan: Option<PrpPlan>,
    pub(super) segments: [Segment; 2],
    /// First sector and number of sectors that the segments cover.
    pub(super) stretch: (u64, u64),
    more: More,
}

/// What few commands have.
#[derive(Clone, Debug, Default)]
pub(super) struct More {
    /// How far its PRP list is here.
    pub(super) listing: Listing,
    /// Of a command that runs alone: what is left of its current range after the stretch.
    pub(super) rest: (u64, u64),
    /// Of a Dataset Management or Copy: its ranges.
    pub(super) ranges: Option<Ranges>,
    /// Of a Copy: what it does in the current stretch.
    pub(super) step: Option<CopyStep>,
    /// Of a fused pair: its Write, whose data are where, and which half is at work.
    pub(super) write: Option<Box<(Card, PrpPlan)>>,
    pub(super) half: Half,
    /// Where it failed.
    failure: Failure,
}

impl Command {
    fn free() -> Self {
        Command {
            card: Card::NONE,
            opcode: Opcode::Flush,
            status: Status::SUCCESS,
            first_page: 0,
            segments: [Segment::default(); 2],
            segment_count: 0,
            segments_left: 0,
            under_way: 0,
            starving: false,
            plan: None,
            stretch: (0, 0),
            over: true,
            has_more: false,
            more: More::default(),
        }
    }

    /// A command begins where one was over. Its segments are set with its range; until then it has none.
    #[inline]
    fn begin(&mut self, card: Card, opcode: Opcode) {
        (self.card, self.opcode, self.status, self.over) = (card, opcode, Status::SUCCESS, false);
        self.stretch = (card.sector, u64::from(card.sectors));
        (self.first_page, self.segment_count, self.segments_left) = (0, 0, 0);
        (self.under_way, self.starving) = (0, false);
        self.plan = None;
        if self.has_more {
            (self.has_more, self.more) = (false, More::default());
        }
    }

    /// What it has that few commands have, if any.
    #[inline]
    pub(super) fn more(&self) -> Option<&More> {
        self.has_more.then_some(&self.more)
    }

    /// The same, which it has from now on.
    pub(super) fn more_mut(&mut self) -> &mut More {
        self.has_more = true;
        &mut self.more
    }

    /// Whether entries of its PRP list are missing.
    #[inline]
    pub(super) fn is_listing(&self) -> bool {
        self.more().is_some_and(|more| !more.listing.is_whole())
    }

    /// Of a fused pair, its Write and where that one's data are.
    pub(super) fn write(&self) -> Option<&(Card, PrpPlan)> {
        self.more()?.write.as_deref()
    }

    /// The same, to be told what became of it; and which half the outcome is of.
    pub(super) fn take_write(&mut self) -> (Option<Box<(Card, PrpPlan)>>, Half) {
        if self.has_more { (self.more.write.take(), self.more.half) } else { (None, Half::default()) }
    }

    /// How it ended.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome { status: self.status, failure: self.more().map_or(Failure::default(), |more| more.failure) }
    }

    /// The segment that a page belongs to.
    #[inline]
    pub(super) fn segment_of(&self, page: u32) -> usize {
        usize::from(self.segment_count > 1 && page >= self.segments[1].from)
    }

    /// Whether its pages change the media.
    #[inline]
    pub(super) fn changes_media(&self) -> bool {
        match self.opcode {
            Opcode::Copy => self.more().and_then(|more| more.step).is_some_and(|step| step.deposits),
            Opcode::Compare => self.write().is_some(),
            opcode => opcode.changes_media(),
        }
    }

    /// Whether its pages count as look-ups in the buffer: what reads or writes data does, deallocations and zeroes do not, nor what makes
    /// sectors unreadable.
    #[inline]
    pub(super) fn counts_as_look_up(&self) -> bool {
        !entry::discards(self.opcode) && self.opcode != Opcode::WriteUncorrectable
    }

    /// A failure is kept, as [`Outcome::fail`] says; of no page.
    pub(super) fn fail(&mut self, status: Status) {
        self.note(status, None);
    }

    /// The same at a sector of the drive.
    pub(super) fn fail_at(&mut self, status: Status, sector: u64) {
        self.note(status, Some(sector));
    }

    fn note(&mut self, status: Status, sector: Option<u64>) {
        if status.is_success() {
            return;
        }
        let range = self.more().and_then(|more| more.step).map_or(0, |step| step.range);
        let mut outcome = self.outcome();
        outcome.fail(status, Failure { range, sector });
        self.status = outcome.status;
        self.more_mut().failure = outcome.failure;
    }
}

/// The commands of a thread, by slot. A slot is free again when its command is over.
pub(super) struct Slots {
    /// As many as there have been at a time.
    commands: Vec<Command>,
    free: Vec<u16>,
    count: usize,
}

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        Slots { commands: Vec::new(), free: (0..count as u16).rev().collect(), count }
    }
    /// Begins a command, in place: most of what one may have, most have not.
    pub(super) fn begin(&mut self, card: Card, opcode: Opcode) -> (u16, &mut Command) {
        let slot = self.free.pop().expect("no more commands are admitted than there are slots");
        // Slots are first taken in order.
        if usize::from(slot) == self.commands.len() {
            self.commands.push(Command::free());
        }
        let command = &mut self.commands[usize::from(slot)];
        command.begin(card, opcode);
        (slot, command)
    }
    #[inline]
    pub(super) fn remove(&mut self, slot: u16) {
        self.get_mut(slot).over = true;
        self.free.push(slot);
    }
    #[inline]
    pub(super) fn get(&self, slot: u16) -> &Command {
        let command = &self.commands[usize::from(slot)];
        assert!(!command.over, "a command is in its slot until it is over");
        command
    }
    #[inline]
    pub(super) fn get_mut(&mut self, slot: u16) -> &mut Command {
        let command = &mut self.commands[usize::from(slot)];
        assert!(!command.over, "a command is in its slot until it is over");
        command
    }
    pub(super) fn used(&self) -> usize {
        self.count - self.free.len()
    }
}
