//! Metadata beside the blocks of a namespace, and protection information in it (NVM §5.3): 8 bytes a block with a guard over its
//! data, an application tag and a reference tag, checked and made where data come into the drive and leave it.
//!
//! The drive keeps the 8 bytes of a block as a word, its tag. Zero is what a block has that nobody has written: with protection
//! information that stands for all ones, which no check looks at.

use crate::namespaces::Format;
use crate::spec::{Opcode, Status, Submission};

/// Bytes of metadata that a block has, where it has any.
pub const METADATA_BYTES: usize = 8;

/// Whether metadata are protection information, and how its reference tag follows from the block (DPS bits 2:0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// They are not, or there are none.
    #[default]
    None,
    /// The reference tag is the low half of the block's number.
    Type1,
    /// It begins as the command says and goes up with the blocks.
    Type2,
    /// It is the host's.
    Type3,
}

impl Protection {
    /// By its number in Format NVM, Namespace Management and Identify.
    pub(crate) fn from_code(code: u32) -> Option<Protection> {
        [Protection::None, Protection::Type1, Protection::Type2, Protection::Type3].get(code as usize).copied()
    }

    /// Its number there.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// PRINFO of a command (NVM figure 11), dword 12.
pub(crate) const ACTION: u32 = 1 << 29;
const CHECK_GUARD: u32 = 1 << 28;
const CHECK_APPLICATION: u32 = 1 << 27;
const CHECK_REFERENCE: u32 = 1 << 26;
const CHECKS: u32 = CHECK_GUARD | CHECK_APPLICATION | CHECK_REFERENCE;

/// PRINFO of a command, in its place.
pub(crate) fn information(submission: &Submission) -> u32 {
    submission.dword(12) & (ACTION | CHECKS)
}

/// What a command of a namespace with metadata says of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    format: Format,
    slba: u64,
    blocks: u32,
    /// PRINFO in its place.
    checks: u32,
    application: u16,
    mask: u16,
    reference: u32,
}

/// A check that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which.
    pub status: Status,
    /// The block of the namespace that failed it first.
    pub block: u64,
}

impl Guarded {
    /// Of a Read, Write, Compare, Verify or Write Zeroes.
    ///
    /// # Errors
    /// A reference tag that is to be checked and cannot be: of a block with type 1 it is the block's number, of one with type 3 it is
    /// nobody's but the host's. A Verify that is to make or strip anything (NVM §3.2.5).
    pub(crate) fn of(submission: &Submission, format: Format) -> Result<Guarded, Status> {
        let protected = format.protection != Protection::None;
        let checks = if protected { information(submission) } else { 0 };
        let reference = submission.dword(14);
        let checks_reference = checks & CHECK_REFERENCE != 0;
        let acts = |on: fn(Opcode) -> bool| checks & ACTION != 0 && Opcode::try_from(submission.opcode()).is_ok_and(on);
        if acts(|opcode| opcode == Opcode::Verify) {
            return Err(Status::INVALID_FIELD);
        }
        let makes = acts(writes);
        let wrong = match format.protection {
            Protection::Type1 => (checks_reference || makes) && reference != submission.slba() as u32,
            // What is made anew is not checked, whatever PRCHK says (NVM §5.3.2.1).
            Protection::Type3 => checks_reference && !makes,
            Protection::None | Protection::Type2 => false,
        };
        if wrong {
            return Err(Status::INVALID_PROTECTION_INFORMATION);
        }
        let dword15 = submission.dword(15);
        let (application, mask) = (dword15 as u16, (dword15 >> 16) as u16);
        let (slba, blocks) = (submission.slba(), submission.block_count());
        Ok(Guarded { format, slba, blocks, checks, application, mask, reference })
    }

    /// The same of any command, where its blocks have metadata that it moves, makes or checks.
    pub(crate) fn where_any(submission: &Submission, format: Format) -> Result<Option<Guarded>, Status> {
        let guarded = || Guarded::of(submission, format);
        match Opcode::try_from(submission.opcode()) {
            _ if !format.metadata => Ok(None),
            Ok(Opcode::Read | Opcode::Write | Opcode::Compare) => guarded().map(Some),
            Ok(Opcode::Verify) => Ok(Some(guarded()?).filter(Guarded::checks)),
            Ok(Opcode::WriteZeroes) => Ok(Some(guarded()?).filter(Guarded::is_made_here)),
            _ => Ok(None),
        }
    }

    /// Whether the drive makes protection information of what comes, and takes it off what goes (PRACT).
    pub fn is_made_here(&self) -> bool {
        self.checks & ACTION != 0
    }

    /// Whether anything is to be compared with what is stored (PRCHK).
    pub fn checks(&self) -> bool {
        self.checks & CHECKS != 0
    }

    /// Bytes of metadata that go between host and drive.
    pub fn metadata_bytes(&self) -> usize {
        if self.is_made_here() { 0 } else { self.blocks as usize * METADATA_BYTES }
    }

    /// Bytes of data that go with them.
    pub fn data_bytes(&self) -> usize {
        self.blocks as usize * self.block_bytes()
    }

    fn block_bytes(&self) -> usize {
        self.format.block_bytes as usize
    }

    /// Tags of the sectors of 512 bytes that hold these data: a block's is that of its first sector. They are made, or taken from
    /// the metadata that came and checked.
    ///
    /// # Errors
    /// The check that failed first.
    pub fn accept(&self, data: &[u8], metadata: &[u8]) -> Result<Vec<u64>, Mismatch> {
        let sectors = self.block_bytes() / 512;
        let mut tags = vec![0; self.blocks as usize * sectors];
        for (at, block) in data.chunks_exact(self.block_bytes()).take(self.blocks as usize).enumerate() {
            let held = if self.is_made_here() {
                let reference = self.expected(at);
                Information { guard: guard(block), application: self.application, reference }.bytes()
            } else {
                let held = metadata[at * METADATA_BYTES..][..METADATA_BYTES].try_into().expect("as many as blocks");
                self.check(at, block, held)?;
                held
            };
            tags[at * sectors] = self.flip(u64::from_le_bytes(held));
        }
        Ok(tags)
    }

    /// The metadata of blocks by the tags of their sectors, checked; none where they stay in the drive.
    ///
    /// # Errors
    /// The check that failed first.
    pub fn release(&self, data: &[u8], tags: &[u64]) -> Result<Vec<u8>, Mismatch> {
        let mut metadata = Vec::with_capacity(self.metadata_bytes());
        let tags = tags.chunks_exact(self.block_bytes() / 512).map(|tags| tags[0]);
        for (at, (block, tag)) in data.chunks_exact(self.block_bytes()).zip(tags).enumerate() {
            let held = self.flip(tag).to_le_bytes();
            self.check(at, block, held)?;
            if !self.is_made_here() {
                metadata.extend_from_slice(&held);
            }
        }
        Ok(metadata)
    }

    /// Between the bytes of a block and the word that stands for them.
    fn flip(&self, word: u64) -> u64 {
        if self.format.protection == Protection::None { word } else { !word }
    }

    /// The reference tag that a block of the command is to have.
    fn expected(&self, at: usize) -> u32 {
        let goes_up = self.format.protection != Protection::Type3;
        self.reference.wrapping_add(if goes_up { at as u32 } else { 0 })
    }

    fn check(&self, at: usize, block: &[u8], held: [u8; METADATA_BYTES]) -> Result<(), Mismatch> {
        let wrong = |status| Err(Mismatch { status, block: self.slba + at as u64 });
        let held = Information::of(held);
        let checks = |what| self.checks & what != 0;
        // NVM §5.3.2.5: an application tag of all ones, with type 3 the reference tag as well, turns all checks off.
        let is_open =
            held.application == u16::MAX && (self.format.protection != Protection::Type3 || held.reference == u32::MAX);
        if is_open || !self.checks() {
            return Ok(());
        }
        if checks(CHECK_GUARD) && held.guard != guard(block) {
            return wrong(Status::GUARD_CHECK_FAILED);
        }
        if checks(CHECK_APPLICATION) && (held.application ^ self.application) & self.mask != 0 {
            return wrong(Status::APPLICATION_TAG_CHECK_FAILED);
        }
        if checks(CHECK_REFERENCE) && held.reference != self.expected(at) {
            return wrong(Status::REFERENCE_TAG_CHECK_FAILED);
        }
        Ok(())
    }
}

/// Whether a command stores protection information.
fn writes(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Write | Opcode::WriteZeroes)
}

/// The fields of 8 bytes of protection information, highest byte first (NVM figure 131).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information {
    /// CRC-16 over the data.
    pub guard: u16,
    /// The host's.
    pub application: u16,
    /// Where the block is, by its type.
    pub reference: u32,
}

impl Information {
    /// From its bytes.
    pub fn of(bytes: [u8; METADATA_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Information {
            guard: u16::from_be_bytes([a, b]),
            application: u16::from_be_bytes([c, d]),
            reference: u32::from_be_bytes([e, f, g, h]),
        }
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; METADATA_BYTES] {
        let word = u64::from(self.guard) << 48 | u64::from(self.application) << 32 | u64::from(self.reference);
        word.to_be_bytes()
    }
}

/// The polynomial of T10 DIF (SBC-3 §4.22.4), CRC-16 without reflection.
const POLYNOMIAL: u16 = 0x8bb7;

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 0x8000 != 0 { rest << 1 ^ POLYNOMIAL } else { rest << 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
};

/// The guard of a block's data.
pub fn guard(data: &[u8]) -> u16 {
    data.iter().fold(0, |crc: u16, byte| crc << 8 ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// Takes apart blocks with their metadata behind each, as they come where both are one (extended blocks).
pub fn split(extended: &[u8], block_bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut data, mut metadata) = (Vec::new(), Vec::new());
    for block in extended.chunks_exact(block_bytes + METADATA_BYTES) {
        data.extend_from_slice(&block[..block_bytes]);
        metadata.extend_from_slice(&block[block_bytes..]);
    }
    (data, metadata)
}

/// Puts metadata behind each block.
pub fn join(data: &[u8], metadata: &[u8], block_bytes: usize) -> Vec<u8> {
    let blocks = data.chunks_exact(block_bytes).zip(metadata.chunks_exact(METADATA_BYTES));
    blocks.flat_map(|(block, held)| [block, held].concat()).collect()
}

#[cfg(test)]
mod tests;
