//! The NVM subsystem behind all front ends: which controllers live, whose they are, and what the drive has done so far.

use crate::auth::{Dialogue, Keys, Pair};
use crate::chores::{Chores, TestResult};
use crate::crowd::{Origin, Unproved, gives_way};
use crate::health::DriveHealth;
use crate::kept::KeepTable;
use crate::lifetime::{KeepLifetime, Lifetime};
use crate::metrics::Figures;
use crate::orphan::{Host, Orphan, Transition};
use crate::pages::{PAGES, tells_of_use};
use crate::port::{Port, QueuePair};
use crate::proof::Pace;
use crate::rest::KeepShutDown;
use crate::room::{HasRoom, Room};
use crate::served::Served;
use nvme::spec::fabrics::DISCOVERY_SUBSYSTEM;
use nvme::spec::{AdminOpcode, Opcode, Status, Submission, log_page};
use nvme::{AdminReply, Controller, ControllerSettings, DeviceEvent, Namespaces, Role, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{Bytes, Span, Time};

mod entrance;
mod flushes;
#[cfg(test)]
mod tests;

pub(crate) use flushes::Flush;
use flushes::Settling;

/// Storage controllers alive at once, of all hosts together; as many more whose hosts have yet to prove who they are, and as many for
/// discovery: each is memory, and a host can make as many as it likes.
pub(crate) const CONTROLLERS_MAX: usize = 64;

/// Granularity of the keep alive timer.
const KEEP_ALIVE_STEP: Span = Span::from_millis(100);

/// A discovery controller whose host sets no timer goes after this silence (Base §3.1.2.3 leaves it to the controller).
const DISCOVERY_PATIENCE: Span = Span::from_secs(120);

/// A controller whose keep alive timer does not run goes after this silence: its host must be able to read for two minutes that a reset or
/// a shutdown is complete (Base §3.6.2, §3.7.2), and may be gone.
const ASSOCIATION_PATIENCE: Span = Span::from_secs(120);

/// A connection, as the server names it.
pub(crate) type ConnectionId = usize;

/// Who may use the subsystem, and what it is like.
pub struct SubsystemSettings {
    /// What every storage controller is like; identifier, transport and keep alive are filled in.
    pub controller: ControllerSettings,
    /// The namespaces there are at the start.
    pub namespaces: Namespaces,
    /// What keeps them, if anything does.
    pub keep: Option<KeepTable>,
    /// What says whether there is room for more writes, where it can run out.
    pub has_room: Option<HasRoom>,
    /// What the drive had done before it was switched on this time.
    pub lifetime: Lifetime,
    /// What keeps what it has done, if anything does.
    pub keep_lifetime: Option<KeepLifetime>,
    /// What keeps whether hosts have shut the drive down, if anything does.
    pub keep_shut_down: Option<KeepShutDown>,
    /// Names of the hosts that may connect; none is all.
    pub allowed: Vec<String>,
    /// The secrets of hosts: those without one are refused, the others have to prove who they are. `None` asks for no proof.
    pub keys: Option<Keys>,
    /// How the drive is. Hosts may have it asked often, on the thread that serves all of them: it takes no longer the larger the drive is.
    pub health: Box<dyn Fn() -> DriveHealth + Send>,
    /// Blocks of the drive in the unit that it maps.
    pub unit_blocks: u64,
}

/// How many I/O queues a controller may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Granted {
    /// Nobody has asked.
    Nothing,
    /// What Get Features told last: it changes as others take queues, until the host sets it or connects one.
    Told(u16),
    /// What was told when the first queue connected, of a host that did not ask.
    Taken(u16),
    /// What Set Features granted.
    Set(u16),
}

/// A controller that a host has connected to.
pub(crate) struct Live {
    pub(crate) controller: Controller,
    pub(crate) host: Arc<Host>,
    pub(crate) admin: ConnectionId,
    /// Connections of its I/O queues.
    pub(crate) queues: BTreeMap<u16, ConnectionId>,
    /// Connections that are to be I/O queues of it once they have proved to be of its host. Until then nothing of it is theirs.
    pub(crate) unproved: BTreeSet<ConnectionId>,
    /// I/O queues that it may have since its last reset.
    pub(crate) granted: Granted,
    /// What it waits for until nothing of before is under way.
    pub(crate) transition: Option<Transition>,
    last_heard: Time,
    /// When the interval of its keep alive timer began that it is in, and whether anything was heard within that.
    interval_since: Time,
    is_heard: bool,
    patience: Option<Span>,
    /// Whether its host is who it says, where hosts have to prove it.
    is_proved: bool,
    /// Whether its host has begun to.
    has_begun: bool,
    origin: Origin,
}

impl Live {
    /// Any command counts (CTRATT, traffic-based keep alive).
    pub(crate) fn heard(&mut self, now: Time) {
        (self.last_heard, self.is_heard) = (now, true);
    }

    /// Its host has what it waited for: that it is ready, disabled or shut down. What it is silent from now on counts.
    pub(crate) fn begin_interval(&mut self, now: Time) {
        (self.last_heard, self.interval_since, self.is_heard) = (now, now, false);
    }

    /// How long an interval of the keep alive timer is, while it runs.
    fn interval(&self) -> Option<Span> {
        self.controller.keep_alive_timeout().filter(|_| self.controller.runs_keep_alive())
    }

    /// It has no I/O queues any more: the connections that were, or were to be.
    fn take_queues(&mut self) -> impl Iterator<Item = ConnectionId> + use<> {
        std::mem::take(&mut self.queues).into_values().chain(std::mem::take(&mut self.unproved))
    }

    /// I/O queues that its host asked for and was granted, and that are not connected.
    pub(crate) fn promised(&self) -> usize {
        match self.granted {
            Granted::Set(granted) => usize::from(granted).saturating_sub(self.queues.len()),
            Granted::Nothing | Granted::Told(_) | Granted::Taken(_) => 0,
        }
    }

    /// Whether it is no discovery controller.
    pub(crate) fn is_storage(&self) -> bool {
        self.controller.settings().role == Role::Storage
    }

    fn expires_at(&self) -> Option<Time> {
        if self.transition.is_some() || self.controller.is_shutting_down() {
            return None;
        }
        if let Some(interval) = self.interval() {
            return Some(self.interval_since + interval);
        }
        let patience = if self.controller.runs_keep_alive() { self.patience? } else { ASSOCIATION_PATIENCE };
        Some(self.last_heard + patience)
    }
}

/// The subsystem.
pub(crate) struct Subsystem {
    pub(crate) settings: SubsystemSettings,
    pub(crate) controllers: BTreeMap<u16, Live>,
    pub(crate) served: Served,
    /// Errors of controllers that are gone.
    errors: u64,
    /// Connections that are to be closed.
    pub(crate) doomed: Vec<ConnectionId>,
    /// What is under way for queues that are gone.
    pub(crate) orphans: Vec<Orphan>,
    pub(crate) drive: DriveHealth,
    pub(crate) looked_at: Time,
    /// How often hosts had the drive looked at since.
    pub(crate) looks: u32,
    pub(crate) proofs: Pace,
    next_controller: u16,
    pub(crate) own: QueuePair,
    /// The namespaces of all controllers.
    pub(crate) namespaces: Arc<Namespaces>,
    /// Their table as it was kept last.
    pub(crate) kept: Vec<u8>,
    pub(crate) chores: Chores,
    /// The slot of the flush that is under way.
    flush_slot: Option<u16>,
    /// Who waits for the flush that is under way, and for one that is yet to begin: it alone covers what they wrote.
    pub(crate) flushing: BTreeSet<Flush>,
    pub(crate) to_flush: BTreeSet<Flush>,
    /// Who waits for one until commands are over that were under way, and who came while these waited: nobody waits for what comes later.
    settling: BTreeSet<Flush>,
    to_settle: BTreeSet<Flush>,
    is_durable: Option<bool>,
    /// Whether hosts may have changed anything that no flush of its own covers: one that went well covers what was over as it began.
    pub(crate) is_unflushed: bool,
    /// Whether there is room for more writes.
    pub(crate) room: Room,
    /// What it has done, as that was kept last.
    pub(crate) kept_lifetime: Lifetime,
    /// Its hosts have shut it down.
    pub(crate) is_resting: bool,
    /// Whether its hosts have shut it down since one of them last used it.
    pub(crate) is_shut_down: bool,
    /// It was reset, and no host has taken notice.
    pub(crate) was_reset: bool,
}

impl Subsystem {
    /// A subsystem that takes a queue pair of the port for its own flushes.
    pub(crate) fn new(settings: SubsystemSettings, port: &mut Port) -> Self {
        let own = port.take_pair().expect("the port has a pair for the subsystem itself");
        let namespaces = Arc::new(settings.namespaces.clone());
        let shape = port.shape();
        assert_eq!(own.id(), shape.own(), "hosts' commands are told from its own by that");
        let lifetime = settings.lifetime;
        // A worn-out drive says so from the first moment on.
        let drive = (settings.health)();
        let served = Served::new(shape.pairs, shape.depth, namespaces.count(), settings.unit_blocks).after(lifetime);
        Subsystem {
            kept: namespaces.table(),
            chores: Chores::after(&lifetime, &namespaces),
            namespaces,
            flush_slot: None,
            settings,
            controllers: BTreeMap::new(),
            served,
            errors: lifetime.errors,
            doomed: Vec::new(),
            orphans: Vec::new(),
            drive,
            looked_at: Time::ZERO,
            looks: 0,
            proofs: Pace::default(),
            next_controller: 1,
            own,
            flushing: BTreeSet::new(),
            to_flush: BTreeSet::new(),
            settling: BTreeSet::new(),
            to_settle: BTreeSet::new(),
            is_durable: None,
            is_unflushed: false,
            room: Room::new(),
            kept_lifetime: lifetime,
            is_resting: false,
            is_shut_down: false,
            was_reset: false,
        }
    }

    /// Whether the subsystem lets a host in.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let SubsystemSettings { allowed, keys, .. } = &self.settings;
        let is_named = allowed.is_empty() || allowed.iter().any(|allowed| allowed == host);
        is_named && keys.as_ref().is_none_or(|keys| keys.knows(host))
    }

    /// How the host of a controller proves who it is on a new queue, where it has to.
    pub(crate) fn dialogue(&self, controller: u16) -> Option<Dialogue> {
        let Live { controller, host, .. } = self.controllers.get(&controller)?;
        let secrets = self.secrets(controller, host)?.clone();
        Some(Dialogue::new(secrets, &host.name, &self.settings.controller.subsystem))
    }

    /// By what the host of a controller has to prove who it is, if it has to. Discovery tells names only and asks for nothing.
    pub(crate) fn secrets(&self, controller: &Controller, host: &Host) -> Option<&Pair> {
        let is_storage = matches!(controller.settings().role, Role::Storage);
        self.settings.keys.as_ref().filter(|_| is_storage)?.secrets(&host.name)
    }

    /// Whether the host of a controller has begun to prove who it is.
    pub(crate) fn note_begun(&mut self, controller: u16, has_begun: bool) {
        if let Some(live) = self.controllers.get_mut(&controller) {
            live.has_begun = has_begun;
        }
    }

    /// Makes a controller for a host; nothing if there are too many. `discovery` has the entries of a discovery
    /// controller's log.
    pub(crate) fn create(&mut self, mut live: NewController, now: Time) -> Option<u16> {
        // Discovery is open to hosts that the subsystem does not let in: they take no places of those that it does.
        let is_like = |other: &Live| other.is_storage() != live.discovery.is_some();
        if live.discovery.is_none() && !self.leaves_places(&live.host) {
            return None;
        }
        // Those who have proved nothing give way, as nobody has who discovers: the others have places of their own. What they send before
        // that does not count as heard.
        let is_unproved = |other: &Live| is_like(other) && (!other.is_proved || live.discovery.is_some());
        let unproved = self.controllers.iter().filter(|(_, other)| is_unproved(other));
        if unproved.clone().count() >= CONTROLLERS_MAX {
            let unproved = unproved.map(|(&id, &Live { origin, has_begun, last_heard: age, .. })| Unproved {
                id,
                origin,
                has_begun,
                age,
            });
            self.end(gives_way(unproved)?);
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
            settings.managed_namespaces = 0;
            settings.role = Role::Discovery(entries);
            patience = Some(DISCOVERY_PATIENCE);
        }
        let mut controller = Controller::new(settings);
        if controller.settings().role == Role::Storage && self.was_reset {
            controller.note_reset();
        }
        controller.on_connected(live.host.id, live.keep_alive_ms);
        let NewController { host, admin, origin, .. } = live;
        let is_proved = self.secrets(&controller, &host).is_none();
        let live = Live {
            controller,
            host,
            admin,
            queues: BTreeMap::new(),
            unproved: BTreeSet::new(),
            granted: Granted::Nothing,
            transition: None,
            last_heard: now,
            interval_since: now,
            is_heard: false,
            patience,
            is_proved,
            has_begun: false,
            origin,
        };
        self.controllers.insert(id, live);
        self.enter(id);
        Some(id)
    }

    /// Whether another storage controller of a host leaves others as many places as the host has taken: so one host takes half of all at
    /// most, a second half of the rest, and who has none finds one.
    fn leaves_places(&self, host: &Host) -> bool {
        let taken = self.controllers.values().filter(|live| live.is_storage() && live.is_proved);
        let own = taken.clone().filter(|live| live.host.is_same(host)).count();
        taken.count() + own < CONTROLLERS_MAX
    }

    /// Puts a controller whose queues are in host memory into its place `id`, new as after power-on. What it was before, and
    /// what it waited for, is forgotten; it keeps its namespaces, and its errors count on.
    pub(crate) fn plug(&mut self, id: u16) {
        let controller = Controller::new(self.settings.controller.clone());
        match self.controllers.remove(&id) {
            Some(live) => self.errors += live.controller.errors(),
            None => Arc::make_mut(&mut self.namespaces).enter(id),
        }
        self.forget_waiting(id);
        let live = Live {
            controller,
            host: Arc::default(),
            admin: 0,
            queues: BTreeMap::new(),
            unproved: BTreeSet::new(),
            granted: Granted::Nothing,
            transition: None,
            last_heard: Time::ZERO,
            interval_since: Time::ZERO,
            is_heard: false,
            patience: None,
            is_proved: true,
            has_begun: false,
            origin: Origin::default(),
        };
        self.controllers.insert(id, live);
        self.introduce(id);
    }

    /// Answers an admin command, with figures that are true now.
    pub(crate) fn administer(&mut self, id: u16, submission: &Submission, data: &[u8], now: Time) -> AdminReply {
        let is_log = submission.opcode() == AdminOpcode::GetLogPage as u8;
        match submission.dword(10) as u8 {
            log_page::HEALTH if is_log => self.refresh_health(id, now),
            page if is_log && PAGES.contains(&page) => self.refresh_page(id, page),
            _ if submission.opcode() == AdminOpcode::DeviceSelfTest as u8 => self.refresh_page(id, log_page::SELF_TEST),
            _ if tells_of_use(submission) => self.refresh_namespaces(id),
            _ => {}
        }
        let status = Status::COMMAND_SEQUENCE_ERROR;
        let Some(live) = self.controllers.get_mut(&id) else { return AdminReply::Complete { result: 0, status } };
        let reply = live.controller.admin_with(submission, data);
        self.keep_changes(id, submission, reply)
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

    /// Does what a controller asks of its device end. What ends held event requests, and what queues in host memory need, is
    /// given back.
    pub(crate) fn obey(&mut self, port: &mut Port, id: u16, now: Time) -> Vec<DeviceEvent> {
        let mut told = Vec::new();
        loop {
            let Some(event) = self.controllers.get_mut(&id).and_then(|live| live.controller.next_event()) else {
                // A function in memory says itself when it has forgotten its queues.
                if self.is_over_messages(id) && self.advance(id) {
                    self.controllers.get_mut(&id).expect("it went on").begin_interval(now);
                    continue;
                }
                break;
            };
            if matches!(event, DeviceEvent::Stop | DeviceEvent::StartOverMessages | DeviceEvent::Start { .. }) {
                // A flush of before says nothing of what is written after.
                self.forget_waiting(id);
            }
            let Some(live) = self.controllers.get_mut(&id) else { break };
            match event {
                DeviceEvent::StartOverMessages | DeviceEvent::Start { .. } => {
                    live.transition = Some(Transition::Starting);
                    told.push(event);
                    // Who discovers does not use the drive.
                    if live.is_storage() {
                        self.wake();
                    }
                }
                DeviceEvent::Stop => {
                    live.transition = Some(Transition::Stopping);
                    live.granted = Granted::Nothing;
                    self.doomed.extend(live.take_queues());
                    told.push(event);
                }
                // What is written after a flush has begun is not covered by it.
                DeviceEvent::ShutDown { .. } => self.flush_after_all(port, Flush::ShutDown(id), now),
                DeviceEvent::NamespacesChanged => {
                    self.namespaces = live.controller.namespaces().clone();
                    self.spread();
                }
                DeviceEvent::Settle { command_id } => {
                    self.flush_after_all(port, Flush::Settle(Settling { controller: id, command_id }), now);
                }
                DeviceEvent::Erase { namespace, piece, deletes } => {
                    self.chores.on_erasing(namespace, deletes);
                    self.erase(port, id, namespace, piece, now);
                }
                DeviceEvent::SelfTest { extended, namespace } => self.begin_test(port, id, extended, namespace, now),
                DeviceEvent::SelfTestEnded => self.chores.end_test(TestResult::Ended),
                DeviceEvent::SubsystemReset => self.reset_all(id, now),
                // What features say is read where it is needed.
                DeviceEvent::FeatureChanged(_) => {}
                _ => told.push(event),
            }
        }
        told
    }

    fn is_over_messages(&self, id: u16) -> bool {
        self.controllers.get(&id).is_some_and(|live| live.controller.settings().transport != Transport::Memory)
    }

    /// Resets every controller of the subsystem; those for discovery are of another. Over a fabric their I/O queues end with that, whoever
    /// asked for it. The admin queues stay, and CSTS tells there: Linux goes on with a Property Set, and would wait a minute for an answer
    /// where there is no queue any more. But that of a controller ends which was ready and had no I/O queues, unless the reset was asked
    /// for `by` it: its host would hear of it by its next command only.
    fn reset_all(&mut self, by: u16, now: Time) {
        self.was_reset = true;
        let all: Vec<u16> = self.controllers.iter().filter(|(_, live)| live.is_storage()).map(|(id, _)| *id).collect();
        for id in all {
            // One that is disabled has nothing to stop, and may be shut down all the same.
            self.forget_waiting(id);
            let live = self.controllers.get_mut(&id).expect("it was found");
            let is_unaware = id != by && live.controller.is_ready() && live.queues.is_empty();
            live.controller.on_subsystem_reset();
            live.begin_interval(now);
            self.doomed.extend(live.take_queues());
            self.doomed.extend(is_unaware.then_some(live.admin));
        }
    }

    /// Takes the completion of its own flush, and begins the next one if somebody waits for it.
    pub(crate) fn reap(&mut self, port: &mut Port, now: Time) {
        self.drain(port, now);
        while let Some(completion) = port.reap(&mut self.own) {
            let slot = completion.command_id();
            self.own.give_back(slot);
            if self.flush_slot == Some(slot) {
                self.flush_slot = None;
                self.take_back(now, self.own.id(), Opcode::Flush, &completion);
                self.on_flushed(port, now, &completion);
            } else {
                self.on_chore(&completion, now);
            }
        }
        self.settle(port, now);
        self.begin_flush(port, now);
        self.go_on(port, now);
        self.rest_if_idle(port, now);
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

    /// Ends the controllers whose hosts were silent for too long; how many. With traffic-based keep alive the timer is started again at the
    /// end of an interval within which anything was heard (Base §3.9), and not with each command: a host that looks only whether there was
    /// one within an interval sends no Keep Alive then.
    pub(crate) fn expire(&mut self, now: Time) -> usize {
        let is_over = |live: &Live| live.expires_at().is_some_and(|at| at <= now);
        let mut expired = Vec::new();
        for (id, live) in self.controllers.iter_mut().filter(|(_, live)| is_over(live)) {
            match live.interval() {
                Some(_) if live.is_heard => (live.interval_since, live.is_heard) = (now, false),
                _ => expired.push(*id),
            }
        }
        expired.iter().for_each(|id| self.end(*id));
        expired.len()
    }

    /// When the next host will have been silent for too long.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.controllers.values().filter_map(Live::expires_at).min()
    }
}

/// What a controller is made from.
#[cfg_attr(test, derive(Default))]
pub(crate) struct NewController {
    pub(crate) host: Arc<Host>,
    pub(crate) keep_alive_ms: u32,
    pub(crate) admin: ConnectionId,
    pub(crate) origin: Origin,
    pub(crate) discovery: Option<Vec<nvme::spec::fabrics::DiscoveryEntry>>,
}
