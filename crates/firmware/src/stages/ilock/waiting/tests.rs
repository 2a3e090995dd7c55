//! The order in which those that wait are served, against one list that is searched from its first to its last.

use super::*;
use crate::message::CommandKey;
use crate::stages::held::HeldRanges;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Units of a region.
const UNITS: u32 = 16;
const UNIT: Bytes = Bytes(LOCK_REGION.0 / UNITS as u64);

fn request(key: u32, range: LockedRange) -> LockRequest {
    LockRequest {
        key: CommandKey(key),
        range,
        extent: extent(range),
        ticket: 0,
        nvmq: 0,
        thread: 0,
        segment: 0,
        waits: key.is_multiple_of(3),
        slot: 0,
        under_way: 0,
    }
}

/// What is held, and what became of each request: the number of its range.
struct Held {
    ranges: HeldRanges,
    served: Vec<(u32, u16)>,
}

impl Held {
    fn new() -> Self {
        Held { ranges: HeldRanges::new(UNIT), served: Vec::new() }
    }

    /// Serves a request, unless it must wait for what it meets.
    fn serve(&mut self, request: &LockRequest) -> bool {
        let number = match self.ranges.met_by(request.range) {
            None => self.ranges.insert(request.range, 0),
            Some(met) if met.alone && !request.waits => {
                self.ranges.share(met.number, request.range);
                met.number
            }
            Some(_) => return false,
        };
        self.served.push((request.key.0, number));
        true
    }
}

/// Serves from a list what waited for a range: whatever meets what has changed, and nothing that waits before it.
fn serve_from(list: &mut VecDeque<LockRequest>, held: &mut Held, freed: LockedRange) {
    let (mut changed, mut at) = (vec![freed], 0);
    while let Some(&request) = list.get(at) {
        let concerned = changed.iter().any(|range| range.meets(request.range));
        let behind = list.iter().take(at).any(|earlier| earlier.range.meets(request.range));
        if concerned && !behind && held.serve(&request) {
            list.remove(at);
            changed.push(request.range);
        } else {
            at += 1;
        }
    }
}

fn serve(waiting: &mut Waiting, held: &mut Held, freed: LockedRange) {
    waiting.concern(freed);
    while let Some((number, request)) = waiting.next_concerned() {
        if held.serve(&request) {
            waiting.remove(number);
        }
    }
}

/// Whether a request comes or one is given back; a range within one of three regions; and a number.
fn steps() -> impl Strategy<Value = Vec<(bool, LockedRange, usize)>> {
    let range = (0u32..3, 0u32..UNITS, 0u32..4).prop_map(|(region, first, more)| LockedRange {
        first: region * UNITS + first,
        last: region * UNITS + (first + more).min(UNITS - 1),
    });
    prop::collection::vec((prop::bool::weighted(0.6), range, 0usize..1000), 1..300)
}

proptest! {
    #[test]
    fn requests_are_served_in_the_order_in_which_a_search_of_all_of_them_finds_them(steps in steps()) {
        let (mut waiting, mut held) = (Waiting::new(UNIT), Held::new());
        let (mut list, mut of_list) = (VecDeque::<LockRequest>::new(), Held::new());
        let mut given_back = 0;
        let ends = std::iter::repeat_n((false, LockedRange { first: 0, last: 0 }, 0), steps.len());
        for (key, (comes, range, pick)) in (0..).zip(steps.iter().copied().chain(ends)) {
            if comes {
                let request = request(key, range);
                let behind = list.iter().any(|earlier| earlier.range.meets(range));
                prop_assert_eq!(waiting.meets(range), behind);
                if behind || !held.serve(&request) {
                    waiting.push(&request);
                }
                if behind || !of_list.serve(&request) {
                    list.push_back(request);
                }
            } else if given_back < held.served.len() {
                let at = given_back + pick % (held.served.len() - given_back);
                held.served.swap(given_back, at);
                of_list.served.swap(given_back, at);
                let (_, number) = held.served[given_back];
                given_back += 1;
                let freed = held.ranges.give_back(number, 1);
                prop_assert_eq!(freed, of_list.ranges.give_back(number, 1));
                if let Some(freed) = freed {
                    serve(&mut waiting, &mut held, freed);
                    serve_from(&mut list, &mut of_list, freed);
                }
            }
            prop_assert_eq!(&held.served, &of_list.served);
        }
        prop_assert_eq!((held.served.len(), given_back), (steps.iter().filter(|step| step.0).count(), given_back));
        prop_assert!(waiting.regions.is_empty() && waiting.requests.len() == 0);
    }
}
