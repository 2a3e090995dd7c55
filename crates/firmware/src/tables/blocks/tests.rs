//! What is kept of groups, against looking through all of them; and when one is worth looking at.

use super::*;
use crate::tables::sample;
use crate::{DriveShape, ReclaimSettings};
use proptest::prelude::*;

/// Three dies of two planes, and groups of ten pages, which no word of bits ends with. Group 3 is bad from the factory, and the last four
/// are the journal's.
fn array() -> BlockGroups {
    let drive = sample::drive([3, 2, 12, 5], 200, |shape| shape.bad_blocks = vec![BlockId(7)]);
    let mut settings = sample::settings(2);
    settings.parts.log = 1;
    sample::groups(&drive, &settings)
}

/// One thread with sixteen groups of eight pages.
fn plain(mapped: u64, ask: impl FnOnce(&mut DriveShape), reclaim: impl FnOnce(&mut ReclaimSettings)) -> BlockGroups {
    let mut settings = sample::settings(1);
    reclaim(&mut settings.reclaim);
    sample::groups(&sample::drive([2, 1, 8, 8], mapped, ask), &settings)
}

/// Does one thing to a group, as the stages may.
fn act(groups: &BlockGroups, what: u8, group: u32, number: u32) {
    let page = groups.page(group, number % groups.pages());
    match what {
        0 => groups.set_state(group, GroupState::ALL[number as usize % GroupState::ALL.len()]),
        1 => groups.close(group, number),
        2 => groups.mark(group, Flaw::Weak),
        3 => groups.mark(group, Flaw::Failed),
        4 => groups.erased(group),
        5 => groups.set_erase_count(group, groups.erase_count(group) + number % 3),
        6 => groups.retire(group),
        7 if groups.valid_count(group) == 0 => {
            groups.fill(group, &(0..groups.pages()).map(|at| number >> (at % 5) & 1 == 1).collect::<Vec<_>>());
        }
        8 if groups.is_valid(page) => sample::in_turn(|turn| {
            groups.invalidate(turn, page);
            groups.count_used(Some(page), None);
        }),
        8 => sample::in_turn(|turn| {
            groups.validate(turn, page);
            groups.count_used(None, Some(page));
        }),
        _ => {
            let is_valid = |valid| move |at: &Ppn| groups.is_valid(*at) == valid;
            // A page stays with its thread.
            let own = groups.owned(groups.owner(group).expect("a group that holds data"));
            let old = own.flat_map(|other| groups.blocks(other)).find(is_valid(true));
            let new = Some(page).filter(is_valid(false)).filter(|_| !number.is_multiple_of(3));
            sample::in_turn(|turn| groups.exchange_valid(turn, old, new));
        }
    }
}

proptest! {
    #[test]
    fn what_is_kept_is_what_looking_through_all_groups_gives(
        steps in prop::collection::vec((0u8..10, 0u32..32, 0u32..20), 0..60)
    ) {
        let groups = array();
        let mut closings = [0; 2];
        for (what, group, number) in steps.into_iter().filter(|(_, group, _)| *group != 3) {
            act(&groups, what, group, number);
            let closed = &mut closings[groups.owner(group).expect("a group that holds data") as usize];
            *closed = (*closed).max(if what == 1 { number + 1 } else { 0 });
        }
        let all = || 0..groups.count();
        for state in GroupState::ALL {
            let found = all().filter(|&group| groups.state(group) == state).count();
            prop_assert_eq!(groups.count_in(state), found as u64, "{:?}", state);
        }
        for thread in 0..2 {
            let own = || groups.owned(thread);
            let taken = own().filter(|&group| groups.state(group) != GroupState::Free).count();
            let retired = own().filter(|&group| groups.state(group) == GroupState::Retired).count();
            let failed = own().filter(|&group| groups.has(group, Flaw::Failed)).count();
            prop_assert_eq!((groups.taken(thread), groups.lost(thread)), (taken as u32, (retired + failed) as u32));
            prop_assert_eq!(groups.closings(thread), closings[thread as usize]);
        }
        for group in all() {
            let valid = (0..groups.pages()).filter(|&at| groups.is_valid(groups.page(group, at))).count();
            prop_assert_eq!(groups.valid_count(group), valid as u32);
        }
        prop_assert_eq!(groups.used(), all().map(|group| u64::from(groups.valid_count(group))).sum::<u64>());
        prop_assert_eq!(groups.flawed(), all().filter(|&group| groups.has_flaw(group)).count() as u64);
        let erases = || all().map(|group| groups.erase_count(group));
        prop_assert_eq!(groups.erases(), (erases().map(u64::from).sum(), erases().max().expect("groups")));
    }

    #[test]
    fn the_valid_pages_are_those_that_were_said_to_be(
        (group, filled) in (0u32..32, prop_oneof![prop::collection::vec(any::<bool>(), 10), Just(vec![true; 10])]),
        (other, found) in (0u32..32, prop::collection::vec(any::<u64>(), 6)),
    ) {
        let groups = array();
        groups.fill(group, &filled);
        let is_valid = |group, at| groups.is_valid(groups.page(group, at));
        prop_assert_eq!(&(0..10).map(|at| is_valid(group, at)).collect::<Vec<_>>(), &filled);
        let count = (0..360).filter(|&page| groups.is_valid(Ppn(page))).count();
        prop_assert_eq!(count, groups.valid_count(group) as usize);
        if other != group {
            let bit = |at| groups.page(other, at).0;
            let has_bit = |at| found[bit(at) as usize / 64] >> (bit(at) % 64) & 1 == 1;
            let count = groups.count_bits(other, &found);
            prop_assert_eq!(groups.find_valid(other, &found), count);
            prop_assert_eq!(groups.valid_count(other), count);
            prop_assert!((0..10).all(|at| is_valid(other, at) == has_bit(at)));
            prop_assert_eq!((0..10).filter(|&at| has_bit(at)).count(), count as usize);
            prop_assert_eq!((0..10).map(|at| is_valid(group, at)).collect::<Vec<_>>(), filled, "others stay");
        }
    }
}

#[test]
fn a_page_is_at_one_position_of_one_group_and_neighbours_share_a_row() {
    let groups = array();
    let mut seen = vec![false; 360];
    for (group, at) in (0..groups.count()).flat_map(|group| (0..groups.pages()).map(move |at| (group, at))) {
        let page = groups.page(group, at);
        assert!(!std::mem::replace(&mut seen[page.0 as usize], true), "{page} twice");
        assert_eq!((groups.of(page), groups.position(page)), (group, at));
        let (block, row) = groups.block_page(page);
        assert_eq!((block as u32, row), (groups.first_block(group).0 + at % 2, at / 2));
        assert_eq!(groups.group(groups.first_block(group)), group);
        assert_eq!(groups.blocks(group).nth(at as usize % 2), Some(Ppn(page.0 - row)));
        assert_eq!(groups.die(group), group % 3);
    }
    assert!(seen.into_iter().all(|seen| seen));
}

#[test]
fn the_erases_of_the_journal_are_counted_by_themselves() {
    let groups = array();
    assert_eq!((groups.journal(), groups.data_count()), (32..36, 31));
    groups.journal().for_each(|group| groups.set_erase_count(group, 5));
    groups.erased(33);
    groups.erased(1);
    assert_eq!((groups.journal_erases(), groups.erases()), (21, (1, 1)));
    groups.mark(33, Flaw::Failed);
    assert_eq!((groups.flawed(), groups.has_flaw(33)), (0, false), "it is taken round and round anyway");
}

#[test]
fn the_journal_is_ahead_by_its_erases_for_each_time_that_the_array_was_programmed() {
    let groups = array();
    assert_eq!([0, 1 << 40].map(|programmed| groups.journal_ahead(programmed)), [1, 1]);
    groups.journal().for_each(|group| groups.set_erase_count(group, 12));
    assert_eq!([0, 359, 360, 720].map(|programmed| groups.journal_ahead(programmed)), [12, 12, 6, 4]);
}

#[test]
fn the_journal_has_room_for_two_maps_in_an_eighth_of_the_array_and_two_groups_at_least() {
    // A page of a map has 126 entries, and a checkpoint two pages more.
    let journal = |blocks, pages, mapped| journal_groups(&sample::drive([1, 2, blocks, pages], mapped, |_| {}));
    assert_eq!([1, 126 * 6, 126 * 6 + 1, 126 * 14].map(|mapped| journal(400, 4, mapped)), [4, 4, 6, 6]);
    assert_eq!([1, 2, 8, 24, 31, 32].map(|blocks| journal(blocks, 4, 1)), [1, 2, 2, 3, 3, 4]);
}

#[test]
fn a_group_is_worth_looking_at_when_it_comes_to_its_share_of_garbage() {
    // Three quarters of all pages are mapped, and so six of eight.
    let groups = plain(96, |_| {}, |_| {});
    assert_eq!(groups.least_garbage(), 2);
    groups.fill(0, &[true; 8]);
    groups.close(0, 0);
    let changes = (0..4).map(|at| {
        sample::in_turn(|turn| match at % 2 {
            0 => groups.invalidate(turn, groups.page(0, at)),
            _ => groups.exchange_valid(turn, Some(groups.page(0, at)), None),
        });
        groups.changes(0)
    });
    assert_eq!(changes.collect::<Vec<_>>(), [0, 1, 1, 1]);
    sample::in_turn(|turn| groups.validate(turn, groups.page(0, 0)));
    sample::in_turn(|turn| groups.validate(turn, groups.page(0, 1)));
    assert_eq!(groups.changes(0), 1, "it has less");
}

#[test]
fn a_group_is_worth_looking_at_when_it_is_closed_with_garbage_or_has_settled_or_was_emptied() {
    let groups = plain(96, |_| {}, |_| {});
    for (group, valid) in [(0, 6), (1, 7)] {
        groups.set_state(group, GroupState::Open);
        groups.fill(group, &sample::first(8, valid));
    }
    let after = |act: &dyn Fn()| {
        act();
        groups.changes(0)
    };
    assert_eq!(after(&|| groups.close(1, 0)), 0);
    assert_eq!(after(&|| groups.close(0, 1)), 1);
    assert_eq!(after(&|| (0..2).for_each(|at| groups.expect(groups.page(0, at)))), 1);
    assert!(!groups.is_settled(0) && groups.is_settled(1));
    assert_eq!(after(&|| groups.arrived(groups.page(0, 0))), 1, "one is still under way");
    assert_eq!(after(&|| groups.arrived(groups.page(0, 1))), 2);
    assert!(groups.is_settled(0));
    assert_eq!(after(&|| groups.set_state(0, GroupState::Victim)), 2);
    assert_eq!(after(&|| groups.set_state(0, GroupState::Free)), 3);
    assert_eq!(after(&|| groups.set_state(0, GroupState::Free)), 3);
    assert_eq!(after(&|| groups.set_state(0, GroupState::Open)), 3);
}

#[test]
fn a_group_is_worth_looking_at_when_it_gets_its_first_flaw() {
    let groups = plain(96, |_| {}, |_| {});
    groups.fill(0, &[true; 8]);
    groups.mark(0, Flaw::Weak);
    groups.mark(0, Flaw::Failed);
    groups.mark(0, Flaw::Failed);
    assert_eq!((groups.changes(0), groups.flawed(), groups.lost(0)), (1, 1, 1));
    groups.erased(0);
    assert_eq!((groups.flawed(), groups.lost(0)), (0, 0), "what was erased has none");
    groups.clear_flaws(0);
    assert_eq!((groups.changes(0), groups.flawed(), groups.lost(0)), (1, 0, 0));
}

#[test]
fn every_full_group_is_worth_looking_at_where_cold_ones_are_moved() {
    let groups = plain(96, |_| {}, |reclaim| reclaim.wear_gap = 1);
    groups.set_state(0, GroupState::Open);
    groups.fill(0, &[true; 8]);
    groups.close(0, 0);
    assert_eq!(groups.changes(0), 1);
}

#[test]
fn what_changes_is_kept_for_the_thread_that_has_the_group() {
    let groups = array();
    groups.mark(groups.owned(1).next().expect("a group"), Flaw::Weak);
    assert_eq!([0, 1].map(|thread| groups.changes(thread)), [0, 1]);
}

#[test]
fn where_all_pages_are_mapped_a_group_with_any_garbage_is_worth_it() {
    let least = |mapped| plain(mapped, |shape| shape.bad_blocks = vec![BlockId(1), BlockId(2)], |_| {}).least_garbage();
    // Fourteen groups hold data, of 112 pages; bad ones hold none.
    assert_eq!([1, 56, 98, 112, 128].map(least), [8, 4, 1, 1, 1]);
    assert_eq!(array().least_garbage(), 4, "nor do the journal's");
}

#[test]
fn the_last_erases_are_kept_until_the_drive_takes_no_more_writes() {
    let groups = plain(96, |shape| shape.erases_max = Some(10), |_| {});
    let lack = |most| plain(96, |shape| shape.erases_max = Some(most), |_| {}).lacks_erases();
    assert_eq!([0, 1, 2, 10].map(lack), [Some(2), Some(2), None, None]);
    let spent = |erases: &[u32]| {
        let at = |&count: &u32| {
            groups.set_erase_count(count, count);
            groups.is_spent(count)
        };
        erases.iter().map(at).collect::<Vec<_>>()
    };
    assert_eq!(spent(&[7, 8]), [false, true]);
    assert!(!groups.used_last_erases(), "they are kept still");
    groups.set_read_only();
    assert_eq!(spent(&[8, 9, 10]), [false, false, true]);
    assert!(groups.used_last_erases());
    let untold = plain(96, |_| {}, |_| {});
    untold.set_erase_count(0, u32::MAX);
    assert!(!untold.is_spent(0) && !untold.used_last_erases());
}

#[test]
fn last_erases_give_room_for_what_is_cached_and_under_way() {
    let lack = |cached: u64, frames: u16| {
        let mut settings = sample::settings(1);
        (settings.cache.size, settings.frames) = (units::Bytes(cached * 512), frames);
        // Of 128 pages 64 are mapped, and 20 are of open groups or kept.
        let drive = sample::drive([2, 1, 8, 8], 64, |shape| shape.erases_max = Some(0));
        sample::groups(&drive, &settings).lacks_erases().expect("there are none")
    };
    assert_eq!([lack(0, 4), lack(0, 44), lack(0, 45)], [2, 2, 3]);
    assert_eq!([lack(40, 4), lack(41, 4), lack(64, 24), lack(1000, 24)], [2, 3, 3, 3]);
}

#[test]
fn a_weak_page_marks_its_group_and_a_page_that_was_lost_before_does_not() {
    let heard = |media| {
        let groups = plain(96, |_| {}, |_| {});
        let told = groups.heard(groups.page(5, 1), media);
        (told, groups.has(5, Flaw::Weak), groups.flawed())
    };
    assert_eq!(heard(Media::Good), (Media::Good, false, 0));
    assert_eq!(heard(Media::Weak), (Media::Good, true, 1));
    assert_eq!(heard(Media::Unreadable), (Media::Unreadable, true, 1));
    assert_eq!(heard(Media::Lost), (Media::Unreadable, false, 0));
    assert_eq!(heard(Media::Failed), (Media::Failed, false, 0));
}

#[test]
fn a_group_is_bad_from_when_a_program_fails_and_when_it_is_retired() {
    let groups = array();
    groups.mark(1, Flaw::Weak);
    assert_eq!([1, 3].map(|group| groups.is_bad(group)), [false, true], "one is from the factory");
    groups.know_bad(1);
    assert_eq!((groups.is_bad(1), groups.has(1, Flaw::Weak)), (true, true));
    groups.retire(1);
    assert_eq!((groups.is_bad(1), groups.has_flaw(1), groups.count_in(GroupState::Retired)), (true, false, 2));
}

#[test]
fn groups_that_were_left_open_are_filled_further() {
    let groups = array();
    let [first, last] = [0, 5].map(|at| groups.owned(1).nth(at).expect("a group"));
    groups.reopen(first, 7);
    groups.reopen(last, 2);
    groups.owned(1).skip(6).zip(GroupState::ALL).for_each(|(group, state)| {
        groups.set_state(group, if state == GroupState::Open { GroupState::Free } else { state });
    });
    assert_eq!(groups.reopened(1).collect::<Vec<_>>(), [(first, 7), (last, 2)]);
    assert_eq!((groups.reopened(0).count(), groups.taken(1)), (0, 5));
}

#[test]
fn pages_that_go_elsewhere_are_counted_apart_from_flaws() {
    let groups = array();
    groups.begin_replacing();
    groups.begin_replacing();
    groups.end_replacing();
    groups.mark(0, Flaw::Weak);
    assert_eq!((groups.replacing(), groups.flawed(), groups.is_read_only()), (1, 1, false));
}
