//! What a command of a connection is, and whether it may be: before anything is done for it.

use super::{Admitted, Attached, Kind, Session, World};
use crate::port::{Gathered, RANGES_BYTES};
use nvme::Movement;
use nvme::spec::fabrics::{self, ConnectRecord, FabricsCommand};
use nvme::spec::{Fuse, PointerKind, Sgl, Status, Submission};
use std::ops::Range;

impl Session {
    /// What kind of command it is, and its data where it has any, with what of them is in its capsule.
    pub(super) fn admit(&self, world: &World<'_>, submission: &Submission, data: Range<usize>) -> Admitted {
        let (kind, movement) = self.classify(world, submission)?;
        check_pointer(submission)?;
        let guarded = match kind {
            Kind::Io(admission) => admission.guarded,
            _ => None,
        };
        let beside = guarded.map_or(0, |guarded| guarded.metadata_bytes() as u64);
        self.gathering(submission, data, (kind, movement), beside)
    }

    /// The same for a command whose movement is known; `beside` are the bytes of metadata that go with the data. An SGL is just as
    /// long as both: Identify announces no longer ones (SGLS bit 18; Base §4.1.2, figure 275).
    fn gathering(
        &self,
        submission: &Submission,
        data: Range<usize>,
        (kind, movement): (Kind, Movement),
        beside: u64,
    ) -> Admitted {
        match (movement, if movement == Movement::Nothing { None } else { Some(submission.sgl()?) }) {
            (Movement::Nothing, _) | (_, None) => Ok((kind, None)),
            (Movement::ToHost(bytes), Some(Sgl::Transport { bytes: room })) if u64::from(room) == bytes.0 + beside => {
                Ok((kind, None))
            }
            (Movement::ToHost(_), Some(Sgl::InCapsule { .. })) => Err(Status::SGL_TYPE_INVALID),
            (Movement::FromHost(bytes), Some(sgl)) if brings(kind, sgl, (bytes.0 + beside) as usize) => {
                let gathered = gathered(kind, sgl.bytes() as usize);
                let Sgl::InCapsule { offset, bytes } = sgl else { return Ok((kind, Some((gathered, 0..0)))) };
                let end = offset.checked_add(bytes.into()).filter(|end| *end <= data.len() as u64);
                let end = end.ok_or(Status::SGL_OFFSET_INVALID)?;
                Ok((kind, Some((gathered, data.start + offset as usize..data.start + end as usize))))
            }
            _ => Err(Status::SGL_LENGTH_INVALID),
        }
    }

    /// What kind of command it is, and what it moves.
    fn classify(&self, world: &World<'_>, submission: &Submission) -> Result<(Kind, Movement), Status> {
        let is_fabrics = submission.opcode() == fabrics::OPCODE;
        let live = world.subsystem.controllers.get(&self.joined.controller);
        match (&self.attached, live) {
            (Attached::Nothing, _) => match is_fabrics.then(|| FabricsCommand::of(submission)) {
                Some(Ok(FabricsCommand::Connect(_))) => {
                    Ok((Kind::Connect, Movement::FromHost(units::Bytes(ConnectRecord::BYTES as u64))))
                }
                Some(Err(status)) => Err(status),
                _ => Err(Status::COMMAND_SEQUENCE_ERROR),
            },
            (_, None) => Err(Status::COMMAND_SEQUENCE_ERROR),
            // Commands of fabrics are no halves of pairs (Base §3.3.3.1, FUSE).
            _ if is_fabrics && submission.fuse() != Fuse::Normal => Err(Status::INVALID_FIELD),
            _ if is_fabrics && let Some(kind) = self.classify_proof(submission) => kind,
            _ if !self.is_joined() => Err(fabrics::AUTHENTICATION_REQUIRED),
            (Attached::Unproved, Some(_)) => Err(fabrics::AUTHENTICATION_REQUIRED),
            // A queue is connected once.
            _ if fabrics::is_connect(submission) => Err(Status::COMMAND_SEQUENCE_ERROR),
            (Attached::Admin, Some(live)) => {
                if !is_fabrics {
                    live.controller.recognize(submission)?;
                }
                Ok((Kind::Admin, Self::admin_movement(submission)))
            }
            (Attached::Io(_), Some(_)) if is_fabrics => match FabricsCommand::of(submission) {
                Ok(FabricsCommand::Disconnect(0)) => Ok((Kind::Disconnect, Movement::Nothing)),
                Ok(FabricsCommand::Disconnect(_)) => Err(fabrics::INCOMPATIBLE_FORMAT),
                Ok(_) => Err(Status::INVALID_OPCODE),
                Err(status) => Err(status),
            },
            (Attached::Io(_), Some(live)) => {
                let admission = live.controller.admit(submission)?;
                Ok((Kind::Io(admission), admission.movement))
            }
        }
    }
}

/// Commands over a fabric point by an SGL, whether they move data or not, and metadata lie among the data (Base §3.3.3.1, PSDT). In
/// those of fabrics the field is reserved.
fn check_pointer(submission: &Submission) -> Result<(), Status> {
    let is_fabrics = submission.opcode() == fabrics::OPCODE;
    if is_fabrics || submission.pointer_kind()? == PointerKind::Sgl { Ok(()) } else { Err(Status::INVALID_FIELD) }
}

/// Data of a command, none of which are here yet. Blocks alone go straight into its slot.
fn gathered(kind: Kind, bytes: usize) -> Gathered {
    match kind {
        Kind::Io(admission) if !admission.opcode.brings_ranges() && admission.guarded.is_none() => {
            Gathered::in_slot(bytes)
        }
        _ => Gathered::new(bytes),
    }
}

/// Whether an SGL has the data of a command that moves so many bytes: just as many, or for a list of ranges at most a whole
/// one, of which Linux sends all whatever it holds.
fn brings(kind: Kind, sgl: Sgl, bytes: usize) -> bool {
    let there = sgl.bytes() as usize;
    let is_list = matches!(kind, Kind::Io(admission) if admission.opcode.brings_ranges());
    there == bytes || (is_list && (bytes..=RANGES_BYTES).contains(&there))
}
