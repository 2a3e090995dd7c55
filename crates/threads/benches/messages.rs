//! What a message costs on one thread, across two, and alone. Tiny under `cargo test`; `cargo bench -p threads` for
//! figures.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[path = "../tests/toy/mod.rs"]
mod toy;

use threads::{Layout, Threads};
use toy::Hoppers;

/// Repetitions; the best is the one that others disturbed least.
const REPETITIONS: usize = 20;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let messages = if full { 1_000_000 } else { 4_000 };
    println!("{:44} {:>9} {:>9} {:>13}", "messages of 64 bytes", "best ns", "worst ns", "messages");
    for (threads, tokens) in [(1, 1), (1, 64), (1, 1024), (2, 1), (2, 64), (2, 1024), (2, 32_768)] {
        let hops = (messages / if tokens == 1 { 16 } else { 1 } / tokens).max(1);
        let hoppers = Hoppers { count: 2, ring: true, tokens, hops };
        let runs: Vec<(f64, u64)> = (0..REPETITIONS).map(|_| run(hoppers, threads)).collect();
        let nanos = runs.iter().map(|run| run.0);
        let (best, worst) = (nanos.clone().fold(f64::MAX, f64::min), nanos.fold(0.0, f64::max));
        let what = format!("{threads} threads, {tokens} under way");
        println!("{what:44} {best:9.1} {worst:9.1} {:13}", runs[0].1);
    }
}

/// Nanoseconds a message, and messages.
fn run(hoppers: Hoppers, threads: usize) -> (f64, u64) {
    let pin = threads <= std::thread::available_parallelism().map_or(1, usize::from);
    let outcome = Threads::new(hoppers.draw(), Layout { pin, ..Layout::on(threads) }).run(None).expect("they start");
    let messages = hoppers.tokens * hoppers.hops;
    assert!(
        outcome.halted
            && outcome.usage.stages[..hoppers.count].iter().map(|stage| stage.turns).sum::<u64>() >= messages
    );
    (outcome.wall.nanos_f64() / messages as f64, messages)
}
