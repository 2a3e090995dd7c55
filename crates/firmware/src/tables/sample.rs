//! A small array and what its firmware is set to, for tests of tables and of policies.

use super::*;
use crate::architecture::ThreadCounts;
use crate::*;
use flash::{CellKind, Geometry, Shape};
use stage::{Outbox, Price};
use units::{Bytes, Span, StageId, Time};

/// Dies, planes of a die, blocks of a plane, pages of a block.
pub(crate) type Array = [u32; 4];

/// A drive with so many logical pages, of a sector each, and whatever else is asked of it.
pub(crate) fn drive([dies, planes, blocks, pages]: Array, mapped: u64, ask: impl FnOnce(&mut DriveShape)) -> Drive {
    let geometry = Geometry::new(Shape {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: dies,
        planes_per_die: planes,
        blocks_per_plane: blocks,
        pages_per_block: pages,
        page: Bytes(512),
        oob: Bytes(64),
        kind: CellKind::Slc,
    });
    let mut shape = DriveShape::plain(geometry.expect("an array"), vec![mapped]);
    ask(&mut shape);
    Drive::new(shape, 0).expect("a drive")
}

/// Settings of so many TRANS parts and one of each other, with neither a buffer nor a journal.
pub(crate) fn settings(trans: u16) -> Settings {
    Settings {
        threads: ThreadCounts::NONE,
        parts: PartCounts { nvmq: 1, ilock: 1, cache: 0, trans, log: 0, bgc: 1, fcmd: 1 },
        queues: QueueAllocation::Static,
        commands: 16,
        frames: 4,
        page_window: 4,
        lock: LockSettings { unit: Bytes(4096), forwarding: false, stalls: false, forwarding_lead: 1, regions: 1 },
        cache: CacheSettings { size: Bytes(0), non_blocking: false, bypass: false, spare_frames: 1, lines_per_lock: 1 },
        pipeline: PipelineSettings { poll: Span::from_micros(1) },
        split: AddressSplit::Plain,
        deal: BlockDeal::Interleaved,
        mapping: MappingScheme::Page,
        reclaim: ReclaimSettings {
            victim: VictimPolicy::Greedy,
            background: true,
            idle: Span::from_millis(1),
            background_free: 0.25,
            window: 4,
            window_per_group: 1,
            victims: 1,
            paced: false,
            wear_gap: 0,
            wear_share: 0.0,
        },
        journal: JournalSettings {
            interval: Span::from_millis(1),
            only_when_idle: false,
            patience: Span::ZERO,
            busy_share: 1.0,
            window: 4,
            window_per_group: 1,
        },
        flash: FlashSettings {
            multi_plane: false,
            gather: Span::ZERO,
            suspend: false,
            cache_commands: false,
            ahead: false,
        },
        mutation: None,
    }
}

/// The groups of a drive.
pub(crate) fn groups(drive: &Drive, settings: &Settings) -> BlockGroups {
    BlockGroups::new(&mut SharedMemory::default(), drive, settings)
}

/// All tables of a drive.
pub(crate) fn tables(drive: &Drive, settings: &Settings) -> Tables {
    Tables::new(&mut SharedMemory::default(), drive, settings, 0)
}

/// Does something in a turn, whose price nobody asks for.
pub(crate) fn in_turn<R>(act: impl FnOnce(&mut Turn<'_>) -> R) -> R {
    let (prices, mut outbox) = (vec![Price::default(); Work::KEYS.len()], Outbox::<Firmware>::default());
    act(&mut stage::Turn::in_real_time(StageId(0), Time::ZERO, &prices, &mut outbox))
}

/// The valid pages of a group, as a group that was filled with so many has them: the first ones.
pub(crate) fn first(pages: u32, valid: u32) -> Vec<bool> {
    (0..pages).map(|page| page < valid).collect()
}
