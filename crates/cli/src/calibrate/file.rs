//! The processor file of a calibration. One instruction stands for a nanosecond: what is measured are times.

use super::{Measured, kinds};
use std::fmt::Write;

/// Lines that all cores' caches hold together where the machine does not say: 16 MiB.
const LINES_HELD: u32 = 1 << 18;

/// The file.
pub(super) fn text(measured: &Measured, quick: bool) -> String {
    let Measured { work, hop, memory, processors, .. } = measured;
    let hop = hop.or(memory.transfer).unwrap_or(memory.memory);
    let (transfer, measured_as) = match memory.transfer {
        Some(transfer) => (transfer, "as a line from another core"),
        None if *processors > 1 => (memory.memory, "as a line from memory: none from another core was measured"),
        None => (memory.memory, "as a line from memory: there is one processor"),
    };
    let cores = (*processors).clamp(1, 64);
    let price = |nanos: f64| format!("{{ slots = {}, stall_ns = 0 }}", nanos.round().max(1.0) as u64);
    let mut text = format!(
        "# What firmware work takes on a machine with {processors} processors ({}), as `flashloom calibrate` measured it: \
         a slot is a nanosecond.\n\n\
         [processor]\n\
         source = \"flashloom calibrate{}: {} turns timed; the times sum to a turn's within {:.0} % on average\"\n\
         summary = \"{cores} processors of the machine it was measured on\"\n\
         clock_mhz = 1000                   # a slot is a nanosecond, not an instruction\n\
         cores = {cores}\n\
         threads_per_core = 1               # a thread of the firmware has a processor of its own\n\
         thread_slot_cycles = 1\n\
         core_slot_cycles = 1\n\
         fit = \"none\"                       # measured\n\
         stall_per_slot_ns = 0              # in the measured times\n\
         turn = {}\n\
         send = {}\n\
         switch = {{ slots = 0, stall_ns = 0 }} # in a turn's time\n\n",
        std::env::consts::ARCH,
        if quick { " --quick, a rough one" } else { "" },
        work.turns,
        work.error * 100.0,
        price(work.turn),
        price(work.send),
    );
    let _ = write!(
        text,
        "[processor.hops]\n\
         source = \"measured: one message at a time between two threads, less a turn and a message\"\n\
         same_core_ns = 0                   # a queue of the thread: in the send\n\
         first_ns = {first:.1}\n\
         further_ns = 0                     # distances were not told apart\n\
         hardware_ns = {transfer:.1}                # {measured_as}\n\
         publish_ns = 0                     # in the send\n\n\
         [processor.lines]\n\
         source = \"measured; `held` is an estimate\"\n\
         transfer_ns = {transfer:.1}                # {measured_as}\n\
         memory_ns = {:.1}\n\
         atomic_ns = {:.1}\n\
         held = {LINES_HELD}                     # 16 MiB of caches\n\n\
         [processor.prices]\n\
         source = \"measured: times of turns, divided over the work that they did\"\n",
        memory.memory,
        memory.atomic,
        first = (hop - work.turn - work.send).max(0.1),
    );
    for (key, nanos, origin) in kinds(measured) {
        let _ = writeln!(text, "{key:25} = {}  # {origin}", price(nanos));
    }
    text
}
