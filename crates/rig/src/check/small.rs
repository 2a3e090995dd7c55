//! A device small enough to fill and reclaim many times in a second: what checks and tests run on.

use crate::{Controller, Device, Fill, LinkTiming, PowerBudget, Precondition, Session};
use firmware::architecture::{Architecture, DEFAULT, ThreadCounts};
use firmware::{
    AddressSplit, BlockDeal, CacheSettings, DriveShape, FlashSettings, JournalSettings, LockSettings, MappingScheme,
    PartCounts, PipelineSettings, QueueAllocation, ReclaimSettings, Settings, VictimPolicy, Work,
};
use flash::{CellKind, CommandCycles, Geometry, Shape, Suspend, Timing};
use host::{Pace, Phase};
use nvme::spec::QueuePriority;
use nvme::{Arbitration, ArbitrationShares, CoalescingSettings};
use sim::{Hops, LinePrices, Processor};
use stage::Price;
use units::{Bytes, BytesPerSecond, Hertz, MegaTransfers, SECTOR_BYTES, Span};
use workload::{Parameters, Pattern, Recipe};

/// What such devices differ in.
pub struct Small {
    /// The firmware.
    pub architecture: &'static dyn Architecture,
    /// Of preconditioning.
    pub seed: u64,
    /// How it was used before.
    pub fill: Fill,
    /// Logical and physical pages.
    pub mapping: MappingScheme,
    /// I/O queue pairs.
    pub queues: u32,
    /// Commands outstanding on each.
    pub depth: u32,
    /// Blocks of a plane, and pages of a block.
    pub blocks: [u32; 2],
    /// Of flash.
    pub page: Bytes,
}

impl Default for Small {
    fn default() -> Self {
        Small {
            architecture: DEFAULT,
            seed: 1,
            fill: Fill::None,
            mapping: MappingScheme::Page,
            queues: 4,
            depth: 16,
            blocks: [32, 32],
            page: Bytes(4096),
        }
    }
}

impl Small {
    /// The array: four channels of two dies with two planes.
    pub fn geometry(&self) -> Geometry {
        let [blocks_per_plane, pages_per_block] = self.blocks;
        let shape = Shape {
            channels: 4,
            packages_per_channel: 1,
            dies_per_package: 2,
            planes_per_die: 2,
            blocks_per_plane,
            pages_per_block,
            page: self.page,
            oob: Bytes(oob(self.page)),
            kind: CellKind::Mlc,
        };
        Geometry::new(shape).expect("a small array")
    }

    /// Sectors for the host: three fifths of the array.
    pub fn sectors(&self) -> u64 {
        u64::from(self.geometry().page_count()) * (self.page.0 / SECTOR_BYTES) * 3 / 5
    }

    /// The firmware's choices, with a few threads in each group.
    pub fn settings(&self) -> Settings {
        let settings = Settings {
            threads: ThreadCounts::NONE,
            parts: PartCounts::NONE,
            queues: QueueAllocation::Dynamic,
            commands: 64,
            frames: 32,
            page_window: 16,
            lock: LockSettings {
                unit: Bytes::kib(256),
                forwarding: true,
                stalls: false,
                forwarding_lead: 16,
                regions: 2,
            },
            cache: CacheSettings {
                size: Bytes::mib(2),
                non_blocking: true,
                bypass: true,
                spare_frames: 64,
                lines_per_lock: 1,
            },
            pipeline: PipelineSettings { poll: Span::from_nanos(500) },
            split: AddressSplit::Xor,
            deal: BlockDeal::Interleaved,
            mapping: self.mapping,
            reclaim: ReclaimSettings {
                victim: VictimPolicy::Greedy,
                background: true,
                idle: Span::from_millis(2),
                background_free: 0.2,
                window: 16,
                window_per_group: 8,
                victims: 2,
                paced: false,
                wear_gap: 8,
                wear_share: 0.0,
            },
            journal: JournalSettings {
                interval: Span::from_millis(10),
                only_when_idle: false,
                patience: Span::from_secs(10),
                busy_share: 1.0,
                window: 8,
                window_per_group: 0,
            },
            flash: FlashSettings {
                multi_plane: true,
                gather: Span::from_micros(50),
                suspend: false,
                cache_commands: false,
                ahead: false,
            },
            mutation: None,
        };
        let threads = ThreadCounts::few(self.architecture.groups());
        self.architecture.settle(settings).staffed(self.architecture, threads)
    }

    /// All of it.
    pub fn device(&self) -> Device {
        let settings = self.settings();
        Device {
            architecture: self.architecture,
            drive: DriveShape { queues: self.queues, ..DriveShape::plain(self.geometry(), vec![self.sectors()]) },
            timed: true,
            timing: timing(self.page),
            erase_limit: 100_000,
            faults: None,
            memory_flips: 0.0,
            scrambler: true,
            power: None,
            link: LinkTiming {
                rate: BytesPerSecond(8_000_000_000),
                packet: Bytes(256),
                header: Bytes(24),
                flight: Span::from_nanos(300),
            },
            controller: Controller {
                arbitration: Arbitration::RoundRobin,
                shares: ArbitrationShares::from_feature(0x07),
                coalescing: CoalescingSettings::NONE,
            },
            link_threads: 1,
            interleaving: None,
            placement: self.architecture.place(settings.threads, 4).expect("four cores"),
            settings,
            precondition: Precondition { fill: self.fill, seed: self.seed },
            queue_entries: 64,
            depth: self.depth,
            vectors: self.queues as u16,
            priorities: vec![QueuePriority::Urgent],
            check: true,
            audit: Some(true),
            series: None,
            observed: Some(8),
            media: None,
            cuts: None,
            preallocates: false,
            retires_worn: false,
            narrate: false,
        }
    }

    /// A run of it in virtual time.
    ///
    /// # Panics
    /// Where it cannot be built.
    pub fn session(&self, phases: Vec<Phase>) -> Session {
        Session::new(&self.device(), "small", processor(), self.seed, phases, 0).expect("a device that can be built")
    }
}

/// Out-of-band bytes of a page: as many to each byte of it as common parts have.
fn oob(page: Bytes) -> u64 {
    page.0 * 224 / 4096
}

/// Flash times of an MLC part, whichever page.
pub fn timing(page: Bytes) -> Timing {
    let micros = Span::from_micros;
    Timing {
        bus: MegaTransfers(400),
        cycle: Span::from_nanos(25),
        cycles: CommandCycles::ONFI,
        oob_moved: Bytes(oob(page)),
        read: [micros(53); 3],
        program: [micros(900); 3],
        erase: micros(2300),
        further_plane: Span::ZERO,
        cache_commands: false,
        cache_read_busy: micros(3),
        cache_program_busy: micros(3),
        suspend: Suspend::OFF,
    }
}

/// A part ten times as fast: in real time, where threads look all the while whether it is ready, it tries as much and takes a tenth.
pub fn ten_times_as_fast(device: Device) -> Device {
    let Timing { read, program, erase, .. } = device.timing;
    let timing = Timing {
        read: read.map(|time| time / 10),
        program: program.map(|time| time / 10),
        erase: erase / 10,
        ..device.timing
    };
    Device { timing, ..device }
}

/// Two kinds of work that make one together, of a transfer.
const HALVES: [&str; 2] = ["nvmq_resolve_prp", "nvmq_start_dma"];

/// A processor whose prices are all alike: what is tested here is what the firmware does, not how fast.
pub fn processor() -> Processor {
    let nanos = Span::from_nanos;
    let price = |slots| Price { slots, stall: Span::ZERO };
    Processor {
        name: "plain".into(),
        clock: Hertz(1_000_000_000),
        cores: 60,
        threads_per_core: 4,
        thread_slot: nanos(2),
        core_slot: nanos(1),
        turn: price(50),
        send: price(20),
        switch: price(20),
        poll: price(0),
        hops: Hops {
            same_core: nanos(50),
            first: nanos(100),
            further: nanos(5),
            hardware: nanos(100),
            publish: nanos(60),
        },
        lines: LinePrices { transfer: nanos(200), memory: nanos(300), atomic: nanos(30), held: 1 << 16 },
        prices: Work::KEYS.iter().map(|work| price(if HALVES.contains(work) { 50 } else { 100 })).collect(),
        energy: None,
    }
}

/// Capacitors with so much energy, J, for drives on that processor.
pub fn budget(energy_j: f64) -> PowerBudget {
    PowerBudget { energy_j, hold_w: 2.0, die_w: 0.165, page: PowerBudget::page_on(&processor()) }
}

/// Reads, writes and everything else, of all sizes up to 64 KiB, unaligned, over a region small enough to collide.
pub fn mixed(name: &str, seed: u64, sectors: u64, ios: u64) -> Phase {
    let mut recipe = Recipe::fixed("mixed", Pattern::Random, 0.5, 4096);
    recipe.others.flush = 0.002;
    recipe.others.deallocate = 0.02;
    recipe.others.write_zeroes = 0.02;
    recipe.others.compare = 0.02;
    recipe.sizes = workload::Sizes::MeanBytes(9_000.0);
    recipe.alignment_bytes = Some(512);
    let source = recipe.source(&Parameters::new(sectors, seed)).expect("a drawable workload");
    Phase { ios: Some(ios), ..Phase::new(name, Box::new(source), Pace::Closed) }
}
