//! What an I/O command asks a front end to move, and what is refused before the firmware sees it.

use crate::Controller;
use crate::spec::{ALL_NAMESPACES, DsmRange, Fuse, Opcode, Status, Submission};
use units::Bytes;

/// The bytes that go between host and drive for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// None.
    Nothing,
    /// From the host, so many.
    FromHost(Bytes),
    /// To the host, so many.
    ToHost(Bytes),
}

impl Controller {
    /// What a command of an I/O queue moves.
    ///
    /// # Errors
    /// The status it fails with: the controller is not ready, there is no such command or namespace, blocks lie outside,
    /// the transfer is longer than MDTS, or it is half of a fused pair, of which this controller has none.
    pub fn movement(&self, submission: &Submission) -> Result<(Opcode, Movement), Status> {
        if !self.is_ready() {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        let opcode = Opcode::try_from(submission.opcode()).map_err(|_| Status::INVALID_OPCODE)?;
        if !self.settings.commands.contains(&opcode) {
            return Err(Status::INVALID_OPCODE);
        }
        if submission.fuse() != Fuse::Normal {
            return Err(Status::INVALID_FIELD);
        }
        if opcode == Opcode::Flush && submission.namespace() == ALL_NAMESPACES {
            return Ok((opcode, Movement::Nothing));
        }
        let namespace = self.settings.namespace(submission.namespace()).ok_or(Status::INVALID_NAMESPACE)?;
        let moves_blocks = match opcode {
            Opcode::Flush => return Ok((opcode, Movement::Nothing)),
            Opcode::DatasetManagement => {
                let bytes = u64::from(submission.dsm_range_count()) * DsmRange::WORDS as u64 * 8;
                return Ok((opcode, Movement::FromHost(Bytes(bytes))));
            }
            Opcode::Copy => return Err(Status::INVALID_OPCODE),
            Opcode::Read | Opcode::Write | Opcode::Compare => true,
            Opcode::WriteUncorrectable | Opcode::WriteZeroes | Opcode::Verify => false,
        };
        let blocks = u64::from(submission.block_count());
        if submission.slba().checked_add(blocks).is_none_or(|end| end > namespace.blocks) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let bytes = Bytes(blocks * u64::from(namespace.block_bytes));
        if moves_blocks && self.settings.transfer_max.is_some_and(|most| bytes > most) {
            return Err(Status::INVALID_FIELD);
        }
        let movement = match opcode {
            Opcode::Read => Movement::ToHost(bytes),
            Opcode::Write | Opcode::Compare => Movement::FromHost(bytes),
            _ => Movement::Nothing,
        };
        Ok((opcode, movement))
    }
}
