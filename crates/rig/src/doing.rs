//! What stages, threads and hardware did on real threads, as a summary has it.

use crate::build::Device;
use crate::hardware::Held;
use crate::standing::Standing;
use crate::summary::{Labels, add_sampled, add_sums, amplification};
use report::{Flash, Group, MachineThread, Named, Summary};
use threads::{Outcome, StageUsage, ThreadUsage};

/// Groups of stages that play the hardware.
const HARDWARE: [&str; 4] = ["host", "link", "channel", "power"];

/// What they did in the measured part of a phase, or while a served drive had anything to do.
pub(crate) struct Doing<'a> {
    pub(crate) standing: &'a Standing,
    /// How long it was, s.
    pub(crate) lasted: f64,
    /// The group and the name of each stage.
    pub(crate) parts: &'a [(&'static str, String)],
    pub(crate) run: &'a Outcome,
}

impl Doing<'_> {
    /// Adds it to a summary of what hosts saw, of which `written` bytes were written.
    pub(crate) fn add_to(&self, summary: &mut Summary, labels: &Labels, device: &Device, written: u64) {
        let Standing { sums, media, sampled, held, .. } = self.standing;
        add_sums(summary, labels, sums);
        add_sampled(summary, labels, sampled);
        let buses = held.buses.iter().map(|held| self.share(held.secs_f64()));
        let (reads, programs, erases) = (media.reads, media.programs, media.erases);
        summary.flash =
            Some(Flash { reads, programs, erases, channel_utilisation: buses.collect(), ..Flash::default() });
        summary.write_amplification = amplification(programs, written, labels.page);
        summary.groups = self.groups(device.architecture.groups().iter().map(|group| group.name));
        summary.hardware = self.groups(HARDWARE.into_iter());
        summary.machine_threads = self.machine_threads();
        let resources = self.resources(device.drive.geometry.die_count(), &summary.machine_threads);
        summary.bounds = Some(report::bounds(summary.iops, &resources));
    }

    /// What the stages of groups did.
    fn groups<'a>(&self, groups: impl Iterator<Item = &'a str>) -> Named<Group> {
        let mut named = Named::default();
        for group in groups {
            let (threads, StageUsage { turns: messages, busy }) = self.standing.group(self.parts, group);
            if threads > 0 {
                let utilisation = self.share(busy.secs_f64() / f64::from(threads));
                named.set(group, Group { threads, utilisation, messages, energy_j: None });
            }
        }
        named
    }

    /// What the threads of the machine did, and which stages live on each.
    fn machine_threads(&self) -> Vec<MachineThread> {
        let of = |(index, usage): (usize, &ThreadUsage)| {
            let mut stages = Named::<u32>::default();
            for ((group, _), _) in self.parts.iter().zip(&self.run.homes).filter(|(_, home)| **home == index) {
                stages.add(group, 1);
            }
            let (utilisation, pinned) = (self.share(usage.busy.secs_f64()), self.run.pinned[index]);
            MachineThread { pinned, utilisation, received: usage.received, sleeps: usage.sleeps, stages }
        };
        self.standing.usage.threads.iter().enumerate().map(of).collect()
    }

    /// What may limit the run and how busy it was: flash of so many dies and the link, where they take their times, and the thread of the
    /// machine that has the most to do. The stages that live there cannot move to another.
    fn resources(&self, dies: u32, threads: &[MachineThread]) -> Vec<(String, f64)> {
        let Held { buses, dies: held, link } = &self.standing.held;
        let bus = buses.iter().copied().max().unwrap_or_default();
        let thread = threads.iter().map(|thread| thread.utilisation).fold(0.0, f64::max);
        let name = if threads.len() > 1 { "busiest machine thread" } else { "machine thread" };
        vec![
            ("flash buses".into(), self.share(bus.secs_f64())),
            ("flash dies".into(), self.share(held.secs_f64() / f64::from(dies))),
            ("host link".into(), self.share(link.to_host.max(link.from_host).secs_f64())),
            (name.into(), thread),
        ]
    }

    /// A time as a share of the whole.
    fn share(&self, seconds: f64) -> f64 {
        (seconds / self.lasted.max(1e-12)).min(1.0)
    }
}
