//! The traditional firmware that PipeSSD is compared with (DAC'24 §2.3): N workers, each of which carries one command through all
//! stages, and a flash interface layer (FIL) of its own.
//!
//! ```text
//! host -> link -> fetch -> worker <-> FIL -> channels
//!                          worker <-> link
//! ```

use super::{Architecture, DrawError, Drawing, Hardware, LinkDeal, Materials, NamedPart, OF_PARTS, POLL, ThreadGroup};
use crate::stages::Answers;
use crate::stages::dies::DieLines;
use crate::stages::fcmd::{self, Fcmd};
use crate::stages::tradition::dispatch::{self, Dispatch};
use crate::stages::tradition::pool::{Means, Pool};
use crate::stages::tradition::reclaim::Reclaim;
use crate::stages::tradition::tombstones::Tombstones;
use crate::stages::tradition::worker::{self, Shared, Worker};
use crate::stages::trans::kept_for;
use crate::tables::RESERVED_GROUPS;
use crate::{
    Blueprint, Drive, Firmware, LatencyPart, Mapping, MappingScheme, Mutation, Needs, PartCounts, Settings, Spares,
    Tables, Working, write_points,
};
use stage::{Place, Slot, Stage};
use std::sync::Arc;

/// N workers.
pub(super) struct Tradition;

const GROUPS: &[ThreadGroup] = &[
    ThreadGroup::new("fetch", 1, LatencyPart::Fetch, "fetches commands and wakes idle workers").within(1, 1, ""),
    ThreadGroup::new("worker", 4, LatencyPart::Nvmq, "carry one command each: Tradition-N has N").with_few(4),
    ThreadGroup::new("fil", 1, LatencyPart::Fcmd, "poll flash channels: one all of them, or one each").with_few(2),
];

const LATENCY_PARTS: &[NamedPart] = &[
    NamedPart::new(LatencyPart::Fetch, "fetch", "to be fetched"),
    NamedPart::new(LatencyPart::Nvmq, "worker", "in worker"),
    NamedPart::new(LatencyPart::Trans, "room", "for a reclaim to make room"),
    NamedPart::new(LatencyPart::Ilock, "lock", "for locks"),
    NamedPart::new(LatencyPart::Fcmd, "fil", "in fil"),
];

impl Architecture for Tradition {
    fn name(&self) -> &'static str {
        "tradition"
    }
    fn summary(&self) -> &'static str {
        "a worker carries a request through all stages, under cacheline locks (PipeSSD's Tradition-N, DAC'24)"
    }
    fn groups(&self) -> &'static [ThreadGroup] {
        GROUPS
    }
    fn latency_parts(&self) -> &'static [NamedPart] {
        LATENCY_PARTS
    }
    fn parts(&self, settings: &Settings) -> PartCounts {
        let threads = &settings.threads;
        PartCounts { nvmq: threads.of("worker"), ilock: 0, cache: 1, trans: 1, log: 0, bgc: 1, fcmd: threads.of("fil") }
    }
    /// The whole mapping table is in memory, and a page may be anywhere (PipeSSD §2.2).
    fn settle(&self, mut settings: Settings) -> Settings {
        settings.mapping = MappingScheme::Page;
        settings
    }
    fn has_deepflash_parts(&self) -> bool {
        false
    }
    fn planted(&self) -> &'static [(Mutation, u64)] {
        &[
            (Mutation::ShortScan, 0),
            (Mutation::OldestWins, 0),
            (Mutation::VersionsAnew, 48),
            (Mutation::WrongCount, 0),
            (Mutation::FillBadGroup, 16),
            (Mutation::RenumberTombstone, 352),
        ]
    }
    /// Whichever worker is first at a cacheline goes first.
    fn keeps_queue_order(&self) -> bool {
        false
    }
    fn unread(&self) -> Vec<&'static str> {
        [OF_PARTS, &[POLL, "reclaim.window_per_group", "reclaim.wear_share"]].concat()
    }
    fn needs(&self, drive: &Drive, settings: &Settings, tables: &Tables, _trans: u16) -> Needs {
        needs(drive, tables, settings.parts.nvmq)
    }
    fn working(&self, drive: &Drive, settings: &Settings, tables: &Tables, _trans: u16) -> Working {
        working(drive, settings, tables)
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
        draw(&materials, prepare)
    }
}

/// The slots of all groups.
struct Groups {
    fetch: Slot<Dispatch>,
    workers: Vec<Slot<Worker>>,
    fil: Vec<Slot<Fcmd>>,
}

/// Groups that each worker fills at a time.
fn points_of(tables: &Tables, workers: u16) -> usize {
    let dies = tables.groups.dies() as usize / usize::from(workers);
    write_points(dies.max(1), tables.groups.owned_count(0) as usize / usize::from(workers))
}

/// Every worker's open groups, one more of each that is not mapped whole yet, and what reclaim works with.
fn needs(drive: &Drive, tables: &Tables, workers: u16) -> Needs {
    let each = points_of(tables, workers) as u64 + 1;
    Needs { pages: drive.pages().into(), groups: u64::from(RESERVED_GROUPS) + 2 + each * u64::from(workers) }
}

/// Groups beyond those that the logical pages need.
fn beyond_mapped(drive: &Drive, tables: &Tables) -> usize {
    tables.groups.owned_count(0) as usize - drive.pages().div_ceil(tables.groups.pages()) as usize
}

/// What reclaim works with: a worker empties one victim at a time, and has a place at least in the window.
fn means(drive: &Drive, settings: &Settings, tables: &Tables) -> Means {
    let workers = settings.parts.nvmq;
    let filled = points_of(tables, workers) * usize::from(workers);
    Means {
        victims: settings.reclaim.victims.min(workers).min(settings.reclaim.window),
        spares: beyond_mapped(drive, tables).saturating_sub(filled + usize::from(workers)) as u32,
        filled: filled as u32,
    }
}

/// Groups that a worker reclaims for, while it has room, until so many are open.
fn spread_of(drive: &Drive, tables: &Tables, workers: u16) -> usize {
    points_of(tables, workers).min(beyond_mapped(drive, tables) / 2 / usize::from(workers)).max(1)
}

/// A worker takes what is free beyond what reclaim keeps, and then lets the groups that it fills become as few as it reclaims for.
fn working(drive: &Drive, settings: &Settings, tables: &Tables) -> Working {
    let workers = settings.parts.nvmq;
    let filled = spread_of(drive, tables, workers) * usize::from(workers);
    Working { filled: filled as u32, free: kept_for(means(drive, settings, tables).victims(0)) }
}

fn draw(materials: &Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
    let mut plan = materials.plan();
    let Materials { drive, settings, placement, .. } = materials;
    let mut tables = Tables::new(&mut plan.memory, drive, settings, 0);
    if !matches!(tables.mapping, Mapping::Page(_)) {
        return Err(DrawError::PageMappingOnly);
    }
    let workers = settings.parts.nvmq;
    let points = points_of(&tables, workers);
    let needs = needs(drive, &tables, workers);
    super::check_room(&tables, [("the firmware".to_owned(), needs)])?;
    prepare(&mut tables);
    let hardware = Hardware::reserve(&mut plan, drive, LinkDeal::one(1), false);
    let means = means(drive, settings, &tables);
    let pool = Pool::new(&mut plan, &tables, settings.cache.lines_per_lock, workers, means);
    let tombstones = Tombstones::new(&mut plan.memory, &tables);
    let groups = Groups {
        fetch: plan.reserve("fetch", "fetch0".into(), Place::Core(placement.core("fetch", 0))),
        workers: reserve(&mut plan, materials, "worker"),
        fil: reserve(&mut plan, materials, "fil"),
    };
    let spread = spread_of(drive, &tables, workers);
    let Mapping::Page(map) = tables.mapping.clone() else { unreachable!("a past does not change the scheme") };
    let tables = Arc::new(tables);
    let spares = Spares::of(&tables, 0, needs);
    spares.look(&tables.groups);
    let (drive, settings) = (drive.clone(), *settings);
    let shared = Shared { drive, settings, tables, map, pool, tombstones, spares, workers, points, spread };
    let mut drawing = Drawing { blueprint: plan, hardware, tables: shared.tables.clone() };
    install_fetch(&mut drawing, materials, &groups);
    install_workers(&mut drawing, &shared, &groups);
    install_fil(&mut drawing, materials, &shared, &groups);
    Ok(drawing)
}

fn reserve<S: Stage<Firmware>>(plan: &mut Blueprint, materials: &Materials, group: &'static str) -> Vec<Slot<S>> {
    (0..materials.settings.threads.of(group))
        .map(|index| {
            let place = Place::Core(materials.placement.core(group, index));
            plan.reserve(group, format!("{group}{index}"), place)
        })
        .collect()
}

fn install_fetch(drawing: &mut Drawing, materials: &Materials, groups: &Groups) {
    let (plan, hardware) = (&mut drawing.blueprint, &mut drawing.hardware);
    let commands = materials.settings.commands.into();
    // A worker is told of one command at a time.
    let workers = groups.workers.iter().map(|&worker| plan.connect(groups.fetch, worker, 1)).collect();
    let [link] = &mut hardware.links[..] else { unreachable!("one thread fetches") };
    let ways = dispatch::Ways { link: plan.connect(groups.fetch, link.slot, 2 * commands), workers };
    link.fetches.push(Some(plan.connect(link.slot, groups.fetch, commands)));
    link.transfers.push(Some(plan.connect(link.slot, groups.fetch, 2 * commands)));
    plan.install(groups.fetch, Dispatch::new(drawing.tables.clone(), materials.drive.shape().queues, ways));
}

/// Frames of a worker beside those that all have: for comparisons, and for pages past their line.
const FRAMES: u32 = 2;

/// Pages that a worker moves at a time: its lane's share of the window.
fn window(shared: &Shared) -> usize {
    usize::from(shared.settings.reclaim.window) / shared.pool.lanes()
}

/// Pages that a worker has under way: its own and those that it moves, or the blocks that it erases.
fn pages(shared: &Shared) -> u32 {
    1 + (window(shared) as u32).max(shared.tables.groups.planes())
}

fn install_workers(drawing: &mut Drawing, shared: &Shared, groups: &Groups) {
    let (plan, hardware) = (&mut drawing.blueprint, &mut drawing.hardware);
    let lines = shared.tables.cache_entries as u32;
    let first_moved = lines + FRAMES * u32::from(shared.workers);
    let [link] = &mut hardware.links[..] else { unreachable!("one thread fetches") };
    for (index, &slot) in groups.workers.iter().enumerate() {
        let ways = worker::Ways {
            link: plan.connect(slot, link.slot, 1),
            // It takes the next command without an answer of the link.
            posted: plan.connect(slot, link.slot, shared.settings.commands.into()),
            idle: plan.connect(slot, groups.fetch, 1),
            back: plan.connect(slot, groups.fetch, 1),
            fil: groups.fil.iter().map(|&fil| plan.connect(slot, fil, pages(shared))).collect(),
        };
        link.transfers.push(Some(plan.connect(link.slot, slot, 1)));
        let reclaim = Reclaim::new(first_moved, window(shared));
        let own = lines + FRAMES * index as u32;
        plan.install(slot, Worker::new(index as u8, shared.clone(), ways, [own, own + 1], reclaim));
    }
    plan.share_locks(&groups.workers);
}

fn install_fil(drawing: &mut Drawing, materials: &Materials, shared: &Shared, groups: &Groups) {
    let (plan, hardware) = (&mut drawing.blueprint, &mut drawing.hardware);
    let (threads, workers) = (groups.fil.len(), groups.workers.len() as u32);
    let each = pages(shared);
    for (index, &slot) in groups.fil.iter().enumerate() {
        let mine = hardware.channels.iter().copied().skip(index).step_by(threads);
        let channels = mine.map(|channel| plan.connect(slot, channel, each * workers)).collect();
        let worker = groups.workers.iter().map(|&worker| plan.connect(slot, worker, each)).collect();
        let dies = DieLines::new(threads as u16, materials.drive.clone(), materials.settings.flash, channels);
        let ways = fcmd::Ways { answers: Answers { worker, ..Answers::default() }, replacing: Vec::new() };
        plan.install(slot, Fcmd::new(index as u8, 1, dies, drawing.tables.clone(), ways, None));
    }
    for (channel, &from) in hardware.channels.iter().enumerate() {
        hardware.finished.push(plan.connect(from, groups.fil[channel % threads], each * workers));
    }
}
