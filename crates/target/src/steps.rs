//! Commands that the front end gives the drive a step at a time, in the slot of the command: copies that check or make protection
//! information, what is longer than the drive is given at once, and a look at the tags of blocks that a Compare has found to differ.

use crate::guarded::Fault;
use crate::port::{Port, QueuePair};
use crate::session::World;
use nvme::spec::{Completion, Failure, Opcode, Status, Submission};
use nvme::{Admission, Controller, Deallocation, GuardedCopy, Step, Stretch};

/// What is left of a command, and the step that the drive works on.
pub(crate) struct Stepping {
    rest: Rest,
    step: Step,
}

enum Rest {
    Copy(GuardedCopy),
    Stretch(Stretch),
    Deallocation(Deallocation),
    /// Nothing: a Compare has failed, and says so where.
    Look(Failure),
}

/// How a command goes on when the drive is done with it, or with a step of it.
pub(crate) enum Next {
    /// With another step, whose data are in the slot. Whoever waited for the last one waits for it, too, where it `is_awaited`.
    Step {
        is_awaited: bool,
    },
    Over(Status, Failure),
}

impl Stepping {
    /// What is to be done at first for a command without data: what its steps are, if it has any, and zeros in the slot where it makes
    /// protection information for them.
    pub(crate) fn begin(
        port: &Port,
        (pair, slot): (&QueuePair, u16),
        submission: &Submission,
        admission: &Admission,
    ) -> Option<Box<Stepping>> {
        let stepping = admission.stretch(submission).map(|stretch| {
            let step = stretch.step().expect("it has blocks");
            Box::new(Stepping { rest: Rest::Stretch(stretch), step })
        });
        let (_, first) = Stepping::now(&stepping, *submission, *admission);
        port.put_zeros(pair, slot, &first);
        stepping
    }

    /// What is to be done with the ranges that came for a command: they go where the drive is to see them, or are its steps'.
    ///
    /// # Errors
    /// The status it fails with.
    pub(crate) fn take_ranges(
        (port, controller): (&Port, &Controller),
        (pair, slot): (&QueuePair, u16),
        submission: &Submission,
        admission: &mut Admission,
        mut words: Vec<u64>,
    ) -> Result<Option<Box<Stepping>>, Status> {
        admission.reach = controller.reach_of_ranges(submission, admission, &words);
        if admission.copies {
            let copy = controller.guarded_copy(submission, admission, &words)?;
            let step = copy.read().expect("a copy has blocks");
            return Ok(Some(Box::new(Stepping { rest: Rest::Copy(copy), step })));
        }
        controller.translate_ranges(submission, admission, &mut words)?;
        let Some(mut rest) = controller.deallocation(submission, admission, &words) else {
            port.put_ranges(pair, slot, &words);
            return Ok(None);
        };
        let (step, words) = rest.take_step().expect("it has ranges");
        port.put_ranges(pair, slot, &words);
        Ok(Some(Box::new(Stepping { rest: Rest::Deallocation(rest), step })))
    }

    /// What goes to the drive next for a command: itself, or the step that it is at.
    pub(crate) fn now(
        stepping: &Option<Box<Stepping>>,
        submission: Submission,
        admission: Admission,
    ) -> (Submission, Admission) {
        stepping
            .as_ref()
            .map_or((submission, admission), |stepping| (stepping.step.submission, stepping.step.admission))
    }

    /// What is said of a command that failed: of a copy at the lowest range that is not copied whole.
    pub(crate) fn failed(stepping: &Option<Box<Stepping>>, failure: Failure) -> Failure {
        let range = stepping.as_ref().and_then(|stepping| match &stepping.rest {
            Rest::Copy(copy) => Some(copy.range()),
            Rest::Stretch(_) | Rest::Deallocation(_) | Rest::Look(_) => None,
        });
        Failure { range: range.unwrap_or(failure.range), ..failure }
    }

    /// The drive is done with a command, or with the step that it was at.
    pub(crate) fn go_on(
        stepping: &mut Option<Box<Stepping>>,
        world: &mut World<'_>,
        (pair, slot): (&QueuePair, u16),
        (submission, admission): (&Submission, &Admission),
        completion: &Completion,
    ) -> Next {
        let (status, failure) = (completion.status(), Failure::decode(completion.result()));
        let failure = Stepping::failed(stepping, failure);
        match stepping {
            None if status == Status::COMPARE_FAILURE => {
                let Some(step) = admission.look(submission) else { return Next::Over(status, failure) };
                *stepping = Some(Box::new(Stepping { rest: Rest::Look(failure), step }));
                Next::Step { is_awaited: true }
            }
            Some(steps) if status.is_success() => match steps.advance(world, pair, slot) {
                // What is long would have whoever waits wait long: the rest of it comes after them.
                Ok(true) => Next::Step { is_awaited: matches!(steps.rest, Rest::Copy(_) | Rest::Look(_)) },
                Ok(false) => match steps.rest {
                    Rest::Look(differs) => Next::Over(Status::COMPARE_FAILURE, differs),
                    _ => Next::Over(status, failure),
                },
                Err(fault) => {
                    let found = world.subsystem.failure_at(submission.namespace(), fault.block);
                    Next::Over(fault.status, Stepping::failed(stepping, found))
                }
            },
            _ => Next::Over(status, failure),
        }
    }

    /// The drive has carried out the step: whether there is another, with its data in the slot.
    ///
    /// # Errors
    /// A check of protection information that failed.
    fn advance(&mut self, world: &mut World<'_>, pair: &QueuePair, slot: u16) -> Result<bool, Fault> {
        match &mut self.rest {
            Rest::Copy(copy) if self.step.admission.opcode == Opcode::Read => {
                let read = self.step.admission.guarded.expect("a copy that checks or makes tags");
                let (data, metadata) = world.get_guarded(pair, slot, &read)?;
                self.step = copy.write();
                let written = self.step.admission.guarded.expect("as what it reads");
                world.port.put_guarded(pair, slot, &written, [&data, &metadata])?;
                Ok(true)
            }
            Rest::Copy(copy) => {
                copy.advance();
                Ok(copy.read().map(|step| self.step = step).is_some())
            }
            Rest::Stretch(stretch) => {
                if let Some(guarded) = self.step.admission.checked() {
                    world.get_guarded(pair, slot, &guarded)?;
                }
                stretch.advance();
                let Some(step) = stretch.step() else { return Ok(false) };
                self.step = step;
                world.port.put_zeros(pair, slot, &step.admission);
                Ok(true)
            }
            Rest::Deallocation(rest) => {
                let Some((step, words)) = rest.take_step() else { return Ok(false) };
                self.step = step;
                world.port.put_ranges(pair, slot, &words);
                Ok(true)
            }
            Rest::Look(_) => {
                if let Some(guarded) = self.step.admission.guarded {
                    world.get_guarded(pair, slot, &guarded)?;
                }
                Ok(false)
            }
        }
    }
}
