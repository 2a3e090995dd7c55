//! Commands that the drive is given a part at a time, because what they reach over is more than it should have to do at once.

use crate::io::{Admission, Movement, RANGE_BYTES_MAX};
use crate::protection::{Guarded, information};
use crate::spec::{DataPointer, DsmRange, Opcode, Status, Submission};
use crate::{Controller, Protection};
use units::Bytes;

/// Ranges of a Dataset Management (NVM §3.2.3).
const DSM_RANGES_MAX: usize = 256;

/// A part of a command as the drive is given it, without a place for its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The command.
    pub submission: Submission,
    /// What it is.
    pub admission: Admission,
}

/// What is left of a Verify, Write Zeroes or Write Uncorrectable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    command: Submission,
    admission: Admission,
    done: u32,
    part: u32,
}

impl Admission {
    /// The parts of a command over blocks, where the drive is not given it at once.
    pub fn stretch(&self, command: &Submission) -> Option<Stretch> {
        self.part_blocks.map(|part| Stretch { command: *command, admission: *self, done: 0, part })
    }

    /// What a Compare that failed and is to check tags (PRCHK) has yet to check: those of the blocks that are stored (NVM §3.2.1).
    pub fn look(&self, command: &Submission) -> Option<Step> {
        if self.opcode != Opcode::Compare || !self.guarded.is_some_and(|guarded| guarded.checks()) {
            return None;
        }
        let read = Submission::over_blocks(Opcode::Read, command.namespace(), command.slba(), command.block_count());
        let tags = [command.dword(14), command.dword(15)];
        Some(Step::guarded(self, read, information(command), tags).expect("the Compare said the same"))
    }
}

impl Step {
    /// A Read or Write for the sake of a command that was let pass, with PRINFO in its place and the two dwords of its tags.
    pub(crate) fn guarded(
        of: &Admission,
        submission: Submission,
        information: u32,
        tags: [u32; 2],
    ) -> Result<Step, Status> {
        let submission = submission.with_dword(12, submission.dword(12) | information);
        let submission = submission.with_dword(14, tags[0]).with_dword(15, tags[1]);
        let submission = submission.with_pointer(DataPointer::default());
        let guarded = Guarded::of(&submission, of.format.ok_or(Status::INVALID_FIELD)?)?;
        let bytes = Bytes(guarded.data_bytes() as u64);
        let reads = submission.opcode() == Opcode::Read as u8;
        let (opcode, movement) =
            if reads { (Opcode::Read, Movement::ToHost(bytes)) } else { (Opcode::Write, Movement::FromHost(bytes)) };
        let admission = Admission { opcode, movement, guarded: Some(guarded), copies: false, ..*of };
        Ok(Step { submission, admission })
    }
}

impl Stretch {
    /// The next part; `None` when all are done.
    pub fn step(&self) -> Option<Step> {
        let (command, format) = (&self.command, self.admission.format?);
        let blocks = (command.block_count() - self.done).min(self.part);
        if blocks == 0 {
            return None;
        }
        let slba = command.slba() + u64::from(self.done);
        let goes_up = matches!(format.protection, Protection::Type1 | Protection::Type2);
        let reference = command.dword(14).wrapping_add(if goes_up { self.done } else { 0 });
        let submission = command.with_dword(10, slba as u32).with_dword(11, (slba >> 32) as u32);
        let submission = submission.with_dword(12, command.dword(12) & !0xffff | (blocks - 1));
        let submission = submission.with_dword(14, reference);
        let guarded = Guarded::where_any(&submission, format).expect("the whole was looked at");
        let reach = Bytes(u64::from(blocks) * u64::from(format.block_bytes));
        Some(Step { submission, admission: Admission { guarded, reach, part_blocks: None, ..self.admission } })
    }

    /// The part that was next is done.
    pub fn advance(&mut self) {
        self.done += (self.command.block_count() - self.done).min(self.part);
    }
}

/// What is left of a Dataset Management, in ranges of the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deallocation {
    command: Submission,
    admission: Admission,
    /// From the back.
    ranges: Vec<DsmRange>,
    /// Bytes of a block of the drive.
    block_bytes: u64,
}

impl Controller {
    /// The parts of a Dataset Management with its ranges as the drive is to see them, where it is not given all at once.
    pub fn deallocation(&self, command: &Submission, admission: &Admission, words: &[u64]) -> Option<Deallocation> {
        if admission.opcode != Opcode::DatasetManagement {
            return None;
        }
        let ranges = words.chunks_exact(DsmRange::WORDS).map(|words| DsmRange::decode([words[0], words[1]]));
        let ranges: Vec<DsmRange> = ranges.rev().collect();
        let block_bytes = self.settings().namespaces.first()?.block_bytes.into();
        let is_long = ranges.len() > DSM_RANGES_MAX || admission.reach.0 > RANGE_BYTES_MAX;
        is_long.then_some(Deallocation { command: *command, admission: *admission, ranges, block_bytes })
    }
}

impl Deallocation {
    /// Takes the next part, with the words of its ranges; `None` when there is none left.
    pub fn take_step(&mut self) -> Option<(Step, Vec<u64>)> {
        let (mut words, mut left) = (Vec::new(), RANGE_BYTES_MAX / self.block_bytes);
        while let Some(range) = self.ranges.last_mut().filter(|range| left > 0 || range.blocks == 0) {
            if words.len() == DSM_RANGES_MAX * DsmRange::WORDS {
                break;
            }
            let blocks = u64::from(range.blocks).min(left) as u32;
            words.extend_from_slice(&DsmRange { blocks, ..*range }.encode());
            left -= u64::from(blocks);
            (range.slba, range.blocks) = (range.slba + u64::from(blocks), range.blocks - blocks);
            if range.blocks == 0 {
                self.ranges.pop();
            }
        }
        if words.is_empty() {
            return None;
        }
        let reach = Bytes(RANGE_BYTES_MAX - left * self.block_bytes);
        let movement = Movement::FromHost(Bytes(words.len() as u64 * 8));
        Some((Step { submission: self.command, admission: Admission { reach, movement, ..self.admission } }, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::tests::ready_with;
    use crate::namespaces::{Change, Namespaces};
    use crate::settings::tests::example;
    use crate::{ControllerSettings, Format};
    use std::sync::Arc;

    /// A controller whose namespace has blocks of this format, of a drive with blocks of 512 B.
    fn controller(format: Format) -> Controller {
        let settings = ControllerSettings { metadata: true, managed_namespaces: 4, ..example() };
        let mut controller = ready_with(settings);
        let mut all = Namespaces::clone(controller.namespaces());
        all.begin_change(1, Change::Formatted(format)).unwrap();
        all.on_erased(1, true);
        controller.set_namespaces(&Arc::new(all));
        controller
    }

    fn plain(block_bytes: u32) -> Format {
        Format { block_bytes, metadata: false, protection: Protection::None }
    }

    fn steps(controller: &Controller, command: &Submission) -> Vec<(u64, u32, Option<u32>)> {
        let admission = controller.admit(command).expect("it is let pass");
        let Some(mut stretch) = admission.stretch(command) else { return Vec::new() };
        assert_eq!(admission.guarded, None, "its steps say that");
        let mut told = Vec::new();
        while let Some(Step { submission, admission }) = stretch.step() {
            let entry = controller.translate(&submission, &admission).expect("the namespace is as it was");
            assert_eq!(entry.opcode(), admission.carried() as u8);
            let reference = admission.guarded.map(|_| submission.dword(14));
            told.push((submission.slba(), submission.block_count(), reference));
            stretch.advance();
        }
        told
    }

    /// ONCS says that what goes beyond WZSL, VSL and WUSL may take longer, not that it fails (NVM §3.2.5, §3.2.7, §3.2.8).
    #[test]
    fn what_is_long_goes_to_the_drive_in_parts() {
        let large = controller(plain(4096));
        for opcode in [Opcode::WriteZeroes, Opcode::Verify, Opcode::WriteUncorrectable] {
            let over = |blocks| steps(&large, &Submission::over_blocks(opcode, 1, 100, blocks));
            assert!(over(8192).is_empty(), "32 MiB");
            assert_eq!(over(8193), [(100, 8192, None), (8292, 1, None)]);
            assert_eq!(over(65_536).len(), 8);
        }
        let short = controller(plain(512));
        assert!(steps(&short, &Submission::write_zeroes(1, 0, 65_536)).is_empty(), "no tag of it moves");
    }

    #[test]
    fn blocks_whose_tags_move_go_by_transfers_and_references_go_up() {
        let prinfo = |opcode, bits: u32| {
            let command = Submission::over_blocks(opcode, 1, 10, 1025);
            command.with_dword(12, command.dword(12) | bits << 26).with_dword(14, 10)
        };
        for (protection, second) in [(Protection::Type1, 1034), (Protection::Type2, 1034), (Protection::Type3, 10)] {
            let guarded = controller(Format { block_bytes: 512, metadata: true, protection });
            let parts = [(10, 1024, Some(10)), (1034, 1, Some(second))];
            // PRACT makes tags of zeroes, and PRCHK has them read: the guard's, which type 3 has as well.
            assert_eq!(steps(&guarded, &prinfo(Opcode::WriteZeroes, 8)), parts, "{protection:?}");
            assert_eq!(steps(&guarded, &prinfo(Opcode::Verify, 4)), parts, "{protection:?}");
            for opcode in [Opcode::WriteZeroes, Opcode::Verify] {
                assert!(steps(&guarded, &prinfo(opcode, 0)).is_empty(), "{protection:?}: nothing of it moves");
            }
        }
    }

    #[test]
    fn ranges_go_to_the_drive_as_many_at_once_as_it_should_have_to_do() {
        let whole = controller(plain(512));
        let parts = |ranges: &[(u32, u64)]| {
            let trim = Submission::dataset_management(1, ranges.len() as u32, DataPointer::default());
            let mut admission = whole.admit(&trim).expect("it is let pass");
            let range = |&(blocks, slba): &(u32, u64)| DsmRange { attributes: 0, blocks, slba }.encode();
            let mut words: Vec<u64> = ranges.iter().flat_map(range).collect();
            admission.reach = whole.reach_of_ranges(&trim, &admission, &words);
            whole.translate_ranges(&trim, &mut admission, &mut words).expect("within the namespace");
            let mut left = whole.deallocation(&trim, &admission, &words)?;
            let mut told = Vec::new();
            while let Some((step, words)) = left.take_step() {
                assert_eq!(step.admission.bytes(), words.len() * 8);
                let ranges = words.chunks_exact(2).map(|words| DsmRange::decode([words[0], words[1]]));
                told.push(ranges.map(|range| (range.blocks, range.slba)).collect::<Vec<_>>());
            }
            Some(told)
        };
        assert_eq!(parts(&[(65_000, 0), (536, 7)]), None, "32 MiB");
        let cut = vec![vec![(65_000, 0), (536, 7)], vec![(1, 543), (0, 9), (65_535, 100_000)], vec![(1, 165_535)]];
        assert_eq!(parts(&[(65_000, 0), (537, 7), (0, 9), (65_536, 100_000)]), Some(cut));
    }
}
