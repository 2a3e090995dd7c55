//! Feeds `sgl` (`crates/abuse`).

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| abuse::run("sgl", bytes));
