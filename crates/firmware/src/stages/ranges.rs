//! The ranges of a Dataset Management or Copy, as they stand in the command's list buffer. The same for every firmware.

use super::copy::{CopyCursor, CopyStep};
use super::entry;
use crate::message::{Card, HostPlace};
use crate::{Drive, Namespace};
use nvme::prp::PrpPlan;
use nvme::spec::{COPY_BYTES_MAX, CopyRange, DsmRange, Opcode, Status, Submission};
use stage::Words;
use units::{Bytes, SECTOR_BYTES};

/// The ranges of a command, and how far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranges {
    namespace: Namespace,
    /// The first word of the list buffer.
    list: usize,
    count: u16,
    /// Of a Dataset Management: the next that is gone through, and one past the last.
    next: u16,
    end: u16,
    /// Of a Copy: how far it is.
    copying: Option<CopyCursor>,
}

impl Ranges {
    /// Those of an entry that was checked, if it has any. Where only hints are given (NVM §3.2.3) none of them is gone through.
    pub(crate) fn of(drive: &Drive, card: &Card, entry: &Submission, list: usize) -> Option<Self> {
        let opcode = Opcode::try_from(card.opcode).ok().filter(|opcode| opcode.brings_ranges())?;
        let copies = opcode == Opcode::Copy;
        Some(Ranges {
            namespace: *drive.namespace(entry.namespace()).expect("it was checked"),
            list,
            count: card.ranges,
            next: 0,
            end: if entry.changes_media() { card.ranges } else { 0 },
            copying: copies.then(|| CopyCursor::new(card.sector)),
        })
    }

    /// Where they lie in host memory.
    ///
    /// # Errors
    /// The status that the command fails with.
    pub(crate) fn plan(&self, card: &Card) -> Result<PrpPlan, Status> {
        let words = if self.copying.is_some() { CopyRange::WORDS } else { DsmRange::WORDS };
        entry::plan_of_whole(card, u64::from(self.count) * words as u64, 8)
    }

    /// A range: its first block, and how many.
    fn blocks(&self, lists: &Words, index: u16) -> (u64, u64) {
        if self.copying.is_some() {
            let CopyRange { slba, blocks } = CopyRange::decode(self.words(lists, index));
            (slba, blocks.into())
        } else {
            let DsmRange { slba, blocks, .. } = DsmRange::decode(self.words(lists, index));
            (slba, blocks.into())
        }
    }

    fn words<const COUNT: usize>(&self, lists: &Words, index: u16) -> [u64; COUNT] {
        let mut words = [0; COUNT];
        lists.read(self.list + usize::from(index) * COUNT, &mut words);
        words
    }

    /// A range in sectors of the drive.
    fn sectors(&self, drive: &Drive, lists: &Words, index: u16) -> (u64, u64) {
        let (first, blocks) = self.blocks(lists, index);
        drive.sectors_of(self.namespace, first, blocks).expect("all were checked before the first is touched")
    }

    /// Checks all of them, hints as well: before the first is touched.
    ///
    /// # Errors
    /// The status that the command fails with: blocks lie outside the namespace, or too much is copied.
    pub(crate) fn check(&self, drive: &Drive, lists: &Words) -> Result<(), Status> {
        let (scale, mut total) = (drive.shape().format.sectors(), 0);
        for index in 0..self.count {
            let (first, blocks) = self.blocks(lists, index);
            total += blocks * scale;
            if self.copying.is_some() && total * SECTOR_BYTES > COPY_BYTES_MAX {
                return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
            }
            if drive.sectors_of(self.namespace, first, blocks).is_none() {
                return Err(Status::LBA_OUT_OF_RANGE);
            }
        }
        let Some(copying) = self.copying else { return Ok(()) };
        let end = copying.target - self.namespace.base.0 + total;
        if end > self.namespace.sectors { Err(Status::LBA_OUT_OF_RANGE) } else { Ok(()) }
    }

    /// The last of several of a Dataset Management is not gone through.
    pub(crate) fn skip_last(&mut self) {
        self.end -= u16::from(self.end > 1);
    }

    /// The next range of any sectors; no sectors where there is no other.
    pub(crate) fn next_stretch(&mut self, drive: &Drive, lists: &Words) -> (u64, u64) {
        let mut stretch = (0, 0);
        while stretch.1 == 0 && self.next < self.end {
            stretch = self.sectors(drive, lists, self.next);
            self.next += 1;
        }
        stretch
    }

    /// The ranges that [`Ranges::next_stretch`] has still to tell.
    pub(crate) fn left(&self, drive: &Drive, lists: &Words) -> impl Iterator<Item = (u64, u64)> {
        (self.next..self.end).map(|index| self.sectors(drive, lists, index))
    }

    /// The next step of a Copy.
    pub(crate) fn next_step(&mut self, drive: &Drive, lists: &Words) -> Option<CopyStep> {
        let own = *self;
        let range = |index| own.sectors(drive, lists, index);
        self.copying.as_mut()?.next(drive.sectors_per_page(), self.count, range)
    }
}

/// Ranges as what is moved: no command has more of them than a page of host memory holds.
pub(crate) fn place(plan: &PrpPlan) -> HostPlace {
    let bytes = Bytes(plan.bytes().0.min(nvme::spec::PAGE_BYTES));
    HostPlace::of(plan.resolve(Bytes(0), bytes, |_| unreachable!("two pages have no list")), 0)
}
