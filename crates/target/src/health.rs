//! How the drive is, beyond what goes through the front end.

use nvme::spec::log_page::warning;

/// How the drive is, beyond what goes through the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveHealth {
    /// How much of the endurance is used, in per cent.
    pub percentage_used: u8,
    /// How much of the spare capacity is left, in per cent.
    pub available_spare: u8,
    /// Whether it takes no more writes.
    pub read_only: bool,
    /// What its media have done.
    pub media: MediaHealth,
    /// How often it was switched on.
    pub power: PowerCycles,
}

/// How often a drive was switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCycles {
    /// Times that it was switched on, this one included.
    pub count: u64,
    /// Times before this one that it did not end in order.
    pub unsafe_shutdowns: u64,
}

impl PowerCycles {
    /// Of a drive that nothing is known of before this time.
    pub const FIRST: PowerCycles = PowerCycles { count: 1, unsafe_shutdowns: 0 };
}

/// What the media of the drive have done and what they are like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaHealth {
    /// Bytes programmed.
    pub written: u128,
    /// Bytes read.
    pub read: u128,
    /// Bytes that can be programmed in the life of the drive; 0 is not known.
    pub endurance: u128,
    /// Bytes of logical pages that are on flash, zeroes that a deallocation left among them.
    pub used: u64,
    /// Blocks that are used no more.
    pub bad_blocks: u64,
    /// Pages that could not be read.
    pub uncorrectable: u64,
    /// Pages that were read again at another level.
    pub retries: u64,
    /// The fewest and the most erases of a block.
    pub erases: (u32, u32),
    /// Free blocks, in per cent.
    pub free_blocks: u8,
}

impl DriveHealth {
    #[cfg(test)]
    pub(crate) const NEW: DriveHealth = DriveHealth {
        percentage_used: 0,
        available_spare: 100,
        read_only: false,
        media: MediaHealth {
            written: 0,
            read: 0,
            endurance: 0,
            used: 0,
            bad_blocks: 0,
            uncorrectable: 0,
            retries: 0,
            erases: (0, 0),
            free_blocks: 100,
        },
        power: PowerCycles::FIRST,
    };

    /// Bits of the critical warning (Base §5.16.1.3).
    pub(crate) fn warnings(self) -> u8 {
        let spare = if self.available_spare < SPARE_THRESHOLD { warning::SPARE } else { 0 };
        spare | if self.read_only { warning::READ_ONLY } else { 0 }
    }
}

/// Spare capacity below which there is a warning, in per cent.
pub(crate) const SPARE_THRESHOLD: u8 = 10;
