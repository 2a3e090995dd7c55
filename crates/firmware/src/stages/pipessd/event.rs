//! An event line in hardware, as cores have to wake each other (on ARM: SEV and WFE): it carries no data, and says only that words
//! which the other end looks at have changed.

use crate::message::{EventPulled, Message};
use crate::{Firmware, Turn};
use stage::{Accepts, Address, Stage};

/// One line to one stage.
pub(crate) struct EventLine {
    to: Address<EventPulled>,
}

impl Accepts<EventPulled> for EventLine {}

impl EventLine {
    pub(crate) fn new(to: Address<EventPulled>) -> Self {
        EventLine { to }
    }
}

impl Stage<Firmware> for EventLine {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        match *message {
            Message::EventPulled(pulled) => turn.send(self.to, pulled),
            other => unreachable!("an event line was sent {other:?}"),
        }
    }
}
