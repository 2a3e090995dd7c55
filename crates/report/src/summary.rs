//! The summary of a run: the keys that scripts read. Times in ns, sizes in bytes, shares as fractions of one.
//!
//! Keys are added, never renamed. An `Option` is a part that an architecture, a world or a workload may not have; it is then
//! absent from the JSON, not zero.

use crate::{Cores, Histogram, Latency, MachineThread, Named, Namespace, Replay, Sample, Workers};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What one run amounted to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of the program that wrote this.
    #[serde(default)]
    pub version: String,
    /// Name of the firmware architecture.
    pub architecture: String,
    /// Name of the flash array and its bus.
    pub device: String,
    /// Name of the processor whose prices were used, or of the machine it ran on.
    pub processor: String,
    /// `sim` or `threads`.
    pub world: String,
    /// Name of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// What was replayed, where the run was fed from a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Replay>,
    /// The seed of every draw.
    pub seed: u64,
    /// Configuration keys that somebody gave a value, with that value; absent where nobody kept them, as before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Named<String>>,
    /// Equal digests are equal runs, bit for bit; only a run in virtual time has one. Hexadecimal: JSON readers round above 2^53.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How long the measured part lasted by the clock of its world, ns.
    pub simulated_ns: u64,
    /// How long it took on the machine that ran it, ns.
    pub wall_ns: u64,
    /// Whether, and when, the figures stopped drifting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<SteadyState>,
    /// Requests completed in the measured part; one that is longer than a command may be is several commands.
    pub ios: u64,
    /// Requests since the run began that are not of whole blocks of the drive and were sent as the blocks they touch.
    #[serde(default)]
    pub rounded: u64,
    /// Requests since the run began that were not sent: they name nothing, what lies beyond the end, or, to deallocate, less than a block.
    #[serde(default)]
    pub unsent: u64,
    /// Requests completed a second.
    pub iops: f64,
    /// Host bytes moved a second, both directions, by commands without a media error.
    pub bandwidth: f64,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Everything else: flush, deallocate, write zeroes.
    pub other: Direction,
    /// All commands by the class of their queue, where queues compete by class.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub classes: Named<Direction>,
    /// The same by namespace, each by its identifier, where there are several, but not more than 64. One without requests is absent.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub namespaces: Named<Namespace>,
    /// Commands outstanding, averaged over time; a request beyond what a command moves (MDTS) is several.
    pub queue_depth_mean: f64,
    /// How late requests were sent at the end of the measured part, ns, where they come at their own times; else absent. It is of the
    /// next one, or of the last where there is no next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_ns: Option<u64>,
    /// Requests that arrive a second, where they come at their own times: of those that were sent in the measured part, from the arrival
    /// of the first to that of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals_per_s: Option<f64>,
    /// Mean latency of a request by where it went, ns, in the order a request passes; sums to the mean latency of all requests.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub breakdown: Named<f64>,
    /// The queueing in it, ns, by the part whose threads requests stood in line for; sums to it.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub breakdown_queueing: Named<f64>,
    /// Real time: how many requests were observed for it, where not all were. Their shares are taken of the mean of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown_of: Option<u64>,
    /// The breakdown of the slowest commands, one in a hundred: where the tail comes from. Without what they waited in the host.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub breakdown_slowest: Named<f64>,
    /// Where the time of the workers goes, where a worker carries a command through all stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Workers>,
    /// Groups of firmware threads, in pipeline order.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub groups: Named<Group>,
    /// Real time: stages that play the hardware, which are the host, its link and the flash channels.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub hardware: Named<Group>,
    /// Real time: the machine's own threads, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_threads: Vec<MachineThread>,
    /// Commands that each thread of a group completed, in the order of its threads; groups that complete none are absent.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub completions: Named<Vec<u64>>,
    /// The processor's cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    /// Mean power of the processor, W.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// Of it, what hardware threads took that found no message and looked again, W.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling_w: Option<f64>,
    /// What limits this run, tightest first, of which there is nothing where no request was counted; absent where nobody models resources,
    /// as in real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Vec<Bound>>,
    /// The data cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Locks on ranges of logical pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// The flash array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<Flash>,
    /// Bytes programmed to flash for each byte that the host wrote; null where it wrote none.
    #[serde(default)]
    pub write_amplification: Option<f64>,
    /// Garbage collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc: Option<GarbageCollection>,
    /// The map's journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<Journal>,
    /// Erase counts of the blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<Wear>,
    /// What the pages of the array are used for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
    /// Errors of the medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<Media>,
    /// What the oracle compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Oracle>,
    /// The run interval by interval, from the end of the warm-up on, where that was asked for; of a run in rounds, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// Whether they end before the measured part does, because there may be no more of them.
    #[serde(skip)]
    pub samples_cut: bool,
    /// Who makes room on flash, for whoever says what requests wait for; not in a file.
    #[serde(skip)]
    pub room: Room,
    /// What requests wait for that wait in the parts that threads work on, after "Requests wait"; not in a file.
    #[serde(skip)]
    pub waits: Named<&'static str>,
}

/// Who makes room on flash, and where requests wait for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Room {
    /// Those that own flash, each a share of the array, and have room made in it.
    pub owners: u16,
    /// The parts of a latency between which a wait for room is split.
    pub parts: Vec<&'static str>,
}

/// The commands of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Commands completed.
    pub ios: u64,
    /// Commands completed a second.
    pub iops: f64,
    /// Bytes moved a second.
    pub bandwidth: f64,
    /// From submission to completion as the host sees it, ns; each of its keys is null where no command went this way.
    #[serde(default, with = "crate::or_nulls")]
    pub latency: Option<Latency>,
    /// What it was read from, for whoever adds several directions up; not in a file.
    #[serde(skip)]
    pub recorded: Option<Arc<Histogram>>,
}

/// Threads that do the same work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// How many threads.
    pub threads: u32,
    /// Share of its time that a thread of the group is in a turn.
    pub utilisation: f64,
    /// Messages handled.
    pub messages: u64,
    /// Energy of its work, J; absent where the processor has no energy prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
}

/// What one resource alone would allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Name of the resource, fit for a sentence: `flash buses`.
    pub resource: String,
    /// Share of its time that it was in use.
    pub utilisation: f64,
    /// The IOPS at which it would be in use all the time if a request went on taking as much of it: of threads and cores it may take less.
    pub iops_bound: f64,
}

/// The data cache. Each page of a read or write is looked up once, in every architecture; what a write must read first to fill
/// its page up is no look-up of its own, and what deallocates or zeroes is none. A look-up hits if the cache holds the page when the
/// request is served: for a write too, which then overwrites it there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// Look-ups that found their page, for reads and writes.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Hits over look-ups of reads and writes; null without a look-up.
    #[serde(default)]
    pub hit_ratio: Option<f64>,
    /// Of these, the look-ups for reads.
    #[serde(default)]
    pub reads: Lookups,
    /// Of these, the look-ups for writes.
    #[serde(default)]
    pub writes: Lookups,
    /// Hits over look-ups of reads alone; null without one.
    #[serde(default)]
    pub read_hit_ratio: Option<f64>,
    /// Pages that it had no room for, so that they went past it, whatever was done to them.
    pub bypasses: u64,
    /// Pages put out to make room.
    pub evictions: u64,
}

/// Look-ups of pages in the data cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookups {
    /// That found their page.
    pub hits: u64,
    /// That did not.
    pub misses: u64,
}

impl Lookups {
    /// Hits over look-ups; nothing without a look-up.
    pub fn ratio(&self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}

impl Cache {
    /// What look-ups for reads and for writes amount to; the rest is zero.
    pub fn of(reads: Lookups, writes: Lookups) -> Cache {
        let both = Lookups { hits: reads.hits + writes.hits, misses: reads.misses + writes.misses };
        Cache {
            hits: both.hits,
            misses: both.misses,
            hit_ratio: both.ratio(),
            reads,
            writes,
            read_hit_ratio: reads.ratio(),
            bypasses: 0,
            evictions: 0,
        }
    }
}

/// Locks on ranges of logical pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Locks {
    /// Locks taken.
    pub acquires: u64,
    /// Of these, how many had to wait.
    pub waits: u64,
    /// Mean wait of those that waited, ns; null where none did.
    #[serde(default)]
    pub wait_mean: Option<f64>,
    /// Mean time to find out whether a range is free, ns: from when the asker's turn has asked until the answer is in its inbox; null
    /// where nobody asked. Locks of structures that threads share are not asked for so.
    #[serde(default)]
    pub inquiry_mean: Option<f64>,
    /// Threads that had commands to take and stood still for an answer instead, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_mean: Option<f64>,
    /// Of an inquiry, what a request stands in line for the thread that holds the locks, mean, ns. Where that thread does nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_mean: Option<f64>,
    /// Of it, the turn of that thread, mean, ns: it fetches the request, does the work and publishes the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_mean: Option<f64>,
}

/// What the flash array did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flash {
    /// Pages read.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Share of its time that each channel's bus carries something, in channel order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channel_utilisation: Vec<f64>,
    /// Share of its time that a die reads, programs or erases, averaged over the dies; absent where nobody timed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub die_utilisation_mean: Option<f64>,
    /// Share of its time that a die has an operation, averaged over the dies: it is at it, or waits for the bus with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub die_taken_mean: Option<f64>,
    /// Share of its time that a die does nothing because the command to read or erase waits for the bus, averaged over the dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub die_command_wait_mean: Option<f64>,
    /// Pages that a die reads, programs or erases at once, averaged over its operations; absent where that is as many as it has planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_per_operation: Option<f64>,
    /// Operations on several planes at once; absent, as are the next two, where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_plane_operations: Option<u64>,
    /// Reads that were sensed, and programs whose data came, while the die was at the one before, by cache commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_operations: Option<u64>,
    /// How often a program or an erase was suspended for reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspensions: Option<u64>,
}

/// Garbage collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GarbageCollection {
    /// Blocks reclaimed, counted when their group is erased; in PipeSSD, when its erase is ordered.
    pub blocks: u64,
    /// Valid pages moved, each counted when it is in its new place.
    pub pages_moved: u64,
    /// Time that groups reclaimed on demand took from when each was chosen, ns, all together: several are emptied at once, so that this may
    /// exceed the length of the run.
    pub foreground_ns: u64,
}

/// The map's journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// Checkpoints of the map.
    pub checkpoints: u64,
    /// Pages that checkpoints and log took.
    pub pages: u64,
    /// Erases of the journal's least worn block, from the array's first day; summaries of earlier versions have none.
    #[serde(default)]
    pub erase_count_min: u64,
    /// The same of its most worn block.
    #[serde(default)]
    pub erase_count_max: u64,
}

/// Erase counts of the blocks that hold data, from the array's first day. The journal goes round in blocks of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wear {
    /// Of the least worn block.
    pub erase_count_min: u64,
    /// Over all blocks.
    pub erase_count_mean: f64,
    /// Of the most worn block.
    pub erase_count_max: u64,
    /// How far they spread: their standard deviation.
    #[serde(default)]
    pub erase_count_stddev: f64,
}

/// What the pages of the array are used for, at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// What hosts see.
    pub logical_pages: u64,
    /// All of the array.
    pub array_pages: u64,
    /// Of groups that may hold data: neither the journal's nor out of use.
    pub data_pages: u64,
    /// Of groups that are full: neither free nor being filled or reclaimed.
    pub closed_pages: u64,
    /// Those of them that the map points to.
    pub closed_valid_pages: u64,
    /// Of one group, which is reclaimed as a whole.
    pub group_pages: u64,
}

/// Errors of the medium.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Media {
    /// Bits that the decoder corrected: not those of attempts that it could not decode, nor of reads given up.
    pub bit_errors: u64,
    /// Code words that the decoder put right.
    pub corrected: u64,
    /// Reads repeated with shifted thresholds.
    pub retries: u64,
    /// Reads given up.
    pub uncorrectable: u64,
    /// Blocks that are not used, from the factory or any more.
    pub bad_blocks: u64,
    /// Programs of a page and erases of a block that failed.
    #[serde(default)]
    pub failed_operations: u64,
    /// Commands answered with a media error; they are among the requests, their bytes in no bandwidth.
    #[serde(default)]
    pub failed_commands: u64,
    /// Sectors that were not as they were sealed: a bit had flipped, or they were others than those asked for.
    #[serde(default)]
    pub damaged_sectors: u64,
}

/// What the oracle compared with what the host had written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Oracle {
    /// Sectors compared.
    pub checked: u64,
    /// Answers that held what no correct drive gives, however many of their sectors.
    pub mismatches: u64,
}

/// Whether the figures stopped drifting, over the last rounds: the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// Whether they did.
    pub reached: bool,
    /// Rounds run.
    pub rounds: u64,
    /// Where the measured part begins, ns from where samples do, which are of all rounds; absent of several phases together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// Requests a second in each round; of several phases, one after another.
    #[serde(default)]
    pub iops: Vec<f64>,
    /// Highest less lowest round of the measured part, as a fraction of its mean; absent where there were too few rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excursion: Option<f64>,
    /// What the least-squares line gains over the measured part, as a fraction of its mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<f64>,
}

impl Summary {
    /// Mean latency of all requests, ns; nothing where none completed.
    pub fn latency_mean(&self) -> Option<f64> {
        let parts = [&self.read, &self.write, &self.other];
        let measured =
            parts.iter().filter_map(|part| part.latency.as_ref().map(|latency| (part.ios as f64, latency.mean)));
        let (count, total) = measured.fold((0.0, 0.0), |(count, total), (ios, mean)| (count + ios, total + ios * mean));
        (count > 0.0).then(|| total / count)
    }

    /// What limits this run, tightest first, as far as anybody models it.
    pub fn bounds(&self) -> &[Bound] {
        self.bounds.as_deref().unwrap_or_default()
    }

    /// The JSON that scripts read, with line breaks; its keys are in the order of the fields here.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and lists always serialise")
    }

    /// Reads what [`Summary::to_json`] wrote; keys of later versions are passed over.
    ///
    /// # Errors
    /// Text that is not JSON, or a key missing or of another type, with its line and column.
    pub fn from_json(text: &str) -> Result<Summary, serde_json::Error> {
        serde_json::from_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use serde_json::{Value, json};
    use std::collections::{BTreeMap, BTreeSet};

    /// The keys that scripts rely on, part by part. A key may be added here, none renamed or taken away.
    const CONTRACT: &[(&str, &str)] = &[
        (
            "",
            "architecture device processor world seed digest simulated_ns wall_ns ios iops bandwidth read write other",
        ),
        (
            "",
            "queue_depth_mean breakdown groups cores power_w bounds cache locks flash write_amplification gc journal wear",
        ),
        ("", "media data"),
        ("/read", "ios iops bandwidth latency"),
        ("/write", "ios iops bandwidth latency"),
        ("/other", "ios iops bandwidth latency"),
        ("/other/latency", "mean p50 p90 p99 p999 p9999 max"),
        ("/read/latency", "mean p50 p90 p99 p999 p9999 max"),
        ("/breakdown", "nvmq ilock cache trans fcmd flash dma queueing"),
        ("/groups/nvmq", "threads utilisation messages energy_j"),
        ("/cores", "count active_mean utilisation"),
        ("/bounds/0", "resource utilisation iops_bound"),
        ("/cache", "hits misses hit_ratio reads writes read_hit_ratio bypasses evictions"),
        ("/locks", "acquires waits wait_mean inquiry_mean stalled_mean line_mean turn_mean"),
        ("/flash", "reads programs erases channel_utilisation die_utilisation_mean"),
        ("/gc", "blocks pages_moved foreground_ns"),
        ("/journal", "checkpoints pages erase_count_min erase_count_max"),
        ("/wear", "erase_count_min erase_count_mean erase_count_max"),
        ("/media", "bit_errors corrected retries uncorrectable bad_blocks"),
        ("/data", "checked mismatches"),
        // Not in the contract's first edition.
        ("", "version workload trace set steady_state completions samples breakdown_queueing rounded unsent"),
        ("/set", "reclaim.victim"),
        ("/media", "failed_operations failed_commands damaged_sectors"),
        (
            "/samples/0",
            "at_ns length_ns iops bandwidth read_bandwidth write_bandwidth groups pages_moved journal_pages",
        ),
        (
            "/trace",
            "name format mode requests replayed on_drive skipped devices device namespace_bytes assumed wrapped reordered",
        ),
        ("/trace", "read_fraction read_bytes_mean write_bytes_mean randomness unaligned_fraction"),
        ("/trace", "touched_bytes end_bytes span_ns"),
        ("/trace/on_drive", "randomness unaligned_fraction touched_bytes end_bytes"),
        ("", "space polling_w behind_ns arrivals_per_s"),
        ("/wear", "erase_count_stddev"),
        ("/space", "logical_pages array_pages data_pages closed_pages closed_valid_pages group_pages"),
        ("/steady_state", "reached rounds from_ns iops excursion rise"),
        ("/flash", "die_taken_mean die_command_wait_mean"),
        ("", "hardware machine_threads"),
        ("/cores", "busiest"),
        ("/cores/busiest", "core groups"),
        ("/hardware/link", "threads utilisation messages"),
        ("/machine_threads/0", "pinned utilisation received sleeps stages"),
    ];
    /// What there is even of a run that did nothing.
    const ALWAYS: &str = "version architecture device processor world seed simulated_ns wall_ns ios iops bandwidth read write \
        other queue_depth_mean rounded unsent write_amplification";

    fn keys(value: &Value) -> BTreeSet<&str> {
        value.as_object().expect("an object").keys().map(String::as_str).collect()
    }

    #[test]
    fn every_part_has_exactly_the_keys_of_the_contract() {
        let json: Value = serde_json::from_str(&sample().to_json()).unwrap();
        let mut contract: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (part, keys) in CONTRACT {
            contract.entry(part).or_default().extend(keys.split_whitespace());
        }
        for (part, wanted) in contract {
            let found = keys(json.pointer(part).unwrap_or_else(|| panic!("{part} is missing")));
            assert_eq!(found, wanted, "keys of {part}");
        }
    }

    #[test]
    fn parts_that_a_run_does_not_have_are_absent() {
        let bare: Value = serde_json::from_str(&Summary::default().to_json()).unwrap();
        assert_eq!(keys(&bare), ALWAYS.split_whitespace().collect());
        let nothing = ["mean", "p50", "p90", "p99", "p999", "p9999", "max"].map(|key| (key, Value::Null));
        let nothing: BTreeMap<&str, Value> = nothing.into();
        assert_eq!(bare["read"], json!({"ios": 0, "iops": 0.0, "bandwidth": 0.0, "latency": nothing}));
        assert_eq!(Summary::from_json(&bare.to_string()).unwrap(), Summary::default());
    }

    #[test]
    fn a_ratio_of_no_look_ups_is_null() {
        let cache = |reads, writes| serde_json::to_value(Cache::of(reads, writes)).unwrap();
        let (none, some) = (Lookups::default(), Lookups { hits: 1, misses: 3 });
        let written = cache(none, some);
        assert_eq!((&written["hit_ratio"], &written["read_hit_ratio"]), (&json!(0.25), &Value::Null));
        assert_eq!(cache(none, none)["hit_ratio"], Value::Null);
        assert_eq!(cache(some, none)["read_hit_ratio"], 0.25);
    }

    #[test]
    fn json_reads_back_and_passes_over_keys_of_later_versions() {
        let text = sample().to_json();
        assert_eq!(Summary::from_json(&text).unwrap(), sample());
        assert_eq!(Summary::from_json(&text.replacen('{', "{\"later\": [1],", 1)).unwrap(), sample());
        let wrong = Summary::from_json(&text.replace("\"seed\": 1", "\"seed\": \"one\"")).unwrap_err();
        assert!(wrong.to_string().contains("line") && wrong.to_string().contains("u64"), "{wrong}");
    }

    #[test]
    fn bounds_are_listed_tightest_first_and_stages_in_pipeline_order() {
        let text = sample().to_json();
        let at = |key: &str| text.find(key).unwrap();
        assert!(at("flash buses") < at("\"dies\"") && at("\"dies\"") < at("nvmq cores"));
        assert!(at("\"nvmq\"") < at("\"ilock\"") && at("\"fcmd\"") < at("\"queueing\""));
    }
}
