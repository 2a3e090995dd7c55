//! Messages about who a host is, as commands of a connection bring them. `auth` has what they say.

use crate::session::{Kind, Session, World};
use nvme::Movement;
use nvme::spec::dhchap;
use nvme::spec::fabrics::{Authentication, FabricsCommand};
use nvme::spec::{Status, Submission};

/// Longest message about who a host is, or room for one: a value of the largest group and two of the longest hash fit.
const PROOF_MAX: u32 = 8 << 10;

impl Session {
    /// The same for a command by which hosts prove who they are, if it is one and they have to.
    pub(crate) fn classify_proof(&self, submission: &Submission) -> Option<Result<(Kind, Movement), Status>> {
        self.dialogue.as_ref()?;
        let (kind, movement, message): (_, fn(units::Bytes) -> Movement, _) = match FabricsCommand::of(submission) {
            Ok(FabricsCommand::AuthenticationSend(message)) => (Kind::Prove, Movement::FromHost, message),
            Ok(FabricsCommand::AuthenticationReceive(message)) => {
                (Kind::Hear(message.bytes), Movement::ToHost, message)
            }
            _ => return None,
        };
        let Authentication { protocol, specific, bytes } = message;
        let is_known = protocol == dhchap::PROTOCOL && specific == dhchap::PROTOCOL_SPECIFIC;
        let is_sound = is_known && (1..=PROOF_MAX).contains(&bytes);
        Some(if is_sound { Ok((kind, movement(units::Bytes(bytes.into())))) } else { Err(Status::INVALID_FIELD) })
    }

    /// Gives the host what it is to hear about who it is. Where it failed, that is the last.
    pub(crate) fn hear(&mut self, world: &mut World<'_>, tag: u16, submission: &Submission, room: usize) {
        let dialogue = self.dialogue.as_mut().expect("it was classified as one");
        match dialogue.give(room) {
            Err(status) => self.fail(world, tag, submission, status),
            Ok(message) => {
                self.is_ending |= dialogue.has_failed();
                self.fill(submission.command_id(), room, &message);
                self.return_tag(tag);
                self.respond(submission.command_id(), 0, Status::SUCCESS);
            }
        }
    }
}
