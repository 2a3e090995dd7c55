//! What a served drive tells of its work: on its page while it works, and as the summary of a run when it has ended.

use crate::Serving;
use crate::conversations::{read, write};
use crate::initiator::Payload;
use firmware::architecture::ARCHITECTURES;
use nvme::spec::{Status, Submission};
use std::sync::{Arc, OnceLock};

const WRITES: u64 = 60;
const READS: u64 = 40;
const FOLLOWED: u64 = (WRITES + READS) / 10;

#[test]
fn hosts_commands_are_summed_up_as_those_of_a_run_and_followed_through_the_drive() {
    for architecture in ARCHITECTURES {
        let architecture = architecture.name();
        let serving = Serving { architecture, set: &["run.observed=1"], threads: 2, ..Serving::default() };
        let mut summary = Arc::new(OnceLock::new());
        let running = serving.start_with(|service| {
            summary = service.summary();
            service
        });
        let mut host = running.host("host").attach();
        for slba in 0..WRITES {
            host.queues[0].done(write(8 * slba, 8), Payload::Send(&[5; 4096]));
        }
        for slba in 0..READS {
            host.queues[1].done(read(8 * slba, 16), Payload::Receive(8192));
        }
        host.queues[0].done(Submission::flush(1), Payload::None);
        assert_eq!(
            host.queues[0].command(read(90_000_000, 1), Payload::Receive(512)).0.status(),
            Status::LBA_OUT_OF_RANGE
        );
        for (command, count) in [("write", WRITES), ("read", READS), ("other", 1)] {
            let counted = format!("flashloom_latency_seconds_count{{command=\"{command}\"}}");
            running.wait_for_figure(&counted, |found| found == count);
        }
        // Fewer than all: so many could be under way that too many would be followed at a time.
        running.wait_for_figure("flashloom_followed_commands_total", |followed| followed >= FOLLOWED);
        running.wait_for_figure("flashloom_thread_sleeps_total{thread=\"1\"}", |_| true);
        assert!(summary.get().is_none(), "{architecture} works");
        running.end();
        let summary = summary.get().expect("hosts had commands");
        assert_eq!((summary.architecture.as_str(), summary.world.as_str()), (architecture, "threads"));
        assert_eq!([&summary.write, &summary.read, &summary.other].map(|of| of.ios), [WRITES, READS, 1]);
        let per_second = 1e9 / summary.simulated_ns as f64;
        assert!((summary.read.bandwidth / (READS as f64 * 8192.0 * per_second) - 1.0).abs() < 1e-9, "{summary:?}");
        // One command was there at a time.
        assert!((0.9..1.1).contains(&summary.queue_depth_mean), "{architecture}: {}", summary.queue_depth_mean);
        let (mean, parts) = (summary.latency_mean().expect("of all"), summary.breakdown.iter().map(|(_, part)| part));
        assert!((parts.sum::<f64>() / mean - 1.0).abs() < 1e-6, "{architecture}: {:?}", summary.breakdown);
        assert!(summary.breakdown_of.is_some_and(|of| of >= FOLLOWED), "{architecture}: {summary:?}");
        assert!(!summary.bounds().is_empty() && summary.machine_threads.len() == 2);
        assert!(summary.flash.as_ref().is_some_and(|flash| flash.programs > 0), "the flush had some to bring there");
    }
}

#[test]
fn a_drive_that_nobody_asked_for_anything_has_no_summary() {
    let mut summary = Arc::new(OnceLock::new());
    let running = Serving::default().start_with(|service| {
        summary = service.summary();
        service
    });
    running.host("host").attach();
    running.end();
    assert!(summary.get().is_none());
}
