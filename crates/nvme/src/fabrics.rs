//! The fabrics commands of a controller that Connect has made: its properties, and who its host is.

use crate::spec::fabrics::{FabricsCommand, INVALID_QUEUE_TYPE, Property, is_connect};
use crate::spec::registers;
use crate::spec::{Status, Submission};
use crate::{AdminReply, CommandError, Controller};
use units::QueueId;

/// The properties a host reads over a fabric, and their sizes (Base §3.1.3).
const READABLE: &[Property] = &[
    Property { offset: registers::CAP, bytes: 8 },
    Property { offset: registers::VS, bytes: 4 },
    Property { offset: registers::CC, bytes: 4 },
    Property { offset: registers::CSTS, bytes: 4 },
    Property { offset: registers::NSSR, bytes: 4 },
    Property { offset: registers::CRTO, bytes: 4 },
];

/// Those it writes.
const WRITABLE: [Property; 3] = [
    Property { offset: registers::CC, bytes: 4 },
    Property { offset: registers::CSTS, bytes: 4 },
    Property { offset: registers::NSSR, bytes: 4 },
];

impl Controller {
    /// Takes what a Connect of the admin queue brings: who the host is and how long it may be silent, in milliseconds.
    pub fn on_connected(&mut self, host_id: [u8; 16], keep_alive_ms: u32) {
        self.host_id = host_id;
        self.features.set_keep_alive(keep_alive_ms);
    }

    /// Answers a fabrics command of the admin queue; unlike admin commands also while the controller is disabled. A
    /// failure is in the error log, but for that of a Connect (Base 2.1).
    pub fn fabrics(&mut self, submission: &Submission) -> AdminReply {
        let answer = FabricsCommand::of(submission).and_then(|command| self.answer_fabrics(command));
        match answer {
            Ok(result) => AdminReply::Complete { result, status: Status::SUCCESS },
            Err(status) if is_connect(submission) => AdminReply::Complete { result: 0, status },
            Err(status) => {
                // Where others have their namespace stands which command it is.
                self.log_error(CommandError { namespace: 0, ..CommandError::of(QueueId(0), submission, status) });
                AdminReply::Complete { result: 0, status }
            }
        }
    }

    fn answer_fabrics(&mut self, command: FabricsCommand) -> Result<u64, Status> {
        match command {
            FabricsCommand::PropertyGet(property) if READABLE.contains(&property) => Ok(match property.bytes {
                8 => self.read_property_pair(property.offset),
                _ => self.read_property(property.offset).into(),
            }),
            FabricsCommand::PropertySet(property, value) if WRITABLE.contains(&property) => {
                self.write_property(property.offset, value as u32);
                Ok(0)
            }
            FabricsCommand::PropertyGet(_) | FabricsCommand::PropertySet(..) => Err(Status::INVALID_FIELD),
            // A queue is connected once.
            FabricsCommand::Connect(_) => Err(Status::COMMAND_SEQUENCE_ERROR),
            // The admin queue goes with its controller.
            FabricsCommand::Disconnect(_) => Err(INVALID_QUEUE_TYPE),
            // Who proves what to whom is the front end's business.
            FabricsCommand::AuthenticationSend(_) | FabricsCommand::AuthenticationReceive(_) => {
                Err(Status::INVALID_OPCODE)
            }
        }
    }
}
