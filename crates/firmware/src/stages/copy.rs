//! Copy: what it moves, in steps that lie within a page on either side. The same for every firmware.
//!
//! The sectors of a page of the target are collected one piece after another into the page that a command has for this, and then
//! deposited. A step is over before the next one begins, so source and target may be any pages, the same ones too.

/// A part of a Copy, within one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyStep {
    /// Whether the sectors are written, and not read.
    pub(crate) deposits: bool,
    /// The first of them, counted over the whole drive.
    pub(crate) sector: u64,
    /// How many.
    pub(crate) sectors: u32,
    /// The sector of the command's page where they are, or go.
    pub(crate) at: u32,
    /// The first range that is not copied whole before this step is over.
    pub(crate) range: u8,
}

/// How far a Copy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyCursor {
    /// The range that is read, and how many of its sectors have been.
    range: u16,
    read: u64,
    /// The next sector of the target, how many sectors are collected for it, and the range of the first of these.
    pub(super) target: u64,
    held: u32,
    oldest: u16,
}

impl CopyCursor {
    /// The beginning of a Copy to a sector of the drive.
    pub(crate) fn new(target: u64) -> Self {
        CopyCursor { target, ..CopyCursor::default() }
    }

    /// The next step, where `range` tells first sector and length of each of so many ranges.
    pub(crate) fn next(&mut self, per_page: u32, ranges: u16, range: impl Fn(u16) -> (u64, u64)) -> Option<CopyStep> {
        while self.range < ranges && self.read == range(self.range).1 {
            (self.range, self.read) = (self.range + 1, 0);
        }
        let in_page = |sector: u64| (sector % u64::from(per_page)) as u32;
        let (begin, held) = (in_page(self.target), self.held);
        let room = per_page - begin - held;
        if held == 0 {
            self.oldest = self.range;
        }
        let oldest = self.oldest as u8;
        if self.range < ranges && room > 0 {
            let (first, sectors) = range(self.range);
            let sector = first + self.read;
            let count = (sectors - self.read).min(u64::from(room.min(per_page - in_page(sector)))) as u32;
            self.read += u64::from(count);
            self.held += count;
            return Some(CopyStep { deposits: false, sector, sectors: count, at: begin + held, range: oldest });
        }
        if held == 0 {
            return None;
        }
        let step = CopyStep { deposits: true, sector: self.target, sectors: held, at: begin, range: oldest };
        self.target += u64::from(held);
        self.held = 0;
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(target: u64, ranges: &[(u64, u64)]) -> Vec<CopyStep> {
        let mut cursor = CopyCursor::new(target);
        std::iter::from_fn(|| cursor.next(8, ranges.len() as u16, |at| ranges[usize::from(at)])).collect()
    }

    #[test]
    fn a_page_is_collected_from_the_pages_that_hold_it() {
        let step = |deposits, sector, sectors, at, range| CopyStep { deposits, sector, sectors, at, range };
        let expected = [
            step(false, 6, 2, 3, 0),
            step(false, 8, 1, 5, 0),
            step(false, 40, 2, 6, 0),
            // The first of its two ranges is whole when this is over.
            step(true, 83, 5, 3, 0),
            step(false, 42, 1, 0, 1),
            step(true, 88, 1, 0, 1),
        ];
        assert_eq!(steps(83, &[(6, 3), (40, 3)]), expected);
        assert_eq!(steps(0, &[]), []);
    }

    proptest! {
        /// Carried out on a drive of numbered sectors, the steps are what copying sector by sector is, where ranges lie apart.
        #[test]
        fn the_steps_together_are_the_copy(
            target in 200u64..300, ranges in prop::collection::vec((0u64..150, 1u64..20), 1..6),
        ) {
            let mut drive: Vec<u64> = (0..600).collect();
            let mut due = drive.clone();
            let mut to = target as usize;
            for &(first, sectors) in &ranges {
                for sector in first..first + sectors {
                    due[to] = sector;
                    to += 1;
                }
            }
            let mut page = [0; 8];
            for step in steps(target, &ranges) {
                let (sector, count, at) = (step.sector as usize, step.sectors as usize, step.at as usize);
                prop_assert!(sector % 8 + count <= 8 && at + count <= 8, "{step:?} stays in its pages");
                if step.deposits {
                    prop_assert_eq!(at, sector % 8);
                    drive[sector..sector + count].copy_from_slice(&page[at..at + count]);
                } else {
                    page[at..at + count].copy_from_slice(&drive[sector..sector + count]);
                }
            }
            prop_assert_eq!(drive, due);
        }
    }
}
