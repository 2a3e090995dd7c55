//! A Copy of blocks with protection information that is checked or made anew on the way (NVM §3.2.2): reads and writes of a part
//! at a time, for the drive itself copies blocks with their tags as they are.

use crate::io::Admission;
use crate::parts::Step;
use crate::protection::{ACTION, information};
use crate::spec::{COPY_BYTES_MAX, CopyRange, Opcode, Status, Submission};
use crate::{Controller, Protection};

/// PRINFOR and PRINFOW of a Copy, both in the place of PRINFO in other commands: the latter is there, the former 14 bits below.
fn informations(command: &Submission) -> [u32; 2] {
    [14, 0].map(|below| information(&command.with_dword(12, command.dword(12) << below)))
}

/// Whether a Copy checks or makes protection information.
pub(crate) fn is_guarded(command: &Submission, protection: Protection) -> bool {
    protection != Protection::None && informations(command) != [0, 0]
}

/// A range of source blocks, with what their tags are to be as dwords 14 and 15 of a Read say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    slba: u64,
    blocks: u32,
    tags: [u32; 2],
}

/// The steps that are left, each a Read or a Write of the command's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedCopy {
    command: Submission,
    admission: Admission,
    protection: Protection,
    /// From the back.
    sources: Vec<Source>,
    /// Blocks of the last of them that are copied, and blocks that are in all.
    done: u32,
    written: u64,
    step_max: u32,
}

impl Controller {
    /// The steps of a Copy that checks or makes protection information, with the ranges that came for it.
    ///
    /// # Errors
    /// The status it fails with before any block is moved: blocks outside the namespace, more of them than MSSRL or MCL, tags that
    /// the type of protection does not allow, PRACT for one side only.
    pub fn guarded_copy(
        &self,
        command: &Submission,
        admission: &Admission,
        words: &[u64],
    ) -> Result<GuardedCopy, Status> {
        self.namespaces.translate_ranges(self.settings().controller_id, command, &mut words.to_vec())?;
        let space = self.namespaces.of(self.settings().controller_id, command.namespace());
        let format = admission.format.ok_or(Status::INVALID_FIELD)?;
        let [reads, writes] = informations(command);
        if space.is_none() || (reads ^ writes) & ACTION != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let source = |words: &[u64]| {
            let CopyRange { slba, blocks } = CopyRange::decode([words[0], words[1], words[2], words[3]]);
            Source { slba, blocks, tags: [words[3] as u32, (words[3] >> 32) as u32] }
        };
        let ranges = words.chunks_exact(CopyRange::WORDS).take(command.copy_range_count() as usize);
        let mut sources: Vec<Source> = ranges.map(source).collect();
        if self.reach_of_ranges(command, admission, words).0 > COPY_BYTES_MAX {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
        }
        sources.reverse();
        let transfer = self.settings().transfer_max.map_or(COPY_BYTES_MAX, |most| most.0);
        let step_max = (transfer.min(COPY_BYTES_MAX) / u64::from(format.block_bytes)) as u32;
        let (command, admission, protection) = (*command, *admission, format.protection);
        let copy = GuardedCopy { command, admission, protection, sources, done: 0, written: 0, step_max };
        let mut rest = copy.clone();
        while let Some(source) = rest.sources.last().copied() {
            rest.part(Opcode::Read, source.slba, source.blocks, source.tags)?;
            rest.sources.pop();
        }
        copy.part(Opcode::Write, command.slba(), 1, [command.dword(14), command.dword(15)])?;
        Ok(copy)
    }
}

impl GuardedCopy {
    /// Reads the next blocks; `None` when all are copied.
    pub fn read(&self) -> Option<Step> {
        let source = self.sources.last()?;
        let [reference, application] = source.tags;
        let tags = [self.later(reference, self.done.into()), application];
        let step = self.part(Opcode::Read, source.slba + u64::from(self.done), self.blocks(), tags);
        Some(step.expect("its range was looked at"))
    }

    /// Writes what was read.
    pub fn write(&self) -> Step {
        let tags = [self.later(self.command.dword(14), self.written), self.command.dword(15)];
        let step = self.part(Opcode::Write, self.command.slba() + self.written, self.blocks(), tags);
        step.expect("where it goes was looked at")
    }

    /// The range that is being copied: those before it are whole.
    pub fn range(&self) -> u8 {
        (self.command.copy_range_count() as usize - self.sources.len()) as u8
    }

    /// What was read is written.
    pub fn advance(&mut self) {
        let blocks = self.blocks();
        self.written += u64::from(blocks);
        self.done += blocks;
        if self.sources.last().is_some_and(|source| self.done >= source.blocks) {
            self.sources.pop();
            self.done = 0;
        }
    }

    /// Blocks of the next step.
    fn blocks(&self) -> u32 {
        self.sources.last().map_or(0, |source| (source.blocks - self.done).min(self.step_max))
    }

    /// The reference tag of a block so many behind the one that has `reference`.
    fn later(&self, reference: u32, blocks: u64) -> u32 {
        if self.protection == Protection::Type3 { reference } else { reference.wrapping_add(blocks as u32) }
    }

    fn part(&self, opcode: Opcode, slba: u64, blocks: u32, tags: [u32; 2]) -> Result<Step, Status> {
        let [reads, writes] = informations(&self.command);
        let submission = Submission::over_blocks(opcode, self.command.namespace(), slba, blocks);
        let (submission, information) = match opcode {
            Opcode::Write if self.command.fua() => (submission.with_fua(), writes),
            Opcode::Write => (submission, writes),
            _ => (submission, reads),
        };
        Step::guarded(&self.admission, submission, information, tags)
    }
}
