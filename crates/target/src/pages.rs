//! What hosts read of the drive itself: log pages that the subsystem writes for its controllers, and health, of which it tells unasked.

use crate::subsystem::Subsystem;
use nvme::Role;
use nvme::spec::log_page;
use units::{Span, Time};

/// Log pages that the subsystem writes for its controllers.
pub(crate) const PAGES: [u8; 4] =
    [log_page::SELF_TEST, log_page::ENDURANCE_GROUP, log_page::OCP_HEALTH, log_page::OCP_LATENCY];

/// How often the drive is asked how it is, so that hosts hear of it that do not ask.
const LOOK_EVERY: Span = Span::from_secs(1);

impl Subsystem {
    /// A page as it is to be read now.
    pub(crate) fn page(&self, page: u8) -> Vec<u8> {
        match page {
            log_page::SELF_TEST => self.chores.self_test_page(),
            log_page::ENDURANCE_GROUP => {
                self.served.endurance(&self.drive, self.namespaces.bytes()).as_bytes().to_vec()
            }
            log_page::OCP_HEALTH => {
                let used_blocks = self.namespaces.used_blocks(self.drive.media.used);
                self.served.ocp_health(&self.drive, used_blocks).as_bytes().to_vec()
            }
            _ => self.served.ocp_latency(),
        }
    }

    /// Puts true figures into such a page of a controller.
    pub(crate) fn refresh_page(&mut self, id: u16, page: u8) {
        self.drive = self.look();
        let bytes = self.page(page);
        if let Some(live) =
            self.controllers.get_mut(&id).filter(|live| live.controller.settings().role == Role::Storage)
        {
            live.controller.set_page(page, bytes);
        }
    }

    /// Tells a controller how much of the drive is in use.
    pub(crate) fn refresh_used(&mut self, id: u16) {
        self.drive = self.look();
        if let Some(live) = self.controllers.get_mut(&id) {
            live.controller.set_used(self.drive.media.used);
        }
    }

    /// Asks the drive how it is, now and then; hosts are told of a new warning where they wait for such an event.
    pub(crate) fn watch(&mut self, now: Time) {
        if now.since(self.looked_at) < LOOK_EVERY {
            return;
        }
        self.looked_at = now;
        self.keep_news(now);
        self.ask_for_room();
        let before = self.drive.warnings();
        self.drive = self.look();
        if self.drive.warnings() != before {
            let ids: Vec<u16> = self.controllers.keys().copied().collect();
            ids.into_iter().for_each(|id| self.show_health(id, now));
        }
    }

    /// Puts true figures into a controller's health page.
    pub(crate) fn refresh_health(&mut self, id: u16, now: Time) {
        self.drive = self.look();
        self.show_health(id, now);
    }

    fn show_health(&mut self, id: u16, now: Time) {
        let page = self.served.health(now, self.drive);
        if let Some(live) = self.controllers.get_mut(&id) {
            live.controller.set_health(page);
        }
    }
}
