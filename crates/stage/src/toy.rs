//! The least vocabulary, and a stage that does nothing: what tests of this crate draw plans and take turns with.

use crate::{Accepts, Stage, Turn, Vocabulary};

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
}

pub(crate) struct Node;

impl Accepts<u8> for Node {}

impl Stage<Words> for Node {
    fn on_message(&mut self, _turn: &mut Turn<'_, Words>, _message: u8) {}
}
