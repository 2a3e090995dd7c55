//! A command that is carried page after page, in order: what is to be fetched for it, and what is to be done to each page.
//! The part that firmware without range locks has in common.

use super::copy::{self, CopyCursor, CopyStep};
use super::entry::{self, Outcome, Pair};
use crate::message::{Card, CommandKey, HostPlace, PageOperation, Transfer};
use crate::tables::{Frames, LIST_WORDS};
use crate::{Drive, Namespace};
use nvme::prp::{ListWalk, PrpPlan};
use nvme::spec::{DsmRange, Failure, Opcode, Status, Submission};
use stage::Words;
use std::ops::Range;
use units::{Bytes, Lba, Lpn, SECTOR_BYTES};

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

    /// Where a command fails: at the sector of the page so far behind the first that is meant.
    pub(crate) fn failure(&self, drive: &Drive, ahead: u32) -> Failure {
        let first = u64::from(self.lpn.0) * u64::from(drive.sectors_per_page());
        Failure { range: self.range, sector: Some(first + u64::from(self.sectors[0]) + u64::from(ahead)) }
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
    /// The way along the PRP list, while entries are missing.
    walk: Option<ListWalk>,
    /// List words gathered.
    listed: u16,
    /// The first word of its list buffer.
    list: usize,
    /// Of a fused pair: its Write, and where its data lie.
    write: Option<(Card, PrpPlan)>,
    /// Of a Copy: how far it is, and its step.
    copying: CopyCursor,
    step: Option<CopyStep>,
    /// Of a Dataset Management command or Copy: where its blocks are counted from, and whether the ranges are missing.
    namespace: Namespace,
    ranges_missing: bool,
    next_range: u16,
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
            walk: None,
            listed: 0,
            list,
            write: None,
            copying: CopyCursor::default(),
            step: None,
            namespace: Namespace { base: Lba(0), sectors: 0 },
            ranges_missing: false,
            next_range: 0,
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
        match self.opcode {
            Opcode::Flush => return Ok(()),
            Opcode::DatasetManagement => {
                self.namespace = *drive.namespace(entry.namespace()).expect("it was checked");
                self.plan = Some(entry::ranges_plan(&self.card, self.opcode)?);
                // Only the deallocate attribute changes anything; the others are hints.
                self.ranges_missing = entry.dsm_deallocates();
                return Ok(());
            }
            Opcode::Copy => {
                self.namespace = *drive.namespace(entry.namespace()).expect("it was checked");
                self.plan = Some(entry::ranges_plan(&self.card, self.opcode)?);
                self.copying = CopyCursor::new(self.card.sector);
                self.ranges_missing = true;
                return Ok(());
            }
            Opcode::Read | Opcode::Write | Opcode::Compare => {
                let plan = entry::data_plan(drive, &self.card)?;
                self.walk = plan.walk();
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
        (self.walk, self.ranges_missing, self.step) = (None, false, None);
        self.next_range = self.card.ranges;
    }

    /// What must be brought from host memory before its pages can be told; `thread` is told with `token`.
    pub(crate) fn wants(&self, thread: u8, token: u32) -> Option<Transfer> {
        let transfer = |place: HostPlace, local: usize| Transfer {
            nvmq: thread,
            token,
            aside: place.bytes(),
            local: local as u64,
            place,
            key: self.card.key,
            ..Transfer::WORDS
        };
        if self.ranges_missing {
            let plan = self.plan.expect("ranges lie in host memory");
            return Some(transfer(entry::ranges_place(&plan), self.list));
        }
        let run = self.walk?.run()?;
        let local = self.list + usize::from(self.listed);
        Some(transfer(HostPlace::at(run.at, run.words as u32 * 8), local))
    }

    /// What it wanted stands in its list buffer. It may want more.
    pub(crate) fn take(&mut self, drive: &Drive, lists: &Words, bytes: u32, local: u64) {
        if std::mem::take(&mut self.ranges_missing) {
            self.take_ranges(drive, lists);
            return;
        }
        let mut fetched = [0; LIST_WORDS];
        let words = bytes as usize / 8;
        lists.read(local as usize, &mut fetched[..words]);
        let walk = self.walk.as_mut().expect("a list is fetched along its walk");
        match walk.take(&fetched[..words]) {
            Ok(entries) => {
                self.listed += entries.len() as u16;
                if walk.run().is_none() {
                    self.walk = None;
                }
            }
            Err(status) => self.fail(status, Failure::default()),
        }
    }

    /// All ranges are checked before the first is touched.
    fn take_ranges(&mut self, drive: &Drive, lists: &Words) {
        if self.opcode == Opcode::Copy {
            let ranges = (0..self.card.ranges).map(|index| copy::range(lists, self.list, index));
            match copy::check(drive, self.namespace, self.card.sector, ranges) {
                Ok(()) => self.step = self.next_step(drive, lists),
                Err(status) => self.fail(status, Failure::default()),
            }
            return;
        }
        let scale = drive.shape().format.sectors();
        for index in 0..self.card.ranges {
            let range = self.range(lists, index);
            let end = range.slba.checked_mul(scale).and_then(|at| at.checked_add(u64::from(range.blocks) * scale));
            if end.is_none_or(|end| end > self.namespace.sectors) {
                self.fail(Status::LBA_OUT_OF_RANGE, Failure::default());
                return;
            }
        }
        self.next_stretch(drive, lists);
    }

    fn next_step(&mut self, drive: &Drive, lists: &Words) -> Option<CopyStep> {
        let (list, namespace) = (self.list, self.namespace);
        let range = |index| copy::sectors(drive, namespace, copy::range(lists, list, index));
        self.copying.next(drive.sectors_per_page(), self.card.ranges, range)
    }

    fn range(&self, lists: &Words, index: u16) -> DsmRange {
        let mut words = [0; DsmRange::WORDS];
        lists.read(self.list + usize::from(index) * DsmRange::WORDS, &mut words);
        DsmRange::decode(words)
    }

    fn stretch_of(&self, drive: &Drive, range: DsmRange) -> (u64, u64) {
        let scale = drive.shape().format.sectors();
        (self.namespace.base.0 + range.slba * scale, u64::from(range.blocks) * scale)
    }

    fn next_stretch(&mut self, drive: &Drive, lists: &Words) {
        self.stretch = (0, 0);
        while self.stretch.1 == 0 && self.next_range < self.card.ranges {
            let stretch = self.stretch_of(drive, self.range(lists, self.next_range));
            self.next_range += 1;
            self.begin(drive, stretch);
        }
    }

    /// How many pages it has from its beginning, once nothing is wanted any more. Ranges may overlap: they can have more than the drive.
    pub(crate) fn pages(&self, drive: &Drive, lists: &Words) -> u64 {
        if self.opcode == Opcode::Copy {
            let mut rest = self.clone();
            let steps = std::iter::from_fn(|| rest.next_step(drive, lists));
            return u64::from(self.step.is_some()) + steps.count() as u64;
        }
        let later = (self.next_range..self.card.ranges).map(|index| self.stretch_of(drive, self.range(lists, index)));
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
    use nvme::spec::DataPointer;
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
