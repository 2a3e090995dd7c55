//! What a run sets of any workload: the drive it is drawn for, the seed, and what replaces the workload's own choices.

use thiserror::Error;
use units::{Bytes, Lba, SECTOR_BYTES};

/// Largest request that a generator draws, as in the microbenchmarks of drives' data sheets.
pub const REQUEST_MAX: Bytes = Bytes::mib(1);

/// Beyond, byte addresses would overflow.
pub(crate) const CAPACITY_MAX: u64 = u64::MAX / SECTOR_BYTES;

/// A part of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first sector.
    pub start: Lba,
    /// Its sectors.
    pub sectors: u64,
}

/// The run's side of a workload. Whatever is `None` stays as the workload itself says.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Sectors of the drive.
    pub capacity: u64,
    /// The seed of all draws.
    pub seed: u64,
    /// Which places are popular, where some are: whatever else is drawn, the same number makes the same ones so.
    pub popular: u64,
    /// One request size in place of the workload's own.
    pub block: Option<Bytes>,
    /// Reads among reads and writes, 0 to 1, in place of the workload's own.
    pub read_fraction: Option<f64>,
    /// Boundary on which requests that do not continue another begin, in place of the workload's own.
    pub alignment: Option<Bytes>,
    /// The part of the drive to stay in, instead of all of it.
    pub region: Option<Region>,
    /// Sequential streams, in place of the workload's own number.
    pub streams: Option<u32>,
    /// Queues of the host: as many streams has a sequential workload that does not say how many.
    pub queues: u32,
    /// Arrivals a second, exponentially spaced, in place of the workload's own arrivals.
    pub per_second: Option<f64>,
}

impl Parameters {
    /// Everything as the workload says, over a drive of so many sectors, for a host with one queue.
    pub fn new(capacity: u64, seed: u64) -> Self {
        let (block, read_fraction, alignment, region, per_second) = (None, None, None, None, None);
        let (streams, queues) = (None, 1);
        let popular = seed;
        Parameters { capacity, seed, popular, block, read_fraction, alignment, region, streams, queues, per_second }
    }

    /// The region to draw from, checked against the capacity.
    pub(crate) fn checked_region(&self) -> Result<Region, UnusableParameter> {
        if self.capacity == 0 || self.capacity > CAPACITY_MAX {
            let expected = format!("from 1 to {CAPACITY_MAX} sectors");
            return Err(UnusableParameter::new("capacity", self.capacity, expected));
        }
        let region = self.region.unwrap_or(Region { start: Lba(0), sectors: self.capacity });
        if region.sectors == 0 {
            return Err(UnusableParameter::new("region", 0, "one sector or more"));
        }
        match region.start.0.checked_add(region.sectors) {
            Some(end) if end <= self.capacity => Ok(region),
            _ => {
                let found = format!("{} sectors from {}", region.sectors, region.start);
                Err(UnusableParameter::new("region", found, format!("one within {} sectors", self.capacity)))
            }
        }
    }

    /// The complaint about a request of so many sectors that is longer than what it is drawn from: what the run cut out of the drive is to
    /// blame for it first, then the size that the run says, then the drive.
    pub(crate) fn without_room(&self, largest: u32, sectors: u64) -> UnusableParameter {
        if self.region.is_none() && self.block.is_some() {
            let expected = format!("a size within the {sectors} sectors to draw from");
            return UnusableParameter::new("block", format!("{largest} sectors"), expected);
        }
        let field = if self.region.is_some() { "region" } else { "capacity" };
        let expected = format!("at least {largest} sectors of {SECTOR_BYTES} B, as long as the largest request");
        UnusableParameter::new(field, format!("{sectors} sectors"), expected)
    }
}

/// A value that no workload can be drawn from.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {found}; expected {expected}")]
pub struct UnusableParameter {
    /// The field as workload files and [`Parameters`] name it.
    pub field: String,
    /// What it holds.
    pub found: String,
    /// What it may hold.
    pub expected: String,
}

impl UnusableParameter {
    pub(crate) fn new(field: &str, found: impl ToString, expected: impl ToString) -> Self {
        UnusableParameter { field: field.into(), found: found.to_string(), expected: expected.to_string() }
    }
}

/// A request size in sectors.
pub(crate) fn checked_size(field: &str, bytes: u64) -> Result<u32, UnusableParameter> {
    if bytes == 0 || bytes > REQUEST_MAX.0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        let expected = format!("a multiple of {SECTOR_BYTES} bytes from {SECTOR_BYTES} to {}", REQUEST_MAX.0);
        return Err(UnusableParameter::new(field, format!("{bytes} bytes"), expected));
    }
    Ok((bytes / SECTOR_BYTES) as u32)
}

/// A finite number within bounds.
pub(crate) fn checked_number(field: &str, found: f64, low: f64, high: f64) -> Result<f64, UnusableParameter> {
    // Written so that "not a number" fails too.
    if found >= low && found <= high {
        return Ok(found);
    }
    Err(UnusableParameter::new(field, short_number(found), format!("a number from {low} to {high}")))
}

/// A number as short as it can be written without loss: plain decimals of 1e300 are three hundred digits.
pub fn short_number(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    let (plain, scientific) = (number.to_string(), format!("{number:e}"));
    if plain.len() > 20 && scientific.len() < plain.len() { scientific } else { plain }
}
