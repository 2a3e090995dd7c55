//! The way of doorbells from the host to the links that have their queues.

use firmware::architecture::{Hardware, LinkDeal};
use firmware::{DoorbellWrite, DoorbellsWritten, Turn};
use stage::Address;

/// Tells each link what was rung of its queues.
pub(crate) struct Doorbells {
    links: Vec<Address<DoorbellsWritten>>,
    deal: LinkDeal,
    /// What each link is told next: a message has room for two.
    first: Vec<Option<DoorbellWrite>>,
}

impl Doorbells {
    pub(crate) fn of(hardware: &Hardware) -> Self {
        let links: Vec<_> = hardware.links.iter().map(|link| link.doorbells).collect();
        Doorbells { first: vec![None; links.len()], links, deal: hardware.deal.clone() }
    }

    /// Tells each link of the writes to its queues, in their order.
    pub(crate) fn write(&mut self, turn: &mut Turn<'_>, writes: impl Iterator<Item = DoorbellWrite>) {
        for write in writes {
            let link = self.deal.of(write.queue);
            match self.first[link].take() {
                Some(first) => turn.send(self.links[link], DoorbellsWritten { first, second: Some(write) }),
                None => self.first[link] = Some(write),
            }
        }
        for (link, first) in self.links.iter().zip(&mut self.first) {
            if let Some(first) = first.take() {
                turn.send(*link, DoorbellsWritten { first, second: None });
            }
        }
    }
}
