//! What is of real threads alone: several links beside each other, and what stages did in each phase.

use crate::small::{Small, mixed};
use firmware::architecture::ARCHITECTURES;
use host::Phase;
use report::Summary;
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
            let layout = Layout::on(4);
            let ran = run_on_threads(&device, "small", 1, phases, layout, Some(Span::from_secs(60)));
            let summary = ran.unwrap_or_else(|error| panic!("{}, {commands}: {error}", architecture.name())).remove(0);
            let links = summary.hardware.get("link").expect("it has a link").threads;
            assert!(links <= u32::from(commands).div_ceil(2), "{}, {commands}: {links}", architecture.name());
        }
    }
}

/// What stages did is told of the measured part of each phase: of as many requests it is as much, whatever went before.
#[test]
fn each_phase_has_what_its_stages_did_without_its_warm_up() {
    for &architecture in ARCHITECTURES {
        let small = Small { architecture, queues: 2, depth: 4, ..Small::default() };
        let mut device = small.device();
        device.timed = false;
        let phase =
            |seed, warm_up_ios| Phase { warm_up_ios, ..mixed("mixed", seed, small.sectors(), warm_up_ios + 1_000) };
        let phases = vec![phase(1, 250), phase(2, 4_000)];
        let ran = run_on_threads(&device, "small", 1, phases, Layout::on(2), Some(Span::from_secs(60)));
        let ran = ran.unwrap_or_else(|error| panic!("{}: {error}", architecture.name()));
        let messages = |summary: &Summary| summary.hardware.get("link").expect("it has a link").messages;
        let [first, second] = [0, 1].map(|at| messages(&ran[at]));
        assert!(first > 0 && second < 3 * first, "{}: {first}, {second}", architecture.name());
        for summary in &ran {
            let groups = architecture.groups().iter().map(|group| summary.groups.get(group.name));
            assert!(groups.flatten().any(|group| group.messages > 0), "{}", architecture.name());
            assert_eq!(summary.machine_threads.len(), 2);
        }
    }
}
