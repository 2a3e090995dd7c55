//! Controller properties: where they lie and what their bits mean (Base §3.1.3).

use units::QueueId;

/// Controller Capabilities, 8 bytes (Base §3.1.3.1).
pub const CAP: u32 = 0x00;
/// Version (Base §3.1.3.2).
pub const VS: u32 = 0x08;
/// Controller Configuration (Base §3.1.3.5).
pub const CC: u32 = 0x14;
/// Controller Status (Base §3.1.3.6).
pub const CSTS: u32 = 0x1c;
/// NVM Subsystem Reset (Base §3.1.3.7).
pub const NSSR: u32 = 0x20;
/// Admin Queue Attributes (Base §3.1.3.8).
pub const AQA: u32 = 0x24;
/// Admin Submission Queue Base Address, 8 bytes (Base §3.1.3.9).
pub const ASQ: u32 = 0x28;
/// Admin Completion Queue Base Address, 8 bytes (Base §3.1.3.10).
pub const ACQ: u32 = 0x30;
/// Controller Ready Timeouts (Base §3.1.3.19).
pub const CRTO: u32 = 0x68;
/// Where the doorbells begin (NVMe over PCIe 1.0 §3.1.2).
pub const DOORBELLS: u32 = 0x1000;

/// What VS reads: 2.0.0.
pub const VERSION: u32 = 0x0002_0000;

/// CAP: queues must be physically contiguous (bit 16).
pub const CAP_CONTIGUOUS: u64 = 1 << 16;
/// CAP: weighted round robin with urgent class is there (bit 17).
pub const CAP_WEIGHTED: u64 = 1 << 17;
/// CAP: the NVM command set is there (bit 37).
pub const CAP_NVM: u64 = 1 << 37;
/// CAP: the host may ask for all command sets there are (bit 43).
pub const CAP_COMMAND_SETS: u64 = 1 << 43;
/// CAP: ready means that the media are, too (CRWMS, bit 59).
pub const CAP_READY_WITH_MEDIA: u64 = 1 << 59;

/// CSTS: commands are processed (bit 0).
pub const CSTS_READY: u32 = 1;
/// CSTS: only a reset helps (bit 1).
pub const CSTS_FATAL: u32 = 1 << 1;
/// CSTS: a shutdown is on its way (bits 3:2 = 01b).
pub const CSTS_SHUTTING_DOWN: u32 = 1 << 2;
/// CSTS: power may go (bits 3:2 = 10b).
pub const CSTS_SHUT_DOWN: u32 = 2 << 2;

/// CSTS: the subsystem was reset (NSSRO, bit 4); written as 1 it is cleared.
pub const CSTS_SUBSYSTEM_RESET: u32 = 1 << 4;
/// What is written to NSSR to reset the subsystem: "NVMe".
pub const NSSR_SIGNATURE: u32 = 0x4e56_4d65;
/// CAP: the subsystem can be reset (NSSRS, bit 36).
pub const CAP_SUBSYSTEM_RESET: u64 = 1 << 36;

/// The value of CC, taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration(pub u32);

impl Configuration {
    /// What a host with 64-byte commands and 16-byte completions writes to enable the controller.
    pub const ENABLE: Configuration = Configuration(6 << 16 | 4 << 20 | 1);
    /// AMS value of weighted round robin with urgent class.
    pub const WEIGHTED: u32 = 1;

    /// CSS value of all command sets there are.
    pub const ALL_COMMAND_SETS: u32 = 6;

    /// EN.
    pub const fn enabled(self) -> bool {
        self.0 & 1 != 0
    }
    /// CSS, the command sets the host wants.
    pub const fn command_sets(self) -> u32 {
        self.0 >> 4 & 7
    }
    /// MPS: pages have 2^(12 + this) bytes.
    pub const fn page_size(self) -> u32 {
        self.0 >> 7 & 0xf
    }
    /// The same with another arbitration.
    pub const fn with_arbitration(self, arbitration: u32) -> Configuration {
        Configuration(self.0 & !(7 << 11) | arbitration << 11)
    }
    /// AMS, the arbitration the host wants.
    pub const fn arbitration(self) -> u32 {
        self.0 >> 11 & 7
    }
    /// SHN: 0 none, 1 normal, 2 abrupt.
    pub const fn shutdown(self) -> u32 {
        self.0 >> 14 & 3
    }
    /// IOSQES: submission entries have 2^this bytes.
    pub const fn submission_size(self) -> u32 {
        self.0 >> 16 & 0xf
    }
    /// IOCQES: completion entries have 2^this bytes.
    pub const fn completion_size(self) -> u32 {
        self.0 >> 20 & 0xf
    }
    /// The same with SHN = 01b, a normal shutdown.
    #[must_use]
    pub const fn with_shutdown(self) -> Self {
        Configuration(self.0 | 1 << 14)
    }
}

/// Entries of the admin queues, as AQA holds them from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdminQueueAttributes(pub u32);

impl AdminQueueAttributes {
    /// For queues of so many entries, 2 to 4,096 each.
    pub fn new(submission_entries: u32, completion_entries: u32) -> Self {
        assert!((2..=4096).contains(&submission_entries) && (2..=4096).contains(&completion_entries));
        AdminQueueAttributes((submission_entries - 1) | (completion_entries - 1) << 16)
    }
    /// Entries of the admin submission queue.
    pub const fn submission_entries(self) -> u32 {
        (self.0 & 0xfff) + 1
    }
    /// Entries of the admin completion queue.
    pub const fn completion_entries(self) -> u32 {
        (self.0 >> 16 & 0xfff) + 1
    }
}

/// A queue's doorbell register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doorbell {
    /// The tail of a submission queue.
    SubmissionTail(QueueId),
    /// The head of a completion queue.
    CompletionHead(QueueId),
}

impl Doorbell {
    /// Where it lies, doorbells being 4 bytes apart (CAP.DSTRD = 0).
    pub const fn offset(self) -> u32 {
        match self {
            Doorbell::SubmissionTail(queue) => DOORBELLS + 8 * queue.0 as u32,
            Doorbell::CompletionHead(queue) => DOORBELLS + 8 * queue.0 as u32 + 4,
        }
    }

    /// The doorbell at an offset; `None` where there is none.
    pub const fn at(offset: u32) -> Option<Doorbell> {
        if offset < DOORBELLS || !offset.is_multiple_of(4) || offset >= DOORBELLS + 8 * 0x1_0000 {
            return None;
        }
        let queue = QueueId(((offset - DOORBELLS) / 8) as u16);
        Some(if offset.is_multiple_of(8) { Doorbell::SubmissionTail(queue) } else { Doorbell::CompletionHead(queue) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_doorbell_is_found_where_it_lies() {
        for queue in [0, 1, 4_711, u16::MAX].map(QueueId) {
            for doorbell in [Doorbell::SubmissionTail(queue), Doorbell::CompletionHead(queue)] {
                assert_eq!(Doorbell::at(doorbell.offset()), Some(doorbell));
            }
        }
        assert_eq!([0, 0xffc, 0x1002, 0x1000 + 8 * 0x1_0000].map(Doorbell::at), [None; 4]);
    }

    /// The value Linux 6.12 writes to a controller without command-set selection, and its shutdown.
    #[test]
    fn configuration_reads_as_a_host_writes_it() {
        assert_eq!(Configuration::ENABLE.0, 0x0046_0001);
        let configuration = Configuration(0x0046_4061);
        assert_eq!((configuration.command_sets(), configuration.shutdown()), (6, 1));
        assert_eq!((configuration.submission_size(), configuration.completion_size()), (6, 4));
        let attributes = AdminQueueAttributes::new(32, 4096);
        assert_eq!((attributes.submission_entries(), attributes.completion_entries()), (32, 4096));
    }
}
