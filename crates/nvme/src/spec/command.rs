//! The 64 bytes of a submission queue entry: what the device reads out of them, and how the host makes them.

use super::{Opcode, Status};
use units::HostAddress;

/// A submission queue entry (Base §3.3.3.1) as eight little-endian words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Submission(pub [u64; 8]);

const _: () = assert!(size_of::<Submission>() as u64 == super::SUBMISSION_BYTES);

/// Where a command's data lies in host memory: its two PRP entries (Base §4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DataPointer {
    /// The first page of the data, with the offset into it.
    pub prp1: HostAddress,
    /// The second page, or a list of the second page and those after it, or unused.
    pub prp2: HostAddress,
}

/// How a command says where its data and metadata lie (Base §3.3.3.1, PSDT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PointerKind {
    /// PRPs; metadata in one piece.
    Prps,
    /// An SGL; metadata in one piece.
    Sgl,
    /// An SGL, and one for the metadata where their pointer points.
    SglAndMetadataSgl,
}

/// Whether a command is one half of a fused pair (Base §3.3.3.1, command dword 0 bits 9:8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fuse {
    /// A command of its own.
    Normal,
    /// The first of a pair.
    First,
    /// The second of a pair.
    Second,
    /// The value the specification reserves.
    Reserved,
}

impl Fuse {
    /// By the first word of a submission queue entry.
    #[inline]
    pub const fn of(word: u64) -> Self {
        match word >> 8 & 3 {
            0 => Fuse::Normal,
            1 => Fuse::First,
            2 => Fuse::Second,
            _ => Fuse::Reserved,
        }
    }
}

const FORCE_UNIT_ACCESS: u32 = 1 << 30; // NVM §3.2.4, dword 12
const DEALLOCATE: u32 = 1 << 25; // NVM §3.2.8, dword 12 of Write Zeroes
const PASSES_MARKED: u32 = 1; // Dword 13 of Verify, which NVM §3.2.5 leaves free: between front end and drive
const DSM_DEALLOCATE: u32 = 1 << 2; // NVM §3.2.3, dword 11

/// What the device reads.
impl Submission {
    /// Dword `n` of the entry, 0 to 15.
    #[inline]
    pub const fn dword(&self, n: usize) -> u32 {
        (self.0[n / 2] >> (32 * (n % 2))) as u32
    }

    /// The code of the command; [`Opcode`] and [`super::AdminOpcode`] give it a name.
    #[inline]
    pub const fn opcode(&self) -> u8 {
        self.0[0] as u8
    }

    /// Which part of a fused pair this is.
    #[inline]
    pub const fn fuse(&self) -> Fuse {
        Fuse::of(self.0[0])
    }

    /// Whether the data pointer holds PRP entries and not an SGL (PSDT, dword 0 bits 15:14).
    #[inline]
    pub const fn uses_prps(&self) -> bool {
        self.0[0] >> 14 & 3 == 0
    }

    /// How the command says where its data and metadata lie (PSDT, dword 0 bits 15:14).
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] for the value that is reserved.
    pub const fn pointer_kind(&self) -> Result<PointerKind, Status> {
        match self.0[0] >> 14 & 3 {
            0 => Ok(PointerKind::Prps),
            1 => Ok(PointerKind::Sgl),
            2 => Ok(PointerKind::SglAndMetadataSgl),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// The name the host gave to this command among those outstanding in its queue.
    #[inline]
    pub const fn command_id(&self) -> u16 {
        (self.0[0] >> 16) as u16
    }

    /// The namespace the command is for.
    #[inline]
    pub const fn namespace(&self) -> u32 {
        (self.0[0] >> 32) as u32
    }

    /// PRP entry 1.
    #[inline]
    pub const fn prp1(&self) -> HostAddress {
        HostAddress(self.0[3])
    }

    /// PRP entry 2.
    #[inline]
    pub const fn prp2(&self) -> HostAddress {
        HostAddress(self.0[4])
    }

    /// The first logical block of an I/O command, in blocks of the namespace's format (dwords 10 and 11).
    #[inline]
    pub const fn slba(&self) -> u64 {
        self.0[5]
    }

    /// Logical blocks of a Read, Write, Compare, Write Zeroes, Write Uncorrectable or Verify: 1 to 65,536.
    #[inline]
    pub const fn block_count(&self) -> u32 {
        (self.dword(12) & 0xffff) + 1
    }

    /// Whether the data must be on non-volatile media before the completion.
    #[inline]
    pub const fn fua(&self) -> bool {
        self.dword(12) & FORCE_UNIT_ACCESS != 0
    }

    /// Whether a Verify passes over blocks that a host has marked by Write Uncorrectable: they are as they should be.
    #[inline]
    pub const fn passes_marked(&self) -> bool {
        self.dword(13) & PASSES_MARKED != 0
    }

    /// Ranges a Dataset Management command brings: 1 to 256.
    #[inline]
    pub const fn dsm_range_count(&self) -> u32 {
        (self.dword(10) & 0xff) + 1
    }

    /// Source ranges a Copy command brings: 1 to 256.
    #[inline]
    pub const fn copy_range_count(&self) -> u32 {
        (self.dword(12) & 0xff) + 1
    }

    /// How a Copy command describes its ranges (DESFMT); [`CopyRange`] is format 0.
    #[inline]
    pub const fn copy_format(&self) -> u32 {
        self.dword(12) >> 8 & 0xf
    }

    /// Whether a Dataset Management command deallocates its ranges; the other hints need no answer.
    #[inline]
    pub const fn dsm_deallocates(&self) -> bool {
        self.dword(11) & DSM_DEALLOCATE != 0
    }

    /// Whether the command may change what the media holds. Of a Dataset Management only the deallocate attribute does; its others are
    /// hints (NVM §3.2.3).
    #[inline]
    pub fn changes_media(&self) -> bool {
        match Opcode::try_from(self.opcode()) {
            Ok(Opcode::DatasetManagement) => self.dsm_deallocates(),
            Ok(opcode) => opcode.changes_media(),
            Err(_) => false,
        }
    }
}

/// What the host makes. The command identifier is put in last, by [`Submission::with_command_id`].
impl Submission {
    /// An entry with only its opcode and namespace set.
    #[inline]
    pub const fn new(opcode: u8, namespace: u32) -> Self {
        Submission([opcode as u64 | (namespace as u64) << 32, 0, 0, 0, 0, 0, 0, 0])
    }

    /// The same command under this identifier.
    #[inline]
    #[must_use]
    pub const fn with_command_id(mut self, id: u16) -> Self {
        self.0[0] = self.0[0] & !(0xffff << 16) | (id as u64) << 16;
        self
    }

    /// The same command with the dword `n`, 0 to 15, replaced.
    #[inline]
    #[must_use]
    pub const fn with_dword(mut self, n: usize, value: u32) -> Self {
        let shift = 32 * (n % 2);
        self.0[n / 2] = self.0[n / 2] & !(0xffff_ffff << shift) | (value as u64) << shift;
        self
    }

    /// The same command with its data at `data`.
    #[inline]
    #[must_use]
    pub const fn with_pointer(mut self, data: DataPointer) -> Self {
        self.0[3] = data.prp1.0;
        self.0[4] = data.prp2.0;
        self
    }

    /// The same command with its data where an SGL of this first descriptor says, in host memory.
    #[must_use]
    pub const fn with_descriptor(mut self, descriptor: [u64; 2]) -> Self {
        self.0[0] = self.0[0] & !(3 << 14) | 1 << 14;
        (self.0[3], self.0[4]) = (descriptor[0], descriptor[1]);
        self
    }

    /// The same command with its metadata where the descriptor at `at` says; its data are where an SGL says.
    #[must_use]
    pub const fn with_metadata_descriptor(mut self, at: HostAddress) -> Self {
        self.0[0] = self.0[0] & !(3 << 14) | 2 << 14;
        self.0[2] = at.0;
        self
    }

    /// The same command, its data durable before the completion.
    #[inline]
    #[must_use]
    pub const fn with_fua(self) -> Self {
        self.with_dword(12, self.dword(12) | FORCE_UNIT_ACCESS)
    }

    /// A command over `blocks` (1 to 65,536) logical blocks from `slba`, without data.
    #[inline]
    pub const fn over_blocks(opcode: Opcode, namespace: u32, slba: u64, blocks: u32) -> Self {
        assert!(blocks >= 1 && blocks <= 0x1_0000);
        let mut submission = Submission::new(opcode as u8, namespace).with_dword(12, blocks - 1);
        submission.0[5] = slba;
        submission
    }

    /// Read (NVM §3.2.4).
    #[inline]
    pub const fn read(namespace: u32, slba: u64, blocks: u32, data: DataPointer) -> Self {
        Submission::over_blocks(Opcode::Read, namespace, slba, blocks).with_pointer(data)
    }

    /// Write (NVM §3.2.6).
    #[inline]
    pub const fn write(namespace: u32, slba: u64, blocks: u32, data: DataPointer) -> Self {
        Submission::over_blocks(Opcode::Write, namespace, slba, blocks).with_pointer(data)
    }

    /// Compare (NVM §3.2.1).
    #[inline]
    pub const fn compare(namespace: u32, slba: u64, blocks: u32, data: DataPointer) -> Self {
        Submission::over_blocks(Opcode::Compare, namespace, slba, blocks).with_pointer(data)
    }

    /// Verify (NVM §3.2.5).
    #[inline]
    pub const fn verify(namespace: u32, slba: u64, blocks: u32) -> Self {
        Submission::over_blocks(Opcode::Verify, namespace, slba, blocks)
    }

    /// The same of the drive's own, which looks for faults: [`Submission::passes_marked`].
    #[inline]
    pub const fn verify_unmarked(namespace: u32, slba: u64, blocks: u32) -> Self {
        Submission::verify(namespace, slba, blocks).with_dword(13, PASSES_MARKED)
    }

    /// Write Zeroes (NVM §3.2.8), with leave to deallocate.
    #[inline]
    pub const fn write_zeroes(namespace: u32, slba: u64, blocks: u32) -> Self {
        let submission = Submission::over_blocks(Opcode::WriteZeroes, namespace, slba, blocks);
        submission.with_dword(12, submission.dword(12) | DEALLOCATE)
    }

    /// Write Uncorrectable (NVM §3.2.7).
    #[inline]
    pub const fn write_uncorrectable(namespace: u32, slba: u64, blocks: u32) -> Self {
        Submission::over_blocks(Opcode::WriteUncorrectable, namespace, slba, blocks)
    }

    /// Copy (NVM §3.2.2) of `ranges` (1 to 256) [`CopyRange`]s found at `data`, to the blocks from `slba` on.
    #[inline]
    pub const fn copy(namespace: u32, slba: u64, ranges: u32, data: DataPointer) -> Self {
        assert!(ranges >= 1 && ranges <= 256);
        let mut submission = Submission::new(Opcode::Copy as u8, namespace).with_dword(12, ranges - 1);
        submission.0[5] = slba;
        submission.with_pointer(data)
    }

    /// The same command as one half of a fused pair.
    #[inline]
    #[must_use]
    pub const fn with_fuse(mut self, fuse: Fuse) -> Self {
        let bits = match fuse {
            Fuse::Normal => 0,
            Fuse::First => 1,
            Fuse::Second => 2,
            Fuse::Reserved => 3,
        };
        self.0[0] = self.0[0] & !(3 << 8) | bits << 8;
        self
    }

    /// Flush (Base §7.1) of one namespace, or of [`super::ALL_NAMESPACES`].
    #[inline]
    pub const fn flush(namespace: u32) -> Self {
        Submission::new(Opcode::Flush as u8, namespace)
    }

    /// Dataset Management (NVM §3.2.3) that deallocates `ranges` (1 to 256) [`DsmRange`]s found at `data`.
    #[inline]
    pub const fn dataset_management(namespace: u32, ranges: u32, data: DataPointer) -> Self {
        assert!(ranges >= 1 && ranges <= 256);
        let submission = Submission::new(Opcode::DatasetManagement as u8, namespace);
        submission.with_dword(10, ranges - 1).with_dword(11, DSM_DEALLOCATE).with_pointer(data)
    }
}

/// One source range of a Copy command in descriptor format 0, 32 bytes (NVM §3.2.2). Fields of protection information stay zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CopyRange {
    /// The first logical block.
    pub slba: u64,
    /// Logical blocks: 1 to 65,536.
    pub blocks: u32,
}

impl CopyRange {
    /// Words of an encoded range.
    pub const WORDS: usize = 4;

    /// As it lies in host memory.
    pub const fn encode(self) -> [u64; CopyRange::WORDS] {
        assert!(self.blocks >= 1 && self.blocks <= 0x1_0000);
        [0, self.slba, self.blocks as u64 - 1, 0]
    }

    /// From host memory; every bit pattern is a range.
    pub const fn decode(words: [u64; CopyRange::WORDS]) -> Self {
        CopyRange { slba: words[1], blocks: (words[2] as u16) as u32 + 1 }
    }
}

/// One range of a Dataset Management command, 16 bytes (NVM §3.2.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DsmRange {
    /// Hints on how the range will be accessed.
    pub attributes: u32,
    /// Logical blocks; none is allowed.
    pub blocks: u32,
    /// The first logical block.
    pub slba: u64,
}

impl DsmRange {
    /// Words of an encoded range.
    pub const WORDS: usize = 2;

    /// As it lies in host memory.
    pub const fn encode(self) -> [u64; DsmRange::WORDS] {
        [self.attributes as u64 | (self.blocks as u64) << 32, self.slba]
    }

    /// From host memory; every bit pattern is a range.
    pub const fn decode(words: [u64; DsmRange::WORDS]) -> Self {
        DsmRange { attributes: words[0] as u32, blocks: (words[0] >> 32) as u32, slba: words[1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_write_says_what_it_was_made_from() {
        let data = DataPointer { prp1: HostAddress(0x1000), prp2: HostAddress(0x2000) };
        let write = Submission::write(7, u64::MAX - 1, 65_536, data).with_fua().with_command_id(0xbeef);
        assert_eq!(Opcode::try_from(write.opcode()), Ok(Opcode::Write));
        assert_eq!((write.namespace(), write.command_id(), write.fuse()), (7, 0xbeef, Fuse::Normal));
        assert_eq!((write.slba(), write.block_count(), write.fua()), (u64::MAX - 1, 65_536, true));
        assert_eq!((write.prp1(), write.prp2(), write.uses_prps()), (data.prp1, data.prp2, true));
    }

    /// The bytes of a Read of 8 blocks at LBA 0x123456789, laid out by hand from Base figure 87 and NVM §3.2.4.
    #[test]
    fn the_layout_is_the_specification_s() {
        let data = DataPointer { prp1: HostAddress(0xaaaa_b000), prp2: HostAddress(0) };
        let read = Submission::read(1, 0x1_2345_6789, 8, data).with_command_id(0x0102);
        let bytes = read.0.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        assert_eq!(bytes[..8], [0x02, 0, 0x02, 0x01, 1, 0, 0, 0]);
        assert_eq!(bytes[24..32], [0x00, 0xb0, 0xaa, 0xaa, 0, 0, 0, 0]);
        assert_eq!(bytes[40..50], [0x89, 0x67, 0x45, 0x23, 1, 0, 0, 0, 7, 0]);
    }

    /// Dwords of a Copy of 3 ranges to block 5, by hand from NVM §3.2.2; FUSE is bits 9:8 of dword 0 (Base figure 87).
    #[test]
    fn copies_and_fused_pairs_lie_where_the_specification_says() {
        let copy = Submission::copy(1, 5, 3, DataPointer::default());
        assert_eq!((copy.opcode(), copy.dword(10), copy.dword(11), copy.dword(12)), (0x19, 5, 0, 2));
        assert_eq!((copy.copy_range_count(), copy.copy_format()), (3, 0));
        let pair = [Fuse::First, Fuse::Second].map(|fuse| Submission::flush(1).with_fuse(fuse));
        assert_eq!(pair.map(|half| half.dword(0)), [0x100, 0x200]);
        assert_eq!(pair.map(|half| half.fuse()), [Fuse::First, Fuse::Second]);
    }

    #[test]
    fn dataset_management_counts_from_one() {
        let trim = Submission::dataset_management(1, 256, DataPointer::default());
        assert_eq!((trim.dsm_range_count(), trim.dsm_deallocates()), (256, true));
        assert!(trim.changes_media() && !trim.with_dword(11, 3).changes_media(), "the others are hints");
        assert_eq!(Submission::write_zeroes(1, 0, 1).dword(12), 1 << 25, "one block, which may be deallocated");
    }

    proptest! {
        #[test]
        fn replacing_a_dword_changes_no_other(words: [u64; 8], n in 0usize..16, value: u32) {
            let before = Submission(words);
            let after = before.with_dword(n, value);
            for other in 0..16 {
                prop_assert_eq!(after.dword(other), if other == n { value } else { before.dword(other) });
            }
        }

        #[test]
        fn source_ranges_come_back(slba: u64, blocks in 1u32..=0x1_0000) {
            let range = CopyRange { slba, blocks };
            prop_assert_eq!(CopyRange::decode(range.encode()), range);
        }

        #[test]
        fn ranges_come_back(words: [u64; 2]) {
            prop_assert_eq!(DsmRange::decode(words).encode(), words);
        }
    }
}
