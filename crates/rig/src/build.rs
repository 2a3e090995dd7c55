//! Builds a device: tables, firmware, hardware around it, a controller brought up, and the host's driver.

use crate::bring_up::bring_up;
use crate::hardware::{
    ChannelStage, FrontStage, HostStage, Ledger, LinkStage, LinkTiming, LinkWays, PendingInterrupts, Tally,
};
use crate::precondition::{Fill, Precondition};
use firmware::boot::Found;
use firmware::architecture::{Architecture, DrawError, Drawing, Materials, Placement};
use firmware::{Blueprint, Drive, DriveError, DriveShape, Firmware, Settings, Tables};
use flash::{Channel, Contents, Timing};
use host::{Driver, DriverSettings, Initial, Phase};
use nvme::spec::Opcode;
use nvme::{
    Arbiter, Arbitration, ArbitrationShares, CoalescingSettings, ControllerSettings, HostMemory, NamespaceSettings,
    Role, Transport,
};

use stage::Stage;
use std::sync::{Arc, Mutex};
use thiserror::Error;
use units::{Bytes, ChannelId, QueueId, SECTOR_BYTES, Span, StageId};

/// How the controller treats queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Round robin, or weighted with an urgent class.
    pub arbitration: Arbitration,
    /// Commands a turn, and weights.
    pub shares: ArbitrationShares,
    /// When interrupts are put together.
    pub coalescing: CoalescingSettings,
}

/// A whole device and the host that drives it, resolved: nothing here means "default".
#[derive(Clone)]
pub struct Device {
    /// The firmware.
    pub architecture: &'static dyn Architecture,
    /// Array, namespaces and queues.
    pub drive: DriveShape,
    /// Flash times.
    pub timing: Timing,
    /// Erases that a block stands.
    pub erases_max: u32,
    /// The host link.
    pub link: LinkTiming,
    /// The controller.
    pub controller: Controller,
    /// Every choice of the firmware.
    pub settings: Settings,
    /// Threads on cores.
    pub placement: Placement,
    /// How it was used before.
    pub precondition: Precondition,
    /// Entries of each queue, commands outstanding on each, vectors.
    pub queue_entries: u32,
    /// Commands outstanding on each queue.
    pub depth: u32,
    /// Interrupt vectors.
    pub vectors: u16,
    /// Whether reads are judged by the oracle.
    pub check: bool,
    /// The interval of the time series, if one is wanted.
    pub series: Option<Span>,
    /// Power cuts that the host must be ready for.
    pub cuts: Option<host::PowerCuts>,
    /// Whether dies tell when they were busy, for a time line.
    pub narrate: bool,
}

/// A device that cannot be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The drive's shape.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The firmware's settings.
    #[error(transparent)]
    Settings(#[from] firmware::SettingsError),
    /// The flash times.
    #[error(transparent)]
    Timing(#[from] flash::TimingError),
    /// The plan.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// Recovery.
    #[error(transparent)]
    Recovery(#[from] firmware::boot::RecoveryError),
    /// The plan's check.
    #[error(transparent)]
    Plan(#[from] stage::Fault),
    /// The host's driver.
    #[error(transparent)]
    Driver(#[from] host::SettingsError),
    /// The host's memory.
    #[error(transparent)]
    Memory(#[from] host::MemoryError),
    /// The controller refused what a host driver does first.
    #[error("bringing the controller up failed: {0}")]
    BringUp(String),
}

/// A drawn device and what its flash holds, before the hardware around it is there.
struct Prepared {
    drawing: Drawing,
    drive: Arc<Drive>,
    contents: Vec<Contents>,
}

/// What recovery found, in fresh tables. How often groups were erased is taken from the array: the out-of-band entries do not say.
fn recover_tables(found: &Found, tables: &Tables, contents: &[Contents]) {
    found.install(tables);
    let geometry = contents[0].geometry();
    for group in 0..tables.groups.count() {
        let block = tables.groups.first_block(group);
        let (channel, _) = geometry.die_of(block);
        let erases = contents[channel.index()].erase_count(block).expect("the block is one of this channel");
        tables.groups.set_erase_count(group, erases);
    }
}

/// A built device, ready to be run in either world.
pub(crate) struct Built {
    pub(crate) blueprint: Blueprint,
    pub(crate) tables: Tables,
    pub(crate) drive: Arc<Drive>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    pub(crate) host: StageId,
    pub(crate) link: StageId,
    pub(crate) channels: Vec<StageId>,
    /// Group and name of each stage, in order.
    pub(crate) parts: Vec<(&'static str, String)>,
}

impl Device {
    /// The driver's side of the device.
    pub(crate) fn driver_settings(&self, drive: &Drive) -> DriverSettings {
        let initial = match self.precondition.fill {
            Fill::None => Initial::Fresh,
            _ => Initial::Preconditioned,
        };
        DriverSettings {
            queues: self.drive.queues as u16,
            entries: self.queue_entries,
            depth: self.depth,
            vectors: self.vectors,
            block_sectors: self.drive.format.sectors() as u32,
            sector_words: self.drive.sector_words as u32,
            max_transfer: Bytes(u64::from(self.drive.transfer_sectors) * SECTOR_BYTES),
            check: self.check,
            in_order: self.architecture.keeps_queue_order(),
            namespaces: self.drive.namespaces.clone(),
            starts: drive.namespaces().iter().map(|namespace| namespace.base).collect(),
            initial,
            series: self.series,
            cuts: self.cuts,
        }
    }

    /// Whether a write may be answered before it is on flash.
    pub fn has_volatile_cache(&self) -> bool {
        self.settings.parts.cache > 0 && !self.drive.write_through
    }

    /// Draws the plan, without hardware: what `describe` prints.
    pub fn draw(&self) -> Result<(Drawing, Arc<Drive>), BuildError> {
        self.draw_prepared(&mut |_, _| {})
    }

    fn draw_prepared(&self, prepare: &mut dyn FnMut(&Drive, &Tables)) -> Result<(Drawing, Arc<Drive>), BuildError> {
        self.settings.check(self.drive.geometry.shape().page)?;
        self.timing.validate(&self.drive.geometry)?;
        let drive = Arc::new(Drive::new(self.drive.clone(), 0)?);
        let materials = Materials { drive: drive.clone(), settings: self.settings, placement: self.placement.clone() };
        let drawing = self.architecture.draw(materials, &mut |tables| prepare(&drive, tables))?;
        Ok((drawing, drive))
    }

    pub(crate) fn build(&self, phases: Vec<Phase>, pauses: bool) -> Result<Built, BuildError> {
        let Prepared { drawing, drive, contents } = self.prepare(None)?;
        let settings = self.driver_settings(&drive);
        let layout = settings.layout()?;
        let memory = Arc::new(layout.memory()?);
        let driver = Driver::new(settings.clone(), memory.clone(), Tally::default())?;
        let (mut link, pending) = self.link(&drawing, &drive, memory.clone());
        let mut controller = nvme::Controller::new(self.controller_settings());
        bring_up(&mut controller, &mut link, &settings, &layout)?;
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let host = HostStage::new(driver, memory, drawing.hardware.doorbells, pending, phases, pauses, ledger.clone());
        self.assemble(Prepared { drawing, drive, contents }, link, Box::new(host), ledger)
    }

    /// The device switched on again after a power cut: what its flash holds as recovery found it, and the same host.
    pub(crate) fn build_again(
        &self,
        (contents, found): (Vec<Contents>, &Found),
        mut host: Box<dyn Stage<Firmware>>,
        phases: Vec<Phase>,
    ) -> Result<Built, BuildError> {
        let Prepared { drawing, drive, contents } = self.prepare(Some((contents, found)))?;
        let settings = self.driver_settings(&drive);
        let layout = settings.layout()?;
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let stage: &mut HostStage =
            host.inspect_mut().and_then(|stage| stage.downcast_mut()).expect("a run with power cuts has this host");
        let (mut link, pending) = self.link(&drawing, &drive, stage.memory());
        let mut controller = nvme::Controller::new(self.controller_settings());
        bring_up(&mut controller, &mut link, &settings, &layout)?;
        stage.power_on(drawing.hardware.doorbells, pending, phases, ledger.clone());
        self.assemble(Prepared { drawing, drive, contents }, link, host, ledger)
    }

    /// A device whose hosts come from outside, by `line`, with rings and buffers in `memory` as `shape` lays them out.
    pub(crate) fn build_served(
        &self,
        line: Arc<target::Line>,
        memory: Arc<dyn HostMemory>,
        shape: &target::PortShape,
    ) -> Result<Built, BuildError> {
        let prepared = self.prepare(None)?;
        let (mut link, pending) = self.link(&prepared.drawing, &prepared.drive, memory);
        for queue in (1..=shape.pairs).map(QueueId) {
            link.create_completions(queue, shape.completions(queue), shape.entries(), Some(queue.0));
            link.create_submissions(queue, shape.submissions(queue), shape.entries(), queue);
        }
        let front = FrontStage::new(line, prepared.drawing.hardware.doorbells, pending);
        self.assemble(prepared, link, Box::new(front), Arc::new(Mutex::new(Ledger::default())))
    }

    /// Draws the device over fresh flash that its past is written to, or over what recovery found.
    fn prepare(&self, recovered: Option<(Vec<Contents>, &Found)>) -> Result<Prepared, BuildError> {
        if let Some((contents, found)) = recovered {
            let (drawing, drive) = self.draw_prepared(&mut |_, tables| recover_tables(found, tables, &contents))?;
            return Ok(Prepared { drawing, drive, contents });
        }
        let geometry = &self.drive.geometry;
        let words = self.drive.sector_words as u32;
        let fresh = |channel| Contents::for_channel(geometry, ChannelId(channel as u16), words, self.erases_max);
        let mut contents: Vec<Contents> = (0..geometry.shape().channels).map(fresh).collect();
        let (drawing, drive) = self.draw_prepared(&mut |drive, tables| {
            self.precondition.write(drive, &self.settings, tables, &mut contents)
        })?;
        Ok(Prepared { drawing, drive, contents })
    }

    fn link(
        &self,
        drawing: &Drawing,
        drive: &Arc<Drive>,
        memory: Arc<dyn HostMemory>,
    ) -> (LinkStage, PendingInterrupts) {
        let hardware = &drawing.hardware;
        let pending = PendingInterrupts::new(self.vectors);
        let ways = LinkWays {
            fetches: hardware.fetches.clone(),
            transfers: hardware.transfers.clone(),
            interrupts: hardware.interrupts,
            pending: pending.clone(),
        };
        let queues = self.drive.queues as usize + 1;
        let arbiter = Arbiter::new(queues, self.controller.arbitration, self.controller.shares);
        let credits = self.settings.commands.into();
        let mut link = LinkStage::new(drive.clone(), drawing.tables.clone(), memory, self.link, ways, arbiter, credits);
        link.set_coalescing(self.controller.coalescing);
        (link, pending)
    }

    fn assemble(
        &self,
        prepared: Prepared,
        link: LinkStage,
        host: Box<dyn Stage<Firmware>>,
        ledger: Arc<Mutex<Ledger>>,
    ) -> Result<Built, BuildError> {
        let Prepared { drawing: Drawing { mut blueprint, hardware, tables }, drive, contents } = prepared;
        blueprint.install_boxed(hardware.host, host);
        blueprint.install_boxed(hardware.link, Box::new(link));
        for (index, contents) in contents.into_iter().enumerate() {
            let channel = Channel::new(&self.drive.geometry, &self.timing, ChannelId(index as u16));
            let (frames, done) = (tables.frames.clone(), hardware.finished[index]);
            let ledger = ledger.clone();
            let stage = ChannelStage::new(index as u16, channel, contents, frames, done, self.narrate, ledger);
            blueprint.install_boxed(hardware.channels[index], Box::new(stage));
        }
        blueprint.check()?;
        let parts = blueprint.parts().iter().map(|part| (part.group, part.name.clone())).collect();
        let (host, link) = (hardware.host.id(), hardware.link.id());
        let channels = hardware.channels.iter().map(|slot| slot.id()).collect();
        Ok(Built { blueprint, tables, drive, ledger, host, link, channels, parts })
    }

    pub(crate) fn controller_settings(&self) -> ControllerSettings {
        let namespaces = self.drive.namespaces.iter().enumerate();
        let scale = self.drive.format.sectors();
        ControllerSettings {
            vendor: 0,
            serial: "FL0000000001".into(),
            model: "Flashloom".into(),
            firmware: env!("CARGO_PKG_VERSION").into(),
            subsystem: "nqn.2026-11.org.flashloom:drive".into(),
            controller_id: 1,
            queue_entries_max: self.drive.queue_entries,
            io_queues_max: self.drive.queues as u16,
            vectors: self.vectors + 1,
            transfer_max: Some(Bytes(u64::from(self.drive.transfer_sectors) * SECTOR_BYTES)),
            event_requests_max: 4,
            error_log_entries: 64,
            burst_log2: 6,
            commands: vec![
                Opcode::Flush,
                Opcode::Write,
                Opcode::Read,
                Opcode::Compare,
                Opcode::WriteZeroes,
                Opcode::DatasetManagement,
                Opcode::Verify,
            ],
            volatile_write_cache: self.has_volatile_cache(),
            atomic_write_blocks: (u64::from(self.drive.geometry.shape().page.0 as u32) / SECTOR_BYTES / scale).max(1)
                as u32,
            keep_alive: None,
            ready_within: Span::from_secs(1),
            temperatures: [343, 358],
            power_centiwatts: 2_500,
            transport: Transport::Memory,
            role: Role::Storage,
            namespaces: namespaces
                .map(|(index, &sectors)| NamespaceSettings {
                    blocks: sectors / scale,
                    block_bytes: (SECTOR_BYTES * scale) as u32,
                    nguid: [index as u8 + 1; 16],
                    eui64: [0; 8],
                })
                .collect(),
        }
    }
}
