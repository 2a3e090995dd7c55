//! Data of a command in the guest's memory: where its PRPs say they are, and how they come and go.

use crate::guest::{GuestMemory, Unmapped};
use nvme::prp::{self, PrpPlan};
use nvme::spec::{PAGE_BYTES, Status, Submission};
use std::ops::Range;
use units::{Bytes, HostAddress};

/// Where the data of a command are.
#[derive(Default)]
pub(crate) struct Place {
    plan: Option<PrpPlan>,
    list: Vec<u64>,
}

impl Place {
    /// Reads the PRPs of a command that moves `bytes`, and its list if it has one.
    ///
    /// # Errors
    /// An SGL, offsets that PRPs may not have, a list that cannot be read.
    pub(crate) fn find(&mut self, guest: &GuestMemory, submission: &Submission, bytes: u64) -> Result<(), Status> {
        self.plan = None;
        self.list.clear();
        if !submission.uses_prps() {
            return Err(Status::INVALID_FIELD);
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

    /// Brings the data here.
    pub(crate) fn read(&self, guest: &GuestMemory, to: &mut [u8]) -> Result<(), Unmapped> {
        self.each(|at, range| guest.read(at, &mut to[range]))
    }

    /// Puts data there.
    pub(crate) fn write(&self, guest: &GuestMemory, from: &[u8]) -> Result<(), Unmapped> {
        self.each(|at, range| guest.write(at, &from[range]))
    }

    fn each(&self, mut each: impl FnMut(HostAddress, Range<usize>) -> Result<(), Unmapped>) -> Result<(), Unmapped> {
        let Some(plan) = &self.plan else { return Ok(()) };
        let mut done = 0;
        while done < plan.bytes().0 {
            let bytes = PAGE_BYTES.min(plan.bytes().0 - done);
            let pieces = plan.resolve(Bytes(done), Bytes(bytes), &self.list);
            for piece in [Some(pieces.first), pieces.second].into_iter().flatten() {
                each(piece.at, done as usize..(done + piece.bytes.0) as usize)?;
                done += piece.bytes.0;
            }
        }
        Ok(())
    }
}
