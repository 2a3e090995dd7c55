//! Data of a command in the guest's memory: where its PRPs or its SGL say they are, and how they come and go.

use crate::guest::{GuestMemory, Unmapped};
use nvme::prp::{self, PrpPlan};
use nvme::sgl::{SglPiece, SglWalk};
use nvme::spec::{PAGE_BYTES, PointerKind, Status, Submission};
use std::ops::Range;
use units::{Bytes, HostAddress};

/// Where the data of a command are.
#[derive(Default)]
pub(crate) struct Place {
    plan: Option<PrpPlan>,
    list: Vec<u64>,
    /// All of it where there is no plan.
    pieces: Vec<SglPiece>,
}

impl Place {
    /// Reads the PRPs or the SGL of a command that moves `bytes`, with its list if it has one.
    ///
    /// # Errors
    /// What is wrong with them, or a list that cannot be read.
    pub(crate) fn find(
        &mut self,
        guest: &GuestMemory,
        submission: &Submission,
        bytes: u64,
        to_host: bool,
    ) -> Result<(), Status> {
        self.plan = None;
        self.list.clear();
        self.pieces.clear();
        if submission.pointer_kind()? != PointerKind::Prps {
            return self.follow(guest, [submission.0[3], submission.0[4]], bytes, to_host);
        }
        let plan = prp::plan(submission.prp1(), submission.prp2(), Bytes(bytes))?;
        if let Some(mut walk) = plan.walk() {
            let mut words = [0; (PAGE_BYTES / 8) as usize];
            while let Some(run) = walk.run() {
                let words = &mut words[..run.words];
                guest.load(run.at, words).map_err(|Unmapped| Status::DATA_TRANSFER_ERROR)?;
                self.list.extend_from_slice(walk.take(words)?);
            }
        }
        self.plan = Some(plan);
        Ok(())
    }

    /// Whether the pointer to a command's metadata is one, which is seen before any memory is looked at: to one piece it is dword
    /// aligned, to a descriptor qword aligned (MPTR, Base §3.3.3.1).
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check_metadata(submission: &Submission) -> Result<(), Status> {
        let (at, has_descriptor) = (submission.0[2], submission.pointer_kind()? == PointerKind::SglAndMetadataSgl);
        match has_descriptor {
            false if !at.is_multiple_of(4) => Err(Status::INVALID_FIELD),
            true if !at.is_multiple_of(8) => Err(Status::SGL_SEGMENT_INVALID),
            _ => Ok(()),
        }
    }

    /// Where the metadata of a command are: in one piece, or as a descriptor there says.
    ///
    /// # Errors
    /// As for [`Place::find`].
    pub(crate) fn of_metadata(
        guest: &GuestMemory,
        submission: &Submission,
        bytes: usize,
        to_host: bool,
    ) -> Result<Place, Status> {
        Place::check_metadata(submission)?;
        let (at, mut place) = (HostAddress(submission.0[2]), Place::default());
        if submission.pointer_kind()? != PointerKind::SglAndMetadataSgl {
            place.pieces.push(SglPiece { at: Some(at), bytes: Bytes(bytes as u64) });
            return Ok(place);
        }
        let mut descriptor = [0; 2];
        guest.load(at, &mut descriptor).map_err(|Unmapped| Status::DATA_TRANSFER_ERROR)?;
        match place.follow(guest, descriptor, bytes as u64, to_host) {
            Err(Status::SGL_LENGTH_INVALID) => Err(Status::METADATA_SGL_LENGTH_INVALID),
            outcome => outcome.map(|()| place),
        }
    }

    fn follow(&mut self, guest: &GuestMemory, descriptor: [u64; 2], bytes: u64, to_host: bool) -> Result<(), Status> {
        let mut walk = SglWalk::begin(descriptor, Bytes(bytes), to_host, &mut self.pieces)?;
        while let Some(run) = walk.run() {
            self.list.resize(run.words, 0);
            guest.load(run.at, &mut self.list).map_err(|Unmapped| Status::DATA_TRANSFER_ERROR)?;
            walk.take(&self.list, &mut self.pieces)?;
        }
        walk.end()
    }

    /// The pages where data lie that begin with a page: every page but the last is all of the transfer's. False where they lie
    /// otherwise.
    pub(crate) fn pages(&self, pages: &mut Vec<u64>) -> bool {
        pages.clear();
        let Some(plan) = &self.plan else { return false };
        let count = plan.bytes().0.div_ceil(PAGE_BYTES);
        for page in 0..count {
            let at = plan.resolve(Bytes(page * PAGE_BYTES), Bytes(1), |at| self.list[at]).first.at;
            if !at.0.is_multiple_of(PAGE_BYTES) {
                return false;
            }
            pages.push(at.0);
        }
        count > 0
    }

    /// Brings the data here.
    pub(crate) fn read(&self, guest: &GuestMemory, to: &mut [u8]) -> Result<(), Unmapped> {
        self.each(|at, range| guest.read(at, &mut to[range]))
    }

    /// Puts data there: what there is of them, from the beginning on.
    pub(crate) fn write(&self, guest: &GuestMemory, from: &[u8]) -> Result<(), Unmapped> {
        self.each(|at, range| {
            let piece = from.get(range.start..range.end.min(from.len())).unwrap_or_default();
            if piece.is_empty() { Ok(()) } else { guest.write(at, piece) }
        })
    }

    fn each(&self, mut each: impl FnMut(HostAddress, Range<usize>) -> Result<(), Unmapped>) -> Result<(), Unmapped> {
        let mut done = 0;
        for piece in &self.pieces {
            let end = done + piece.bytes.0 as usize;
            if let Some(at) = piece.at {
                each(at, done..end)?;
            }
            done = end;
        }
        let Some(plan) = self.plan.as_ref().filter(|plan| plan.bytes().0 > 0) else { return Ok(()) };
        let list = |at: usize| self.list[at];
        let mut done = 0;
        for piece in plan.resolve(Bytes(0), plan.bytes(), list).each(list) {
            let end = done + piece.bytes.0 as usize;
            each(piece.at, done..end)?;
            done = end;
        }
        Ok(())
    }
}
