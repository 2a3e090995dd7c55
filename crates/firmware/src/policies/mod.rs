//! Choices between equals, each a list that settings name.

mod split;
mod victim;

pub use split::{shares, trans_of};
pub(crate) use victim::pick_victim;
