//! Scatter gather lists: where in host memory the bytes of a transfer lie, piece by piece (Base §4.1.2).
//!
//! A list begins with the one descriptor of its command, which is a piece or names a segment of more of them; the last descriptor
//! of a segment may name another. Nothing here reads memory: the device fetches what [`SglWalk::run`] names and hands it back.
//! A list may be longer than its transfer; what lies beyond is not looked at.

use crate::prp::ListRun;
use crate::spec::Status;
use units::{Bytes, HostAddress};

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: u64 = 16;

/// Descriptors that are read for one transfer: descriptors may have no bytes, and segments may name each other in a circle.
pub const DESCRIPTORS_MAX: usize = 1024;

/// Descriptors fetched by one read.
const RUN_MAX: u64 = 64;

/// Part of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SglPiece {
    /// Where it lies; `None` is a bit bucket: those bytes go nowhere.
    pub at: Option<HostAddress>,
    /// How long it is; never zero.
    pub bytes: Bytes,
}

/// A descriptor, taken apart (Base figures 105 to 110).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Descriptor {
    Piece { at: HostAddress, bytes: u64 },
    Bucket { bytes: u64 },
    Segment { at: HostAddress, bytes: u64, is_last: bool },
}

impl Descriptor {
    fn of([at, rest]: [u64; 2]) -> Result<Descriptor, Status> {
        let (at, bytes) = (HostAddress(at), u64::from(rest as u32));
        // Type above, subtype below: an address, and no offset or transport's own.
        match rest >> 56 {
            0x00 => Ok(Descriptor::Piece { at, bytes }),
            0x10 => Ok(Descriptor::Bucket { bytes }),
            0x20 => Ok(Descriptor::Segment { at, bytes, is_last: false }),
            0x30 => Ok(Descriptor::Segment { at, bytes, is_last: true }),
            _ => Err(Status::SGL_TYPE_INVALID),
        }
    }
}

/// The way along the segments of a list: fetch [`SglWalk::run`], hand it to [`SglWalk::take`], until there is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SglWalk {
    /// The next descriptor, how many the segment has from there on, and whether it is the last segment.
    segment: Option<(HostAddress, u64, bool)>,
    missing: u64,
    taken: usize,
    to_host: bool,
}

impl SglWalk {
    /// Begins with the descriptor of a command that moves `bytes`, to the host or from it; pieces go to `pieces`.
    ///
    /// # Errors
    /// See [`SglWalk::take`].
    pub fn begin(
        descriptor: [u64; 2],
        bytes: Bytes,
        to_host: bool,
        pieces: &mut Vec<SglPiece>,
    ) -> Result<SglWalk, Status> {
        let mut walk = SglWalk { segment: None, missing: bytes.0, taken: 0, to_host };
        walk.add(Descriptor::of(descriptor)?, false, true, pieces)?;
        Ok(walk)
    }

    /// What to fetch next, two words a descriptor; `None` when every byte has its place, or the list is over.
    pub fn run(&self) -> Option<ListRun> {
        let (at, descriptors, _) = self.segment.filter(|_| self.missing > 0)?;
        Some(ListRun { at, words: 2 * descriptors.min(RUN_MAX) as usize })
    }

    /// Takes the words of [`SglWalk::run`], and adds the pieces that they name.
    ///
    /// # Errors
    /// [`Status::SGL_TYPE_INVALID`] for what is no descriptor that a bus has, [`Status::SGL_SEGMENT_INVALID`] for a segment that is
    /// misaligned, empty, not of whole descriptors, or follows the last; [`Status::SGL_COUNT_INVALID`] for a segment that is named
    /// before the end of another, or more than [`DESCRIPTORS_MAX`].
    pub fn take(&mut self, fetched: &[u64], pieces: &mut Vec<SglPiece>) -> Result<(), Status> {
        let run = self.run().expect("words of a list that is known already");
        assert_eq!(fetched.len(), run.words);
        let (at, descriptors, is_last) = self.segment.take().expect("a run is of a segment");
        let left = descriptors - run.words as u64 / 2;
        for (place, words) in (1..).zip(fetched.chunks_exact(2)) {
            if self.missing == 0 {
                return Ok(());
            }
            self.taken += 1;
            if self.taken > DESCRIPTORS_MAX {
                return Err(Status::SGL_COUNT_INVALID);
            }
            let ends = left == 0 && place == run.words / 2;
            self.add(Descriptor::of([words[0], words[1]])?, is_last, ends, pieces)?;
        }
        if left > 0 {
            self.segment = Some((HostAddress(at.0.wrapping_add(8 * run.words as u64)), left, is_last));
        }
        Ok(())
    }

    /// The list is over.
    ///
    /// # Errors
    /// [`Status::SGL_LENGTH_INVALID`] if it is shorter than its transfer.
    pub fn end(self) -> Result<(), Status> {
        if self.missing == 0 { Ok(()) } else { Err(Status::SGL_LENGTH_INVALID) }
    }

    fn add(
        &mut self,
        descriptor: Descriptor,
        in_last: bool,
        ends: bool,
        pieces: &mut Vec<SglPiece>,
    ) -> Result<(), Status> {
        let (at, bytes) = match descriptor {
            Descriptor::Piece { at, bytes } => (Some(at), bytes),
            // What comes from the host has all its bytes elsewhere (Base figure 107).
            Descriptor::Bucket { bytes } => (None, if self.to_host { bytes } else { 0 }),
            Descriptor::Segment { .. } if !ends => return Err(Status::SGL_COUNT_INVALID),
            Descriptor::Segment { at, bytes, is_last } => {
                let is_whole = bytes > 0 && bytes.is_multiple_of(DESCRIPTOR_BYTES) && at.0.is_multiple_of(8);
                if in_last || !is_whole {
                    return Err(Status::SGL_SEGMENT_INVALID);
                }
                self.segment = Some((at, bytes / DESCRIPTOR_BYTES, is_last));
                return Ok(());
            }
        };
        let bytes = bytes.min(self.missing);
        self.missing -= bytes;
        if bytes > 0 {
            pieces.push(SglPiece { at, bytes: Bytes(bytes) });
        }
        Ok(())
    }
}

/// The descriptor of a piece, as a host makes it.
pub const fn piece(at: HostAddress, bytes: u32) -> [u64; 2] {
    [at.0, bytes as u64]
}

/// The descriptor of bytes that the host does not want.
pub const fn bucket(bytes: u32) -> [u64; 2] {
    [0, bytes as u64 | 0x10 << 56]
}

/// The descriptor of a segment of so many others.
pub const fn segment(at: HostAddress, descriptors: u32, is_last: bool) -> [u64; 2] {
    let kind = if is_last { 0x30 } else { 0x20 };
    [at.0, descriptors as u64 * DESCRIPTOR_BYTES + (kind << 56)]
}

#[cfg(test)]
mod tests;
