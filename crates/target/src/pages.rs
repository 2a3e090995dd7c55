//! What hosts read of the drive itself: log pages that the subsystem writes for its controllers, and health, of which it tells unasked.

use crate::subsystem::{Live, Subsystem};
use nvme::spec::{AdminOpcode, Completion, Opcode, Status, Submission, identify, log_page};
use units::{QueueId, Span, Time};

/// Log pages that the subsystem writes for its controllers.
pub(crate) const PAGES: [u8; 4] =
    [log_page::SELF_TEST, log_page::ENDURANCE_GROUP, log_page::OCP_HEALTH, log_page::OCP_LATENCY];

/// How often the drive is asked how it is, so that hosts hear of it that do not ask.
const LOOK_EVERY: Span = Span::from_secs(1);

/// How often it is asked in such a time at most: what else the answer is made of waits for it.
const LOOKS_MAX: u32 = 16;

/// Whether an answer says how much of the drive is in use, or whether it takes writes (NUSE, NSATTR): of all that Identify tells three.
pub(crate) fn tells_of_use(submission: &Submission) -> bool {
    let telling = [identify::NAMESPACE, identify::INDEPENDENT_NAMESPACE, identify::ALLOCATED_NAMESPACE];
    submission.opcode() == AdminOpcode::Identify as u8 && telling.contains(&(submission.dword(10) as u8))
}

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
        if matches!(page, log_page::ENDURANCE_GROUP | log_page::OCP_HEALTH) {
            self.refresh();
        }
        let bytes = self.page(page);
        if let Some(live) = self.storage(id) {
            live.controller.set_page(page, bytes);
        }
    }

    /// Tells a controller how much of the drive is in use, and whether it takes writes.
    pub(crate) fn refresh_namespaces(&mut self, id: u16) {
        self.refresh();
        if let Some(live) = self.controllers.get_mut(&id) {
            live.controller.set_used(self.drive.media.used);
            live.controller.set_write_protected(self.drive.read_only);
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
        self.looks = 0;
        self.refresh();
        // Each controller knows what its host was told: one that is new, or that another's host has asked before, was told nothing.
        let ids: Vec<u16> = self.controllers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.show_health(id, now));
    }

    /// Asks the drive how it is, unless hosts have had that done too often of late: then it is as it was.
    fn refresh(&mut self) {
        if self.looks < LOOKS_MAX {
            self.looks += 1;
            self.drive = self.look();
        }
    }

    /// A command comes back from the drive; whether somebody waited for it. A Write Fault may be the first that is heard of a drive that
    /// takes no more writes: whatever keeps that, as the look does, knows it before a host is told.
    pub(crate) fn take_back(&mut self, now: Time, queue: QueueId, opcode: Opcode, completion: &Completion) -> bool {
        if completion.status().is_same(Status::WRITE_FAULT) && !self.drive.read_only {
            self.ask_for_room();
            self.drive = self.look();
        }
        self.served.end(now, queue, opcode, completion)
    }

    /// Puts true figures into a controller's health page.
    pub(crate) fn refresh_health(&mut self, id: u16, now: Time) {
        self.refresh();
        self.show_health(id, now);
    }

    fn show_health(&mut self, id: u16, now: Time) {
        let (page, is_read_only) = (self.served.health(now, self.drive), self.drive.read_only);
        if let Some(live) = self.storage(id) {
            live.controller.set_health(page);
            live.controller.set_write_protected(is_read_only);
        }
    }

    /// A controller that is no discovery controller: those have no such pages.
    fn storage(&mut self, id: u16) -> Option<&mut Live> {
        self.controllers.get_mut(&id).filter(|live| live.is_storage())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::DriveHealth;
    use crate::port::{Line, Port};
    use crate::rehearsal::tests::settings;
    use crate::rehearsal::{Plain, SHAPE, open_to_all};
    use crate::subsystem::NewController;
    use nvme::DeviceEvent;
    use nvme::spec::{DataPointer, registers};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A subsystem of a drive whose spare capacity is as given; how often the drive was looked at is counted.
    fn subsystem() -> (Subsystem, Port, [Arc<AtomicU32>; 2]) {
        let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        let [spare, looks] = [100, 0].map(|value| Arc::new(AtomicU32::new(value)));
        let (left, counted) = (spare.clone(), looks.clone());
        let health = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            DriveHealth { available_spare: left.load(Ordering::Relaxed) as u8, ..DriveHealth::NEW }
        };
        let mut settings = open_to_all(settings());
        settings.health = Box::new(health);
        (Subsystem::new(settings, &mut port), port, [spare, looks])
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    /// A host's controller, enabled, with event requests held.
    fn waiting(subsystem: &mut Subsystem, port: &mut Port) -> u16 {
        let id = subsystem.create(NewController::default(), Time::ZERO).expect("there is room");
        let live = subsystem.controllers.get_mut(&id).expect("it lives");
        live.controller.write_property(registers::CC, 0x46_0061);
        subsystem.obey(port, id, Time::ZERO);
        for command in [1, 2] {
            let request = Submission::asynchronous_event_request().with_command_id(command);
            subsystem.administer(id, &request, &[], Time::ZERO);
        }
        id
    }

    #[test]
    fn every_host_is_told_of_a_warning_whenever_it_comes_and_whoever_asked_before() {
        let (mut subsystem, mut port, [spare, _]) = subsystem();
        let first = waiting(&mut subsystem, &mut port);
        let second = waiting(&mut subsystem, &mut port);
        subsystem.watch(at(1));
        spare.store(5, Ordering::Relaxed);
        let health = Submission::get_log_page(log_page::HEALTH, 0, 128, DataPointer::default());
        subsystem.administer(second, &health, &[], at(1));
        subsystem.watch(at(2));
        let late = waiting(&mut subsystem, &mut port);
        subsystem.watch(at(3));
        for id in [first, second, late] {
            let told = subsystem.obey(&mut port, id, at(3));
            assert!(matches!(told[..], [DeviceEvent::HeldCommandDone { result: 0x02_02_01, .. }]), "{id}: {told:?}");
        }
        for id in [first, second, late] {
            subsystem.administer(id, &health, &[], at(3));
            subsystem.watch(at(4));
            assert_eq!(subsystem.obey(&mut port, id, at(4)), [], "it is told once");
        }
    }

    #[test]
    fn a_worn_out_drive_says_so_to_the_first_host() {
        let mut port = Port::new(Arc::new(Plain::new()), SHAPE, Arc::new(Line::new(SHAPE.pairs)));
        let mut settings = open_to_all(settings());
        settings.health = Box::new(|| DriveHealth { read_only: true, ..DriveHealth::NEW });
        let mut subsystem = Subsystem::new(settings, &mut port);
        subsystem.create(NewController::default(), Time::ZERO).expect("there is room");
        assert!(subsystem.drive.read_only, "before anybody asks for health, and before the first watch");
    }

    #[test]
    fn a_host_that_asks_all_the_time_has_the_drive_looked_at_now_and_then() {
        let (mut subsystem, mut port, [spare, looks]) = subsystem();
        let id = waiting(&mut subsystem, &mut port);
        for second in 1..=3 {
            subsystem.watch(at(second));
            spare.store(100 - second as u32, Ordering::Relaxed);
            subsystem.refresh_health(id, at(second));
            assert_eq!(u64::from(subsystem.drive.available_spare), 100 - second, "as it is");
            (0..1000).for_each(|_| subsystem.refresh_namespaces(id));
            let looked = u64::from(looks.load(Ordering::Relaxed));
            assert_eq!(looked, 1 + second * u64::from(LOOKS_MAX), "once at the start");
        }
    }

    #[test]
    fn the_drive_is_looked_at_for_what_depends_on_it_alone() {
        let (mut subsystem, mut port, [_, looks]) = subsystem();
        let id = waiting(&mut subsystem, &mut port);
        let looked_for: Vec<u8> = (0..=0x1f)
            .filter(|&structure| {
                let before = looks.load(Ordering::Relaxed);
                let command = Submission::identify(structure, 1, DataPointer::default());
                subsystem.administer(id, &command, &[], Time::ZERO);
                looks.load(Ordering::Relaxed) > before
            })
            .collect();
        assert_eq!(looked_for, [0x00, 0x08, 0x11]);
    }
}
