//! Where pages are found, against a list of where they were put; and what recovery makes of what is on flash.

use super::*;
use crate::MappingScheme;
use crate::tables::{Mapping, Tables, sample};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Logical pages of two threads.
const PAGES: u32 = 290;
/// Pages of a group: four of each of two planes.
const IN_GROUP: u32 = 8;
/// Log groups of a set.
const LOGS: u16 = 2;

/// Two threads with two lanes each, and sets of three logical blocks.
fn tables() -> (Tables, Arc<HybridMap>) {
    let mapping = MappingScheme::Hybrid { log_blocks: LOGS, data_blocks: 3 };
    let tables = sample::tables(
        &sample::drive([4, 2, 32, IN_GROUP / 2], PAGES.into(), |_| {}),
        &Settings { mapping, ..sample::settings(2) },
    );
    let Mapping::Hybrid(map) = &tables.mapping else { unreachable!("it was asked for") };
    let map = Arc::clone(map);
    (tables, map)
}

/// A hybrid map that is written to, and a plain list of what it should say.
struct Model {
    tables: Tables,
    map: Arc<HybridMap>,
    places: BTreeMap<Lpn, Ppn>,
    /// Positions written of each group that is in use.
    written: BTreeMap<u32, BTreeSet<u32>>,
    /// Slot and group of the log groups of each set, oldest first.
    logs: BTreeMap<u32, Vec<(u32, u32)>>,
    retiring: BTreeMap<u32, u32>,
    /// What each position of the log in a slot holds.
    held: BTreeMap<u32, Vec<Place>>,
}

impl Model {
    fn new() -> Self {
        let (tables, map) = tables();
        let (places, written, logs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Model { tables, map, places, written, logs, retiring: BTreeMap::new(), held: BTreeMap::new() }
    }

    fn take_group(&mut self, trans: u16) -> u32 {
        let mut own = self.tables.groups.owned(trans.into());
        let group = own.find(|group| !self.written.contains_key(group)).expect("a free group");
        self.written.insert(group, BTreeSet::new());
        group
    }

    fn put(&mut self, lpn: Lpn, at: Ppn) {
        let old = self.places.insert(lpn, at);
        sample::in_turn(|turn| self.tables.groups.exchange_valid(turn, old, Some(at)));
    }

    /// What a group holds is nowhere any more, and the group is free.
    fn empty(&mut self, group: u32) {
        let groups = &self.tables.groups;
        for at in (0..IN_GROUP).map(|position| groups.page(group, position)).filter(|&at| groups.is_valid(at)) {
            sample::in_turn(|turn| groups.exchange_valid(turn, Some(at), None));
            self.places.retain(|_, place| *place != at);
        }
        self.written.remove(&group);
    }

    /// A page goes to the youngest log group of its set, or to another; the oldest makes room for it.
    fn log(&mut self, lpn: Lpn) {
        let (map, place) = (Arc::clone(&self.map), self.map.place(lpn));
        let logs = self.logs.entry(place.set).or_default();
        let has_room = logs.last().is_some_and(|(_, group)| self.written[group].len() < IN_GROUP as usize);
        if !has_room {
            if logs.len() > LOGS.into() {
                self.drop_log(place.set, lpn.0 as usize % (usize::from(LOGS) + 1));
            }
            let used: Vec<u32> = self.logs.values().flatten().map(|(slot, _)| *slot).collect();
            let slot = map.share(place.trans).slots.clone().find(|slot| !used.contains(slot)).expect("a free slot");
            let group = self.take_group(place.trans);
            sample::in_turn(|turn| map.add_log(turn, place.set, slot, group));
            self.logs.entry(place.set).or_default().push((slot, group));
            self.held.insert(slot, Vec::new());
        }
        let &(slot, group) = self.logs[&place.set].last().expect("a log group");
        let position = self.written[&group].len() as u32;
        sample::in_turn(|turn| map.append(turn, slot, position, place));
        self.written.entry(group).or_default().insert(position);
        self.held.entry(slot).or_default().push(place);
        self.put(lpn, self.tables.groups.page(group, position));
    }

    fn drop_log(&mut self, set: u32, which: usize) {
        let (slot, group) = self.logs.get_mut(&set).expect("the set has some").remove(which);
        sample::in_turn(|turn| self.map.remove_log(turn, set, slot));
        self.held.remove(&slot);
        self.empty(group);
    }

    /// A page's set loses one of its log groups, if it has any.
    fn forget(&mut self, lpn: Lpn) {
        let set = self.map.place(lpn).set;
        let count = self.logs.get(&set).map_or(0, Vec::len);
        if count > 0 {
            self.drop_log(set, lpn.0 as usize % count);
        }
    }

    /// A page goes to its offset in the data group of its block, if that was not written.
    fn home(&mut self, lpn: Lpn) {
        let place = self.map.place(lpn);
        let group = self.map.data_unpriced(place.block).unwrap_or_else(|| {
            let group = self.take_group(place.trans);
            sample::in_turn(|turn| self.map.set_data(turn, place.block, group));
            group
        });
        if self.written.entry(group).or_default().insert(place.offset) {
            self.put(lpn, self.tables.groups.page(group, place.offset));
        }
    }

    /// A block gets a fresh data group, and what is left in the old one is found there still; or that is lost.
    fn renew(&mut self, lpn: Lpn) {
        let place = self.map.place(lpn);
        if let Some(old) = self.retiring.remove(&place.block) {
            self.empty(old);
            sample::in_turn(|turn| self.map.set_retiring(turn, place.block, None));
        } else if let Some(old) = self.map.data_unpriced(place.block) {
            let group = self.take_group(place.trans);
            sample::in_turn(|turn| {
                self.map.set_retiring(turn, place.block, Some(old));
                self.map.set_data(turn, place.block, group);
            });
            self.retiring.insert(place.block, old);
        }
    }

    /// What must be copied of a page's block when its set is merged: all that is not in its data group.
    fn source(&self, lpn: Lpn) -> Option<Ppn> {
        let data = self.map.data_unpriced(self.map.place(lpn).block);
        self.places.get(&lpn).copied().filter(|&at| data != Some(self.tables.groups.of(at)))
    }

    /// The map that recovery makes of the data groups, of what the log groups hold, and of which pages are valid.
    fn recovered(&self) -> Arc<HybridMap> {
        let (tables, map) = tables();
        for share in [map.share(0), map.share(1)] {
            let data = share.blocks.clone().filter_map(|block| Some((block, self.map.data_unpriced(block)?)));
            data.for_each(|(block, group)| map.recover_data(block, group));
        }
        for (&set, logs) in &self.logs {
            for &(slot, group) in logs {
                let trans = self.tables.groups.owner(group).expect("a data group") as u16;
                let held = (0..).zip(self.held[&slot].iter().copied());
                map.recover_log(trans, set, (slot - map.share(trans).slots.start, group), held);
            }
        }
        for &group in self.written.keys() {
            let groups = &self.tables.groups;
            tables
                .groups
                .fill(group, &(0..IN_GROUP).map(|at| groups.is_valid(groups.page(group, at))).collect::<Vec<_>>());
        }
        map
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_page_is_found_where_it_was_put_last(
        steps in prop::collection::vec((0u8..12, 0u32..PAGES, 0u32..24), 1..160),
        is_narrow: bool,
    ) {
        let mut model = Model::new();
        for (what, wide, narrow) in steps {
            // Few pages fill the log groups of their set; many are of all sets.
            let lpn = Lpn(if is_narrow { narrow } else { wide });
            match what {
                0 => model.renew(lpn),
                1 => model.forget(lpn),
                2 | 3 => model.home(lpn),
                _ => model.log(lpn),
            }
        }
        let (map, logs) = (&model.map, &model.logs);
        for lpn in (0..PAGES).map(Lpn) {
            prop_assert_eq!(map.get(lpn), model.places.get(&lpn).copied(), "{}", lpn);
            let (place, load) = (map.place(lpn), |place| sample::in_turn(|turn| map.load(turn, place)));
            prop_assert_eq!(load(place), map.get(lpn), "{}", lpn);
            let source = sample::in_turn(|turn| map.source(turn, place.trans, place.block, place.offset));
            prop_assert_eq!(source, model.source(lpn), "{}", lpn);
        }
        for (&set, logs) in logs {
            prop_assert_eq!(map.logs(set).collect::<Vec<_>>(), logs.iter().map(|(slot, _)| *slot).collect::<Vec<_>>());
            for &(slot, _) in logs {
                for (at, place) in (0..).zip(&model.held[&slot]) {
                    prop_assert_eq!(sample::in_turn(|turn| map.held(turn, slot, at)), place.member);
                }
            }
        }
        if model.retiring.is_empty() {
            let recovered = model.recovered();
            for lpn in (0..PAGES).map(Lpn) {
                prop_assert_eq!(recovered.get(lpn), map.get(lpn), "{}", lpn);
            }
            for trans in [0, 1] {
                let of_thread = |(slot, _): &(u32, u32)| map.share(trans).slots.contains(slot);
                let all = logs.iter().flat_map(|(&set, logs)| logs.iter().map(move |log| (set, *log)));
                let own = all.filter(|(_, log)| of_thread(log)).map(|(set, log)| (set, log.0, log.1));
                let mut own: Vec<_> = own.collect();
                own.sort_by_key(|log| log.1);
                prop_assert_eq!(recovered.recovered_logs(trans), own);
            }
        }
    }
}

#[test]
fn threads_share_neither_blocks_nor_sets_nor_slots() {
    let (tables, map) = tables();
    assert_eq!((map.lanes(), map.merges_at_a_time(), map.logs_per_set()), (2, 2, LOGS.into()));
    let [one, other] = [0, 1].map(|trans| map.share(trans));
    assert_eq!((one.pages, other.pages), (145, 145));
    assert_eq!(
        [one.blocks.end, one.sets.end, one.slots.end],
        [other.blocks.start, other.sets.start, other.slots.start]
    );
    let mut found = BTreeSet::new();
    for lpn in (0..PAGES).map(Lpn) {
        let place = map.place(lpn);
        assert!(found.insert((place.block, place.offset)), "{lpn} shares its place");
        let share = map.share(place.trans);
        assert!(share.blocks.contains(&place.block) && share.sets.contains(&place.set), "{lpn}");
        assert_eq!(map.page(place.trans, place.block, place.offset), lpn);
        assert_eq!(map.place_in(place.trans, place.block, place.offset), place);
        assert_eq!(map.member(place.trans, place.set, place.member), place.block);
        let lane = (place.block - share.blocks.start) % 2;
        assert_eq!(map.lane(place.trans, place.set), lane, "the blocks of a set are of one lane");
    }
    // Twenty blocks in whole stripes, eight sets of up to three log groups, and one slot more.
    assert_eq!([one, other].map(|share| (share.blocks.len(), share.sets.len(), share.slots.len())), [(20, 8, 25); 2]);
    assert_eq!(tables.groups.owned_count(0), 64);
}

#[test]
fn where_groups_are_few_there_are_slots_for_those_that_are_left() {
    let mapping = MappingScheme::Hybrid { log_blocks: LOGS, data_blocks: 3 };
    let slots = |blocks| {
        let drive = sample::drive([1, 2, blocks, IN_GROUP / 2], 80, |_| {});
        let tables = sample::tables(&drive, &Settings { mapping, ..sample::settings(1) });
        let Mapping::Hybrid(map) = &tables.mapping else { unreachable!("it was asked for") };
        map.share(0).slots.len()
    };
    // Ten groups for data, two in reserve; four sets have three log groups each at most, and there is one slot more.
    assert_eq!([10, 12, 13, 23, 24, 30].map(slots), [1, 1, 2, 12, 13, 13]);
}

#[test]
fn a_thread_goes_through_its_dies_in_turn_as_far_as_its_groups_go() {
    let mapping = MappingScheme::Hybrid { log_blocks: LOGS, data_blocks: 3 };
    let lanes = |(trans, blocks)| {
        let drive = sample::drive([4, 2, blocks, IN_GROUP / 2], PAGES.into(), |_| {});
        let tables = sample::tables(&drive, &Settings { mapping, ..sample::settings(trans) });
        let Mapping::Hybrid(map) = &tables.mapping else { unreachable!("it was asked for") };
        (map.lanes(), map.merges_at_a_time())
    };
    // A lane for each thirty-two groups at most; and two merges at least.
    let found = [(2, 32), (1, 40), (1, 31), (3, 48), (1, 15)].map(lanes);
    assert_eq!(found, [(2, 2), (4, 4), (3, 3), (2, 2), (1, 2)]);
}

#[test]
fn rows_of_a_block_are_programmed_upwards_and_each_plane_has_its_own() {
    let (tables, map) = tables();
    let page = |position| tables.groups.page(3, position);
    let skipped = |position| sample::in_turn(|turn| map.rows_skipped(turn, page(position)));
    assert_eq!([0, 1, 4, 5].map(skipped), [Some(0), Some(0), Some(2), Some(2)]);
    sample::in_turn(|turn| map.program(turn, page(2)));
    assert_eq!([0, 2, 4, 6].map(skipped), [None, None, Some(0), Some(1)]);
    assert_eq!([1, 3].map(skipped), [Some(0), Some(1)], "the other plane");
    sample::in_turn(|turn| map.program(turn, page(3)));
    map.erased(2);
    assert_eq!([2, 3].map(skipped), [None, None], "another group was erased");
    map.erased(3);
    assert_eq!([2, 3].map(skipped), [Some(1), Some(1)]);
}

#[test]
fn rows_are_as_full_as_what_recovery_found_programmed() {
    let (tables, map) = tables();
    map.recover_written(3, [true, false, false, true, true, false, false, false].into_iter());
    let skipped = |position| sample::in_turn(|turn| map.rows_skipped(turn, tables.groups.page(3, position)));
    assert_eq!([4, 6, 3, 5].map(skipped), [None, Some(0), None, Some(0)]);
}

#[test]
fn a_filled_drive_has_every_page_at_its_offset_in_a_full_group() {
    let (tables, map) = tables();
    let mut groups = BTreeSet::new();
    for trans in [0, 1] {
        let own = tables.groups.owned(trans.into());
        let filled = map.fill_data(trans, own);
        assert_eq!(filled.iter().map(|&(.., pages)| pages).sum::<u32>(), 145);
        assert_eq!(
            (filled.len(), map.data_unpriced(map.share(trans).blocks.end - 1)),
            (19, None),
            "the last has no page"
        );
        for &(group, block, pages) in &filled {
            let can_be = |at| sample::in_turn(|turn| map.rows_skipped(turn, tables.groups.page(group, at))).is_some();
            assert!((0..IN_GROUP).all(|at| can_be(at) == (at >= pages)), "{pages} pages are programmed");
            tables.groups.fill(group, &sample::first(IN_GROUP, pages));
            assert!(groups.insert(group) && map.share(trans).blocks.contains(&block));
        }
    }
    assert_eq!(map.full_data(), groups);
    for lpn in (0..PAGES).map(Lpn) {
        let at = map.get(lpn).expect("every page was written");
        assert_eq!(
            (tables.groups.position(at), map.data_unpriced(map.place(lpn).block)),
            (map.place(lpn).offset, Some(tables.groups.of(at)))
        );
    }
}

#[test]
fn a_data_group_is_full_when_each_plane_has_all_its_pages() {
    let (tables, map) = tables();
    let group = tables.groups.owned(0).next().expect("a group");
    sample::in_turn(|turn| map.set_data(turn, 0, group));
    for position in [0, 2, 4, 6, 1, 3, 5] {
        sample::in_turn(|turn| map.program(turn, tables.groups.page(group, position)));
        assert!(map.full_data().is_empty(), "{position}");
    }
    sample::in_turn(|turn| map.program(turn, tables.groups.page(group, 7)));
    assert_eq!(map.full_data(), BTreeSet::from([group]));
}

/// Whether a log group is in place that holds so many pages of a block from its first offset on, but for one position.
fn in_place(pages: u32, but: Option<(u32, Place)>, written: u32) -> Option<u32> {
    let (_, map) = tables();
    let block = map.member(0, 0, 1);
    sample::in_turn(|turn| map.add_log(turn, 0, 0, 5));
    for position in 0..pages {
        let place = but.filter(|&(at, _)| at == position).map_or(map.place_in(0, block, position), |(_, place)| place);
        sample::in_turn(|turn| map.append(turn, 0, position, place));
    }
    map.in_place(0, written)
}

#[test]
fn a_log_group_is_in_place_if_every_page_is_at_its_own_offset_of_one_block() {
    let (_, map) = tables();
    assert_eq!([1, 5, 8].map(|pages| in_place(pages, None, pages)), [Some(1); 3]);
    assert_eq!(in_place(0, None, 0), None, "it holds nothing");
    let [own, other] = [1, 0].map(|member| map.member(0, 0, member));
    let but = |at, block, offset| in_place(5, Some((at, map.place_in(0, block, offset))), 5);
    assert_eq!([but(0, other, 0), but(2, other, 2), but(4, other, 4)], [None; 3], "a page of another block");
    assert_eq!([but(2, own, 6), but(4, own, 3), but(0, own, 4)], [None; 3], "a page of another offset");
    assert_eq!(in_place(5, Some((4, map.place_in(0, other, 4))), 4), Some(1), "as far as was asked");
}

#[test]
fn merges_are_counted_by_their_kind() {
    let (_, map) = tables();
    MergeKind::ALL.into_iter().zip(1..).for_each(|(kind, times)| (0..times).for_each(|_| map.count(kind)));
    assert_eq!(map.merges(), [1, 2, 3, 4]);
}

#[test]
fn entries_of_blocks_and_links_of_logs_change_segments_of_their_own() {
    let (tables, map) = tables();
    sample::in_turn(|turn| map.set_data(turn, 39, 5));
    // Forty blocks, then fifty slots of eight positions, 126 entries a segment.
    assert_eq!((tables.mapping.segments(), tables.mapping.take_changed(0)), (4, 1));
    let place = map.place_in(0, map.member(0, 0, 0), 0);
    sample::in_turn(|turn| {
        map.add_log(turn, 0, 10, 5);
        map.append(turn, 10, 5, place);
        map.append(turn, 10, 6, place);
    });
    assert_eq!(tables.mapping.take_changed(0), 0b11);
}
