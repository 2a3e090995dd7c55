//! Pages hold what was programmed until their block is erased, misuse is caught, and memory grows only where pages are
//! touched.

use flash::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::*;

fn shape() -> Shape {
    Shape {
        channels: 2,
        packages_per_channel: 1,
        dies_per_package: 3,
        planes_per_die: 2,
        blocks_per_plane: 4,
        pages_per_block: 6,
        page: Bytes(1024),
        oob: Bytes(64),
        kind: CellKind::Tlc,
    }
}

const WORDS: u32 = 2;
const LIMIT: u32 = 3;
/// Blocks 2 and 3 are on channel 1: neighbours share a die, then comes the next channel.
const BLOCK: BlockId = BlockId(2);

fn contents() -> (Geometry, Contents) {
    let geometry = Geometry::new(shape()).unwrap();
    let contents = Contents::for_channel(&geometry, ChannelId(1), WORDS, LIMIT);
    (geometry, contents)
}

fn oob(lpn: u32, sequence: u64) -> Oob {
    Oob { lpn: Lpn(lpn), owner: 5, sequence }
}

#[test]
fn a_programmed_page_reads_back_and_an_erased_one_is_empty() {
    let (geometry, mut contents) = contents();
    let ppn = geometry.page(BLOCK, 0);
    let mut payload = [0; 4];
    assert_eq!(contents.read(ppn, &mut payload), Ok(None));
    assert_eq!(payload, [u64::MAX; 4]);
    contents.program(ppn, oob(7, 99), &[1, 2, 3, 4]).unwrap();
    assert_eq!(contents.read(ppn, &mut payload), Ok(Some(oob(7, 99))));
    assert_eq!(payload, [1, 2, 3, 4]);
    assert_eq!((contents.written_pages(BLOCK), contents.erase_count(BLOCK)), (Ok(1), Ok(0)));
    contents.erase(BLOCK).unwrap();
    assert_eq!(contents.read(ppn, &mut payload), Ok(None));
    assert_eq!((contents.written_pages(BLOCK), contents.erase_count(BLOCK)), (Ok(0), Ok(1)));
}

#[test]
fn programming_twice_out_of_order_or_elsewhere_is_caught() {
    let (geometry, mut contents) = contents();
    let page = |page| geometry.page(BLOCK, page);
    contents.program(page(0), oob(1, 1), &[0; 4]).unwrap();
    contents.program(page(3), oob(2, 2), &[0; 4]).unwrap();
    assert_eq!(contents.program(page(0), oob(1, 3), &[0; 4]), Err(MediaFault::ProgrammedTwice { ppn: page(0) }));
    let fault = MediaFault::OutOfOrder { ppn: page(2), expected: 4 };
    assert_eq!(contents.program(page(2), oob(1, 3), &[0; 4]), Err(fault));
    assert_eq!(contents.read(page(2), &mut [0; 4]), Ok(None));
    let elsewhere = BlockId(0);
    let fault = MediaFault::WrongChannel { block: elsewhere, channel: ChannelId(1) };
    assert_eq!(contents.program(geometry.page(elsewhere, 0), oob(1, 3), &[0; 4]), Err(fault));
    assert_eq!(contents.erase(elsewhere), Err(fault));
    let beyond = BlockId(geometry.block_count() + 2);
    assert!(matches!(contents.erase(beyond), Err(MediaFault::WrongChannel { .. })));
}

#[test]
fn a_block_wears_out() {
    let (geometry, mut contents) = contents();
    for _ in 0..LIMIT {
        contents.erase(BLOCK).unwrap();
    }
    contents.program(geometry.page(BLOCK, 0), oob(1, 1), &[0; 4]).unwrap();
    assert_eq!(contents.erase(BLOCK), Err(MediaFault::WornOut { block: BLOCK, limit: LIMIT }));
    assert_eq!(contents.read(geometry.page(BLOCK, 0), &mut [0; 4]), Ok(Some(oob(1, 1))));
    assert_eq!(contents.erase_count(BlockId(3)), Ok(0));
}

/// Pages hold the logical page of forty more.
#[derive(Debug)]
struct Shifted;

impl Labels for Shifted {
    fn label(&self, ppn: Ppn) -> Lpn {
        Lpn(ppn.0 + 40)
    }
}

#[test]
fn preconditioned_pages_hold_the_pattern_of_their_sectors() {
    let (geometry, mut contents) = contents();
    contents.follow(Arc::new(Shifted));
    contents.precondition(BLOCK, 4).unwrap();
    contents.precondition(BlockId(3), 6).unwrap();
    assert!(contents.precondition(BLOCK, 1).is_err());
    assert_eq!(contents.written_pages(BLOCK), Ok(4));
    let first = geometry.page(BLOCK, 0);
    assert_eq!(contents.program(first, oob(1, 1), &[0; 4]), Err(MediaFault::ProgrammedTwice { ppn: first }));
    // The rest of the block is programmed as usual, beside the pages that exist as a rule only.
    contents.program(geometry.page(BLOCK, 4), oob(9, 9), &[9; 4]).unwrap();
    let mut payload = [0; 4];
    let held = Lpn(geometry.page(BLOCK, 2).0 + 40);
    let expected = Oob { lpn: held, owner: 0, sequence: 0 };
    assert_eq!(contents.read(geometry.page(BLOCK, 2), &mut payload), Ok(Some(expected)));
    assert_eq!(contents.labelled(geometry.page(BLOCK, 2)), Some(held));
    let word = |sector: u64, word| pattern(Lba(2 * u64::from(held.0) + sector), 0, word);
    assert_eq!(payload, [word(0, 0), word(0, 1), word(1, 0), word(1, 1)]);
    contents.read(geometry.page(BLOCK, 4), &mut payload).unwrap();
    assert_eq!(payload, [9; 4]);
    contents.erase(BLOCK).unwrap();
    for page in 0..6 {
        assert_eq!(contents.read(geometry.page(BLOCK, page), &mut payload), Ok(None));
    }
    assert_eq!(contents.labelled(geometry.page(BlockId(3), 5)), Some(Lpn(geometry.page(BlockId(3), 5).0 + 40)));
}

/// Flash is as worn as whoever used it before has left it.
#[test]
fn erases_before_the_run_count_towards_what_a_block_stands() {
    let (_, mut contents) = contents();
    contents.begin_with_erases(BLOCK, LIMIT - 1).unwrap();
    assert_eq!([contents.erase_count(BLOCK), contents.erase_count(BlockId(3))], [Ok(LIMIT - 1), Ok(0)]);
    contents.erase(BLOCK).unwrap();
    assert_eq!(contents.erase(BLOCK), Err(MediaFault::WornOut { block: BLOCK, limit: LIMIT }));
}

#[test]
fn what_power_loss_cuts_short_cannot_be_read() {
    let (geometry, mut contents) = contents();
    let page = |page| geometry.page(BLOCK, page);
    contents.follow(Arc::new(Shifted));
    contents.precondition(BLOCK, 1).unwrap();
    contents.tear_program(page(1)).unwrap();
    assert_eq!(contents.read(page(1), &mut [0; 4]), Err(MediaFault::Unreadable { ppn: page(1) }));
    assert!(contents.read(page(0), &mut [0; 4]).unwrap().is_some());
    assert_eq!(contents.program(page(1), oob(1, 1), &[0; 4]), Err(MediaFault::ProgrammedTwice { ppn: page(1) }));
    contents.program(page(2), oob(1, 1), &[0; 4]).unwrap();
    contents.tear_erase(BLOCK).unwrap();
    for torn in 0..6 {
        assert_eq!(contents.read(page(torn), &mut [0; 4]), Err(MediaFault::Unreadable { ppn: page(torn) }));
        assert!(contents.program(page(torn), oob(1, 1), &[0; 4]).is_err());
    }
    contents.erase(BLOCK).unwrap();
    assert_eq!(contents.read(page(0), &mut [0; 4]), Ok(None));
}

#[test]
fn a_terabyte_is_small_until_it_is_written() {
    let geometry = Geometry::new(Shape {
        channels: 16,
        packages_per_channel: 16,
        dies_per_package: 4,
        planes_per_die: 4,
        blocks_per_plane: 256,
        pages_per_block: 256,
        page: Bytes(4096),
        kind: CellKind::Mlc,
        ..shape()
    })
    .unwrap();
    let mut channels: Vec<_> =
        (0..16).map(|channel| Contents::for_channel(&geometry, ChannelId(channel), 1, 3_000)).collect();
    let reserved = |channels: &[Contents]| channels.iter().map(|contents| contents.reserved().0).sum::<u64>();
    let empty = reserved(&channels);
    assert!(empty <= Bytes::mib(1_100).0, "{}", Bytes(empty));
    // Preconditioning needs nothing on top; the first program after it needs one block's chunk, and erases give it
    // back.
    let block = BlockId(0);
    channels[0].follow(Arc::new(Shifted));
    channels[0].precondition(block, 255).unwrap();
    assert_eq!(reserved(&channels), empty);
    channels[0].program(geometry.page(block, 255), oob(1, 1), &[0; 8]).unwrap();
    let one_chunk = reserved(&channels);
    assert!((256 * 80..256 * 80 + 128).contains(&(one_chunk - empty)), "{}", one_chunk - empty);
    for page in 0..1_000 {
        channels[0].erase(block).unwrap();
        channels[0].program(geometry.page(block, page % 256), oob(1, 1), &[0; 8]).unwrap();
    }
    assert_eq!(reserved(&channels), one_chunk);
}

proptest! {
    /// Against a plain map from page to what it holds, over all pages of a channel.
    #[test]
    fn contents_agree_with_a_plain_map(steps in prop::collection::vec((0u32..144, 0u32..5, any::<u32>()), 1..300)) {
        let (geometry, mut contents) = contents();
        let mut plain: BTreeMap<Ppn, (Oob, [u64; 4])> = BTreeMap::new();
        for (ppn, action, value) in steps {
            let ppn = Ppn(ppn);
            let block = geometry.block_of(ppn);
            let here = geometry.address(ppn).channel == ChannelId(1);
            let of_block = geometry.page(block, 0)..=geometry.page(block, 5);
            if action == 0 {
                if contents.erase(block).is_ok() {
                    plain.retain(|page, _| !of_block.contains(page));
                }
            } else {
                let expected = here && plain.range(of_block).next_back().is_none_or(|(last, _)| *last < ppn);
                let entry = (oob(value / 4, value.into()), [u64::from(value); 4]);
                prop_assert_eq!(contents.program(ppn, entry.0, &entry.1).is_ok(), expected);
                if expected {
                    plain.insert(ppn, entry);
                }
            }
        }
        for ppn in (0..144).map(Ppn).filter(|ppn| geometry.address(*ppn).channel == ChannelId(1)) {
            let mut payload = [0; 4];
            let oob = contents.read(ppn, &mut payload).unwrap();
            prop_assert_eq!(oob.map(|oob| (oob, payload)), plain.get(&ppn).copied());
        }
    }
}
