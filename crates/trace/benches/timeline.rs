//! How many slices a second the time line takes, and how many bytes each costs. `cargo bench -p trace` prints both.
#![allow(clippy::print_stdout)] // A benchmark exists to print.

use std::io::Write;
use std::num::NonZeroU64;
use std::time::Instant;
use trace::Timeline;
use units::{Span, Time};

/// Counts and digests (FNV-1a over blocks' lengths and last bytes) what it is given, and drops it.
#[derive(Default)]
struct Sink {
    bytes: u64,
    digest: u64,
}

impl Write for Sink {
    fn write(&mut self, block: &[u8]) -> std::io::Result<usize> {
        self.bytes += block.len() as u64;
        for word in [block.len() as u64, u64::from(*block.last().unwrap_or(&0))] {
            self.digest = (self.digest ^ word).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(block.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let slices: u64 = if full { 10_000_000 } else { 10_000 };
    let started = Instant::now();
    let mut timeline = Timeline::new(Sink::default());
    let processor = timeline.track(None, "processor");
    let cores: Vec<_> = (0..12).map(|core| timeline.track(Some(processor), &format!("core {core}"))).collect();
    let names = ["nvmq", "ilock", "cache", "trans", "fcmd", "dma"];
    for at in 0..slices {
        let from = Time::ZERO + Span::from_nanos(100) * at;
        let (core, name) = (at as usize % cores.len(), names[at as usize % names.len()]);
        timeline.slice(cores[core], name, from, from + Span::from_nanos(930), &[], NonZeroU64::new(at / 32 + 1));
    }
    let sink = timeline.finish().expect("the sink takes everything");
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "timeline: {slices} slices, {:.1} M/s, {:.1} bytes each, digest {:016x}",
        slices as f64 / seconds / 1e6,
        sink.bytes as f64 / slices as f64,
        sink.digest
    );
}
