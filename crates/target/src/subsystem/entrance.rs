//! How a controller comes to take part in the subsystem, and how it goes. One whose host has yet to prove who it is takes no part: nobody
//! is told that it is there, and it costs those that do nothing.

use super::{Live, Subsystem};
use crate::pages::PAGES;
use std::sync::Arc;

impl Live {
    /// Whether it shares namespaces with others: no discovery controller does, nor one of a host that has yet to prove who it is.
    fn takes_part(&self) -> bool {
        self.is_storage() && self.is_proved
    }
}

impl Subsystem {
    /// The host of a controller has proved who it is: it keeps that if it leaves others as many places as it takes.
    pub(crate) fn vouch_for(&mut self, controller: u16) {
        let unproved = self.controllers.get(&controller).filter(|live| !live.is_proved);
        let Some(host) = unproved.map(|live| live.host.clone()) else { return };
        if self.leaves_places(&host) {
            self.controllers.get_mut(&controller).expect("it was found").is_proved = true;
            self.enter(controller);
        } else {
            self.end(controller);
        }
    }

    /// A controller takes part from now on, if it is one that does, and has every namespace that is shown.
    pub(super) fn enter(&mut self, id: u16) {
        if self.controllers.get(&id).is_some_and(Live::takes_part) {
            Arc::make_mut(&mut self.namespaces).enter(id);
            self.introduce(id);
        }
    }

    /// A new controller gets the namespaces of the subsystem, and pages that the subsystem writes. Its errors are counted on from those of
    /// all controllers so far, so that no host sees the count go back (Base §5.16.1.2).
    pub(super) fn introduce(&mut self, id: u16) {
        self.share_namespaces();
        let own = self.controllers.get(&id).filter(|live| live.is_storage());
        let errors = self.errors_of_all() - own.map_or(0, |live| live.controller.errors());
        let pages = PAGES.map(|page| (page, self.page(page)));
        let is_read_only = self.drive.read_only;
        let Some(live) = self.controllers.get_mut(&id) else { return };
        live.controller.count_errors_from(errors);
        live.controller.set_write_protected(is_read_only);
        pages.into_iter().for_each(|(page, bytes)| live.controller.set_page(page, bytes));
    }

    /// Errors of all controllers that there were.
    pub(crate) fn errors_of_all(&self) -> u64 {
        let alive = self.controllers.values().filter(|live| live.is_storage());
        self.errors + alive.map(|live| live.controller.errors()).sum::<u64>()
    }

    /// Every controller knows which there are now. For the hosts of the others nothing is new when one comes or goes, so nobody looks.
    fn share_namespaces(&mut self) {
        for live in self.controllers.values_mut().filter(|live| live.takes_part()) {
            live.controller.with_namespaces(self.namespaces.clone());
        }
    }

    /// Every controller knows the namespaces as they are now, and tells its host what is new for it.
    pub(crate) fn spread(&mut self) {
        for live in self.controllers.values_mut().filter(|live| live.takes_part()) {
            live.controller.set_namespaces(&self.namespaces);
        }
    }

    /// Ends a controller; its connections are doomed.
    pub(crate) fn end(&mut self, id: u16) {
        let Some(mut live) = self.controllers.remove(&id) else { return };
        if live.is_storage() {
            self.errors += live.controller.errors();
        }
        self.forget_waiting(id);
        self.doomed.push(live.admin);
        self.doomed.extend(live.take_queues());
        if live.takes_part() {
            Arc::make_mut(&mut self.namespaces).leave(id);
            self.share_namespaces();
        }
    }
}

#[cfg(test)]
mod tests;
