//! Which groups may be taken, which goes first, and when any is looked for.

use super::*;
use crate::tables::sample;
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn an_old_group_that_is_nearly_full_is_worth_less_than_one_with_much_garbage() {
    // A hundred groups were closed after the first: they are older by that, whether any of these can be taken or not.
    let ages = [10, 20, 100].map(|closed_at| age(closed_at, 101));
    assert_eq!(ages, [91, 81, 1]);
    assert_eq!(age(102, 101), 1, "closed since");
    let compare = |one, other| compare_benefits(100, one, other);
    assert_eq!(compare((85, ages[0]), (20, ages[1])), Ordering::Less);
    assert_eq!(compare((60, 91), (50, 1)), Ordering::Greater, "age counts");
}

proptest! {
    /// As many alike as there are, and candidates or not.
    #[test]
    fn the_best_is_that_of_all_candidates_compared(
        groups in prop::collection::vec((0..=8u32, 1..6u32, any::<bool>()), 0..40)
    ) {
        let weighed = (0..).zip(&groups).map(|(group, &(valid, age, _))| (group, (valid, age)));
        let is_candidate = |group: u32| groups[group as usize].2;
        let all = weighed.clone().filter(|(group, _)| is_candidate(*group));
        let best = all.max_by(|one, other| compare_benefits(8, one.1, other.1).then(other.0.cmp(&one.0)));
        prop_assert_eq!(most_beneficial(8, weighed, is_candidate), best.map(|(group, _)| group));
    }
}

/// With `1 + u` below, for media that read a victim whole, the emptier one would be taken; with `2u` both are worth 12.
#[test]
fn what_a_group_costs_is_the_read_and_the_write_of_its_valid_pages() {
    assert_eq!(compare_benefits(100, (20, 6), (50, 24)), Ordering::Equal);
    assert_eq!(compare_benefits(100, (20, 6), (50, 25)), Ordering::Less);
    assert_eq!(compare_benefits(100, (20, 7), (50, 24)), Ordering::Greater);
}

#[test]
fn a_group_without_a_valid_page_is_worth_more_than_any_other() {
    assert_eq!(compare_benefits(u32::MAX, (0, 1), (1, u32::MAX)), Ordering::Greater);
    assert_eq!(compare_benefits(u32::MAX, (1, u32::MAX), (0, 1)), Ordering::Less);
    assert_eq!(compare_benefits(100, (0, 1), (0, 9)), Ordering::Equal, "the lower number goes first");
}

/// What makes a group one that is not taken.
type Spoil<'a> = &'a dyn Fn(&BlockGroups, u32);

const PAGES: u32 = 8;
const BOTH: [VictimPolicy; 2] = [VictimPolicy::Greedy, VictimPolicy::CostBenefit];

/// Two threads with sixteen groups each, of eight pages; three quarters of all pages are mapped.
fn array(erases_max: Option<u32>) -> BlockGroups {
    let drive = sample::drive([2, 1, 16, PAGES], 192, |shape| shape.erases_max = erases_max);
    sample::groups(&drive, &sample::settings(2))
}

/// The groups of the first thread.
fn own(groups: &BlockGroups) -> [u32; 16] {
    groups.owned(0).collect::<Vec<_>>().try_into().expect("half of the array")
}

/// A group with so many valid pages is the one that was closed after so many.
fn close(groups: &BlockGroups, group: u32, valid: u32, at: u32) {
    groups.fill(group, &sample::first(PAGES, valid));
    groups.close(group, at);
}

fn wear(groups: &BlockGroups, all: &[u32], count: u32) {
    all.iter().for_each(|&group| groups.set_erase_count(group, count));
}

#[test]
fn greedy_takes_the_fewest_valid_pages_and_of_equals_the_lower_number() {
    let (groups, policy) = (array(None), VictimPolicy::Greedy);
    let own = own(&groups);
    assert_eq!(pick_victim(&groups, 0, policy), None);
    for (at, (group, valid)) in (0..).zip([(own[1], 6), (own[4], 3), (own[6], 3), (own[9], 4)]) {
        close(&groups, group, valid, at);
    }
    assert_eq!(pick_victim(&groups, 0, policy), Some(own[4]));
}

#[test]
fn a_group_that_is_valid_throughout_is_no_victim() {
    for policy in BOTH {
        let groups = array(None);
        let own = own(&groups);
        close(&groups, own[0], PAGES, 0);
        assert_eq!(pick_victim(&groups, 0, policy), None, "{policy:?}");
        close(&groups, own[1], PAGES - 1, 1);
        assert_eq!(pick_victim(&groups, 0, policy), Some(own[1]), "{policy:?}");
    }
}

#[test]
fn only_what_is_full_and_whole_and_can_be_erased_is_a_victim() {
    let spoils: [Spoil<'_>; 7] = [
        &|groups, group| groups.set_state(group, GroupState::Free),
        &|groups, group| groups.set_state(group, GroupState::Open),
        &|groups, group| groups.set_state(group, GroupState::Victim),
        &|groups, group| groups.set_state(group, GroupState::Retired),
        &|groups, group| groups.expect(groups.page(group, 0)),
        &|groups, group| groups.mark(group, Flaw::Failed),
        &|groups, group| groups.set_erase_count(group, 8),
    ];
    for policy in BOTH {
        for (number, spoil) in spoils.iter().enumerate() {
            let groups = array(Some(10));
            let own = own(&groups);
            close(&groups, own[0], 2, 0);
            close(&groups, own[1], 5, 1);
            groups.mark(own[0], Flaw::Weak);
            assert_eq!(pick_victim(&groups, 0, policy), Some(own[0]), "{policy:?}: a weak page is moved with others");
            spoil(&groups, own[0]);
            assert_eq!(pick_victim(&groups, 0, policy), Some(own[1]), "{policy:?}, {number}");
            assert_eq!(pick_victim(&groups, 1, policy), None, "{policy:?}: they are another thread's");
        }
    }
}

#[test]
fn cost_benefit_counts_age_in_closings_of_the_owner() {
    let groups = array(None);
    let (own, policy) = (own(&groups), VictimPolicy::CostBenefit);
    close(&groups, own[7], 4, 0);
    close(&groups, own[2], 2, 5);
    assert_eq!(pick_victim(&groups, 0, policy), Some(own[7]), "it is six times as old");
    close(&groups, groups.owned(1).next().expect("a group"), 0, 98);
    assert_eq!(pick_victim(&groups, 0, policy), Some(own[7]), "what others close makes nothing older");
    close(&groups, own[9], PAGES, 98);
    assert_eq!(pick_victim(&groups, 0, policy), Some(own[2]), "both are old, and it has more garbage");
}

#[test]
fn of_groups_that_are_worth_the_same_the_lower_number_goes_first() {
    let groups = array(None);
    let own = own(&groups);
    // Three times as old, with a third of the garbage for each page that is moved.
    close(&groups, own[2], 4, 0);
    close(&groups, own[7], 2, 2);
    assert_eq!(pick_victim(&groups, 0, VictimPolicy::CostBenefit), Some(own[2]));
}

/// The first thread's groups, of which so many are free and all others are being filled, and what is looked for among them.
fn at_rest(
    free: usize,
    kept: u32,
    change: impl FnOnce(&mut ReclaimSettings),
) -> (BlockGroups, AtRest, ReclaimSettings) {
    let mut settings = sample::settings(2).reclaim;
    change(&mut settings);
    let groups = array(None);
    own(&groups)[free..].iter().for_each(|&group| groups.set_state(group, GroupState::Open));
    (groups, AtRest::new(0, kept), settings)
}

fn due(group: u32) -> Option<Pick> {
    Some(Pick { group, levels: false })
}

#[test]
fn at_rest_room_is_made_until_enough_is_free_and_with_what_is_kept() {
    // A quarter of sixteen is enough.
    for (free, is_taken) in [(1, false), (2, true), (3, true), (4, false)] {
        let (groups, mut rest, settings) = at_rest(free, 2, |_| {});
        let last = own(&groups)[15];
        close(&groups, last, 0, 0);
        assert_eq!(rest.pick(&groups, &settings, || true), due(last).filter(|_| is_taken), "{free} free");
    }
}

#[test]
fn at_rest_a_group_is_taken_only_if_it_has_enough_garbage() {
    let (groups, mut rest, settings) = at_rest(3, 0, |_| {});
    let last = own(&groups)[15];
    close(&groups, last, 7, 0);
    assert_eq!(rest.pick(&groups, &settings, || true), None);
    sample::in_turn(|turn| groups.invalidate(turn, groups.page(last, 0)));
    assert_eq!(rest.pick(&groups, &settings, || true), due(last));
}

#[test]
fn at_rest_groups_are_not_looked_through_again_before_one_changes() {
    let (groups, mut rest, settings) = at_rest(3, 0, |_| {});
    let own = own(&groups);
    close(&groups, own[15], 1, 0);
    assert_eq!(rest.pick(&groups, &settings, || true), due(own[15]));
    assert_eq!(rest.pick(&groups, &settings, || true), None);
    close(&groups, own[14], 0, 1);
    assert_eq!(rest.pick(&groups, &settings, || true), due(own[14]));
}

#[test]
fn at_rest_groups_are_looked_through_again_when_too_few_are_free() {
    let (groups, mut rest, settings) = at_rest(4, 0, |settings| settings.wear_gap = 1);
    let own = own(&groups);
    close(&groups, own[15], 0, 0);
    assert_eq!(rest.pick(&groups, &settings, || true), None, "enough is free");
    groups.set_state(own[0], GroupState::Open);
    assert_eq!(rest.pick(&groups, &settings, || true), due(own[15]));
}

#[test]
fn at_rest_what_has_a_flaw_goes_first_however_much_is_free() {
    for free in [3, 12] {
        let (groups, mut rest, settings) = at_rest(free, 0, |_| {});
        let own = own(&groups);
        close(&groups, own[15], 0, 0);
        groups.mark(own[13], Flaw::Weak);
        assert_eq!(rest.pick(&groups, &settings, || true), due(own[15]).filter(|_| free < 4), "it is being filled");
        close(&groups, own[14], PAGES, 1);
        groups.mark(own[14], Flaw::Weak);
        assert_eq!(rest.pick(&groups, &settings, || true), due(own[14]));
    }
}

#[test]
fn at_rest_a_cold_group_goes_before_garbage_where_it_may() {
    for (can_level, free) in [(true, 3), (true, 5), (false, 3), (false, 5)] {
        let (groups, mut rest, settings) = at_rest(free, 0, |settings| settings.wear_gap = 4);
        let own = own(&groups);
        wear(&groups, &own[..free], 9);
        wear(&groups, &own[12..], 6);
        close(&groups, own[10], PAGES, 0);
        close(&groups, own[15], 0, 16);
        let best =
            if can_level { Some(Pick { group: own[10], levels: true }) } else { due(own[15]).filter(|_| free < 4) };
        assert_eq!(rest.pick(&groups, &settings, || can_level), best, "{free} free");
    }
}

#[test]
fn at_rest_a_cold_group_is_moved_by_the_gap_that_is_set() {
    for (gap, is_moved) in [(8, true), (9, false)] {
        let (groups, mut rest, settings) = at_rest(5, 0, |settings| settings.wear_gap = gap);
        let own = own(&groups);
        wear(&groups, &own[..5], 9);
        close(&groups, own[10], PAGES, 0);
        close(&groups, own[15], PAGES, 16);
        assert_eq!(rest.pick(&groups, &settings, || true).is_some(), is_moved, "a gap of {gap}");
    }
}

#[test]
fn a_full_group_with_a_flaw_goes_before_one_that_is_being_filled() {
    for closed in [[3, 5], [8, 9]] {
        let groups = array(Some(10));
        let own = own(&groups);
        for (at, group) in (0..).zip(closed.map(|at| own[at])) {
            close(&groups, group, PAGES, at);
            groups.mark(group, Flaw::Weak);
        }
        groups.set_state(own[6], GroupState::Open);
        groups.mark(own[6], Flaw::Failed);
        assert_eq!(survey(&groups, 0).flawed, Some(own[closed[0]]), "the first");
        groups.expect(groups.page(own[closed[0]], 0));
        assert_eq!(survey(&groups, 0).flawed, Some(own[closed[1]]), "the first still gets pages");
        groups.set_erase_count(own[closed[1]], 8);
        let survey = survey(&groups, 0);
        assert_eq!((survey.flawed, survey.flawed_open), (None, Some(own[6])), "the second cannot be erased");
    }
}

#[test]
fn what_is_empty_or_emptied_has_no_flaw_to_see_to() {
    let groups = array(None);
    for (group, state) in own(&groups).into_iter().zip([GroupState::Free, GroupState::Victim, GroupState::Retired]) {
        groups.set_state(group, state);
        groups.mark(group, Flaw::Weak);
    }
    let survey = survey(&groups, 0);
    assert_eq!((survey.flawed, survey.flawed_open, survey.free), (None, None, 14));
}

/// TRANS closes groups with pages still on their way to them, while BGC looks on another thread.
#[test]
fn a_group_that_was_being_filled_when_it_was_looked_at_is_not_told_to_be_full() {
    let groups = array(None);
    let own = own(&groups);
    own.iter().for_each(|&group| groups.mark(group, Flaw::Weak));
    for _ in 0..100 {
        own.iter().for_each(|&group| groups.set_state(group, GroupState::Open));
        let (looks, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !looks.load(Relaxed) {
                    std::hint::spin_loop();
                }
                for &group in &own {
                    groups.expect(groups.page(group, 0));
                    groups.close(group, 0);
                }
                is_over.store(true, Relaxed);
            });
            while !is_over.load(Relaxed) {
                looks.store(true, Relaxed);
                assert_eq!(survey(&groups, 0).flawed, None);
            }
        });
        own.iter().for_each(|&group| groups.arrived(groups.page(group, 0)));
    }
}

/// Groups of which the first have this wear and are free, and the fourth and the fifth are closed, the fifth in the end.
fn levelled(free: [u32; 3], closed: [u32; 2], last: u32) -> BlockGroups {
    let groups = array(Some(200));
    let own = own(&groups);
    for (&group, wear) in own.iter().zip(free.into_iter().chain(closed)) {
        groups.set_erase_count(group, wear);
    }
    own[5..].iter().for_each(|&group| groups.set_state(group, GroupState::Open));
    close(&groups, own[3], PAGES, 0);
    close(&groups, own[4], PAGES, last);
    groups
}

fn coldest(groups: &BlockGroups, gap: u32) -> Option<u32> {
    survey(groups, 0).coldest(groups, 0, gap)
}

#[test]
fn a_cold_group_is_moved_that_wore_less_than_the_most_worn_free_one_by_over_the_gap() {
    let place = |wear, gap| coldest(&levelled([5, 9, 7], [wear, 9], 16), gap).is_some();
    assert!(place(1, 7) && !place(2, 7), "nine are seven more than two, and over seven more than one");
    assert!(place(1, 1) && !place(1, 9) && !place(0, 10));
    assert!(!place(0, 0), "a gap of nothing is never");
}

#[test]
fn no_group_is_moved_while_a_free_one_wore_as_little() {
    assert_eq!([[2, 9, 7], [9, 7, 2]].map(|free| coldest(&levelled(free, [2, 9], 16), 1)), [None; 2]);
    assert!(coldest(&levelled([3, 9, 7], [2, 9], 16), 1).is_some());
    let groups = levelled([3, 9, 7], [2, 9], 16);
    own(&groups)[..3].iter().for_each(|&group| groups.set_state(group, GroupState::Open));
    assert_eq!(coldest(&groups, 1), None, "none is free");
}

#[test]
fn pages_are_cold_when_as_many_groups_were_closed_since_as_there_are() {
    assert_eq!(coldest(&levelled([9; 3], [1, 9], 15), 1), None);
    assert!(coldest(&levelled([9; 3], [1, 9], 16), 1).is_some());
    let groups = levelled([9; 3], [1, 1], 16);
    assert_eq!(coldest(&groups, 1), Some(own(&groups)[3]), "the other was closed just now");
}

#[test]
fn of_cold_groups_the_least_worn_is_moved_and_of_equals_the_lower_number() {
    let groups = levelled([9; 3], [5, 9], 16);
    let own = own(&groups);
    for (at, wear) in [(6, 4), (7, 3), (8, 3)] {
        groups.set_erase_count(own[at], wear);
        close(&groups, own[at], PAGES, 0);
    }
    assert_eq!(coldest(&groups, 1), Some(own[7]));
}

#[test]
fn a_cold_group_that_is_not_whole_or_not_to_be_erased_stays() {
    let spoils: [Spoil<'_>; 4] = [
        &|groups, group| groups.set_state(group, GroupState::Victim),
        &|groups, group| groups.expect(groups.page(group, 0)),
        &|groups, group| groups.mark(group, Flaw::Weak),
        &|groups, group| {
            let (all, most) = (own(groups), 198);
            wear(groups, &all[..3], most + 7);
            groups.set_erase_count(group, most);
        },
    ];
    for (number, spoil) in spoils.iter().enumerate() {
        let groups = levelled([9; 3], [1, 9], 16);
        let cold = own(&groups)[3];
        assert_eq!(coldest(&groups, 1), Some(cold));
        spoil(&groups, cold);
        assert_eq!(coldest(&groups, 1), None, "{number}");
    }
}
