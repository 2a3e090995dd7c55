//! Feeds `namespaces` (`crates/abuse`).

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| abuse::run("namespaces", bytes));
