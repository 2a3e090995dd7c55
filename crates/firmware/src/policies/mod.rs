//! Choices between equals, each a list that settings name.

mod split;
mod victim;

pub(crate) use split::shares;
pub use split::trans_of;
pub(crate) use victim::pick_victim;
