//! What recording a latency costs. `cargo bench -p report` prints it.
#![allow(clippy::print_stdout)] // A benchmark exists to print.

use report::Histogram;
use std::hint::black_box;
use std::time::Instant;
use units::Span;

/// Latencies drawn beforehand, so that drawing them is not measured; a round records each of them so often.
const DRAWN: usize = 4_096;
/// Short enough that some rounds run without losing the core.
const REPEATS: usize = 50;

/// 50 to 184 us, as reads of flash take.
fn draw() -> Vec<Span> {
    let step = |draw: &u64| Some(draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    std::iter::successors(Some(1), step).take(DRAWN).map(|draw| Span::from_picos(50_000_000 + (draw >> 37))).collect()
}

fn main() {
    let rounds = if std::env::args().any(|argument| argument == "--bench") { 1_000 } else { 1 };
    let latencies = black_box(draw());
    let mut histogram = Box::new(Histogram::new());
    // The fastest round: other programs on the machine make it slower, never faster.
    let mut fastest = f64::INFINITY;
    for _ in 0..rounds {
        let histogram = black_box(&mut histogram);
        let started = Instant::now();
        for _ in 0..REPEATS {
            latencies.iter().for_each(|latency| histogram.record(*latency));
        }
        fastest = fastest.min(started.elapsed().as_secs_f64() * 1e9 / (DRAWN * REPEATS) as f64);
    }
    println!("histogram: {rounds} rounds, {fastest:.2} ns a record, p99 {}", histogram.quantile(0.99));
}
