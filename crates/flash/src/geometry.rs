//! How many of everything an array has, and the only conversion between flat page numbers and places.

use crate::PLANES_MAX;
use std::sync::Arc;
use thiserror::Error;
use units::{BlockId, Bytes, ChannelId, DieId, Divisor, Limit, Ppn};

/// Bits in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// One bit a cell.
    Slc,
    /// Two bits a cell: LSB and MSB pages.
    Mlc,
    /// Three bits a cell: LSB, CSB and MSB pages.
    Tlc,
}

impl CellKind {
    /// How many pages share a word line.
    pub const fn bits(self) -> u32 {
        match self {
            CellKind::Slc => 1,
            CellKind::Mlc => 2,
            CellKind::Tlc => 3,
        }
    }
}

/// The counts an array is built from, as a device file gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Buses.
    pub channels: u32,
    /// Packages on each bus.
    pub packages_per_channel: u32,
    /// Dies in each package.
    pub dies_per_package: u32,
    /// Planes in each die, 1 to 4.
    pub planes_per_die: u32,
    /// Erase blocks in each plane.
    pub blocks_per_plane: u32,
    /// Pages in each block.
    pub pages_per_block: u32,
    /// Bytes of data in a page: a power of two from 512 B to 64 KiB.
    pub page: Bytes,
    /// Bytes of out-of-band area in a page.
    pub oob: Bytes,
    /// Bits in a cell.
    pub kind: CellKind,
}

impl Shape {
    /// What its counts may be, each for itself.
    pub const LIMITS: &[Limit<Shape>] = &[
        Limit::new("channels", |shape| shape.channels.into(), 1..=256),
        Limit::new("packages_per_channel", |shape| shape.packages_per_channel.into(), 1..=256),
        Limit::new("dies_per_package", |shape| shape.dies_per_package.into(), 1..=64),
        Limit::new("planes_per_die", |shape| shape.planes_per_die.into(), 1..=PLANES_MAX as u64),
        Limit::new("blocks_per_plane", |shape| shape.blocks_per_plane.into(), 1..=1 << 20),
        Limit::new("pages_per_block", |shape| shape.pages_per_block.into(), 1..=1 << 16),
    ];
}

/// A shape that cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GeometryError {
    /// A count is outside its range.
    #[error("{field} is {value}; expected {expected}")]
    Count {
        /// The field of the shape.
        field: &'static str,
        /// What it was.
        value: u64,
        /// What it may be.
        expected: String,
    },
    /// More pages than a 32-bit page number reaches.
    #[error("the array has {pages} pages; at most {limit} can be numbered")]
    TooManyPages {
        /// Pages of the shape.
        pages: u64,
        /// Most pages allowed.
        limit: u64,
    },
}

/// A checked [`Shape`] with its derived counts.
///
/// Blocks are numbered so that neighbours lie on different planes, then channels, then dies: block `b` is plane
/// `b % planes` of die `(b / planes) % dies`, and die `d` of the array is die `d / channels` of channel `d % channels`.
/// Blocks dealt out in order therefore spread over planes and channels first.
///
/// Clones are one: whoever takes page numbers apart finds the counts near, because others did so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry(Arc<Counts>);

/// The shape, and the counts that page numbers are taken apart by.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    shape: Shape,
    blocks: u32,
    dies_per_channel: u32,
    pages: Divisor,
    planes: Divisor,
    dies: Divisor,
    channels: Divisor,
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageAddress {
    /// On which bus.
    pub channel: ChannelId,
    /// Which die of that channel.
    pub die: DieId,
    /// Which plane of that die.
    pub plane: u32,
    /// Which block of that plane.
    pub block: u32,
    /// Which page of that block.
    pub page: u32,
}

impl Geometry {
    /// Checks a shape.
    pub fn new(shape: Shape) -> Result<Self, GeometryError> {
        let refuse =
            |field, value, expected: &str| Err(GeometryError::Count { field, value, expected: expected.to_owned() });
        for limit in Shape::LIMITS {
            if let Some(value) = limit.broken_by(&shape) {
                return refuse(limit.key, value, &limit.to_string());
            }
        }
        if !shape.page.0.is_power_of_two() || !(512..=65_536).contains(&shape.page.0) {
            return refuse("page_bytes", shape.page.0, "a power of two from 512 to 65536");
        }
        if !(20..=16_384).contains(&shape.oob.0) {
            return refuse("oob_bytes", shape.oob.0, "20 to 16384: an entry for recovery takes 20 bytes");
        }
        if !shape.pages_per_block.is_multiple_of(shape.kind.bits()) {
            let expected = "a multiple of the bits in a cell (1 SLC, 2 MLC, 3 TLC)";
            return refuse("pages_per_block", shape.pages_per_block.into(), expected);
        }
        let dies =
            u64::from(shape.channels) * u64::from(shape.packages_per_channel) * u64::from(shape.dies_per_package);
        let blocks = dies * u64::from(shape.planes_per_die) * u64::from(shape.blocks_per_plane);
        let pages = blocks.saturating_mul(shape.pages_per_block.into());
        // The two highest numbers stay free for "unmapped" and "pristine" marks in 4-byte map entries.
        let limit = u64::from(u32::MAX) - 2;
        if pages > limit {
            return Err(GeometryError::TooManyPages { pages, limit });
        }
        Ok(Geometry(Arc::new(Counts {
            blocks: blocks as u32,
            dies_per_channel: dies as u32 / shape.channels,
            pages: Divisor::new(shape.pages_per_block),
            planes: Divisor::new(shape.planes_per_die),
            dies: Divisor::new(dies as u32),
            channels: Divisor::new(shape.channels),
            shape,
        })))
    }

    /// The counts it was built from.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }
    /// Dies on all channels.
    pub fn die_count(&self) -> u32 {
        self.0.dies.value()
    }
    /// Dies on one channel.
    #[inline]
    pub fn dies_per_channel(&self) -> u32 {
        self.0.dies_per_channel
    }
    /// Blocks of the array.
    pub fn block_count(&self) -> u32 {
        self.0.blocks
    }
    /// Pages of the array.
    pub fn page_count(&self) -> u32 {
        self.0.blocks * self.0.shape.pages_per_block
    }
    /// Bytes of data the array holds.
    pub fn capacity(&self) -> Bytes {
        self.0.shape.page * u64::from(self.page_count())
    }
    /// The block a page lies in.
    #[inline]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.0.pages.quotient(ppn.0))
    }
    /// A page's position in its block.
    #[inline]
    pub fn page_in_block(&self, ppn: Ppn) -> u32 {
        self.0.pages.remainder(ppn.0)
    }
    /// The page at a position of a block.
    pub fn page(&self, block: BlockId, page: u32) -> Ppn {
        debug_assert!(block.0 < self.0.blocks && page < self.0.shape.pages_per_block);
        Ppn(block.0 * self.0.shape.pages_per_block + page)
    }
    /// Channel and die of a block, without the rest of the address.
    #[inline]
    pub fn die_of(&self, block: BlockId) -> (ChannelId, DieId) {
        let (die, channel) = self.0.channels.divide(self.0.dies.remainder(self.0.planes.quotient(block.0)));
        (ChannelId(channel as u16), DieId(die as u16))
    }
    /// Channel of a block, and its index among the blocks of that channel, which counts from 0 without gaps.
    #[inline]
    pub fn block_in_channel(&self, block: BlockId) -> (ChannelId, usize) {
        let (column, plane) = self.0.planes.divide(block.0);
        let (row, channel) = self.0.channels.divide(column);
        (ChannelId(channel as u16), (row * self.0.planes.value() + plane) as usize)
    }
    /// Takes a page number apart.
    #[inline]
    pub fn address(&self, ppn: Ppn) -> PageAddress {
        let (block, page) = self.0.pages.divide(ppn.0);
        let (column, plane) = self.0.planes.divide(block);
        let (block, die) = self.0.dies.divide(column);
        let (die, channel) = self.0.channels.divide(die);
        PageAddress { channel: ChannelId(channel as u16), die: DieId(die as u16), plane, block, page }
    }
    /// Puts a page number together; the inverse of [`Geometry::address`].
    pub fn ppn(&self, at: PageAddress) -> Ppn {
        let die = u32::from(at.die.0) * self.0.shape.channels + u32::from(at.channel.0);
        let block = (at.block * self.0.dies.value() + die) * self.0.shape.planes_per_die + at.plane;
        self.page(BlockId(block), at.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            channels: 16,
            packages_per_channel: 16,
            dies_per_package: 4,
            planes_per_die: 4,
            blocks_per_plane: 256,
            pages_per_block: 256,
            page: Bytes(4096),
            oob: Bytes(224),
            kind: CellKind::Mlc,
        }
    }

    #[test]
    fn table_1_of_deepflash_is_one_tebibyte() {
        let geometry = Geometry::new(shape()).unwrap();
        assert_eq!(geometry.capacity(), Bytes(1 << 40));
        assert_eq!(geometry.die_count(), 1024);
    }

    #[test]
    fn addresses_and_numbers_are_inverse() {
        let geometry =
            Geometry::new(Shape { channels: 3, pages_per_block: 18, kind: CellKind::Tlc, ..shape() }).unwrap();
        for ppn in (0..geometry.page_count()).step_by(997).map(Ppn) {
            assert_eq!(geometry.ppn(geometry.address(ppn)), ppn);
        }
    }

    #[test]
    fn blocks_of_a_channel_count_without_gaps() {
        let geometry = Geometry::new(Shape { channels: 3, planes_per_die: 2, blocks_per_plane: 5, ..shape() }).unwrap();
        let mut next = [0; 3];
        for block in (0..geometry.block_count()).map(BlockId) {
            let (channel, index) = geometry.block_in_channel(block);
            assert_eq!((channel, index), (geometry.die_of(block).0, next[channel.index()]));
            next[channel.index()] += 1;
        }
        assert_eq!(next, [geometry.block_count() as usize / 3; 3]);
    }

    #[test]
    fn impossible_shapes_name_the_field() {
        let error = Geometry::new(Shape { planes_per_die: 0, ..shape() }).unwrap_err();
        assert_eq!(error.to_string(), "planes_per_die is 0; expected 1 to 4");
        let error = Geometry::new(Shape { page: Bytes(5000), ..shape() }).unwrap_err();
        assert_eq!(error.to_string(), "page_bytes is 5000; expected a power of two from 512 to 65536");
        let huge = Shape { blocks_per_plane: 1 << 20, ..shape() };
        assert!(matches!(Geometry::new(huge), Err(GeometryError::TooManyPages { .. })));
    }
}
