//! What bytes from outside reach, each as a function of bytes: fuzzed by coverage in `fuzz/`, and run over a corpus and
//! random inputs by every test run (`docs/fuzzing.md`).
//!
//! # Invariants
//! - A target takes any bytes. What it panics for is a fault of the code behind it.
//! - A target is a function of its input: the same bytes do the same, but for what a drive challenges hosts with.
//!
//! # What it leaves out
//! - Sockets, threads and the firmware: what lies before and behind the code that reads what hosts send.

mod controller;
mod fronts;
mod pieces;
mod reader;
mod seeds;
mod texts;

pub use seeds::{Seed, seeds};

/// Something that takes bytes from outside.
pub struct Target {
    /// As its folder in the corpus is named.
    pub name: &'static str,
    /// Feeds it.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "connections", run: fronts::connections },
    Target { name: "machine", run: fronts::machine },
    Target { name: "controller", run: controller::controller },
    Target { name: "prp", run: pieces::prp },
    Target { name: "sgl", run: pieces::sgl },
    Target { name: "namespaces", run: controller::namespaces },
    Target { name: "traces", run: texts::traces },
    Target { name: "configurations", run: texts::configurations },
];

/// Feeds the target of that name.
///
/// # Panics
/// If there is none, or if the bytes find a fault.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("{name} is no target")).run)(bytes);
}
