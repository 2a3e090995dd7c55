//! A command that is carried page after page, in order: what is to be fetched for it, and what is to be done to each page.
//! The part that firmware without range locks has in common.

use super::copy::CopyStep;
use super::entry::{self, Listing, Outcome, Pair};
use super::ranges::{self, Ranges};
use super::sectors::Meant;
use crate::Drive;
use crate::message::{Card, CommandKey, HostPlace, PageOperation, Transfer};
use crate::tables::Frames;
use nvme::prp::PrpPlan;
use nvme::spec::{Failure, Opcode, Status, Submission};
use stage::Words;
use std::ops::Range;
use units::{Bytes, Lpn, SECTOR_BYTES};

/// A page of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageTask {
    pub(crate) operation: PageOperation,
    pub(crate) lpn: Lpn,
    /// The first of its sectors that are meant, and one past the last.
    pub(crate) sectors: [u8; 2],
    /// Whether what the page held before matters.
    pub(crate) needs_content: bool,
    /// Where the sectors lie in host memory.
    pub(crate) place: HostPlace,
    /// Of a fused pair: where what is written lies.
    pub(crate) paired: Option<HostPlace>,
    /// Of a Copy: the sector of the command's page where its sectors are kept, and the first range that is not copied whole.
    pub(crate) staged: u8,
    pub(crate) range: u8,
}

impl PageTask {
    /// A page that is only brought to flash.
    pub(crate) fn clean(lpn: Lpn) -> Self {
        PageTask {
            operation: PageOperation::Clean,
            lpn,
            sectors: [0; 2],
            needs_content: false,
            place: HostPlace::NOWHERE,
            paired: None,
            staged: 0,
            range: 0,
        }
    }

    /// Pages from this one on that are deallocated together.
    pub(crate) fn bury(first: Lpn) -> Self {
        PageTask { operation: PageOperation::Bury, ..PageTask::clean(first) }
    }

    /// The sectors that are meant.
    pub(crate) fn meant(&self) -> Meant {
        Meant { lpn: self.lpn, sectors: self.sectors }
    }

    /// Where a command fails: at the sector of the page so far behind the first that is meant.
    pub(crate) fn failure(&self, drive: &Drive, ahead: u32) -> Failure {
        Failure { range: self.range, sector: Some(self.meant().first(drive) + u64::from(ahead)) }
    }

    /// Whether the page holds something else afterwards.
    pub(crate) fn changes(&self) -> bool {
        self.operation.changes()
    }
}

/// A command and how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) card: Card,
    pub(crate) opcode: Opcode,
    pub(crate) outcome: Outcome,
    plan: Option<PrpPlan>,
    /// How far its PRP list is here.
    listing: Listing,
    /// The first word of its list buffer.
    list: usize,
    /// Of a fused pair: its Write, and where its data lie.
    write: Option<(Card, PrpPlan)>,
    /// Of a Dataset Management or Copy: its ranges, as far as any are to be gone through, and whether they are missing.
    ranges: Option<Ranges>,
    ranges_missing: bool,
    /// Of a Copy: its step.
    step: Option<CopyStep>,
    /// Sectors that are gone through now: the first, and how many.
    stretch: (u64, u64),
    /// The next page of the stretch.
    next: u32,
}

impl Request {
    /// Reads an entry; what cannot be done has its status already. `list` is the first word of its list buffer.
    pub(crate) fn new(drive: &Drive, card: Card, entry: &Submission, list: usize) -> Self {
        let mut request = Request::blank(card, list);
        if let Err(status) = request.read(drive, entry) {
            request.outcome = status.into();
            request.stretch = (0, 0);
        }
        request
    }

    fn blank(card: Card, list: usize) -> Self {
        Request {
            card,
            opcode: Opcode::Flush,
            outcome: Outcome::default(),
            plan: None,
            listing: Listing::default(),
            list,
            write: None,
            ranges: None,
            ranges_missing: false,
            step: None,
            stretch: (0, 0),
            next: 0,
        }
    }

    /// A command that fails.
    pub(crate) fn failed(card: Card, list: usize, status: Status) -> Self {
        Request { outcome: status.into(), ..Request::blank(card, list) }
    }

    /// A fused pair, as one command.
    ///
    /// # Errors
    /// The status of both, where their data cannot be found.
    pub(crate) fn paired(drive: &Drive, pair: Pair, list: usize) -> Result<Self, Status> {
        let write = Some((pair.write, entry::data_plan(drive, &pair.write)?));
        let plan = Some(entry::data_plan(drive, &pair.compare)?);
        let mut request = Request { opcode: Opcode::Compare, write, plan, ..Request::blank(pair.compare, list) };
        request.begin(drive, (pair.compare.sector, u64::from(pair.compare.sectors)));
        Ok(request)
    }

    /// The key of the Write of a fused pair.
    pub(crate) fn paired_key(&self) -> Option<CommandKey> {
        self.write.map(|(write, _)| write.key)
    }

    /// Whether it changes pages.
    pub(crate) fn changes_media(&self) -> bool {
        self.opcode.changes_media() || self.write.is_some()
    }

    fn read(&mut self, drive: &Drive, entry: &Submission) -> Result<(), Status> {
        self.opcode = entry::check(drive, &self.card, entry)?;
        self.ranges = Ranges::of(drive, &self.card, entry, self.list);
        if let Some(ranges) = &self.ranges {
            self.plan = Some(ranges.plan(&self.card)?);
            self.ranges_missing = true;
            return Ok(());
        }
        match self.opcode {
            Opcode::Flush => return Ok(()),
            Opcode::Read | Opcode::Write | Opcode::Compare => {
                let plan = entry::data_plan(drive, &self.card)?;
                self.listing = Listing::new(&plan);
                self.plan = Some(plan);
            }
            _ => {}
        }
        self.begin(drive, (self.card.sector, u64::from(self.card.sectors)));
        Ok(())
    }

    fn begin(&mut self, drive: &Drive, stretch: (u64, u64)) {
        self.stretch = stretch;
        self.next = drive.page_of(stretch.0).0;
    }

    /// Whether nothing has failed.
    pub(crate) fn is_good(&self) -> bool {
        self.outcome.status.is_success()
    }

    /// A failure is kept, as [`Outcome::fail`] says, and nothing more is done.
    pub(crate) fn fail(&mut self, status: Status, failure: Failure) {
        self.outcome.fail(status, failure);
        self.stop();
    }

    /// None of its pages is told any more.
    pub(crate) fn stop(&mut self) {
        self.stretch = (0, 0);
        self.listing = Listing::default();
        (self.ranges, self.ranges_missing, self.step) = (None, false, None);
    }

    /// What must be brought from host memory before its pages can be told; `thread` is told with `token`.
    pub(crate) fn wants(&self, thread: u8, token: u32) -> Option<Transfer> {
        let (place, local) = if self.ranges_missing {
            let plan = self.plan.expect("ranges lie in host memory");
            (ranges::place(&plan), self.list as u64)
        } else {
            self.listing.next(self.list)?
        };
        let (key, aside) = (self.card.key, place.bytes());
        Some(Transfer { nvmq: thread, token, aside, local, place, key, ..Transfer::WORDS })
    }

    /// What it wanted stands in its list buffer. It may want more.
    pub(crate) fn take(&mut self, drive: &Drive, lists: &Words, bytes: u32, local: u64) {
        let taken = match std::mem::take(&mut self.ranges_missing) {
            true => self.take_ranges(drive, lists),
            false => self.listing.take(lists, bytes, local),
        };
        if let Err(status) = taken {
            self.fail(status, Failure::default());
        }
    }

    /// All ranges are checked before the first is touched.
    fn take_ranges(&mut self, drive: &Drive, lists: &Words) -> Result<(), Status> {
        self.ranges.expect("they were fetched").check(drive, lists)?;
        if self.opcode == Opcode::Copy {
            self.step = self.next_step(drive, lists);
        } else {
            self.next_stretch(drive, lists);
        }
        Ok(())
    }

    fn next_step(&mut self, drive: &Drive, lists: &Words) -> Option<CopyStep> {
        self.ranges.as_mut()?.next_step(drive, lists)
    }

    fn next_stretch(&mut self, drive: &Drive, lists: &Words) {
        let stretch = self.ranges.as_mut().map_or((0, 0), |ranges| ranges.next_stretch(drive, lists));
        self.begin(drive, stretch);
    }

    /// How many pages it has from its beginning, once nothing is wanted any more. Ranges may overlap: they can have more than the drive.
    pub(crate) fn pages(&self, drive: &Drive, lists: &Words) -> u64 {
        let mut ranges = self.ranges;
        if self.opcode == Opcode::Copy {
            let steps = std::iter::from_fn(|| ranges.as_mut()?.next_step(drive, lists));
            return u64::from(self.step.is_some()) + steps.count() as u64;
        }
        let later = ranges.iter().flat_map(|ranges| ranges.left(drive, lists));
        let pages = |stretch| u64::from(end_page(drive, stretch) - drive.page_of(stretch.0).0);
        later.chain([self.stretch]).map(pages).sum()
    }

    /// The pages of the stretch that are left.
    pub(crate) fn lpns(&self, drive: &Drive) -> impl Iterator<Item = Lpn> + use<> {
        (self.next..end_page(drive, self.stretch)).map(Lpn)
    }

    /// How many of the steps of a Copy write.
    pub(crate) fn deposits(mut self, drive: &Drive, lists: &Words) -> u32 {
        let mut deposits = 0;
        while let Some(step) = self.step {
            deposits += u32::from(step.deposits);
            self.step = self.next_step(drive, lists);
        }
        deposits
    }

    /// The next of its pages.
    pub(crate) fn next_page(&mut self, drive: &Drive, lists: &Words) -> Option<PageTask> {
        if self.opcode == Opcode::Copy {
            let step = self.step?;
            self.step = self.next_step(drive, lists);
            return Some(copy_task(drive, step));
        }
        let (sector, sectors) = self.stretch;
        if sectors == 0 {
            return None;
        }
        let per_page = u64::from(drive.sectors_per_page());
        let (lpn, start) = (Lpn(self.next), u64::from(self.next) * per_page);
        let from = sector.max(start) - start;
        let to = (sector + sectors).min(start + per_page) - start;
        let whole = to - from == per_page;
        let operation = match self.opcode {
            Opcode::Read => PageOperation::Read,
            Opcode::Write => PageOperation::Write,
            Opcode::Compare if self.write.is_some() => PageOperation::CompareAndWrite,
            Opcode::Compare => PageOperation::Compare,
            Opcode::Verify if self.card.passes_marked => PageOperation::VerifyUnmarked,
            Opcode::Verify => PageOperation::Verify,
            Opcode::WriteUncorrectable => PageOperation::Spoil,
            // Zeros are written, so that a power cut does not bring back what was there.
            _ => PageOperation::Zero,
        };
        let place_of = |plan: &PrpPlan, offset: u64| {
            let (offset, bytes) = (Bytes(offset * SECTOR_BYTES), Bytes((to - from) * SECTOR_BYTES));
            let entry_of = |entry| {
                assert!(entry < plan.list_entries(), "an entry that was not fetched");
                lists.get(self.list + entry)
            };
            HostPlace::of(plan.resolve(offset, bytes, entry_of), self.list)
        };
        let place = match &self.plan {
            Some(plan) if self.opcode != Opcode::DatasetManagement => place_of(plan, start + from - sector),
            _ => HostPlace::NOWHERE,
        };
        let needs_content = match operation {
            PageOperation::Write | PageOperation::Zero | PageOperation::Spoil => !whole,
            _ => true,
        };
        // A pair lies within one page, so its data begin there.
        let paired = self.write.map(|(_, plan)| place_of(&plan, 0));
        self.go_to(drive, lists, self.next + 1);
        let sectors = [from as u8, to as u8];
        Some(PageTask { operation, lpn, sectors, needs_content, place, paired, staged: 0, range: 0 })
    }

    /// The pages from the next one on that are taken off the map whole, as far as the range at hand goes, and no more than a tombstone is
    /// of.
    pub(crate) fn whole_pages(&self, drive: &Drive) -> Range<u32> {
        let (sector, sectors) = self.stretch;
        if !entry::discards(self.opcode) || sectors == 0 {
            return self.next..self.next;
        }
        let per_page = u64::from(drive.sectors_per_page());
        let is_whole = u64::from(self.next) * per_page >= sector;
        let end = if is_whole { ((sector + sectors) / per_page) as u32 } else { self.next };
        self.next..end.clamp(self.next, self.next + Frames::TOMBSTONE_PAGES)
    }

    /// The pages before this one of the range at hand are dealt with.
    pub(crate) fn go_to(&mut self, drive: &Drive, lists: &Words, page: u32) {
        self.next = page;
        if page == end_page(drive, self.stretch) {
            self.next_stretch(drive, lists);
        }
    }

    /// Whose it is.
    pub(crate) fn key(&self) -> CommandKey {
        self.card.key
    }
}

/// A step of a Copy as what is done to its page.
fn copy_task(drive: &Drive, step: CopyStep) -> PageTask {
    let per_page = drive.sectors_per_page();
    let from = (step.sector % u64::from(per_page)) as u8;
    PageTask {
        operation: if step.deposits { PageOperation::Deposit } else { PageOperation::Collect },
        sectors: [from, from + step.sectors as u8],
        needs_content: !step.deposits || step.sectors < per_page,
        staged: step.at as u8,
        range: step.range,
        ..PageTask::clean(drive.page_of(step.sector))
    }
}

fn end_page(drive: &Drive, (sector, sectors): (u64, u64)) -> u32 {
    if sectors == 0 { drive.page_of(sector).0 } else { drive.page_of(sector + sectors - 1).0 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DriveShape;
    use crate::stages::entry::card;
    use flash::{CellKind, Geometry, Shape};
    use nvme::spec::{DataPointer, DsmRange};
    use stage::SharedMemory;
    use units::{HostAddress, QueueId};

    /// A drive of two tebibytes, of which a namespace has half.
    fn drive() -> Drive {
        let shape = Shape {
            channels: 16,
            packages_per_channel: 1,
            dies_per_package: 8,
            planes_per_die: 4,
            blocks_per_plane: 2048,
            pages_per_block: 512,
            page: Bytes(4096),
            oob: Bytes(224),
            kind: CellKind::Mlc,
        };
        let shape = DriveShape::plain(Geometry::new(shape).expect("an array"), vec![1 << 31]);
        Drive::new(shape, 0).expect("a drive")
    }

    /// Sixteen times all of a namespace of 2^28 pages: as many pages as 32 bits count, which is 0 again.
    #[test]
    fn ranges_that_overlap_have_more_pages_than_the_drive() {
        let (drive, lists) = (drive(), SharedMemory::default().wide(256 * DsmRange::WORDS));
        let pointer = DataPointer { prp1: HostAddress(0x1000), prp2: HostAddress(0) };
        for (ranges, pages) in [(1, 1 << 28), (16, 1 << 32), (256, 1 << 36)] {
            for at in 0..ranges as usize {
                let range = DsmRange { attributes: 0, blocks: 1 << 31, slba: 0 };
                lists.write(at * DsmRange::WORDS, &range.encode());
            }
            let entry = Submission::dataset_management(1, ranges, pointer);
            let card = card(&drive, QueueId(1), &entry);
            let mut request = Request::new(&drive, card, &entry, 0);
            request.take(&drive, &lists, 0, 0);
            assert_eq!(
                (request.outcome.status, request.pages(&drive, &lists)),
                (Status::SUCCESS, pages),
                "{ranges} ranges"
            );
        }
    }

    /// Hints change nothing; what they are about is looked at all the same, as that of other ranges is.
    #[test]
    fn ranges_of_hints_are_checked_and_none_is_gone_through() {
        let (drive, lists) = (drive(), SharedMemory::default().wide(2 * DsmRange::WORDS));
        let pointer = DataPointer { prp1: HostAddress(0x1000), prp2: HostAddress(0) };
        let namespace = drive.namespaces()[0].sectors;
        let cases = [
            (4, 0, Status::SUCCESS, 1),
            (3, 0, Status::SUCCESS, 0),
            (4, namespace - 15, Status::LBA_OUT_OF_RANGE, 0),
            (3, namespace - 15, Status::LBA_OUT_OF_RANGE, 0),
        ];
        for (attributes, slba, status, stretches) in cases {
            for (at, (slba, blocks)) in [(0, 0), (slba, 16)].into_iter().enumerate() {
                lists.write(at * DsmRange::WORDS, &DsmRange { attributes: 0, blocks, slba }.encode());
            }
            let entry = Submission::dataset_management(1, 2, pointer).with_dword(11, attributes);
            let mut request = Request::new(&drive, card(&drive, QueueId(1), &entry), &entry, 0);
            assert!(request.wants(0, 0).is_some_and(|transfer| transfer.aside == 32), "{attributes}");
            request.take(&drive, &lists, 32, 0);
            let seen = (request.outcome.status, told(request, &drive, &lists).len());
            assert_eq!(seen, (status, stretches), "{attributes}, from {slba} on");
        }
    }

    /// A range that begins and ends within pages: its first page and its last are none of those that a tombstone can be of.
    #[test]
    fn pages_that_are_taken_off_whole_are_told_together() {
        let (drive, lists) = (drive(), SharedMemory::default().wide(2 * DsmRange::WORDS));
        for (at, (slba, blocks)) in [(12, 2100), (3, 4)].into_iter().enumerate() {
            lists.write(at * DsmRange::WORDS, &DsmRange { attributes: 0, blocks, slba }.encode());
        }
        let pointer = DataPointer { prp1: HostAddress(0x1000), prp2: HostAddress(0) };
        let entry = Submission::dataset_management(1, 2, pointer);
        let mut request = Request::new(&drive, card(&drive, QueueId(1), &entry), &entry, 0);
        request.take(&drive, &lists, 0, 0);
        assert_eq!(told(request, &drive, &lists), [(1, 1, true), (2, 256, false), (258, 6, false), (0, 1, true)]);
        let entry = Submission::write_zeroes(1, 12, 2100);
        let request = Request::new(&drive, card(&drive, QueueId(1), &entry), &entry, 0);
        assert_eq!(told(request, &drive, &lists), [(1, 1, true), (2, 256, false), (258, 6, false)], "zeroed");
    }

    /// First page, how many, and whether what was there is needed.
    fn told(mut request: Request, drive: &Drive, lists: &Words) -> Vec<(u32, usize, bool)> {
        let mut seen = Vec::new();
        loop {
            let whole = request.whole_pages(drive);
            if whole.is_empty() {
                let Some(task) = request.next_page(drive, lists) else { return seen };
                seen.push((task.lpn.0, 1, task.needs_content));
            } else {
                seen.push((whole.start, whole.len(), false));
                request.go_to(drive, lists, whole.end);
            }
        }
    }
}
