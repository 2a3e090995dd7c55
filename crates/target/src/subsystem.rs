//! The NVM subsystem behind all front ends: which controllers live, whose they are, and what the drive has done so far.

use crate::auth::{Dialogue, Keys};
use crate::metrics::Figures;
use crate::port::{Moved, Port, QueuePair};
use nvme::spec::fabrics::DISCOVERY_SUBSYSTEM;
use nvme::spec::log_page::{HealthPage, warning};
use nvme::spec::{ALL_NAMESPACES, AdminOpcode, Completion, Opcode, Status, Submission, log_page};
use nvme::{AdminReply, Controller, ControllerSettings, DeviceEvent, Role, Transport};
use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, Span, Time};

/// Controllers alive at once, of all hosts together: each is memory, and a host can make as many as it likes.
const CONTROLLERS_MAX: usize = 64;

/// Granularity of the keep alive timer.
const KEEP_ALIVE_STEP: Span = Span::from_millis(100);

/// A discovery controller whose host sets no timer goes after this silence (Base §3.1.2.3 leaves it to the controller).
const DISCOVERY_PATIENCE: Span = Span::from_secs(120);

/// A connection, as the server names it.
pub(crate) type ConnectionId = usize;

/// Who may use the subsystem, and what it is like.
pub struct SubsystemSettings {
    /// What every storage controller is like; identifier, transport and keep alive are filled in.
    pub controller: ControllerSettings,
    /// Names of the hosts that may connect; none is all.
    pub allowed: Vec<String>,
    /// The secrets of hosts: those without one are refused, the others have to prove who they are. `None` asks for no proof.
    pub keys: Option<Keys>,
    /// How the drive is. It looks at every block, so it is not asked all the time.
    pub health: Box<dyn Fn() -> DriveHealth + Send>,
}

/// How the drive is, beyond what goes through the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveHealth {
    /// How much of the endurance is used, in per cent.
    pub percentage_used: u8,
    /// How much of the spare capacity is left, in per cent.
    pub available_spare: u8,
    /// Whether it takes no more writes.
    pub read_only: bool,
}

impl DriveHealth {
    const NEW: DriveHealth = DriveHealth { percentage_used: 0, available_spare: 100, read_only: false };

    /// Bits of the critical warning (Base §5.16.1.3).
    fn warnings(self) -> u8 {
        let spare = if self.available_spare < SPARE_THRESHOLD { warning::SPARE } else { 0 };
        spare | if self.read_only { warning::READ_ONLY } else { 0 }
    }
}

/// Spare capacity below which there is a warning, in per cent.
const SPARE_THRESHOLD: u8 = 10;

/// How often the drive is asked how it is, so that hosts hear of it that do not ask.
const LOOK_EVERY: Span = Span::from_secs(1);

/// A controller that a host has connected to.
pub(crate) struct Live {
    pub(crate) controller: Controller,
    pub(crate) host: String,
    pub(crate) host_id: [u8; 16],
    pub(crate) admin: ConnectionId,
    /// Connections of its I/O queues.
    pub(crate) queues: BTreeMap<u16, ConnectionId>,
    /// I/O queues it may have.
    pub(crate) granted: u16,
    last_heard: Time,
    patience: Option<Span>,
}

impl Live {
    /// Any command counts (CTRATT, traffic-based keep alive).
    pub(crate) fn heard(&mut self, now: Time) {
        self.last_heard = now;
    }

    fn expires_at(&self) -> Option<Time> {
        let patience = self.controller.keep_alive_timeout().or(self.patience)?;
        Some(self.last_heard + patience)
    }
}

/// What the drive has done since it was started.
#[derive(Debug, Default)]
pub(crate) struct Served {
    sectors_read: u64,
    sectors_written: u64,
    reads: u64,
    writes: u64,
    media_errors: u64,
    outstanding: u32,
    busy_since: Time,
    busy: Span,
}

impl Served {
    /// A command goes to the firmware.
    pub(crate) fn begin(&mut self, now: Time) {
        if self.outstanding == 0 {
            self.busy_since = now;
        }
        self.outstanding += 1;
    }

    /// A command comes back. Media errors are those of status type 2 that mean lost data (80h, 81h).
    pub(crate) fn end(&mut self, now: Time, opcode: Opcode, bytes: usize, completion: &Completion) {
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.busy += now.since(self.busy_since);
        }
        let status = completion.status();
        self.media_errors += u64::from(status.code_type() == 2 && matches!(status.code(), 0x80 | 0x81));
        if !status.is_success() {
            return;
        }
        let sectors = bytes as u64 / units::SECTOR_BYTES;
        match opcode {
            Opcode::Read | Opcode::Compare => {
                self.sectors_read += sectors;
                self.reads += 1;
            }
            Opcode::Write => {
                self.sectors_written += sectors;
                self.writes += 1;
            }
            _ => {}
        }
    }

    /// The page, `now` after the drive was started. It has no thermometer: its temperature stays 0, and its power has
    /// come once.
    fn health(&self, now: Time, drive: DriveHealth) -> HealthPage {
        let minutes = |span: Span| u128::from(span.picos() / Span::from_secs(60).picos());
        let mut page = HealthPage::default();
        page.set_critical_warning(drive.warnings())
            .set_available_spare(drive.available_spare)
            .set_spare_threshold(SPARE_THRESHOLD)
            .set_percentage_used(drive.percentage_used)
            .set_data_units_read(u128::from(self.sectors_read.div_ceil(1000)))
            .set_data_units_written(u128::from(self.sectors_written.div_ceil(1000)))
            .set_host_reads(self.reads.into())
            .set_host_writes(self.writes.into())
            .set_busy_minutes(minutes(self.busy))
            .set_power_cycles(1)
            .set_power_on_hours(minutes(now.since(Time::ZERO)) / 60)
            .set_media_errors(self.media_errors.into());
        page
    }
}

/// Who waits for a flush of the front end's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flush {
    /// A host shuts its controller down.
    ShutDown(u16),
    /// The server ends.
    End,
    /// Who waited has been reset.
    Nobody,
}

/// The subsystem.
pub(crate) struct Subsystem {
    pub(crate) settings: SubsystemSettings,
    pub(crate) controllers: BTreeMap<u16, Live>,
    pub(crate) served: Served,
    /// Connections that are to be closed.
    pub(crate) doomed: Vec<ConnectionId>,
    drive: DriveHealth,
    looked_at: Time,
    next_controller: u16,
    own: QueuePair,
    /// Who waits for the flush that is under way, and for one that is yet to begin: it alone covers what they wrote.
    flushing: BTreeSet<Flush>,
    to_flush: BTreeSet<Flush>,
    is_durable: Option<bool>,
}

impl Subsystem {
    /// A subsystem that takes a queue pair of the port for its own flushes.
    pub(crate) fn new(settings: SubsystemSettings, port: &mut Port) -> Self {
        let own = port.take_pair().expect("the port has a pair for the subsystem itself");
        Subsystem {
            settings,
            controllers: BTreeMap::new(),
            served: Served::default(),
            doomed: Vec::new(),
            drive: DriveHealth::NEW,
            looked_at: Time::ZERO,
            next_controller: 1,
            own,
            flushing: BTreeSet::new(),
            to_flush: BTreeSet::new(),
            is_durable: None,
        }
    }

    /// Whether the subsystem lets a host in.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let SubsystemSettings { allowed, keys, .. } = &self.settings;
        let is_named = allowed.is_empty() || allowed.iter().any(|allowed| allowed == host);
        is_named && keys.as_ref().is_none_or(|keys| keys.knows(host))
    }

    /// How the host of a controller proves who it is on a new queue, where it has to. Discovery tells names only and asks for
    /// nothing.
    pub(crate) fn dialogue(&self, controller: u16) -> Option<Dialogue> {
        let Live { controller, host, .. } = self.controllers.get(&controller)?;
        let secrets = self.settings.keys.as_ref()?.of(host)?.clone();
        let is_storage = matches!(controller.settings().role, Role::Storage);
        is_storage.then(|| Dialogue::new(secrets, host, &self.settings.controller.subsystem))
    }

    /// Makes a controller for a host; nothing if there are too many. `discovery` has the entries of a discovery
    /// controller's log.
    pub(crate) fn create(&mut self, mut live: NewController, now: Time) -> Option<u16> {
        if self.controllers.len() >= CONTROLLERS_MAX {
            return None;
        }
        let id = self.free_identifier();
        let mut settings = self.settings.controller.clone();
        settings.controller_id = id;
        settings.transport = Transport::Message { capsule: Bytes(crate::pdu::CAPSULE_MAX as u64) };
        settings.keep_alive = Some(KEEP_ALIVE_STEP);
        let mut patience = None;
        if let Some(entries) = live.discovery.take() {
            settings.subsystem = DISCOVERY_SUBSYSTEM.into();
            settings.namespaces.clear();
            settings.role = Role::Discovery(entries);
            patience = Some(DISCOVERY_PATIENCE);
        }
        let mut controller = Controller::new(settings);
        controller.on_connected(live.host_id, live.keep_alive_ms);
        let NewController { host, host_id, admin, .. } = live;
        let queues = BTreeMap::new();
        let live = Live { controller, host, host_id, admin, queues, granted: 0, last_heard: now, patience };
        self.controllers.insert(id, live);
        Some(id)
    }

    /// Puts a controller whose queues are in host memory into its place `id`, new as after power-on. What it was before, and
    /// what it waited for, is forgotten.
    pub(crate) fn plug(&mut self, id: u16) {
        let controller = Controller::new(self.settings.controller.clone());
        if self.flushing.remove(&Flush::ShutDown(id)) {
            self.flushing.insert(Flush::Nobody);
        }
        self.to_flush.remove(&Flush::ShutDown(id));
        let live = Live {
            controller,
            host: String::new(),
            host_id: [0; 16],
            admin: 0,
            queues: BTreeMap::new(),
            granted: 0,
            last_heard: Time::ZERO,
            patience: None,
        };
        self.controllers.insert(id, live);
    }

    /// Answers an admin command, with figures that are true now.
    pub(crate) fn administer(&mut self, id: u16, submission: &Submission, now: Time) -> AdminReply {
        let is_log = submission.opcode() == AdminOpcode::GetLogPage as u8;
        if is_log && submission.dword(10) as u8 == log_page::HEALTH {
            self.refresh_health(id, now);
        }
        let status = Status::COMMAND_SEQUENCE_ERROR;
        let live = self.controllers.get_mut(&id);
        live.map_or(AdminReply::Complete { result: 0, status }, |live| live.controller.admin(submission))
    }

    /// Identifiers are not used again soon, so that a host that lost its controller does not find another's.
    fn free_identifier(&mut self) -> u16 {
        loop {
            let id = self.next_controller;
            self.next_controller = if id >= 0xffef { 1 } else { id + 1 };
            if !self.controllers.contains_key(&id) {
                return id;
            }
        }
    }

    /// Ends a controller; its connections are doomed.
    pub(crate) fn end(&mut self, id: u16) {
        if let Some(live) = self.controllers.remove(&id) {
            self.doomed.push(live.admin);
            self.doomed.extend(live.queues.into_values());
        }
    }

    /// Does what a controller asks of its device end. What ends held event requests, and what queues in host memory need, is
    /// given back.
    pub(crate) fn obey(&mut self, port: &mut Port, id: u16, now: Time) -> Vec<DeviceEvent> {
        let mut told = Vec::new();
        while let Some(live) = self.controllers.get_mut(&id) {
            let Some(event) = live.controller.next_event() else { break };
            match event {
                DeviceEvent::StartOverMessages => live.controller.on_started(),
                DeviceEvent::Stop if live.controller.settings().transport == Transport::Memory => told.push(event),
                DeviceEvent::Stop => {
                    self.doomed.extend(std::mem::take(&mut live.queues).into_values());
                    live.controller.on_stopped();
                    told.push(event);
                }
                DeviceEvent::ShutDown { .. } => self.flush(port, Flush::ShutDown(id), now),
                // What features say is read where it is needed.
                DeviceEvent::FeatureChanged(_) => {}
                _ => told.push(event),
            }
        }
        told
    }

    /// Makes everything durable, then tells [`Subsystem::is_durable`].
    pub(crate) fn make_durable(&mut self, port: &mut Port, now: Time) {
        self.flush(port, Flush::End, now);
    }

    /// Whether [`Subsystem::make_durable`] went well, once it is done.
    pub(crate) fn is_durable(&self) -> Option<bool> {
        self.is_durable
    }

    fn flush(&mut self, port: &mut Port, who: Flush, now: Time) {
        self.to_flush.insert(who);
        if self.flushing.is_empty() {
            let slot = self.own.take_slot().expect("no other flush is under way");
            self.flushing = std::mem::take(&mut self.to_flush);
            self.served.begin(now);
            port.submit(&mut self.own, slot, Submission::new(Opcode::Flush as u8, ALL_NAMESPACES), Moved::Nothing);
        }
    }

    /// Takes the completion of its own flush, and begins the next one if somebody waits for it.
    pub(crate) fn reap(&mut self, port: &mut Port, now: Time) {
        let Some(completion) = port.reap(&mut self.own) else { return };
        self.own.give_back(completion.command_id());
        self.served.end(now, Opcode::Flush, 0, &completion);
        for flush in std::mem::take(&mut self.flushing) {
            match flush {
                Flush::ShutDown(id) => {
                    if let Some(live) = self.controllers.get_mut(&id) {
                        live.controller.on_shut_down();
                    }
                }
                Flush::End => self.is_durable = Some(completion.status().is_success()),
                Flush::Nobody => {}
            }
        }
        if let Some(next) = self.to_flush.pop_first() {
            self.flush(port, next, now);
        }
    }

    /// Asks the drive how it is, now and then; hosts are told of a new warning where they wait for such an event.
    pub(crate) fn watch(&mut self, now: Time) {
        if now.since(self.looked_at) < LOOK_EVERY {
            return;
        }
        self.looked_at = now;
        let before = self.drive.warnings();
        self.drive = (self.settings.health)();
        if self.drive.warnings() != before {
            let ids: Vec<u16> = self.controllers.keys().copied().collect();
            ids.into_iter().for_each(|id| self.show_health(id, now));
        }
    }

    /// Puts true figures into a controller's health page.
    pub(crate) fn refresh_health(&mut self, id: u16, now: Time) {
        self.drive = (self.settings.health)();
        self.show_health(id, now);
    }

    fn show_health(&mut self, id: u16, now: Time) {
        let page = self.served.health(now, self.drive);
        if let Some(live) = self.controllers.get_mut(&id) {
            live.controller.set_health(page);
        }
    }

    /// What a watcher may know of it.
    pub(crate) fn figures(&self) -> Figures {
        let served = &self.served;
        Figures {
            controllers: self.controllers.len() as u64,
            outstanding: served.outstanding.into(),
            reads: served.reads,
            writes: served.writes,
            bytes_read: served.sectors_read * units::SECTOR_BYTES,
            bytes_written: served.sectors_written * units::SECTOR_BYTES,
            media_errors: served.media_errors,
            percentage_used: self.drive.percentage_used.into(),
            ..Figures::default()
        }
    }

    /// Ends the controllers whose hosts were silent for too long; how many.
    pub(crate) fn expire(&mut self, now: Time) -> usize {
        let is_over = |live: &Live| live.expires_at().is_some_and(|at| at <= now);
        let expired: Vec<u16> = self.controllers.iter().filter(|(_, live)| is_over(live)).map(|(id, _)| *id).collect();
        expired.iter().for_each(|id| self.end(*id));
        expired.len()
    }

    /// When the next host will have been silent for too long.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.controllers.values().filter_map(Live::expires_at).min()
    }
}

/// What a controller is made from.
pub(crate) struct NewController {
    pub(crate) host: String,
    pub(crate) host_id: [u8; 16],
    pub(crate) keep_alive_ms: u32,
    pub(crate) admin: ConnectionId,
    pub(crate) discovery: Option<Vec<nvme::spec::fabrics::DiscoveryEntry>>,
}
