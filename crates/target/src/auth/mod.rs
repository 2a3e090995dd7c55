//! Who a host is: DH-HMAC-CHAP, by which both ends prove that they know a secret without saying it (Base §8.13.5).
//!
//! ```text
//! host                                     controller
//!  │ AUTH_Negotiate: hashes, groups ──────▶ │  chooses
//!  │ ◀────── Challenge: C1, S1, g^x ─────── │
//!  │ Reply: R1, C2, S2, g^y ──────────────▶ │  compares R1 with what the host's secret makes of C1
//!  │ ◀────── Success1: R2 ───────────────── │  or Failure1, and the connection ends
//!  │ Success2 (where it asked for R2) ────▶ │
//! ```
//!
//! # What it leaves out
//! - A secure channel that comes of it (SC_C): keys for TLS are configured.
//! - Exponents are not raised in constant time; each is drawn for one conversation and used once.

mod dialogue;
mod group;
mod hash;
mod secret;

pub(crate) use dialogue::Dialogue;
pub(crate) use hash::Hash;
pub use secret::{Keys, KnownHost, Pair, Secret, SecretError};
pub(crate) use secret::{checked, written};
