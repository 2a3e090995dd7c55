//! Which words of the tables are whose.

use super::*;
use units::{Bytes, QueueId};

fn with(ask: impl FnOnce(&mut Settings)) -> Tables {
    let mut settings = sample::settings(2);
    ask(&mut settings);
    sample::tables(&sample::drive([2, 1, 16, 8], 100, |shape| shape.queues = 3), &settings)
}

#[test]
fn no_two_commands_have_words_of_their_lists_in_common() {
    let tables = with(|settings| settings.parts.nvmq = 3);
    let mut lists: Vec<_> = (0..3).flat_map(|nvmq| (0..16).map(move |slot| (nvmq, slot))).collect();
    lists.sort_by_key(|&(nvmq, slot)| tables.list(nvmq, slot));
    let apart = lists
        .windows(2)
        .all(|pair| tables.list(pair[0].0, pair[0].1) + LIST_WORDS <= tables.list(pair[1].0, pair[1].1));
    assert!(apart && tables.list(2, 15) + LIST_WORDS <= tables.lists.len());
}

#[test]
fn lists_of_pages_lie_behind_those_of_commands() {
    let mut tables = with(|_| {});
    let commands = tables.lists.len();
    tables.lists = SharedMemory::default().wide(commands + 3 * 4);
    let first = [0, 1, 2].map(|slot| tables.page_list(slot, 4) - commands);
    assert_eq!(first, [8, 4, 0]);
}

#[test]
fn a_ring_of_entries_goes_round_and_each_queue_has_its_own() {
    let (short, settings) = (sample::drive([2, 1, 16, 8], 100, |shape| shape.queue_entries = 4), sample::settings(2));
    assert_eq!(sample::tables(&short, &settings).ring, 4, "a queue has no more entries in the drive than it has");
    let tables = with(|settings| settings.commands = 5);
    assert_eq!(tables.ring, 8, "nor more than are admitted");
    let places = [0, 1, 7, 8, 17].map(|count| tables.place(QueueId(2), count));
    assert_eq!(places, [16, 17, 23, 16, 17]);
    let words: [u64; ENTRY_WORDS] = std::array::from_fn(|word| word as u64 + 1);
    tables.sq_buffer.write(17 * ENTRY_WORDS, &words);
    assert_eq!(tables.entry(QueueId(2), 9).0, words);
}

#[test]
fn a_number_of_a_queue_is_claimed_once() {
    let tables = with(|_| {});
    let claim = |queue| sample::in_turn(|turn| tables.claim(turn, QueueId(queue), |next| next));
    assert_eq!([1, 1, 2, 1].map(claim), [0, 1, 0, 2]);
    // Another thread claims the number that was looked at.
    let claimed = sample::in_turn(|turn| {
        tables.claim(turn, QueueId(2), |next| {
            if next == 1 {
                tables.sq_head.advance(Tables::line(2), next);
            }
            next
        })
    });
    assert_eq!(claimed, 2);
}

#[test]
fn a_thread_shows_what_it_has_under_way_and_that_it_lives() {
    let tables = with(|settings| settings.parts.nvmq = 2);
    tables.show_activity(1, 5);
    tables.show_activity(1, u32::MAX);
    let shown = [0, 1].map(|thread| (tables.commands_under_way(thread), tables.signs_of_life(thread)));
    assert_eq!(shown, [(0, 0), (u32::MAX, 2)]);
}

#[test]
fn evictions_of_any_thread_are_evictions() {
    let tables = with(|settings| (settings.parts.cache, settings.cache.size) = (3, Bytes(8 * 512)));
    for thread in 0..3 {
        assert!(!tables.is_evicting());
        tables.show_evictions(thread, true);
        assert!(tables.is_evicting(), "{thread}");
        tables.show_evictions(thread, false);
    }
    assert_eq!(tables.cache_entries, 6, "each thread has as many");
    assert_eq!([0, 5, 6, 99].map(|lpn| tables.cache_entry(Lpn(lpn))), [0, 5, 0, 3]);
}

#[test]
fn tombstones_are_told_to_the_thread_that_has_their_group() {
    let mut tables = with(|_| {});
    let at = |group| tables.groups.page(group, 3);
    // Two dies: the deal is turned by one after two groups.
    let shares = [[(at(0), 2), (at(3), 5)], [(at(1), 3), (at(2), 4)]];
    tables.set_shared(shares.into_iter().flatten().collect());
    assert_eq!([0, 1].map(|thread| tables.tombstones_of(thread)), shares.map(BTreeMap::from));
}

#[test]
fn the_line_of_a_die_is_the_sum_of_what_came_and_what_is_done() {
    let tables = with(|_| {});
    let page = |group| tables.groups.page(group, 0);
    for (group, change) in [(0, 2), (1, 1), (2, 3), (2, -4)] {
        sample::in_turn(|turn| tables.tell_line(turn, page(group), change));
    }
    assert_eq!([0, 1].map(|die| tables.die_lines.get(die)), [1, 1]);
}

#[test]
fn writes_are_numbered_from_one_where_nothing_is_on_flash() {
    let tables = with(|_| {});
    assert_eq!(tables.first_version(), 1);
    tables.set_first_version(9);
    assert_eq!(tables.first_version(), 9);
}

#[test]
fn what_is_free_is_for_the_buffer_once_the_drive_takes_no_more_writes() {
    for (protected, is_closed) in [(true, true), (false, false)] {
        let mut settings = sample::settings(1);
        (settings.parts.cache, settings.cache.size) = (1, Bytes(512));
        let drive = sample::drive([2, 1, 16, 8], 100, |shape| shape.protected = protected);
        let tables = sample::tables(&drive, &settings);
        assert!(!tables.is_closed_with_buffer());
        tables.groups.set_read_only();
        assert_eq!(tables.is_closed_with_buffer(), is_closed);
    }
}
