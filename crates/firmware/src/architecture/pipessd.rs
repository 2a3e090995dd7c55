//! PipeSSD (DAC'24): four stages on a core each, with a first-in first-out queue from each to the next and no lock.
//!
//! ```text
//! host -> link -> NVMe Fetch -> FTL -> FIL -> NVMe Post -> link -> host
//!                 pilot               waitlist  data cache
//!                                     channels
//! ```

use super::{
    Architecture, DrawError, Drawing, Hardware, LINES_PER_LOCK, LinkDeal, Materials, NamedPart, OF_PARTS, ThreadGroup,
};
use crate::stages::dies::DieLines;
use crate::stages::pipessd::event::EventLine;
use crate::stages::pipessd::fetch::{self, Fetcher};
use crate::stages::pipessd::fil::{Fil, FilFrames};
use crate::stages::pipessd::ftl::{self, Ftl};
use crate::stages::pipessd::post::{self, Poster};
use crate::stages::trans::working_of_ftl;
use crate::tables::{Pipeline, RESERVED_GROUPS, Watcher};
use crate::{
    Blueprint, Drive, EventPulled, Firmware, LatencyPart, Mapping, MappingScheme, Mutation, Needs, PartCounts,
    Settings, SubRequest, Tables, Working, write_points_of,
};
use stage::{Address, Place, Slot, Stage};
use std::sync::Arc;

/// The lock-free pipeline.
pub(super) struct PipeSsd;

const ONE: &str = "the pipeline has four stages, of one thread each";

const GROUPS: &[ThreadGroup] = &[
    ThreadGroup::new("fetch", 1, LatencyPart::Fetch, "NVMe Fetch: cuts commands, and the pilot").within(1, 1, ONE),
    ThreadGroup::new("ftl", 1, LatencyPart::Trans, "FTL: translation of misses, reclaim").within(1, 1, ONE),
    ThreadGroup::new("fil", 1, LatencyPart::Fcmd, "FIL: the waitlist and all flash channels").within(1, 1, ONE),
    ThreadGroup::new("post", 1, LatencyPart::Cache, "NVMe Post: the data cache and completions").within(1, 1, ONE),
];

const LATENCY_PARTS: &[NamedPart] = &[
    NamedPart::new(LatencyPart::Fetch, "fetch", "to be fetched"),
    NamedPart::new(LatencyPart::Trans, "ftl", "in ftl"),
    NamedPart::new(LatencyPart::Fcmd, "fil", "in fil"),
    NamedPart::new(LatencyPart::Ilock, "waitlist", "for those before them, on their cacheline or in their block,"),
    NamedPart::new(LatencyPart::Cache, "post", "in post"),
];

impl Architecture for PipeSsd {
    fn has_locks(&self) -> bool {
        false
    }
    fn has_deepflash_parts(&self) -> bool {
        false
    }
    fn retires_blocks(&self) -> bool {
        false
    }
    fn planted(&self) -> &'static [(Mutation, u64)] {
        &[
            (Mutation::ShortScan, 0),
            (Mutation::OldestWins, 0),
            (Mutation::VersionsAnew, 48),
            (Mutation::WrongCount, 0),
            (Mutation::RenumberTombstone, 96),
        ]
    }
    fn name(&self) -> &'static str {
        "pipessd"
    }
    fn summary(&self) -> &'static str {
        "lock-free pipeline of four stages, with a pilot ahead of the data cache (DAC'24)"
    }
    fn groups(&self) -> &'static [ThreadGroup] {
        GROUPS
    }
    fn latency_parts(&self) -> &'static [NamedPart] {
        LATENCY_PARTS
    }
    fn parts(&self, _settings: &Settings) -> PartCounts {
        PartCounts { nvmq: 1, ilock: 0, cache: 1, trans: 1, log: 0, bgc: 1, fcmd: 1 }
    }
    /// The whole mapping table is in memory, and a page may be anywhere (section 2.2).
    fn settle(&self, mut settings: Settings) -> Settings {
        settings.mapping = MappingScheme::Page;
        settings
    }
    fn unread(&self) -> Vec<&'static str> {
        [OF_PARTS, &[LINES_PER_LOCK]].concat()
    }
    fn needs(&self, drive: &Drive, _settings: &Settings, tables: &Tables, _trans: u16) -> Needs {
        needs(drive, tables)
    }
    fn working(&self, drive: &Drive, settings: &Settings, tables: &Tables, _trans: u16) -> Working {
        working_of_ftl(drive, settings, tables)
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
        draw(&materials, prepare)
    }
}

/// The slots of the stages.
struct Stages {
    fetch: Slot<Fetcher>,
    ftl: Slot<Ftl>,
    fil: Slot<Fil>,
    post: Slot<Poster>,
}

/// The groups that FTL fills, what is kept for moved pages, and two more.
fn needs(drive: &Drive, tables: &Tables) -> Needs {
    let filled = u64::from(write_points_of(&tables.groups, 0));
    Needs { pages: drive.pages().into(), groups: filled + u64::from(RESERVED_GROUPS) + 2 }
}

fn draw(materials: &Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
    let mut plan = materials.plan();
    let Materials { drive, settings, .. } = materials;
    let mut tables = Tables::new(&mut plan.memory, drive, settings, settings.frames);
    if !matches!(tables.mapping, Mapping::Page(_)) {
        return Err(DrawError::PageMappingOnly);
    }
    super::check_room(&tables, [("ftl0".to_owned(), needs(drive, &tables))])?;
    if let Some(least) = tables.groups.lacks_erases() {
        return Err(DrawError::FewErases(least));
    }
    prepare(&mut tables);
    let pipeline = Pipeline::new(&mut plan.memory, tables.cache_entries, usize::from(settings.frames));
    let hardware = Hardware::reserve(&mut plan, drive, LinkDeal::one(1), false);
    let stages = Stages {
        fetch: reserve(&mut plan, materials, "fetch"),
        ftl: reserve(&mut plan, materials, "ftl"),
        fil: reserve(&mut plan, materials, "fil"),
        post: reserve(&mut plan, materials, "post"),
    };
    let mut drawing = Drawing { blueprint: plan, hardware, tables: Arc::new(tables) };
    install_front(&mut drawing, materials, &stages, &pipeline);
    install_back(&mut drawing, materials, &stages, &pipeline);
    let groups: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
    assert!(drawing.blueprint.is_loop_free(&groups), "no message runs back up the pipeline");
    Ok(drawing)
}

fn reserve<S: Stage<Firmware>>(plan: &mut Blueprint, materials: &Materials, group: &'static str) -> Slot<S> {
    let place = Place::Core(materials.placement.core(group, 0));
    plan.reserve(group, format!("{group}0"), place)
}

/// NVMe Fetch and FTL.
fn install_front(drawing: &mut Drawing, materials: &Materials, stages: &Stages, pipeline: &Pipeline) {
    let (plan, hardware) = (&mut drawing.blueprint, &mut drawing.hardware);
    let Materials { drive, settings, .. } = materials;
    let (commands, slots) = (u32::from(settings.commands), u32::from(settings.frames));
    let [link] = &mut hardware.links[..] else { unreachable!("one thread fetches") };
    let ways = fetch::Ways {
        link: plan.connect(stages.fetch, link.slot, 3 * commands),
        ftl: plan.connect(stages.fetch, stages.ftl, slots),
    };
    link.fetches.push(Some(plan.connect(link.slot, stages.fetch, commands)));
    link.transfers.push(Some(plan.connect(link.slot, stages.fetch, 3 * commands)));
    let tables = &drawing.tables;
    let fetcher = Fetcher::new(drive.clone(), *settings, tables.clone(), pipeline.clone(), ways);
    plan.install(stages.fetch, fetcher);
    let ways = ftl::Ways {
        fil: plan.connect::<SubRequest, _, _>(stages.ftl, stages.fil, slots),
        orders: plan.connect(stages.ftl, stages.fil, settings.reclaim.window.into()),
    };
    plan.install(stages.ftl, Ftl::new(*settings, tables.clone(), pipeline.clone(), ways));
}

/// FIL and NVMe Post.
fn install_back(drawing: &mut Drawing, materials: &Materials, stages: &Stages, pipeline: &Pipeline) {
    let (plan, hardware) = (&mut drawing.blueprint, &mut drawing.hardware);
    let Materials { drive, settings, .. } = materials;
    let slots = u32::from(settings.frames);
    // A die may have as many reads as it takes, and as many writes under them where these are suspended.
    let each = 2 * u32::from(settings.flash.depth()) * drive.geometry().dies_per_channel();
    let channels = hardware.channels.iter().map(|&channel| plan.connect(stages.fil, channel, each)).collect();
    for &channel in &hardware.channels {
        hardware.finished.push(plan.connect(channel, stages.fil, each));
    }
    let lines = drawing.tables.cache_entries as u32;
    let window = lines + slots..lines + slots + u32::from(settings.reclaim.window);
    let spares = window.end..window.end + settings.cache.spare_frames;
    let frames = FilFrames { staging: lines..lines + slots, window };
    let post = plan.connect(stages.fil, stages.post, slots);
    let dies = DieLines::new(1, drive.clone(), settings.flash, channels);
    let tables = &drawing.tables;
    let fil = Fil::new(drive, tables.clone(), pipeline.clone(), dies, post, frames, settings.mutation);
    plan.install(stages.fil, fil);
    let mut event = |name: &str, pulls: &dyn Fn(&mut Blueprint, Slot<EventLine>) -> Address<EventPulled>| {
        let line = plan.reserve("event", name.into(), Place::Hardware);
        let to = pulls(plan, line);
        plan.install(line, EventLine::new(to));
        plan.connect(stages.post, line, 1)
    };
    // A line is still until its watcher has looked, so one event is under way at most.
    let events = [
        (Watcher::Fetch, event("event0", &|plan, line| plan.connect(line, stages.fetch, 1))),
        (Watcher::Fil, event("event1", &|plan, line| plan.connect(line, stages.fil, 1))),
    ];
    let [link] = &mut hardware.links[..] else { unreachable!("one thread fetches") };
    let ways = post::Ways {
        events,
        link: plan.connect(stages.post, link.slot, slots),
        posted: plan.connect(stages.post, link.slot, settings.commands.into()),
    };
    link.transfers.push(Some(plan.connect(link.slot, stages.post, slots)));
    let poster = Poster::new(drive.clone(), tables.clone(), pipeline.clone(), ways, spares);
    plan.install(stages.post, poster);
}
