//! Choices between equals, each a list that settings name.

mod merge;
mod split;
mod striping;
mod victim;

pub use merge::MergeKind;
pub(crate) use merge::{LogFill, pick_log};
pub use split::{Owners, Ranks, page_of_rank, rank_of, shares, trans_of};
pub(crate) use striping::Striping;
pub(crate) use victim::{AtRest, Pick, pick_victim, survey};
