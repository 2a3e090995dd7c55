//! The opcodes of the NVM command set and of the admin commands, each a list that the effects log is made from.

use super::{FeatureId, FeatureSelect, Submission, identify};
use thiserror::Error;

/// An opcode that its list does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("opcode {0:#04x} is not known")]
pub struct UnknownOpcode(pub u8);

macro_rules! opcodes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant = $code,)* }

        impl $name {
            /// Every opcode, in the order of its code.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
        }

        impl TryFrom<u8> for $name {
            type Error = UnknownOpcode;
            #[inline]
            fn try_from(code: u8) -> Result<Self, UnknownOpcode> {
                match code {
                    $($code => Ok($name::$variant),)*
                    _ => Err(UnknownOpcode(code)),
                }
            }
        }
    };
}

opcodes! {
    /// Commands of I/O queues (NVM §3.2, Base §7.1 for Flush).
    Opcode {
        /// Commit what was completed before to non-volatile media.
        Flush = 0x00,
        /// Host to media.
        Write = 0x01,
        /// Media to host.
        Read = 0x02,
        /// Make blocks unreadable until written again.
        WriteUncorrectable = 0x04,
        /// Compare media with host memory.
        Compare = 0x05,
        /// Blocks read as zero from now on; no data moves.
        WriteZeroes = 0x08,
        /// Hints over ranges of blocks, deallocation among them.
        DatasetManagement = 0x09,
        /// Check that blocks can be read; no data moves.
        Verify = 0x0c,
        /// Copy ranges of blocks within the drive.
        Copy = 0x19,
    }
}

opcodes! {
    /// Commands of the admin queue that this controller answers (Base §5).
    AdminOpcode {
        /// Base §5.7.
        DeleteSubmissionQueue = 0x00,
        /// Base §5.5.
        CreateSubmissionQueue = 0x01,
        /// Base §5.16.
        GetLogPage = 0x02,
        /// Base §5.6.
        DeleteCompletionQueue = 0x04,
        /// Base §5.4.
        CreateCompletionQueue = 0x05,
        /// Base §5.17.
        Identify = 0x06,
        /// Base §5.1.
        Abort = 0x08,
        /// Base §5.27.
        SetFeatures = 0x09,
        /// Base §5.15.
        GetFeatures = 0x0a,
        /// Base §5.2.
        AsynchronousEventRequest = 0x0c,
        /// Base §5.23.
        NamespaceManagement = 0x0d,
        /// Base §5.9.
        DeviceSelfTest = 0x14,
        /// Base §5.22.
        NamespaceAttachment = 0x15,
        /// Base §5.18.
        KeepAlive = 0x18,
        /// Base §5.8.
        DoorbellBufferConfig = 0x7c,
        /// Base §5.14.
        FormatNvm = 0x80,
    }
}

impl AdminOpcode {
    /// Bytes that the host brings with a command of the code; none with most.
    pub const fn brings(submission: &Submission) -> usize {
        // Select 0 is Create, or Attach; both have a structure. Detach, select 1, too.
        let select = submission.dword(10) & 0xf;
        match submission.opcode() {
            code if code == AdminOpcode::NamespaceManagement as u8 && select == 0 => 4096,
            code if code == AdminOpcode::NamespaceAttachment as u8 && select <= 1 => 4096,
            _ => 0,
        }
    }

    /// Whether the command has the drive work, or changes what namespaces there are.
    pub const fn changes_drive(self) -> bool {
        use AdminOpcode::*;
        matches!(self, NamespaceManagement | NamespaceAttachment | FormatNvm | DeviceSelfTest)
    }

    /// Bytes that the host asks for with a command of the code; none with most. It gets as many, zeroes after what there is.
    pub const fn asks_for(submission: &Submission) -> u64 {
        match submission.opcode() {
            code if code == AdminOpcode::Identify as u8 => identify::IDENTIFY_BYTES as u64,
            code if code == AdminOpcode::GetLogPage as u8 => submission.log_bytes(),
            // One feature is data, and not a value; what may be done to it is a value.
            code if code == AdminOpcode::GetFeatures as u8 => {
                let is_host = submission.dword(10) as u8 == FeatureId::HostIdentifier as u8;
                let is_value = matches!(FeatureSelect::of(submission), None | Some(FeatureSelect::Capabilities));
                // The short form, without EXHID, is not for fabrics: it is refused, whatever room it has.
                let is_extended = submission.dword(11) & 1 != 0;
                if is_host && is_extended && !is_value { 16 } else { 0 }
            }
            _ => 0,
        }
    }
}

impl Opcode {
    /// Whether the command has a first block and a number of blocks of its own (NVM §3.2).
    #[inline]
    pub const fn has_range(self) -> bool {
        !matches!(self, Opcode::Flush | Opcode::DatasetManagement | Opcode::Copy)
    }

    /// Whether the data that the command brings are ranges, and not blocks.
    #[inline]
    pub const fn brings_ranges(self) -> bool {
        matches!(self, Opcode::DatasetManagement | Opcode::Copy)
    }

    /// Whether the command may change what the media holds (effects log LBCC, Base §5.16.1.6).
    #[inline]
    pub const fn changes_media(self) -> bool {
        matches!(
            self,
            Opcode::Write | Opcode::WriteUncorrectable | Opcode::WriteZeroes | Opcode::DatasetManagement | Opcode::Copy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_comes_back_from_its_code_and_no_other_does() {
        let io = (0..=255u8).filter_map(|code| Opcode::try_from(code).ok()).collect::<Vec<_>>();
        assert_eq!(io, Opcode::ALL);
        let admin = (0..=255u8).filter_map(|code| AdminOpcode::try_from(code).ok()).collect::<Vec<_>>();
        assert_eq!(admin, AdminOpcode::ALL);
        assert_eq!(Opcode::try_from(0x03), Err(UnknownOpcode(0x03)));
        assert_eq!(Opcode::Copy as u8, 0x19);
    }
}
