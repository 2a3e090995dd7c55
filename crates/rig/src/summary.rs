//! From counters before and after a phase to the summary that people and scripts read.

use crate::build::Device;
use crate::hardware::{PhaseOutcome, Row, Steadiness};
use crate::latency::LatencyParts;
use crate::meter::{Breakdown, Counts, Meter};
use crate::session::Snapshot;
use firmware::architecture::{Architecture, ThreadGroup};
use firmware::{Counter, Firmware, PartCounts, Sums};
use report::{
    BUSIEST_CORE, Bound, BusiestCore, Cache, Cores, Direction, Flash, GarbageCollection, Group, Journal, Locks,
    Lookups, NEAR_FULL, Named, Namespace, Oracle, Room, SteadyState, Summary, WORKERS_HELD, Workers,
};
use sim::{Processor, Sim};
use std::ops::Range;
use std::sync::Arc;
use units::{CoreId, Span};

/// From how busy on one thread may limit a run.
const FULL: f64 = 0.9;

/// It does where it has so many times the work of its group's mean.
const LOPSIDED: f64 = 1.25;

/// Standard deviations, and operations besides, by which the busiest of thousands of dies exceeds their mean where chance deals the work.
const CHANCE: f64 = 4.0;

/// Whether the busiest of several, at least so busy, is much busier than their mean.
fn stands_out(most: f64, mean: f64, full: f64) -> bool {
    most >= full && most > LOPSIDED * mean
}

/// What a run is called by.
pub(crate) struct Labels {
    pub(crate) architecture: &'static dyn Architecture,
    /// Parts that its threads run.
    pub(crate) parts: PartCounts,
    pub(crate) device: String,
    pub(crate) processor: String,
    pub(crate) world: &'static str,
    pub(crate) seed: u64,
    pub(crate) checks: bool,
    /// Blocks of a group: they are erased together.
    pub(crate) planes: u64,
    /// Bytes of a page.
    pub(crate) page: u64,
}

impl Labels {
    /// Of a run on so many threads of this machine.
    pub(crate) fn on_threads(device: &Device, device_name: &str, threads: usize, seed: u64) -> Self {
        let processor = format!("{} on {}", report::of(threads as u64, "thread"), std::env::consts::ARCH);
        Labels::of(device, device_name, processor, "threads", seed)
    }

    pub(crate) fn of(device: &Device, device_name: &str, processor: String, world: &'static str, seed: u64) -> Self {
        let shape = device.drive.geometry.shape();
        Labels {
            architecture: device.architecture,
            parts: device.settings.parts,
            device: device_name.into(),
            processor,
            world,
            seed,
            checks: device.check,
            planes: shape.planes_per_die.into(),
            page: shape.page.0,
        }
    }
}

/// The difference of two snapshots, as shares of the time between them.
struct Between<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    groups: &'static [ThreadGroup],
    parts: &'a [(&'static str, String)],
    /// The core that each part lives on, if any.
    places: &'a [Option<CoreId>],
    processor: &'a Processor,
    /// Of a die.
    planes: u64,
    length: f64,
}

pub(crate) fn summarise(
    labels: &Labels,
    parts: &[(&'static str, String)],
    places: &[Option<CoreId>],
    before: &Snapshot,
    after: &Snapshot,
    outcome: &PhaseOutcome,
    sim: &Sim<Firmware, Meter>,
) -> Summary {
    let (meter, processor) = (sim.probe(), sim.processor());
    let length = (after.at - before.at).secs_f64().max(1e-12);
    let (groups, planes) = (labels.architecture.groups(), labels.planes);
    let between = Between { before, after, groups, parts, places, processor, planes, length };
    let (flash, groups, sums) = (between.flash(), between.groups(), meter.window.breakdown());
    let counts = &meter.window.counts;
    let workers = between.workers(counts);
    let (full, busiest) = between.busiest_core().unzip();
    let seen = as_the_host_saw(labels, outcome, (after.wall - before.wall).as_nanos() as u64);
    let mut summary = Summary {
        cores: Some(Cores { busiest, ..between.cores() }),
        completions: between.completions(&meter.window.completed),
        power_w: between.power(),
        polling_w: between.polling(),
        bounds: Some(between.bounds(seen.iops, (&flash, &groups), workers.as_ref(), full)),
        groups,
        write_amplification: amplification(flash.programs, outcome.tally.directions[1].bytes, labels.page),
        flash: Some(flash),
        workers,
        ..seen
    };
    add_sums(&mut summary, labels, &counts.sums);
    summary.room = Room { owners: labels.parts.trans, parts: meter.latency.of_room() };
    summary.waits = labels.architecture.latency_parts().iter().map(|part| (part.name, part.wait)).collect();
    if let Some(locks) = &mut summary.locks {
        locks.line_mean = mean(counts.lock_line, counts.lock_turns);
        locks.turn_mean = mean(counts.lock_turn, counts.lock_turns);
    }
    summary.breakdown = breakdown(&sums, summary.latency_mean(), &meter.latency);
    summary.breakdown_queueing = lines(&sums, &meter.latency);
    summary.breakdown_slowest = breakdown(&meter.slowest(100), None, &meter.latency);
    summary
}

/// What the host's end of the link knows of a phase, in either world.
pub(crate) fn as_the_host_saw(labels: &Labels, outcome: &PhaseOutcome, wall_ns: u64) -> Summary {
    let window = outcome.results.window();
    let seconds = window.secs_f64().max(1e-12);
    let mut classes = Named::default();
    for (class, row) in &outcome.tally.classes {
        classes.set(class.word(), direction(row, seconds));
    }
    let namespaces = outcome.tally.namespaces.iter().map(|(namespace, rows)| {
        let [read, write, other] = rows.each_ref().map(|row| direction(row, seconds));
        ((namespace + 1).to_string(), Namespace { read, write, other })
    });
    Summary {
        workload: Some(outcome.results.name.clone()),
        wall_ns,
        rounded: outcome.rounded,
        unsent: outcome.refused,
        queue_depth_mean: outcome.results.queue_depth(),
        behind_ns: outcome.behind.map(Span::nanos),
        arrivals_per_s: outcome.arrivals_per_second,
        steady_state: outcome.steadiness.as_ref().map(steady_state),
        data: labels.checks.then_some(Oracle { checked: outcome.sectors_checked, mismatches: outcome.mismatches }),
        classes,
        namespaces: namespaces.collect(),
        ..of_commands(labels, &outcome.tally.directions, window)
    }
}

/// What reads, writes and other commands come to that were counted in so long.
pub(crate) fn of_commands(labels: &Labels, directions: &[Row; 3], window: Span) -> Summary {
    let seconds = window.secs_f64().max(1e-12);
    let [read, write, other] = directions.each_ref().map(|row| direction(row, seconds));
    let ios = read.ios + write.ios + other.ios;
    Summary {
        version: env!("CARGO_PKG_VERSION").into(),
        architecture: labels.architecture.name().into(),
        device: labels.device.clone(),
        processor: labels.processor.clone(),
        world: labels.world.into(),
        seed: labels.seed,
        simulated_ns: window.nanos(),
        ios,
        iops: ios as f64 / seconds,
        bandwidth: read.bandwidth + write.bandwidth + other.bandwidth,
        read,
        write,
        other,
        ..Summary::default()
    }
}

fn steady_state(steadiness: &Steadiness) -> SteadyState {
    let window = steadiness.window;
    SteadyState {
        reached: window.is_some_and(|window| window.is_steady()),
        rounds: steadiness.iops.len() as u64,
        from_ns: Some(steadiness.before.nanos()),
        iops: steadiness.iops.clone(),
        excursion: window.map(|window| window.excursion),
        rise: window.map(|window| window.rise),
    }
}

fn direction(row: &Row, seconds: f64) -> Direction {
    Direction {
        ios: row.ios,
        iops: row.ios as f64 / seconds,
        bandwidth: row.bytes as f64 / seconds,
        latency: row.latency.latency(),
        recorded: (row.ios > 0).then(|| Arc::new(row.latency.clone())),
    }
}

/// Mean parts of a latency, of those that there are. What a request waits in the host, or for its other commands, is the part that its
/// last command does not have.
fn breakdown(sums: &Breakdown, latency: Option<f64>, parts: &LatencyParts) -> Named<f64> {
    let counted: u128 = parts.iter().map(|(place, _)| sums.parts[place]).sum();
    assert_eq!(counted, sums.parts.iter().sum(), "no time goes to a part that the architecture does not have");
    let commands = sums.commands.max(1) as f64;
    let mut named = Named::default();
    let mut sum = 0.0;
    for (place, name) in parts.iter() {
        let mean = sums.parts[place] as f64 / commands / 1e3;
        sum += mean;
        named.set(name, mean);
    }
    let host = latency.unwrap_or(0.0) - sum;
    if host > sum * 1e-6 {
        named.set("host", host);
    }
    named
}

/// Where the time of a sample of the requests went, as shares of what all took on average.
pub(crate) fn add_sampled(summary: &mut Summary, labels: &Labels, sampled: &Breakdown) {
    let (Some(latency), 1..) = (summary.latency_mean(), sampled.commands) else { return };
    let parts = LatencyParts::of(labels.architecture, labels.parts);
    let times = breakdown(sampled, Some(sampled.latency as f64 / sampled.commands as f64 / 1e3), &parts);
    // A host that looks at its clock less often than turns that are followed sees a request end a little before the last of them.
    let sum: f64 = times.iter().map(|(_, time)| time).sum();
    let scaled = |times: Named<f64>| times.iter().map(|(name, time)| (name, time * latency / sum)).collect();
    summary.breakdown = scaled(times);
    summary.breakdown_queueing = scaled(lines(sampled, &parts));
    summary.breakdown_of = Some(sampled.commands);
}

/// Mean time in line before firmware threads, by the part whose thread it was.
fn lines(sums: &Breakdown, parts: &LatencyParts) -> Named<f64> {
    let commands = sums.commands.max(1) as f64;
    let totals = parts.iter().map(|(place, name)| (name, sums.lines[place])).filter(|(_, total)| *total > 0);
    totals.map(|(name, total)| (name, total as f64 / commands / 1e3)).collect()
}

/// What the firmware's notes come to, of the parts that it has.
pub(crate) fn add_sums(summary: &mut Summary, labels: &Labels, sums: &Sums) {
    let get = |counter| sums.get(counter);
    let lookups = |hits, misses| Lookups { hits: get(hits), misses: get(misses) };
    summary.cache = (labels.parts.cache > 0).then(|| Cache {
        bypasses: get(Counter::Bypasses),
        evictions: get(Counter::Evictions),
        ..Cache::of(lookups(Counter::ReadHits, Counter::ReadMisses), lookups(Counter::WriteHits, Counter::WriteMisses))
    });
    summary.locks = labels.architecture.has_locks().then(|| Locks {
        acquires: get(Counter::Locks),
        waits: get(Counter::LockWaits),
        wait_mean: mean(sums.span(Counter::LockWaitTime), get(Counter::LockWaits)),
        inquiry_mean: mean(sums.span(Counter::InquiryTime), get(Counter::Inquiries)),
        stalled_mean: Some(sums.span(Counter::StoodStill).nanos() as f64 / summary.simulated_ns.max(1) as f64)
            .filter(|&threads| threads > 0.0),
        line_mean: None,
        turn_mean: None,
    });
    summary.gc = Some(GarbageCollection {
        blocks: get(Counter::Reclaims) * labels.planes,
        pages_moved: get(Counter::PagesMoved),
        foreground_ns: sums.span(Counter::ForegroundTime).nanos(),
    });
    summary.journal = (labels.parts.log > 0).then(|| Journal {
        checkpoints: get(Counter::Checkpoints),
        pages: get(Counter::JournalPages),
        ..Journal::default()
    });
}

/// A mean in nanoseconds, of anything at all.
fn mean(time: Span, count: u64) -> Option<f64> {
    (count > 0).then(|| time.nanos_f64() / count as f64)
}

/// Pages programmed for each page's worth of the bytes that the host had written in the same time.
pub(crate) fn amplification(programs: u64, written: u64, page: u64) -> Option<f64> {
    let written = written as f64 / page as f64;
    (written > 0.0).then(|| programs as f64 / written)
}

impl Between<'_> {
    /// Share of its time that a die is taken, averaged: while its page goes over the bus it cannot work on another, unless by cache
    /// commands, and what these let go on at once counts once.
    fn dies(&self) -> f64 {
        self.share_of_dies(|usage| usage.die_held.iter().copied().sum())
    }

    /// What channels count of the time of all their dies, as a share of it.
    fn share_of_dies(&self, of: impl Fn(&flash::Usage) -> Span) -> f64 {
        let pairs = self.before.channels.iter().zip(&self.after.channels);
        let spent: Span = pairs.map(|(before, after)| of(after).saturating_sub(of(before))).sum();
        let dies = self.after.channels.iter().map(|channel| channel.die_held.len()).sum::<usize>().max(1);
        (spent.secs_f64() / self.length / dies as f64).min(1.0)
    }

    /// The share of its time that the busiest die is taken, where it is nearly full and has more to do than chance brings to one of many:
    /// in a short run a few operations fill a die that the next requests would pass by.
    fn busiest_die(&self, mean: f64) -> Option<f64> {
        let pairs = self.before.channels.iter().zip(&self.after.channels);
        let each = pairs.flat_map(|(before, after)| {
            before.die_held.iter().zip(&after.die_held).map(|(&before, &after)| after.saturating_sub(before))
        });
        let most = (each.max()?.secs_f64() / self.length).min(1.0);
        let dies = self.after.channels.iter().map(|channel| channel.die_held.len()).sum::<usize>() as f64;
        let operations = self.count(|usage| usage.transactions) as f64 / dies;
        let excess = operations * (most / mean - 1.0);
        (stands_out(most, mean, NEAR_FULL) && excess > CHANCE * (operations.sqrt() + 1.0)).then_some(most)
    }

    fn has(&self, group: &str) -> bool {
        self.parts.iter().any(|(of, _)| *of == group)
    }

    /// Stages of a group, by index.
    fn members(&self, group: &str) -> impl Iterator<Item = usize> {
        self.parts.iter().enumerate().filter(move |(_, (of, _))| *of == group).map(|(index, _)| index)
    }

    fn busy(&self, stage: usize) -> f64 {
        let busy = self.after.stages[stage].busy.saturating_sub(self.before.stages[stage].busy);
        (busy.secs_f64() / self.length).min(1.0)
    }

    fn groups(&self) -> Named<Group> {
        let mut named = Named::default();
        for group in self.groups.iter().map(|group| group.name).filter(|group| self.has(group)) {
            let threads = self.members(group).count();
            let utilisation = self.members(group).map(|stage| self.busy(stage)).sum::<f64>() / threads as f64;
            let turns = |at: &Snapshot| self.members(group).map(|stage| at.stages[stage].turns).sum::<u64>();
            let messages = turns(self.after) - turns(self.before);
            let energy_j = self.energy_of(group);
            named.set(group, Group { threads: threads as u32, utilisation, messages, energy_j });
        }
        named
    }

    fn workers(&self, counts: &Counts) -> Option<Workers> {
        let threads = self.members("worker").count();
        (threads > 0).then(|| {
            let whole = u128::from((self.after.at - self.before.at).picos()) * threads as u128;
            let share = |picos: u128| picos as f64 / whole.max(1) as f64;
            let [lock_wait, room_wait, flash_wait, link_wait, idle] = counts.waits.map(share);
            // From the end of a turn to the beginning of the next a worker waits, if only for its core.
            let waited: u128 = counts.waits.into_iter().sum();
            assert!(waited <= whole, "{threads} workers waited for {waited} ps in {whole}");
            let work = share(whole - waited);
            Workers { work, lock_wait, room_wait, flash_wait, link_wait, idle }
        })
    }

    fn completions(&self, completed: &[u64]) -> Named<Vec<u64>> {
        let mut named = Named::default();
        for (group, _) in self.parts {
            let of_group: Vec<u64> = self.members(group).map(|stage| completed[stage]).collect();
            if of_group.iter().any(|&count| count > 0) {
                named.set(*group, of_group);
            }
        }
        named
    }

    /// Joules of what the threads of a group did, without the power of their cores.
    fn energy_of(&self, group: &str) -> Option<f64> {
        let prices = self.processor.energy?;
        let joules = self.members(group).map(|stage| {
            let (before, after) = (&self.before.stages[stage], &self.after.stages[stage]);
            let moved = after.transfers + after.sent_away - before.transfers - before.sent_away;
            (after.slots - before.slots) as f64 * prices.instruction
                + moved as f64 * prices.transfer
                + (after.fetches - before.fetches) as f64 * prices.memory
        });
        Some(joules.sum())
    }

    /// Watts of the whole processor: what its threads did, what they polled, and its cores in use and shared parts whatever they did.
    fn power(&self) -> Option<f64> {
        let prices = self.processor.energy?;
        let done: f64 = self.groups.iter().filter_map(|group| self.energy_of(group.name)).sum();
        Some(done / self.length + self.polling()? + self.cores_in_use().count() as f64 * prices.core + prices.base)
    }

    /// Watts of hardware threads that found no message and looked again.
    fn polling(&self) -> Option<f64> {
        let polled = |at: &Snapshot| at.cores.iter().map(|core| core.polled).sum::<u64>();
        Some((polled(self.after) - polled(self.before)) as f64 * self.processor.energy?.instruction / self.length)
    }

    /// The cores that a thread lives on: a placement may leave others empty below the highest of them.
    fn cores_in_use(&self) -> impl Iterator<Item = usize> {
        self.after.cores.iter().enumerate().filter(|(_, core)| core.threads > 0).map(|(at, _)| at)
    }

    fn cores(&self) -> Cores {
        let share = |at: usize| {
            let active = self.after.cores[at].active.saturating_sub(self.before.cores[at].active);
            (active.secs_f64() / self.length).min(1.0)
        };
        let utilisation: Vec<f64> = self.cores_in_use().map(share).collect();
        Cores { count: utilisation.len() as u32, active_mean: utilisation.iter().sum(), utilisation, busiest: None }
    }

    /// The share of the time that hardware threads on which firmware lives had a turn under way, their mean.
    fn threads_active(&self) -> f64 {
        self.threads_active_of(0..self.after.cores.len())
    }

    /// The same of some cores.
    fn threads_active_of(&self, cores: Range<usize>) -> f64 {
        let active = |at: &Snapshot| at.cores[cores.clone()].iter().map(|core| core.threads_active).sum::<Span>();
        let threads: u32 = self.after.cores[cores.clone()].iter().map(|core| core.threads).sum();
        let active = active(self.after).saturating_sub(active(self.before)).secs_f64();
        (active / self.length / f64::from(threads.max(1))).min(1.0)
    }

    /// The core whose hardware threads have turns most of their time, if it is full and others are not, and how much of it. Only one where
    /// more firmware threads live than it has of these: turns wait in line for them there. Elsewhere each firmware thread has its own,
    /// and is itself what is full. Its issue slots are no other resource: a turn that waits for them is under way.
    fn busiest_core(&self) -> Option<(f64, BusiestCore)> {
        let shared =
            self.cores_in_use().filter(|&core| self.on(core).count() > self.after.cores[core].threads as usize);
        let each = shared.map(|core| (core, self.threads_active_of(core..core + 1)));
        let (core, most) = each.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        stands_out(most, self.threads_active(), FULL).then(|| {
            let mut groups: Named<f64> = Named::default();
            for stage in self.on(core) {
                groups.add(self.parts[stage].0, self.busy(stage) / f64::from(self.after.cores[core].threads));
            }
            (most, BusiestCore { core: core as u32, groups })
        })
    }

    /// Stages that live on a core, by index.
    fn on(&self, core: usize) -> impl Iterator<Item = usize> {
        let here = move |place: &Option<CoreId>| place.is_some_and(|place| usize::from(place.0) == core);
        self.places.iter().enumerate().filter(move |(_, place)| here(place)).map(|(index, _)| index)
    }

    /// What channels count, of all of them.
    fn count(&self, of: impl Fn(&flash::Usage) -> u64) -> u64 {
        self.before.channels.iter().zip(&self.after.channels).map(|(before, after)| of(after) - of(before)).sum()
    }

    fn flash(&self) -> Flash {
        let pairs = || self.before.channels.iter().zip(&self.after.channels);
        let share = |busy: Span| (busy.secs_f64() / self.length).min(1.0);
        let dies: Vec<f64> = pairs()
            .flat_map(|(before, after)| before.die_busy.iter().zip(&after.die_busy))
            .map(|(&before, &after)| share(after.saturating_sub(before)))
            .collect();
        let count = |of: fn(&flash::Usage) -> u64| self.count(of);
        let (reads, programs) = (count(|usage| usage.pages_read), count(|usage| usage.pages_programmed));
        let (erases, operations) = (count(|usage| usage.blocks_erased), count(|usage| usage.transactions));
        let pages = reads + programs + erases;
        let some = |of| Some(count(of)).filter(|&count| count > 0);
        Flash {
            reads,
            programs,
            erases,
            multi_plane_operations: some(|usage| usage.multi_plane),
            cached_operations: some(|usage| usage.cached),
            suspensions: some(|usage| usage.suspends),
            pages_per_operation: (pages < operations * self.planes).then(|| pages as f64 / operations as f64),
            channel_utilisation: pairs()
                .map(|(before, after)| share(after.bus_busy.saturating_sub(before.bus_busy)))
                .collect(),
            die_utilisation_mean: Some(dies.iter().sum::<f64>() / dies.len().max(1) as f64),
            die_taken_mean: Some(self.share_of_dies(|usage| usage.dies_taken)),
            die_command_wait_mean: Some(self.share_of_dies(|usage| usage.commands_waited)),
        }
    }

    /// What each resource alone would allow. Work can move between the threads of a group and between cores only as their
    /// split and placement let it, so the busiest channel counts for the buses, and means for the rest.
    fn bounds(
        &self,
        iops: f64,
        (flash, groups): (&Flash, &Named<Group>),
        workers: Option<&Workers>,
        core: Option<f64>,
    ) -> Vec<Bound> {
        let busiest = flash.channel_utilisation.iter().copied().fold(0.0, f64::max);
        let buses = flash.channel_utilisation.iter().sum::<f64>() / flash.channel_utilisation.len().max(1) as f64;
        let dies = self.dies();
        let link = |of: fn(&crate::hardware::LinkUsage) -> Span| {
            // The link is booked ahead: what the last commands booked may be more than the first ones had left.
            (of(&self.after.link).saturating_sub(of(&self.before.link)).secs_f64() / self.length).min(1.0)
        };
        let slots = |at: &Snapshot| at.cores.iter().map(|core| core.slots).sum::<u64>();
        let capacity = self.length / self.processor.core_slot.secs_f64() * self.cores_in_use().count().max(1) as f64;
        let issued = (slots(self.after) - slots(self.before)) as f64 / capacity;
        let mut resources = Vec::new();
        if stands_out(busiest, buses, NEAR_FULL) {
            resources.push(("busiest flash bus".to_string(), busiest));
        }
        resources.extend(self.busiest_die(dies).map(|most| ("busiest flash die".to_string(), most)));
        resources.extend([
            ("flash buses".to_string(), busiest),
            ("flash dies".to_string(), dies),
            ("host link".to_string(), link(|usage| usage.to_host).max(link(|usage| usage.from_host))),
            ("core issue slots".to_string(), issued.min(1.0)),
            ("hardware threads".to_string(), self.threads_active()),
        ]);
        for (name, group) in groups.iter() {
            resources.push((format!("{} threads", name.to_uppercase()), group.utilisation));
            // A thread that does what no other of its group can, as the home of the only queue does.
            let most = self.members(name).map(|stage| self.busy(stage)).fold(0.0, f64::max);
            if stands_out(most, group.utilisation, FULL) {
                resources.push((format!("busiest {} thread", name.to_uppercase()), most));
            }
        }
        resources.extend(core.map(|most| (BUSIEST_CORE.to_string(), most)));
        // A worker that waits has its command all the same, and takes no other.
        resources.extend(workers.map(|workers| (WORKERS_HELD.to_string(), 1.0 - workers.idle)));
        report::bounds(iops, &resources)
    }
}
