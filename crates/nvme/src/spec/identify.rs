//! What Identify returns (Base §5.17.2; NVM §4.1.5 for namespaces).

use super::layout::layout;

/// CNS 00h: the NVM command set's view of a namespace (NVM §4.1.5.1).
pub const NAMESPACE: u8 = 0x00;
/// CNS 01h: the controller (Base §5.17.2.1).
pub const CONTROLLER: u8 = 0x01;
/// CNS 02h: active namespaces above the one named (Base §5.17.2.2).
pub const ACTIVE_NAMESPACES: u8 = 0x02;
/// CNS 03h: identifiers of a namespace (Base §5.17.2.3).
pub const NAMESPACE_IDENTIFIERS: u8 = 0x03;
/// CNS 05h: a command set's further view of a namespace (NVM §4.1.5.3).
pub const COMMAND_SET_NAMESPACE: u8 = 0x05;
/// CNS 06h: a command set's limits of the controller (NVM §4.1.5.4).
pub const COMMAND_SET_CONTROLLER: u8 = 0x06;
/// CNS 07h: active namespaces of a command set (Base §5.17.2.6).
pub const COMMAND_SET_NAMESPACES: u8 = 0x07;
/// CNS 08h: what every command set says of a namespace (Base §5.17.2.8).
pub const INDEPENDENT_NAMESPACE: u8 = 0x08;

/// CNS 10h: namespaces above the one named, attached or not (Base §5.17.2.10).
pub const ALLOCATED_NAMESPACES: u8 = 0x10;
/// CNS 11h: CNS 00h for a namespace that need not be attached (Base §5.17.2.11).
pub const ALLOCATED_NAMESPACE: u8 = 0x11;
/// CNS 12h: controllers that have a namespace (Base §5.17.2.12).
pub const NAMESPACE_CONTROLLERS: u8 = 0x12;
/// CNS 13h: controllers of the subsystem (Base §5.17.2.13).
pub const CONTROLLERS: u8 = 0x13;
/// CNS 14h: what a primary controller has for its secondary ones (Base §5.17.2.14).
pub const PRIMARY_CAPABILITIES: u8 = 0x14;
/// CNS 15h: secondary controllers of a primary one (Base §5.17.2.15).
pub const SECONDARY_CONTROLLERS: u8 = 0x15;
/// CNS 16h: in what steps namespaces take capacity (NVM §4.1.5.6).
pub const GRANULARITY: u8 = 0x16;
/// CNS 19h: the endurance groups (Base §5.17.2.18).
pub const ENDURANCE_GROUPS: u8 = 0x19;
/// CNS 1Ah: CNS 10h for one command set (Base §5.17.2.19).
pub const COMMAND_SET_ALLOCATED_NAMESPACES: u8 = 0x1a;
/// CNS 1Bh: CNS 05h for a namespace that need not be attached (Base §5.17.2.20).
pub const COMMAND_SET_ALLOCATED_NAMESPACE: u8 = 0x1b;
/// CNS 1Ch: which command sets a controller has (Base §5.17.2.21).
pub const COMMAND_SETS: u8 = 0x1c;

/// Bytes of whatever Identify returns.
pub const IDENTIFY_BYTES: usize = 4096;

layout! {
    /// The controller, CNS 01h (Base §5.17.2.1, figure 275).
    IdentifyController[4096] {
        /// PCI vendor (VID).
        vendor, set_vendor: u16 = 0;
        /// PCI subsystem vendor (SSVID).
        subsystem_vendor, set_subsystem_vendor: u16 = 2;
        /// Serial number, ASCII padded with spaces (SN).
        serial, set_serial: [u8; 20] = 4;
        /// Model number, ASCII padded with spaces (MN).
        model, set_model: [u8; 40] = 24;
        /// Firmware revision, ASCII padded with spaces (FR).
        firmware, set_firmware: [u8; 8] = 64;
        /// Recommended arbitration burst as a power of two (RAB).
        recommended_burst, set_recommended_burst: u8 = 72;
        /// Longest transfer as a power of two of pages; 0 is without limit (MDTS).
        transfer_pages_log2, set_transfer_pages_log2: u8 = 77;
        /// Bit 1: the subsystem may have several controllers (CMIC).
        sharing, set_sharing: u8 = 76;
        /// Controller identifier (CNTLID).
        controller_id, set_controller_id: u16 = 78;
        /// Version, as in VS (VER).
        version, set_version: u32 = 80;
        /// Microseconds that a shutdown may take (RTD3E).
        shutdown_micros, set_shutdown_micros: u32 = 88;
        /// Notices that can be events, in the places of the Asynchronous Event Configuration (OAES).
        notices, set_notices: u32 = 92;
        /// Bit 6: any command keeps the host alive (CTRATT).
        attributes, set_attributes: u32 = 96;
        /// 1 for an I/O controller, 2 for one of discovery (CNTRLTYPE).
        controller_type, set_controller_type: u8 = 111;
        /// Optional admin commands (OACS).
        optional_admin_commands, set_optional_admin_commands: u16 = 256;
        /// Most Abort commands at once, from zero (ACL).
        abort_limit, set_abort_limit: u8 = 258;
        /// Most Asynchronous Event Requests held, from zero (AERL).
        event_request_limit, set_event_request_limit: u8 = 259;
        /// Firmware slots and their nature (FRMW).
        firmware_updates, set_firmware_updates: u8 = 260;
        /// What Get Log Page can do (LPA).
        log_page_attributes, set_log_page_attributes: u8 = 261;
        /// Entries of the error log, from zero (ELPE).
        error_log_entries, set_error_log_entries: u8 = 262;
        /// Temperature to warn at, in kelvin (WCTEMP).
        warning_temperature, set_warning_temperature: u16 = 266;
        /// Temperature that is critical, in kelvin (CCTEMP).
        critical_temperature, set_critical_temperature: u16 = 268;
        /// Capacity in bytes (TNVMCAP).
        capacity, set_capacity: u128 = 280;
        /// Bytes that no namespace has (UNVMCAP).
        unallocated, set_unallocated: u128 = 296;
        /// Minutes of an extended self-test (EDSTT).
        self_test_minutes, set_self_test_minutes: u16 = 316;
        /// Bit 0: one self-test at a time in the subsystem (DSTO).
        self_test_options, set_self_test_options: u8 = 318;
        /// Greatest endurance group identifier (ENDGIDMAX).
        endurance_groups, set_endurance_groups: u16 = 340;
        /// Granularity of the keep alive timer in 100 ms; 0 is no timer (KAS).
        keep_alive, set_keep_alive: u16 = 320;
        /// Size of submission entries, required and greatest as powers of two (SQES).
        submission_sizes, set_submission_sizes: u8 = 512;
        /// Size of completion entries, required and greatest as powers of two (CQES).
        completion_sizes, set_completion_sizes: u8 = 513;
        /// Commands worth having outstanding in a queue (MAXCMD).
        commands_max, set_commands_max: u16 = 514;
        /// Greatest namespace identifier (NN).
        namespaces, set_namespaces: u32 = 516;
        /// Optional I/O commands (ONCS).
        optional_commands, set_optional_commands: u16 = 520;
        /// Bit 0: Compare and Write may be a fused pair (FUSES).
        fused_operations, set_fused_operations: u16 = 522;
        /// Bit 0: there is a volatile write cache; bits 2:1: whether Flush takes all namespaces (VWC).
        volatile_write_cache, set_volatile_write_cache: u8 = 525;
        /// Blocks written atomically, from zero (AWUN).
        atomic_write_blocks, set_atomic_write_blocks: u16 = 526;
        /// Blocks written atomically over a power failure, from zero (AWUPF).
        atomic_write_blocks_power_fail, set_atomic_write_blocks_power_fail: u16 = 528;
        /// Blocks compared and written atomically as a fused pair, from zero (ACWU).
        atomic_compare_blocks, set_atomic_compare_blocks: u16 = 532;
        /// Descriptor formats of Copy, a bit each (OCFS).
        copy_formats, set_copy_formats: u16 = 534;
        /// What SGLs there may be (SGLS).
        sgls, set_sgls: u32 = 536;
        /// Most namespaces there may be (MNAN).
        namespaces_max, set_namespaces_max: u32 = 540;
        /// Name of the subsystem, UTF-8 padded with zeroes (SUBNQN).
        subsystem, set_subsystem: [u8; 256] = 768;
        /// Most bytes of a command capsule, in 16 (IOCCSZ).
        command_capsule, set_command_capsule: u32 = 1792;
        /// Most bytes of a response capsule, in 16 (IORCSZ).
        response_capsule, set_response_capsule: u32 = 1796;
        /// SGL descriptors of a command (MSDBD).
        descriptors_max, set_descriptors_max: u8 = 1803;
        /// Optional fabrics commands: bit 0 is Disconnect (OFCS).
        optional_fabrics_commands, set_optional_fabrics_commands: u16 = 1804;
        /// Power of state 0 in hundredths of a watt (PSD0.MP).
        power_centiwatts, set_power_centiwatts: u16 = 2048;
    }
}

layout! {
    /// A namespace, CNS 00h (NVM §4.1.5.1).
    IdentifyNamespace[4096] {
        /// Size in logical blocks (NSZE).
        size, set_size: u64 = 0;
        /// Most blocks that may be allocated (NCAP).
        capacity, set_capacity: u64 = 8;
        /// Blocks allocated (NUSE).
        used, set_used: u64 = 16;
        /// Bit 1: the atomic write fields below count, not the controller's; bit 4: the preferred granularities do (NSFEAT).
        features, set_features: u8 = 24;
        /// Formats, from zero (NLBAF).
        formats, set_formats: u8 = 25;
        /// The format in use (FLBAS).
        format, set_format: u8 = 26;
        /// Bit 0: metadata as part of extended blocks; bit 1: by a pointer of their own (MC).
        metadata, set_metadata: u8 = 27;
        /// Types of protection information there are, and where in the metadata (DPC).
        protections, set_protections: u8 = 28;
        /// Protection information in use (DPS).
        protection, set_protection: u8 = 29;
        /// Bit 0: several controllers may have it at once (NMIC).
        sharing, set_sharing: u8 = 30;
        /// What deallocated blocks read as (DLFEAT).
        deallocated, set_deallocated: u8 = 33;
        /// Blocks written atomically, from zero (NAWUN).
        atomic_write_blocks, set_atomic_write_blocks: u16 = 34;
        /// Blocks written atomically over a power failure, from zero (NAWUPF).
        atomic_write_blocks_power_fail, set_atomic_write_blocks_power_fail: u16 = 36;
        /// Blocks compared and written atomically, from zero (NACWU).
        atomic_compare_blocks, set_atomic_compare_blocks: u16 = 38;
        /// Blocks between the boundaries that an atomic write does not cross, from zero; 0 is no boundary (NABSN).
        atomic_boundary, set_atomic_boundary: u16 = 40;
        /// The first of these boundaries (NABO).
        atomic_boundary_offset, set_atomic_boundary_offset: u16 = 42;
        /// The same as NABSN, over a power failure (NABSPF).
        atomic_boundary_power_fail, set_atomic_boundary_power_fail: u16 = 44;
        /// Bytes it may hold (NVMCAP).
        bytes, set_bytes: u128 = 48;
        /// Blocks that a write should be a multiple of, from zero (NPWG).
        write_granularity, set_write_granularity: u16 = 64;
        /// Blocks that its beginning should be a multiple of, from zero (NPWA).
        write_alignment, set_write_alignment: u16 = 66;
        /// The same of a deallocation (NPDG).
        deallocate_granularity, set_deallocate_granularity: u16 = 68;
        /// The same of its beginning (NPDA).
        deallocate_alignment, set_deallocate_alignment: u16 = 70;
        /// Blocks that a write should have, from zero (NOWS).
        write_size, set_write_size: u16 = 72;
        /// Blocks of a source range of a Copy, at most (MSSRL).
        copy_range_blocks, set_copy_range_blocks: u16 = 74;
        /// Blocks of a Copy, at most (MCL).
        copy_blocks, set_copy_blocks: u32 = 76;
        /// Source ranges of a Copy, at most, from zero (MSRC).
        copy_ranges, set_copy_ranges: u8 = 80;
        /// Bit 0: it takes no writes (NSATTR).
        attributes, set_attributes: u8 = 99;
        /// Its NVM set; 0 is none (NVMSETID).
        nvm_set, set_nvm_set: u16 = 100;
        /// Its endurance group; 0 is none (ENDGID).
        endurance_group, set_endurance_group: u16 = 102;
        /// Globally unique identifier (NGUID).
        nguid, set_nguid: [u8; 16] = 104;
        /// IEEE extended unique identifier (EUI64).
        eui64, set_eui64: [u8; 8] = 120;
        /// Format 0: metadata bytes 15:0, block size as a power of two 23:16, relative performance 25:24 (LBAF0).
        format0, set_format0: u32 = 128;
        /// Format 1, as format 0 (LBAF1).
        format1, set_format1: u32 = 132;
        /// Format 2, as format 0 (LBAF2).
        format2, set_format2: u32 = 136;
        /// Format 3, as format 0 (LBAF3).
        format3, set_format3: u32 = 140;
    }
}

impl IdentifyNamespace {
    /// Bytes of a logical block in the format in use; `None` where the structure makes no sense.
    pub fn block_bytes(&self) -> Option<u32> {
        1u32.checked_shl(self.format_in_use()? >> 16 & 0xff)
    }

    /// Bytes of metadata that go with a block in the format in use; `None` where the structure makes no sense.
    pub fn metadata_bytes(&self) -> Option<u32> {
        Some(self.format_in_use()? & 0xffff)
    }

    fn format_in_use(&self) -> Option<u32> {
        let formats = [self.format0(), self.format1(), self.format2(), self.format3()];
        formats.get(usize::from(self.format() & 0xf)).copied()
    }
}

layout! {
    /// What every command set says of a namespace, CNS 08h (Base §5.17.2.8).
    IndependentNamespace[4096] {
        /// Bit 0: several controllers may have it at once (NMIC).
        sharing, set_sharing: u8 = 1;
        /// Bit 0: it takes no writes (NSATTR).
        attributes, set_attributes: u8 = 8;
        /// Its endurance group; 0 is none (ENDGID).
        endurance_group, set_endurance_group: u16 = 12;
        /// Bit 0: the namespace is ready (NSTAT).
        state, set_state: u8 = 14;
    }
}

layout! {
    /// Limits of the NVM command set, CNS 06h (NVM §4.1.5.4): those in pages are a power of two of 4 KiB.
    CommandSetController[4096] {
        /// Longest Verify (VSL).
        verify_pages_log2, set_verify_pages_log2: u8 = 0;
        /// Longest Write Zeroes (WZSL).
        zeroes_pages_log2, set_zeroes_pages_log2: u8 = 1;
        /// Longest Write Uncorrectable (WUSL).
        uncorrectable_pages_log2, set_uncorrectable_pages_log2: u8 = 2;
        /// Ranges of a Dataset Management (DMRL).
        ranges, set_ranges: u8 = 3;
        /// Logical blocks of each of them (DMRSL).
        range_blocks, set_range_blocks: u32 = 4;
        /// Logical blocks of all of them (DMSL).
        ranges_blocks, set_ranges_blocks: u64 = 8;
    }
}

/// `text` as Identify holds it: cut to `N` bytes, padded with `pad`.
pub(crate) fn padded<const N: usize>(text: &str, pad: u8) -> [u8; N] {
    let mut bytes = [pad; N];
    let length = text.len().min(N);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}
