//! Fused pairs on a connection: a Compare and the Write behind it go to the drive together, once the data of both are here.

use crate::session::{Admitted, Kind, Pending, Session, World};
use nvme::spec::{Fuse, Status, Submission};

/// What a command waits for beyond its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stand {
    /// Nothing.
    #[default]
    Free,
    /// It is half of a pair, its data are in its buffer, and the drive has not heard of it.
    Ready,
    /// It fails when its data have come: they were asked for.
    Doomed(Status),
    /// A reset came before its data, which still come: nobody waits for an answer.
    Forgotten,
}

/// Halves of pairs that the drive has not heard of.
#[derive(Debug, Default)]
pub(crate) struct Fused {
    /// The first half that came last, while its second has not come.
    first: Option<u16>,
    /// The command that came last was a first half, and has failed.
    has_failed: bool,
    /// First and second half, while data of one are missing.
    pairs: Vec<[u16; 2]>,
}

impl Session {
    /// Puts a command of an I/O queue together with the one before it, where one of them is half of a pair. `None` is that it
    /// goes on as it was admitted.
    pub(crate) fn fuse(
        &mut self,
        world: &mut World<'_>,
        tag: u16,
        submission: &Submission,
        admitted: &Admitted,
    ) -> Option<Status> {
        let has_failed = std::mem::take(&mut self.fused.has_failed);
        let Some(first) = self.fused.first.take() else {
            let status = if has_failed { Status::ABORTED_FAILED_FUSED } else { Status::ABORTED_MISSING_FUSED };
            return (submission.fuse() == Fuse::Second).then_some(status);
        };
        let half = self.pending[usize::from(first)].as_ref().expect("it waits for its second half").submission;
        let verdict = match nvme::fuse(&half, submission) {
            Ok(()) => match admitted {
                Ok(_) => {
                    self.fused.pairs.push([first, tag]);
                    return None;
                }
                Err(status) => (Status::ABORTED_FAILED_FUSED, Some(*status)),
            },
            Err(verdict) => verdict,
        };
        self.doom(world, first, verdict.0);
        verdict.1
    }

    /// A command was refused: where it is a first half, the next one is told of it.
    pub(crate) fn note_refused(&mut self, submission: &Submission) {
        self.fused.has_failed = submission.fuse() == Fuse::First;
    }

    /// A first half is in its slot: the next command says whether its second has come.
    pub(crate) fn expect_second(&mut self, tag: u16) {
        self.fused.first = Some(tag);
    }

    /// A command fails: at once, or when the data that were asked for are here.
    fn doom(&mut self, world: &mut World<'_>, tag: u16, status: Status) {
        let pending = self.pending[usize::from(tag)].as_mut().expect("it is not answered yet");
        if pending.gathered.is_some() {
            pending.stand = Stand::Doomed(status);
        } else {
            let submission = pending.submission;
            self.fail(world, tag, &submission, status);
        }
    }

    /// Some of a command's data were damaged, which ends no connection: the host sends the rest of what it was asked for, and then
    /// the command fails.
    pub(crate) fn spoil(&mut self, world: &mut World<'_>, tag: u16) {
        let pending = self.pending[usize::from(tag)].as_mut().expect("its data gather");
        if pending.stand == Stand::Free {
            pending.stand = Stand::Doomed(Status::TRANSIENT_TRANSPORT_ERROR);
            self.lose_half(world, tag);
        }
    }

    /// The data of half a pair are in its slot. The drive hears of it when those of the other half are, too.
    pub(crate) fn submit_fused(&mut self, world: &mut World<'_>, tag: u16) {
        let is_ready = |pending: &Option<Pending>| pending.as_ref().is_some_and(|half| half.stand == Stand::Ready);
        let Some(at) = self.fused.pairs.iter().position(|pair| pair.contains(&tag)) else { return };
        let pair = self.fused.pairs[at];
        if pair.iter().all(|half| is_ready(&self.pending[usize::from(*half)])) {
            let write = self.pending[usize::from(pair[1])].as_ref().expect("it is ready");
            let Kind::Io(admission) = write.kind else { unreachable!("half of a pair is an I/O command") };
            let submission = write.submission;
            if let Err(status) = world.subsystem.take_pair(admission.bytes()) {
                self.fail(world, pair[1], &submission, status);
                return self.lose_half(world, pair[1]);
            }
            self.fused.pairs.swap_remove(at);
            pair.into_iter().for_each(|half| self.submit(world, half));
        }
    }

    /// Half a pair fails for itself: so does the other.
    pub(crate) fn lose_half(&mut self, world: &mut World<'_>, tag: u16) {
        if self.fused.first == Some(tag) {
            (self.fused.first, self.fused.has_failed) = (None, true);
        }
        if let Some(at) = self.fused.pairs.iter().position(|pair| pair.contains(&tag)) {
            let [first, second] = self.fused.pairs.swap_remove(at);
            self.doom(world, if first == tag { second } else { first }, Status::ABORTED_FAILED_FUSED);
        }
    }
}

impl Pending {
    /// Whether it is an admin command of this identifier whose data are here.
    pub(crate) fn is_held(&self, command_id: u16) -> bool {
        self.kind == Kind::Admin && self.gathered.is_none() && self.submission.command_id() == command_id
    }

    /// Whether the drive has been asked for it.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.kind, Kind::Io(..)) && self.gathered.is_none() && self.stand == Stand::Free
    }
}
