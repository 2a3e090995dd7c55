//! Who gives way where there is no room for all that have proved nothing yet.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Where a connection comes from: an IPv4 address, or the 64 bits of an IPv6 address that are its network's. The others a host chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin(u64);

impl Origin {
    pub(crate) fn of(address: IpAddr) -> Self {
        Origin(match address.to_canonical() {
            IpAddr::V4(address) => u32::from(address).into(),
            IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
        })
    }
}

/// One that has proved nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unproved<Id, Age> {
    pub(crate) id: Id,
    pub(crate) origin: Origin,
    /// Whether it has begun to prove who it is: it was challenged, at the pace of all, and has yet to answer.
    pub(crate) has_begun: bool,
    /// What is smaller the longer it is there.
    pub(crate) age: Age,
}

/// Who gives way. Those that say nothing push out none that has begun, however many come; those that begin come at the pace that all have
/// together. But they do not fill the room by it: where they have more than half, one of them gives way, so that a host has time to begin.
/// Of either it is one of those with the most from one place, so that a crowd in one place keeps out nobody from another, and the oldest of
/// them: if it were the youngest, who came first would stay, and keep others out without doing anything.
pub(crate) fn gives_way<Id: Copy, Age: Ord + Copy>(all: impl Iterator<Item = Unproved<Id, Age>>) -> Option<Id> {
    let (begun, silent): (Vec<_>, Vec<_>) = all.partition(|one| one.has_begun);
    let crowd = if begun.len() > silent.len() { begun } else { silent };
    let mut shares = BTreeMap::<Origin, usize>::new();
    crowd.iter().for_each(|one| *shares.entry(one.origin).or_default() += 1);
    crowd.iter().min_by_key(|one| (Reverse(shares[&one.origin]), one.age)).map(|one| one.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str) -> Origin {
        Origin::of(address.parse().expect("an address"))
    }

    #[test]
    fn a_host_is_where_it_cannot_choose_to_be() {
        assert_eq!(origin("192.0.2.1"), origin("::ffff:192.0.2.1"));
        assert_ne!(origin("192.0.2.1"), origin("192.0.2.2"));
        assert_eq!(origin("2001:db8:1:2::1"), origin("2001:db8:1:2:ffff::9"));
        assert_ne!(origin("2001:db8:1:2::1"), origin("2001:db8:1:3::1"));
    }

    /// Newcomers at a room of eight; who is there after them.
    fn crowded(room: &mut Vec<Unproved<u32, u32>>, newcomers: impl Iterator<Item = (Origin, bool)>) -> Vec<u32> {
        for (origin, has_begun) in newcomers {
            if room.len() == 8 {
                let gone = gives_way(room.iter().copied()).expect("somebody is there");
                room.retain(|one| one.id != gone);
            }
            let next = room.iter().map(|one| one.id).max().map_or(0, |last| last + 1);
            room.push(Unproved { id: next, origin, has_begun, age: next });
        }
        room.iter().map(|one| one.id).collect()
    }

    fn each(number: u32) -> Origin {
        Origin(1 + u64::from(number))
    }

    #[test]
    fn who_says_nothing_pushes_out_nobody_who_has_begun() {
        let crowd = || (0..1_000).map(|number| (each(number), false));
        assert!(!crowded(&mut Vec::new(), [(each(0), false)].into_iter().chain(crowd())).contains(&0));
        assert!(crowded(&mut Vec::new(), [(each(0), true)].into_iter().chain(crowd())).contains(&0));
    }

    /// Of a room of eight: who has begun stays until four others have, who has not until four others have come.
    #[test]
    fn who_has_begun_has_half_of_the_room_and_who_has_not_the_other() {
        for (has_begun, others, stays) in [(true, 4, true), (true, 5, false), (false, 3, true), (false, 4, false)] {
            let mut room = Vec::new();
            crowded(&mut room, (0..8).map(|number| (each(number), true)));
            crowded(&mut room, (8..12).map(|number| (each(number), false)));
            let host = crowded(&mut room, [(each(99), has_begun)].into_iter()).into_iter().max().expect("it came");
            let crowd = (100..100 + others).map(|number| (each(number), has_begun));
            assert_eq!(crowded(&mut room, crowd).contains(&host), stays, "{has_begun}, {others}");
        }
    }

    #[test]
    fn a_crowd_in_one_place_keeps_out_nobody_from_another() {
        for begins in [[false, false], [true, true], [false, true]] {
            let crowd = (0..1_000).map(|number| (each(7), begins[number % 2]));
            for has_begun in [false, true] {
                let mut room = Vec::new();
                crowded(&mut room, crowd.clone());
                let host = crowded(&mut room, [(each(8), has_begun)].into_iter()).into_iter().max().expect("it came");
                assert!(crowded(&mut room, crowd.clone()).contains(&host), "{begins:?}, {has_begun}");
            }
        }
    }
}
