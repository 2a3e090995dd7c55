//! Cases whose hosts are all after a few pages: commands of every kind come to one place while those before are not over, in the drive or
//! on their way to flash. What one has left and not yet brought to flash, the next may find, and end on the strength of it.

use super::case::Case;
use super::draw::Draw;
use super::further::goes_further;
use crate::Device;
use units::{Lba, Span};
use workload::{Io, IoKind, Range, Source};

/// Tells these draws from the others.
const COLLISIONS: u64 = 0x5eed_000c_0000_0000;

/// Requests of so many are left as they are.
const ELSEWHERE: u32 = 12;

/// Whether a case is one of these: of those that go further and are not written over and over, every third.
pub(super) fn collides(case: &Case) -> bool {
    goes_further(case) && !case.hammers() && Draw::new(case.seed ^ COLLISIONS).within(0..=2) == 0
}

/// The device has many commands of such a case at a time.
pub(super) fn crowd(case: &Case, device: &mut Device) {
    if !collides(case) {
        return;
    }
    let mut draw = Draw::new(!case.seed ^ COLLISIONS);
    device.depth = draw.of(&[2, 8, 32]).min(device.queue_entries - 1).max(device.depth);
    device.settings.commands = device.settings.commands.max(17);
}

/// When the power of such a drive is cut, after the one before: soon, for what is to be caught takes no longer than a program.
pub(super) fn moment(case: &Case, leg: u32) -> Option<Span> {
    let mut draw = Draw::new(case.seed ^ COLLISIONS ^ u64::from(leg) << 32);
    let micros = 20u64 << draw.within(0..=9);
    collides(case).then(|| Span::from_micros(micros + micros * u64::from(draw.within(0..=63)) / 64))
}

/// Of how many writes hosts of such a case send one with force unit access, and of how many reads; none of others.
pub(super) fn through(case: &Case) -> Option<[u32; 2]> {
    let mut draw = Draw::new(case.seed.rotate_left(48) ^ COLLISIONS);
    collides(case).then(|| [draw.of(&[0, 1, 2, 7]), draw.of(&[1, 1, 2, 5])])
}

/// How far what a request of such a case reaches beside its own blocks lies from these, in blocks.
pub(super) fn near(case: &Case) -> Option<u64> {
    collides(case).then_some(24)
}

/// Requests of so many are shared out to these kinds; those that are left stay what they were.
const SHARED_OUT: u32 = 16;
const KINDS: [IoKind; 4] = [IoKind::Deallocate, IoKind::WriteZeroes, IoKind::Read, IoKind::Write];

/// A source whose requests are moved together.
pub(super) struct Colliding {
    inner: Box<dyn Source>,
    draw: Draw,
    /// How many are of each of [`KINDS`].
    shares: [u32; 4],
    /// Of each namespace, its sectors; those of a block and of a page.
    namespaces: Vec<u64>,
    block: u64,
    page: u64,
    /// Where the few pages begin, and how many they are.
    from: u64,
    pages: u64,
    /// Where requests went last.
    last: [Range; 2],
}

impl Colliding {
    pub(super) fn new(inner: Box<dyn Source>, case: &Case, seed: u64, device: &Device) -> Self {
        let mut draw = Draw::new(seed ^ COLLISIONS);
        let shares = draw.of(&[[4, 1, 3, 4], [8, 0, 4, 4], [2, 2, 6, 6], [1, 0, 6, 9], [5, 5, 5, 1], [9, 1, 3, 1]]);
        let block = device.drive.format.sectors();
        let page = u64::from(device.page_sectors()).max(block);
        let namespaces = device.drive.namespaces.clone();
        let pages = Draw::new(case.seed.rotate_left(16) ^ COLLISIONS).of(&[2, 4, 9, 33]);
        let least = namespaces.iter().copied().min().unwrap_or(0);
        // Over the border of two lock regions, where there is one.
        let from = Draw::new(case.seed.rotate_left(32) ^ COLLISIONS).of(&[0, 192, 2_032]);
        let from = from.min(least.saturating_sub((pages + 1) * page)) / page * page;
        let none = Range { lba: Lba(from), sectors: block as u32 };
        Colliding { inner, draw, shares, namespaces, block, page, from, pages, last: [none; 2] }
    }

    /// Somewhere among the few pages: where one of the last requests went, whole pages, or any blocks.
    fn place(&mut self, all: u64) -> Range {
        let chosen = match self.draw.within(0..=7) {
            0..=2 => self.last[self.draw.within(0..=1) as usize],
            3..=5 => {
                let first = u64::from(self.draw.within(0..=self.pages as u32 - 1));
                let most = (self.pages - first) as u32;
                let pages = self.draw.of(&[1, 2, 2, 3, most]).min(most);
                Range { lba: Lba(self.from + first * self.page), sectors: pages * self.page as u32 }
            }
            _ => {
                let blocks = (self.pages * self.page / self.block) as u32;
                let first = self.draw.within(0..=blocks - 1);
                let length = self.draw.of(&[1, 2, 3, 9, 17]).min(blocks - first);
                let lba = Lba(self.from + u64::from(first) * self.block);
                Range { lba, sectors: length * self.block as u32 }
            }
        };
        // The end of a namespace may come before.
        let lba = chosen.lba.0.min(all - self.block);
        let sectors = u64::from(chosen.sectors).min(all - lba) / self.block * self.block;
        let range = Range { lba: Lba(lba), sectors: sectors as u32 };
        self.last = [range, self.last[0]];
        range
    }

    fn kind(&mut self, kind: IoKind) -> IoKind {
        let mut at = self.draw.within(0..=SHARED_OUT - 1);
        for (share, kind) in self.shares.into_iter().zip(KINDS) {
            match at.checked_sub(share) {
                Some(left) => at = left,
                None => return kind,
            }
        }
        kind
    }
}

impl Source for Colliding {
    fn next_io(&mut self) -> Option<Io> {
        let io = self.inner.next_io()?;
        if !io.kind.addresses() || self.draw.within(1..=ELSEWHERE) == 1 {
            return Some(io);
        }
        let all = self.namespaces[usize::from(io.device)] / self.block * self.block;
        let (kind, Range { lba, sectors }) = (self.kind(io.kind), self.place(all));
        Some(Io { kind, lba, sectors, ..io })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::small::{Small, mixed};

    #[test]
    fn a_part_of_all_cases_collides() {
        assert!((0..1_000).filter(|&seed| collides(&Case::of_seed(seed))).count() > 80);
    }

    /// Most requests come to few pages, many to the very blocks of one of the two before; all of whole blocks, and none beyond the end.
    #[test]
    fn requests_come_to_a_few_pages() {
        for seed in 0..64 {
            let small = Small::default();
            let mut device = small.device();
            device.drive.namespaces = vec![1_645];
            let case = Case::of_seed(seed);
            let mut source = Colliding::new(mixed("mixed", seed, 1_645, 1).source, &case, seed, &device);
            let (from, end) = (source.from, source.from + source.pages * source.page);
            let ios: Vec<Io> = (0..1_000).filter_map(|_| source.next_io()).filter(|io| io.kind.addresses()).collect();
            assert!(ios.iter().all(|io| io.sectors > 0 && io.end().0 <= 1_645), "seed {seed}");
            let inside = ios.iter().filter(|io| io.lba.0 >= from && io.end().0 <= end).count();
            let again =
                ios.windows(2).filter(|two| (two[0].lba, two[0].sectors) == (two[1].lba, two[1].sectors)).count();
            assert!(inside > 850 && again > 100, "seed {seed}: {inside} {again}");
        }
    }
}
