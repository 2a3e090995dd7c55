//! The least vocabulary, and a stage that does nothing: what tests of this crate draw plans and take turns with.

use crate::{Accepts, Counters, Stage, Turn, Vocabulary};
use units::Time;

pub(crate) struct Words;

impl Vocabulary for Words {
    type Message = u8;
    type Work = ();
    type Note = u8;
    const WORK: &'static [&'static str] = &["any"];
    fn work_index(_work: ()) -> usize {
        0
    }
    fn subject(_message: &u8) -> Option<u32> {
        None
    }
    fn lock_granted(_lock: u32) -> u8 {
        0
    }
    const COUNTERS: usize = 1;
    fn count(note: &u8, _at: Time, counters: &Counters) {
        counters.add(0, (*note).into());
    }
}

pub(crate) struct Node;

impl Accepts<u8> for Node {}

impl Stage<Words> for Node {
    fn on_message(&mut self, _turn: &mut Turn<'_, Words>, _message: &u8) {}
}
