//! Sizes in bytes.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// So many kibibytes.
    #[inline]
    pub const fn kib(count: u64) -> Self {
        Bytes(count << 10)
    }
    /// So many mebibytes.
    #[inline]
    pub const fn mib(count: u64) -> Self {
        Bytes(count << 20)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    #[inline]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}
impl Mul<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0 * times)
    }
}

impl fmt::Display for Bytes {
    /// Decimal units with one digit: `4.8 GB`, `512 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} B", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kB", bytes / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", bytes / 1e6),
            1_000_000_000..1_000_000_000_000 => write!(f, "{:.1} GB", bytes / 1e9),
            _ => write!(f, "{:.1} TB", bytes / 1e12),
        }
    }
}
