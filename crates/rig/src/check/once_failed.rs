//! Cases that once failed. They find what they found as long as what is drawn from their seeds stays what it was.

use super::case::Case;
use firmware::architecture::{DEFAULT, find};

/// Those cases, in the order in which they failed.
pub fn once_failed() -> [Case; 5] {
    let named = |seed, name| Case::of(seed, find(name).expect("it is listed"));
    [
        // A cut amid the reclaim of eight groups left no room to reclaim as many again.
        Case::of_seed(9_597),
        // A log group whose rest was another block's pages, at their own offsets, was taken for one block's.
        Case::of_seed(41_175),
        // A thread that keeps pace asked for a victim that there was not, again and again, and the room owed to it was nobody's.
        Case::of(920_158, DEFAULT),
        // What was deallocated again was promised while the tombstone of the first time was still on its way to flash.
        named(700_199, "pipessd"),
        // Erases failed one after another while little was free, of groups that held more valid pages than others.
        named(1_259, "tradition"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::small::Small;
    use crate::check::{collide, commands, further};

    /// Whatever has been drawn since they failed, these have none of it.
    #[test]
    fn cases_that_once_failed_are_what_they_were() {
        let (failed, device) = (once_failed(), Small::default().device());
        assert!(failed.iter().all(|case| commands::pairs(case) == 0));
        assert!(failed[..2].iter().all(|case| commands::shares(case, &device).is_none()));
        assert!(failed[..3].iter().all(|case| !further::goes_further(case)));
        assert!(failed[..4].iter().all(|case| !collide::collides(case)));
    }
}
