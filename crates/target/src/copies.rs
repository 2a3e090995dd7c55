//! Copies that check or make protection information: the front end reads and writes a part at a time, in the slot of the command.

use crate::port::QueuePair;
use crate::session::World;
use nvme::spec::{Failure, Opcode, Status, Submission};
use nvme::{Admission, Controller, CopyStep, GuardedCopy};

/// A copy, and the step that the drive works on.
pub(crate) struct Copying {
    copy: GuardedCopy,
    step: CopyStep,
}

/// Ranges that came for a command.
pub(crate) enum Ranges {
    /// As the drive is to see them.
    Drive(Vec<u64>),
    /// Those of a copy that is made here.
    Copying(Box<Copying>),
}

impl Copying {
    /// What is to be done with the ranges that came for a command.
    ///
    /// # Errors
    /// The status it fails with.
    pub(crate) fn take_ranges(
        controller: &Controller,
        submission: &Submission,
        admission: &mut Admission,
        mut words: Vec<u64>,
    ) -> Result<Ranges, Status> {
        admission.reach = controller.reach_of_ranges(submission, admission, &words);
        if admission.copies {
            let copy = controller.guarded_copy(submission, admission, &words)?;
            let step = copy.read().expect("a copy has blocks");
            return Ok(Ranges::Copying(Box::new(Copying { copy, step })));
        }
        controller.translate_ranges(submission, admission, &mut words)?;
        Ok(Ranges::Drive(words))
    }

    /// What goes to the drive next for a command: itself, or the step that its copy is at.
    pub(crate) fn now(
        copying: &Option<Box<Copying>>,
        submission: Submission,
        admission: Admission,
    ) -> (Submission, Admission) {
        copying.as_ref().map_or((submission, admission), |copying| (copying.step.submission, copying.step.admission))
    }

    /// What is said of a command that failed: of a copy at the lowest range that is not copied whole.
    pub(crate) fn failed(copying: &Option<Box<Copying>>, failure: Failure) -> Failure {
        Failure { range: copying.as_ref().map_or(failure.range, |copying| copying.copy.range()), ..failure }
    }

    /// The drive has carried out the step: whether there is another, with its data in the slot.
    ///
    /// # Errors
    /// A check of protection information that failed.
    pub(crate) fn go_on(&mut self, world: &mut World<'_>, pair: &QueuePair, slot: u16) -> Result<bool, Status> {
        if self.step.admission.opcode == Opcode::Read {
            let (data, metadata) = world.get_guarded(pair, slot, &self.step.guarded)?;
            self.step = self.copy.write();
            world.port.put_guarded(pair, slot, &self.step.guarded, [&data, &metadata])?;
            return Ok(true);
        }
        self.copy.advance();
        Ok(self.copy.read().map(|step| self.step = step).is_some())
    }
}
