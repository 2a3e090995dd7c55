//! A run of several phases as one.

mod flash_array;
#[cfg(test)]
mod tests;

use crate::{
    BUSIEST_CORE, Bound, BusiestCore, Cache, Cores, Direction, GarbageCollection, Group, Histogram, Journal, Locks,
    Lookups, MachineThread, Media, Named, Namespace, Oracle, SteadyState, Summary, Workers, bounds,
};

/// The phases with the share of time that each took.
struct Shares<'a> {
    phases: Vec<(f64, &'a Summary)>,
    pages: FlashPages,
}

/// Pages of flash.
#[derive(Clone, Copy, Debug)]
pub struct FlashPages {
    /// Bytes of each.
    pub bytes: u64,
    /// How many a die can work on at once.
    pub planes: u32,
}

/// Phases of a run as one: sums of counts, means over time, each direction over the phases that had it. What is the drive's, or counted
/// from the beginning of the run, is the last phase's.
pub fn combined(phases: &[Summary], pages: FlashPages) -> Summary {
    let total: u64 = phases.iter().map(|phase| phase.simulated_ns).sum();
    let seconds = (total as f64 / 1e9).max(1e-12);
    let share = |phase: &Summary| phase.simulated_ns as f64 / 1e9 / seconds;
    let shares = Shares { phases: phases.iter().map(|phase| (share(phase), phase)).collect(), pages };
    let last = phases.last().cloned().unwrap_or_default();
    let ios = shares.count(|phase| phase.ios);
    let names: Vec<&str> = phases.iter().filter_map(|phase| phase.workload.as_deref()).collect();
    // Field by field, so that none is the last phase's by oversight.
    Summary {
        version: last.version,
        architecture: last.architecture,
        device: last.device,
        processor: last.processor,
        world: last.world,
        workload: Some(names.join(", ")),
        trace: last.trace,
        seed: last.seed,
        set: last.set,
        simulated_ns: total,
        wall_ns: shares.count(|phase| phase.wall_ns),
        ios,
        iops: ios as f64 / seconds,
        bandwidth: shares.mean(|phase| phase.bandwidth),
        read: shares.direction(|phase| Some(&phase.read)),
        write: shares.direction(|phase| Some(&phase.write)),
        other: shares.direction(|phase| Some(&phase.other)),
        classes: shares.classes(),
        namespaces: shares.namespaces(),
        queue_depth_mean: shares.mean(|phase| phase.queue_depth_mean),
        arrivals_per_s: last.arrivals_per_s.and_then(|_| shares.arrivals()),
        behind_ns: phases.iter().filter_map(|phase| phase.behind_ns).max(),
        breakdown: shares.breakdown(|phase| &phase.breakdown),
        breakdown_queueing: shares.breakdown(|phase| &phase.breakdown_queueing),
        breakdown_of: last.breakdown_of.map(|_| shares.count(|phase| phase.breakdown_of.unwrap_or(0))),
        // Which requests were the slowest of all, the phases do not say.
        breakdown_slowest: Named::default(),
        groups: shares.groups(|phase| &phase.groups),
        hardware: shares.groups(|phase| &phase.hardware),
        machine_threads: shares.machine_threads(),
        workers: last.workers.map(|_| shares.workers()),
        completions: completions(phases),
        cores: last.cores.as_ref().map(|_| shares.cores()),
        power_w: last.power_w.map(|_| shares.mean(|phase| phase.power_w.unwrap_or(0.0))),
        polling_w: last.polling_w.map(|_| shares.mean(|phase| phase.polling_w.unwrap_or(0.0))),
        bounds: last.bounds.map(|_| shares.bounds(ios as f64 / seconds)),
        cache: last.cache.as_ref().map(|_| shares.cache()),
        locks: last.locks.as_ref().map(|_| shares.locks()),
        flash: last.flash.as_ref().map(|_| shares.flash()),
        write_amplification: shares.amplification(),
        gc: last.gc.as_ref().map(|_| shares.gc()),
        journal: shares.journal(last.journal.as_ref()),
        media: shares.media(last.media.as_ref()),
        // Intervals are counted from the beginning of their phase.
        samples: Vec::new(),
        samples_cut: false,
        room: last.room,
        waits: last.waits,
        steady_state: last.steady_state.as_ref().map(|_| shares.steady_state()),
        // These are counted from the run's beginning, or are the drive's: the last phase has them all.
        digest: last.digest,
        rounded: last.rounded,
        unsent: last.unsent,
        wear: last.wear,
        space: last.space,
        data: shares.data(),
    }
}

/// Commands by group and thread, summed.
fn completions(phases: &[Summary]) -> Named<Vec<u64>> {
    let mut sums: Named<Vec<u64>> = Named::default();
    for (group, threads) in phases.iter().flat_map(|phase| phase.completions.iter()) {
        let before = sums.get(group).cloned().unwrap_or_default();
        let before = before.into_iter().chain(std::iter::repeat(0));
        sums.set(group, threads.iter().zip(before).map(|(count, before)| count + before).collect());
    }
    sums
}

impl Shares<'_> {
    /// A second of all time, where requests come at their own times in all of it.
    fn arrivals(&self) -> Option<f64> {
        self.phases.iter().map(|(share, phase)| Some(share * phase.arrivals_per_s?)).sum()
    }

    fn journal(&self, last: Option<&Journal>) -> Option<Journal> {
        let count = |of: fn(&Journal) -> u64| self.count(|phase| phase.journal.as_ref().map_or(0, of));
        last.map(|last| Journal {
            // Like the wear of the drive, counted from its first day.
            erase_count_min: last.erase_count_min,
            erase_count_max: last.erase_count_max,
            checkpoints: count(|journal| journal.checkpoints),
            pages: count(|journal| journal.pages),
        })
    }

    fn count(&self, of: impl Fn(&Summary) -> u64) -> u64 {
        self.phases.iter().map(|(_, phase)| of(phase)).sum()
    }

    /// What was counted in each phase, and the blocks that are bad after the last.
    fn media(&self, last: Option<&Media>) -> Option<Media> {
        let count = |of: fn(&Media) -> u64| self.count(|phase| phase.media.as_ref().map_or(0, of));
        last.map(|last| Media {
            bit_errors: count(|media| media.bit_errors),
            corrected: count(|media| media.corrected),
            retries: count(|media| media.retries),
            uncorrectable: count(|media| media.uncorrectable),
            failed_operations: count(|media| media.failed_operations),
            failed_commands: count(|media| media.failed_commands),
            damaged_sectors: count(|media| media.damaged_sectors),
            bad_blocks: last.bad_blocks,
        })
    }

    /// Steady if every phase was, with the worst of each figure.
    fn steady_state(&self) -> SteadyState {
        let all = || self.phases.iter().filter_map(|(_, phase)| phase.steady_state.as_ref());
        let worst =
            |of: fn(&SteadyState) -> Option<f64>| all().filter_map(of).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        SteadyState {
            reached: all().all(|steady| steady.reached),
            rounds: all().map(|steady| steady.rounds).sum(),
            // Each phase has its own.
            from_ns: None,
            iops: all().flat_map(|steady| steady.iops.iter().copied()).collect(),
            excursion: worst(|steady| steady.excursion),
            rise: worst(|steady| steady.rise),
        }
    }

    /// The mean over time.
    fn mean(&self, of: impl Fn(&Summary) -> f64) -> f64 {
        self.phases.iter().map(|(share, phase)| share * of(phase)).sum()
    }

    /// Rates over the time of the phases that had such requests, and latencies of all of these.
    fn direction(&self, of: impl Fn(&Summary) -> Option<&Direction>) -> Direction {
        let all = self.phases.iter().filter_map(|(share, phase)| Some((*share, of(phase)?)));
        let had: Vec<(f64, &Direction)> = all.filter(|(_, direction)| direction.ios > 0).collect();
        let share: f64 = had.iter().map(|(share, _)| share).sum::<f64>().max(f64::MIN_POSITIVE);
        // The sum of nothing is a negative zero.
        let rate = |value: fn(&Direction) -> f64| {
            // Shares first: the rate of one phase alone is its own to the last digit.
            had.iter().map(|(part, direction)| part / share * value(direction)).fold(0.0, |sum, part| sum + part)
        };
        let mut recorded = Histogram::new();
        had.iter().filter_map(|(_, direction)| direction.recorded.as_ref()).for_each(|part| recorded.merge(part));
        Direction {
            ios: had.iter().map(|(_, direction)| direction.ios).sum(),
            iops: rate(|part| part.iops),
            bandwidth: rate(|part| part.bandwidth),
            latency: recorded.latency(),
            recorded: None,
        }
    }

    fn classes(&self) -> Named<Direction> {
        let mut named = Named::default();
        for (name, _) in self.phases.iter().flat_map(|(_, phase)| phase.classes.iter()) {
            named.set(name, self.direction(|phase| phase.classes.get(name)));
        }
        named
    }

    fn namespaces(&self) -> Named<Namespace> {
        let all = self.phases.iter().flat_map(|(_, phase)| phase.namespaces.iter());
        let mut names: Vec<&str> = all.map(|(name, _)| name).collect();
        names.sort_unstable_by_key(|name| name.parse::<u32>().ok());
        names.dedup();
        let sum = |name: &str| {
            let of = |part: fn(&Namespace) -> &Direction| self.direction(|phase| phase.namespaces.get(name).map(part));
            Namespace { read: of(|of| &of.read), write: of(|of| &of.write), other: of(|of| &of.other) }
        };
        names.into_iter().map(|name| (name, sum(name))).collect()
    }

    fn breakdown(&self, of: impl Fn(&Summary) -> &Named<f64>) -> Named<f64> {
        let mut named: Named<f64> = Named::default();
        let ios = self.count(|phase| phase.ios).max(1) as f64;
        for (_, phase) in &self.phases {
            for (name, part) in of(phase).iter() {
                let before = named.get(name).copied().unwrap_or(0.0);
                named.set(name, before + part * phase.ios as f64 / ios);
            }
        }
        named
    }

    fn groups(&self, of: fn(&Summary) -> &Named<Group>) -> Named<Group> {
        let mut named: Named<Group> = Named::default();
        for (share, phase) in &self.phases {
            for (name, group) in of(phase).iter() {
                let mut sum = named.get(name).cloned().unwrap_or_default();
                sum.threads = group.threads;
                sum.utilisation += share * group.utilisation;
                sum.messages += group.messages;
                sum.energy_j = group.energy_j.map(|joules| joules + sum.energy_j.unwrap_or(0.0)).or(sum.energy_j);
                named.set(name, sum);
            }
        }
        named
    }

    /// Each thread with what it did in all phases: they have the same threads, which stay where they are.
    fn machine_threads(&self) -> Vec<MachineThread> {
        let mut sums: Vec<MachineThread> = Vec::new();
        for (share, phase) in &self.phases {
            sums.resize_with(sums.len().max(phase.machine_threads.len()), MachineThread::default);
            for (sum, thread) in sums.iter_mut().zip(&phase.machine_threads) {
                *sum = MachineThread {
                    pinned: thread.pinned,
                    utilisation: sum.utilisation + share * thread.utilisation,
                    received: sum.received + thread.received,
                    sleeps: sum.sleeps + thread.sleeps,
                    stages: thread.stages.clone(),
                };
            }
        }
        sums
    }

    fn workers(&self) -> Workers {
        let all = || self.phases.iter().filter_map(|(share, phase)| Some((share, phase.workers.as_ref()?)));
        let mean = |of: fn(&Workers) -> f64| all().map(|(share, workers)| share * of(workers)).sum();
        Workers {
            work: mean(|workers| workers.work),
            lock_wait: mean(|workers| workers.lock_wait),
            room_wait: mean(|workers| workers.room_wait),
            flash_wait: mean(|workers| workers.flash_wait),
            link_wait: mean(|workers| workers.link_wait),
            idle: mean(|workers| workers.idle),
        }
    }

    fn cores(&self) -> Cores {
        let all = || self.phases.iter().filter_map(|(share, phase)| Some((share, phase.cores.as_ref()?)));
        Cores {
            count: all().map(|(_, cores)| cores.count).max().unwrap_or(0),
            active_mean: all().map(|(share, cores)| share * cores.active_mean).sum(),
            utilisation: side_by_side(all().map(|(share, cores)| (*share, &cores.utilisation[..]))),
            busiest: self.busiest_core(),
        }
    }

    /// The one that is the busiest in all phases: where each fills another, none is full all the time.
    fn busiest_core(&self) -> Option<BusiestCore> {
        let busiest = self.phases.iter().map(|(share, phase)| Some((share, phase.cores.as_ref()?.busiest.as_ref()?)));
        let core = busiest.clone().next()??.1.core;
        let mut groups: Named<f64> = Named::default();
        for of_phase in busiest {
            let (share, here) = of_phase.filter(|(_, busiest)| busiest.core == core)?;
            for (group, taken) in here.groups.iter() {
                groups.add(group, share * taken);
            }
        }
        Some(BusiestCore { core, groups })
    }

    /// What a phase does not name it left idle; but a single bus, die or thread is named only where it is nearly full, so that must be in
    /// all of them.
    fn bounds(&self, iops: f64) -> Vec<Bound> {
        let mut busy: Named<f64> = Named::default();
        let has_a_busiest_core = self.busiest_core().is_some();
        let named = |phase: &Summary, name: &str| phase.bounds().iter().any(|bound| bound.resource == name);
        for (share, phase) in &self.phases {
            let is_told = |bound: &&Bound| {
                let in_all = || self.phases.iter().all(|(_, phase)| named(phase, &bound.resource));
                match bound.resource.as_str() {
                    BUSIEST_CORE => has_a_busiest_core,
                    resource => !resource.starts_with("busiest") || in_all(),
                }
            };
            for bound in phase.bounds().iter().filter(is_told) {
                busy.add(&bound.resource, share * bound.utilisation);
            }
        }
        let resources: Vec<(String, f64)> = busy.iter().map(|(name, busy)| (name.to_owned(), *busy)).collect();
        bounds(iops, &resources)
    }

    fn cache(&self) -> Cache {
        let count = |of: fn(&Cache) -> u64| self.count(|phase| phase.cache.as_ref().map_or(0, of));
        let reads = Lookups { hits: count(|cache| cache.reads.hits), misses: count(|cache| cache.reads.misses) };
        let writes = Lookups { hits: count(|cache| cache.writes.hits), misses: count(|cache| cache.writes.misses) };
        Cache {
            bypasses: count(|cache| cache.bypasses),
            evictions: count(|cache| cache.evictions),
            ..Cache::of(reads, writes)
        }
    }

    fn locks(&self) -> Locks {
        let count = |of: fn(&Locks) -> u64| self.count(|phase| phase.locks.as_ref().map_or(0, of));
        let (acquires, waits) = (count(|locks| locks.acquires), count(|locks| locks.waits));
        let time = |of: fn(&Locks) -> f64| {
            self.phases.iter().map(|(_, phase)| phase.locks.as_ref().map_or(0.0, of)).sum::<f64>()
        };
        let waited = time(|locks| locks.waits as f64 * locks.wait_mean.unwrap_or(0.0));
        // Phases without locks, without an inquiry, or whose firmware has no thread for locks alone have no such means and do not count.
        let over_answers = |mean: fn(&Locks) -> Option<f64>| {
            let known = self.phases.iter().filter_map(|(_, phase)| phase.locks.as_ref());
            let known = known.filter_map(|locks| Some((locks.acquires as f64, mean(locks)?)));
            let (answers, sum) = known.fold((0.0, 0.0), |(all, sum), (count, mean)| (all + count, sum + count * mean));
            (answers > 0.0).then(|| sum / answers)
        };
        Locks {
            acquires,
            waits,
            wait_mean: (waits > 0).then(|| waited / waits as f64),
            inquiry_mean: over_answers(|locks| locks.inquiry_mean),
            stalled_mean: self.stalled(),
            line_mean: over_answers(|locks| locks.line_mean),
            turn_mean: over_answers(|locks| locks.turn_mean),
        }
    }

    fn data(&self) -> Option<Oracle> {
        let all = || self.phases.iter().filter_map(|(_, phase)| phase.data.as_ref());
        all().next()?;
        let (checked, mismatches) = (all().map(|data| data.checked).sum(), all().map(|data| data.mismatches).sum());
        Some(Oracle { checked, mismatches })
    }

    fn gc(&self) -> GarbageCollection {
        let count = |of: fn(&GarbageCollection) -> u64| self.count(|phase| phase.gc.as_ref().map_or(0, of));
        GarbageCollection {
            blocks: count(|gc| gc.blocks),
            pages_moved: count(|gc| gc.pages_moved),
            foreground_ns: count(|gc| gc.foreground_ns),
        }
    }

    /// Threads that stood still for a lock, over all phases.
    fn stalled(&self) -> Option<f64> {
        let known = self.phases.iter().filter_map(|(share, phase)| Some(share * phase.locks.as_ref()?.stalled_mean?));
        Some(known.sum()).filter(|&threads: &f64| threads > 0.0)
    }

    /// All that was programmed for all that was written: phases without writes program what others left, too.
    fn amplification(&self) -> Option<f64> {
        let sum = |of: &dyn Fn(&Summary) -> f64| self.phases.iter().map(|(_, phase)| of(phase)).sum::<f64>();
        let written = sum(&|phase| phase.write.bandwidth * phase.simulated_ns as f64 / 1e9);
        let programmed = sum(&|phase| phase.flash.as_ref().map_or(0, |flash| flash.programs) as f64);
        (written > 0.0).then(|| programmed * self.pages.bytes as f64 / written)
    }
}

/// Lists of equal length, added element by element with their shares.
fn side_by_side<'a>(lists: impl Iterator<Item = (f64, &'a [f64])>) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    for (share, list) in lists {
        sums.resize(sums.len().max(list.len()), 0.0);
        sums.iter_mut().zip(list).for_each(|(sum, value)| *sum += share * value);
    }
    sums
}
