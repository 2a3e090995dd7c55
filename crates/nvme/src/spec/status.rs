//! How a command went: the status field of a completion.

use std::fmt;

/// The 15 bits above the phase tag (Base §3.3.3.2.1): status code 7:0, its type 10:8, retry delay 12:11, more 13 and do
/// not retry 14.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u16);

const MORE: u16 = 1 << 13;
const DO_NOT_RETRY: u16 = 1 << 14;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $class:literal / $code:literal $(| $retry:ident)?, $text:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Status = Status($class << 8 | $code $(| $retry)?);)*

            const NAMES: &'static [(Status, &'static str)] = &[$((Status::$name, $text),)*];
        }
    };
}

// Type 0 is generic, 1 command specific, 2 media and data integrity. What the host would only repeat is not to be
// retried.
statuses! {
    /// Base §3.3.3.2.1, generic 00h.
    SUCCESS = 0x0 / 0x00, "success";
    /// Base §3.3.3.2.1, generic 01h.
    INVALID_OPCODE = 0x0 / 0x01 | DO_NOT_RETRY, "invalid opcode";
    /// Base §3.3.3.2.1, generic 02h.
    INVALID_FIELD = 0x0 / 0x02 | DO_NOT_RETRY, "invalid field";
    /// Base §3.3.3.2.1, generic 03h.
    COMMAND_ID_CONFLICT = 0x0 / 0x03 | DO_NOT_RETRY, "command identifier in use";
    /// Base §3.3.3.2.1, generic 04h.
    DATA_TRANSFER_ERROR = 0x0 / 0x04, "data transfer error";
    /// Base §3.3.3.2.1, generic 05h.
    ABORTED_POWER_LOSS = 0x0 / 0x05, "aborted by a power loss notification";
    /// Base §3.3.3.2.1, generic 06h.
    INTERNAL = 0x0 / 0x06, "internal error";
    /// Base §3.3.3.2.1, generic 07h.
    ABORT_REQUESTED = 0x0 / 0x07 | DO_NOT_RETRY, "aborted by request";
    /// Base §3.3.3.2.1, generic 08h.
    ABORTED_QUEUE_DELETION = 0x0 / 0x08 | DO_NOT_RETRY, "aborted by queue deletion";
    /// Base §3.3.3.2.1, generic 09h.
    ABORTED_FAILED_FUSED = 0x0 / 0x09, "aborted, the other fused command failed";
    /// Base §3.3.3.2.1, generic 0Ah.
    ABORTED_MISSING_FUSED = 0x0 / 0x0a, "aborted, the other fused command is missing";
    /// Base §3.3.3.2.1, generic 0Bh.
    INVALID_NAMESPACE = 0x0 / 0x0b | DO_NOT_RETRY, "invalid namespace or format";
    /// Base §3.3.3.2.1, generic 0Ch.
    COMMAND_SEQUENCE_ERROR = 0x0 / 0x0c | DO_NOT_RETRY, "command sequence error";
    /// Base §3.3.3.2.1, generic 0Dh.
    SGL_SEGMENT_INVALID = 0x0 / 0x0d | DO_NOT_RETRY, "SGL segment descriptor invalid";
    /// Base §3.3.3.2.1, generic 0Eh.
    SGL_COUNT_INVALID = 0x0 / 0x0e | DO_NOT_RETRY, "number of SGL descriptors invalid";
    /// Base §3.3.3.2.1, generic 0Fh.
    SGL_LENGTH_INVALID = 0x0 / 0x0f | DO_NOT_RETRY, "SGL length invalid";
    /// Base §3.3.3.2.1, generic 10h.
    METADATA_SGL_LENGTH_INVALID = 0x0 / 0x10 | DO_NOT_RETRY, "metadata SGL length invalid";
    /// Base §3.3.3.2.1, generic 11h.
    SGL_TYPE_INVALID = 0x0 / 0x11 | DO_NOT_RETRY, "SGL descriptor type invalid";
    /// Base §3.3.3.2.1, generic 13h.
    PRP_OFFSET_INVALID = 0x0 / 0x13 | DO_NOT_RETRY, "PRP offset invalid";
    /// Base §3.3.3.2.1, generic 14h.
    ATOMIC_WRITE_UNIT_EXCEEDED = 0x0 / 0x14 | DO_NOT_RETRY, "atomic write unit exceeded";
    /// Base §3.3.3.2.1, generic 16h.
    SGL_OFFSET_INVALID = 0x0 / 0x16 | DO_NOT_RETRY, "SGL offset invalid";
    /// Base §3.3.3.2.1, generic 19h.
    KEEP_ALIVE_EXPIRED = 0x0 / 0x19 | DO_NOT_RETRY, "keep alive timer expired";
    /// Base §3.3.3.2.1, generic 22h.
    TRANSIENT_TRANSPORT_ERROR = 0x0 / 0x22, "transient transport error";
    /// NVM §3.1.1, generic 80h.
    LBA_OUT_OF_RANGE = 0x0 / 0x80 | DO_NOT_RETRY, "LBA out of range";
    /// NVM §3.1.1, generic 81h.
    CAPACITY_EXCEEDED = 0x0 / 0x81 | DO_NOT_RETRY, "capacity exceeded";
    /// Base §3.3.3.2.1, generic 82h.
    NAMESPACE_NOT_READY = 0x0 / 0x82, "namespace not ready";
    /// Base §3.3.3.2.1, generic 84h.
    FORMAT_IN_PROGRESS = 0x0 / 0x84, "format in progress";
    /// Base §5.5, command specific 00h.
    COMPLETION_QUEUE_INVALID = 0x1 / 0x00 | DO_NOT_RETRY, "completion queue invalid";
    /// Base §5.4 to §5.7, command specific 01h.
    INVALID_QUEUE_ID = 0x1 / 0x01 | DO_NOT_RETRY, "invalid queue identifier";
    /// Base §5.4 and §5.5, command specific 02h.
    INVALID_QUEUE_SIZE = 0x1 / 0x02 | DO_NOT_RETRY, "invalid queue size";
    /// Base §5.1, command specific 03h.
    ABORT_LIMIT_EXCEEDED = 0x1 / 0x03 | DO_NOT_RETRY, "abort command limit exceeded";
    /// Base §5.2, command specific 05h.
    EVENT_REQUEST_LIMIT_EXCEEDED = 0x1 / 0x05 | DO_NOT_RETRY, "asynchronous event request limit exceeded";
    /// Base §5.4, command specific 08h.
    INVALID_INTERRUPT_VECTOR = 0x1 / 0x08 | DO_NOT_RETRY, "invalid interrupt vector";
    /// Base §5.16, command specific 09h.
    INVALID_LOG_PAGE = 0x1 / 0x09 | DO_NOT_RETRY, "invalid log page";
    /// Base §5.6, command specific 0Ch.
    INVALID_QUEUE_DELETION = 0x1 / 0x0c | DO_NOT_RETRY, "invalid queue deletion";
    /// Base §5.27, command specific 0Dh.
    FEATURE_NOT_SAVEABLE = 0x1 / 0x0d | DO_NOT_RETRY, "feature not saveable";
    /// Base §5.27, command specific 0Eh.
    FEATURE_NOT_CHANGEABLE = 0x1 / 0x0e | DO_NOT_RETRY, "feature not changeable";
    /// Base §5.27, command specific 0Fh.
    FEATURE_NOT_NAMESPACE_SPECIFIC = 0x1 / 0x0f | DO_NOT_RETRY, "feature not namespace specific";
    /// Base §5.14, command specific 0Ah.
    INVALID_FORMAT = 0x1 / 0x0a | DO_NOT_RETRY, "invalid format";
    /// Base §5.23, command specific 15h.
    INSUFFICIENT_CAPACITY = 0x1 / 0x15 | DO_NOT_RETRY, "namespace insufficient capacity";
    /// Base §5.23, command specific 16h.
    NAMESPACE_ID_UNAVAILABLE = 0x1 / 0x16 | DO_NOT_RETRY, "namespace identifier unavailable";
    /// Base §5.22, command specific 18h.
    NAMESPACE_ALREADY_ATTACHED = 0x1 / 0x18 | DO_NOT_RETRY, "namespace already attached";
    /// Base §5.22, command specific 1Ah.
    NAMESPACE_NOT_ATTACHED = 0x1 / 0x1a | DO_NOT_RETRY, "namespace not attached";
    /// Base §5.23, command specific 1Bh.
    THIN_PROVISIONING_NOT_SUPPORTED = 0x1 / 0x1b | DO_NOT_RETRY, "thin provisioning not supported";
    /// Base §5.22, command specific 1Ch.
    CONTROLLER_LIST_INVALID = 0x1 / 0x1c | DO_NOT_RETRY, "controller list invalid";
    /// Base §5.9, command specific 1Dh.
    SELF_TEST_IN_PROGRESS = 0x1 / 0x1d, "device self-test in progress";
    /// Base §5.23, command specific 29h.
    COMMAND_SET_NOT_SUPPORTED = 0x1 / 0x29 | DO_NOT_RETRY, "I/O command set not supported";
    /// NVM §3.1.2, command specific 80h.
    CONFLICTING_ATTRIBUTES = 0x1 / 0x80 | DO_NOT_RETRY, "conflicting attributes";
    /// NVM §3.1.2, command specific 81h.
    INVALID_PROTECTION_INFORMATION = 0x1 / 0x81 | DO_NOT_RETRY, "invalid protection information";
    /// NVM §3.1.2, command specific 83h.
    COMMAND_SIZE_LIMIT_EXCEEDED = 0x1 / 0x83 | DO_NOT_RETRY, "command size limit exceeded";
    /// NVM §3.1.3, media 80h. A drive has it when it takes no more writes, so the next one would find the same.
    WRITE_FAULT = 0x2 / 0x80 | DO_NOT_RETRY, "write fault";
    /// NVM §3.1.3, media 81h.
    UNRECOVERED_READ = 0x2 / 0x81 | DO_NOT_RETRY, "unrecovered read error";
    /// NVM §3.1.3, media 82h.
    GUARD_CHECK_FAILED = 0x2 / 0x82 | DO_NOT_RETRY, "end-to-end guard check error";
    /// NVM §3.1.3, media 83h.
    APPLICATION_TAG_CHECK_FAILED = 0x2 / 0x83 | DO_NOT_RETRY, "end-to-end application tag check error";
    /// NVM §3.1.3, media 84h.
    REFERENCE_TAG_CHECK_FAILED = 0x2 / 0x84 | DO_NOT_RETRY, "end-to-end reference tag check error";
    /// NVM §3.1.3, media 85h.
    COMPARE_FAILURE = 0x2 / 0x85 | DO_NOT_RETRY, "compare failure";
    /// NVM §3.1.3, media 87h.
    DEALLOCATED_BLOCK = 0x2 / 0x87 | DO_NOT_RETRY, "deallocated or unwritten block";
}

impl Status {
    /// Whether the command did what it was asked to.
    #[inline]
    pub const fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }

    /// Whether another has the same type and code; the rest says whether to try again, and whether the error log has more.
    #[inline]
    pub const fn is_same(self, other: Self) -> bool {
        (self.0 ^ other.0) & 0x7ff == 0
    }

    /// The status code within its type.
    pub const fn code(self) -> u8 {
        self.0 as u8
    }

    /// The status code type: 0 generic, 1 command specific, 2 media, 3 path, 7 vendor.
    pub const fn code_type(self) -> u8 {
        (self.0 >> 8 & 7) as u8
    }

    /// Whether there is more about it in the error log.
    pub const fn has_more(self) -> bool {
        self.0 & MORE != 0
    }

    /// The same, with or without more in the error log.
    #[must_use]
    pub const fn with_more(self, more: bool) -> Self {
        Status(self.0 & !MORE | if more { MORE } else { 0 })
    }

    /// Whether the same command would fail again.
    pub const fn do_not_retry(self) -> bool {
        self.0 & DO_NOT_RETRY != 0
    }
}

impl fmt::Display for Status {
    /// The name where there is one, else type and code: `status 3/71h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Status::NAMES.iter().find(|(known, _)| known.is_same(*self)) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "status {}/{:02x}h", self.code_type(), self.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_share_a_code() {
        for (at, (status, name)) in Status::NAMES.iter().enumerate() {
            let same = |other: &&(Status, &str)| other.0.0 & 0x7ff == status.0 & 0x7ff || other.1 == *name;
            assert_eq!(Status::NAMES[..at].iter().find(same), None, "{name}");
        }
    }

    #[test]
    fn a_status_takes_itself_apart() {
        assert_eq!((Status::COMPARE_FAILURE.code_type(), Status::COMPARE_FAILURE.code()), (2, 0x85));
        assert!(Status::SUCCESS.is_success() && !Status::COMPLETION_QUEUE_INVALID.is_success());
        assert!(Status::INVALID_FIELD.do_not_retry() && !Status::INTERNAL.do_not_retry());
        assert_eq!(Status(0x371).to_string(), "status 3/71h");
        assert_eq!(Status::INVALID_FIELD.to_string(), "invalid field");
        // Bit 29 of dword 3, which is bit 13 above the phase.
        let more = Status::INVALID_FIELD.with_more(true);
        assert_eq!((more.0, more.has_more(), more.with_more(false)), (0x6002, true, Status::INVALID_FIELD));
    }
}
