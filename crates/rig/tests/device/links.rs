//! Several links beside each other, where transfers take no time.

use crate::small::{Small, mixed};
use firmware::architecture::ARCHITECTURES;
use rig::{Layout, run_on_threads};
use units::Span;

/// The commands that a drive may have at a time are dealt to its links: a drive of few has few links.
#[test]
fn a_drive_has_no_more_commands_than_it_may_however_many_threads_it_has() {
    for &architecture in ARCHITECTURES {
        for commands in [2, 3, 5] {
            let small = Small { architecture, queues: 9, depth: 4, ..Small::default() };
            let mut device = small.device();
            device.timed = false;
            device.settings.commands = commands;
            let phases = vec![mixed("mixed", 1, small.sectors(), 2_000)];
            let layout = Layout { threads: 4, pin: false };
            let ran = run_on_threads(&device, "small", 1, phases, layout, Span::from_secs(60));
            let summary = ran.unwrap_or_else(|error| panic!("{}, {commands}: {error}", architecture.name())).remove(0);
            let links = summary.hardware.get("link").expect("it has a link").threads;
            assert!(links <= u32::from(commands).div_ceil(2), "{}, {commands}: {links}", architecture.name());
        }
    }
}
