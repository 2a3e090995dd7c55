//! DeepFlash (FAST'20): seven thread groups, any number of threads in each, on any number of cores; and BaseDeepFlash, the same
//! groups without the optimisations of §5.
//!
//! ```text
//! host -> link -> NVMQ <-> ILOCK        LOG, BGC
//!                  |  \-> CACHE            |
//!                  +------> TRANS -> FCMD -> channels
//! ```

use super::{Architecture, DrawError, Drawing, Hardware, Materials};
use crate::policies::shares;
use crate::stages::Answers;
use crate::stages::bgc::{self, Bgc};
use crate::stages::cache::Cache;
use crate::stages::fcmd::Fcmd;
use crate::stages::ilock::Ilock;
use crate::stages::log::Log;
use crate::stages::nvmq::{Nvmq, Ways};
use crate::stages::trans::Trans;
use crate::tables::RESERVED_GROUPS;
use crate::{AddressSplit, Blueprint, Firmware, Mapping, QueueAllocation, Settings, Tables};
use stage::{Accepts, Address, Place, Slot, Stage};

/// The platform with every optimisation.
pub(super) struct DeepFlash;

/// The platform without dynamic I/O serialisation, lock forwarding, tag look-up in NVMQ, bypass and address randomisation.
pub(super) struct BaseDeepFlash;

impl Architecture for DeepFlash {
    fn name(&self) -> &'static str {
        "deepflash"
    }
    fn summary(&self) -> &'static str {
        "many-to-many threading firmware with every optimisation (FAST'20)"
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&Tables)) -> Result<Drawing, DrawError> {
        draw(materials, prepare)
    }
}

impl Architecture for BaseDeepFlash {
    fn name(&self) -> &'static str {
        "base_deepflash"
    }
    fn summary(&self) -> &'static str {
        "DeepFlash's groups without the optimisations of its section 5 (FAST'20)"
    }
    fn settle(&self, mut settings: Settings) -> Settings {
        settings.queues = QueueAllocation::Static;
        settings.lock.forwarding = false;
        settings.cache.non_blocking = false;
        settings.cache.bypass = false;
        settings.split = AddressSplit::Plain;
        settings
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&Tables)) -> Result<Drawing, DrawError> {
        draw(materials, prepare)
    }
}

/// The slots of all groups.
struct Groups {
    nvmq: Vec<Slot<Nvmq>>,
    ilock: Vec<Slot<Ilock>>,
    cache: Vec<Slot<Cache>>,
    trans: Vec<Slot<Trans>>,
    log: Vec<Slot<Log>>,
    bgc: Vec<Slot<Bgc>>,
    fcmd: Vec<Slot<Fcmd>>,
}

/// The most messages of a kind that can be under way: by admission, not by guess.
#[derive(Clone, Copy)]
struct Bounds {
    /// Commands in the drive.
    commands: u32,
    /// Pages under way for one NVMQ thread: each holds one of its frames.
    thread_pages: u32,
    /// The same for all of them.
    pages: u32,
    /// Pages that BGC and LOG have under way, erases included.
    background: u32,
    /// Evictions under way.
    evictions: u32,
}

impl Bounds {
    fn of(materials: &Materials) -> Self {
        let settings = &materials.settings;
        let planes = materials.drive.geometry().shape().planes_per_die;
        let thread_pages = u32::from(settings.frames);
        Bounds {
            commands: settings.commands.into(),
            thread_pages,
            pages: thread_pages * u32::from(settings.threads.nvmq),
            // Beside its window a BGC thread may have told a TRANS thread that the drive is idle.
            background: u32::from(settings.threads.bgc) * (u32::from(settings.reclaim.window) + planes + 1)
                + u32::from(settings.threads.log) * (u32::from(settings.journal.window) + planes),
            evictions: settings.cache.spare_frames,
        }
    }
    fn page_requests(&self) -> u32 {
        self.pages + self.background + self.evictions
    }
}

fn draw(materials: Materials, prepare: &mut dyn FnMut(&Tables)) -> Result<Drawing, DrawError> {
    let mut plan = Blueprint::default();
    let tables = Tables::new(&mut plan.memory, &materials.drive, &materials.settings);
    check_room(&materials, &tables)?;
    prepare(&tables);
    let bounds = Bounds::of(&materials);
    let hardware = Hardware::reserve(&mut plan, &materials.drive);
    let groups = Groups {
        nvmq: reserve(&mut plan, &materials, "nvmq", materials.settings.threads.nvmq),
        ilock: reserve(&mut plan, &materials, "ilock", materials.settings.threads.ilock),
        cache: reserve(&mut plan, &materials, "cache", materials.settings.threads.cache),
        trans: reserve(&mut plan, &materials, "trans", materials.settings.threads.trans),
        log: reserve(&mut plan, &materials, "log", materials.settings.threads.log),
        bgc: reserve(&mut plan, &materials, "bgc", materials.settings.threads.bgc),
        fcmd: reserve(&mut plan, &materials, "fcmd", materials.settings.threads.fcmd),
    };
    let mut drawing = Drawing { blueprint: plan, hardware, tables };
    let mut frames = FrameDeal { next: 0 };
    install_nvmq(&mut drawing, &materials, &groups, bounds, &mut frames);
    install_ilock(&mut drawing, &materials, &groups, bounds);
    install_cache(&mut drawing, &materials, &groups, bounds, &mut frames);
    install_trans(&mut drawing, &materials, &groups, bounds);
    install_background(&mut drawing, &materials, &groups, bounds, &mut frames);
    install_fcmd(&mut drawing, &materials, &groups, bounds);
    Ok(drawing)
}

/// Every TRANS thread must be able to hold its pages beside its open groups and the ones that reclaim works with.
fn check_room(materials: &Materials, tables: &Tables) -> Result<(), DrawError> {
    let threads = materials.settings.threads.trans;
    let shares = shares(materials.settings.split, materials.drive.pages(), threads);
    let per_group = u64::from(tables.groups.pages());
    for (trans, pages) in (0..threads).zip(shares) {
        let owned = tables.groups.owned(trans.into()).count() as u64;
        let (pages, groups) = match &tables.mapping {
            Mapping::Page(_) => (pages, owned / 32 + 4),
            // Logical blocks are whole; beside the reserve there is a log group, and one more while one is emptied.
            Mapping::Hybrid(map) => (map.share(trans).blocks.len() as u64 * per_group, u64::from(RESERVED_GROUPS) + 2),
        };
        let (spare, owned) = (groups * per_group, owned * per_group);
        let needed = pages + spare;
        if needed > owned {
            return Err(DrawError::NoRoom { trans, owned, needed, pages, spare });
        }
    }
    Ok(())
}

/// Deals the frames of the pool.
struct FrameDeal {
    next: u32,
}

impl FrameDeal {
    fn take(&mut self, count: u32) -> std::ops::Range<u32> {
        let first = self.next;
        self.next += count;
        first..self.next
    }
}

fn reserve<S: Stage<Firmware>>(
    plan: &mut Blueprint,
    materials: &Materials,
    group: &'static str,
    count: u16,
) -> Vec<Slot<S>> {
    (0..count)
        .map(|index| {
            let place = Place::Core(materials.placement.core(group, index));
            plan.reserve(group, format!("{group}{index}"), place, 1 << 24)
        })
        .collect()
}

fn connect<In, From, To: Accepts<In>>(
    plan: &mut Blueprint,
    from: Slot<From>,
    to: &[Slot<To>],
    at_most: u32,
) -> Vec<Address<In>> {
    to.iter().map(|&to| plan.connect(from, to, at_most)).collect()
}

fn answers<From>(plan: &mut Blueprint, from: Slot<From>, groups: &Groups, bounds: Bounds) -> Answers {
    Answers {
        nvmq: connect(plan, from, &groups.nvmq, bounds.thread_pages + bounds.commands),
        cache: connect(plan, from, &groups.cache, bounds.evictions),
        bgc: connect(plan, from, &groups.bgc, bounds.background),
        log: connect(plan, from, &groups.log, bounds.background),
    }
}

fn install_nvmq(drawing: &mut Drawing, materials: &Materials, groups: &Groups, bounds: Bounds, frames: &mut FrameDeal) {
    let plan = &mut drawing.blueprint;
    let Bounds { commands, thread_pages: pages, .. } = bounds;
    for (index, &slot) in groups.nvmq.iter().enumerate() {
        let ways = Ways {
            link: plan.connect(slot, drawing.hardware.link, pages + 2 * commands),
            posted: plan.connect(slot, drawing.hardware.link, commands),
            takes: connect(plan, slot, &groups.nvmq, commands),
            forwards: connect(plan, slot, &groups.nvmq, commands),
            homes: connect(plan, slot, &groups.nvmq, commands),
            locks: connect(plan, slot, &groups.ilock, 2 * commands),
            skips: connect(plan, slot, &groups.ilock, 2 * commands),
            releases: connect(plan, slot, &groups.ilock, 2 * commands),
            caches: connect(plan, slot, &groups.cache, pages + commands),
            trans: connect(plan, slot, &groups.trans, pages),
        };
        let link = drawing.hardware.link;
        drawing.hardware.fetches.push(plan.connect(link, slot, commands));
        drawing.hardware.transfers.push(plan.connect(link, slot, pages + 2 * commands));
        let (drive, tables) = (materials.drive.clone(), drawing.tables.clone());
        let frames = frames.take(materials.settings.frames.into());
        plan.install(slot, Nvmq::new(index as u8, drive, materials.settings, tables, ways, frames));
    }
}

fn install_ilock(drawing: &mut Drawing, materials: &Materials, groups: &Groups, bounds: Bounds) {
    let plan = &mut drawing.blueprint;
    for &slot in &groups.ilock {
        let nvmq = connect(plan, slot, &groups.nvmq, 2 * bounds.commands);
        let joins = connect(plan, slot, &groups.nvmq, 2 * bounds.commands);
        let queues = materials.drive.shape().queues;
        plan.install(slot, Ilock::new(nvmq, joins, materials.settings.lock.forwarding, queues));
    }
}

fn install_cache(
    drawing: &mut Drawing,
    materials: &Materials,
    groups: &Groups,
    bounds: Bounds,
    frames: &mut FrameDeal,
) {
    let plan = &mut drawing.blueprint;
    let threads = groups.cache.len() as u32;
    for (index, &slot) in groups.cache.iter().enumerate() {
        let trans = connect(plan, slot, &groups.trans, bounds.pages + bounds.evictions);
        let answers = answers(plan, slot, groups, bounds);
        let tables = drawing.tables.clone();
        let entries = frames.take(tables.cache_entries as u32 / threads);
        let spares = frames.take(materials.settings.cache.spare_frames / threads);
        plan.install(slot, Cache::new(index as u8, materials.settings, tables, trans, answers, entries, spares));
    }
}

fn install_trans(drawing: &mut Drawing, materials: &Materials, groups: &Groups, bounds: Bounds) {
    let plan = &mut drawing.blueprint;
    for (index, &slot) in groups.trans.iter().enumerate() {
        let fcmd = connect(plan, slot, &groups.fcmd, bounds.page_requests());
        let answers = answers(plan, slot, groups, bounds);
        let bgc = plan.connect(slot, groups.bgc[index % groups.bgc.len()], 1);
        let (drive, tables) = (materials.drive.clone(), drawing.tables.clone());
        plan.install(slot, Trans::new(index as u8, drive, &materials.settings, tables, fcmd, answers, bgc));
    }
}

fn install_background(
    drawing: &mut Drawing,
    materials: &Materials,
    groups: &Groups,
    bounds: Bounds,
    frames: &mut FrameDeal,
) {
    let plan = &mut drawing.blueprint;
    for (index, &slot) in groups.bgc.iter().enumerate() {
        let ways = bgc::Ways {
            fcmd: connect(plan, slot, &groups.fcmd, bounds.background),
            trans: connect(plan, slot, &groups.trans, bounds.background),
            reclaimed: connect(plan, slot, &groups.trans, 1),
        };
        let first = frames.take(materials.settings.reclaim.window.into()).start;
        let (drive, tables) = (materials.drive.clone(), drawing.tables.clone());
        plan.install(slot, Bgc::new(index as u8, drive, materials.settings, tables, ways, first));
    }
    for &slot in &groups.log {
        let fcmd = connect(plan, slot, &groups.fcmd, bounds.background);
        let first = frames.take(materials.settings.journal.window.into()).start;
        let (drive, tables) = (materials.drive.clone(), drawing.tables.clone());
        plan.install(slot, Log::new(drive, materials.settings, tables, fcmd, first));
    }
}

fn install_fcmd(drawing: &mut Drawing, materials: &Materials, groups: &Groups, bounds: Bounds) {
    let plan = &mut drawing.blueprint;
    let threads = groups.fcmd.len();
    for (index, &slot) in groups.fcmd.iter().enumerate() {
        let mine = drawing.hardware.channels.iter().copied().skip(index).step_by(threads);
        let channels = mine.map(|channel| plan.connect(slot, channel, bounds.page_requests())).collect();
        let answers = answers(plan, slot, groups, bounds);
        let fcmd = Fcmd::new(index as u8, materials.drive.clone(), materials.settings, channels, answers);
        plan.install(slot, fcmd);
    }
    for (channel, &from) in drawing.hardware.channels.iter().enumerate() {
        let fcmd = groups.fcmd[channel % threads];
        drawing.hardware.finished.push(plan.connect(from, fcmd, bounds.page_requests()));
    }
}
