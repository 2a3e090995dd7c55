//! One thread of a layered firmware: it runs several parts, which call each other as functions instead of sending messages.
//!
//! ```text
//! message or alarm -> part -> calls between parts of this thread, one after another -> the rest is sent
//! ```
//! A call costs the work it does and nothing for being sent or taken up. Parts that several threads share lie under locks: the turn
//! is cut before such a call, so that the lock is asked for when it is needed and held for as long as the call takes. A thread
//! that does not get the lock does nothing else until it does, as a thread that spins would.
//!
//! To whoever asks where the time of a command went this thread is its parts: it tells how its turns divide over them, and which of them
//! has the command in between.

use crate::message::*;
use crate::policies::trans_of;
use crate::{Firmware, LatencyPart, Note, Settings, Tables, Turn};
use stage::{Accepts, Guarded, LineId, Stage, Vocabulary};
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Span, Time};

/// A part that a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Nvmq,
    Ilock,
    Cache,
    Trans,
    Log,
    Bgc,
    Fcmd,
}

impl Part {
    /// As DeepFlash calls the group of threads that runs it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Nvmq => "nvmq",
            Part::Ilock => "ilock",
            Part::Cache => "cache",
            Part::Trans => "trans",
            Part::Log => "log",
            Part::Bgc => "bgc",
            Part::Fcmd => "fcmd",
        }
    }
    fn latency(self) -> LatencyPart {
        match self {
            Part::Nvmq => LatencyPart::Nvmq,
            Part::Ilock => LatencyPart::Ilock,
            Part::Cache => LatencyPart::Cache,
            Part::Trans => LatencyPart::Trans,
            Part::Fcmd => LatencyPart::Fcmd,
            Part::Log | Part::Bgc => LatencyPart::Other,
        }
    }
}

/// A part, whichever it is.
pub(crate) type AnyStage = Box<dyn Stage<Firmware>>;

/// Whose a part is.
pub(crate) enum Hold {
    /// This thread's alone.
    Own(AnyStage),
    /// Every thread's that has it.
    Shared(Guarded<AnyStage>),
}

/// A part of this thread.
pub(crate) struct Member {
    pub(crate) part: Part,
    pub(crate) hold: Hold,
    alarm: Time,
}

impl Member {
    pub(crate) fn new(part: Part, hold: Hold) -> Self {
        // Every stage is woken when a run begins.
        Member { part, hold, alarm: Time::ZERO }
    }
}

/// One thread and its parts. The shared ones of a kind stand in the order of their regions.
pub(crate) struct Layer {
    members: Vec<Member>,
    settings: Settings,
    tables: Arc<Tables>,
    /// Calls that are still to be made, in order; the first may wait for its lock.
    calls: VecDeque<Message>,
    /// Messages that came while a lock was waited for.
    backlog: VecDeque<Message>,
    waiting_since: Option<Time>,
    holding: bool,
    /// What this turn did, by part.
    spent: Vec<(LatencyPart, Span)>,
    /// Which part had each command of this turn last.
    had: Vec<(CommandKey, LatencyPart)>,
    /// How many messages of this turn are no calls.
    stay: usize,
    /// What a part sent messages about.
    sent: Vec<CommandKey>,
}

impl<In> Accepts<In> for Layer {}

impl Layer {
    pub(crate) fn new(mut members: Vec<Member>, settings: Settings, tables: Arc<Tables>) -> Self {
        members.sort_by_key(|member| member.part);
        Layer {
            members,
            settings,
            tables,
            calls: VecDeque::new(),
            backlog: VecDeque::new(),
            waiting_since: None,
            holding: false,
            spent: Vec::new(),
            had: Vec::new(),
            stay: 0,
            sent: Vec::new(),
        }
    }

    /// The part that a message is for, and, of those that are split into regions, the region; none of what leaves for hardware.
    fn addressee(&self, message: &Message) -> Option<(Part, usize)> {
        Some(match message {
            Message::Fetch(_)
            | Message::Take(_)
            | Message::Forward(_)
            | Message::Transferred(_)
            | Message::LockReply(_)
            | Message::LockJoin(_)
            | Message::LockSkipped(_)
            | Message::QueueEased(_) => (Part::Nvmq, 0),
            Message::LockRequest(LockRequest { thread, .. })
            | Message::LockSkip(LockSkip { thread, .. })
            | Message::LockRelease(LockRelease { lock: LockId { thread, .. }, .. }) => {
                (Part::Ilock, usize::from(*thread))
            }
            Message::CacheRequest(request) => (Part::Cache, self.region(request)),
            Message::TransRequest(request) => (Part::Trans, self.owner(request)),
            Message::Reclaimed(reclaimed) => (Part::Trans, reclaimed.trans.into()),
            Message::ReclaimRequest(_) => (Part::Bgc, 0),
            Message::FlashRequest(_) | Message::ChannelDone(_) => (Part::Fcmd, 0),
            Message::PageDone(done) => match done.requester.group {
                Asker::Nvmq => (Part::Nvmq, 0),
                Asker::Cache => (Part::Cache, done.requester.index.into()),
                Asker::Bgc => (Part::Bgc, 0),
                Asker::Log => (Part::Log, 0),
                Asker::Power => return None,
                Asker::Worker | Asker::Fil => unreachable!("they are of other architectures"),
            },
            Message::DoorbellsWritten(_)
            | Message::Transfer(_)
            | Message::ChannelRequest(_)
            | Message::Posted(_)
            | Message::QueueDealt(_)
            | Message::Interrupt(_) => return None,
            // The thread's own, and of other architectures.
            Message::LockGranted(_)
            | Message::WorkerIdle(_)
            | Message::SubRequest(_)
            | Message::ReclaimOrder(_)
            | Message::EventPulled(_) => return None,
        })
    }

    fn region(&self, request: &CacheRequest) -> usize {
        request.lpn.0 as usize % self.tables.cache_entries % usize::from(self.settings.parts.cache)
    }

    fn owner(&self, request: &TransRequest) -> usize {
        match request.operation {
            TransOperation::Erase(page) => {
                let groups = &self.tables.groups;
                groups.owner(groups.of(page)).expect("the journal erases its own") as usize
            }
            // It is told by its number.
            TransOperation::Tidy | TransOperation::Close(_) | TransOperation::Fence | TransOperation::Sign => {
                request.lpn.0 as usize
            }
            _ => trans_of(self.settings.split, request.lpn, self.settings.parts.trans).into(),
        }
    }

    fn place(&self, message: &Message) -> usize {
        let taken = self.addressee(message).and_then(|(part, region)| {
            let first = self.members.iter().position(|member| member.part == part)?;
            Some((first, region))
        });
        let (first, region) = taken.unwrap_or_else(|| panic!("no part of this thread takes {message:?}"));
        match self.members[first].hold {
            Hold::Own(_) => first,
            Hold::Shared(_) => first + region,
        }
    }

    /// Whether a message is a call: to a part of this thread, or to one that it shares.
    fn is_call(&self, to_this_stage: bool, message: &Message) -> bool {
        let is_shared =
            |(part, _)| self.members.iter().any(|member| member.part == part && matches!(member.hold, Hold::Shared(_)));
        to_this_stage || self.addressee(message).is_some_and(is_shared)
    }

    /// Makes calls until none is left, a lock must be waited for, or the turn must be cut.
    fn run(&mut self, turn: &mut Turn<'_>) {
        let mut begun = false;
        loop {
            if self.calls.is_empty()
                && let Some(message) = self.backlog.pop_front()
            {
                self.passes(turn, message.key(), LatencyPart::Other);
                self.calls.push_back(message);
            }
            let Some(&message) = self.calls.front() else { break };
            let place = self.place(&message);
            let shared = matches!(self.members[place].hold, Hold::Shared(_));
            if shared && begun {
                turn.go_on(Firmware::subject(&message));
                break;
            }
            if !self.call(turn, place, message) {
                break;
            }
            begun = true;
            if shared {
                if let Some(next) = self.calls.front().or(self.backlog.front()) {
                    turn.go_on(Firmware::subject(next));
                }
                break;
            }
        }
        self.report(turn);
        let next = self.members.iter().map(|member| member.alarm).min().unwrap_or(Time::NEVER);
        turn.wake_at(next);
    }

    /// Makes one call; `false` if its lock is another's.
    fn call(&mut self, turn: &mut Turn<'_>, place: usize, message: Message) -> bool {
        let before = turn.now();
        let part = self.members[place].part;
        self.has(turn, message.key(), part);
        match &mut self.members[place].hold {
            Hold::Own(stage) => stage.on_message(turn, &message),
            Hold::Shared(guarded) => {
                if !self.holding {
                    if !turn.try_lock(guarded.lock()) {
                        self.waiting_since = Some(before);
                        return false;
                    }
                    turn.note(Note::StructureLocked { waited: Span::ZERO });
                }
                self.holding = false;
                guarded.with(|stage| stage.on_message(turn, &message));
                turn.unlock(guarded.lock());
            }
        }
        self.calls.pop_front();
        self.finish(turn, place, part, before);
        true
    }

    /// After a part's work: its alarm, its calls, and what it took.
    fn finish(&mut self, turn: &mut Turn<'_>, place: usize, part: Part, before: Time) {
        if let Some(alarm) = turn.take_alarm() {
            self.members[place].alarm = alarm;
        }
        let (mut stay, mut sent) = (self.stay, std::mem::take(&mut self.sent));
        while let Some(call) = turn.take_send(&mut stay, |to_this_stage, message| {
            sent.push(message.key());
            self.is_call(to_this_stage, message)
        }) {
            self.calls.push_back(call);
        }
        sent.drain(..).for_each(|key| self.has(turn, key, part));
        (self.stay, self.sent) = (stay, sent);
        let (part, took) = (part.latency(), turn.now() - before);
        match self.spent.iter_mut().find(|(known, _)| *known == part) {
            Some((_, spent)) => *spent += took,
            None => self.spent.push((part, took)),
        }
    }

    /// A part takes up a command, or lets it go on that it kept. LOG and BGC work beside requests.
    fn has(&mut self, turn: &mut Turn<'_>, key: CommandKey, part: Part) {
        if !matches!(part, Part::Log | Part::Bgc) {
            self.passes(turn, key, part.latency());
        }
    }

    /// A command goes over to a part, or into the thread's own line: told once in a row.
    fn passes(&mut self, turn: &mut Turn<'_>, key: CommandKey, part: LatencyPart) {
        if key == CommandKey::NONE {
            return;
        }
        match self.had.iter_mut().find(|(known, _)| *known == key) {
            Some((_, last)) if *last == part => return,
            Some((_, last)) => *last = part,
            None => self.had.push((key, part)),
        }
        turn.note(Note::PartHas { key, part });
    }

    /// Tells how the turn divides over the parts of a latency.
    fn report(&mut self, turn: &mut Turn<'_>) {
        self.had.clear();
        self.stay = 0;
        let all: Span = self.spent.iter().map(|(_, spent)| *spent).sum();
        for (part, spent) in self.spent.drain(..) {
            if all > Span::ZERO {
                turn.note(Note::TurnShare { part, share: spent.secs_f64() / all.secs_f64() });
            }
        }
    }

    /// Wakes the parts whose alarm is due.
    fn ring(&mut self, turn: &mut Turn<'_>) {
        for place in 0..self.members.len() {
            if self.members[place].alarm > turn.now() {
                continue;
            }
            let (before, part) = (turn.now(), self.members[place].part);
            self.members[place].alarm = Time::NEVER;
            if let Hold::Own(stage) = &mut self.members[place].hold {
                stage.on_wake(turn);
            }
            self.finish(turn, place, part, before);
        }
    }
}

impl Stage<Firmware> for Layer {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        if let Message::LockGranted(_) = message {
            let since = self.waiting_since.take().expect("a lock is granted to a thread that waits for it");
            turn.note(Note::StructureLocked { waited: turn.now().since(since) });
            self.holding = true;
        } else if self.waiting_since.is_some() {
            self.passes(turn, message.key(), LatencyPart::Other);
            self.had.clear();
            self.backlog.push_back(*message);
            return;
        } else {
            self.calls.push_back(*message);
        }
        self.run(turn);
    }

    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if self.waiting_since.is_some() {
            // The alarm is set anew when the thread goes on.
            return;
        }
        if self.calls.is_empty() && self.backlog.is_empty() {
            self.ring(turn);
        }
        self.run(turn);
    }

    fn prefetch(&self, message: &Message) -> Option<LineId> {
        let (part, _) = self.addressee(message)?;
        let own = self.members.iter().filter(|member| member.part == part).filter_map(|member| match &member.hold {
            Hold::Own(stage) => stage.prefetch(message),
            _ => None,
        });
        own.reduce(|_, line| line)
    }
}
