//! The figures of a served drive: what its hosts, its firmware, its flash and this machine's threads have done. Whoever watches it has them
//! as a page while it works, and as the summary of a run when it has ended.

use crate::build::Device;
use crate::doing::Doing;
use crate::hardware::{MediaTally, Traffic, seconds};
use crate::latency::LatencyParts;
use crate::sampling::{Observer, Sampling};
use crate::standing::{Standing, Watch};
use crate::summary::{Labels, of_commands};
use firmware::{Counter, Firmware};
use report::Summary;
use std::sync::Arc;
use target::{family, figure};
use threads::{Outcome, Threads};

/// Whoever looks at a served drive.
pub(crate) struct Figures {
    watch: Watch,
    traffic: Arc<Traffic>,
    sampling: Option<Sampling>,
    /// The group and the name of each stage.
    parts: Vec<(&'static str, String)>,
    latency: LatencyParts,
}

impl Figures {
    /// Of a device with these parts that will run on these threads.
    pub(crate) fn new(
        device: &Device,
        threads: &Threads<Firmware>,
        parts: Vec<(&'static str, String)>,
        (traffic, media): (Arc<Traffic>, Arc<MediaTally>),
    ) -> Self {
        let sampling = device.observed.map(|every| Sampling::new(device, &parts, every));
        let watch = Watch::new(threads, media).sampling(sampling.as_ref());
        let latency = LatencyParts::of(device.architecture, device.settings.parts);
        Figures { watch, traffic, sampling, parts, latency }
    }

    /// What observes a thread, where commands are followed.
    pub(crate) fn observer(&self) -> Option<Observer> {
        self.sampling.as_ref().map(Sampling::observer)
    }

    /// Sums up the drive, which has ended. Its time is that with a command of a host at the drive: hosts that want nothing make no drive
    /// slow. Nothing where no host had a command.
    pub(crate) fn sum_up(&self, labels: &Labels, device: &Device, run: &Outcome) -> Option<Summary> {
        let (rows, busy) = (self.traffic.counted(), self.traffic.busy());
        let mut summary = Summary { wall_ns: run.wall.nanos(), ..of_commands(labels, &rows, busy) };
        let together = summary.latency_mean()? * summary.ios as f64;
        summary.queue_depth_mean = together / busy.nanos_f64().max(1.0);
        let doing = Doing { standing: &self.watch.look(), lasted: busy.secs_f64(), parts: &self.parts, run };
        doing.add_to(&mut summary, labels, device, rows[1].bytes);
        Some(summary)
    }

    /// All of them, as the page of a service has them.
    pub(crate) fn page(&self) -> String {
        let standing = self.watch.look();
        [self.traffic.page(), counters(&standing), self.busy(&standing), self.followed(&standing)].concat()
    }

    /// For how long threads, stages and hardware were busy.
    fn busy(&self, standing: &Standing) -> String {
        let Standing { usage, held, .. } = standing;
        let counter = |name: &str, help: &str, figures: Vec<(String, String)>| {
            family(&format!("flashloom_{name}_total"), "counter", help, figures)
        };
        let threads = || usage.threads.iter().enumerate().map(|(at, thread)| (by("thread", &at.to_string()), thread));
        let mut groups: Vec<&str> = self.parts.iter().map(|(group, _)| *group).collect();
        groups.sort_unstable();
        groups.dedup();
        let groups = || groups.iter().map(|group| (by("group", group), standing.group(&self.parts, group).1));
        let buses = held.buses.iter().enumerate().map(|(at, bus)| (by("channel", &at.to_string()), seconds(*bus)));
        let link = [("to_host", held.link.to_host), ("from_host", held.link.from_host)];
        [
            counter(
                "thread_busy_seconds",
                "Time that the stages of a thread of this machine were in a turn.",
                threads().map(|(which, thread)| (which, seconds(thread.busy))).collect(),
            ),
            counter(
                "thread_sleeps",
                "Times that a thread found nothing to do for so long that it slept.",
                threads().map(|(which, thread)| (which, thread.sleeps.to_string())).collect(),
            ),
            counter(
                "stage_busy_seconds",
                "Time that stages of a group were in a turn.",
                groups().map(|(which, usage)| (which, seconds(usage.busy))).collect(),
            ),
            counter(
                "stage_turns",
                "Turns that stages of a group took.",
                groups().map(|(which, usage)| (which, usage.turns.to_string())).collect(),
            ),
            counter("flash_bus_busy_seconds", "Time that the bus of a flash channel was taken.", buses.collect()),
            counter(
                "flash_dies_busy_seconds",
                "Time that dies were taken, of all of them together.",
                vec![(String::new(), seconds(held.dies))],
            ),
            counter(
                "link_busy_seconds",
                "Time that a direction of the host link was taken.",
                link.into_iter().map(|(way, busy)| (by("direction", way), seconds(busy))).collect(),
            ),
        ]
        .concat()
    }

    /// Where the time of the commands went that were followed, if any were.
    fn followed(&self, standing: &Standing) -> String {
        let sampled = &standing.sampled;
        if sampled.commands == 0 {
            return String::new();
        }
        let spent = |(place, name): (usize, &str)| (by("part", name), (sampled.parts[place] as f64 / 1e12).to_string());
        let help = "Where the time of those commands went.";
        figure("flashloom_followed_commands_total", "counter", "Commands followed.", sampled.commands)
            + &family("flashloom_followed_seconds_total", "counter", help, self.latency.iter().map(spent))
    }
}

/// What tells a figure from others of its name.
fn by(what: &str, which: &str) -> String {
    format!("{{{what}=\"{which}\"}}")
}

/// What firmware and flash have counted.
fn counters(standing: &Standing) -> String {
    let of = |counter: Counter| standing.sums.get(counter);
    let media = &standing.media;
    [
        ("cache_read_hits", "Look-ups of pages to read that the data cache held.", of(Counter::ReadHits)),
        ("cache_read_misses", "Look-ups of pages to read that the data cache did not hold.", of(Counter::ReadMisses)),
        ("cache_write_hits", "Look-ups of pages to write that the data cache held.", of(Counter::WriteHits)),
        ("cache_write_misses", "Look-ups of pages to write that it did not hold.", of(Counter::WriteMisses)),
        ("cache_bypasses", "Pages that were written past a busy entry of the data cache.", of(Counter::Bypasses)),
        ("cache_evictions", "Entries of the data cache put out to make room for others.", of(Counter::Evictions)),
        ("locks", "Locks answered.", of(Counter::Locks)),
        ("lock_waits", "Locks that had to wait for a release.", of(Counter::LockWaits)),
        ("flash_pages_read", "Pages read from flash.", media.reads),
        ("flash_pages_programmed", "Pages programmed to flash.", media.programs),
        ("flash_blocks_erased", "Blocks of flash erased.", media.erases),
        ("flash_read_retries", "Pages read again at another level.", media.retries),
        ("flash_failures", "Programs and erases that failed.", media.failed),
        ("groups_reclaimed", "Groups of blocks reclaimed.", of(Counter::Reclaims)),
        ("pages_moved", "Pages moved to reclaim groups.", of(Counter::PagesMoved)),
        ("checkpoints", "Checkpoints of the map committed.", of(Counter::Checkpoints)),
        ("journal_pages", "Pages written for them.", of(Counter::JournalPages)),
    ]
    .into_iter()
    .map(|(name, help, value)| figure(&format!("flashloom_{name}_total"), "counter", help, value))
    .collect()
}
