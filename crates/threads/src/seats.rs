//! The stages that live on one thread: their inboxes, and who goes next.

use crate::line::Line;
use stage::{Part, Stage, Vocabulary};
use units::StageId;

/// A stage and what waits for it.
pub(crate) struct Seat<V: Vocabulary> {
    pub(crate) id: StageId,
    pub(crate) stage: Box<dyn Stage<V>>,
    inbox: Inbox<V>,
    inbox_max: usize,
    /// Whether its alarm rang, and it has not been woken yet.
    rang: bool,
}

/// Messages in the order they came.
pub(crate) type Inbox<V> = Vec<<V as Vocabulary>::Message>;

/// In place of a seat: the stage lives on another thread.
const ELSEWHERE: u16 = u16::MAX;

/// The stages of one thread, each in a seat.
pub(crate) struct Seats<V: Vocabulary> {
    seats: Vec<Seat<V>>,
    /// The seat of each stage of the plan.
    places: Vec<u16>,
    line: Line,
}

impl<V: Vocabulary> Seats<V> {
    /// No stage yet, of a plan of so many.
    pub(crate) fn new(stages: usize) -> Self {
        Seats { seats: Vec::new(), places: vec![ELSEWHERE; stages], line: Line::default() }
    }

    pub(crate) fn install(&mut self, id: StageId, part: Part<V>) {
        let (inbox_max, stage) = (part.inbox as usize, part.stage.expect("the plan was checked"));
        self.places[id.index()] = self.seats.len() as u16;
        self.seats.push(Seat { id, stage, inbox: Vec::new(), inbox_max, rang: false });
        self.line.add(self.seats.len() - 1);
    }

    /// How many stages live here.
    pub(crate) fn len(&self) -> usize {
        self.seats.len()
    }

    #[inline]
    pub(crate) fn seat(&mut self, seat: usize) -> &mut Seat<V> {
        &mut self.seats[seat]
    }

    /// Puts a message into an inbox, if the stage lives here; whether it does.
    #[inline]
    pub(crate) fn accept(&mut self, to: StageId, message: &V::Message) -> bool {
        let at = usize::from(self.places[to.index()]);
        let Some(seat) = self.seats.get_mut(at) else { return false };
        if seat.inbox.len() >= seat.inbox_max {
            overfull(to);
        }
        seat.stage.prefetch(message);
        seat.inbox.push(*message);
        // Behind others it stands in line already.
        if seat.inbox.len() == 1 {
            self.line.join(at);
        }
        true
    }

    /// The alarm of a stage that lives here rings.
    pub(crate) fn ring(&mut self, id: StageId) {
        let seat = usize::from(self.places[id.index()]);
        self.seats[seat].rang = true;
        self.line.join(seat);
    }

    /// The seat of who goes next, taken out of line.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<usize> {
        self.line.take()
    }

    /// The stages that live here.
    pub(crate) fn ids(&self) -> impl Iterator<Item = StageId> + '_ {
        self.seats.iter().map(|seat| seat.id)
    }
}

/// Apart, and by value: whom a message goes to need not stand in memory for it.
#[cold]
fn overfull(to: StageId) -> ! {
    panic!("{to} was sent more than was admitted towards it");
}

impl<V: Vocabulary> Seat<V> {
    /// Whether its alarm rang, which comes before the messages.
    #[inline]
    pub(crate) fn take_alarm(&mut self) -> bool {
        std::mem::take(&mut self.rang)
    }

    /// Exchanges the inbox for an empty one: what comes from now on waits for the stage's next turn in the line.
    #[inline]
    pub(crate) fn empty_inbox(&mut self, empty: &mut Inbox<V>) {
        std::mem::swap(&mut self.inbox, empty);
    }
}
