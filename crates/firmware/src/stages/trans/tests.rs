//! A TRANS thread alone: who sends it requests, BGC among them, is played.

use super::*;
use crate::message::{CommandKey, Requester};
use crate::policies::pick_victim;
use crate::tables::sample;
use crate::{Blueprint, VictimPolicy};
use stage::{Outbox, Place, Price};
use units::{StageId, Time};

/// Logical pages: so many that all groups that are full hold nothing else when the thread asks for one ahead of need.
const PAGES: u32 = 490;

/// What the thread sends to.
struct Others;
impl Accepts<FlashRequest> for Others {}
impl Accepts<PageDone> for Others {}
impl Accepts<ReclaimRequest> for Others {}

impl Stage<Firmware> for Others {
    fn on_message(&mut self, _turn: &mut Turn<'_>, message: &Message) {
        unreachable!("nothing is delivered: {message:?}")
    }
}

struct Rig {
    trans: Trans,
    tables: Arc<Tables>,
    prices: Vec<Price>,
    written: u32,
}

impl Rig {
    /// Of 512 pages in groups of four, on four dies.
    fn new() -> Self {
        let (drive, settings) = (sample::drive([4, 1, 32, 4], PAGES.into(), |_| {}), sample::settings(1));
        let tables = Arc::new(sample::tables(&drive, &settings));
        let mut plan = Blueprint::default();
        let others = plan.reserve::<Others>("others", "others".into(), Place::Hardware);
        let answers = Answers { nvmq: vec![plan.connect(others, others, 64)], ..Answers::default() };
        let fcmd = vec![plan.connect(others, others, 64)];
        let ways = Ways { fcmd, answers, bgc: plan.connect(others, others, 64), shared: false };
        let trans = Trans::new(0, Arc::new(drive), &settings, tables.clone(), ways);
        Rig { trans, tables, prices: vec![Price::default(); Work::KEYS.len()], written: 0 }
    }

    /// Hands it a message: how many pages it has programmed, and how often it asks for a group.
    fn hand(&mut self, message: &Message) -> [usize; 2] {
        let mut outbox = Outbox::<Firmware>::default();
        let mut turn = stage::Turn::in_real_time(StageId(0), Time::ZERO, &self.prices, &mut outbox);
        self.trans.on_message(&mut turn, message);
        let is_program = |message: &Message| matches!(message, Message::FlashRequest(_));
        let is_ask = |message: &Message| matches!(message, Message::ReclaimRequest(_));
        let count = |is: &dyn Fn(&Message) -> bool| outbox.sends.iter().filter(|(_, message)| is(message)).count();
        [count(&is_program), count(&is_ask)]
    }

    /// Writes the next page, after the last the first again.
    fn write(&mut self) -> [usize; 2] {
        let requester = Requester { group: Asker::Nvmq, index: 0, tag: 0 };
        let (operation, lpn) = (TransOperation::Write, Lpn(self.written % PAGES));
        self.written += 1;
        let request = TransRequest { key: CommandKey::NONE, operation, lpn, frame: 0, pieces: 0, requester };
        self.hand(&Message::TransRequest(request))
    }

    /// BGC tells that no group has garbage.
    fn find_none(&mut self) -> [usize; 2] {
        self.hand(&Message::Reclaimed(Reclaimed { trans: 0, asked: true, first: None, merged: None, sound: true }))
    }

    fn has_garbage(&self) -> bool {
        pick_victim(&self.tables.groups, 0, VictimPolicy::Greedy).is_some()
    }
}

/// On a thread of its own BGC looks through the groups while this one gives out the rest of the room.
#[test]
fn what_bgc_did_not_find_before_the_last_room_was_given_out_is_asked_for_again() {
    let mut rig = Rig::new();
    while rig.write() != [1, 1] {}
    assert!(!rig.has_garbage(), "BGC looks, and finds none");
    while rig.write() == [1, 0] {}
    assert!(rig.has_garbage(), "what was written again");
    assert_eq!(rig.find_none(), [0, 1]);
    assert!(!rig.tables.groups.is_read_only());
}

#[test]
#[should_panic(expected = "trans0 has no room and no garbage")]
fn a_sound_drive_that_has_neither_room_nor_garbage_is_our_own_fault() {
    let mut rig = Rig::new();
    while rig.write() != [1, 1] {}
    while rig.write() == [1, 0] {}
    assert_eq!(rig.find_none(), [0, 1], "it may have looked before");
    rig.find_none();
}
