//! The links of a device, one or several, before they are installed.

use crate::build::Device;
use crate::hardware::{LinkStage, LinkWays, MediaTally, PendingInterrupts};
use firmware::Drive;
use firmware::architecture::{Drawing, Link, LinkDeal};
use nvme::{Arbiter, Arbitration, HostMemory};
use std::sync::Arc;
use units::QueueId;

/// The stages of the links, and which of them has which queue.
pub(crate) struct Links {
    pub(crate) stages: Vec<LinkStage>,
    pub(crate) deal: LinkDeal,
}

impl Links {
    /// The one that has a queue.
    pub(crate) fn of(&mut self, queue: QueueId) -> &mut LinkStage {
        &mut self.stages[self.deal.of(queue)]
    }

    /// What the media and the links got wrong.
    pub(crate) fn tally(&self) -> Arc<MediaTally> {
        self.stages[0].tally()
    }
}

impl Device {
    /// The same on so many threads of a machine.
    pub(crate) fn on_threads(&self, threads: usize) -> Device {
        let several = !self.timed && self.controller.arbitration == Arbitration::RoundRobin;
        Device { link_threads: if several { threads as u16 } else { 1 }, ..self.clone() }
    }

    /// The links of a drawn device, which share what is counted and the interrupts that the host has not taken.
    pub(crate) fn links(
        &self,
        drawing: &Drawing,
        drive: &Arc<Drive>,
        memory: Arc<dyn HostMemory>,
    ) -> (Links, PendingInterrupts) {
        let (hardware, pending) = (&drawing.hardware, PendingInterrupts::new(self.vectors));
        let tally = Arc::new(MediaTally::new(drive.geometry().shape().channels));
        let count = hardware.deal.links();
        let queues = self.drive.queues as usize + 1;
        let stage = |(index, link): (usize, &Link)| {
            let ways = LinkWays {
                fetches: link.fetches.clone(),
                transfers: link.transfers.clone(),
                holds: link.holds,
                deal: hardware.deal.clone(),
                interrupts: link.interrupts,
                pending: pending.clone(),
                tally: tally.clone(),
            };
            let arbiter = Arbiter::new(queues, self.controller.arbitration, self.controller.shares);
            // What the drive may have at a time, dealt to the links.
            let credits = (usize::from(self.settings.commands) + count - 1 - index) / count;
            let (tables, memory) = (drawing.tables.clone(), memory.clone());
            let mut stage = LinkStage::new(drive.clone(), tables, memory, self.link, ways, arbiter, credits as u32);
            stage.set_coalescing(self.controller.coalescing);
            if !self.timed {
                stage.transfer_at_once();
            }
            stage
        };
        let stages = hardware.links.iter().enumerate().map(stage).collect();
        (Links { stages, deal: hardware.deal.clone() }, pending)
    }
}
