//! Draws DeepFlash's parts onto the threads of an architecture: where each part runs is what architectures differ in.

use super::layout::PowerWatch;
use super::{DrawError, Drawing, Hardware, LinkDeal, Materials, check_room};
use crate::spares::needs;
use crate::stages::Answers;
use crate::stages::bgc::{self, Bgc};
use crate::stages::cache::Cache;
use crate::stages::dies::DieLines;
use crate::stages::fcmd::{self, Fcmd};
use crate::stages::ilock::{self, Ilock};
use crate::stages::layer::{AnyStage, Hold, Layer, Member, Part};
use crate::stages::log::{self, Log};
use crate::stages::nvmq::{self, Nvmq};
use crate::stages::trans::{self, Trans, reclaims_at_a_time};
use crate::tables::{journal_groups, map_groups};
use crate::{Blueprint, Firmware, LockSettings, Tables};
use stage::{Accepts, Address, Guarded, Place, Slot, Stage};
use std::sync::Arc;

/// A thread: its group, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) group: &'static str,
    pub(super) index: u16,
}

/// Where the parts of an architecture run.
pub(super) struct Staff {
    /// The thread of a part, by its number among those of its kind.
    pub(super) seat: fn(Part, u16) -> Seat,
    /// Kinds of parts that all threads of a group run, under a lock for each part. Their seat is where they are told what they
    /// waited for.
    pub(super) shared: &'static [Sharing],
}

/// Parts that threads share.
pub(super) struct Sharing {
    pub(super) group: &'static str,
    pub(super) parts: &'static [Part],
}

impl Staff {
    /// The group of threads that share a kind of part.
    fn sharers(&self, part: Part) -> Option<&'static str> {
        self.shared.iter().find(|sharing| sharing.parts.contains(&part)).map(|sharing| sharing.group)
    }
}

/// A thread and the parts it runs.
struct Thread {
    group: &'static str,
    index: u16,
    slot: Slot<Layer>,
    members: Vec<(Part, AnyStage)>,
}

/// All threads.
struct Crew {
    threads: Vec<Thread>,
}

impl Crew {
    fn reserve(plan: &mut Blueprint, materials: &Materials) -> Self {
        let mut threads = Vec::new();
        for (group, count) in materials.settings.threads.iter() {
            for index in 0..count {
                let place = Place::Core(materials.placement.core(group, index));
                let slot = plan.reserve(group, format!("{group}{index}"), place);
                threads.push(Thread { group, index, slot, members: Vec::new() });
            }
        }
        Crew { threads }
    }

    fn thread(&self, group: &str, index: u16) -> &Thread {
        let found = self.threads.iter().find(|thread| (thread.group, thread.index) == (group, index));
        found.unwrap_or_else(|| panic!("no thread {group}{index} for a part"))
    }

    /// The threads of a group.
    fn group(&self, group: &str) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(move |thread| thread.group == group)
    }

    /// Seats a part on the thread that its slot belongs to.
    fn seat<S: Stage<Firmware> + 'static>(&mut self, slot: Slot<S>, part: Part, stage: S) {
        let thread = self.threads.iter_mut().find(|thread| thread.slot.id() == slot.id());
        thread.expect("slots come from the crew").members.push((part, Box::new(stage)));
    }

    /// Installs the threads: one part as it is, several as a layer.
    fn install(self, drawing: &mut Drawing, materials: &Materials, staff: &Staff, bounds: Bounds) {
        let plan = &mut drawing.blueprint;
        let slots: Vec<(&str, Slot<Layer>)> = self.threads.iter().map(|thread| (thread.group, thread.slot)).collect();
        let (mut guarded, mut own) = (Vec::new(), Vec::new());
        for Thread { group, slot, members, .. } in self.threads {
            let (shared, alone): (Vec<_>, Vec<_>) =
                members.into_iter().partition(|(part, _)| staff.sharers(*part) == Some(group));
            guarded.extend(shared);
            own.push((group, slot, alone));
        }
        // Regions are dealt to the threads round robin; here they stand in their order again.
        let guarded: Vec<(Part, Guarded<AnyStage>)> =
            guarded.into_iter().map(|(part, stage)| (part, Guarded::new(plan.lock(), stage))).collect();
        for Sharing { group: sharers, .. } in staff.shared {
            let among = slots.iter().filter(|(group, _)| group == sharers).map(|&(_, slot)| slot);
            plan.share_locks(&among.collect::<Vec<_>>());
        }
        for (group, slot, mut alone) in own {
            let shared = |part: &Part| staff.sharers(*part) == Some(group);
            let shares = staff.shared.iter().any(|sharing| sharing.group == group);
            assert!(shares || !alone.is_empty(), "a thread of {group} has no part to run: the staff seats none there");
            if alone.len() == 1 && !shares {
                plan.install_boxed(slot, alone.remove(0).1);
                continue;
            }
            let mut members: Vec<Member> =
                alone.into_iter().map(|(part, stage)| Member::new(part, Hold::Own(stage))).collect();
            if shares {
                let guarded = guarded.iter().filter(|(part, _)| shared(part));
                members.extend(guarded.map(|(part, state)| Member::new(*part, Hold::Shared(state.clone()))));
                // What a shared part sends, any of the threads may send.
                for &(_, other) in slots.iter().filter(|(_, other)| other.id() != slot.id()) {
                    let _: Address<()> = plan.connect(slot, other, bounds.page_requests() + bounds.commands);
                }
            }
            plan.install(slot, Layer::new(members, materials.settings, drawing.tables.clone()));
        }
    }
}

/// A device being drawn.
struct Site<'a> {
    drawing: &'a mut Drawing,
    materials: &'a Materials,
    groups: &'a Groups,
    bounds: Bounds,
    crew: Crew,
}

/// The slots of all groups.
struct Groups {
    nvmq: Vec<Slot<Nvmq>>,
    ilock: Vec<Slot<Ilock>>,
    cache: Vec<Slot<Cache>>,
    /// The parts that each NVMQ thread asks: shared ones where the thread with its number runs them.
    near_cache: Vec<Vec<Slot<Cache>>>,
    near_trans: Vec<Vec<Slot<Trans>>>,
    /// Where CACHE is told of its pages: see [`Answers`].
    told: Vec<Slot<Cache>>,
    trans: Vec<Slot<Trans>>,
    log: Vec<Slot<Log>>,
    bgc: Vec<Slot<Bgc>>,
    fcmd: Vec<Slot<Fcmd>>,
    /// Whether several threads run a part.
    shares: bool,
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
    fn of(materials: &Materials, tables: &Tables) -> Self {
        let settings = &materials.settings;
        let planes = materials.drive.geometry().shape().planes_per_die;
        let thread_pages = u32::from(settings.frames);
        let journal = settings.journal.frames(map_groups(&materials.drive));
        Bounds {
            commands: settings.commands.into(),
            thread_pages,
            pages: thread_pages * u32::from(settings.parts.nvmq),
            // Beside its window a BGC thread may have told a TRANS thread that the drive is idle, and for each victim have a fence at
            // each FCMD thread or its erases there; LOG erases groups before it writes pages, and may have as many fences as there
            // are TRANS threads.
            background: u32::from(settings.parts.bgc)
                * (u32::from(settings.reclaim.window) + Bgc::victims(settings, tables) * (planes + 1) + 2)
                + u32::from(settings.parts.log)
                    * (journal.max(journal_groups(&materials.drive) * planes) + u32::from(settings.parts.trans)),
            evictions: settings.cache.spare_frames,
        }
    }
    fn page_requests(&self) -> u32 {
        self.pages + self.background + self.evictions
    }
}

impl Staff {
    /// Draws the device: every part that the settings count, on the thread where this seats it. `prepare` is called once the
    /// tables are laid out.
    pub(super) fn draw(
        &self,
        materials: Materials,
        prepare: &mut dyn FnMut(&mut Tables),
    ) -> Result<Drawing, DrawError> {
        let locks_in_order = self.sharers(Part::Ilock).is_none();
        if materials.settings.lock.forwarding && !locks_in_order {
            return Err(DrawError::NoForwarding);
        }
        let mut plan = Blueprint::default();
        let mut tables = Tables::new(&mut plan.memory, &materials.drive, &materials.settings, 0);
        let Materials { drive, settings, .. } = &materials;
        let own = |trans| (self.owner(trans), needs(drive, settings, &tables, trans));
        check_room(&tables, (0..settings.parts.trans).map(own))?;
        prepare(&mut tables);
        let bounds = Bounds::of(&materials, &tables);
        let deal = self.deal_links(&materials);
        let hardware = Hardware::reserve(&mut plan, &materials.drive, deal, tables.backup.room() > 0);
        let crew = Crew::reserve(&mut plan, &materials);
        let parts = materials.settings.parts;
        let groups = Groups {
            nvmq: self.seats(&crew, Part::Nvmq, parts.nvmq),
            ilock: self.seats(&crew, Part::Ilock, parts.ilock),
            cache: self.seats(&crew, Part::Cache, parts.cache),
            near_cache: self.near(&crew, Part::Cache, parts.cache, parts.nvmq),
            near_trans: self.near(&crew, Part::Trans, parts.trans, parts.nvmq),
            told: self.told(&crew, parts.cache),
            trans: self.seats(&crew, Part::Trans, parts.trans),
            log: self.seats(&crew, Part::Log, parts.log),
            bgc: self.seats(&crew, Part::Bgc, parts.bgc),
            fcmd: self.seats(&crew, Part::Fcmd, parts.fcmd),
            shares: !self.shared.is_empty(),
        };
        let mut drawing = Drawing { blueprint: plan, hardware, tables: Arc::new(tables) };
        let mut frames = FrameDeal { next: 0 };
        let mut site = Site { drawing: &mut drawing, materials: &materials, groups: &groups, bounds, crew };
        site.install_nvmq(&mut frames);
        site.install_ilock(locks_in_order);
        site.install_cache(&mut frames);
        site.install_trans();
        site.install_background(&mut frames);
        site.install_fcmd();
        site.connect_power();
        let Site { crew, .. } = site;
        crew.install(&mut drawing, &materials, self, bounds);
        Ok(drawing)
    }

    /// A link for each thread of the machine that NVMQ lives on, as far as there are two commands for each: of a fused pair the first half
    /// waits for the second in the drive.
    fn deal_links(&self, materials: &Materials) -> LinkDeal {
        let cores = materials.placement.deal(materials.link_threads);
        let home = |index| {
            let Seat { group, index } = (self.seat)(Part::Nvmq, index);
            cores.home(materials.placement.core(group, index))
        };
        let homes: Vec<_> = (0..materials.settings.parts.nvmq).map(home).collect();
        LinkDeal::by_home(&homes, usize::from(materials.settings.commands) / 2)
    }

    /// What a TRANS part is called where it has too little flash.
    fn owner(&self, trans: u16) -> String {
        let Seat { group, index } = (self.seat)(Part::Trans, trans);
        match self.sharers(Part::Trans) {
            None => format!("{group}{index}"),
            Some(_) => format!("region {trans}"),
        }
    }

    /// Every thread that runs CACHE, once for each of its parts.
    fn told(&self, crew: &Crew, count: u16) -> Vec<Slot<Cache>> {
        match self.sharers(Part::Cache) {
            None => self.seats(crew, Part::Cache, count),
            Some(group) => crew.group(group).flat_map(|thread| (0..count).map(|_| thread.slot.part())).collect(),
        }
    }

    /// For each NVMQ thread the places of the parts of a kind that it asks.
    fn near<S>(&self, crew: &Crew, part: Part, count: u16, askers: u16) -> Vec<Vec<Slot<S>>> {
        let Some(group) = self.sharers(part) else { return vec![self.seats(crew, part, count); askers.into()] };
        let sharers: Vec<&Thread> = crew.group(group).collect();
        let near = |asker: u16| sharers[usize::from(asker) % sharers.len()].slot.part();
        (0..askers).map(|asker| vec![near(asker); count.into()]).collect()
    }

    /// The places of the parts of a kind.
    fn seats<S>(&self, crew: &Crew, part: Part, count: u16) -> Vec<Slot<S>> {
        let slot = |index| {
            let Seat { group, index } = (self.seat)(part, index);
            crew.thread(group, index).slot.part()
        };
        (0..count).map(slot).collect()
    }
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

fn connect<In, From: ?Sized, To: Accepts<In> + ?Sized>(
    plan: &mut Blueprint,
    from: Slot<From>,
    to: &[Slot<To>],
    at_most: u32,
) -> Vec<Address<In>> {
    to.iter().map(|&to| plan.connect(from, to, at_most)).collect()
}

fn answers<From>(
    plan: &mut Blueprint,
    from: Slot<From>,
    groups: &Groups,
    bounds: Bounds,
    power: Option<&PowerWatch>,
) -> Answers {
    Answers {
        nvmq: connect(plan, from, &groups.nvmq, bounds.thread_pages + bounds.commands),
        cache: connect(plan, from, &groups.told, bounds.evictions),
        caches: groups.cache.len(),
        bgc: connect(plan, from, &groups.bgc, bounds.background),
        log: connect(plan, from, &groups.log, bounds.background),
        worker: Vec::new(),
        // A fence of each TRANS thread, or the buffer's own answer.
        power: power.map(|power| plan.connect(from, power.slot, groups.trans.len() as u32)),
    }
}

impl Site<'_> {
    fn install_nvmq(&mut self, frames: &mut FrameDeal) {
        let Site { drawing, materials, groups, bounds, crew } = self;
        let bounds = *bounds;
        let plan = &mut drawing.blueprint;
        let Bounds { commands, thread_pages: pages, .. } = bounds;
        let (drive, tables) = (materials.drive.clone(), drawing.tables.clone());
        let common = Arc::new(nvmq::Common::new(drive, materials.settings, drawing.hardware.deal.clone()));
        let mut last: Option<Arc<nvmq::Ways>> = None;
        let Hardware { links, deal, .. } = &mut drawing.hardware;
        let slots: Vec<_> = links.iter().map(|link| link.slot).collect();
        for link in &mut *links {
            (link.fetches, link.transfers) = (vec![None; groups.nvmq.len()], vec![None; groups.nvmq.len()]);
            link.holds = true;
        }
        for (index, &slot) in groups.nvmq.iter().enumerate() {
            let link = &mut links[deal.of_thread(index)];
            let ways = nvmq::Ways {
                link: plan.connect(slot, link.slot, pages + 2 * commands),
                dealt: plan.connect(slot, link.slot, commands),
                posted: connect(plan, slot, &slots, commands),
                takes: connect(plan, slot, &groups.nvmq, commands),
                forwards: connect(plan, slot, &groups.nvmq, commands),
                homes: connect(plan, slot, &groups.nvmq, commands),
                locks: connect(plan, slot, &groups.ilock, 2 * commands),
                skips: connect(plan, slot, &groups.ilock, 2 * commands),
                releases: connect(plan, slot, &groups.ilock, 2 * commands),
                caches: connect(plan, slot, &groups.near_cache[index], pages + commands),
                trans: connect(plan, slot, &groups.near_trans[index], pages),
            };
            link.fetches[index] = Some(plan.connect(link.slot, slot, commands));
            link.transfers[index] = Some(plan.connect(link.slot, slot, pages + 2 * commands));
            // Threads that send to the same places know them from one list.
            let ways = last.take().filter(|last| **last == ways).unwrap_or_else(|| Arc::new(ways));
            last = Some(ways.clone());
            let frames = frames.take(materials.settings.frames.into());
            crew.seat(slot, Part::Nvmq, Nvmq::new(index as u8, common.clone(), tables.clone(), ways, frames));
        }
    }

    fn install_ilock(&mut self, in_order: bool) {
        let Site { drawing, materials, groups, bounds, crew } = self;
        let bounds = *bounds;
        let plan = &mut drawing.blueprint;
        for (index, &slot) in groups.ilock.iter().enumerate() {
            let ways = ilock::Ways {
                nvmq: connect(plan, slot, &groups.nvmq, 2 * bounds.commands),
                joins: connect(plan, slot, &groups.nvmq, 2 * bounds.commands),
                skipped: connect(plan, slot, &groups.nvmq, 2 * bounds.commands),
            };
            let (shape, lock) = (materials.drive.shape(), materials.settings.lock);
            let lock = LockSettings { unit: lock.unit_of(shape.geometry.shape().page), ..lock };
            let ilock = Ilock::new(index as u8, ways, lock, in_order, shape.queues);
            crew.seat(slot, Part::Ilock, ilock);
        }
    }

    fn install_cache(&mut self, frames: &mut FrameDeal) {
        let Site { drawing, materials, groups, bounds, crew } = self;
        let bounds = *bounds;
        let plan = &mut drawing.blueprint;
        let threads = groups.cache.len() as u32;
        for (index, &slot) in groups.cache.iter().enumerate() {
            let trans = connect(plan, slot, &groups.trans, bounds.pages + bounds.evictions);
            let answers = answers(plan, slot, groups, bounds, drawing.hardware.power.as_ref());
            let tables = drawing.tables.clone();
            let entries = frames.take(tables.cache_entries as u32 / threads);
            let spares = frames.take(materials.settings.cache.spare_frames / threads);
            crew.seat(
                slot,
                Part::Cache,
                Cache::new(index as u8, materials.settings, tables, trans, answers, entries, spares),
            );
        }
    }

    fn install_trans(&mut self) {
        let Site { drawing, materials, groups, bounds, crew } = self;
        let bounds = *bounds;
        let plan = &mut drawing.blueprint;
        let victims = reclaims_at_a_time(&materials.settings, &drawing.tables);
        for (index, &slot) in groups.trans.iter().enumerate() {
            let fcmd = connect(plan, slot, &groups.fcmd, bounds.page_requests());
            let answers = answers(plan, slot, groups, bounds, drawing.hardware.power.as_ref());
            let bgc = plan.connect(slot, groups.bgc[index % groups.bgc.len()], victims);
            let ways = trans::Ways { fcmd, answers, bgc, shared: groups.shares };
            let (drive, tables) = (materials.drive.clone(), drawing.tables.clone());
            crew.seat(slot, Part::Trans, Trans::new(index as u8, drive, &materials.settings, tables, ways));
        }
    }

    fn install_background(&mut self, frames: &mut FrameDeal) {
        let Site { drawing, materials, groups, bounds, crew } = self;
        let bounds = *bounds;
        let plan = &mut drawing.blueprint;
        let victims = reclaims_at_a_time(&materials.settings, &drawing.tables);
        for (index, &slot) in groups.bgc.iter().enumerate() {
            let ways = bgc::Ways {
                fcmd: connect(plan, slot, &groups.fcmd, bounds.background),
                trans: connect(plan, slot, &groups.trans, bounds.background),
                // One may be of the background.
                reclaimed: connect(plan, slot, &groups.trans, victims + 1),
            };
            let first = frames.take(materials.settings.reclaim.window.into()).start;
            let (drive, tables) = (materials.drive.clone(), drawing.tables.clone());
            crew.seat(slot, Part::Bgc, Bgc::new(index as u8, drive, materials.settings, tables, ways, first));
        }
        for &slot in &groups.log {
            let ways = log::Ways {
                fcmd: connect(plan, slot, &groups.fcmd, bounds.background),
                trans: connect(plan, slot, &groups.trans, bounds.background),
            };
            let (drive, tables) = (materials.drive.clone(), drawing.tables.clone());
            crew.seat(slot, Part::Log, Log::new(drive, materials.settings, tables, ways));
        }
    }

    fn install_fcmd(&mut self) {
        let Site { drawing, materials, groups, bounds, crew } = self;
        let bounds = *bounds;
        let plan = &mut drawing.blueprint;
        let threads = groups.fcmd.len();
        for (index, &slot) in groups.fcmd.iter().enumerate() {
            let mine = drawing.hardware.channels.iter().copied().skip(index).step_by(threads);
            let channels = mine.map(|channel| plan.connect(slot, channel, bounds.page_requests())).collect();
            let answers = answers(plan, slot, groups, bounds, drawing.hardware.power.as_ref());
            let replacing = connect(plan, slot, &groups.trans, bounds.page_requests());
            let settings = materials.settings;
            let dies = DieLines::new(threads as u16, materials.drive.clone(), settings.flash, channels);
            let ways = fcmd::Ways { answers, replacing };
            let (trans, tables) = (settings.parts.trans, drawing.tables.clone());
            let fcmd = Fcmd::new(index as u8, trans, dies, tables, ways, settings.mutation);
            crew.seat(slot, Part::Fcmd, fcmd);
        }
        for (channel, &from) in drawing.hardware.channels.iter().enumerate() {
            let fcmd = groups.fcmd[channel % threads];
            drawing.hardware.finished.push(plan.connect(from, fcmd, bounds.page_requests()));
        }
    }

    /// What watches the power asks every CACHE thread for a flush and every TRANS thread for a fence.
    fn connect_power(&mut self) {
        let Site { drawing, groups, .. } = self;
        let plan = &mut drawing.blueprint;
        if let Some(watch) = &mut drawing.hardware.power {
            watch.caches = connect(plan, watch.slot, &groups.cache, 1);
            watch.trans = connect(plan, watch.slot, &groups.trans, 1);
            watch.fences = (groups.trans.len() * groups.fcmd.len()) as u32;
        }
    }
}
