//! Log pages (Base §5.16.1).

use super::layout::layout;

/// Which pages there are (Base §5.16.1.1).
pub const SUPPORTED_PAGES: u8 = 0x00;
/// Errors, the newest first (Base §5.16.1.2).
pub const ERRORS: u8 = 0x01;
/// Health and what the drive has done so far (Base §5.16.1.3).
pub const HEALTH: u8 = 0x02;
/// Firmware slots (Base §5.16.1.4).
pub const FIRMWARE: u8 = 0x03;
/// Namespaces that changed since the page was read (Base §5.16.1.5).
pub const CHANGED_NAMESPACES: u8 = 0x04;
/// Which commands there are and what they change (Base §5.16.1.6).
pub const EFFECTS: u8 = 0x05;
/// Self-tests, the last one first (Base §5.16.1.7).
pub const SELF_TEST: u8 = 0x06;
/// Endurance and its use, of a group (Base §5.16.1.10).
pub const ENDURANCE_GROUP: u8 = 0x09;
/// SMART / Health Information Extended of the OCP Datacenter NVMe SSD Specification 2.0 (§4.8.2).
pub const OCP_HEALTH: u8 = 0xc0;
/// Latency Monitor of the same (§4.8.4).
pub const OCP_LATENCY: u8 = 0xc3;
/// Which features there are (Base §5.16.1.18).
pub const FEATURES: u8 = 0x12;

/// Which subsystems can be reached, and how (Base §5.16.1.23).
pub const DISCOVERY: u8 = 0x70;

/// Every page a storage controller has.
pub const ALL: &[u8] = &[SUPPORTED_PAGES, ERRORS, HEALTH, FIRMWARE, CHANGED_NAMESPACES, EFFECTS, FEATURES];

/// Every page a discovery controller has.
pub const OF_DISCOVERY: &[u8] = &[SUPPORTED_PAGES, ERRORS, DISCOVERY];

layout! {
    /// One entry of the error log (Base §5.16.1.2).
    ErrorEntry[64] {
        /// Errors so far, this one included; 0 marks an empty entry.
        count, set_count: u64 = 0;
        /// The submission queue of the command; FFFFh where there was none.
        queue, set_queue: u16 = 8;
        /// The command; FFFFh where there was none.
        command_id, set_command_id: u16 = 10;
        /// Its status, shifted left by one as in a completion.
        status, set_status: u16 = 12;
        /// Byte (7:0) and bit (10:8) of the command that was wrong; FFFFh where none was.
        location, set_location: u16 = 14;
        /// The first logical block in error.
        block, set_block: u64 = 16;
        /// The namespace.
        namespace, set_namespace: u32 = 24;
        /// TRTYPE of an error of the transport, else 0.
        transport, set_transport: u8 = 29;
        /// What the command's specification says of it.
        specific, set_specific: u64 = 32;
    }
}

layout! {
    /// SMART / Health Information (Base §5.16.1.3).
    HealthPage[512] {
        /// Bits of what is wrong, see [`super::log_page::warning`].
        critical_warning, set_critical_warning: u8 = 0;
        /// In kelvin.
        temperature, set_temperature: u16 = 1;
        /// Spare capacity left, in per cent.
        available_spare, set_available_spare: u8 = 3;
        /// Spare below which there is a warning, in per cent.
        spare_threshold, set_spare_threshold: u8 = 4;
        /// Of the endurance, in per cent; may pass 100.
        percentage_used, set_percentage_used: u8 = 5;
        /// Bits of what is wrong with any endurance group, see [`super::log_page::warning::OF_GROUPS`].
        group_warnings, set_group_warnings: u8 = 6;
        /// Thousands of 512-byte units, rounded up.
        data_units_read, set_data_units_read: u128 = 32;
        /// Thousands of 512-byte units, rounded up.
        data_units_written, set_data_units_written: u128 = 48;
        /// Read commands completed.
        host_reads, set_host_reads: u128 = 64;
        /// Write commands completed.
        host_writes, set_host_writes: u128 = 80;
        /// Minutes with I/O outstanding.
        busy_minutes, set_busy_minutes: u128 = 96;
        /// Times power came.
        power_cycles, set_power_cycles: u128 = 112;
        /// Hours of power.
        power_on_hours, set_power_on_hours: u128 = 128;
        /// Times power went without a shutdown.
        unsafe_shutdowns, set_unsafe_shutdowns: u128 = 144;
        /// Data that were not recovered, or are not what they should be.
        media_errors, set_media_errors: u128 = 160;
        /// Entries ever made in the error log.
        error_entries, set_error_entries: u128 = 176;
    }
}

layout! {
    /// Endurance Group Information (Base §5.16.1.10).
    EnduranceGroupPage[512] {
        /// Bits of what is wrong, in the places of the health page's.
        critical_warning, set_critical_warning: u8 = 0;
        /// Spare capacity left, in per cent.
        available_spare, set_available_spare: u8 = 3;
        /// Spare below which there is a warning, in per cent.
        spare_threshold, set_spare_threshold: u8 = 4;
        /// Of the endurance, in per cent.
        percentage_used, set_percentage_used: u8 = 5;
        /// Billions of bytes that can be written in the life of the group if the drive itself writes no more than its hosts do; 0 is not
        /// told.
        endurance_estimate, set_endurance_estimate: u128 = 32;
        /// Billions of bytes read by hosts, rounded up.
        data_units_read, set_data_units_read: u128 = 48;
        /// Billions of bytes written by hosts, rounded up.
        data_units_written, set_data_units_written: u128 = 64;
        /// Billions of bytes written to the media, rounded up.
        media_units_written, set_media_units_written: u128 = 80;
        /// Read commands completed.
        host_reads, set_host_reads: u128 = 96;
        /// Write commands completed.
        host_writes, set_host_writes: u128 = 112;
        /// Data that were not recovered, or are not what they should be.
        media_errors, set_media_errors: u128 = 128;
        /// Entries ever made in the error log.
        error_entries, set_error_entries: u128 = 144;
        /// Bytes of the group.
        capacity, set_capacity: u128 = 160;
        /// Bytes that no namespace has.
        unallocated, set_unallocated: u128 = 176;
    }
}

layout! {
    /// Device Self-test (Base §5.16.1.7): what runs, and 20 results of 28 bytes from byte 4 on.
    SelfTestPage[564] {
        /// 0 nothing runs, 1 a short test, 2 an extended one.
        current, set_current: u8 = 0;
        /// How much of it is done, in per cent.
        completion, set_completion: u8 = 1;
    }
}

layout! {
    /// SMART / Health Information Extended (OCP Datacenter NVMe SSD Specification 2.0 §4.8.2).
    OcpHealthPage[512] {
        /// Bytes written to the media.
        media_written, set_media_written: u128 = 0;
        /// Bytes read from the media.
        media_read, set_media_read: u128 = 16;
        /// Blocks retired: their number in bits 47:0, and what is left of the spare ones in per cent in bits 63:48.
        bad_user_blocks, set_bad_user_blocks: u64 = 32;
        /// The same of blocks for the firmware itself.
        bad_system_blocks, set_bad_system_blocks: u64 = 40;
        /// Reads that could not be corrected.
        uncorrectable_reads, set_uncorrectable_reads: u64 = 56;
        /// Reads that were corrected only at another level.
        soft_corrections, set_soft_corrections: u64 = 64;
        /// The most erases of a block.
        erases_max, set_erases_max: u32 = 88;
        /// The fewest.
        erases_min, set_erases_min: u32 = 92;
        /// Version of the specification: errata, point, minor, major.
        errata, set_errata: u8 = 98;
        /// Point version.
        point, set_point: u16 = 99;
        /// Minor version.
        minor, set_minor: u16 = 101;
        /// Major version.
        major, set_major: u8 = 103;
        /// Shutdowns that did not bring everything to flash.
        incomplete_shutdowns, set_incomplete_shutdowns: u32 = 112;
        /// Free blocks, in per cent.
        free_blocks, set_free_blocks: u8 = 120;
        /// FFFFh: there is no capacitor to tell of.
        capacitor, set_capacitor: u16 = 128;
        /// Writes that do not begin at a mapping unit of the drive (indirection unit); their length does not matter.
        unaligned, set_unaligned: u64 = 136;
        /// Logical blocks in use, of all namespaces (Total NUSE).
        used, set_used: u64 = 152;
        /// The same as that of the endurance group's page (Endurance Estimate).
        endurance_estimate, set_endurance_estimate: u128 = 176;
        /// Version of this page's layout.
        version, set_version: u16 = 494;
        /// What says that it is this page.
        guid, set_guid: [u8; 16] = 496;
    }
}

layout! {
    /// Firmware Slot Information (Base §5.16.1.4).
    FirmwarePage[512] {
        /// Slot in use, bits 2:0.
        active, set_active: u8 = 0;
        /// Revision in slot 1.
        slot1, set_slot1: [u8; 8] = 8;
    }
}

/// Bits of the critical warning of [`HealthPage`], which are also the low bits of the Asynchronous Event Configuration
/// feature.
pub mod warning {
    /// Spare capacity is below its threshold.
    pub const SPARE: u8 = 1;
    /// The temperature is outside its thresholds.
    pub const TEMPERATURE: u8 = 1 << 1;
    /// Media errors have made the drive unreliable.
    pub const RELIABILITY: u8 = 1 << 2;
    /// Media accept no more writes.
    pub const READ_ONLY: u8 = 1 << 3;
    /// What keeps volatile memory over a power failure has failed.
    pub const BACKUP_FAILED: u8 = 1 << 4;
    /// Those that endurance groups have, too (Base §5.16.1.3, byte 6).
    pub const OF_GROUPS: u8 = SPARE | RELIABILITY | READ_ONLY;
}
