//! Which log group of the hybrid mapping to merge, and how (Park et al., TECS 2008, section 4).

/// What it takes to empty a log group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MergeKind {
    /// Nothing in it is valid: it is erased.
    Drop,
    /// It holds one logical block, whole and in place: it becomes the data group, and the old one is erased.
    Switch,
    /// It holds the beginning of one logical block in place: the rest is copied behind, and it becomes the data group.
    Partial,
    /// Every logical block that has pages in it is copied to a fresh group.
    Full,
}

impl MergeKind {
    /// All of them.
    pub const ALL: [MergeKind; 4] = [MergeKind::Drop, MergeKind::Switch, MergeKind::Partial, MergeKind::Full];
}

/// How far a log group is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogFill {
    /// The position after the last one written.
    pub(crate) written: u32,
    /// Of those before, how many hold what their logical page is now.
    pub(crate) valid: u32,
    /// Whether every one is at its own offset in one and the same logical block.
    pub(crate) in_place: bool,
    /// When it was opened, in openings of its thread.
    pub(crate) opened: u64,
}

impl LogFill {
    /// How it is merged, if groups have so many pages.
    pub(crate) fn kind(&self, pages: u32) -> MergeKind {
        match self {
            LogFill { valid: 0, .. } => MergeKind::Drop,
            LogFill { in_place: false, .. } => MergeKind::Full,
            // What is missing or superseded is elsewhere, and could not be copied behind what is here.
            LogFill { valid, written, .. } if valid < written => MergeKind::Full,
            LogFill { written, .. } if *written == pages => MergeKind::Switch,
            _ => MergeKind::Partial,
        }
    }
}

/// The log group to merge: one that costs no copies if there is any, else the oldest.
///
/// Partial merges do not go before full ones, though they copy less: a log group that is filled in order is likely to become
/// a switch if it is left alone.
pub(crate) fn pick_log(logs: impl Iterator<Item = (u32, LogFill)>, pages: u32) -> Option<u32> {
    let rank = |fill: &LogFill| (fill.kind(pages).min(MergeKind::Partial), fill.opened);
    logs.min_by_key(|(_, fill)| rank(fill)).map(|(slot, _)| slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u32 = 8;

    fn fill(written: u32, valid: u32, in_place: bool, opened: u64) -> LogFill {
        LogFill { written, valid, in_place, opened }
    }

    #[test]
    fn the_state_allows_one_kind() {
        assert_eq!(fill(8, 0, true, 0).kind(PAGES), MergeKind::Drop);
        assert_eq!(fill(8, 8, true, 0).kind(PAGES), MergeKind::Switch);
        assert_eq!(fill(5, 5, true, 0).kind(PAGES), MergeKind::Partial);
        assert_eq!(fill(8, 8, false, 0).kind(PAGES), MergeKind::Full);
        // The newest content of a page is elsewhere, and must not be lost with the old data group.
        assert_eq!(fill(8, 7, true, 0).kind(PAGES), MergeKind::Full);
        assert_eq!(fill(5, 4, true, 0).kind(PAGES), MergeKind::Full);
    }

    #[test]
    fn what_is_free_goes_first_and_then_the_oldest() {
        let (young_partial, old_full) = (fill(5, 5, true, 9), fill(8, 3, false, 1));
        let (switch, empty) = (fill(8, 8, true, 12), fill(8, 0, false, 11));
        let pick = |logs: &[LogFill]| pick_log((0..).zip(logs.iter().copied()), PAGES);
        assert_eq!(pick(&[]), None);
        assert_eq!(pick(&[young_partial, old_full]), Some(1));
        assert_eq!(pick(&[young_partial, old_full, switch]), Some(2));
        assert_eq!(pick(&[young_partial, switch, old_full, empty]), Some(3));
    }
}
