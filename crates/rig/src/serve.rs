//! A drive for real hosts: the device on threads of this machine, with a front end before it.

use crate::build::{BuildError, Built, Device, Prepared};
use crate::figures::Figures;
use crate::hardware::{MediaCounts, MediaTally, Outside, Traffic};
use crate::health::{Health, health};
use crate::kept_namespaces::KeptNamespaces;
use crate::media_file::{MediaFile, Past, Refusal};
use crate::recovery::Recovery;
use crate::session::{SessionError, check_ended};
use crate::summary::Labels;
use host::Memory;
use nvme::ControllerSettings;
use report::Summary;
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ScopedJoinHandle};
use target::{
    Attendant, Door, Ended, Front, HasRoom, KeepLifetime, KeepShutDown, Line, Metrics, PortShape, PowerCycles,
    Progress, ServeError, Stop, SubsystemSettings,
};
use thiserror::Error;
use threads::{Beside, Layout, Threads, start};
use units::{Bytes, BytesPerSecond, SECTOR_BYTES, Span};

/// The name of the thread that has the front end and the stages beside it.
pub const SERVICE_THREAD: &str = "front";

/// Commands that one queue of a host may have outstanding: what Linux asks for by default.
const DEPTH: u16 = 128;

/// Queue pairs of a served drive that hosts can have: the front end needs one of all that there are.
const QUEUES_MAX: u32 = u16::MAX as u32 - 1;

/// What is served, and to whom.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// What the device is called.
    pub device: String,
    /// Where hosts come from.
    pub door: Door,
    /// NVMe qualified name of the subsystem; identifiers of the namespaces follow from it.
    pub subsystem: String,
    /// Names of the hosts that may connect; none is all.
    pub allowed: Vec<String>,
    /// Secrets that hosts have to prove to know, where they have to.
    pub keys: Option<target::Keys>,
    /// Threads of this machine.
    pub layout: Layout,
    /// The processor that recovery is timed on, where a file has the drive's pages: it runs in virtual time, before hosts come.
    pub processor: sim::Processor,
}

/// Told once that no more writes are taken: what refused one, or nothing where room was running out.
pub type OnFull = Box<dyn FnOnce(Option<&Refusal>) + Send>;

/// A service that ended badly.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The device.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The front end.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// More than there are, with the one that the front end needs for itself.
    #[error("{0} I/O queues; a drive that is served has 1 to {QUEUES_MAX}")]
    TooManyQueues(u32),
    /// The drive died under its hosts.
    #[error("the drive stopped: {0}")]
    Died(String),
    /// Its file refused a write, or could not be brought to the medium. It was read-only from then on, and ended in order.
    #[error("{file}: {refusal}; what came to flash from then on is not in it")]
    NotKept {
        /// The file.
        file: String,
        /// Why.
        refusal: Refusal,
        /// What was done until the end.
        ended: Ended,
    },
    /// What was in its buffer found no place, so that its file has not all that hosts wrote.
    #[error("{file}: what was in the drive's buffer at its end found no place on flash and is lost")]
    NotDurable {
        /// The file.
        file: String,
        /// What was done until the end.
        ended: Ended,
    },
}

impl From<BuildError> for ServiceError {
    fn from(error: BuildError) -> Self {
        ServiceError::Session(error.into())
    }
}

/// A drive that listens, but does not serve yet.
pub struct Service {
    server: Front,
    device: Device,
    settings: ServiceSettings,
    shape: PortShape,
    memory: Arc<Memory>,
    prepared: Prepared,
    controller: ControllerSettings,
    namespaces: KeptNamespaces,
    recovery: Option<Recovery>,
    past: Past,
    has_room: Option<HasRoom>,
    /// Bytes of the disk that what was taken may still need.
    reserve: u64,
    on_full: Option<OnFull>,
    /// Looks at the device's counters as soon as it runs.
    figures: Arc<OnceLock<Figures>>,
    summary: Arc<OnceLock<Summary>>,
}

impl Service {
    /// Listens at its door, when the drive has what it needs of this machine. The device gets one queue pair more than it is configured
    /// with, for the front end itself.
    ///
    /// # Errors
    /// More queues than there are, memory that this machine does not give, a device that cannot be drawn, an address or a path that
    /// cannot be listened at, a file that cannot keep the drive's pages.
    pub fn listen(device: Device, settings: ServiceSettings) -> Result<Service, ServiceError> {
        let mut device = device.on_threads(settings.layout.threads);
        if device.drive.queues > QUEUES_MAX {
            return Err(ServiceError::TooManyQueues(device.drive.queues));
        }
        device.retires_worn = true;
        device.drive.queues += 1;
        device.depth = DEPTH.into();
        device.drive.queue_entries = u32::from(DEPTH) + 1;
        device.vectors = device.drive.queues as u16;
        let controller = identified(device.controller_settings(), &settings.subsystem, device.settings.cache.size);
        let mut namespaces = KeptNamespaces::fresh(&controller);
        let shape = port_shape(&device);
        let memory = Arc::new(memory(&device, &shape)?);
        let (mut past, mut has_room) = (Past::default(), None);
        let mut reserve = reserve(&device);
        let (prepared, recovery) = match device.open_media()? {
            None => (device.prepare()?, None),
            Some(kept) => {
                namespaces = KeptNamespaces::open(&kept.file, &controller)?;
                past = kept.file.past().map_err(BuildError::from)?;
                let file = kept.file.clone();
                reserve = reserve.min(file.room_max());
                has_room = Some(Box::new(move || file.has_room(reserve)) as HasRoom);
                device.reopen(kept, &settings.processor)?
            }
        };
        let server = Front::listen(&settings.door, device.drive.queues as u16)?;
        Ok(Service {
            server,
            device,
            settings,
            shape,
            memory,
            prepared,
            controller,
            namespaces,
            recovery,
            past,
            has_room,
            reserve,
            on_full: None,
            figures: Arc::default(),
            summary: Arc::default(),
        })
    }

    /// What recovery did, where a file had the drive's pages.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// Where it listens for TCP, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.address()
    }

    /// What ends it.
    pub fn stop(&self) -> Stop {
        self.server.stop()
    }

    /// A page with the service's figures at another address.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn metrics(&self, address: SocketAddr) -> Result<Metrics, ServiceError> {
        let figures = self.figures.clone();
        let further = move || figures.get().map_or_else(String::new, Figures::page);
        Ok(self.server.metrics(address)?.with(Box::new(further)))
    }

    /// What it did for its hosts, once it has ended: nothing until then, nor where they asked for nothing.
    pub fn summary(&self) -> Arc<OnceLock<Summary>> {
        self.summary.clone()
    }

    /// Waits for hosts as long as this.
    #[must_use]
    pub fn with_patience(mut self, patience: target::Patience) -> Self {
        self.server = self.server.with_patience(patience);
        self
    }

    /// What the disk of its file must have left for one more write to be taken.
    pub fn reserve(&self) -> Bytes {
        Bytes(self.reserve)
    }

    /// Asks this whether there is room for more pages, not the disk of its file.
    #[must_use]
    pub fn with_room(mut self, has_room: HasRoom) -> Self {
        self.has_room = Some(has_room);
        self
    }

    /// Does this when the disk of its file has no room for more writes, or refused one: from then on the drive is read-only.
    #[must_use]
    pub fn on_full(mut self, say: OnFull) -> Self {
        self.on_full = Some(say);
        self
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// Threads that the system does not start, a drive that dies or leaves commands unanswered, tables that contradict each other at the
    /// end.
    pub fn run(self) -> Result<Ended, ServiceError> {
        let Service {
            server,
            device,
            settings,
            shape,
            memory,
            prepared,
            controller,
            namespaces,
            past,
            has_room,
            on_full,
            figures,
            summary,
            ..
        } = self;
        let (line, audit) = (server.line(), device.audit);
        let outside = outside(&device, shape, &line, &memory);
        let (block, traffic) = (outside.block, outside.traffic.clone());
        let Built { blueprint, tables, drive, ledger, host, file, media, parts, .. } =
            device.build_served(outside, server.reach(memory.clone()), prepared)?;
        let mut threads = Threads::new(blueprint, settings.layout);
        // Nobody else sets it, nor what it is summed up to.
        let figures = figures.get_or_init(|| Figures::new(&device, &threads, parts, (traffic, media.clone())));
        let bell = threads.bell(host);
        line.attach(Box::new(move || bell.ring()));
        if let Some(file) = file.clone() {
            line.ask(Box::new(move || file.refused().is_none()));
        }
        // Counted when it is sure to be served: who cannot listen has not switched it on.
        let power = file.as_ref().map_or(Ok(PowerCycles::FIRST), MediaFile::switch_on).map_err(BuildError::from)?;
        let subsystem = SubsystemSettings {
            controller,
            namespaces: namespaces.namespaces,
            keep: namespaces.keep,
            has_room: has_room.map(|has_room| telling(has_room, file.clone(), on_full)),
            lifetime: past.lifetime,
            keep_lifetime: file.clone().map(|file| keep_lifetime(file, past.media, media.clone())),
            keep_shut_down: file.clone().map(keep_shut_down),
            allowed: settings.allowed,
            keys: settings.keys,
            health: keeping(health(tables.clone(), drive.clone(), (past.media, media), power, &device), file.clone()),
            unit_blocks: device.drive.geometry.shape().page.0 / block.0,
        };
        let mut desk = FrontDesk { attendant: Some(server.attend(subsystem, memory, shape)?), came_to: None };
        let observer = |_thread| figures.observer();
        let ran = thread::scope(|scope| {
            // A thread of its own, because whatever it is bound to is not the caller's.
            let drive = start(scope, SERVICE_THREAD, || threads.run_beside(None, (host, &mut desk), &observer));
            drive.map(ScopedJoinHandle::join)
        });
        let fault = ledger.lock().map_or(None, |ledger| ledger.fault);
        let run = check_end(fault, ran.map_err(SessionError::from)?)?.map_err(SessionError::from)?;
        let labels = Labels::on_threads(&device, &settings.device, settings.layout.threads, device.precondition.seed);
        if let Some(found) = figures.sum_up(&labels, &device, &run) {
            let _ = summary.set(found);
        }
        let served = desk.came_to.unwrap_or(Err(ServeError::Stuck));
        let ended = served?;
        check_ended(&tables, drive.pages(), audit)?;
        let Some(file) = file else { return Ok(ended) };
        if tables.groups.is_read_only() {
            file.keep_read_only();
        }
        end_file(&file, ended)
    }
}

/// The file of a drive that has ended: brought to the medium, and marked as ended in order if all that hosts wrote is in it.
fn end_file(file: &MediaFile, ended: Ended) -> Result<Ended, ServiceError> {
    let closed = if ended.durable { file.close() } else { file.sync() };
    if let Err(error) = closed {
        let refusal = file.refused().cloned().unwrap_or_else(|| Refusal::System(error.to_string()));
        return Err(ServiceError::NotKept { file: file.name(), refusal, ended });
    }
    if ended.durable { Ok(ended) } else { Err(ServiceError::NotDurable { file: file.name(), ended }) }
}

/// Whether a drive's thread ended as it should: neither did its media refuse, nor did it panic.
fn check_end<T>(fault: Option<flash::MediaFault>, ended: thread::Result<T>) -> Result<T, ServiceError> {
    if let Some(fault) = fault {
        return Err(SessionError::Media(fault).into());
    }
    ended.map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        ServiceError::Died(said.into())
    })
}

/// The front end on the drive's thread, and what came of it.
struct FrontDesk {
    attendant: Option<Attendant>,
    came_to: Option<Result<Ended, ServeError>>,
}

impl FrontDesk {
    fn turn(&mut self, at_most: Span) -> bool {
        let Some(attendant) = &mut self.attendant else { return false };
        self.came_to = match attendant.turn(at_most) {
            Ok(Progress::Idle) => return false,
            Ok(Progress::Worked) => return true,
            Ok(Progress::Ended(ended)) => Some(Ok(ended)),
            Err(error) => Some(Err(error)),
        };
        // Its end is the drive's.
        self.attendant = None;
        true
    }
}

impl Beside for FrontDesk {
    fn work(&mut self) -> bool {
        self.turn(Span::ZERO)
    }

    fn wait(&mut self, at_most: Span) {
        self.turn(at_most);
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        self.attendant.as_ref().map_or_else(|| Box::new(|| {}) as _, Attendant::waker)
    }
}

/// The rings and buffers that hosts' commands go through.
fn port_shape(device: &Device) -> PortShape {
    PortShape {
        in_place: device.architecture.takes_data_in_place(),
        pairs: device.drive.queues as u16,
        depth: DEPTH,
        tags: device.drive.tags,
        transfer_max: Bytes(u64::from(device.drive.transfer_sectors) * SECTOR_BYTES),
        control: Memory::control_start(),
        payload: Memory::payload_start(),
    }
}

/// What the stage has around it that stands for the hosts.
fn outside(device: &Device, shape: PortShape, line: &Arc<Line>, memory: &Arc<Memory>) -> Outside {
    Outside {
        line: line.clone(),
        shape,
        memory: memory.clone(),
        block: Bytes(device.drive.format.sectors() * SECTOR_BYTES),
        traffic: Arc::new(Traffic::new()),
        is_observed: device.observed.is_some(),
    }
}

/// What they lie in.
fn memory(device: &Device, shape: &PortShape) -> Result<Memory, BuildError> {
    let memory = Memory::new(shape.control_bytes(), shape.payload_bytes(), device.drive.sector_words as u32)?;
    Ok(if device.drive.tags { memory.with_tags(shape.payload_bytes())? } else { memory })
}

/// What may still come to flash when no more writes are taken: what is under way in all queues, what the buffer holds, and what the
/// firmware moves and notes by itself.
fn reserve(device: &Device) -> u64 {
    let under_way = u64::from(device.drive.queues) * u64::from(DEPTH) * u64::from(device.drive.transfer_sectors);
    under_way * SECTOR_BYTES + device.settings.cache.size.0 + (64 << 20)
}

/// Tells once of room that is over, or of a file that takes no more.
fn telling(mut has_room: HasRoom, file: Option<MediaFile>, mut on_full: Option<OnFull>) -> HasRoom {
    Box::new(move || {
        // A look may find that it has been removed.
        let has_room = has_room();
        let refused = file.as_ref().and_then(MediaFile::refused);
        let has_room = has_room && refused.is_none();
        if let Some(say) = on_full.take_if(|_| !has_room) {
            say(refused);
        }
        has_room
    })
}

/// Has a file keep what its drive has done, of which the media did `past` before. What a full or broken disk does not take is lost: these
/// are counts, and the next are taken a second later.
fn keep_lifetime(file: MediaFile, past: MediaCounts, tally: Arc<MediaTally>) -> KeepLifetime {
    Box::new(move |lifetime| {
        let _ = file.keep_past(&Past { lifetime: *lifetime, media: past.and(tally.counts()) });
    })
}

/// Tells how a drive is, and has its file keep that it takes no more writes before anybody is told.
fn keeping(health: Health, file: Option<MediaFile>) -> Health {
    let has_kept = Cell::new(false);
    Box::new(move || {
        let drive = health();
        if drive.read_only && !has_kept.replace(true) {
            file.iter().for_each(MediaFile::keep_read_only);
        }
        drive
    })
}

/// Has a file say whether hosts have shut its drive down, and the dies stand still while it does. One that cannot be written says what it
/// said last, takes nothing more, and whoever serves it is told in the end.
fn keep_shut_down(file: MediaFile) -> KeepShutDown {
    Box::new(move |is_down| {
        if is_down {
            file.standstill().begin();
        }
        let kept = if is_down { file.close() } else { file.open_again() };
        if !is_down || kept.is_err() {
            file.standstill().end();
        }
        kept.is_ok()
    })
}

/// The controller under the subsystem's name: its namespaces' identifiers must differ from those of any other subsystem
/// that a host sees, and stay the same over restarts.
fn identified(mut controller: ControllerSettings, subsystem: &str, buffer: Bytes) -> ControllerSettings {
    let name = fingerprint(subsystem.as_bytes());
    controller.queue_entries_max = DEPTH.into();
    // One of the device's is the front end's own.
    controller.io_queues_max -= 1;
    controller.managed_namespaces = MADE_MAX;
    let transfer = controller.transfer_max.unwrap_or(Bytes(0));
    controller.ready_within = ready_within(controller.io_queues_max, transfer, buffer);
    // Queues of all hosts share the drive in one circle: the classes of one would be at the cost of the others.
    controller.weighted_arbitration = false;
    controller.subsystem = subsystem.into();
    controller.serial = format!("FL{:016X}", name as u64);
    for (namespace, number) in controller.namespaces.iter_mut().zip(1u128..) {
        namespace.nguid = name.wrapping_add(number << 64).to_be_bytes();
    }
    controller
}

/// How long a reset of a served drive can take, which waits for what is under way, and a shutdown, which writes the buffer to flash too: as
/// long as all that takes at the slowest pace that it goes at, and no less than hosts are used to.
fn ready_within(queues: u16, transfer: Bytes, buffer: Bytes) -> Span {
    let of_queue = transfer * u64::from(DEPTH) + target::UNMOVED_MOST;
    SLOWEST.transfer_time(of_queue * u64::from(queues) + buffer).max(READY_WITHIN)
}

const READY_WITHIN: Span = Span::from_secs(60);

/// A quarter of what was seen of a drive with page mapping that had a gibibyte of writes under way and was done after five seconds.
const SLOWEST: BytesPerSecond = BytesPerSecond(48 << 20);

/// Namespaces that hosts can have of a served drive, if it is not configured with more.
pub(crate) const MADE_MAX: u32 = 16;

/// 128 bits of FNV-1a: offset basis and prime as its authors give them.
fn fingerprint(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::small::Small;

    /// The most of all are more than there are vectors.
    #[test]
    fn each_number_of_queues_has_a_controller() {
        for queues in [1, 2046, 2047, 2048, QUEUES_MAX] {
            let mut device = Small::default().device();
            device.drive.queues = queues + 1;
            device.vectors = device.drive.queues as u16;
            let settings = identified(device.controller_settings(), "nqn.2026-11.org.flashloom:test", Bytes::mib(1));
            assert_eq!(u32::from(nvme::Controller::new(settings).settings().io_queues_max), queues);
        }
    }

    /// 64 MiB of data and as much without any for each queue, and the buffer.
    #[test]
    fn a_drive_of_more_queues_takes_longer_to_be_ready() {
        let within = |queues| ready_within(queues, Bytes::kib(512), Bytes::mib(512)).nanos() / 1_000_000_000;
        assert_eq!([1, 16, 64].map(within), [60, 60, (64 * 128 + 512) / 48]);
    }
}
