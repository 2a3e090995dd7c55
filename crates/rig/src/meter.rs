//! The meter of a run: where each request's time went, and what the firmware's notes add up to.
//!
//! A command's time is cut at every turn about it. Between two turns it belongs to the part that had the command last: a core
//! stage's hop and its own lines of waiters, the media, the link. From its arrival in an inbox until its turn begins it is
//! queueing; the turn itself belongs to the stage's group. Pages of one command run side by side: each instant is counted once, for
//! the turn that ends it, so the parts of a command sum to its latency exactly.

use firmware::{CommandKey, Firmware, Note};
use stage::{Probe, TurnRecord};
use units::{Span, StageId, Time};

/// Parts of a latency, in the order a command meets them.
pub(crate) const PARTS: [&str; 10] =
    ["fetch", "nvmq", "ilock", "cache", "trans", "fcmd", "flash", "dma", "queueing", "completion"];

const FETCH: usize = 0;
const NVMQ: usize = 1;
const QUEUEING: usize = 8;
const COMPLETION: usize = 9;

/// Where time goes while a group has a command and while it is between the group's turn and the next.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    turn: u8,
    after: u8,
}

/// The parts of a stage by its group; time after an FCMD turn is spent waiting for the die.
fn share(group: &str) -> Share {
    let part = |name: &str| PARTS.iter().position(|part| *part == name).expect("a part of the list") as u8;
    match group {
        "channel" => Share { turn: part("flash"), after: part("flash") },
        "link" => Share { turn: part("dma"), after: part("dma") },
        "fcmd" => Share { turn: part("fcmd"), after: part("flash") },
        "nvmq" | "ilock" | "cache" | "trans" => Share { turn: part(group), after: part(group) },
        _ => Share { turn: QUEUEING as u8, after: QUEUEING as u8 },
    }
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Live {
    /// Up to here its time is accounted for.
    cursor: Time,
    after: u8,
    parts: [u64; PARTS.len()],
}

const RESTING: Live = Live { cursor: Time::ZERO, after: QUEUEING as u8, parts: [0; PARTS.len()] };

/// Mean parts of a latency.
#[derive(Clone, Debug, Default)]
pub struct Breakdown {
    /// Commands counted.
    pub commands: u64,
    /// Time of all of them in each part.
    pub parts: [u128; PARTS.len()],
}

/// What the notes add up to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) cache_hits: u64,
    pub(crate) cache_misses: u64,
    pub(crate) bypasses: u64,
    pub(crate) evictions: u64,
    pub(crate) locks: u64,
    pub(crate) lock_waits: u64,
    pub(crate) lock_time: Span,
    pub(crate) lock_wait_time: Span,
    pub(crate) groups_reclaimed: u64,
    pub(crate) pages_moved: u64,
    pub(crate) foreground: Span,
    pub(crate) checkpoints: u64,
    pub(crate) journal_pages: u64,
}

/// One thing that a time line shows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Turn(TurnRecord),
    Die {
        stage: StageId,
        die: u16,
        operation: flash::Operation,
        from: Time,
        to: Time,
    },
    /// A command was submitted, or its completion seen; how many are outstanding now.
    Outstanding {
        at: Time,
        commands: u32,
        completed: bool,
    },
}

/// The observer of a run.
pub(crate) struct Meter {
    shares: Vec<Share>,
    /// Commands by queue and identifier.
    live: Vec<Live>,
    depth: usize,
    pub(crate) breakdown: Breakdown,
    pub(crate) counts: Counts,
    /// What a time line is made of, up to a limit, if one is wanted.
    pub(crate) events: Vec<Event>,
    events_max: usize,
    outstanding: u32,
    opened: bool,
}

impl Meter {
    pub(crate) fn new(groups: &[(&'static str, String)], queues: usize, depth: usize, events_max: usize) -> Self {
        Meter {
            shares: groups.iter().map(|(group, _)| share(group)).collect(),
            live: vec![RESTING; queues * depth],
            depth,
            breakdown: Breakdown::default(),
            counts: Counts::default(),
            events: Vec::new(),
            events_max,
            outstanding: 0,
            opened: false,
        }
    }

    /// Counts anew from here. A time line begins where counting first does.
    pub(crate) fn reset(&mut self) {
        if !self.opened {
            self.opened = true;
            self.events.clear();
        }
        self.breakdown = Breakdown::default();
        self.counts = Counts::default();
    }

    /// Whether events were left out because there were too many.
    pub(crate) fn is_cut(&self) -> bool {
        self.events_max > 0 && self.events.len() == self.events_max
    }

    #[inline]
    fn keep(&mut self, event: Event) {
        if self.events.len() < self.events_max {
            self.events.push(event);
        }
    }

    /// Keeps how many commands are outstanding, where a time line is wanted.
    fn follow(&mut self, at: Time, note: &Note) {
        let completed = match note {
            _ if self.events_max == 0 => return,
            Note::Submitted(_) => false,
            Note::Reaped { .. } => true,
            _ => return,
        };
        self.outstanding = if completed { self.outstanding.saturating_sub(1) } else { self.outstanding + 1 };
        self.keep(Event::Outstanding { at, commands: self.outstanding, completed });
    }

    fn live(&mut self, key: u32) -> Option<&mut Live> {
        let key = CommandKey(key);
        let index = (key.queue().index().wrapping_sub(1)) * self.depth + usize::from(key.id());
        self.live.get_mut(index)
    }

    fn on_note(&mut self, at: Time, note: Note) {
        let counts = &mut self.counts;
        match note {
            Note::Submitted(key) => {
                if let Some(live) = self.live(key.0) {
                    *live = Live { cursor: at, after: FETCH as u8, ..RESTING };
                }
            }
            Note::Taken(key) => {
                if let Some(live) = self.live(key.0) {
                    live.advance(at, FETCH as u8);
                    live.after = NVMQ as u8;
                }
            }
            Note::Completed(key) => {
                if let Some(live) = self.live(key.0) {
                    live.after = COMPLETION as u8;
                }
            }
            Note::Reaped { key, counted } => {
                let Some(live) = self.live(key.0) else { return };
                live.advance(at, COMPLETION as u8);
                let parts = live.parts;
                if counted {
                    self.breakdown.commands += 1;
                    for (sum, part) in self.breakdown.parts.iter_mut().zip(parts) {
                        *sum += u128::from(part);
                    }
                }
            }
            Note::LockAnswered { asked, waited } => {
                counts.locks += 1;
                counts.lock_time += at.since(asked);
                if waited {
                    counts.lock_waits += 1;
                    counts.lock_wait_time += at.since(asked);
                }
            }
            Note::CacheHit => counts.cache_hits += 1,
            Note::CacheMiss => counts.cache_misses += 1,
            Note::CacheBypass => counts.bypasses += 1,
            Note::CacheEviction => counts.evictions += 1,
            Note::GroupReclaimed { moved, on_demand, since } => {
                counts.groups_reclaimed += 1;
                counts.pages_moved += u64::from(moved);
                if on_demand {
                    counts.foreground += at.since(since);
                }
            }
            Note::CheckpointCommitted { pages, .. } => {
                counts.checkpoints += 1;
                counts.journal_pages += u64::from(pages);
            }
            Note::DieBusy { .. } => {}
        }
    }
}

impl Live {
    /// Accounts for the time up to `until`; what is accounted for already stays as it is.
    fn advance(&mut self, until: Time, part: u8) {
        let passed = until.since(self.cursor);
        if passed > Span::ZERO {
            self.parts[usize::from(part)] += passed.picos();
            self.cursor = until;
        }
    }
}

impl Probe<Firmware> for Meter {
    #[inline]
    fn turn(&mut self, record: &TurnRecord, subject: Option<u32>) {
        if let Some(key) = subject {
            let share = self.shares[record.stage.index()];
            if let Some(live) = self.live(key) {
                let after = live.after;
                live.advance(record.arrived, after);
                live.advance(record.started, QUEUEING as u8);
                live.advance(record.ended, share.turn);
                live.after = share.after;
            }
        }
        // Turns of hardware take no time: there would be nothing to see.
        if record.ended > record.started {
            self.keep(Event::Turn(*record));
        }
    }

    #[inline]
    fn note(&mut self, stage: StageId, at: Time, note: Note) {
        if let Note::DieBusy { die, operation, from } = note {
            self.keep(Event::Die { stage, die, operation, from, to: at });
            return;
        }
        self.follow(at, &note);
        self.on_note(at, note);
    }
}
