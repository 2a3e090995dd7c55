//! Where pages were before the tombstones that are on their way to flash: if one can be written nowhere, they are there still.

use std::collections::BTreeMap;
use units::{Lpn, Ppn};

/// Each page of a tombstone, and where it was.
type Pages = Vec<(Lpn, Option<Ppn>)>;

/// The tombstones by their frames. Nobody tells a TRANS thread that a program went well: the tombstone of a frame is done when the frame
/// brings something else.
#[derive(Debug, Default)]
pub(super) struct Buried(BTreeMap<u32, Pages>);

impl Buried {
    /// The frame has a tombstone of these pages, which were there.
    pub(super) fn keep(&mut self, frame: u32, pages: Pages) {
        let before = self.0.insert(frame, pages);
        assert!(before.is_none(), "frame {frame} had another, and brought this");
    }

    /// The tombstone of a frame, if it had one, is done.
    #[inline]
    pub(super) fn forget(&mut self, frame: u32) {
        if !self.0.is_empty() {
            self.0.remove(&frame);
        }
    }

    /// The pages of the tombstone that a frame has, which goes nowhere.
    pub(super) fn take(&mut self, frame: u32) -> Pages {
        self.0.remove(&frame).expect("it was kept when it got its place")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_frame_had_is_forgotten_when_it_brings_something_else() {
        let mut buried = Buried::default();
        let pages = |first: u32| (first..first + 256).map(|lpn| (Lpn(lpn), Some(Ppn(lpn)))).collect::<Pages>();
        for round in 0..3 {
            (0..8).for_each(|frame| buried.forget(frame));
            assert!(buried.0.is_empty());
            (0..8).for_each(|frame| buried.keep(frame, pages(256 * (8 * round + frame))));
        }
        assert_eq!(buried.take(5), pages(256 * 21));
        buried.forget(5);
        assert_eq!(buried.0.len(), 7);
    }
}
