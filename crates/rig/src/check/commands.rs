//! Commands that a workload has no share of: Verify, Write Uncorrectable, Copy, Dataset Management with many ranges, and Compare and Write
//! as a fused pair. A part of the requests that are drawn become these, by draws of their own.

use super::case::Case;
use super::collide;
use super::draw::Draw;
use super::levelled::levels;
use crate::Device;
use firmware::{MappingScheme, Mutation};
use nvme::spec::{COPY_BYTES_MAX, COPY_RANGES_MAX};
use units::{Lba, SECTOR_BYTES};
use workload::{Io, IoKind, Range, Source};

/// Tells these draws from the others.
const COMMANDS: u64 = 0x5eed_000b_0000_0000;

/// The same for fused pairs. The cases that once failed have none.
const PAIRS: u64 = 0x5eed_0010_0000_0000;

/// How far requests reach for the most part, in blocks, unless all are after a few pages.
const NEAR: u64 = 512;

/// What becomes of one request of so many; 0 is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// Of reads, a Verify.
    verify: u32,
    /// Of writes, a Write Uncorrectable.
    spoil: u32,
    /// Of writes, a Copy.
    copy: u32,
    /// Of Deallocates, one with further ranges.
    ranges: u32,
    /// How far from where it goes a Copy reads for the most part, and a Deallocate has further ranges; in blocks.
    near: u64,
}

/// Of every second case, which of these its hosts send. Where flash fails, a page that cannot be read is lost, so that no host makes
/// one so besides. With a planted bug of other parts the cases are what they were.
pub(super) fn shares(case: &Case, device: &Device) -> Option<Shares> {
    let mut draw = Draw::new(case.seed.rotate_left(24) ^ COMMANDS);
    let (is_drawn, planted) = (draw.coin(), case.mutation);
    let near = collide::near(case).unwrap_or(NEAR);
    if planted.is_some_and(Mutation::concerns_commands) {
        return Some(Shares { verify: 8, spoil: 15, copy: 5, ranges: 1, near });
    }
    if planted.is_some() || !is_drawn {
        return None;
    }
    let shares = Shares {
        verify: draw.of(&[0, 8, 3]),
        spoil: draw.of(&[0, 0, 60, 15]),
        copy: draw.of(&[0, 20, 5]),
        ranges: draw.of(&[0, 1, 2]),
        near,
    };
    // Long runs leave too much to know of what was copied.
    let copy = if levels(case) { 0 } else { shares.copy };
    Some(Shares { spoil: if device.damages_pages() { 0 } else { shares.spoil }, copy, ..shares })
}

/// Of how many writes that could be one hosts send one as a fused pair; 0 is none. With a planted bug of other parts the cases are what
/// they were.
pub(super) fn pairs(case: &Case) -> u32 {
    match case.mutation {
        Some(planted) if planted.concerns_pairs() => 2,
        Some(_) => 0,
        None => Draw::new(case.seed ^ PAIRS).of(&[0, 0, 2, 9]),
    }
}

/// A source of which some requests are others.
pub(super) struct Varied {
    pub(super) inner: Box<dyn Source>,
    shares: Shares,
    draw: Draw,
    /// Sectors of each namespace, and of a block.
    namespaces: Vec<u64>,
    block: u64,
    /// Further ranges of a Deallocate at most.
    ranges_most: u32,
    ranges: Vec<Range>,
}

impl Varied {
    pub(super) fn new(inner: Box<dyn Source>, shares: Shares, seed: u64, device: &Device) -> Self {
        let (namespaces, block) = (device.drive.namespaces.clone(), device.drive.format.sectors());
        let ranges_most = match device.settings.mapping {
            // Those of many commands at one place would keep the others waiting for longer than hosts do.
            MappingScheme::Page if shares.near < NEAR => 20,
            MappingScheme::Page => 255,
            // Each takes a merge.
            MappingScheme::Hybrid { .. } => 5,
        };
        Varied { inner, shares, draw: Draw::new(seed ^ COMMANDS), namespaces, block, ranges_most, ranges: Vec::new() }
    }

    fn is_turn(&mut self, one_of: u32) -> bool {
        one_of > 0 && self.draw.within(1..=one_of) == 1
    }

    /// So many blocks of the namespace, somewhere, mostly near a block.
    fn place(&mut self, blocks: u64, near: u64, all: u64) -> u64 {
        let (from, to) = match self.draw.within(0..=3) {
            0 => (0, all),
            _ => (near.saturating_sub(self.shares.near), (near + self.shares.near + blocks).min(all)),
        };
        let room = to.saturating_sub(from).saturating_sub(blocks);
        (from + u64::from(self.draw.within(0..=room as u32))).min(all - blocks)
    }

    /// A Copy of so many blocks in all, from one range or several. False where the namespace has no room for one.
    fn draw_sources(&mut self, io: &Io) -> bool {
        let (blocks, all) = (u64::from(io.sectors) / self.block, self.namespaces[usize::from(io.device)] / self.block);
        let pieces = u64::from(self.draw.of(&[1, 1, 2, 5, COPY_RANGES_MAX])).min(blocks);
        let mut left = blocks;
        for piece in (0..pieces).rev() {
            let most = left - piece;
            let length = if piece == 0 { left } else { 1 + u64::from(self.draw.within(0..=(most - 1) as u32)) % most };
            let target = io.lba.0 / self.block;
            let mut first = self.place(length, target, all);
            if first < target + blocks && target < first + length {
                // It reads nothing that it writes.
                first = target.checked_sub(length).unwrap_or(target + blocks);
                if first + length > all {
                    return false;
                }
            }
            let sectors = (length * self.block) as u32;
            self.ranges.push(Range { lba: Lba(first * self.block), sectors });
            left -= length;
        }
        true
    }

    /// Further ranges of a Deallocate: some short, few long, some of nothing, over each other too.
    fn draw_ranges(&mut self, io: &Io) {
        let all = self.namespaces[usize::from(io.device)] / self.block;
        for _ in 0..self.draw.of(&[1, 3, 3, 20, 255]).min(self.ranges_most) {
            let longest = self.draw.of(&[0, 1, 2, 8, 8, 8, 16, 64]);
            let length = u64::from(self.draw.within(0..=longest)).min(all);
            let first = self.place(length, io.lba.0 / self.block, all);
            self.ranges.push(Range { lba: Lba(first * self.block), sectors: (length * self.block) as u32 });
        }
    }
}

impl Source for Varied {
    fn next_io(&mut self) -> Option<Io> {
        let mut io = self.inner.next_io()?;
        self.ranges.clear();
        let Shares { verify, spoil, copy, ranges, .. } = self.shares;
        match io.kind {
            IoKind::Read if self.is_turn(verify) => io.kind = IoKind::Verify,
            IoKind::Write if self.is_turn(spoil) => io.kind = IoKind::WriteUncorrectable,
            IoKind::Write if u64::from(io.sectors) * SECTOR_BYTES <= COPY_BYTES_MAX && self.is_turn(copy) => {
                if self.draw_sources(&io) {
                    io.kind = IoKind::Copy;
                } else {
                    self.ranges.clear();
                }
            }
            IoKind::Deallocate if self.is_turn(ranges) => self.draw_ranges(&io),
            _ => {}
        }
        Some(io)
    }

    fn ranges(&self) -> &[Range] {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::small::Small;
    use firmware::MUTATIONS;

    /// A planted bug of other parts is looked for where it was.
    #[test]
    fn bugs_of_commands_are_looked_for_with_them_and_others_without() {
        let device = Small::default().device();
        for planted in MUTATIONS {
            let case = Case { mutation: Some(planted.mutation), ..Case::of_seed(3) };
            assert_eq!(shares(&case, &device).is_some(), planted.mutation.concerns_commands(), "{}", planted.name);
        }
    }
}
