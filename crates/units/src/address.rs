//! Addresses of the host, of the mapping and of the flash array; each a type of its own.

use std::fmt;
use std::ops::Add;

/// Bytes in the unit that [`Lba`] counts, whatever LBA format a namespace shows to its host.
pub const SECTOR_BYTES: u64 = 512;

/// A sector of the drive as the host numbers it, in units of [`SECTOR_BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// A logical page: the unit of address translation. 32 bits keep a map entry at 4 bytes and reach 16 TiB of 4 KiB pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpn(pub u32);

/// A physical page, numbered flat over the array; only `flash::Geometry` takes it apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppn(pub u32);

/// A byte address in host memory, as PRP entries hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostAddress(pub u64);

impl Add<u64> for HostAddress {
    type Output = HostAddress;
    #[inline]
    fn add(self, bytes: u64) -> HostAddress {
        HostAddress(self.0.wrapping_add(bytes))
    }
}
impl Add<u64> for Lba {
    type Output = Lba;
    #[inline]
    fn add(self, sectors: u64) -> Lba {
        Lba(self.0 + sectors)
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lba{}", self.0)
    }
}
impl fmt::Display for Lpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lpn{}", self.0)
    }
}
impl fmt::Display for Ppn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ppn{}", self.0)
    }
}
