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
use crate::{Blueprint, Drive, Firmware, LockSettings, PowerPort, Tables};
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
    drawing: Drawing,
    materials: &'a Materials,
    groups: &'a Groups,
    bounds: Bounds,
    crew: Crew,
    /// The next frame of the pool to be dealt.
    frame: u32,
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
        let mut plan = materials.plan();
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
        let drawing = Drawing { blueprint: plan, hardware, tables: Arc::new(tables) };
        let mut site = Site { drawing, materials: &materials, groups: &groups, bounds, crew, frame: 0 };
        site.install_nvmq();
        site.install_ilock(locks_in_order);
        site.install_cache();
        site.install_trans();
        site.install_background();
        site.install_fcmd();
        site.connect_power();
        let Site { crew, mut drawing, .. } = site;
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

impl Site<'_> {
    /// The next frames of the pool.
    fn frames(&mut self, count: u32) -> std::ops::Range<u32> {
        let first = self.frame;
        self.frame += count;
        first..self.frame
    }

    fn connect<In, From: ?Sized, To: Accepts<In> + ?Sized>(
        &mut self,
        from: Slot<From>,
        to: Slot<To>,
        at_most: u32,
    ) -> Address<In> {
        self.drawing.blueprint.connect(from, to, at_most)
    }

    fn connect_each<In, From: ?Sized, To: Accepts<In> + ?Sized>(
        &mut self,
        from: Slot<From>,
        to: &[Slot<To>],
        at_most: u32,
    ) -> Vec<Address<In>> {
        to.iter().map(|&to| self.connect(from, to, at_most)).collect()
    }

    fn answers<From>(&mut self, from: Slot<From>) -> Answers {
        let Site { groups, bounds, .. } = *self;
        Answers {
            nvmq: self.connect_each(from, &groups.nvmq, bounds.thread_pages + bounds.commands),
            cache: self.connect_each(from, &groups.told, bounds.evictions),
            caches: groups.cache.len(),
            bgc: self.connect_each(from, &groups.bgc, bounds.background),
            log: self.connect_each(from, &groups.log, bounds.background),
            worker: Vec::new(),
            // A fence of each TRANS thread, or the buffer's own answer.
            power: self.power().map(|power| self.connect(from, power, groups.trans.len() as u32)),
        }
    }

    /// Where what watches the power is, where anything does.
    fn power(&self) -> Option<Slot<dyn PowerPort>> {
        self.drawing.hardware.power.as_ref().map(|power| power.slot)
    }

    /// What every part has a hold of.
    fn shared(&self) -> (Arc<Drive>, Arc<Tables>) {
        (self.materials.drive.clone(), self.drawing.tables.clone())
    }

    fn install_nvmq(&mut self) {
        let Site { materials, groups, bounds: Bounds { commands, thread_pages: pages, .. }, .. } = *self;
        let (drive, tables) = self.shared();
        let deal = self.drawing.hardware.deal.clone();
        let common = Arc::new(nvmq::Common::new(drive, materials.settings, deal.clone()));
        let mut last: Option<Arc<nvmq::Ways>> = None;
        for link in &mut self.drawing.hardware.links {
            (link.fetches, link.transfers) = (vec![None; groups.nvmq.len()], vec![None; groups.nvmq.len()]);
            link.holds = true;
        }
        let links: Vec<_> = self.drawing.hardware.links.iter().map(|link| link.slot).collect();
        for (index, &slot) in groups.nvmq.iter().enumerate() {
            let link = links[deal.of_thread(index)];
            let ways = nvmq::Ways {
                link: self.connect(slot, link, pages + 2 * commands),
                dealt: self.connect(slot, link, commands),
                posted: self.connect_each(slot, &links, commands),
                takes: self.connect_each(slot, &groups.nvmq, commands),
                forwards: self.connect_each(slot, &groups.nvmq, commands),
                homes: self.connect_each(slot, &groups.nvmq, commands),
                locks: self.connect_each(slot, &groups.ilock, 2 * commands),
                skips: self.connect_each(slot, &groups.ilock, 2 * commands),
                releases: self.connect_each(slot, &groups.ilock, 2 * commands),
                caches: self.connect_each(slot, &groups.near_cache[index], pages + commands),
                trans: self.connect_each(slot, &groups.near_trans[index], pages),
            };
            let (fetches, transfers) =
                (self.connect(link, slot, commands), self.connect(link, slot, pages + 2 * commands));
            let link = &mut self.drawing.hardware.links[deal.of_thread(index)];
            (link.fetches[index], link.transfers[index]) = (Some(fetches), Some(transfers));
            // Threads that send to the same places know them from one list.
            let ways = last.take().filter(|last| **last == ways).unwrap_or_else(|| Arc::new(ways));
            last = Some(ways.clone());
            let frames = self.frames(materials.settings.frames.into());
            self.crew.seat(slot, Part::Nvmq, Nvmq::new(index as u8, common.clone(), tables.clone(), ways, frames));
        }
    }

    fn install_ilock(&mut self, in_order: bool) {
        let Site { materials, groups, bounds: Bounds { commands, .. }, .. } = *self;
        let (shape, lock) = (materials.drive.shape(), materials.settings.lock);
        let lock = LockSettings { unit: lock.unit_of(shape.geometry.shape().page), ..lock };
        for (index, &slot) in groups.ilock.iter().enumerate() {
            let ways = ilock::Ways {
                nvmq: self.connect_each(slot, &groups.nvmq, 2 * commands),
                joins: self.connect_each(slot, &groups.nvmq, 2 * commands),
                skipped: self.connect_each(slot, &groups.nvmq, 2 * commands),
            };
            self.crew.seat(slot, Part::Ilock, Ilock::new(index as u8, ways, lock, in_order, shape.queues));
        }
    }

    fn install_cache(&mut self) {
        let Site { materials: Materials { settings, .. }, groups, bounds, .. } = *self;
        let (_, tables) = self.shared();
        let threads = groups.cache.len() as u32;
        for (index, &slot) in groups.cache.iter().enumerate() {
            let trans = self.connect_each(slot, &groups.trans, bounds.pages + bounds.evictions);
            let answers = self.answers(slot);
            let entries = self.frames(tables.cache_entries as u32 / threads);
            let spares = self.frames(settings.cache.spare_frames / threads);
            let cache = Cache::new(index as u8, *settings, tables.clone(), trans, answers, entries, spares);
            self.crew.seat(slot, Part::Cache, cache);
        }
    }

    fn install_trans(&mut self) {
        let Site { materials: Materials { settings, .. }, groups, bounds, .. } = *self;
        let victims = reclaims_at_a_time(settings, &self.drawing.tables);
        for (index, &slot) in groups.trans.iter().enumerate() {
            let fcmd = self.connect_each(slot, &groups.fcmd, bounds.page_requests());
            let answers = self.answers(slot);
            let bgc = self.connect(slot, groups.bgc[index % groups.bgc.len()], victims);
            let ways = trans::Ways { fcmd, answers, bgc, shared: groups.shares };
            let (drive, tables) = self.shared();
            self.crew.seat(slot, Part::Trans, Trans::new(index as u8, drive, settings, tables, ways));
        }
    }

    fn install_background(&mut self) {
        let Site { materials: &Materials { settings, .. }, groups, bounds: Bounds { background, .. }, .. } = *self;
        let victims = reclaims_at_a_time(&settings, &self.drawing.tables);
        for (index, &slot) in groups.bgc.iter().enumerate() {
            let ways = bgc::Ways {
                fcmd: self.connect_each(slot, &groups.fcmd, background),
                trans: self.connect_each(slot, &groups.trans, background),
                // One may be of the background.
                reclaimed: self.connect_each(slot, &groups.trans, victims + 1),
            };
            let first = self.frames(settings.reclaim.window.into()).start;
            let (drive, tables) = self.shared();
            self.crew.seat(slot, Part::Bgc, Bgc::new(index as u8, drive, settings, tables, ways, first));
        }
        for &slot in &groups.log {
            let ways = log::Ways {
                fcmd: self.connect_each(slot, &groups.fcmd, background),
                trans: self.connect_each(slot, &groups.trans, background),
            };
            let (drive, tables) = self.shared();
            self.crew.seat(slot, Part::Log, Log::new(drive, settings, tables, ways));
        }
    }

    fn install_fcmd(&mut self) {
        let Site { materials: &Materials { settings, .. }, groups, bounds, .. } = *self;
        let threads = groups.fcmd.len();
        let channels = self.drawing.hardware.channels.clone();
        for (index, &slot) in groups.fcmd.iter().enumerate() {
            let mine: Vec<_> = channels.iter().copied().skip(index).step_by(threads).collect();
            let channels = self.connect_each(slot, &mine, bounds.page_requests());
            let answers = self.answers(slot);
            let replacing = self.connect_each(slot, &groups.trans, bounds.page_requests());
            let (drive, tables) = self.shared();
            let dies = DieLines::new(threads as u16, drive, settings.flash, channels);
            let ways = fcmd::Ways { answers, replacing };
            let fcmd = Fcmd::new(index as u8, settings.parts.trans, dies, tables, ways, settings.mutation);
            self.crew.seat(slot, Part::Fcmd, fcmd);
        }
        for (channel, &from) in channels.iter().enumerate() {
            let finished = self.connect(from, groups.fcmd[channel % threads], bounds.page_requests());
            self.drawing.hardware.finished.push(finished);
        }
    }

    /// What watches the power asks every CACHE thread for a flush and every TRANS thread for a fence.
    fn connect_power(&mut self) {
        let Some(power) = self.power() else { return };
        let Site { groups, .. } = *self;
        let caches = self.connect_each(power, &groups.cache, 1);
        let trans = self.connect_each(power, &groups.trans, 1);
        let fences = (groups.trans.len() * groups.fcmd.len()) as u32;
        self.drawing.hardware.power = Some(PowerWatch { slot: power, caches, trans, fences });
    }
}
