//! The bus of a channel: who waits for it, who holds it, who is next.

use crate::TransactionTag;
use crate::ledger::Phase;
use std::collections::VecDeque;
use units::{DieId, Time};

/// A die that wants the bus for a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) die: DieId,
    pub(crate) phase: Phase,
}

/// What holds the bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub(crate) request: Request,
    pub(crate) tag: TransactionTag,
    pub(crate) from: Time,
}

/// Grants in this order: phases without pages (commands, status) before phases with pages, first come first served
/// within each. A command sets a die to work for longer than it holds the bus, so letting it pass keeps the dies busy.
/// After two short phases for each die have passed a waiting transfer, the transfer goes first: nothing starves.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    short: VecDeque<Request>,
    long: VecDeque<Request>,
    /// Waiting requests that do not begin a transaction.
    going_on: usize,
    passed: usize,
    passed_max: usize,
    holder: Option<Holder>,
    free_at: Time,
}

impl Bus {
    pub(crate) fn new(dies: usize) -> Self {
        // A die has at most a load, a suspend or resume, and an unload waiting.
        let (short, long) = (VecDeque::with_capacity(3 * dies), VecDeque::with_capacity(3 * dies));
        Bus { short, long, going_on: 0, passed: 0, passed_max: 2 * dies, holder: None, free_at: Time::NEVER }
    }

    pub(crate) fn ask(&mut self, request: Request) {
        self.going_on += usize::from(!request.phase.is_pre_dma());
        if request.phase.moves_pages() { self.long.push_back(request) } else { self.short.push_back(request) }
    }

    /// Takes the request whose turn it is; nothing while the bus is held.
    pub(crate) fn next(&mut self) -> Option<Request> {
        if self.holder.is_some() {
            return None;
        }
        let request = if self.long.is_empty() || (self.passed < self.passed_max && !self.short.is_empty()) {
            self.passed += usize::from(!self.long.is_empty());
            self.short.pop_front()?
        } else {
            self.passed = 0;
            self.long.pop_front()?
        };
        self.going_on -= usize::from(!request.phase.is_pre_dma());
        Some(request)
    }

    /// Whether all who wait are at the beginning of a transaction, whose array has still to work.
    pub(crate) fn only_begins(&self) -> bool {
        self.going_on == 0
    }

    pub(crate) fn hold(&mut self, request: Request, tag: TransactionTag, from: Time, until: Time) {
        assert!(self.holder.is_none());
        self.holder = Some(Holder { request, tag, from });
        self.free_at = until;
    }

    /// Since when a die holds it, but for a suspend command: until that is over the array works, and its phase has the time.
    pub(crate) fn held_by(&self, die: DieId) -> Option<Time> {
        let holder = self.holder.filter(|holder| holder.request.die == die)?;
        (holder.request.phase != Phase::Suspend).then_some(holder.from)
    }

    /// What holds it now.
    pub(crate) fn holder(&self) -> Option<Holder> {
        self.holder
    }

    /// When the holder lets go; never if there is none.
    pub(crate) fn free_at(&self) -> Time {
        self.free_at
    }

    /// When the bus goes to a waiting die; never if none waits.
    pub(crate) fn next_grant(&self) -> Time {
        if self.short.is_empty() && self.long.is_empty() { Time::NEVER } else { self.free_at }
    }

    pub(crate) fn release(&mut self) -> Option<Holder> {
        self.free_at = Time::NEVER;
        self.holder.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(die: u16, phase: Phase) -> Request {
        Request { die: DieId(die), phase }
    }

    #[test]
    fn commands_pass_transfers_but_not_for_ever() {
        let mut bus = Bus::new(1);
        bus.ask(request(0, Phase::DataOut));
        for die in 1..5 {
            bus.ask(request(die, Phase::ReadCommand));
        }
        let order: Vec<u16> = std::iter::from_fn(|| bus.next()).map(|request| request.die.0).collect();
        assert_eq!(order, [1, 2, 0, 3, 4]);
    }

    #[test]
    fn a_held_bus_grants_nothing() {
        let mut bus = Bus::new(2);
        bus.hold(request(0, Phase::DataIn), TransactionTag(7), Time::ZERO, Time::from_picos(9));
        bus.ask(request(1, Phase::DataIn));
        assert_eq!((bus.next(), bus.next_grant()), (None, Time::from_picos(9)));
        bus.release();
        assert_eq!(bus.next(), Some(request(1, Phase::DataIn)));
        assert_eq!(bus.next_grant(), Time::NEVER);
    }
}
