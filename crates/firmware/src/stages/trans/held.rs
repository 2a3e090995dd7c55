//! Requests of the host that wait for room.
//!
//! What waits for the same room goes in the order in which it came. Rooms do not wait for each other: with page mapping there is one, and
//! with hybrid mapping each set of logical blocks has its own.

use crate::message::TransRequest;
use std::collections::{BTreeMap, VecDeque};
use units::Lpn;

/// That something waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// The page of what has waited longest.
    pub(crate) lpn: Lpn,
    /// Rooms that are waited for.
    pub(crate) rooms: u32,
}

/// What waits, by room.
#[derive(Debug, Default)]
pub(super) struct Held {
    rooms: BTreeMap<u32, VecDeque<TransRequest>>,
    /// Rooms in the order in which something began to wait for them.
    order: VecDeque<u32>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether anything waits for a room.
    pub(super) fn has(&self, room: u32) -> bool {
        self.rooms.contains_key(&room)
    }

    pub(super) fn waiting(&self) -> Option<Waiting> {
        let first = self.first(0)?;
        Some(Waiting { lpn: first.lpn, rooms: self.order.len() as u32 })
    }

    pub(super) fn push(&mut self, room: u32, request: TransRequest) {
        let line = self.rooms.entry(room).or_default();
        if line.is_empty() {
            self.order.push_back(room);
        }
        line.push_back(request);
    }

    /// What waits longest for the room at a place in the order.
    pub(super) fn first(&self, at: usize) -> Option<TransRequest> {
        let room = self.order.get(at)?;
        self.rooms[room].front().copied()
    }

    /// Takes that out. Where nothing else waits for the room, the next one comes to its place.
    pub(super) fn pop(&mut self, at: usize) -> Option<TransRequest> {
        let room = *self.order.get(at)?;
        let line = self.rooms.get_mut(&room)?;
        let request = line.pop_front();
        if line.is_empty() {
            self.rooms.remove(&room);
            self.order.remove(at);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Asker, CommandKey, Requester, TransOperation};

    fn request(lpn: u32) -> TransRequest {
        let requester = Requester { group: Asker::Nvmq, index: 0, tag: 0 };
        let (operation, key) = (TransOperation::Write, CommandKey::NONE);
        TransRequest { operation, lpn: Lpn(lpn), frame: 0, pieces: 0, requester, key }
    }

    #[test]
    fn a_room_keeps_its_order_and_rooms_do_not_wait_for_each_other() {
        let mut held = Held::default();
        assert!(held.is_empty() && held.waiting().is_none());
        [(7, 1), (3, 2), (7, 3), (5, 4)].into_iter().for_each(|(room, lpn)| held.push(room, request(lpn)));
        let waiting = held.waiting().expect("four wait");
        assert_eq!((waiting.lpn, waiting.rooms), (Lpn(1), 3));
        assert!(held.has(3) && !held.has(1));
        let mut pop = |at| held.pop(at).map(|request| request.lpn.0);
        assert_eq!([pop(1), pop(1), pop(1)], [Some(2), Some(4), None], "while the first room waits");
        assert_eq!([pop(0), pop(0), pop(0)], [Some(1), Some(3), None]);
        assert!(held.is_empty() && !held.has(7));
    }
}
