//! The controller as a host driver finds it: properties, start and shutdown. `admin` has the commands.
//!
//! ```text
//!            EN = 1, valid              on_started
//! Disabled ────────────────▶ Starting ────────────▶ Ready
//!   ▲   │ EN = 1, not valid      │ EN = 0              │ EN = 0
//!   │   └───────────▶ Fatal      ▼                     │
//!   │                   └────▶ Stopping ◀──────────────┘
//!   └────────────────────────────┘ on_stopped
//! ```

use crate::admin::{ErrorLog, EventRequests, Features, QueueTable};
use crate::namespaces::{Namespaces, Piece};
use crate::spec::log_page::{HealthPage, warning};
use crate::spec::registers::{self, AdminQueueAttributes, Configuration};
use crate::spec::{COMPLETION_BYTES, FeatureId, PAGE_BYTES, QueuePriority, SUBMISSION_BYTES, Status};
use crate::{Arbitration, AsynchronousEvent, CoalescingSettings, CommandError};
use crate::{ControllerSettings, Transport};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use units::{HostAddress, QueueId, Span};

/// What the device end has to do, in the order of [`Controller::next_event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// Make ready, with these admin queues, then call [`Controller::on_started`].
    Start {
        /// Where the admin submission queue lies.
        submissions: HostAddress,
        /// Its entries.
        submission_entries: u32,
        /// Where the admin completion queue lies.
        completions: HostAddress,
        /// Its entries.
        completion_entries: u32,
        /// How queues compete.
        arbitration: Arbitration,
    },
    /// Make ready, then call [`Controller::on_started`]: the admin queue is the connection that came with Connect.
    StartOverMessages,
    /// Forget every queue and command, touch host memory no more, then call [`Controller::on_stopped`].
    Stop,
    /// Make durable what was answered before this or is under way, then call [`Controller::on_shut_down`], or
    /// [`Controller::on_shutdown_failed`] if that cannot be. Nothing more is to be done for the host.
    ShutDown {
        /// The host has no time: only what was promised need be kept.
        abrupt: bool,
    },
    /// A completion queue was made.
    CompletionQueueCreated {
        /// Its identifier.
        queue: QueueId,
        /// Where it lies.
        base: HostAddress,
        /// Its entries.
        entries: u32,
        /// The vector to interrupt; `None` for a queue that is polled.
        vector: Option<u16>,
    },
    /// A submission queue was made.
    SubmissionQueueCreated {
        /// Its identifier.
        queue: QueueId,
        /// Where it lies.
        base: HostAddress,
        /// Its entries.
        entries: u32,
        /// Where its completions go.
        completions: QueueId,
        /// Its class under weights.
        priority: QueuePriority,
    },
    /// A submission queue goes. The Delete command may be completed only when the queue's commands are.
    SubmissionQueueDeleted(QueueId),
    /// A completion queue goes; no submission queue uses it any more.
    CompletionQueueDeleted(QueueId),
    /// The host has doorbells in its memory as well, as [`crate::shadow`] says; until the next [`DeviceEvent::Stop`].
    ShadowDoorbells {
        /// The page that the host writes.
        doorbells: HostAddress,
        /// The page of event indices, which the device end writes.
        events: HostAddress,
    },
    /// A feature has another value; those that concern the device are read from the controller.
    FeatureChanged(FeatureId),
    /// The namespaces are not what they were: whoever has them for all controllers takes them from
    /// [`Controller::namespaces`] and gives them to the others.
    NamespacesChanged,
    /// Leave zeroes in this piece of the drive, durably, then call [`Controller::on_erased`] with the namespace. Its commands that
    /// are under way are waited for; no others come.
    Erase {
        /// The namespace.
        namespace: u32,
        /// Where it lies.
        piece: Piece,
        /// Whether it is gone then.
        deletes: bool,
    },
    /// The host turns its volatile write cache off: make durable what was answered before this or is under way, then call
    /// [`Controller::on_settled`]. Later commands ask for it themselves.
    Settle {
        /// The command that waits for it.
        command_id: u16,
    },
    /// Begin a self-test of the drive, or of a namespace.
    SelfTest {
        /// An extended one.
        extended: bool,
        /// The namespace; 0 is the controller alone, [`crate::spec::ALL_NAMESPACES`] all.
        namespace: u32,
    },
    /// End the self-test that runs, if one does.
    SelfTestEnded,
    /// Reset every controller of the subsystem.
    SubsystemReset,
    /// A held command of the admin queue completes: an Asynchronous Event Request, or one that has taken its time.
    HeldCommandDone {
        /// Its identifier.
        command_id: u16,
        /// Result of the completion.
        result: u64,
        /// Status of the completion.
        status: Status,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Disabled,
    Starting,
    Ready,
    Stopping,
    Fatal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    None,
    /// It begins when the reset that goes on is over.
    Asked,
    Running,
    /// It never completes.
    Failed,
    Done,
}

/// A controller without its queues' contents: those are the device end's.
#[derive(Debug)]
pub struct Controller {
    pub(crate) settings: ControllerSettings,
    pub(crate) features: Features,
    pub(crate) queues: QueueTable,
    pub(crate) requests: EventRequests,
    pub(crate) errors: ErrorLog,
    pub(crate) health: HealthPage,
    pub(crate) events: VecDeque<DeviceEvent>,
    pub(crate) configuration: Configuration,
    pub(crate) host_id: [u8; 16],
    pub(crate) namespaces: Arc<Namespaces>,
    /// Namespaces that changed since the host read of it.
    pub(crate) changed: BTreeSet<u32>,
    /// The command that waits for namespaces to be erased, and for which.
    pub(crate) erasing: Option<(u16, BTreeSet<u32>)>,
    /// Bytes of a namespace that there was no room for.
    pub(crate) needed: Option<u64>,
    /// The commands that wait for what was written to be durable.
    pub(crate) settling: Vec<u16>,
    /// Log pages that the device end has written.
    pub(crate) pages: BTreeMap<u8, Vec<u8>>,
    /// Bytes of the drive in use, where the device end has said.
    pub(crate) used: Option<u64>,
    pub(crate) is_write_protected: bool,
    attributes: AdminQueueAttributes,
    submissions: u64,
    completions: u64,
    state: State,
    /// RDY, which falls only when the device has let go of host memory.
    ready: bool,
    shutdown: Shutdown,
    /// NSSRO: a reset of the subsystem has happened.
    was_reset: bool,
}

impl Controller {
    /// A disabled controller.
    ///
    /// # Panics
    /// If the settings contradict themselves or the ranges their fields name.
    pub fn new(settings: ControllerSettings) -> Self {
        settings.assert_valid();
        let mut namespaces = Namespaces::new(&settings);
        namespaces.enter(settings.controller_id);
        Controller {
            namespaces: Arc::new(namespaces),
            changed: BTreeSet::new(),
            erasing: None,
            needed: None,
            settling: Vec::new(),
            pages: BTreeMap::new(),
            was_reset: false,
            used: None,
            is_write_protected: false,
            features: Features::new(&settings),
            queues: QueueTable::new(settings.io_queues_max),
            requests: EventRequests::new(settings.event_requests_max),
            errors: ErrorLog::new(settings.error_log_entries),
            health: HealthPage::default(),
            events: VecDeque::new(),
            configuration: Configuration::default(),
            host_id: [0; 16],
            attributes: AdminQueueAttributes::default(),
            submissions: 0,
            completions: 0,
            state: State::Disabled,
            ready: false,
            shutdown: Shutdown::None,
            settings,
        }
    }

    /// What the device end has to do next. It is to be asked after every call, until there is nothing.
    pub fn next_event(&mut self) -> Option<DeviceEvent> {
        self.events.pop_front()
    }

    /// Whether commands are processed.
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Whether CC names entries of the size that I/O queues have (IOSQES, IOCQES).
    pub fn has_entry_sizes(&self) -> bool {
        let named = [self.configuration.submission_size(), self.configuration.completion_size()];
        named == [SUBMISSION_BYTES, COMPLETION_BYTES].map(u64::ilog2)
    }

    /// Reads the 4-byte property at `offset`; 0 where there is none.
    pub fn read_property(&self, offset: u32) -> u32 {
        match offset {
            registers::VS => registers::VERSION,
            registers::CC => self.configuration.0,
            registers::CSTS => self.status(),
            registers::AQA => self.attributes.0,
            registers::CRTO => self.ready_half_seconds(0xffff) as u32,
            _ => match offset & !4 {
                registers::CAP => half(self.capabilities(), offset),
                registers::ASQ => half(self.submissions, offset),
                registers::ACQ => half(self.completions, offset),
                _ => 0,
            },
        }
    }

    /// Reads 8 bytes at `offset` as two properties.
    pub fn read_property_pair(&self, offset: u32) -> u64 {
        u64::from(self.read_property(offset)) | u64::from(self.read_property(offset.wrapping_add(4))) << 32
    }

    /// Writes the 4-byte property at `offset`; without effect where there is none or it is read-only.
    pub fn write_property(&mut self, offset: u32, value: u32) {
        // The queues' places may only change while the controller is disabled (Base §3.1.3.8).
        let disabled = !self.configuration.enabled();
        match offset {
            registers::CC => self.configure(Configuration(value)),
            registers::NSSR if value == registers::NSSR_SIGNATURE && self.settings.managed_namespaces > 0 => {
                self.events.push_back(DeviceEvent::SubsystemReset);
            }
            registers::CSTS if value & registers::CSTS_SUBSYSTEM_RESET != 0 => self.was_reset = false,
            registers::AQA if disabled => self.attributes = AdminQueueAttributes(value & 0x0fff_0fff),
            _ => match offset & !4 {
                registers::ASQ if disabled => set_half(&mut self.submissions, offset, value),
                registers::ACQ if disabled => set_half(&mut self.completions, offset, value),
                _ => {}
            },
        }
    }

    /// Writes 8 bytes at `offset` as two properties.
    pub fn write_property_pair(&mut self, offset: u32, value: u64) {
        self.write_property(offset, value as u32);
        self.write_property(offset.wrapping_add(4), (value >> 32) as u32);
    }

    /// CAP (Base §3.1.3.1); pages of 4 KiB only, doorbells 4 bytes apart.
    fn capabilities(&self) -> u64 {
        u64::from(self.settings.queue_entries_max - 1)
            | registers::CAP_CONTIGUOUS
            | if self.settings.weighted_arbitration { registers::CAP_WEIGHTED } else { 0 }
            | self.ready_half_seconds(0xff) << 24
            | registers::CAP_NVM
            | if self.settings.managed_namespaces > 0 { registers::CAP_SUBSYSTEM_RESET } else { 0 }
            | registers::CAP_COMMAND_SETS
            | registers::CAP_READY_WITH_MEDIA
    }

    fn ready_half_seconds(&self, most: u64) -> u64 {
        self.settings.ready_within.picos().div_ceil(Span::from_millis(500).picos()).clamp(1, most)
    }

    fn status(&self) -> u32 {
        let ready = if self.ready { registers::CSTS_READY } else { 0 };
        let has_failed = self.state == State::Fatal || self.shutdown == Shutdown::Failed;
        let fatal = if has_failed { registers::CSTS_FATAL } else { 0 };
        let shutdown = match self.shutdown {
            Shutdown::None => 0,
            Shutdown::Asked | Shutdown::Running | Shutdown::Failed => registers::CSTS_SHUTTING_DOWN,
            Shutdown::Done => registers::CSTS_SHUT_DOWN,
        };
        let reset = if self.was_reset { registers::CSTS_SUBSYSTEM_RESET } else { 0 };
        ready | fatal | shutdown | reset
    }

    fn configure(&mut self, new: Configuration) {
        let old = std::mem::replace(&mut self.configuration, new);
        match (old.enabled(), new.enabled()) {
            (false, true) => {
                self.shutdown = Shutdown::None;
                if self.state == State::Disabled {
                    self.start();
                }
            }
            (true, false) => self.stop(),
            _ => {}
        }
        // A controller that is enabled anew does what CC says then, also where SHN is what it was.
        let is_news = old.shutdown() == 0 || !old.enabled() && new.enabled();
        // What was shut down before a reset counts no more.
        if new.shutdown() != 0 && is_news && (self.shutdown == Shutdown::None || self.state == State::Stopping) {
            self.shutdown = Shutdown::Asked;
            self.begin_shutdown();
        }
    }

    /// Shuts down if that was asked for. What waits for a flush is forgotten by a reset, so that this begins when it is over.
    fn begin_shutdown(&mut self) {
        if self.shutdown == Shutdown::Asked && self.state != State::Stopping {
            self.shutdown = Shutdown::Running;
            self.events.push_back(DeviceEvent::ShutDown { abrupt: self.configuration.shutdown() == 2 });
        }
    }

    fn start(&mut self) {
        let asked = self.configuration;
        let arbitration = match asked.arbitration() {
            0 => Some(Arbitration::RoundRobin),
            Configuration::WEIGHTED if self.settings.weighted_arbitration => Some(Arbitration::Weighted),
            _ => None,
        };
        let attributes = self.attributes;
        let known = asked.page_size() == 0 && matches!(asked.command_sets(), 0 | Configuration::ALL_COMMAND_SETS);
        let sized = attributes.submission_entries() >= 2 && attributes.completion_entries() >= 2;
        match arbitration {
            Some(_) if known && self.settings.transport != Transport::Memory => {
                self.state = State::Starting;
                self.events.push_back(DeviceEvent::StartOverMessages);
            }
            Some(arbitration) if known && sized && self.settings.transport == Transport::Memory => {
                self.state = State::Starting;
                self.events.push_back(DeviceEvent::Start {
                    submissions: HostAddress(self.submissions),
                    submission_entries: attributes.submission_entries(),
                    completions: HostAddress(self.completions),
                    completion_entries: attributes.completion_entries(),
                    arbitration,
                });
            }
            _ => self.state = State::Fatal,
        }
    }

    /// A controller reset (Base §3.7.2): everything but the admin queues' places goes back to its beginning.
    fn stop(&mut self) {
        if self.state == State::Stopping {
            // It was enabled meanwhile, and what was asked for then is not to be.
            self.shutdown = Shutdown::None;
        }
        if self.state == State::Stopping || self.state == State::Disabled {
            return;
        }
        self.state = State::Stopping;
        // Base §5.16.1.2; the count goes on.
        self.errors.clear();
        // Erasing goes on; there is nobody left to be told.
        self.erasing = None;
        self.settling.clear();
        self.changed.clear();
        // Who comes next was told of no warning.
        self.health.set_critical_warning(0);
        self.features.reset(&self.settings);
        self.queues = QueueTable::new(self.settings.io_queues_max);
        self.requests = EventRequests::new(self.settings.event_requests_max);
        self.events.push_back(DeviceEvent::Stop);
    }

    /// The subsystem is reset: the host finds its controller disabled, and CSTS.NSSRO set (Base §3.7.1). The admin queue's places, which a
    /// reset by CC.EN leaves, go as well (Base §3.7.2).
    pub fn on_subsystem_reset(&mut self) {
        self.configuration = Configuration::default();
        self.attributes = AdminQueueAttributes::default();
        (self.submissions, self.completions) = (0, 0);
        self.was_reset = true;
        // Also one that is disabled may have been shut down, or be about to.
        if self.state == State::Disabled {
            self.shutdown = Shutdown::None;
        }
        self.stop();
    }

    /// The device is ready for commands. Without effect if the host has disabled it meanwhile.
    pub fn on_started(&mut self) {
        if self.state == State::Starting {
            self.state = State::Ready;
            self.ready = true;
        }
    }

    /// The device has forgotten its queues. If the host has enabled it again already, it starts.
    pub fn on_stopped(&mut self) {
        if self.state == State::Stopping {
            self.state = State::Disabled;
            self.ready = false;
            if self.shutdown != Shutdown::Asked {
                self.shutdown = Shutdown::None;
            }
            if self.configuration.enabled() {
                self.start();
            }
            self.begin_shutdown();
        }
    }

    /// Everything is durable; power may go.
    pub fn on_shut_down(&mut self) {
        if self.shutdown == Shutdown::Running {
            self.shutdown = Shutdown::Done;
        }
    }

    /// Not everything can be made durable, or is, though that was told: CSTS.CFS is set, and the shutdown goes on until the host resets the
    /// controller.
    pub fn on_shutdown_failed(&mut self) {
        if matches!(self.shutdown, Shutdown::Running | Shutdown::Done) {
            self.shutdown = Shutdown::Failed;
        }
    }

    /// Whether its host may be in the midst of something: the controller was enabled, and not shut down since.
    pub fn needs_power(&self) -> bool {
        self.state != State::Disabled && self.shutdown != Shutdown::Done
    }

    /// The device cannot go on: CSTS.CFS is set until the host resets it. Without effect where that is what it does.
    pub fn on_fatal(&mut self) {
        if matches!(self.state, State::Starting | State::Ready) {
            self.state = State::Fatal;
        }
    }

    /// Figures for the health page. Warnings that are new become events where the host asked for them. The controller
    /// itself counts error entries, and warns of a temperature outside the host's thresholds (Base §5.27.1.3).
    pub fn set_health(&mut self, mut health: HealthPage) {
        if self.features.is_outside_thresholds(health.temperature()) {
            health.set_critical_warning(health.critical_warning() | warning::TEMPERATURE);
        }
        let new = health.critical_warning() & !self.health.critical_warning() & self.features.reported_warnings();
        self.health = health;
        for event in AsynchronousEvent::of_warnings(new) {
            self.raise(event);
        }
    }

    /// Reports an event to the host, as soon as it holds a request out for one and has read of the last of its kind. One that sends it to
    /// the error log is there.
    pub fn raise(&mut self, event: AsynchronousEvent) {
        if let Some(status) = event.logged() {
            self.log_error(CommandError::of_no_command(status));
        }
        self.requests.raise(event);
        self.deliver_events();
    }

    /// The namespaces as this controller knows them.
    pub fn namespaces(&self) -> &Arc<Namespaces> {
        &self.namespaces
    }

    /// The namespaces are these now; the host is told what changed for it, where it wants to know.
    pub fn set_namespaces(&mut self, namespaces: &Arc<Namespaces>) {
        let id = self.settings.controller_id;
        let differing = self.namespaces.differing(namespaces, id);
        // A host that deletes one is not told of it (Base 2.1, figure 151).
        let deletes = |id: &u32| {
            let is_its = self.erasing.as_ref().is_some_and(|(_, of)| of.contains(id));
            is_its && namespaces.allocated(*id).is_none()
        };
        let told: Vec<u32> = differing.into_iter().filter(|id| !deletes(id)).collect();
        self.with_namespaces(Arc::clone(namespaces));
        self.notice(told);
    }

    /// These namespaces are not what they were for the host: it finds them in a log page, and is told where it wants to know.
    pub(crate) fn notice(&mut self, namespaces: impl IntoIterator<Item = u32>) {
        let mut namespaces = namespaces.into_iter().peekable();
        if namespaces.peek().is_some() {
            self.changed.extend(namespaces);
            if self.features.wants_namespace_notices() {
                self.raise(AsynchronousEvent::NamespacesChanged);
            }
        }
    }

    /// Whether a reset of the subsystem has happened that its host has not taken notice of (CSTS.NSSRO).
    pub fn was_reset(&self) -> bool {
        self.was_reset
    }

    /// The subsystem was reset before this controller came.
    pub fn note_reset(&mut self) {
        self.was_reset = true;
    }

    /// Takes namespaces in which nothing is new for its host: before that has seen any, or where another controller comes or goes.
    pub fn with_namespaces(&mut self, namespaces: Arc<Namespaces>) {
        // One that was deleted may have left its identifier to another.
        let nguid = |all: &Namespaces, id| all.allocated(id).map(|space| space.settings.nguid);
        self.features.keep_namespaces(|id| nguid(&self.namespaces, id) == nguid(&namespaces, id));
        self.namespaces = namespaces;
    }

    /// So many bytes of the drive are in use, of all namespaces.
    pub fn set_used(&mut self, bytes: u64) {
        self.used = Some(bytes);
    }

    /// A log page that the device end writes: what the host reads of it from now on.
    pub fn set_page(&mut self, id: u8, page: Vec<u8>) {
        self.pages.insert(id, page);
    }

    pub(crate) fn deliver_events(&mut self) {
        while let Some((command_id, result)) = self.requests.deliver() {
            self.events.push_back(DeviceEvent::HeldCommandDone { command_id, result, status: Status::SUCCESS });
        }
    }

    /// The coalescing in force for an I/O vector.
    pub fn coalescing(&self, vector: u16) -> CoalescingSettings {
        if self.features.exempt_from_coalescing(vector) {
            return CoalescingSettings::NONE;
        }
        CoalescingSettings::from_feature(self.features.value(FeatureId::InterruptCoalescing, 0))
    }

    /// Refuses what would have the drive work behind CC.SHN, until a reset. Its host was to stop before that (Base §3.6), and would be told
    /// that power may go while the drive still works.
    pub(crate) fn check_open(&self) -> Result<(), Status> {
        if self.shutdown == Shutdown::None { Ok(()) } else { Err(Status::ABORTED_POWER_LOSS) }
    }

    /// How long the host may be silent; `None` is for ever.
    pub fn keep_alive_timeout(&self) -> Option<Span> {
        let millis = self.features.value(FeatureId::KeepAliveTimer, 0);
        (millis > 0).then(|| Span::from_millis(u64::from(millis)))
    }

    /// Whether the keep alive timer runs, where there is one: CC.EN and CSTS.RDY are 1, and there is no shutdown in CC.SHN and CSTS.SHST
    /// (Base §3.9).
    pub fn runs_keep_alive(&self) -> bool {
        self.is_ready() && self.configuration.shutdown() == 0 && self.shutdown == Shutdown::None
    }

    /// Whether it is being shut down, and has yet to say that it is.
    pub fn is_shutting_down(&self) -> bool {
        matches!(self.shutdown, Shutdown::Asked | Shutdown::Running)
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &ControllerSettings {
        &self.settings
    }
}

fn half(value: u64, offset: u32) -> u32 {
    (value >> (8 * (offset & 4))) as u32
}

/// Writes half of where a queue lies: bits 11:0 are reserved (Base §3.1.3.9 and §3.1.3.10).
fn set_half(register: &mut u64, offset: u32, value: u32) {
    let shift = 8 * (offset & 4);
    *register = (*register & !(0xffff_ffff << shift) | u64::from(value) << shift) & !(PAGE_BYTES - 1);
}
