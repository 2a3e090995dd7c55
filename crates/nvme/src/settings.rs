//! What a controller is like: everything its identify structures and registers say follows from this.

use crate::Protection;
use crate::spec::Opcode;
use crate::spec::fabrics::DiscoveryEntry;
use units::{Bytes, Span};

/// How commands reach a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By queues in host memory, with PRPs.
    Memory,
    /// By messages, with SGLs; a queue is a connection.
    Message {
        /// Most data of a command within its capsule; a multiple of 16 bytes.
        capsule: Bytes,
    },
}

/// What a controller is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its namespaces.
    Storage,
    /// Telling hosts of these ways to subsystems. It has no namespaces and no I/O queues.
    Discovery(Vec<DiscoveryEntry>),
}

/// The most namespaces of a subsystem: as many as 16 bits, which a request of a workload has to name one, tell apart beside none and all.
pub const NAMESPACES_MAX: usize = 0xfffe;

/// The most interrupt vectors of a controller: what MSI-X can have (PCI Express Base 4.0 §7.7.2).
pub const VECTORS_MAX: u16 = 2048;

/// A controller. Relations are asserted when one is made: whoever reads configuration files checks them first.
#[derive(Clone, Debug)]
pub struct ControllerSettings {
    /// PCI vendor identifier.
    pub vendor: u16,
    /// Serial number: ASCII, at most 20 characters.
    pub serial: String,
    /// Model number: ASCII, at most 40 characters.
    pub model: String,
    /// Firmware revision: ASCII, at most 8 characters.
    pub firmware: String,
    /// NVMe qualified name of the subsystem, at most 223 bytes.
    pub subsystem: String,
    /// The controller within its subsystem.
    pub controller_id: u16,
    /// Entries of the largest queue: 2 to 65,536.
    pub queue_entries_max: u32,
    /// I/O queues of each kind: 1 to 65,535.
    pub io_queues_max: u16,
    /// Interrupt vectors: 1 to [`VECTORS_MAX`].
    pub vectors: u16,
    /// Longest transfer of one command, a power of two of 4 KiB pages; `None` is without limit.
    pub transfer_max: Option<Bytes>,
    /// Asynchronous Event Requests held: 1 to 256.
    pub event_requests_max: u16,
    /// Entries the error log keeps: 1 to 64.
    pub error_log_entries: u8,
    /// Arbitration burst that suits the device, as a power of two: 0 to 6.
    pub burst_log2: u8,
    /// Whether the device end serves queues by their classes where a host asks for that.
    pub weighted_arbitration: bool,
    /// I/O commands that the device end carries out.
    pub commands: Vec<Opcode>,
    /// Whether writes may complete in volatile memory.
    pub volatile_write_cache: bool,
    /// Blocks that are written atomically, over a power failure too, unless the write crosses a multiple of as many: 1 to 65,536. No
    /// namespace has longer blocks than all of these together.
    pub atomic_write_blocks: u32,
    /// Granularity of the keep alive timer, a multiple of 100 ms; `None` is no timer.
    pub keep_alive: Option<Span>,
    /// The longest the device may take to become ready.
    pub ready_within: Span,
    /// Kelvin to warn at, and kelvin that are critical.
    pub temperatures: [u16; 2],
    /// Power at full speed in hundredths of a watt.
    pub power_centiwatts: u16,
    /// How commands reach it.
    pub transport: Transport,
    /// What it is for.
    pub role: Role,
    /// Namespaces there may be, where the device end erases and tests what it is told to: then there are Format NVM, Namespace
    /// Management and Device Self-test. 0 where it does not.
    pub managed_namespaces: u32,
    /// Whether the drive keeps 8 bytes of metadata with each block.
    pub metadata: bool,
    /// Whether the device end follows SGLs of I/O commands in host memory, where that is how commands come; else PRPs only.
    pub memory_sgls: bool,
    /// Whether the device end looks at doorbells in host memory as well, where that is how commands come: then there is Doorbell
    /// Buffer Config. For at most [`crate::shadow::QUEUES_MAX`] queues, the admin queue among them.
    pub shadow_doorbells: bool,
    /// The namespaces; the first is number 1.
    pub namespaces: Vec<NamespaceSettings>,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSettings {
    /// Logical blocks; at least 1.
    pub blocks: u64,
    /// Bytes of a block: 512 or 4,096; the same for all, as the drive has them.
    pub block_bytes: u32,
    /// Whether 8 bytes of metadata go with each block.
    pub metadata: bool,
    /// Whether these are protection information.
    pub protection: Protection,
    /// Identifier that no other namespace anywhere has.
    pub nguid: [u8; 16],
    /// Extended unique identifier; zero where there is none.
    pub eui64: [u8; 8],
}

impl ControllerSettings {
    pub(crate) fn assert_valid(&self) {
        let text = |text: &str, longest| assert!(text.is_ascii() && text.len() <= longest, "{text:?} over {longest}");
        text(&self.serial, 20);
        text(&self.model, 40);
        text(&self.firmware, 8);
        assert!(self.subsystem.len() <= 223);
        assert!((2..=0x1_0000).contains(&self.queue_entries_max));
        assert!(self.io_queues_max >= 1);
        assert!((1..=VECTORS_MAX).contains(&self.vectors));
        assert!(!self.shadow_doorbells || self.io_queues_max < crate::shadow::QUEUES_MAX);
        assert!(
            self.transfer_max.is_none_or(|bytes| bytes.0.is_power_of_two() && bytes.0 >= 2 * crate::spec::PAGE_BYTES)
        );
        assert!((1..=256).contains(&self.event_requests_max));
        assert!((1..=64).contains(&self.error_log_entries));
        assert!(self.burst_log2 <= 6);
        assert!((1..=0x1_0000).contains(&self.atomic_write_blocks));
        assert!(self.namespaces.is_empty() == self.is_discovery() && self.namespaces.len() <= NAMESPACES_MAX);
        for namespace in &self.namespaces {
            assert!(namespace.blocks > 0);
            assert!(matches!(namespace.block_bytes, 512 | 4096));
            assert!(self.metadata || !namespace.metadata, "the drive keeps what a namespace has");
            assert_eq!(namespace.block_bytes, self.namespaces[0].block_bytes, "the drive has blocks of one size");
        }
    }

    /// Whether metadata lie behind the data of each block, as one with it, where it has any: over messages there is one pointer only.
    pub(crate) fn extends_blocks(&self) -> bool {
        self.is_shared()
    }

    /// Whether it is there for discovery.
    pub(crate) fn is_discovery(&self) -> bool {
        matches!(self.role, Role::Discovery(_))
    }

    /// Whether other controllers may have the same namespaces: over a fabric each host has a controller of its own.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.transport, Transport::Message { .. })
    }

    /// OAES of Identify Controller: notices that may come. The discovery log does not change while a controller lives.
    pub(crate) fn notices(&self) -> u32 {
        if self.is_discovery() { 1 << 31 } else { 1 << 8 }
    }

    /// FUSES of Identify Controller: whether Compare and Write may be a fused pair, over what is written atomically but no more than a
    /// page of the host's memory.
    pub(crate) fn fuses(&self) -> bool {
        !self.is_discovery() && [Opcode::Compare, Opcode::Write].iter().all(|opcode| self.commands.contains(opcode))
    }

    /// ONCS of Identify Controller (Base §5.17.2.1): bits of the optional commands, and bit 4 for Select in Get
    /// Features. A controller for discovery has no I/O commands, and none of the field.
    pub(crate) fn optional_commands(&self) -> u16 {
        if self.is_discovery() {
            return 0;
        }
        let bit = |opcode: &Opcode| match opcode {
            Opcode::Compare => 1,
            Opcode::WriteUncorrectable => 1 << 1,
            Opcode::DatasetManagement => 1 << 2,
            Opcode::WriteZeroes => 1 << 3,
            Opcode::Verify => 1 << 7,
            Opcode::Copy => 1 << 8,
            Opcode::Flush | Opcode::Write | Opcode::Read => 0,
        };
        self.commands.iter().fold(1 << 4, |bits, opcode| bits | bit(opcode))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A controller of middling size, for the tests of this crate.
    pub(crate) fn example() -> ControllerSettings {
        ControllerSettings {
            vendor: 0x1b36,
            serial: "FL0001".into(),
            model: "Flashloom".into(),
            firmware: "0.1".into(),
            subsystem: "nqn.2026-01.io.flashloom:test".into(),
            controller_id: 1,
            queue_entries_max: 1024,
            io_queues_max: 64,
            vectors: 65,
            transfer_max: Some(Bytes::kib(512)),
            event_requests_max: 4,
            error_log_entries: 8,
            burst_log2: 3,
            weighted_arbitration: true,
            commands: Opcode::ALL.to_vec(),
            volatile_write_cache: true,
            atomic_write_blocks: 8,
            keep_alive: None,
            ready_within: Span::from_secs(5),
            temperatures: [343, 358],
            power_centiwatts: 2_500,
            transport: Transport::Memory,
            role: Role::Storage,
            managed_namespaces: 0,
            metadata: false,
            memory_sgls: false,
            shadow_doorbells: false,
            namespaces: vec![NamespaceSettings {
                blocks: 1 << 30,
                block_bytes: 512,
                metadata: false,
                protection: Protection::None,
                nguid: [7; 16],
                eui64: [9; 8],
            }],
        }
    }
}
