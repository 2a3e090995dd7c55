//! The one SGL descriptor that a command over a message transport carries (Base §4.1.2).

use super::{Status, Submission};

/// Where the data of a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sgl {
    /// In the capsule, so many bytes from this offset on.
    InCapsule {
        /// From the end of the command.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// Moved by the transport on its own.
    Transport {
        /// How many bytes.
        bytes: u32,
    },
}

const DATA_BLOCK_OFFSET: u8 = 0x01;
const TRANSPORT_A: u8 = 0x5a;
const USES_SGL: u64 = 1 << 14;

impl Sgl {
    /// How many bytes there are.
    pub const fn bytes(self) -> u32 {
        match self {
            Sgl::InCapsule { bytes, .. } | Sgl::Transport { bytes } => bytes,
        }
    }
}

impl Submission {
    /// What the data pointer says, of a command that uses one.
    ///
    /// # Errors
    /// [`Status::SGL_TYPE_INVALID`] for a descriptor that message transports do not have.
    pub const fn sgl(&self) -> Result<Sgl, Status> {
        let bytes = self.0[4] as u32;
        match (self.0[4] >> 56) as u8 {
            DATA_BLOCK_OFFSET => Ok(Sgl::InCapsule { offset: self.0[3], bytes }),
            TRANSPORT_A => Ok(Sgl::Transport { bytes }),
            _ => Err(Status::SGL_TYPE_INVALID),
        }
    }

    /// The same command with its data in the capsule or moved by the transport.
    #[must_use]
    pub const fn with_sgl(mut self, sgl: Sgl) -> Self {
        let (offset, kind) = match sgl {
            Sgl::InCapsule { offset, .. } => (offset, DATA_BLOCK_OFFSET),
            Sgl::Transport { .. } => (0, TRANSPORT_A),
        };
        self.0[0] = self.0[0] & !(3 << 14) | USES_SGL;
        self.0[3] = offset;
        self.0[4] = sgl.bytes() as u64 | (kind as u64) << 56;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_back_and_others_are_refused() {
        for sgl in [Sgl::InCapsule { offset: 8, bytes: 4096 }, Sgl::Transport { bytes: u32::MAX }] {
            let submission = Submission::new(1, 1).with_sgl(sgl);
            assert_eq!((submission.sgl(), submission.uses_prps()), (Ok(sgl), false));
        }
        assert_eq!(Submission::new(1, 1).sgl(), Err(Status::SGL_TYPE_INVALID));
    }
}
