//! Whole devices and workloads drawn from a seed: every setting that an architecture has, and requests of every kind and size.

use super::small::{Small, timing};
use crate::{Device, Fill, Precondition};
use firmware::architecture::{Architecture, ThreadCounts};
use firmware::{
    AddressSplit, BlockDeal, CacheSettings, FlashSettings, JournalSettings, LbaFormat, LockSettings, MappingScheme,
    PipelineSettings, QueueAllocation, ReclaimSettings, Settings, VictimPolicy,
};
use flash::{Geometry, Shape, Suspend};
use host::{Pace, Phase};
use nvme::spec::QueuePriority;
use nvme::{Arbitration, ArbitrationShares, CoalescingSettings};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use units::{Bytes, Lba, Span, Time};
use workload::{Generator, Io, Others, Parameters, Pattern, Recipe, Region, Share, Sizes, Source, WeightedSize};

/// Everything about a run follows from this stream of draws.
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The draws of a seed.
    pub fn new(seed: u64) -> Self {
        Draw(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.random_range(0..choices.len())]
    }
    pub(super) fn within(&mut self, range: std::ops::RangeInclusive<u32>) -> u32 {
        self.0.random_range(range)
    }
    pub(super) fn coin(&mut self) -> bool {
        self.0.random()
    }

    /// A stream of its own: what is drawn from it leaves all other draws of a seed as they are.
    fn aside(&self) -> Draw {
        let mut aside = self.0.clone();
        aside.jump();
        Draw(aside)
    }

    /// One thread in each group, or up to six.
    fn threads(&mut self, architecture: &dyn Architecture) -> ThreadCounts {
        let most = self.of(&[1, 6, 6, 6]);
        let groups = architecture.groups();
        groups.iter().fold(ThreadCounts::new(groups), |threads, group| {
            let most = if group.shares_dies { self.of(&[1, 2, 4]) } else { most };
            let count = self.within(group.least.into()..=most.clamp(group.least.max(1), group.most).into());
            let count = if group.shares_dies { most.into() } else { count };
            threads.with(group.name, count as u16)
        })
    }

    fn settings(&mut self, architecture: &dyn Architecture, page: Bytes, timing: &mut flash::Timing) -> Settings {
        let threads = self.threads(architecture);
        let lock = LockSettings {
            unit: self.of(&[Bytes::kib(4), Bytes::kib(256), Bytes::mib(1)]),
            forwarding: self.coin(),
            stalls: false,
            forwarding_lead: self.of(&[1, 16, u16::MAX]),
            regions: self.of(&[1, 2, 4]),
        };
        let parts = architecture.parts(&Settings { threads, lock, ..Small::default().settings() });
        let flash = FlashSettings {
            multi_plane: self.within(0..=3) > 0,
            gather: self.of(&[Span::ZERO, Span::from_micros(50), Span::from_millis(2)]),
            suspend: self.coin(),
            cache_commands: self.coin(),
            ahead: false,
        };
        timing.cache_commands = flash.cache_commands;
        let micros = Span::from_micros;
        if flash.suspend {
            timing.suspend = Suspend {
                programs_max: 4,
                erases_max: 4,
                reads_max: 4,
                program_latency: micros(20),
                erase_latency: micros(50),
                resume_overhead: micros(5),
            };
        }
        let least = u64::from(parts.cache.max(1));
        Settings {
            threads,
            parts,
            queues: self.of(&[QueueAllocation::Static, QueueAllocation::Dynamic]),
            commands: self.of(&[2, 3, 17, 64, 256]),
            frames: self.of(&[2, 3, 8, 32]),
            page_window: self.of(&[1, 2, 16]),
            lock,
            cache: CacheSettings {
                size: page * self.of(&[least, 17, 64, 512]),
                non_blocking: self.coin(),
                bypass: self.coin(),
                spare_frames: self.of(&[parts.cache.into(), 8, 64]),
                lines_per_lock: parts.fcmd.into(),
            },
            pipeline: PipelineSettings { poll: Span::from_nanos(500) },
            split: self.of(&[AddressSplit::Plain, AddressSplit::Xor]),
            deal: BlockDeal::Interleaved,
            mapping: self.of(&[
                MappingScheme::Page,
                MappingScheme::Page,
                MappingScheme::Hybrid { log_blocks: 1, data_blocks: 8 },
                MappingScheme::Hybrid { log_blocks: 2, data_blocks: 3 },
            ]),
            reclaim: self.reclaim(),
            journal: self.journal(),
            flash,
            mutation: None,
        }
    }

    fn reclaim(&mut self) -> ReclaimSettings {
        ReclaimSettings {
            victim: self.of(&[VictimPolicy::Greedy, VictimPolicy::CostBenefit]),
            background: self.coin(),
            idle: self.of(&[Span::from_micros(200), Span::from_millis(2)]),
            background_free: 0.2,
            window: self.of(&[1, 3, 16]),
            window_per_group: 1 + self.aside().aside().within(0..=7) as u16,
            victims: self.of(&[1, 2, 8]),
            paced: self.aside().within(0..=3) == 0,
            wear_gap: self.of(&[0, 2, 8]),
            wear_share: 0.2,
        }
    }

    fn journal(&mut self) -> JournalSettings {
        JournalSettings {
            interval: self.of(&[Span::from_millis(2), Span::from_millis(20)]),
            only_when_idle: self.coin(),
            patience: Span::from_millis(20),
            busy_share: 0.5,
            window: self.of(&[1, 8]),
            window_per_group: 0,
        }
    }

    /// The length of a page of flash: most are of 4 KiB. Drawn apart, as tags are.
    pub fn page(seed: u64) -> Bytes {
        Bytes::kib(Draw::new(seed ^ 0x9a6e).of(&[4, 4, 4, 4, 4, 1, 8, 16, 16]))
    }

    /// A device of an architecture that is as large as another.
    pub fn device(&mut self, small: &Small) -> Device {
        let mut timing = timing(small.page);
        let (architecture, seed) = (small.architecture, small.seed);
        let mut device = small.device();
        let mut settings = self.settings(architecture, small.page, &mut timing);
        // Drawn apart, as tags are.
        settings.flash.ahead = Draw::new(seed ^ 0xa4ead).within(0..=2) == 0;
        settings.lock.stalls = Draw::new(seed ^ 0x57a1).within(0..=2) == 0;
        device.settings = architecture.settle(settings);
        device.timing = timing;
        // No block is longer than a page.
        let long = if small.page < Bytes::kib(4) { LbaFormat::B512 } else { LbaFormat::B4096 };
        device.drive.format = self.of(&[LbaFormat::B512, LbaFormat::B512, long]);
        device.drive.queues = self.of(&[1, 2, 5, 9]);
        device.queue_entries = self.of(&[2, 9, 64]);
        device.depth = self.within(1..=device.queue_entries - 1).min(32);
        device.drive.queue_entries = 64;
        device.drive.transfer_sectors = self.of(&[16, 128, 2048]);
        device.drive.sector_words = self.of(&[0, 1, 1, 2, 64]);
        device.check = device.drive.sector_words > 0;
        device.vectors = self.within(1..=device.drive.queues) as u16;
        let all = small.sectors() / 8 * 8;
        device.drive.namespaces = if self.coin() {
            vec![all]
        } else {
            vec![all / 24 * 8, all / 16 * 8 + if device.drive.format == LbaFormat::B512 { 5 } else { 0 }]
        };
        device.controller.arbitration = self.of(&[Arbitration::RoundRobin, Arbitration::Weighted]);
        device.controller.shares = ArbitrationShares::from_feature(self.of(&[0x07, 0x00, 0x0305_0702]));
        device.controller.coalescing =
            self.of(&[CoalescingSettings::NONE, CoalescingSettings { threshold: 3, time: 1 }]);
        device.placement =
            architecture.place(device.settings.threads, self.of(&[1, 2, 5, 8])).expect("a core at least");
        let fill = self.of(&[Fill::None, Fill::Sequential, Fill::Random { times: 0.3 }, Fill::Random { times: 3.0 }]);
        // A drive with hybrid mapping can only be filled by writing.
        let fill = if device.settings.mapping == MappingScheme::Page { fill } else { Fill::None };
        device.precondition = Precondition { fill, seed };
        // Classes count under weighted arbitration only; drawn apart as tags are.
        let class = |at: u64| QueuePriority::from_bits(Draw::new(seed ^ (at << 32 | 0xc1a5)).within(0..=3));
        device.priorities = (1..=4).map(class).collect();
        // Tags and seals take no time: with a stream of their own they leave every other draw as it was.
        device.drive.tags = device.drive.sector_words > 0 && Draw::new(!seed).coin();
        if device.drive.tags {
            // Beside the parity of flash that fails there has to be room for them.
            let shape = device.drive.geometry.shape();
            let shape = Shape { oob: shape.oob + device.tag_bytes(), ..*shape };
            device.drive.geometry = Geometry::new(shape).expect("the same array");
            // What memory gets wrong is told: of data to the host, of the journal to recovery.
            device.memory_flips = Draw::new(seed ^ 0xf11b).of(&[0.0, 0.0, 0.0, 0.003, 0.1]);
        }
        device.settings.journal.window_per_group = Draw::new(seed ^ 0x317d).of(&[0, 0, 4]);
        device
    }

    /// Writes of a page, over few pages or over all: on a drive that is full, groups are reclaimed all the time, and their pages
    /// written anew meanwhile. Where it `buries`, many pages are deallocated together too, and their tombstones reclaimed.
    ///
    /// # Panics
    /// Never: what is drawn can be generated.
    pub fn hammer(&mut self, name: &str, device: &Device, seed: u64, ios: u64, (flush, buries): (f64, bool)) -> Phase {
        let all = device.drive.namespaces[0] / 8 * 8;
        let sectors = self.of(&[640, 1_280, all, all, all]);
        let sectors = sectors.min(all);
        let start = if sectors == all { 0 } else { (u64::from(self.within(0..=100)) * 8).min(all - sectors) };
        let mut recipe = Recipe::fixed("hammer", Pattern::Random, 0.05, 4096);
        recipe.others = Others { deallocate: 0.01, flush, write_zeroes: 0.01, compare: 0.0 };
        recipe.alignment_bytes = Some(4096);
        if buries {
            recipe.others.deallocate = 0.15;
            recipe.sizes = Sizes::Weighted(
                [(4096, 8.0), (65_536, 2.0)].map(|(bytes, weight)| WeightedSize { bytes, weight }).into(),
            );
        }
        let region = Some(Region { start: Lba(start), sectors });
        let parameters = Parameters { region, ..Parameters::new(device.drive.namespaces[0], seed) };
        let source = recipe.source(&parameters).expect("a drawable workload");
        Phase { ios: Some(ios), ..Phase::new(name, Box::new(source), Pace::Closed) }
    }

    /// Requests of every kind and size, some over all of a namespace and most around the border of two lock regions; so many of them
    /// neither read nor write.
    ///
    /// # Panics
    /// Never: what is drawn can be generated.
    pub fn phase(&mut self, name: &str, device: &Device, seed: u64, ios: u64, others: Others) -> Phase {
        let block = device.drive.format.sectors() * 512;
        let sizes = [(1, 3.0), (2, 1.0), (3, 1.0), (8, 8.0), (16, 4.0), (32, 2.0), (128, 1.0), (2048, 0.05)];
        let weighted = |(sectors, weight): (u64, f64)| WeightedSize { bytes: sectors * block, weight };
        let parts = [Share { accesses: 0.8, space: 0.5 }, Share { accesses: 0.2, space: 0.5 }];
        let patterns = [Pattern::Random, Pattern::Zipf { theta: 0.9 }, Pattern::Runs { randomness: 0.3 }];
        let patterns =
            patterns.into_iter().chain([Pattern::Sequential { streams: Some(3) }, Pattern::Regions(parts.into())]);
        let patterns: Vec<Pattern> = patterns.collect();
        let mut parts = Vec::new();
        for (index, &sectors) in device.drive.namespaces.iter().enumerate() {
            // Borders of lock regions lie at multiples of 2,048 sectors.
            let all = (Region { start: Lba(0), sectors }, 1, (sectors * 512).min(1 << 20));
            let small = (sectors / 32 * 8, sectors / 16 * 8, 1 << 18);
            let (start, around, largest) = if sectors >= 12_032 { (5_888, 6_144, 1 << 20) } else { small };
            let borders = (Region { start: Lba(start), sectors: around }, 2, largest);
            let hot = (Region { start: Lba(start + 192), sectors: 128 }, 1, 1 << 13);
            for (region, weight, largest) in [all, borders, hot] {
                let pattern = if weight == 2 { patterns[self.within(0..=4) as usize].clone() } else { Pattern::Random };
                let mut recipe = Recipe::fixed("swarm", pattern, self.of(&[0.2, 0.5, 0.8]), block);
                let fits = sizes.into_iter().map(weighted).filter(|size| size.bytes <= largest);
                recipe.sizes = Sizes::Weighted(fits.collect());
                recipe.others = others;
                recipe.alignment_bytes = Some(block);
                let parameters =
                    Parameters { region: Some(region), ..Parameters::new(sectors, seed ^ parts.len() as u64) };
                let source = recipe.source(&parameters).expect("a drawable workload");
                parts.extend(vec![(index as u16, source); weight]);
            }
        }
        let timed = self.within(0..=2) == 0;
        let source = Blend { parts, draw: Xoshiro256PlusPlus::seed_from_u64(seed), sent: 0, at: Time::ZERO };
        let pace = if timed { Pace::Timed } else { Pace::Closed };
        Phase { ios: Some(ios), ..Phase::new(name, Box::new(source), pace) }
    }
}

/// Several generators in turn, by chance; where arrivals count, in bursts with silence between them.
struct Blend {
    parts: Vec<(u16, Generator)>,
    draw: Xoshiro256PlusPlus,
    sent: u64,
    at: Time,
}

impl Source for Blend {
    fn next_io(&mut self) -> Option<Io> {
        let chosen = self.draw.random_range(0..self.parts.len());
        let (device, generator) = &mut self.parts[chosen];
        let io = generator.next_io()?;
        self.sent += 1;
        self.at += if self.sent.is_multiple_of(200) { Span::from_millis(6) } else { Span::from_micros(10) };
        Some(Io { device: *device, at: Some(self.at), ..io })
    }
}
