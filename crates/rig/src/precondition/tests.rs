//! What rules write at once is what writing page by page leaves, on a small drive, for every split, and what the firmware leaves.

use super::*;
use crate::config::Layers;
use crate::hardware::Fate;
use firmware::architecture::{ARCHITECTURES, Drawing};
use firmware::{GroupState, shares, trans_of, write_points_of};
use std::collections::BTreeMap;
use units::{BlockId, DieId, Lpn, Ppn};

struct Filled {
    drive: Arc<Drive>,
    settings: Settings,
    tables: Tables,
    contents: Vec<Contents>,
}

fn small(sets: &[&str]) -> Layers {
    let layers = Layers::new().flag("--device", "small").expect("a device");
    sets.iter().try_fold(layers, |layers, set| layers.set(set)).expect("keys")
}

fn filled(fill: Fill, seed: u64, sets: &[&str]) -> Filled {
    let device = small(sets).resolve().expect("a configuration").plan();
    let (Drawing { tables, .. }, drive) = device.draw().expect("a device that can be built");
    let mut tables = Tables::clone(&tables);
    let geometry = drive.geometry();
    let channels = (0..geometry.shape().channels as u16).map(ChannelId);
    let mut contents: Vec<Contents> = channels.map(|at| Contents::for_channel(geometry, at, 1, 100)).collect();
    let precondition = Precondition { fill, seed };
    precondition.write(device.architecture, (&drive, &device.settings), &mut tables, &mut contents);
    Filled { drive, settings: device.settings, tables, contents }
}

impl Filled {
    fn labelled(&self, ppn: Ppn) -> Option<Lpn> {
        let geometry = self.drive.geometry();
        self.contents[geometry.die_of(geometry.block_of(ppn)).0.index()].labelled(ppn)
    }

    /// How many pages of each die hold logical ones.
    fn on_dies(&self) -> BTreeMap<(ChannelId, DieId), u32> {
        let (groups, geometry) = (&self.tables.groups, self.drive.geometry());
        let mut dies = BTreeMap::new();
        for ppn in (0..geometry.page_count()).map(Ppn) {
            if groups.owner(groups.of(ppn)).is_some() && self.labelled(ppn).is_some() {
                *dies.entry(geometry.die_of(geometry.block_of(ppn))).or_default() += 1;
            }
        }
        dies
    }

    /// The map is what the pages say, valid pages are those that it points to, and counts agree.
    fn agrees_with(&self, map: &BTreeMap<Lpn, Ppn>) {
        let groups = &self.tables.groups;
        assert_eq!(map.len() as u32, self.drive.pages());
        let mut counts = vec![0; groups.count() as usize];
        for (&lpn, &ppn) in map {
            assert_eq!(self.tables.mapping.get(lpn), Some(ppn), "{lpn}");
            assert_eq!(self.labelled(ppn), Some(lpn), "{ppn}");
            counts[groups.of(ppn) as usize] += 1;
        }
        for ppn in (0..self.drive.geometry().page_count()).map(Ppn) {
            let mapped = self.labelled(ppn).is_some_and(|lpn| map.get(&lpn) == Some(&ppn));
            assert_eq!(groups.is_valid(ppn), mapped, "{ppn}");
        }
        assert!((0..groups.count()).all(|group| groups.valid_count(group) == counts[group as usize]));
    }
}

/// Writes every page in order, as TRANS deals them to its open groups, one after another.
fn page_by_page(filled: &Filled) -> BTreeMap<Lpn, Ppn> {
    struct Course {
        free: std::vec::IntoIter<u32>,
        points: usize,
        left: u64,
        open: Vec<(u32, u32)>,
        cursor: usize,
    }
    let Filled { drive, settings, tables, .. } = filled;
    let (groups, threads) = (&tables.groups, settings.parts.trans);
    let pages = shares(settings.split, drive.pages(), threads).into_iter().zip(0u32..);
    let mut courses: Vec<Course> = pages
        .map(|(left, thread)| {
            let owned: Vec<u32> = (0..groups.count()).filter(|&group| groups.owner(group) == Some(thread)).collect();
            let points = write_points_of(groups, thread) as usize;
            Course { free: owned.into_iter(), points, left, open: Vec::new(), cursor: 0 }
        })
        .collect();
    let place = |lpn: Lpn| {
        let course = &mut courses[usize::from(trans_of(settings.split, lpn, threads))];
        if course.open.is_empty() {
            let needed = course.left.div_ceil(groups.pages().into()) as usize;
            course.open = course.free.by_ref().take(needed.min(course.points)).map(|group| (group, 0)).collect();
            course.cursor = 0;
        }
        let (group, next) = &mut course.open[course.cursor];
        let ppn = groups.page(*group, *next);
        *next += 1;
        course.left -= 1;
        if next.is_multiple_of(groups.planes()) {
            course.cursor = (course.cursor + 1) % course.open.len();
        }
        if course.open.iter().all(|&(_, next)| next == groups.pages()) {
            course.open.clear();
        }
        (lpn, ppn)
    };
    (0..drive.pages()).map(Lpn).map(place).collect()
}

/// What the flash of a fresh drive holds when the firmware has written every page once, in order.
fn written_in_order(pages: u32, sets: &[&str]) -> Vec<Contents> {
    let flags = [("--workload", "seqwrite"), ("--precondition", "none"), ("--ios", &pages.to_string())];
    let layers = flags.iter().try_fold(small(sets), |layers, (flag, value)| layers.flag(flag, value));
    let resolved = layers.and_then(|layers| layers.set("workload.streams=1")).and_then(Layers::resolve);
    let resolved = resolved.expect("a configuration");
    let mut session = resolved.session(&resolved.plan(), resolved.phases(), 0).expect("it can be built");
    session.next_phase().expect("one phase").expect("it answers");
    session.cut(&mut || Fate::Torn).expect("all was right").contents
}

/// Writes what each page of flash holds again, oldest group first: of a page that was written twice the later place counts.
fn again_by_age(filled: &Filled) -> BTreeMap<Lpn, Ppn> {
    let (groups, geometry) = (&filled.tables.groups, filled.drive.geometry());
    let mut by_age: Vec<u32> = (0..groups.count()).filter(|&group| groups.owner(group).is_some()).collect();
    by_age.sort_by_key(|&group| (groups.state(group) == GroupState::Open, groups.closed_at(group)));
    let mut map = BTreeMap::new();
    for group in by_age {
        for ppn in (0..groups.pages()).map(|position| groups.page(group, position)) {
            if let Some(lpn) = filled.labelled(ppn) {
                let owner = trans_of(filled.settings.split, lpn, filled.settings.parts.trans);
                assert_eq!(Some(u32::from(owner)), groups.owner(group), "{lpn} in {}", geometry.block_of(ppn));
                map.insert(lpn, ppn);
            }
        }
    }
    map
}

const SPLITS: [[&str; 2]; 5] = [
    ["threads.trans=1", "firmware.address_split=xor"],
    ["threads.trans=2", "firmware.address_split=plain"],
    ["threads.trans=3", "firmware.address_split=xor"],
    ["threads.trans=3", "firmware.address_split=plain"],
    ["threads.trans=4", "firmware.address_split=xor"],
];

#[test]
fn the_deal_alone_says_whose_a_group_is() {
    for threads in 1..=5u32 {
        let count = format!("threads.trans={threads}");
        let groups = filled(Fill::Sequential, 1, &[&count]).tables.groups;
        for thread in 0..threads {
            let owned = (0..groups.count()).filter(|&group| groups.owner(group) == Some(thread));
            for (group, place) in owned.zip(0..) {
                assert_eq!(groups.dealt(thread, place), Some(group), "place {place} of thread {thread} of {threads}");
                assert_eq!(groups.dealt_place(group), Some(place), "group {group} of {threads} threads");
            }
        }
    }
    let bad: &[&str] = &["threads.trans=3", "device.media.faults=true", "device.media.factory_bad=0.05"];
    for other in [&["threads.trans=3", "firmware.block_deal=channel"], bad] {
        let groups = filled(Fill::Sequential, 1, other).tables.groups;
        assert_eq!((groups.dealt(0, 0), groups.dealt_place(0)), (None, None), "{other:?}");
    }
}

#[test]
fn a_drive_filled_in_order_is_as_if_written_page_by_page() {
    for sets in SPLITS {
        let filled = filled(Fill::Sequential, 1, &sets);
        filled.agrees_with(&page_by_page(&filled));
    }
}

/// Threads are not in step as the rule is, so that a page may be elsewhere; but each die has what it says, give or take a quarter.
#[test]
fn a_drive_filled_in_order_is_spread_over_its_dies_as_the_firmware_spreads_it() {
    let architectures =
        ARCHITECTURES.iter().map(|architecture| format!("platform.architecture={}", architecture.name()));
    let threads = [1, 3].map(|threads| format!("threads.trans={threads}"));
    for set in architectures.chain(threads) {
        let sets = ["cache.size_bytes=64KiB", "cache.spare_frames=16", "workload.warm_up_ios=0", &set];
        let mut filled = filled(Fill::Sequential, 1, &sets);
        let ruled = filled.on_dies();
        filled.contents = written_in_order(filled.drive.pages(), &sets);
        let written = filled.on_dies();
        let is_like = |(die, pages): (_, &u32)| 4 * ruled[die].abs_diff(*pages) <= ruled[die];
        assert!(
            written.len() == ruled.len() && written.iter().all(is_like),
            "{set}: {written:?}, by the rule {ruled:?}"
        );
    }
}

#[test]
fn an_aged_drive_is_what_its_pages_say_when_written_again_by_age() {
    for sets in SPLITS {
        for (times, seed) in [(0.1, 1), (1.0, 2), (3.0, 3)] {
            let filled = filled(Fill::Random { times }, seed, &sets);
            filled.agrees_with(&again_by_age(&filled));
        }
    }
}

/// Flash is as worn as the firmware takes it to be: errors, limits and recovery go by what flash counts.
#[test]
fn blocks_have_been_erased_as_often_as_the_tables_say() {
    for (times, set) in [(0.0, "page"), (0.3, "page"), (7.5, "page"), (7.5, "1:8")] {
        let mapping = format!("firmware.mapping={set}");
        let filled = filled(Fill::Random { times }, 1, &[&mapping]);
        let (groups, geometry) = (&filled.tables.groups, filled.drive.geometry());
        let mut most = 0;
        for block in (0..geometry.block_count()).map(BlockId) {
            let counted = groups.erase_count(groups.of(geometry.page(block, 0)));
            assert_eq!(filled.contents[geometry.die_of(block).0.index()].erase_count(block), Ok(counted), "{block}");
            most = most.max(counted);
        }
        // After few overwrites there may be none.
        let expected = Fill::Random { times }.erases_max();
        assert!(most == expected || most < expected && times < 1.0, "{times} times, {set}: {most} erases");
    }
}

#[test]
fn older_groups_hold_less_and_every_seed_another_order() {
    let [one, same, other] = [1, 1, 2].map(|seed| filled(Fill::Random { times: 3.0 }, seed, &[]));
    let groups = &one.tables.groups;
    let mut valid: Vec<(u32, u32)> = (0..groups.count())
        .filter(|&group| groups.state(group) == GroupState::Closed && groups.valid_count(group) > 0)
        .map(|group| (groups.closed_at(group), groups.valid_count(group)))
        .collect();
    valid.sort_unstable();
    let mean = |part: &[(u32, u32)]| part.iter().map(|&(_, count)| count).sum::<u32>() / part.len() as u32;
    let quarter = valid.len() / 4;
    let (oldest, youngest) = (mean(&valid[..quarter]), mean(&valid[valid.len() - quarter..]));
    assert!(oldest * 5 < youngest * 4, "{oldest} of the oldest, {youngest} of the youngest");
    assert_eq!(again_by_age(&one), again_by_age(&same));
    assert_ne!(again_by_age(&one), again_by_age(&other));
}

#[test]
fn blocks_of_a_hybrid_drive_hold_their_pages_at_their_offsets() {
    for sets in SPLITS {
        let filled = filled(Fill::Sequential, 1, &[sets[0], sets[1], "firmware.mapping=1:8"]);
        let held = |ppn: Ppn| filled.labelled(ppn).map(|lpn| (lpn, ppn));
        let map: BTreeMap<Lpn, Ppn> = (0..filled.drive.geometry().page_count()).map(Ppn).filter_map(held).collect();
        filled.agrees_with(&map);
        let programmed = |block| filled.contents.iter().find_map(|channel| channel.written_pages(block).ok());
        let blocks = (0..filled.drive.geometry().block_count()).map(BlockId);
        assert_eq!(blocks.filter_map(programmed).sum::<u32>(), filled.drive.pages());
    }
}
