//! Sectors of a page that a command means: where they are on the drive and in their frame, and how a Copy moves them.

use crate::Drive;
use crate::tables::Frames;
use std::ops::Range;
use units::Lpn;

/// The sectors of a page that are meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meant {
    pub(crate) lpn: Lpn,
    /// The first of the page's sectors, and one past the last.
    pub(crate) sectors: [u8; 2],
}

impl Meant {
    /// The first of them, counted over the whole drive.
    #[inline]
    pub(crate) fn first(self, drive: &Drive) -> u64 {
        u64::from(self.lpn.0) * u64::from(drive.sectors_per_page()) + u64::from(self.sectors[0])
    }

    /// Their payload words in the frame of the page.
    #[inline]
    pub(crate) fn words(self, drive: &Drive) -> Range<usize> {
        let ([from, to], words) = (self.sectors.map(usize::from), drive.sector_words());
        from * words..to * words
    }

    /// A Copy takes them out of their frame into the page that it keeps, from this sector of that on.
    pub(crate) fn collect(self, drive: &Drive, frames: &Frames, frame: u32, (kept, at): (&mut [u64], usize)) {
        let (words, kept) = (self.words(drive), self.part(drive, kept, at));
        frames.read(frame, words.start, kept);
        drive.displace(kept, self.first(drive));
    }

    /// A Copy puts them into their frame, as it keeps them from this sector of its page on.
    pub(crate) fn deposit(self, drive: &Drive, frames: &Frames, frame: u32, (kept, at): (&mut [u64], usize)) {
        let (words, kept) = (self.words(drive), self.part(drive, kept, at));
        drive.displace(kept, self.first(drive));
        frames.write(frame, words.start, kept);
    }

    fn part<'a>(self, drive: &Drive, kept: &'a mut [u64], at: usize) -> &'a mut [u64] {
        let first = at * drive.sector_words();
        &mut kept[first..][..self.words(drive).len()]
    }
}
