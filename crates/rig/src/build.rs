//! Builds a device: tables, firmware, hardware around it, a controller brought up, and the host's driver.

use crate::bring_up::bring_up;
use crate::failures;
use crate::hardware::{
    Apart, ChannelStage, ChannelWays, Doorbells, FrontStage, HostStage, Ledger, LinkStage, LinkTiming, MediaTally,
    Outside, PowerStage, Tally, Upsets,
};
use crate::interleaving::Interleaving;
use crate::links::Links;
use crate::media_file::{MediaFile, MediaFileError};
use crate::needs::longest_step;
use crate::power::{PowerBudget, PowerError};
use crate::precondition::{Fill, Precondition};
use crate::recovery::{Outcome, Recovery, recover};
use crate::reopen::Kept;
use crate::session::SessionError;
use crate::wear::{look_at_marks, look_at_wear};
use firmware::architecture::{Architecture, DrawError, Drawing, Materials, Placement};
use firmware::{Blueprint, Drive, DriveError, DriveShape, Firmware, Settings, Tables};
use flash::{Channel, Contents, FaultSettings, FaultSettingsError, FaultyMedia, Timing};
use host::{Driver, DriverSettings, Initial, Phase, PowerCuts};
use nvme::spec::{Opcode, QueuePriority};
use nvme::{
    Arbitration, ArbitrationShares, CoalescingSettings, ControllerSettings, HostMemory, NamespaceSettings, Protection,
    Role, Transport,
};

use stage::{Stage, Watch};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use thiserror::Error;
use units::{BlockId, Bytes, ChannelId, QueueId, SECTOR_BYTES, Span, StageId};

/// The drive's PCI vendor. PCI-SIG has assigned it none; this is the number of virtual devices without one, as QEMU's `edu` is, for at
/// 0000h some firmware finds no device.
const VENDOR: u16 = 0x1234;

/// So many namespaces at most are told apart in a summary: each may take three histograms of 270 kB.
const NAMESPACES_TOLD_APART: usize = 64;

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
    /// Whether flash and link take their times; else they are done at once, which only real time can be asked for.
    pub timed: bool,
    /// Erases that a block stands.
    pub erase_limit: u32,
    /// How flash fails; none if it does not.
    pub faults: Option<FaultSettings>,
    /// Whether blocks that stand no more erases are retired where flash does not fail otherwise, as of a drive that hosts keep; else the
    /// first ends the run, whose host expects no command to fail.
    pub retires_worn: bool,
    /// What brings the buffer to flash when the power fails; none if nothing does.
    pub power: Option<PowerBudget>,
    /// The host link.
    pub link: LinkTiming,
    /// The controller.
    pub controller: Controller,
    /// Threads of the machine that may have a link each, which whoever runs it says: one in virtual time, where the link takes its time,
    /// and where all queues compete by class.
    pub link_threads: u16,
    /// Every choice of the firmware.
    pub settings: Settings,
    /// Chance that a bit of a page flips in the drive's memory before it is programmed.
    pub memory_flips: f64,
    /// Whether cells hold pages scrambled, where every byte is kept.
    pub scrambler: bool,
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
    /// Classes that queues are created in, in turn, where they compete by class.
    pub priorities: Vec<QueuePriority>,
    /// Whether reads are judged by the oracle.
    pub check: bool,
    /// Whether tables are compared at the end, and with what the flash holds, if somebody said; else those of small drives in real time.
    pub audit: Option<bool>,
    /// The interval of the time series, if one is wanted.
    pub series: Option<Span>,
    /// Real time: of so many requests one is followed through the drive, to say where the time went.
    pub observed: Option<u32>,
    /// The file that keeps what the pages hold; none if memory does. It may have the pages of an earlier run.
    pub media: Option<PathBuf>,
    /// Whether all memory for pages and frames is taken before it begins, so that the system clears none while hosts wait.
    pub preallocates: bool,
    /// Power cuts that the host must be ready for.
    pub cuts: Option<PowerCuts>,
    /// Whether dies tell when they were busy, for a time line.
    pub narrate: bool,
    /// The order of its turns, where a check runs it in one that only threads show. No phase is summed up then; threads take no notice.
    pub interleaving: Option<Interleaving>,
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
    /// How flash fails.
    #[error(transparent)]
    Faults(#[from] FaultSettingsError),
    /// What is to keep the buffer.
    #[error(transparent)]
    Power(#[from] PowerError),
    /// The file that keeps the pages.
    #[error(transparent)]
    MediaFile(#[from] MediaFileError),
    /// A drive whose pages no file can keep.
    #[error("{file} cannot keep {what}")]
    Keep {
        /// The file.
        file: String,
        /// What it is, and what is expected.
        what: &'static str,
    },
    /// The plan.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// The plan's check.
    #[error(transparent)]
    Plan(#[from] stage::Fault),
    /// The host's driver.
    #[error(transparent)]
    Driver(#[from] host::SettingsError),
    /// The drive's memory.
    #[error(transparent)]
    Tables(#[from] stage::NoMemory),
    /// The host's memory.
    #[error(transparent)]
    Memory(#[from] host::MemoryError),
    /// The controller refused what a host driver does first.
    #[error("bringing the controller up failed: {0}")]
    BringUp(String),
}

/// A drawn device and what its flash holds, before the hardware around it is there.
pub(crate) struct Prepared {
    pub(crate) drawing: Drawing,
    pub(crate) drive: Arc<Drive>,
    contents: Vec<Contents>,
    file: Option<MediaFile>,
}

/// What came of switching a device on.
pub(crate) enum Risen {
    /// It can take commands.
    Up(Box<Prepared>, Recovery),
    /// The power was cut in recovery.
    Cut(Vec<Contents>),
}

/// A built device, ready to be run in either world.
pub(crate) struct Built {
    pub(crate) blueprint: Blueprint,
    pub(crate) tables: Arc<Tables>,
    pub(crate) drive: Arc<Drive>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    pub(crate) media: Arc<MediaTally>,
    /// What keeps the pages, if it is a file.
    pub(crate) file: Option<MediaFile>,
    pub(crate) host: StageId,
    pub(crate) link: StageId,
    /// What watches the power, where anything does.
    pub(crate) watch: Option<StageId>,
    pub(crate) channels: Vec<StageId>,
    /// Group and name of each stage, in order.
    pub(crate) parts: Vec<(&'static str, String)>,
}

impl Device {
    /// Whether somebody asked for all comparisons.
    pub fn audits(&self) -> bool {
        self.audit == Some(true)
    }

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
            priorities: self.priorities.clone(),
            block_sectors: self.drive.format.sectors() as u32,
            sector_words: self.drive.sector_words as u32,
            max_transfer: Bytes(u64::from(self.drive.transfer_sectors) * SECTOR_BYTES),
            check: self.check,
            in_order: self.architecture.keeps_queue_order(),
            namespaces: self.drive.namespaces.clone(),
            starts: drive.namespaces().iter().map(|namespace| namespace.base).collect(),
            initial,
            series: self.series,
            media_errors: self.faults.is_some() || self.drive.tags && self.memory_flips > 0.0,
            // What brings more is drawn where power is cut.
            range_lists: self.cuts.is_some(),
            cuts: self.cuts,
        }
    }

    /// What the host counts: requests by the class of their queue too, where queues compete by class, and by namespace.
    fn tally(&self) -> Tally {
        let priorities = match self.controller.arbitration {
            Arbitration::RoundRobin => Vec::new(),
            Arbitration::Weighted => self.priorities.clone(),
        };
        let namespaces = (2..=NAMESPACES_TOLD_APART).contains(&self.drive.namespaces.len());
        Tally::telling(Apart { priorities, namespaces })
    }

    /// Out-of-band bytes of a page that tags and seals take.
    pub fn tag_bytes(&self) -> Bytes {
        let block = Bytes(self.drive.format.sectors() * SECTOR_BYTES);
        if self.drive.tags { flash::tag_bytes(self.drive.geometry.shape().page, block) } else { Bytes(0) }
    }

    /// Whether a write may be answered before it is on flash.
    pub fn has_volatile_cache(&self) -> bool {
        self.settings.parts.cache > 0 && !self.drive.write_through && self.power.is_none()
    }

    /// What its host has to know where its power will be cut.
    pub fn power_cuts(&self) -> PowerCuts {
        PowerCuts::of(self.has_volatile_cache(), self.page_sectors())
    }

    /// Whether pages may not be read as they were written: flash fails, or bits flip on the way to it.
    pub(crate) fn damages_pages(&self) -> bool {
        self.faults.is_some() || self.memory_flips > 0.0
    }

    /// Sectors of a page of flash.
    pub fn page_sectors(&self) -> u32 {
        (self.drive.geometry.shape().page.0 / SECTOR_BYTES) as u32
    }

    /// Flash times as this firmware has them: dies get no cache commands from one that does without.
    pub(crate) fn flash_timing(&self) -> Timing {
        let cache_commands = self.timing.cache_commands && self.settings.flash.cache_commands;
        Timing { cache_commands, ..self.timing }
    }

    /// Draws the plan, without hardware: what `describe` prints.
    pub fn draw(&self) -> Result<(Drawing, Arc<Drive>), BuildError> {
        self.draw_prepared(&mut |_, _| {})
    }

    fn draw_prepared(
        &self,
        prepare: &mut dyn FnMut(&Arc<Drive>, &mut Tables),
    ) -> Result<(Drawing, Arc<Drive>), BuildError> {
        self.settings.check(self.architecture, self.drive.geometry.shape().page)?;
        self.timing.validate(&self.drive.geometry)?;
        if let Some(faults) = &self.faults {
            faults.validate(&self.drive.geometry, self.tag_bytes())?;
            failures::check(faults, self.architecture, &self.settings)?;
        }
        if let Some(power) = &self.power {
            let programs_fail = self.faults.is_some_and(|faults| faults.program_failures > 0.0);
            power.check(self.architecture, &self.settings, programs_fail)?;
        }
        let (bad_blocks, protected, keeps_journal) = (self.bad_blocks(), self.power.is_some(), self.keeps_journal());
        let wears_out = self.faults.is_some() || self.retires_worn;
        let erases_max = (wears_out && !self.architecture.retires_blocks()).then(|| self.counted_erases_max());
        let shape = DriveShape { bad_blocks, erases_max, protected, keeps_journal, ..self.drive.clone() };
        let drive = Arc::new(Drive::new(shape, 0)?);
        let (settings, placement, link_threads) = (self.settings, self.placement.clone(), self.link_threads);
        let interleaver = self.interleaving.as_ref().map(|order| order.interleaver.clone());
        let watch = interleaver.map(|interleaver| interleaver as Arc<dyn Watch>);
        let materials = Materials { drive: drive.clone(), settings, placement, link_threads, watch };
        let draw = || self.architecture.draw(materials, &mut |tables| prepare(&drive, tables));
        let drawing = stage::with_memory(draw)??;
        if let Some(power) = &self.power {
            let needed = power.needed(&drawing.tables, self);
            power.check_energy(needed)?;
        }
        Ok((drawing, drive))
    }

    /// Whether recovery may have to read the journal. Else its pages hold no more than others, for they would fill memory.
    fn keeps_journal(&self) -> bool {
        self.drive.keeps_journal || self.cuts.is_some() || self.media.is_some()
    }

    /// Blocks that are bad from the factory.
    fn bad_blocks(&self) -> Vec<BlockId> {
        let Some(faults) = &self.faults else { return Vec::new() };
        let blocks = (0..self.drive.geometry.block_count()).map(BlockId);
        blocks.filter(|&block| faults.is_bad_from_factory(self.precondition.seed, block)).collect()
    }

    pub(crate) fn build(&self, phases: Vec<Phase>, pauses: bool) -> Result<Built, BuildError> {
        if let Some(path) = &self.media {
            let what = "the pages of a run, which ends without a flush; expected a drive that is served";
            return Err(BuildError::Keep { file: path.display().to_string(), what });
        }
        let Prepared { drawing, drive, contents, file } = self.prepare()?;
        let settings = self.driver_settings(&drive);
        let layout = settings.layout()?;
        let memory = Arc::new(layout.memory()?);
        let driver = Driver::new(settings.clone(), memory.clone(), self.tally())?;
        let (mut links, pending) = self.links(&drawing, &drive, memory.clone());
        let mut controller = nvme::Controller::new(self.controller_settings());
        bring_up(&mut controller, &mut links, &settings, &layout, self.controller.arbitration)?;
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let doorbells = Doorbells::of(&drawing.hardware);
        let host = HostStage::new(driver, memory, doorbells, pending, phases, pauses, ledger.clone());
        let host = host.waiting_for(longest_step(self));
        self.assemble(Prepared { drawing, drive, contents, file }, links, Box::new(host), ledger)
    }

    /// Switches the device on over what its flash holds: recovery runs, until `end` at most.
    pub(crate) fn rise(
        &self,
        processor: &sim::Processor,
        contents: Vec<Contents>,
        end: units::Time,
        fate: &mut dyn FnMut() -> crate::hardware::Fate,
    ) -> Result<Risen, SessionError> {
        let (mut before, mut after) = (Some(contents), None);
        let (drawing, drive) = self.draw_prepared(&mut |drive, tables| {
            let contents = self.keeping_journal(tables, before.take().expect("a device is prepared once"));
            look_at_marks(tables, &contents);
            let outcome = recover(self, (drive, &mut *tables), processor.clone(), contents, end, fate);
            if let Ok(Outcome::Up(contents, _)) = &outcome {
                look_at_wear(tables, contents);
            }
            after = Some(outcome);
        })?;
        Ok(match after.expect("it was prepared")? {
            Outcome::Up(contents, recovery) => {
                Risen::Up(Box::new(Prepared { drawing, drive, contents, file: None }), recovery)
            }
            Outcome::Cut(contents) => Risen::Cut(contents),
        })
    }

    /// The device after recovery, with the same host.
    pub(crate) fn build_again(
        &self,
        prepared: Prepared,
        mut host: Box<dyn Stage<Firmware>>,
        phases: Vec<Phase>,
    ) -> Result<Built, BuildError> {
        let Prepared { drawing, drive, contents, file } = prepared;
        let settings = self.driver_settings(&drive);
        let layout = settings.layout()?;
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let stage: &mut HostStage =
            host.inspect_mut().and_then(|stage| stage.downcast_mut()).expect("a run with power cuts has this host");
        let (mut links, pending) = self.links(&drawing, &drive, stage.memory());
        let mut controller = nvme::Controller::new(self.controller_settings());
        bring_up(&mut controller, &mut links, &settings, &layout, self.controller.arbitration)?;
        stage.power_on(Doorbells::of(&drawing.hardware), pending, phases, ledger.clone());
        self.assemble(Prepared { drawing, drive, contents, file }, links, host, ledger)
    }

    /// A device whose hosts come from outside, with buffers in `memory` and rings as the shape of what is there lays them out.
    pub(crate) fn build_served(
        &self,
        outside: Outside,
        memory: Arc<dyn HostMemory>,
        prepared: Prepared,
    ) -> Result<Built, BuildError> {
        let shape = outside.shape;
        let (mut links, pending) = self.links(&prepared.drawing, &prepared.drive, memory);
        links.stages.iter_mut().for_each(LinkStage::tell_failures);
        for queue in (1..=shape.pairs).map(QueueId) {
            let link = links.of(queue);
            link.create_completions(queue, shape.completions(queue), shape.entries(), Some(queue.0));
            link.create_submissions(queue, shape.submissions(queue), shape.entries(), queue);
        }
        let front = FrontStage::new(outside, Doorbells::of(&prepared.drawing.hardware), pending);
        self.assemble(prepared, links, Box::new(front), Arc::new(Mutex::new(Ledger::default())))
    }

    /// Draws the device over fresh flash that its past is written to.
    pub(crate) fn prepare(&self) -> Result<Prepared, BuildError> {
        let channels = 0..self.drive.geometry.shape().channels as u16;
        let mut contents: Vec<Contents> = channels.map(|channel| self.fresh(ChannelId(channel))).collect();
        let (drawing, drive) = self.draw_prepared(&mut |drive, tables| {
            contents = self.keeping_journal(tables, std::mem::take(&mut contents));
            self.precondition.write(self.architecture, (drive, &self.settings), tables, &mut contents);
        })?;
        Ok(Prepared { drawing, drive, contents, file: None })
    }

    /// An erased channel.
    pub(crate) fn fresh(&self, channel: ChannelId) -> Contents {
        let (geometry, words) = (&self.drive.geometry, self.drive.sector_words as u32);
        let contents = Contents::for_channel(geometry, channel, words, self.counted_erases_max());
        let contents = if self.scrambler { contents.scrambling() } else { contents };
        if self.drive.tags { contents.with_tags() } else { contents }
    }

    fn keeping_journal(&self, tables: &Tables, contents: Vec<Contents>) -> Vec<Contents> {
        if !self.keeps_journal() {
            return contents;
        }
        let from = BlockId(tables.groups.journal().start * tables.groups.planes());
        contents.into_iter().map(|channel| channel.keeping_whole(from)).collect()
    }

    /// Opens the file that keeps the pages, if there is one.
    pub(crate) fn open_media(&self) -> Result<Option<Kept>, BuildError> {
        let Some(path) = &self.media else { return Ok(None) };
        let refused = if self.precondition.fill != Fill::None {
            Some("a drive that was written before; expected one without precondition")
        } else if self.power.is_some() {
            Some("a buffer that outlasts the power, which it has no room for; expected device.power.protected = false")
        } else {
            None
        };
        if let Some(what) = refused {
            return Err(BuildError::Keep { file: path.display().to_string(), what });
        }
        Kept::open(self, path).map(Some)
    }

    /// Switches the device on over what a file keeps of it; of a new file that is a fresh device.
    pub(crate) fn reopen(
        &self,
        Kept { file, contents, is_new }: Kept,
        processor: &sim::Processor,
    ) -> Result<(Prepared, Option<Recovery>), SessionError> {
        if is_new {
            let mut contents = contents;
            let (drawing, drive) = self.draw_prepared(&mut |_, tables| {
                contents = self.keeping_journal(tables, std::mem::take(&mut contents));
            })?;
            return Ok((Prepared { drawing, drive, contents, file: Some(file) }, None));
        }
        let mut fate = || unreachable!("the power stays on");
        match self.rise(processor, contents, units::Time::NEVER, &mut fate)? {
            Risen::Up(prepared, recovery) => {
                if file.is_read_only().map_err(BuildError::from)? {
                    prepared.drawing.tables.groups.set_read_only();
                }
                Ok((Prepared { file: Some(file), ..*prepared }, Some(recovery)))
            }
            Risen::Cut(_) => unreachable!("the power stays on"),
        }
    }

    fn assemble(
        &self,
        prepared: Prepared,
        links: Links,
        host: Box<dyn Stage<Firmware>>,
        ledger: Arc<Mutex<Ledger>>,
    ) -> Result<Built, BuildError> {
        let Prepared { drawing: Drawing { mut blueprint, hardware, tables }, drive, contents, file } = prepared;
        let tally = links.tally();
        blueprint.install_boxed(hardware.host, host);
        let link = hardware.links[0].slot.id();
        for (place, link) in hardware.links.iter().zip(links.stages) {
            blueprint.install_boxed(place.slot, Box::new(link));
        }
        if let Some(watch) = &hardware.power {
            blueprint.install_boxed(watch.slot, Box::new(PowerStage::new(watch, tables.backup.clone())));
        }
        let sealed = drive.shape().tags.then(|| drive.sector_words());
        let upsets = Upsets { chance: self.memory_flips, seed: self.precondition.seed };
        if self.preallocates {
            tables.frames.set_memory_aside();
        }
        let frames = Arc::new(tables.frames.clone());
        let timing = self.flash_timing();
        let channels = Channel::all(&self.drive.geometry, &timing);
        for (index, (channel, mut contents)) in channels.zip(contents).enumerate() {
            if self.preallocates {
                contents.set_memory_aside();
            }
            let media = self.media(contents, &tables);
            let (frames, done) = (frames.clone(), hardware.finished[index]);
            let (ledger, tally) = (ledger.clone(), tally.clone());
            let standstill = file.as_ref().map(|file| file.standstill().clone());
            let depth = self.settings.flash.depth();
            let ways = ChannelWays { frames, done, ledger, tally, depth, sealed, upsets, standstill };
            let stage = ChannelStage::new(index as u16, channel, media, ways, self.narrate);
            let stage = if self.timed { stage } else { stage.at_once() };
            blueprint.install_boxed(hardware.channels[index], Box::new(stage));
        }
        blueprint.check()?;
        let parts = blueprint.parts().iter().map(|part| (part.group, part.name.clone())).collect();
        let host = hardware.host.id();
        let watch = hardware.power.map(|watch| watch.slot.id());
        let channels = hardware.channels.iter().map(|slot| slot.id()).collect();
        Ok(Built { blueprint, tables, drive, ledger, media: tally, file, host, link, watch, channels, parts })
    }

    /// The memory that pages and buffer take when all of them are written.
    pub fn memory_when_full(&self) -> Bytes {
        let pages = if self.media.is_some() { 0 } else { self.drive.geometry.page_count() as u64 };
        let page = self.drive.geometry.shape().page.0 / SECTOR_BYTES * self.drive.sector_words as u64 * 8;
        Bytes(pages * page) + self.settings.cache.size
    }

    /// The pages of a channel, failing as they are set to. The journal's blocks do not fail.
    pub(crate) fn media(&self, contents: Contents, tables: &Tables) -> FaultyMedia {
        match self.faults {
            None if self.retires_worn => FaultyMedia::sound(contents).retiring_worn(),
            None => FaultyMedia::sound(contents),
            Some(faults) => {
                let sound_from = BlockId(tables.groups.journal().start * tables.groups.planes());
                FaultyMedia::failing(contents, faults, self.precondition.seed, sound_from)
            }
        }
    }

    pub(crate) fn controller_settings(&self) -> ControllerSettings {
        let namespaces = self.drive.namespaces.iter().zip(1u128..);
        let scale = self.drive.format.sectors();
        ControllerSettings {
            vendor: VENDOR,
            serial: "FL0000000001".into(),
            model: "Flashloom".into(),
            firmware: env!("CARGO_PKG_VERSION").into(),
            subsystem: "nqn.2026-11.org.flashloom:drive".into(),
            controller_id: 1,
            queue_entries_max: self.drive.queue_entries,
            io_queues_max: self.drive.queues as u16,
            // A served drive has a vector of its own for each queue, which are no host's.
            vectors: self.vectors.saturating_add(1).min(nvme::VECTORS_MAX),
            transfer_max: Some(Bytes(u64::from(self.drive.transfer_sectors) * SECTOR_BYTES)),
            event_requests_max: 4,
            error_log_entries: 64,
            burst_log2: 6,
            weighted_arbitration: true,
            commands: Opcode::ALL.to_vec(),
            volatile_write_cache: self.has_volatile_cache(),
            atomic_write_blocks: (u64::from(self.page_sectors()) / scale) as u32,
            keep_alive: None,
            ready_within: Span::from_secs(1),
            temperatures: [343, 358],
            power_centiwatts: 2_500,
            transport: Transport::Memory,
            role: Role::Storage,
            managed_namespaces: 0,
            memory_sgls: false,
            shadow_doorbells: false,
            metadata: self.drive.tags,
            namespaces: namespaces
                .map(|(&sectors, number)| NamespaceSettings {
                    blocks: sectors / scale,
                    block_bytes: (SECTOR_BYTES * scale) as u32,
                    metadata: false,
                    protection: Protection::None,
                    nguid: (number << 64).to_be_bytes(),
                    eui64: [0; 8],
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_of_many_namespaces_has_a_name() {
        let mut device = crate::check::small::Small::default().device();
        device.drive.namespaces = vec![8; 1000];
        let names = device.controller_settings().namespaces.into_iter().map(|space| space.nguid);
        assert_eq!(names.filter(|name| *name != [0; 16]).collect::<std::collections::BTreeSet<_>>().len(), 1000);
    }
}
