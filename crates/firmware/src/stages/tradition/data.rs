//! Sectors of a page between a worker's frames and the host.

use super::worker::{DIRTY, Step, Worker};
use crate::message::*;
use crate::stages::entry::{self, Half};
use crate::stages::request::PageTask;
use crate::{Turn, Work};
use nvme::spec::Status;

impl Worker {
    /// The page is in its frame: on to what is to be done with its sectors.
    pub(super) fn move_data(&mut self, turn: &mut Turn<'_>) {
        turn.spend(Work::ServeEntry);
        let task = self.task();
        let line = self.frame();
        let frames = self.shared.tables.frames.clone();
        let unreadable = frames.first_unreadable(line, task.sectors).filter(|_| task.operation.reads());
        if let Some(sector) = unreadable {
            self.fail_page(Status::UNRECOVERED_READ, u32::from(sector - task.sectors[0]));
            return self.unlock(turn);
        }
        let (meant, staged) = (task.meant(), usize::from(task.staged));
        match task.operation {
            PageOperation::Read => self.transfer(turn, Lane::ToHost, line),
            PageOperation::Write => self.transfer(turn, Lane::FromHost, line),
            PageOperation::Compare | PageOperation::CompareAndWrite => self.transfer(turn, Lane::FromHost, self.spare),
            PageOperation::Zero | PageOperation::Spoil => {
                let words = meant.words(&self.shared.drive);
                frames.clear(line, words.start, words.len());
                self.on_data(turn);
            }
            PageOperation::Collect => {
                meant.collect(&self.shared.drive, &frames, line, (&mut self.kept[..], staged));
                self.on_data(turn);
            }
            PageOperation::Deposit => {
                meant.deposit(&self.shared.drive, &frames, line, (&mut self.kept[..], staged));
                self.on_data(turn);
            }
            PageOperation::Verify | PageOperation::VerifyUnmarked => self.on_data(turn),
            PageOperation::Bury
            | PageOperation::Wipe
            | PageOperation::Clean
            | PageOperation::Fence
            | PageOperation::Nothing => unreachable!("it has no data"),
        }
    }

    fn transfer(&mut self, turn: &mut Turn<'_>, lane: Lane, frame: u32) {
        let task = self.task();
        let transfer = Transfer {
            lane,
            nvmq: self.index + 1,
            first_sector: task.sectors[0],
            lpn: task.lpn,
            token: 0,
            aside: 0,
            local: frame.into(),
            place: task.place,
            key: self.key(),
        };
        entry::start_transfer(turn, self.ways.link, transfer);
        self.step = Step::Data;
    }

    /// The page's sectors are where they belong.
    pub(super) fn on_data(&mut self, turn: &mut Turn<'_>) {
        let task = self.task();
        let line = self.shared.pool.line(task.lpn);
        if matches!(task.operation, PageOperation::Compare | PageOperation::CompareAndWrite) {
            turn.spend(Work::ComparePage);
            let (words, frames) = (task.meant().words(&self.shared.drive), &self.shared.tables.frames);
            let (both, apart) = ([self.frame(), self.spare], self.shared.drive.sector_words());
            if let Some((sector, status)) = frames.compare(task.lpn, both, words, apart) {
                self.fail_page(status, sector);
                return self.end_page(turn);
            }
        }
        if let (PageOperation::CompareAndWrite, Some(place)) = (task.operation, task.paired) {
            // The lock of the line is held over both.
            self.half = Half::Write;
            self.task = Some(PageTask { operation: PageOperation::Write, place, paired: None, ..task });
            self.transfer(turn, Lane::FromHost, line as u32);
            return;
        }
        if task.changes() {
            let readable = task.operation != PageOperation::Spoil;
            self.shared.tables.frames.set_readable(line as u32, task.sectors, readable);
            turn.store(&self.shared.tables.tags, line, (u64::from(task.lpn.0) + 1) | DIRTY);
        }
        self.end_page(turn);
    }

    /// Whether the command wants what it leaves of the page on flash.
    pub(super) fn is_forced(&self) -> bool {
        self.task().operation.can_be_forced() && self.request.as_ref().is_some_and(|request| request.card.fua)
    }

    /// Nothing is left to do but to bring the page to flash, where that is wanted.
    fn end_page(&mut self, turn: &mut Turn<'_>) {
        let lpn = self.task().lpn;
        let is_dirty = self.shared.tables.tags.get(self.shared.pool.line(lpn)) & DIRTY != 0;
        match is_dirty && !self.is_aside && self.is_forced() {
            true => self.program(turn, lpn, Step::Through),
            false => self.unlock(turn),
        }
    }
}
