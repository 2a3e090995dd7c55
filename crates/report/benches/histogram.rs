//! What recording a latency costs. `cargo bench -p report` prints it.
#![allow(clippy::print_stdout)] // A benchmark exists to print.

use report::Histogram;
use std::hint::black_box;
use std::time::Instant;
use units::Span;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let records: u64 = if full { 200_000_000 } else { 10_000 };
    let mut histogram = Histogram::new();
    let mut draw = 1u64;
    let started = Instant::now();
    for _ in 0..records {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // 50 to 182 us, as reads of flash take.
        histogram.record(black_box(Span::from_picos(50_000_000 + (draw >> 37))));
    }
    let each = started.elapsed().as_secs_f64() * 1e9 / records as f64;
    println!("histogram: {records} records, {each:.2} ns each, p99 {}", histogram.quantile(0.99));
}
