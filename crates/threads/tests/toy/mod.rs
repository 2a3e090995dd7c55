//! A little firmware for tests and benchmarks of the executor: tokens that travel, each hop checked for order.

use stage::{Accepts, Address, Blueprint, Place, Slot, Stage, Turn, Vocabulary};
use units::CoreId;

/// The toy's words.
pub(crate) struct Toy;

/// A token on its way, or the grant of a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// A token.
    Token {
        /// The number of the stage that sent it, in the toy's own order.
        from: usize,
        /// How many tokens that stage sent to this one before.
        sequence: u64,
        /// How many hops it has left.
        hops: u64,
        /// Fills the message up to the most that one may have.
        filling: [u64; 4],
    },
    /// A lock is the receiver's own.
    Granted(u32),
}

const _: () = assert!(size_of::<Message>() == 64);

/// A token in particular.
pub(crate) fn token(from: usize, sequence: u64, hops: u64) -> Message {
    Message::Token { from, sequence, hops, filling: [hops; 4] }
}

impl Vocabulary for Toy {
    type Message = Message;
    type Work = ();
    type Note = u64;
    const WORK: &'static [&'static str] = &["hop"];
    fn work_index(_work: ()) -> usize {
        0
    }
    fn subject(message: &Message) -> Option<u32> {
        match message {
            Message::Token { sequence, .. } => Some(*sequence as u32),
            Message::Granted(_) => None,
        }
    }
    fn lock_granted(lock: u32) -> Message {
        Message::Granted(lock)
    }
}

/// Sends each token on to a neighbour, and checks that those of each neighbour come once each and in order.
pub(crate) struct Hopper {
    index: usize,
    neighbours: Vec<Address<Message>>,
    /// Told of each token that has no hops left.
    done: Address<Message>,
    sent: Vec<u64>,
    seen: Vec<u64>,
    /// Tokens to send in the first turn, and the hops each makes.
    first: (u64, u64),
    draw: u64,
}

impl Accepts<Message> for Hopper {}

impl Hopper {
    fn send_on(&mut self, turn: &mut Turn<'_, Toy>, hops: u64) {
        if hops == 0 {
            turn.send(self.done, token(self.index, 0, hops));
            return;
        }
        // Any sequence that visits all neighbours unevenly: Knuth's MMIX generator, from its high bits.
        self.draw = self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let to = (self.draw >> 33) as usize % self.neighbours.len();
        turn.send(self.neighbours[to], token(self.index, self.sent[to], hops - 1));
        self.sent[to] += 1;
    }
}

impl Stage<Toy> for Hopper {
    fn on_wake(&mut self, turn: &mut Turn<'_, Toy>) {
        for _ in 0..self.first.0 {
            self.send_on(turn, self.first.1);
        }
    }

    fn on_message(&mut self, turn: &mut Turn<'_, Toy>, message: &Message) {
        let (from, sequence, hops) = match *message {
            Message::Token { from, sequence, hops, filling } => {
                assert_eq!(filling, [hops; 4], "a message arrives whole");
                (from, sequence, hops)
            }
            Message::Granted(lock) => panic!("lock {lock} is granted to a stage that never asked"),
        };
        assert_eq!(sequence, self.seen[from], "hopper {} hears {from} once each and in order", self.index);
        self.seen[from] += 1;
        turn.spend(());
        self.send_on(turn, hops);
    }
}

/// Ends the run when it has heard of so many tokens.
pub(crate) struct Counter {
    left: u64,
}

impl Accepts<Message> for Counter {}

impl Stage<Toy> for Counter {
    fn on_message(&mut self, turn: &mut Turn<'_, Toy>, _message: &Message) {
        self.left -= 1;
        turn.note(self.left);
        if self.left == 0 {
            turn.halt();
        }
    }
}

/// What a plan of hoppers looks like.
#[derive(Clone, Copy)]
pub(crate) struct Hoppers {
    /// How many, each on a core of its own.
    pub(crate) count: usize,
    /// Whether each sends to the next only; else to all, itself among them.
    pub(crate) ring: bool,
    /// Tokens in all, sent by the first.
    pub(crate) tokens: u64,
    /// Hops of each token.
    pub(crate) hops: u64,
}

impl Hoppers {
    /// The plan; a counter in hardware ends the run.
    pub(crate) fn draw(self) -> Blueprint<Toy> {
        let tokens = self.tokens as u32;
        let mut plan = Blueprint::default();
        let slots: Vec<Slot<Hopper>> = (0..self.count)
            .map(|at| plan.reserve("hopper", format!("hopper{at}"), Place::Core(CoreId(at as u16))))
            .collect();
        let counter: Slot<Counter> = plan.reserve("counter", "counter".into(), Place::Hardware);
        for (index, &slot) in slots.iter().enumerate() {
            let next = [slots[(index + 1) % self.count]];
            let to = if self.ring { &next[..] } else { &slots[..] };
            let neighbours: Vec<_> = to.iter().map(|&to| plan.connect(slot, to, tokens)).collect();
            let done = plan.connect(slot, counter, tokens);
            let first = if index == 0 { (self.tokens, self.hops) } else { (0, 0) };
            let (sent, seen) = (vec![0; neighbours.len()], vec![0; self.count]);
            plan.install(slot, Hopper { index, neighbours, done, sent, seen, first, draw: index as u64 });
        }
        plan.install(counter, Counter { left: self.tokens });
        plan
    }
}
