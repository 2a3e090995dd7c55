//! The namespaces of a subsystem: which there are, where each lies in the drive, and which controllers have it.
//!
//! The drive counts blocks of one size in spaces of its own. A namespace is a piece of one of them, in one part; so that it can be
//! made and deleted, and have blocks of another size, without the firmware knowing of it.

mod table;

pub use table::TableError;

use crate::spec::{ALL_NAMESPACES, CopyRange, DsmRange, Opcode, Status, Submission};
use crate::{ControllerSettings, NamespaceSettings, Protection};
use std::collections::BTreeSet;

/// Namespaces begin at multiples of so many bytes, and take as much of the drive (CNS 16h says so).
pub const GRANULE_BYTES: u64 = 1 << 20;

/// What blocks of a namespace are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bytes of data.
    pub block_bytes: u32,
    /// Whether 8 bytes of metadata go with them.
    pub metadata: bool,
    /// Whether these are protection information.
    pub protection: Protection,
}

impl Format {
    const fn plain(block_bytes: u32) -> Self {
        Format { block_bytes, metadata: false, protection: Protection::None }
    }

    const fn with_metadata(block_bytes: u32) -> Self {
        Format { block_bytes, metadata: true, protection: Protection::None }
    }

    /// Of a namespace.
    pub fn of(namespace: &NamespaceSettings) -> Self {
        let NamespaceSettings { block_bytes, metadata, protection, .. } = *namespace;
        Format { block_bytes, metadata, protection }
    }
}

/// The formats that a namespace of some drive can have, in their order.
const FORMATS: [Format; 4] =
    [Format::plain(512), Format::plain(4096), Format::with_metadata(512), Format::with_metadata(4096)];

/// What a namespace becomes when its contents are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// One with such blocks.
    Formatted(Format),
    /// None.
    Deleted,
}

/// A namespace and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) settings: NamespaceSettings,
    /// The namespace of the drive that it lies in, and the first of that one's blocks.
    home: u32,
    first: u64,
    /// Blocks of the drive that are its own.
    length: u64,
    attached: BTreeSet<u16>,
    /// Whether controllers that come have it.
    shown: bool,
    /// Which of all changes made it what it is: a number that no other state of a namespace has.
    pub(crate) since: u64,
    /// Its contents are going.
    pub(crate) change: Option<Change>,
}

/// A piece of the drive, in its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The namespace of the drive.
    pub home: u32,
    /// The first block there.
    pub first: u64,
    /// How many.
    pub blocks: u64,
}

/// All namespaces. Controllers share what the subsystem has, and one that changes it has a copy until the others have that too;
/// [`crate::Controller::set_namespaces`] renews it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// By identifier, from 1.
    spaces: Vec<Option<Space>>,
    /// Blocks of the drive's own namespaces, by their identifier from 1.
    homes: Vec<u64>,
    /// Bytes of a block of the drive.
    unit: u32,
    /// Bytes of the longest block that is written atomically.
    longest: u32,
    /// Whether it keeps metadata.
    metadata: bool,
    controllers: BTreeSet<u16>,
    /// The identifier that those of new namespaces are counted from, and how many there were.
    nguid: u128,
    created: u128,
    /// Namespaces that were made, formatted or deleted since the subsystem was.
    changes: u64,
}

/// The longest stretch of blocks of the drive that a range is cut into: one that begins at a page goes on at one.
const STRETCH_MAX: u64 = 1 << 31;

/// Identifiers of so many namespaces of the drive's own come before those of namespaces that are made, or of all if it has more.
const OWN_COUNTED: u128 = 0x100;

impl Namespaces {
    /// Those that the settings name: each is a namespace of the drive, whole.
    pub fn new(settings: &ControllerSettings) -> Self {
        let unit = settings.namespaces.first().map_or(512, |space| space.block_bytes);
        let whole = |(space, home): (&NamespaceSettings, u32)| Space {
            settings: space.clone(),
            home,
            first: 0,
            length: space.blocks,
            attached: BTreeSet::new(),
            shown: true,
            since: 0,
            change: None,
        };
        let mut spaces: Vec<Option<Space>> = settings.namespaces.iter().zip(1..).map(whole).map(Some).collect();
        spaces.resize(spaces.len().max(settings.managed_namespaces as usize), None);
        let nguid = settings.namespaces.first().map_or(0, |space| u128::from_be_bytes(space.nguid));
        let homes = settings.namespaces.iter().map(|space| space.blocks).collect();
        let (longest, metadata) = (settings.atomic_write_blocks * unit, settings.metadata);
        let controllers = BTreeSet::new();
        Namespaces { spaces, homes, unit, longest, metadata, controllers, nguid, created: 0, changes: 0 }
    }

    /// The greatest identifier that there can be.
    pub fn count(&self) -> u32 {
        self.spaces.len() as u32
    }

    /// A namespace, whether any controller has it or not.
    pub(crate) fn allocated(&self, id: u32) -> Option<&Space> {
        self.spaces.get((id as usize).checked_sub(1)?)?.as_ref()
    }

    fn allocated_mut(&mut self, id: u32) -> Option<&mut Space> {
        self.spaces.get_mut((id as usize).checked_sub(1)?)?.as_mut()
    }

    /// A namespace that a controller has.
    pub(crate) fn of(&self, controller: u16, id: u32) -> Option<&Space> {
        self.allocated(id).filter(|space| space.attached.contains(&controller))
    }

    /// Identifiers of those that a controller has, or of all.
    pub(crate) fn ids(&self, controller: Option<u16>) -> impl Iterator<Item = u32> + '_ {
        let is_it = move |space: &Space| controller.is_none_or(|id| space.attached.contains(&id));
        (1..).zip(&self.spaces).filter(move |(_, space)| space.as_ref().is_some_and(is_it)).map(|(id, _)| id)
    }

    /// The controllers of the subsystem, or those that have a namespace.
    pub(crate) fn controllers(&self, id: Option<u32>) -> Vec<u16> {
        match id {
            None => self.controllers.iter().copied().collect(),
            Some(id) => self.allocated(id).map_or_else(Vec::new, |space| space.attached.iter().copied().collect()),
        }
    }

    /// Why a command to a namespace fails that a controller does not have (Base §3.2.1.4).
    pub(crate) fn missing(&self, id: u32) -> Status {
        if (1..=self.count()).contains(&id) { Status::INVALID_FIELD } else { Status::INVALID_NAMESPACE }
    }

    /// A controller has come: it has every namespace that is shown.
    pub fn enter(&mut self, controller: u16) {
        self.controllers.insert(controller);
        for space in self.spaces.iter_mut().flatten().filter(|space| space.shown) {
            space.attached.insert(controller);
        }
    }

    /// A controller has gone.
    pub fn leave(&mut self, controller: u16) {
        self.controllers.remove(&controller);
        for space in self.spaces.iter_mut().flatten() {
            space.attached.remove(&controller);
        }
    }

    /// Bytes of the drive, and those that no namespace has.
    pub fn bytes(&self) -> [u128; 2] {
        let all: u64 = self.homes.iter().sum();
        let used: u64 = self.spaces.iter().flatten().map(|space| space.length).sum();
        [all, all.saturating_sub(used)].map(|blocks| u128::from(blocks) * u128::from(self.unit))
    }

    /// Bytes of the drive that a namespace has, which may be more than its blocks have.
    pub(crate) fn bytes_of(&self, space: &Space) -> u128 {
        u128::from(space.length) * u128::from(self.unit)
    }

    /// The namespace that has all of the drive, if one does.
    fn whole(&self) -> Option<&Space> {
        let [_, unallocated] = self.bytes();
        let mut spaces = self.spaces.iter().flatten();
        spaces.next().filter(|_| spaces.next().is_none() && unallocated == 0)
    }

    /// Blocks in use of all namespaces, where so many bytes of the drive are: in the blocks of the namespace that has all of it, or else
    /// in those of the drive.
    pub fn used_blocks(&self, bytes: u64) -> u64 {
        let [all, _] = self.bytes();
        let unit = self.whole().map_or(self.unit, |space| space.settings.block_bytes);
        bytes.min(all.try_into().unwrap_or(u64::MAX)) / u64::from(unit)
    }

    /// Blocks in use of a namespace (NUSE), where so many bytes of the drive are. Of one that has only a part of the drive nobody
    /// knows, short of looking at all of the map: it says all of its blocks, as one may that does not promise more than it has
    /// (NVM §4.1.5.1).
    pub(crate) fn used_of(&self, settings: &NamespaceSettings, bytes: Option<u64>) -> u64 {
        let is_whole = self.whole().is_some_and(|space| space.settings == *settings);
        bytes.filter(|_| is_whole).map_or(settings.blocks, |bytes| self.used_blocks(bytes).min(settings.blocks))
    }

    /// The formats that a namespace here can have, in the order of their places: none has blocks below one of the drive, nor beyond what is
    /// written whole or not at all, power failing or not (Base, AWUPF), nor metadata where the drive keeps none.
    pub(crate) fn formats(&self) -> impl Iterator<Item = Format> + '_ {
        let blocks = self.unit..=self.longest;
        let fits = move |format: &Format| blocks.contains(&format.block_bytes) && (self.metadata || !format.metadata);
        FORMATS.into_iter().filter(fits)
    }

    /// Makes a namespace that no controller has yet, in the first gap that it fits.
    pub(crate) fn create(&mut self, blocks: u64, format: Format) -> Result<u32, Status> {
        let Format { block_bytes, metadata, protection } = format;
        let unit = u64::from(self.unit);
        let length = blocks.checked_mul(u64::from(block_bytes) / unit).filter(|length| *length > 0);
        let length = length.ok_or(if blocks == 0 { Status::INVALID_FIELD } else { Status::INSUFFICIENT_CAPACITY })?;
        let free = self.spaces.iter().position(Option::is_none).ok_or(Status::NAMESPACE_ID_UNAVAILABLE)?;
        let granule = GRANULE_BYTES / unit;
        let (home, first) = self.gap(length, granule).ok_or(Status::INSUFFICIENT_CAPACITY)?;
        // The end of the drive may lie within a granule.
        let length = length.next_multiple_of(granule).min(self.homes[home as usize - 1] - first);
        self.created += 1;
        self.changes += 1;
        // Identifiers of the drive's own namespaces are counted in the same place, from 1.
        let own = OWN_COUNTED.max(self.homes.len() as u128);
        let nguid = self.nguid.wrapping_add((self.created + own) << 64).to_be_bytes();
        let settings = NamespaceSettings { blocks, block_bytes, metadata, protection, nguid, eui64: [0; 8] };
        let (attached, since, change) = (BTreeSet::new(), self.changes, None);
        self.spaces[free] = Some(Space { settings, home, first, length, attached, shown: false, since, change });
        Ok(free as u32 + 1)
    }

    fn gap(&self, length: u64, granule: u64) -> Option<(u32, u64)> {
        (1..).zip(&self.homes).find_map(|(home, &blocks)| {
            let mut taken: Vec<(u64, u64)> = self
                .spaces
                .iter()
                .flatten()
                .filter(|space| space.home == home)
                .map(|space| (space.first, space.first + space.length))
                .collect();
            taken.sort_unstable();
            let mut at = 0u64;
            for (first, end) in taken {
                if at.checked_add(length)? <= first {
                    return Some((home, at));
                }
                at = end.next_multiple_of(granule);
            }
            (at.checked_add(length)? <= blocks).then_some((home, at))
        })
    }

    /// Attaches or detaches controllers, which a list names in ascending order (Base §4.5.1).
    pub(crate) fn attach(&mut self, id: u32, controllers: &[u16], attaches: bool) -> Result<(), Status> {
        let known = controllers.iter().all(|controller| self.controllers.contains(controller));
        let ascends = controllers.is_sorted_by(|one, next| one < next);
        let missing = self.missing(id);
        let space = self.allocated_mut(id).ok_or(missing)?;
        if controllers.is_empty() || !known || !ascends {
            return Err(Status::CONTROLLER_LIST_INVALID);
        }
        for controller in controllers {
            match (attaches, space.attached.contains(controller)) {
                (true, true) => return Err(Status::NAMESPACE_ALREADY_ATTACHED),
                (false, false) => return Err(Status::NAMESPACE_NOT_ATTACHED),
                _ => {}
            }
        }
        for controller in controllers {
            if attaches {
                space.attached.insert(*controller);
            } else {
                space.attached.remove(controller);
            }
        }
        space.shown = !space.attached.is_empty();
        Ok(())
    }

    /// Says that the contents of a namespace are going: the piece of the drive that is to be erased.
    pub(crate) fn begin_change(&mut self, id: u32, change: Change) -> Result<Piece, Status> {
        let missing = self.missing(id);
        let space = self.allocated_mut(id).ok_or(missing)?;
        if space.change.is_some() {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        space.change = Some(change);
        Ok(Piece { home: space.home, first: space.first, blocks: space.length })
    }

    /// The contents of a namespace are gone, or could not be erased: then it stays as it was.
    pub fn on_erased(&mut self, id: u32, erased: bool) {
        let unit = u64::from(self.unit);
        let Some(place) = (id as usize).checked_sub(1).and_then(|at| self.spaces.get_mut(at)) else { return };
        let Some(space) = place else { return };
        self.changes += 1;
        match space.change.take() {
            Some(Change::Formatted(Format { block_bytes, metadata, protection })) if erased => {
                let bytes = u64::from(space.settings.block_bytes) * space.settings.blocks;
                let (most, block) = (space.length * unit, u64::from(block_bytes));
                space.settings.blocks = bytes.next_multiple_of(block).min(most) / block;
                (space.settings.block_bytes, space.settings.metadata) = (block_bytes, metadata);
                space.settings.protection = protection;
                space.since = self.changes;
            }
            Some(Change::Deleted) if erased => *place = None,
            _ => {}
        }
    }

    /// Where each of them lies.
    pub fn pieces(&self) -> impl Iterator<Item = (u32, Piece)> {
        (1..).zip(&self.spaces).filter_map(|(id, space)| {
            let space = space.as_ref()?;
            Some((id, Piece { home: space.home, first: space.first, blocks: space.length }))
        })
    }

    /// Where each of those lies that a controller has.
    pub fn pieces_of(&self, controller: u16) -> impl Iterator<Item = (u32, Piece)> {
        self.pieces().filter(move |(id, _)| self.of(controller, *id).is_some())
    }

    /// Identifiers that a controller sees otherwise than in another state of things.
    pub(crate) fn differing(&self, other: &Namespaces, controller: u16) -> Vec<u32> {
        let seen = |all: &Namespaces, id| all.of(controller, id).map(|space| space.settings.clone());
        (1..=self.count()).filter(|&id| seen(self, id) != seen(other, id)).collect()
    }

    /// A command of a controller to a namespace as the drive is to see it. The command is one that [`crate::Controller::movement`]
    /// has let pass.
    pub(crate) fn translate(&self, controller: u16, submission: &Submission) -> Result<Submission, Status> {
        let opcode = Opcode::try_from(submission.opcode()).map_err(|_| Status::INVALID_OPCODE)?;
        if opcode == Opcode::Flush && submission.namespace() == ALL_NAMESPACES {
            return Ok(*submission);
        }
        let missing = self.missing(submission.namespace());
        let space = self.of(controller, submission.namespace()).ok_or(missing)?;
        let scale = space.settings.block_bytes / self.unit;
        let mut entry = submission.with_dword(1, space.home);
        if opcode.has_range() || opcode == Opcode::Copy {
            let slba = space.first + submission.slba() * u64::from(scale);
            entry = entry.with_dword(10, slba as u32).with_dword(11, (slba >> 32) as u32);
        }
        if opcode.has_range() {
            let blocks = submission.block_count() * scale;
            assert!(blocks <= 0x1_0000, "the drive is given it in parts");
            entry = entry.with_dword(12, submission.dword(12) & !0xffff | (blocks - 1) & 0xffff);
        }
        Ok(entry)
    }

    /// The block of a namespace that has a sector of the drive, counted over all its namespaces, each of which begins where the one before
    /// ends.
    pub(crate) fn block_at(&self, id: u32, sector: u64) -> Option<u64> {
        let space = self.allocated(id)?;
        let before: u64 = self.homes[..space.home as usize - 1].iter().sum();
        let block = sector / (u64::from(self.unit) / 512);
        let own =
            block.checked_sub(before + space.first)? * u64::from(self.unit) / u64::from(space.settings.block_bytes);
        (own < space.settings.blocks).then_some(own)
    }

    /// The sector of the drive, counted in the same way, where a block of a namespace begins.
    pub fn sector_of(&self, id: u32, block: u64) -> Option<u64> {
        let space = self.allocated(id).filter(|space| block < space.settings.blocks)?;
        let before: u64 = self.homes[..space.home as usize - 1].iter().sum();
        let own = block * u64::from(space.settings.block_bytes) / u64::from(self.unit);
        Some((before + space.first + own) * (u64::from(self.unit) / 512))
    }

    /// The ranges of a Dataset Management or Copy command as the drive is to see them, in the words they came in.
    pub(crate) fn translate_ranges(
        &self,
        controller: u16,
        submission: &Submission,
        words: &mut Vec<u64>,
    ) -> Result<(), Status> {
        let missing = self.missing(submission.namespace());
        let space = self.of(controller, submission.namespace()).ok_or(missing)?;
        let (blocks, scale) = (space.settings.blocks, space.settings.block_bytes / self.unit);
        let inside = |slba: u64, count: u64| slba.checked_add(count).is_some_and(|end| end <= blocks);
        if submission.opcode() == Opcode::DatasetManagement as u8 {
            let count = submission.dsm_range_count() as usize;
            let ranges = words.chunks_exact(DsmRange::WORDS).take(count);
            let ranges: Vec<DsmRange> = ranges.map(|words| DsmRange::decode([words[0], words[1]])).collect();
            if ranges.iter().any(|range| !inside(range.slba, range.blocks.into())) {
                return Err(Status::LBA_OUT_OF_RANGE);
            }
            words.clear();
            for range in ranges {
                let (slba, blocks) = (range.slba * u64::from(scale), u64::from(range.blocks) * u64::from(scale));
                // In blocks of the drive it may be longer than a range can be. One of no blocks stays one.
                for first in (0..blocks.max(1)).step_by(STRETCH_MAX as usize) {
                    let stretch = (blocks - first).min(STRETCH_MAX) as u32;
                    let stretch = DsmRange { blocks: stretch, slba: space.first + slba + first, ..range };
                    words.extend_from_slice(&stretch.encode());
                }
            }
            return Ok(());
        }
        let mut total = 0;
        for words in words.chunks_exact_mut(CopyRange::WORDS).take(submission.copy_range_count() as usize) {
            let range = CopyRange::decode([words[0], words[1], words[2], words[3]]);
            if !inside(range.slba, range.blocks.into()) {
                return Err(Status::LBA_OUT_OF_RANGE);
            }
            total += u64::from(range.blocks);
            let blocks = range.blocks * scale;
            if blocks > 0x1_0000 {
                return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
            }
            let slba = space.first + range.slba * u64::from(scale);
            words.copy_from_slice(&CopyRange { slba, blocks }.encode());
        }
        if inside(submission.slba(), total) { Ok(()) } else { Err(Status::LBA_OUT_OF_RANGE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::example;
    use crate::spec::DataPointer;

    fn drive(blocks: u64) -> Namespaces {
        let mut settings = example();
        settings.namespaces[0].blocks = blocks;
        settings.managed_namespaces = 4;
        let mut namespaces = Namespaces::new(&settings);
        namespaces.enter(1);
        namespaces
    }

    /// What the drive tells as its capacity can be one namespace, wherever its end lies.
    #[test]
    fn a_namespace_may_be_as_large_as_the_drive() {
        let blocks = 10 * 2048 + 100;
        let mut all = drive(blocks);
        all.begin_change(1, Change::Deleted).unwrap();
        all.on_erased(1, true);
        assert_eq!(all.create(blocks + 1, Format::plain(512)), Err(Status::INSUFFICIENT_CAPACITY));
        assert_eq!(all.create(blocks, Format::plain(512)), Ok(1));
        assert_eq!(all.bytes(), [u128::from(blocks) * 512, 0]);
    }

    /// A block that is not written as a whole would break what AWUPF says. Of what is left each has the next place (NVM §4.1.5.1, NLBAF).
    #[test]
    fn formats_that_a_drive_cannot_have_take_no_place() {
        let formats = |block_bytes, atomic_write_blocks, metadata| {
            let mut settings = ControllerSettings { atomic_write_blocks, metadata, ..example() };
            settings.namespaces[0].block_bytes = block_bytes;
            Namespaces::new(&settings).formats().collect::<Vec<_>>()
        };
        let [short, long] = [512, 4096].map(|bytes| [Format::plain(bytes), Format::with_metadata(bytes)]);
        assert_eq!(formats(512, 8, true), FORMATS);
        assert_eq!([formats(512, 4, true), formats(4096, 1, true)], [short, long]);
        assert_eq!([formats(512, 8, false), formats(4096, 1, false)], [vec![short[0], long[0]], vec![long[0]]]);
    }

    #[test]
    fn namespaces_come_into_the_gaps_that_others_leave() {
        let mut all = drive(10 * 2048);
        assert_eq!(all.create(1, Format::plain(512)), Err(Status::INSUFFICIENT_CAPACITY));
        all.begin_change(1, Change::Deleted).unwrap();
        assert_eq!(all.begin_change(1, Change::Deleted), Err(Status::FORMAT_IN_PROGRESS));
        all.on_erased(1, true);
        assert_eq!(all.bytes(), [10 << 20; 2]);
        assert_eq!(
            [
                all.create(4 * 2048, Format::plain(512)),
                all.create(1, Format::plain(4096)),
                all.create(5 * 256, Format::plain(4096))
            ],
            [Ok(1), Ok(2), Ok(3)]
        );
        assert_eq!(all.bytes()[1], 0);
        assert_eq!(all.create(1, Format::plain(512)), Err(Status::INSUFFICIENT_CAPACITY));
        let piece = all.begin_change(2, Change::Deleted).unwrap();
        assert_eq!(piece, Piece { home: 1, first: 4 * 2048, blocks: 2048 });
        all.on_erased(2, true);
        assert_eq!(
            all.create(2049, Format::plain(512)),
            Err(Status::INSUFFICIENT_CAPACITY),
            "the gap is of 2,048 blocks"
        );
        assert_eq!(all.create(2048, Format::plain(512)), Ok(2));
        let names: BTreeSet<[u8; 16]> = [1, 2, 3].map(|id| all.allocated(id).unwrap().settings.nguid).into();
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn a_namespace_is_of_those_it_is_attached_to() {
        let mut all = drive(10 * 2048);
        all.enter(7);
        assert_eq!((all.of(1, 1).is_some(), all.of(7, 1).is_some(), all.of(3, 1).is_some()), (true, true, false));
        assert_eq!(all.attach(1, &[7], true), Err(Status::NAMESPACE_ALREADY_ATTACHED));
        assert_eq!(all.attach(1, &[7], false), Ok(()));
        assert_eq!(all.attach(1, &[7], false), Err(Status::NAMESPACE_NOT_ATTACHED));
        for list in [&[9][..], &[], &[7, 1], &[7, 7]] {
            assert_eq!(all.attach(1, list, true), Err(Status::CONTROLLER_LIST_INVALID), "{list:?}");
        }
        assert_eq!(all.attach(2, &[7], true), Err(Status::INVALID_FIELD));
        assert_eq!((all.of(7, 1), all.controllers(Some(1)), all.controllers(None)), (None, vec![1], vec![1, 7]));
        all.enter(8);
        assert!(all.of(8, 1).is_some(), "another has it");
        all.leave(8);
        assert_eq!(all.controllers(Some(1)), [1]);
    }

    #[test]
    fn commands_reach_the_piece_of_the_drive_in_its_blocks() {
        let mut all = drive(10 * 2048);
        all.begin_change(1, Change::Deleted).unwrap();
        all.on_erased(1, true);
        let (_, second) =
            (all.create(2048, Format::plain(512)).unwrap(), all.create(512, Format::plain(4096)).unwrap());
        all.attach(second, &[1], true).unwrap();
        let entry = all.translate(1, &Submission::write_zeroes(second, 3, 512)).unwrap();
        assert_eq!((entry.namespace(), entry.slba(), entry.block_count()), (1, 2048 + 24, 4096));
        assert_eq!(entry.dword(12) >> 16, 1 << 9, "it may deallocate them");
        assert_eq!(all.translate(1, &Submission::flush(1)), Err(Status::INVALID_FIELD), "not attached");
        let trim = Submission::dataset_management(second, 1, DataPointer::default());
        let mut words = DsmRange { attributes: 5, blocks: 2, slba: 510 }.encode().to_vec();
        assert_eq!(all.translate_ranges(1, &trim, &mut words), Ok(()));
        assert_eq!(words, DsmRange { attributes: 5, blocks: 16, slba: 2048 + 4080 }.encode());
        let copy = Submission::copy(second, 511, 1, DataPointer::default());
        let mut words = CopyRange { slba: 1, blocks: 1 }.encode().to_vec();
        assert_eq!(all.translate_ranges(1, &copy, &mut words), Ok(()));
        assert_eq!(words, CopyRange { slba: 2048 + 8, blocks: 8 }.encode());
        let mut beyond = CopyRange { slba: 1, blocks: 2 }.encode().to_vec();
        assert_eq!(all.translate_ranges(1, &copy, &mut beyond), Err(Status::LBA_OUT_OF_RANGE));
        assert_eq!(all.translate(1, &copy).unwrap().slba(), 2048 + 4088);
    }

    #[test]
    fn ranges_longer_than_the_drive_can_name_are_cut() {
        let mut all = drive((5 << 32) + 2048);
        all.begin_change(1, Change::Formatted(Format::plain(4096))).unwrap();
        all.on_erased(1, true);
        let blocks = all.allocated(1).unwrap().settings.blocks;
        let range = |blocks, slba| DsmRange { attributes: 1, blocks, slba }.encode();
        let trim = Submission::dataset_management(1, 3, DataPointer::default());
        let mut words = [range(0, blocks), range((1 << 29) + 1, 3), range(7, blocks - 7)].concat();
        assert_eq!(all.translate_ranges(1, &trim, &mut words), Ok(()));
        let cut = [range(0, 8 * blocks), range(1 << 31, 24), range(1 << 31, 24 + (1 << 31)), range(8, 24 + (1 << 32))];
        assert_eq!(words, [&cut.concat()[..], &range(56, 8 * blocks - 56)].concat());
        let one = Submission::dataset_management(1, 1, DataPointer::default());
        let beyond = u32::try_from(blocks - 2).unwrap();
        assert_eq!(all.translate_ranges(1, &one, &mut range(beyond, 3).to_vec()), Err(Status::LBA_OUT_OF_RANGE));
        assert_eq!(all.translate_ranges(1, &one, &mut range(beyond, 2).to_vec()), Ok(()));
        let all_of_it = Submission::dataset_management(1, 256, DataPointer::default());
        let mut words = range(beyond, 0).repeat(256);
        assert_eq!(all.translate_ranges(1, &all_of_it, &mut words), Ok(()));
        assert_eq!(words.len(), 256 * 11 * 2, "more than a list holds, each in eleven");
    }

    #[test]
    fn a_format_keeps_the_size_and_counts_it_in_other_blocks() {
        let mut all = drive(10 * 2048 + 9);
        all.begin_change(1, Change::Formatted(Format::plain(4096))).unwrap();
        all.on_erased(1, false);
        assert_eq!(all.allocated(1).unwrap().settings.block_bytes, 512, "it failed");
        let before = all.allocated(1).unwrap().since;
        all.begin_change(1, Change::Formatted(Format::plain(4096))).unwrap();
        all.on_erased(1, true);
        let space = &all.allocated(1).unwrap().settings;
        assert_eq!((space.blocks, space.block_bytes), (10 * 256 + 1, 4096));
        let formatted = all.allocated(1).unwrap().since;
        all.begin_change(1, Change::Deleted).unwrap();
        all.on_erased(1, true);
        all.create(1, Format::plain(512)).unwrap();
        let another = all.allocated(1).unwrap().since;
        assert!(before < formatted && formatted < another, "three states of number 1");
    }
}
