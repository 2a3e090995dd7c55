//! What an I/O command asks a front end to move, and what is refused before the firmware sees it.

use crate::spec::{ALL_NAMESPACES, COPY_RANGES_MAX, CopyRange, DsmRange, Fuse, Opcode, PAGE_BYTES, Status, Submission};
use crate::{Controller, Format, Guarded, NamespaceSettings, copy};
use units::Bytes;

/// Bytes of blocks that the drive is given at once with a command that moves none of them: as many as 65,536 sectors. A Verify, Write
/// Zeroes or Write Uncorrectable should be no longer (CNS 06h); a longer one it is given in parts.
pub const RANGE_BYTES_MAX: u64 = 32 << 20;

/// The bytes that go between host and drive for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// None.
    Nothing,
    /// From the host, so many.
    FromHost(Bytes),
    /// To the host, so many.
    ToHost(Bytes),
}

/// What a command of an I/O queue is that was let pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Its opcode.
    pub opcode: Opcode,
    /// The bytes of data that go between host and drive.
    pub movement: Movement,
    /// What it says of metadata, where its namespace has any and it moves, makes or checks them.
    pub guarded: Option<Guarded>,
    /// Bytes of the blocks that it reads, compares, verifies, writes or deallocates; where it has ranges they are known when these are.
    pub reach: Bytes,
    /// Whether it is a Copy that the front end carries out, as [`Controller::guarded_copy`] says.
    pub copies: bool,
    /// Blocks of each part that the drive is given of it, where it is longer than one ([`Admission::stretch`]).
    pub(crate) part_blocks: Option<u32>,
    /// What blocks of the namespace were like, and since when.
    pub(crate) format: Option<Format>,
    pub(crate) since: u64,
}

impl Admission {
    /// Bytes of data that go between host and drive.
    pub fn bytes(&self) -> usize {
        match self.movement {
            Movement::Nothing => 0,
            Movement::FromHost(bytes) | Movement::ToHost(bytes) => bytes.0 as usize,
        }
    }

    /// Bytes of the blocks that the drive works on by itself: none of them go between it and the host.
    pub fn unmoved(&self) -> Bytes {
        match self.opcode {
            Opcode::Read | Opcode::Write | Opcode::Compare => Bytes(0),
            _ => self.reach,
        }
    }

    /// The command that goes to the drive: with metadata, what is to be checked has to come out, and what is made has to go in.
    pub fn carried(&self) -> Opcode {
        match self.opcode {
            Opcode::Verify if self.guarded.is_some() => Opcode::Read,
            Opcode::WriteZeroes if self.guarded.is_some() => Opcode::Write,
            opcode => opcode,
        }
    }

    /// What the blocks that the drive brings are to be checked by.
    pub fn checked(&self) -> Option<Guarded> {
        self.guarded.filter(|_| self.carried() == Opcode::Read)
    }
}

impl Controller {
    /// What a command of an I/O queue is.
    ///
    /// # Errors
    /// The status it fails with: as for [`Controller::movement`], or what it says of metadata does not fit the type of protection.
    pub fn admit(&self, submission: &Submission) -> Result<Admission, Status> {
        let (opcode, movement) = self.movement(submission)?;
        let guarded = self.guarded(submission)?;
        let part_blocks = self.part_blocks(submission, opcode, guarded);
        let guarded = guarded.filter(|_| part_blocks.is_none());
        let space = self.namespaces.of(self.settings.controller_id, submission.namespace());
        let format = space.map(|space| Format::of(&space.settings));
        let asks = format.is_some_and(|format| copy::is_guarded(submission, format.protection));
        let copies = opcode == Opcode::Copy && asks;
        let block_bytes = format.filter(|_| opcode.has_range()).map_or(0, |format| u64::from(format.block_bytes));
        let reach = Bytes(u64::from(submission.block_count()) * block_bytes);
        let since = space.map_or(0, |space| space.since);
        Ok(Admission { opcode, movement, guarded, reach, copies, part_blocks, format, since })
    }

    /// What a command of an I/O queue moves.
    ///
    /// # Errors
    /// The status it fails with: the controller is not ready or is shut down, there is no such command or namespace, blocks lie outside,
    /// the transfer is longer than MDTS, or it cannot be half of a fused pair. Whether the other half is there and fits is for [`fuse`].
    pub fn movement(&self, submission: &Submission) -> Result<(Opcode, Movement), Status> {
        if !self.is_ready() {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        self.check_open()?;
        let opcode = Opcode::try_from(submission.opcode()).map_err(|_| Status::INVALID_OPCODE)?;
        if !self.settings.commands.contains(&opcode) {
            return Err(Status::INVALID_OPCODE);
        }
        let may_fuse = match submission.fuse() {
            Fuse::Normal => true,
            Fuse::First => opcode == Opcode::Compare && self.settings.fuses(),
            Fuse::Second => opcode == Opcode::Write && self.settings.fuses(),
            Fuse::Reserved => false,
        };
        if !may_fuse || !self.may_point(submission, self.settings.memory_sgls) {
            return Err(Status::INVALID_FIELD);
        }
        if opcode == Opcode::Flush && submission.namespace() == ALL_NAMESPACES {
            return Ok((opcode, Movement::Nothing));
        }
        let (own, id) = (self.settings.controller_id, submission.namespace());
        let space = self.namespaces.of(own, id).ok_or(self.namespaces.missing(id))?;
        if space.change.is_some() {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        let namespace = &space.settings;
        let moves_blocks = match opcode {
            Opcode::Flush => return Ok((opcode, Movement::Nothing)),
            Opcode::DatasetManagement => {
                let bytes = u64::from(submission.dsm_range_count()) * DsmRange::WORDS as u64 * 8;
                return Ok((opcode, Movement::FromHost(Bytes(bytes))));
            }
            Opcode::Copy => return copied(submission, namespace.blocks).map(|bytes| (opcode, bytes)),
            Opcode::Read | Opcode::Write | Opcode::Compare => true,
            Opcode::WriteUncorrectable | Opcode::WriteZeroes | Opcode::Verify => false,
        };
        let blocks = u64::from(submission.block_count());
        if submission.slba().checked_add(blocks).is_none_or(|end| end > namespace.blocks) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let bytes = Bytes(blocks * u64::from(namespace.block_bytes));
        // MDTS includes metadata that lie between the blocks (Base, figure 275), but none that the drive makes or takes off (NVM §5.3.2).
        let extends = moves_blocks && namespace.metadata && self.settings.extends_blocks();
        let guarded = if extends { self.guarded(submission)? } else { None };
        let beside = guarded.map_or(0, |guarded| guarded.metadata_bytes() as u64);
        if moves_blocks && self.settings.transfer_max.is_some_and(|most| bytes.0 + beside > most.0) {
            return Err(Status::INVALID_FIELD);
        }
        if submission.fuse() != Fuse::Normal {
            self.check_atomic(submission, namespace)?;
        }
        let movement = match opcode {
            Opcode::Read => Movement::ToHost(bytes),
            Opcode::Write | Opcode::Compare => Movement::FromHost(bytes),
            _ => Movement::Nothing,
        };
        Ok((opcode, movement))
    }

    fn guarded(&self, submission: &Submission) -> Result<Option<Guarded>, Status> {
        let space = self.namespaces.of(self.settings.controller_id, submission.namespace());
        space.map_or(Ok(None), |space| Guarded::where_any(submission, Format::of(&space.settings)))
    }

    /// Blocks of each part of a command that moves none and is longer than the drive is given at once. Blocks whose tags are made or
    /// checked have to be moved after all: there a part is no longer than a transfer.
    fn part_blocks(&self, submission: &Submission, opcode: Opcode, guarded: Option<Guarded>) -> Option<u32> {
        let moves_none = matches!(opcode, Opcode::Verify | Opcode::WriteZeroes | Opcode::WriteUncorrectable);
        let space = self.namespaces.of(self.settings.controller_id, submission.namespace()).filter(|_| moves_none)?;
        let transfer = self.settings.transfer_max.filter(|_| guarded.is_some());
        let most = transfer.map_or(RANGE_BYTES_MAX, |most| most.0.min(RANGE_BYTES_MAX));
        let blocks = (most / u64::from(space.settings.block_bytes)) as u32;
        (submission.block_count() > blocks).then_some(blocks)
    }

    /// Blocks of a namespace that are written atomically: what that is in blocks of the drive, in its own.
    pub(crate) fn atomic_blocks(&self, namespace: &NamespaceSettings) -> u32 {
        let unit = self.settings.namespaces.first().map_or(512, |drive| drive.block_bytes);
        self.settings.atomic_write_blocks * unit / namespace.block_bytes
    }

    /// The same of a fused pair: it is no longer than a page of the host's memory.
    pub(crate) fn compare_blocks(&self, namespace: &NamespaceSettings) -> u32 {
        self.atomic_blocks(namespace).min(PAGE_BYTES as u32 / namespace.block_bytes)
    }

    /// A command that [`Controller::admit`] has let pass, as the drive is to see it.
    ///
    /// # Errors
    /// The status it fails with, because the controller is shut down meanwhile, its namespace has gone, its contents are going, or it is
    /// another or has other blocks since.
    pub fn translate(&self, submission: &Submission, admission: &Admission) -> Result<Submission, Status> {
        self.check_open()?;
        let own = self.settings.controller_id;
        let has_changed = |space: &crate::namespaces::Space| space.change.is_some() || space.since != admission.since;
        if self.namespaces.of(own, submission.namespace()).is_some_and(has_changed) {
            return Err(Status::FORMAT_IN_PROGRESS);
        }
        let entry = self.through(submission.opcode(), self.namespaces.translate(own, submission)?);
        let entry = entry.with_dword(0, entry.dword(0) & !0xff | admission.carried() as u32);
        let ranges = admission.bytes() / (DsmRange::WORDS * 8);
        let has_ranges = admission.opcode == Opcode::DatasetManagement;
        Ok(if has_ranges { entry.with_dword(10, ranges as u32 - 1) } else { entry })
    }

    /// While the volatile write cache is off whatever changes blocks goes through, as if each command said so. To the drive a
    /// Dataset Management says so as well, which no host can; nor can one say what a Verify of the drive's own says.
    fn through(&self, opcode: u8, entry: Submission) -> Submission {
        let goes_through = self.settings.volatile_write_cache && !self.write_cache_enabled();
        match Opcode::try_from(opcode) {
            Ok(Opcode::DatasetManagement) if !goes_through => entry.with_dword(12, 0),
            Ok(Opcode::DatasetManagement) => entry.with_dword(12, 0).with_fua(),
            Ok(Opcode::Verify) => entry.with_dword(13, 0),
            Ok(opcode) if goes_through && opcode.changes_media() => entry.with_fua(),
            _ => entry,
        }
    }

    /// The ranges of such a command as the drive is to see them, instead of those that came; of Dataset Management these may be more.
    ///
    /// # Errors
    /// The status it fails with: blocks lie outside the namespace, or a range is too long.
    pub fn translate_ranges(
        &self,
        submission: &Submission,
        admission: &mut Admission,
        words: &mut Vec<u64>,
    ) -> Result<(), Status> {
        self.namespaces.translate_ranges(self.settings.controller_id, submission, words)?;
        if admission.opcode == Opcode::DatasetManagement {
            admission.movement = Movement::FromHost(Bytes(words.len() as u64 * 8));
        }
        Ok(())
    }

    /// Bytes of the blocks that the ranges of a command name as they came: of a Copy, or of a Dataset Management.
    pub fn reach_of_ranges(&self, submission: &Submission, admission: &Admission, words: &[u64]) -> Bytes {
        let blocks: u64 = if admission.opcode == Opcode::Copy {
            let ranges = words.chunks_exact(CopyRange::WORDS).take(submission.copy_range_count() as usize);
            ranges.map(|at| u64::from(CopyRange::decode([at[0], at[1], at[2], at[3]]).blocks)).sum()
        } else {
            let ranges = words.chunks_exact(DsmRange::WORDS).take(submission.dsm_range_count() as usize);
            ranges.map(|at| u64::from(DsmRange::decode([at[0], at[1]]).blocks)).sum()
        };
        Bytes(blocks * admission.format.map_or(0, |format| u64::from(format.block_bytes)))
    }

    /// A fused pair takes effect whole or not at all only within what is written atomically.
    fn check_atomic(&self, submission: &Submission, namespace: &NamespaceSettings) -> Result<(), Status> {
        let (unit, blocks) = (u64::from(self.atomic_blocks(namespace)), u64::from(submission.block_count()));
        let is_long = blocks > self.compare_blocks(namespace).into();
        if is_long || submission.slba() % unit + blocks > unit {
            Err(Status::ATOMIC_WRITE_UNIT_EXCEEDED)
        } else {
            Ok(())
        }
    }
}

/// What two neighbours in a queue are to each other, where the first is the first half of a fused pair: a pair, or why each of
/// them fails (Base §3.4.2).
///
/// # Errors
/// The statuses of both; `None` where the other is not of the pair and goes on alone.
pub fn fuse(first: &Submission, second: &Submission) -> Result<(), (Status, Option<Status>)> {
    if second.fuse() != Fuse::Second {
        return Err((Status::ABORTED_MISSING_FUSED, None));
    }
    let of = |half: &Submission| (half.namespace(), half.slba(), half.block_count());
    if of(first) != of(second) {
        return Err((Status::INVALID_FIELD, Some(Status::ABORTED_FAILED_FUSED)));
    }
    Ok(())
}

/// What a Copy brings from the host: its ranges. Where they lie is known when they are here.
fn copied(submission: &Submission, blocks: u64) -> Result<Movement, Status> {
    if submission.copy_format() != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if submission.copy_range_count() > COPY_RANGES_MAX {
        return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
    }
    if submission.slba() >= blocks {
        return Err(Status::LBA_OUT_OF_RANGE);
    }
    Ok(Movement::FromHost(Bytes(u64::from(submission.copy_range_count()) * CopyRange::WORDS as u64 * 8)))
}
