//! What a time line is made of: the events of the measured parts of a run, and of the commands that were under way when those began.

use firmware::{CommandKey, Note};
use stage::TurnRecord;
use std::collections::BTreeMap;
use units::{StageId, Time};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A turn that took time or was about a command, and that command.
    Turn(TurnRecord, Option<CommandKey>),
    /// A note that the time line shows, of a turn that began then.
    Note { stage: StageId, since: Time, at: Time, note: Note },
}

impl Event {
    /// The command that it is about.
    fn command(&self) -> Option<CommandKey> {
        match *self {
            Event::Turn(_, key) => key,
            Event::Note { note, .. } => note.command(),
        }
    }
}

/// How far a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Of its warm-up only the end will be shown.
    WarmUp,
    /// What is under way in its warm-up leaves too little room to look for what is over: nothing more of that is kept.
    Crowded,
    Measured,
    /// What is still answered is shown nowhere.
    Over,
}

/// Events in the order of the run, up to a limit.
#[derive(Debug)]
pub(crate) struct Events {
    all: Vec<Event>,
    most: usize,
    /// How many there were when the phase began.
    before: usize,
    part: Part,
}

impl Events {
    /// None yet, and so many at most: zero where no time line is wanted.
    pub(crate) fn new(most: usize) -> Self {
        Events { all: Vec::new(), most, before: 0, part: Part::WarmUp }
    }

    pub(crate) fn all(&self) -> &[Event] {
        &self.all
    }

    /// Whether any are wanted.
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        self.most > 0
    }

    /// The most that are kept.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Whether some were left out because there were too many.
    pub(crate) fn is_cut(&self) -> bool {
        self.most > 0 && self.all.len() == self.most
    }

    /// A phase begins, with nothing outstanding.
    pub(crate) fn begin_phase(&mut self) {
        (self.part, self.before) = (Part::WarmUp, self.all.len());
    }

    /// From here on everything is kept, and of what was before the commands that are under way; whether that was not so already.
    pub(crate) fn begin_measuring(&mut self) -> bool {
        let begins = matches!(self.part, Part::WarmUp | Part::Crowded);
        if begins {
            self.part = Part::Measured;
            self.keep_under_way();
        }
        begins
    }

    /// From here on nothing is kept; whether that was not so already.
    pub(crate) fn close(&mut self) -> bool {
        std::mem::replace(&mut self.part, Part::Over) != Part::Over
    }

    /// Keeps one more, if there is room.
    #[inline]
    pub(crate) fn keep(&mut self, event: Event) {
        if self.all.len() == self.most && self.part == Part::WarmUp {
            self.keep_under_way();
            // Who looked again at what is under way whenever a few of the others have come would hardly do anything else.
            if self.all.len() - self.before >= (self.most - self.before).div_ceil(2) {
                self.part = Part::Crowded;
            }
        }
        if self.all.len() < self.most && self.part != Part::Over {
            self.all.push(event);
        }
    }

    /// Of this phase keeps only the events of commands that are under way now.
    #[cold]
    fn keep_under_way(&mut self) {
        let (of_phase, mut began) = (self.all.split_off(self.before), BTreeMap::new());
        for (index, event) in of_phase.iter().enumerate() {
            match event {
                Event::Note { note: Note::Submitted(key), .. } => {
                    began.insert(*key, index);
                }
                Event::Note { note: Note::Reaped { key, .. }, .. } => {
                    began.remove(key);
                }
                _ => {}
            }
        }
        let is_under_way = |index: usize, event: &Event| {
            event.command().and_then(|key| began.get(&key)).is_some_and(|&began| index >= began)
        };
        let under_way = of_phase.into_iter().enumerate().filter(|(index, event)| is_under_way(*index, event));
        self.all.extend(under_way.map(|(_, event)| event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{QueueId, Span};

    fn note(note: Note) -> Event {
        Event::Note { stage: StageId(0), since: Time::ZERO, at: Time::ZERO, note }
    }

    fn key(id: u16) -> CommandKey {
        CommandKey::new(QueueId(1), id)
    }

    /// Commands of three events each, one after the other.
    fn pass(events: &mut Events, commands: u16) {
        for id in 0..commands {
            let reaped = Note::Reaped { key: key(id), counted: Some(Span::ZERO) };
            [Note::Submitted(key(id)), Note::Completed(key(id)), reaped]
                .into_iter()
                .for_each(|it| events.keep(note(it)));
        }
    }

    fn ids(events: &Events) -> Vec<u16> {
        events.all().iter().filter_map(|event| Some(event.command()?.id())).collect()
    }

    #[test]
    fn of_a_warm_up_what_is_under_way_at_its_end_is_kept() {
        let mut events = Events::new(12);
        events.keep(note(Note::Submitted(key(100))));
        pass(&mut events, 50);
        events.keep(note(Note::Submitted(key(101))));
        assert!(events.begin_measuring() && !events.begin_measuring());
        assert_eq!(ids(&events), [100, 101]);
        pass(&mut events, 50);
        assert_eq!((events.all().len(), events.is_cut()), (12, true));
    }

    /// What was kept before has no room for a warm-up: whoever went through it for every event would take hours for a phase.
    #[test]
    fn a_warm_up_without_room_leaves_what_was_before_alone() {
        for room in [0, 1, 2, 5] {
            let mut events = Events::new(99 + room);
            events.begin_measuring();
            pass(&mut events, 33);
            assert!(events.close() && !events.close());
            pass(&mut events, 5);
            assert_eq!(events.all().len(), 99, "what is over keeps nothing");
            events.begin_phase();
            (200..210).for_each(|id| events.keep(note(Note::Submitted(key(id)))));
            let is_crowded = events.part == Part::Crowded;
            pass(&mut events, 20);
            assert!(is_crowded && events.part == Part::Crowded, "{room}");
            assert!(events.begin_measuring());
            let began = 200..200 + room as u16;
            assert!(ids(&events).into_iter().skip(99).eq(began), "{room}: {:?}", ids(&events));
        }
    }
}
