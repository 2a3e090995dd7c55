//! Admin commands as the host makes them, and the fields both ends read in them.

use super::{AdminOpcode, DataPointer, Submission};
use units::{HostAddress, QueueId};

/// Features this controller has (Base §5.27.1; NVM §4.1.3 for write atomicity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FeatureId {
    /// Burst and weights of the queues, Base §5.27.1.1.
    Arbitration = 0x01,
    /// The power state, Base §5.27.1.2.
    PowerManagement = 0x02,
    /// When a temperature is an event, Base §5.27.1.3.
    TemperatureThreshold = 0x04,
    /// How long an error of a namespace may be recovered from, NVM §4.1.3.2.
    ErrorRecovery = 0x05,
    /// Whether writes may complete in volatile memory, Base §5.27.1.4.
    VolatileWriteCache = 0x06,
    /// I/O queues granted, Base §5.27.1.5.
    NumberOfQueues = 0x07,
    /// Completions gathered for one interrupt, Base §5.27.1.6.
    InterruptCoalescing = 0x08,
    /// A vector exempt from coalescing, Base §5.27.1.7.
    InterruptVectorConfiguration = 0x09,
    /// Whether atomicity beyond power failure may be dropped, NVM §4.1.3.
    WriteAtomicity = 0x0a,
    /// Which events are reported, Base §5.27.1.8.
    AsynchronousEventConfiguration = 0x0b,
    /// How long the host may be silent, Base §5.27.1.12.
    KeepAliveTimer = 0x0f,
    /// Which combination of command sets is in use, Base §5.27.1.21.
    CommandSetProfile = 0x19,
    /// Who the host is, Base §5.27.1.25.
    HostIdentifier = 0x81,
}

impl FeatureId {
    /// Every feature, in the order of its identifier.
    pub const ALL: &'static [FeatureId] = &[
        FeatureId::Arbitration,
        FeatureId::PowerManagement,
        FeatureId::TemperatureThreshold,
        FeatureId::ErrorRecovery,
        FeatureId::VolatileWriteCache,
        FeatureId::NumberOfQueues,
        FeatureId::InterruptCoalescing,
        FeatureId::InterruptVectorConfiguration,
        FeatureId::WriteAtomicity,
        FeatureId::AsynchronousEventConfiguration,
        FeatureId::KeepAliveTimer,
        FeatureId::CommandSetProfile,
        FeatureId::HostIdentifier,
    ];

    /// The feature a command's dword 10 names, if this controller has it.
    pub fn of(submission: &Submission) -> Option<FeatureId> {
        let id = submission.dword(10) as u8;
        FeatureId::ALL.iter().copied().find(|feature| *feature as u8 == id)
    }
}

/// Which value Get Features asks for (Base §5.15, dword 10 bits 10:8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeatureSelect {
    /// In force now.
    Current,
    /// After a reset.
    Default,
    /// Kept over power cycles; the default where nothing was saved.
    Saved,
    /// What may be done to the feature.
    Capabilities,
}

impl FeatureSelect {
    /// What a Get Features asks for; `None` where the value is reserved.
    pub const fn of(submission: &Submission) -> Option<FeatureSelect> {
        match submission.dword(10) >> 8 & 7 {
            0 => Some(FeatureSelect::Current),
            1 => Some(FeatureSelect::Default),
            2 => Some(FeatureSelect::Saved),
            3 => Some(FeatureSelect::Capabilities),
            _ => None,
        }
    }
}

/// The class a submission queue is served in under weighted round robin (Base §3.4.4.2, QPRIO of §5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum QueuePriority {
    /// Before every weighted class.
    #[default]
    Urgent = 0,
    /// Weighted.
    High = 1,
    /// Weighted.
    Medium = 2,
    /// Weighted.
    Low = 3,
}

impl QueuePriority {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            QueuePriority::Urgent => "urgent",
            QueuePriority::High => "high",
            QueuePriority::Medium => "medium",
            QueuePriority::Low => "low",
        }
    }

    /// From the two low bits of `bits`.
    pub const fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => QueuePriority::Urgent,
            1 => QueuePriority::High,
            2 => QueuePriority::Medium,
            _ => QueuePriority::Low,
        }
    }
}

const PHYSICALLY_CONTIGUOUS: u32 = 1;
const INTERRUPTS_ENABLED: u32 = 1 << 1;

fn queue_size(id: QueueId, entries: u32) -> u32 {
    assert!((2..=0x1_0000).contains(&entries), "a queue of {entries} entries");
    u32::from(id.0) | (entries - 1) << 16
}

/// Admin commands; each takes its command identifier by [`Submission::with_command_id`].
impl Submission {
    fn admin(opcode: AdminOpcode) -> Self {
        Submission::new(opcode as u8, 0)
    }

    /// Identify (Base §5.17): structure `cns` of `namespace`, 4,096 bytes to `data`.
    pub fn identify(cns: u8, namespace: u32, data: DataPointer) -> Self {
        Submission::new(AdminOpcode::Identify as u8, namespace).with_dword(10, u32::from(cns)).with_pointer(data)
    }

    /// Create I/O Completion Queue (Base §5.4), physically contiguous; without a vector it raises no interrupts.
    pub fn create_completion_queue(id: QueueId, entries: u32, at: HostAddress, vector: Option<u16>) -> Self {
        let interrupt = vector.map_or(0, |vector| INTERRUPTS_ENABLED | u32::from(vector) << 16);
        Submission::admin(AdminOpcode::CreateCompletionQueue)
            .with_pointer(DataPointer { prp1: at, prp2: HostAddress(0) })
            .with_dword(10, queue_size(id, entries))
            .with_dword(11, PHYSICALLY_CONTIGUOUS | interrupt)
    }

    /// Create I/O Submission Queue (Base §5.5), physically contiguous, in the urgent class, completing to
    /// `completions`.
    pub fn create_submission_queue(id: QueueId, entries: u32, at: HostAddress, completions: QueueId) -> Self {
        Submission::admin(AdminOpcode::CreateSubmissionQueue)
            .with_pointer(DataPointer { prp1: at, prp2: HostAddress(0) })
            .with_dword(10, queue_size(id, entries))
            .with_dword(11, PHYSICALLY_CONTIGUOUS | u32::from(completions.0) << 16)
    }

    /// A Create I/O Submission Queue in another class.
    #[must_use]
    pub fn with_priority(self, priority: QueuePriority) -> Self {
        self.with_dword(11, self.dword(11) & !6 | (priority as u32) << 1)
    }

    /// Delete I/O Completion Queue (Base §5.6).
    pub fn delete_completion_queue(id: QueueId) -> Self {
        Submission::admin(AdminOpcode::DeleteCompletionQueue).with_dword(10, u32::from(id.0))
    }

    /// Delete I/O Submission Queue (Base §5.7).
    pub fn delete_submission_queue(id: QueueId) -> Self {
        Submission::admin(AdminOpcode::DeleteSubmissionQueue).with_dword(10, u32::from(id.0))
    }

    /// Get Features (Base §5.15); the value comes back as the completion's result.
    pub fn get_features(feature: FeatureId, select: FeatureSelect) -> Self {
        Submission::admin(AdminOpcode::GetFeatures).with_dword(10, feature as u32 | (select as u32) << 8)
    }

    /// Set Features (Base §5.27) to `value`, not saved.
    pub fn set_features(feature: FeatureId, value: u32) -> Self {
        Submission::admin(AdminOpcode::SetFeatures).with_dword(10, feature as u32).with_dword(11, value)
    }

    /// Get Log Page (Base §5.16): `dwords` (at least 1) of page `id` from byte `offset` on, to `data`.
    pub fn get_log_page(id: u8, offset: u64, dwords: u32, data: DataPointer) -> Self {
        assert!(dwords >= 1);
        let count = dwords - 1;
        Submission::new(AdminOpcode::GetLogPage as u8, super::ALL_NAMESPACES)
            .with_pointer(data)
            .with_dword(10, u32::from(id) | count << 16)
            .with_dword(11, count >> 16)
            .with_dword(12, offset as u32)
            .with_dword(13, (offset >> 32) as u32)
    }

    /// How long a part of a page Get Log Page asks for (Base §5.16, NUMDL and NUMDU), in bytes.
    pub const fn log_bytes(&self) -> u64 {
        ((self.dword(11) as u64 & 0xffff) << 16 | self.dword(10) as u64 >> 16) * 4 + 4
    }

    /// Abort (Base §5.1) of one command of one queue; result bit 0 is set if it was not aborted.
    pub fn abort(queue: QueueId, command_id: u16) -> Self {
        Submission::admin(AdminOpcode::Abort).with_dword(10, u32::from(queue.0) | u32::from(command_id) << 16)
    }

    /// Asynchronous Event Request (Base §5.2): completes when there is something to tell.
    pub fn asynchronous_event_request() -> Self {
        Submission::admin(AdminOpcode::AsynchronousEventRequest)
    }

    /// Format NVM (Base §5.14) of a namespace to format `format`, with a secure erase of kind `erase`.
    pub fn format_nvm(namespace: u32, format: u32, erase: u32) -> Self {
        Submission::new(AdminOpcode::FormatNvm as u8, namespace).with_dword(10, format & 0xf | erase << 9)
    }

    /// Namespace Management (Base §5.23): makes the namespace that the structure at `data` describes; its identifier is the result.
    pub fn create_namespace(data: DataPointer) -> Self {
        Submission::admin(AdminOpcode::NamespaceManagement).with_pointer(data)
    }

    /// Namespace Management (Base §5.23): deletes a namespace, or all.
    pub fn delete_namespace(namespace: u32) -> Self {
        Submission::new(AdminOpcode::NamespaceManagement as u8, namespace).with_dword(10, 1)
    }

    /// Namespace Attachment (Base §5.22): attaches or detaches the controllers of the list at `data`.
    pub fn attach_namespace(namespace: u32, attaches: bool, data: DataPointer) -> Self {
        let submission = Submission::new(AdminOpcode::NamespaceAttachment as u8, namespace);
        submission.with_dword(10, u32::from(!attaches)).with_pointer(data)
    }

    /// Device Self-test (Base §5.9): 1 a short one, 2 an extended one, Fh ends the one that runs.
    pub fn device_self_test(code: u32) -> Self {
        Submission::new(AdminOpcode::DeviceSelfTest as u8, super::ALL_NAMESPACES).with_dword(10, code)
    }

    /// Doorbell Buffer Config (Base §5.8): a page of doorbells and one of event indices.
    pub fn doorbell_buffers(doorbells: HostAddress, events: HostAddress) -> Self {
        Submission::admin(AdminOpcode::DoorbellBufferConfig).with_pointer(DataPointer { prp1: doorbells, prp2: events })
    }

    /// Keep Alive (Base §5.18).
    pub fn keep_alive() -> Self {
        Submission::admin(AdminOpcode::KeepAlive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_s_size_counts_from_zero_on_the_wire() {
        let create = Submission::create_submission_queue(QueueId(3), 65_536, HostAddress(0x5000), QueueId(2));
        assert_eq!((create.dword(10), create.dword(11)), (0xffff_0003, 0x0002_0001));
        assert_eq!(create.with_priority(QueuePriority::Low).dword(11), 0x0002_0007);
        let create = Submission::create_completion_queue(QueueId(2), 2, HostAddress(0x6000), Some(9));
        assert_eq!((create.dword(10), create.dword(11)), (0x0001_0002, 0x0009_0003));
    }

    #[test]
    fn a_log_page_s_length_and_offset_span_their_dwords() {
        let get = Submission::get_log_page(0x05, 0x1_0000_0004, 0x2_0001, DataPointer::default());
        assert_eq!([10, 11, 12, 13].map(|n| get.dword(n)), [0x0000_0005, 2, 4, 1]);
        assert_eq!(get.log_bytes(), 0x8_0004);
    }

    #[test]
    fn every_feature_and_selection_reads_back() {
        use FeatureSelect::*;
        for feature in FeatureId::ALL {
            for select in [Current, Default, Saved, Capabilities] {
                let get = Submission::get_features(*feature, select);
                assert_eq!((FeatureId::of(&get), FeatureSelect::of(&get)), (Some(*feature), Some(select)));
            }
        }
        assert_eq!(FeatureId::of(&Submission::default().with_dword(10, 0x03)), None);
    }
}
