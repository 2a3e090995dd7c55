//! The neighbours of a placement: what a search tries next.

use crate::placement::Seats;
use std::collections::BTreeMap;

/// Threads of each group that is searched, in the order of the file.
pub(super) type Counts = Vec<u16>;

/// One thread more in one of some groups, where there is room for it.
pub(super) fn added(counts: &[u16], free: u16, takers: &[usize]) -> Vec<Counts> {
    let takers = takers.iter().filter(|_| free > 0);
    takers.map(|to| changed(counts, &[], *to)).collect()
}

/// One thread less in any group: a thread that polls takes slots of those beside it.
pub(super) fn fewer(counts: &[u16]) -> Vec<Counts> {
    let without = |group: usize| {
        let mut counts = counts.to_vec();
        counts[group] -= 1;
        counts
    };
    givers(counts).map(without).collect()
}

/// So many threads, dealt to the groups by what each takes, but one to each at least.
pub(super) fn proportional(takes: &[f64], threads: u16) -> Counts {
    let mut counts = vec![1; takes.len()];
    for _ in takes.len()..threads.into() {
        // Whose threads have most to do gets the next.
        let load = |group: &usize| takes[*group] / f64::from(counts[*group]);
        let most = (0..takes.len()).max_by(|one, other| load(one).total_cmp(&load(other))).expect("there are groups");
        counts[most] += 1;
    }
    counts
}

/// One thread that changes to one of some groups.
pub(super) fn exchanged(counts: &[u16], takers: &[usize]) -> Vec<Counts> {
    let exchanged = givers(counts).flat_map(|from| {
        let others = takers.iter().filter(move |to| **to != from);
        others.map(move |to| changed(counts, &[from], *to))
    });
    exchanged.collect()
}

/// Two threads more in one of some groups, each from another group or from the room there is: where one alone brings nothing, as
/// with channels that are dealt to threads.
pub(super) fn doubled(counts: &[u16], free: u16, takers: &[usize]) -> Vec<Counts> {
    // Where a thread can come from: a group, or none.
    let from: Vec<Option<usize>> = givers(counts).map(Some).chain((free > 0).then_some(None)).collect();
    let mut all = Vec::new();
    for (index, one) in from.iter().enumerate() {
        for other in &from[index..] {
            let enough = match (one, other) {
                (None, None) => free > 1,
                (Some(one), Some(other)) if one == other => counts[*one] > 2,
                _ => true,
            };
            let takers = takers.iter().copied().filter(|to| enough && *one != Some(*to) && *other != Some(*to));
            all.extend(takers.map(|to| {
                let given: Vec<usize> = [*one, *other].into_iter().flatten().collect();
                let mut more = changed(counts, &given, to);
                more[to] += 1;
                more
            }));
        }
    }
    all
}

/// Groups that can do with a thread less.
fn givers(counts: &[u16]) -> impl Iterator<Item = usize> {
    (0..counts.len()).filter(|group| counts[*group] > 1)
}

fn changed(counts: &[u16], from: &[usize], to: usize) -> Counts {
    let mut counts = counts.to_vec();
    from.iter().for_each(|group| counts[*group] -= 1);
    counts[to] += 1;
    counts
}

/// Threads dealt to the cores one after another, group after group; the fixed ones live on the last core beside those.
pub(super) fn dealt(groups: &[String], counts: &[u16], fixed: &BTreeMap<String, u16>, cores: u16) -> Seats {
    let mut next = (0..cores).cycle();
    let deal = |(group, count): (&String, &u16)| (group.clone(), next.by_ref().take((*count).into()).collect());
    let mut seats: Seats = groups.iter().zip(counts).map(deal).collect();
    let last = cores.saturating_sub(1);
    seats.extend(fixed.iter().map(|(group, count)| (group.clone(), vec![last; (*count).into()])));
    seats
}

/// The placement with two threads of different groups and cores in each other's place; none where no such two were drawn.
pub(super) fn swapped(groups: &[String], seats: &Seats, draws: &mut Draws) -> Option<Seats> {
    let threads: Vec<(&String, usize)> =
        groups.iter().flat_map(|group| (0..seats[group].len()).map(move |index| (group, index))).collect();
    let [one, other] = [(); 2].map(|()| threads[draws.below(threads.len())]);
    let (from, to) = (seats[one.0][one.1], seats[other.0][other.1]);
    if one.0 == other.0 || from == to {
        return None;
    }
    let mut seats = seats.clone();
    for ((group, index), core) in [(one, to), (other, from)] {
        let cores = seats.get_mut(group).expect("a group of the search");
        cores[index] = core;
        // Which of a group's threads is where makes no difference that is looked for.
        cores.sort_unstable();
    }
    Some(seats)
}

/// Draws that are the same for the same seed: `SplitMix64`.
pub(super) struct Draws(pub(super) u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % count as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_keep_the_threads_and_leave_one_in_each_group() {
        let counts = [3, 1, 2];
        assert_eq!(added(&counts, 1, &[0, 2]), [[4, 1, 2], [3, 1, 3]]);
        assert!(added(&counts, 0, &[0, 2]).is_empty());
        assert_eq!(exchanged(&counts, &[0, 1, 2]), [[2, 2, 2], [2, 1, 3], [4, 1, 1], [3, 2, 1]]);
        assert_eq!(exchanged(&counts, &[2]), [[2, 1, 3]]);
        assert_eq!(fewer(&counts), [[2, 1, 2], [3, 1, 1]]);
        assert_eq!(proportional(&[6.0, 1.0, 3.1], 10), [6, 1, 3]);
        assert_eq!(proportional(&[6.0, 1.0, 3.1], 2), [1, 1, 1]);
        assert_eq!(doubled(&counts, 0, &[0, 1, 2]), [[1, 3, 2], [1, 1, 4], [2, 3, 1]]);
        assert_eq!(doubled(&counts, 1, &[0]), [[5, 1, 1]]);
        assert_eq!(doubled(&counts, 2, &[1]), [[1, 3, 2], [2, 3, 1], [2, 3, 2], [3, 3, 1], [3, 3, 2]]);
    }

    #[test]
    fn a_swap_keeps_how_many_threads_a_core_has() {
        let groups = ["one", "two"].map(String::from);
        let seats = dealt(&groups, &[3, 2], &BTreeMap::from([("log".into(), 1)]), 2);
        assert_eq!((&seats["one"], &seats["two"], &seats["log"]), (&vec![0, 1, 0], &vec![1, 0], &vec![1]));
        let mut draws = Draws(1);
        let swapped: Vec<Seats> = (0..32).filter_map(|_| swapped(&groups, &seats, &mut draws)).collect();
        assert!(swapped.len() > 4);
        for swapped in swapped {
            let on = |core: u16| groups.iter().flat_map(|group| &swapped[group]).filter(|seat| **seat == core).count();
            assert_eq!(([on(0), on(1)], &swapped["log"]), ([3, 2], &vec![1]));
        }
    }
}
