//! The workloads that have a name. A new one is an entry of [`WORKLOADS`].

use crate::recipe::{Arrivals, Pattern, Recipe, Share, Sizes, WeightedSize};

/// A workload that has a name.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// As command lines and files name it.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Where it comes from.
    pub definition: Definition,
}

/// What a named workload is drawn from.
#[derive(Clone, Copy, Debug)]
pub enum Definition {
    /// A recipe in full.
    Drawn(fn(&str) -> Recipe),
    /// Three published figures of a trace that is not at hand.
    Statistical(Published),
}

/// A row of Table 1 of DeepFlash ("Scalable Parallel Flash Firmware for Many-core Architectures", FAST '20).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Reads among all requests.
    pub read_ratio: f64,
    /// Mean request in KiB.
    pub mean_kib: f64,
    /// Requests that do not continue the one before them. The table does not define its randomness; this is how we read
    /// it.
    pub randomness: f64,
}

impl Workload {
    /// The workload of that name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// The workload in full.
    pub fn recipe(&self) -> Recipe {
        match self.definition {
            Definition::Drawn(recipe) => recipe(self.summary),
            Definition::Statistical(published) => published.recipe(self.summary),
        }
    }
}

impl Published {
    fn recipe(&self, summary: &str) -> Recipe {
        let pattern = Pattern::Runs { randomness: self.randomness };
        let sizes = Sizes::MeanBytes(self.mean_kib * 1024.0);
        // Hosts of these traces address 4 KiB pages; the traces' own misalignment is not published.
        let alignment_bytes = Some(4096);
        Recipe { sizes, alignment_bytes, ..Recipe::fixed(summary, pattern, self.read_ratio, 4096) }
    }
}

const fn drawn(name: &'static str, summary: &'static str, recipe: fn(&str) -> Recipe) -> Workload {
    Workload { name, summary, definition: Definition::Drawn(recipe) }
}

const fn published(name: &'static str, family: &'static str, read_ratio: f64, mean_kib: f64, random: f64) -> Workload {
    let definition = Definition::Statistical(Published { read_ratio, mean_kib, randomness: random });
    Workload { name, summary: family, definition }
}

const MPS: &str = "statistics of a Microsoft production server trace (DeepFlash Table 1)";
const IODEDUP: &str = "statistics of an FIU IODedup trace (DeepFlash Table 1)";
const SRCMAP: &str = "statistics of an FIU SRCMap trace (DeepFlash Table 1)";
const ENTERPRISE: &str = "statistics of a Microsoft enterprise trace (DeepFlash Table 1)";

const FINANCIAL1: &str = "statistics of UMass Financial1 (Zhou et al., EuroSys '15, Table 4): OLTP, mostly writes";
const FINANCIAL2: &str = "statistics of UMass Financial2 (Zhou et al., EuroSys '15, Table 4): OLTP, mostly reads";
const WEBSEARCH: &str =
    "statistics of a UMass WebSearch trace (Gupta et al., ASPLOS '09, Table 4): a search engine, reads";

/// All of them, in the order in which help lists them.
pub const WORKLOADS: &[Workload] = &[
    drawn("randread", "random reads of 4 KiB", |s| Recipe::fixed(s, Pattern::Random, 1.0, 4096)),
    drawn("randwrite", "random writes of 4 KiB", |s| Recipe::fixed(s, Pattern::Random, 0.0, 4096)),
    drawn("seqread", "sequential reads of 4 KiB, a stream for each queue", |s| {
        Recipe::fixed(s, Pattern::Sequential { streams: None }, 1.0, 4096)
    }),
    drawn("seqwrite", "sequential writes of 4 KiB, a stream for each queue", |s| {
        Recipe::fixed(s, Pattern::Sequential { streams: None }, 0.0, 4096)
    }),
    drawn("mixed", "random 4 KiB, seven reads to three writes", |s| Recipe::fixed(s, Pattern::Random, 0.7, 4096)),
    drawn("zipf", "4 KiB by popularity, theta 0.99, half reads", |s| {
        Recipe::fixed(s, Pattern::Zipf { theta: 0.99 }, 0.5, 4096)
    }),
    drawn(
        "bursty",
        "random 4 KiB writes: 40 ms of silence, then 200,000 a second for 160 ms, then 840 ms of silence",
        bursty,
    ),
    drawn("jesd219", "the enterprise endurance mix of JESD219A: 512 B to 64 KiB, hot and cold, 40 % reads", jesd219),
    drawn("cycles", "random 4 KiB: 10 MB of reads, then 10 MB of writes, and so on", cycles),
    drawn("financial1", FINANCIAL1, |s| umass(s, 0.221, 3.5, 0.983)),
    drawn("financial2", FINANCIAL2, |s| umass(s, 0.82, 2.4, 0.993)),
    drawn("websearch1", WEBSEARCH, |s| umass(s, 0.99, 14.86, 0.86)),
    drawn("websearch2", WEBSEARCH, |s| umass(s, 0.99, 14.86, 0.86)),
    drawn("websearch3", WEBSEARCH, |s| umass(s, 0.99, 14.86, 0.86)),
    published("24hr", MPS, 0.06, 7.5, 0.3),
    published("24hrs", MPS, 0.13, 12.1, 0.4937),
    published("bs", MPS, 0.11, 26.3, 0.87),
    published("cfs", MPS, 0.82, 8.6, 0.94),
    published("dads", MPS, 0.87, 27.6, 0.99),
    published("dap", MPS, 0.57, 63.4, 0.38),
    published("ddr", MPS, 0.9, 12.2, 0.313),
    published("cheetah", IODEDUP, 0.99, 4.0, 0.12),
    published("homes", IODEDUP, 0.0, 4.0, 0.14),
    published("webonline", IODEDUP, 0.0, 4.0, 0.14),
    published("ikki", SRCMAP, 0.0, 4.0, 0.39),
    published("online", SRCMAP, 0.0, 4.0, 0.17),
    published("topgun", SRCMAP, 0.0, 4.0, 0.14),
    published("webmail", SRCMAP, 0.0, 4.0, 0.21),
    published("casa", SRCMAP, 0.0, 4.0, 0.65),
    published("webresearch", SRCMAP, 0.0, 4.0, 0.11),
    published("webusers", SRCMAP, 0.0, 4.0, 0.14),
    published("madmax", ENTERPRISE, 0.002, 4.005, 0.08),
    published("exchange", ENTERPRISE, 0.24, 9.2, 0.84),
];

/// The burst of figure 17a of DeepFlash lasts from 0.04 to 0.2 s; the rate is ours, within what a drive of that size
/// writes.
fn bursty(summary: &str) -> Recipe {
    let arrivals = Arrivals::Bursty { per_second: 200_000.0, lead_ms: 40.0, on_ms: 160.0, off_ms: 840.0 };
    Recipe { arrivals, ..Recipe::fixed(summary, Pattern::Random, 0.0, 4096) }
}

/// What PipeSSD's section 2.2 runs to count what workers wait for; the size of a request is ours.
fn cycles(summary: &str) -> Recipe {
    Recipe { cycle_bytes: Some(10_000_000), ..Recipe::fixed(summary, Pattern::Random, 0.5, 4096) }
}

/// Read ratio, mean size and the share of requests that continue none, of a trace of the UMass repository as papers that replay it
/// print them; as we know these tables, for the papers were not at hand. What is not in them: hot spots, and where requests begin. A
/// footprint is the run's (`workload.region_bytes`).
fn umass(summary: &str, read_ratio: f64, mean_kib: f64, randomness: f64) -> Recipe {
    let sizes = Sizes::MeanBytes(mean_kib * 1024.0);
    // Means below a page are of sectors, so requests begin on any.
    let alignment_bytes = Some(if mean_kib < 4.0 { 512 } else { 4096 });
    Recipe { sizes, alignment_bytes, ..Recipe::fixed(summary, Pattern::Runs { randomness }, read_ratio, 4096) }
}

/// Sizes and regions as JESD219A gives them; reads to writes and the 4 KiB alignment as in the job file of fio that
/// follows it.
fn jesd219(summary: &str) -> Recipe {
    let sizes = [
        (512, 4.0),
        (1024, 1.0),
        (1536, 1.0),
        (2048, 1.0),
        (2560, 1.0),
        (3072, 1.0),
        (3584, 1.0),
        (4096, 67.0),
        (8192, 10.0),
        (16_384, 7.0),
        (32_768, 3.0),
        (65_536, 3.0),
    ];
    let shares = [(0.50, 0.05), (0.30, 0.15), (0.20, 0.80)];
    Recipe {
        sizes: Sizes::Weighted(sizes.map(|(bytes, weight)| WeightedSize { bytes, weight }).into()),
        pattern: Pattern::Regions(shares.map(|(accesses, space)| Share { accesses, space }).into()),
        alignment_bytes: Some(4096),
        ..Recipe::fixed(summary, Pattern::Random, 0.4, 4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IoKind, Parameters, Source, Statistics};

    /// 1 GiB.
    const DRIVE: u64 = 1 << 21;

    #[test]
    fn names_are_distinct_and_every_workload_draws_within_the_drive() {
        for (at, workload) in WORKLOADS.iter().enumerate() {
            assert!(WORKLOADS[..at].iter().all(|other| other.name != workload.name));
            assert_eq!(Workload::named(workload.name).unwrap().summary, workload.summary);
            let recipe = workload.recipe();
            assert_eq!(Recipe::from_toml(&recipe.to_toml()).unwrap(), recipe);
            let mut source = recipe.source(&Parameters::new(DRIVE, 1)).unwrap();
            for _ in 0..10_000 {
                let io = source.next_io().unwrap();
                assert!(io.sectors > 0 && io.end().0 <= DRIVE, "{}", workload.name);
            }
        }
    }

    #[test]
    fn the_nineteen_reproduce_their_three_figures() {
        let mut count = 0;
        for workload in WORKLOADS {
            let Definition::Statistical(published) = workload.definition else { continue };
            count += 1;
            // 64 GiB, so that runs seldom meet the end of the drive.
            let mut source = workload.recipe().source(&Parameters::new(DRIVE * 64, 42)).unwrap();
            let found = Statistics::of(&mut source, 400_000);
            let near = |found: f64, wanted: f64, what: &str| {
                let message = format!("{} {what}: {found} for {wanted}", workload.name);
                assert!((found - wanted).abs() <= 0.03 * wanted + 5e-4, "{message}");
            };
            near(found.read_fraction(), published.read_ratio, "read ratio");
            near(found.bytes_mean() / 1024.0, published.mean_kib, "mean KiB");
            near(found.randomness(), published.randomness, "randomness");
            assert_eq!(found.unaligned, 0);
        }
        assert_eq!(count, 19);
    }

    #[test]
    fn jesd219_has_its_hot_and_cold_parts() {
        let mut source = Workload::named("jesd219").unwrap().recipe().source(&Parameters::new(DRIVE, 5)).unwrap();
        let (mut parts, mut pages, mut reads) = ([0u32; 3], 0, 0);
        for _ in 0..100_000 {
            let io = source.next_io().unwrap();
            let place = io.lba.0 as f64 / DRIVE as f64;
            parts[if place < 0.05 { 0 } else { usize::from(place >= 0.2) + 1 }] += 1;
            pages += u32::from(io.sectors == 8);
            reads += u32::from(io.kind == IoKind::Read);
        }
        for (found, expected) in
            parts.into_iter().chain([pages, reads]).zip([50_000u32, 30_000, 20_000, 67_000, 40_000])
        {
            assert!(found.abs_diff(expected) < 700, "{found} {expected}");
        }
    }
}
