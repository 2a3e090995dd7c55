//! Error correction of pages: binary BCH codes, shortened to the chunks of a page.

mod bch;
mod field;
mod locate;
mod roots;

pub use bch::{Bch, BchError, Uncorrectable};
