//! vfio-user: 4 KB random reads and writes by a driver of our own that polls, through shared memory and each kind of doorbells.

use super::Bench;
use super::drive::Buffer;
use super::machine::{Bells, DATA, Machine};
use super::served::{BLOCKS, BYTES, Speed, serve};
use anyhow::{Context, ensure};
use nvme::spec::{DataPointer, Submission};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rig::{Door, DoorbellPath, Trust};
use std::time::Instant;
use units::HostAddress;

/// Requests a second at three depths, of a drive that was written before, whose buffer is small or holds it all; of the small one, at
/// two depths, with doorbells as messages too, and how many of these a request takes.
pub(super) fn speed(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    for buffer in [Buffer::Passed, Buffer::HoldsAll] {
        for depth in [1u16, 32, 128] {
            let ios = bench.repeat(if depth == 1 { 100_000 } else { 500_000 }, 300);
            let ([reads, writes], _) = measure(Bells::Mapped, depth, ios, buffer)?;
            reads.put(bench, &format!("reads, depth {depth}{}", buffer.said()), ios);
            writes.put(bench, &format!("writes, depth {depth}{}", buffer.said()), ios);
        }
    }
    for (bells, how) in [(Bells::Sent, "sent"), (Bells::Shadowed, "in memory")] {
        for depth in [1u16, 32] {
            let ios = bench.repeat(50_000, 300);
            let ([reads, _], sent) = measure(bells, depth, ios, Buffer::Passed)?;
            bench.put(format!("reads, depth {depth}, doorbells {how}"), reads.per_second, "1/s", ios);
            bench.put(format!("messages a read, depth {depth}, doorbells {how}"), sent, "", ios);
        }
    }
    Ok(())
}

/// Reads, writes, and doorbells that were sent for each read.
fn measure(bells: Bells, depth: u16, ios: u64, buffer: Buffer) -> anyhow::Result<([Speed; 2], f64)> {
    let socket = std::env::temp_dir().join(format!("flashloom-bench-{}-{depth}.sock", std::process::id()));
    let doorbells = if bells == Bells::Mapped { DoorbellPath::Mapped } else { DoorbellPath::Sent };
    let door = Door::VfioUser { socket: socket.clone(), doorbells, trust: Trust::Seals };
    serve(door, None, "off", buffer, |_, blocks| {
        let mut machine = Machine::start(&socket, bells)?;
        let pages = blocks / u64::from(BLOCKS);
        run(&mut machine, 128, pages, |number, at| Submission::write(1, number * u64::from(BLOCKS), BLOCKS, at))?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(depth.into());
        let mut any = || random.random_range(0..pages) * u64::from(BLOCKS);
        let before = machine.sent;
        let reads = Speed::of(ios, || run(&mut machine, depth, ios, |_, at| Submission::read(1, any(), BLOCKS, at)))?;
        let sent = (machine.sent - before) as f64 / ios as f64;
        let writes = Speed::of(ios, || run(&mut machine, depth, ios, |_, at| Submission::write(1, any(), BLOCKS, at)))?;
        Ok(([reads, writes], sent))
    })
}

/// Keeps so many commands outstanding until enough are done. All that there is room for go with one write of the doorbell.
fn run(
    machine: &mut Machine,
    depth: u16,
    count: u64,
    mut command: impl FnMut(u64, DataPointer) -> Submission,
) -> anyhow::Result<()> {
    let mut free: Vec<u16> = (0..depth).collect();
    let (mut sent, mut done) = (0, 0);
    let mut silent_since = None;
    while done < count {
        let before = sent;
        while let Some(id) = free.pop_if(|_| sent < count) {
            let at = HostAddress(DATA + u64::from(id) * u64::from(BYTES));
            let submission = command(sent, DataPointer { prp1: at, prp2: HostAddress(0) });
            machine.push(submission.with_command_id(id)).context("there is room for every command")?;
            sent += 1;
        }
        if sent > before {
            machine.ring_tail()?;
        }
        let before = done;
        while let Some(completion) = machine.reap() {
            ensure!(completion.status().is_success(), "a command failed: {:?}", completion.status());
            free.push(completion.command_id());
            done += 1;
        }
        if done > before {
            machine.ring_head()?;
            silent_since = None;
        } else {
            let since = *silent_since.get_or_insert_with(Instant::now);
            ensure!(since.elapsed() < super::machine::PATIENCE, "the drive stays silent");
            // Where the two have not a processor each, the drive gets this one's time.
            std::thread::yield_now();
        }
    }
    Ok(())
}
