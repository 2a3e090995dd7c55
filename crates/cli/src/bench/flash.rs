//! The model of one flash channel: transactions on its bus and dies, and what pages keep.

use super::Bench;
use flash::{
    Channel, Contents, Labels, Media as _, Oob, Operation, PLANES_MAX, PageAddress, PageSlot, Transaction,
    TransactionTag,
};
use rig::config::{Layers, Resolved};
use std::sync::Arc;
use std::time::Instant;
use units::{BlockId, ChannelId, DieId, Lpn, Ppn};

pub(super) fn run(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let resolved = Layers::new().resolve()?;
    for (name, operation, depth) in [
        ("reads, 1 under way", Operation::Read, 1),
        ("reads, 128 under way", Operation::Read, 128),
        ("programs, 128 under way", Operation::Program, 128),
    ] {
        let count = bench.repeat(1_000_000, 1_000) as u32;
        let start = Instant::now();
        let digest = transactions(&resolved, operation, depth, count);
        bench.put(name, start.elapsed().as_secs_f64() * 1e9 / f64::from(count), "ns each", digest);
    }
    contents(bench, &resolved)
}

/// Keeps `depth` transactions under way on dies in a scrambled order; a digest of when each was over.
fn transactions(resolved: &Resolved, operation: Operation, depth: u32, count: u32) -> u64 {
    let geometry = &resolved.device.geometry;
    let (dies, shape) = (geometry.dies_per_channel(), geometry.shape());
    let mut channel = Channel::new(geometry, &resolved.device.timing, ChannelId(0));
    let (mut finished, mut now, mut submitted, mut done, mut digest) = (Vec::new(), units::Time::ZERO, 0u32, 0, 0u64);
    let mut submit = |channel: &mut Channel, now| {
        let random = submitted.wrapping_mul(0x9e37_79b9) >> 8;
        let die = DieId((random % dies) as u16);
        let (block, page) = (random / dies % shape.blocks_per_plane, submitted % shape.pages_per_block);
        let mut slots = [PageSlot::default(); PLANES_MAX];
        slots[0].ppn = geometry.ppn(PageAddress { channel: ChannelId(0), die, plane: 0, block, page });
        channel.submit(
            now,
            Transaction {
                operation,
                die,
                tag: TransactionTag(submitted),
                slot_count: 1,
                pieces: [0; PLANES_MAX],
                slots,
            },
        );
        submitted += 1;
    };
    (0..depth).for_each(|_| submit(&mut channel, now));
    while done < count {
        now = channel.next_event().unwrap_or(now);
        channel.poll(now, &mut finished);
        for over in finished.drain(..) {
            digest = (digest ^ now.picos() ^ u64::from(over.transaction.tag.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            done += 1;
            submit(&mut channel, now);
        }
    }
    digest
}

/// Logical pages lie where physical pages of the same number are.
#[derive(Debug)]
struct InPlace;

impl Labels for InPlace {
    fn label(&self, ppn: Ppn) -> Lpn {
        Lpn(ppn.0)
    }
}

/// What the pages of a channel keep: preconditioned, read at random, erased and programmed.
fn contents(bench: &mut Bench<'_>, resolved: &Resolved) -> anyhow::Result<()> {
    let geometry = &resolved.device.geometry;
    let pages = geometry.shape().pages_per_block;
    let blocks = (0..geometry.block_count()).map(BlockId).filter(|block| geometry.die_of(*block).0 == ChannelId(0));
    let blocks: Vec<BlockId> = blocks.take(bench.repeat(10_000, 8) as usize).collect();
    let mut contents = Contents::for_channel(geometry, ChannelId(0), 1, resolved.device.erase_limit);
    let per_page = |start: Instant, count: u64| start.elapsed().as_secs_f64() * 1e9 / count as f64;
    let (all, start) = (blocks.len() as u64 * u64::from(pages), Instant::now());
    contents.follow(Arc::new(InPlace));
    for block in &blocks {
        contents.precondition(*block, pages)?;
    }
    bench.put("preconditioning", per_page(start, all), "ns a page", all);
    let (count, mut payload, mut digest) = (bench.repeat(1_000_000, 1_000) as u32, vec![0; contents.page_words()], 0);
    let start = Instant::now();
    for index in 0..count {
        let random = index.wrapping_mul(0x9e37_79b9) >> 8;
        let block = blocks[(random / pages) as usize % blocks.len()];
        contents.read(geometry.page(block, random % pages), &mut payload)?;
        digest = (digest ^ payload[0]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    bench.put("reading at random, a fingerprint a sector", per_page(start, count.into()), "ns a page", digest);
    let rewritten = &blocks[..blocks.len().min(1_000)];
    let start = Instant::now();
    for block in rewritten {
        contents.erase(*block)?;
        for page in 0..pages {
            contents.program(
                geometry.page(*block, page),
                Oob { lpn: Lpn(page), owner: 0, sequence: page.into() },
                &payload,
            )?;
        }
    }
    let count = rewritten.len() as u64 * u64::from(pages);
    bench.put("erasing and programming", per_page(start, count), "ns a page", count);
    Ok(())
}
