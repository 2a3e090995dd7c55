//! How long the model of a channel takes in real time: nanoseconds for each transaction, each phase, and each page
//! kept. `speed COUNT` does so many of each.
#![allow(clippy::print_stdout)]

use flash::*;
use std::time::Instant;
use units::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(2_000_000), |count| count.parse())?;
    let geometry = Geometry::new(Shape {
        channels: 16,
        packages_per_channel: 16,
        dies_per_package: 4,
        planes_per_die: 4,
        blocks_per_plane: 256,
        pages_per_block: 256,
        page: Bytes(4096),
        oob: Bytes(224),
        kind: CellKind::Mlc,
    })?;
    let timing = Timing {
        bus: MegaTransfers(400),
        cycle: Span::from_nanos(25),
        cycles: CommandCycles::ONFI,
        oob_moved: Bytes(16),
        read: [Span::from_micros(53); 3],
        program: [Span::from_micros(900); 3],
        erase: Span::from_micros(2300),
        further_plane: Span::ZERO,
        cache_commands: false,
        cache_read_busy: Span::ZERO,
        cache_program_busy: Span::ZERO,
        suspend: Suspend::OFF,
    };
    timing.validate(&geometry)?;
    for (name, operation, in_flight) in [
        ("reads, depth 1", Operation::Read, 1),
        ("reads, depth 4", Operation::Read, 4),
        ("reads, depth 128", Operation::Read, 128),
        ("programs, depth 128", Operation::Program, 128),
    ] {
        let mut channel = Channel::new(&geometry, &timing, ChannelId(0));
        let start = Instant::now();
        let (polls, end) = run(&mut channel, &geometry, operation, in_flight, count);
        let nanos = start.elapsed().as_nanos() as f64;
        let transactions = f64::from(count);
        println!(
            "{name:20} {:6.1} ns a transaction, {:5.1} ns a phase, {:.2} polls; {:.0} a simulated second",
            nanos / transactions,
            nanos / transactions / 3.0,
            polls as f64 / transactions,
            transactions / (end - Time::ZERO).secs_f64(),
        );
    }
    time_contents(&geometry, count)
}

/// One channel of a terabyte: preconditioned whole, then read at random, then rewritten block by block.
fn time_contents(geometry: &Geometry, count: u32) -> Result<(), Box<dyn std::error::Error>> {
    let report = |what: &str, start: Instant, pages: u32| {
        println!("{what:20} {:6.1} ns a page", start.elapsed().as_nanos() as f64 / f64::from(pages));
    };
    let start = Instant::now();
    let mut contents = Contents::for_channel(geometry, ChannelId(0), 1, 3_000);
    println!("{:20} {:6.1} ms", "new", start.elapsed().as_secs_f64() * 1e3);
    let blocks: Vec<_> =
        (0..geometry.block_count()).map(BlockId).filter(|block| geometry.die_of(*block).0 == ChannelId(0)).collect();
    let (start, mut lpns) = (Instant::now(), (0..).map(Lpn));
    for block in &blocks {
        contents.precondition(*block, lpns.by_ref())?;
    }
    let pages = geometry.shape().pages_per_block;
    report("precondition", start, blocks.len() as u32 * pages);
    let (start, mut payload) = (Instant::now(), vec![0; contents.page_words()]);
    for index in 0..count {
        let random = index.wrapping_mul(0x9e37_79b9) >> 8;
        let block = blocks[(random / pages) as usize % blocks.len()];
        contents.read(geometry.page(block, random % pages), &mut payload)?;
    }
    report("read at random", start, count);
    let start = Instant::now();
    for block in &blocks[..1_000] {
        contents.erase(*block)?;
        for page in 0..pages {
            let oob = Oob { lpn: Lpn(page), owner: 0, sequence: page.into() };
            contents.program(geometry.page(*block, page), oob, &payload)?;
        }
    }
    report("erase and program", start, 1_000 * pages);
    Ok(())
}

/// Keeps `in_flight` transactions under way, on dies in a scrambled order.
fn run(channel: &mut Channel, geometry: &Geometry, operation: Operation, in_flight: u32, count: u32) -> (u64, Time) {
    let (mut finished, mut now, mut polls, mut submitted, mut done) = (Vec::new(), Time::ZERO, 0, 0u32, 0);
    let mut submit = |channel: &mut Channel, now: Time| {
        let random = submitted.wrapping_mul(0x9e37_79b9) >> 8;
        let at = PageAddress {
            channel: ChannelId(0),
            die: DieId((random % 64) as u16),
            plane: 0,
            block: random / 64 % 256,
            page: submitted % 256,
        };
        let mut slots = [PageSlot::default(); PLANES_MAX];
        slots[0].ppn = geometry.ppn(at);
        channel
            .submit(now, Transaction { operation, die: at.die, tag: TransactionTag(submitted), slot_count: 1, slots });
        submitted += 1;
    };
    (0..in_flight).for_each(|_| submit(channel, now));
    while done < count {
        now = channel.next_event().unwrap_or(now);
        channel.poll(now, &mut finished);
        polls += 1;
        for _ in finished.drain(..) {
            done += 1;
            submit(channel, now);
        }
    }
    (polls, now)
}
