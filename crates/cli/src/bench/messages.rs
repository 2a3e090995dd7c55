//! Real threads: messages between two stages, on one thread and over the ring between two.

use super::Bench;
use anyhow::ensure;
use stage::{Accepts, Address, Blueprint, Place, Slot, Stage, Turn, Vocabulary};
use threads::{Layout, Threads};
use units::CoreId;

/// The words of two stages that send each other tokens: how many hops each has left.
struct Ball;

#[derive(Clone, Copy, Debug)]
struct Token {
    hops: u64,
    /// Fills it up to the most that a message may have.
    _filling: [u64; 7],
}

impl Vocabulary for Ball {
    type Message = Token;
    type Work = ();
    type Note = ();
    const WORK: &'static [&'static str] = &["hop"];
    fn work_index(_: ()) -> usize {
        0
    }
    fn subject(_: &Token) -> Option<u32> {
        None
    }
    fn lock_granted(_: u32) -> Token {
        unreachable!("nothing is locked")
    }
}

struct Player {
    other: Address<Token>,
    /// Tokens that it still has to throw first.
    serves: u64,
    hops: u64,
    /// Tokens that end here before the run does.
    open: u64,
}

impl Accepts<Token> for Player {}

impl Stage<Ball> for Player {
    fn on_message(&mut self, turn: &mut Turn<'_, Ball>, message: &Token) {
        if message.hops > 0 {
            turn.send(self.other, Token { hops: message.hops - 1, ..*message });
            return;
        }
        self.open -= 1;
        if self.open == 0 {
            turn.halt();
        }
    }

    fn on_wake(&mut self, turn: &mut Turn<'_, Ball>) {
        for _ in 0..std::mem::take(&mut self.serves) {
            turn.send(self.other, Token { hops: self.hops, _filling: [0; 7] });
        }
    }
}

/// One message at a time over the ring between two threads, there and back.
pub(super) fn ring(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let hops = bench.repeat(200_000, 100);
    play(bench, "ring, one message under way", 2, 1, hops)
}

/// Many messages at a time, on one thread and on two.
pub(super) fn threads(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let hops = bench.repeat(4_000, 10);
    play(bench, "one thread, 1,024 messages under way", 1, 1024, hops)?;
    play(bench, "two threads, 1,024 messages under way", 2, 1024, hops)
}

fn play(bench: &mut Bench<'_>, name: &str, threads: usize, tokens: u64, hops: u64) -> anyhow::Result<()> {
    let (nanos, messages) = time(threads, tokens, hops)?;
    bench.put(name, nanos, "ns a message", messages);
    Ok(())
}

/// What a message takes between two stages, ns, and how many were sent: so many at a time, each with so many hops.
pub(crate) fn time(threads: usize, tokens: u64, hops: u64) -> anyhow::Result<(f64, u64)> {
    let mut plan = Blueprint::<Ball>::default();
    let slot = |plan: &mut Blueprint<Ball>, core| -> Slot<Player> {
        plan.reserve("player", format!("player{core}"), Place::Core(CoreId(core)))
    };
    let (one, other) = (slot(&mut plan, 0), slot(&mut plan, 1));
    let there = plan.connect(one, other, tokens as u32);
    let back = plan.connect(other, one, tokens as u32);
    // After the serve, an odd number of hops ends where it began.
    let hops = hops | 1;
    plan.install(one, Player { other: there, serves: tokens, hops, open: tokens });
    plan.install(other, Player { other: back, serves: 0, hops, open: tokens });
    let pin = threads <= std::thread::available_parallelism().map_or(1, usize::from);
    let outcome = Threads::new(plan, Layout { pin, ..Layout::on(threads) }).run(None)?;
    ensure!(outcome.halted, "the messages did not come to their end");
    let messages = tokens * (hops + 1);
    Ok((outcome.wall.nanos_f64() / messages as f64, messages))
}
