//! The stages: what waits for each, and who could take a turn.

use crate::habits::Habits;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use stage::{Blueprint, Stage, Vocabulary};
use std::collections::VecDeque;
use units::{StageId, Time};

/// What a turn is for.
#[derive(Debug)]
pub(crate) enum Cause<M> {
    /// The rest of a turn that was cut.
    Rest,
    /// An alarm that rang.
    Alarm,
    /// A message.
    Message(M),
}

/// Messages on their way from one stage.
struct Way<M> {
    from: StageId,
    letters: VecDeque<M>,
    /// The most that the plan admits.
    at_most: u32,
    /// How likely it is to be heard next, against others.
    weight: u32,
}

/// A stage and what waits for it.
pub(crate) struct Seat<V: Vocabulary> {
    name: String,
    /// None while it takes a turn.
    pub(crate) stage: Option<Box<dyn Stage<V>>>,
    ways: Vec<Way<V::Message>>,
    /// A turn of its was cut.
    pub(crate) goes_on: bool,
    pub(crate) alarm: Time,
    /// Its alarm was due when somebody looked: it comes before the messages.
    rang: bool,
    /// How likely it is to go next, against others.
    weight: u32,
}

impl<V: Vocabulary> Seat<V> {
    /// The stages of a plan, all of which are woken before they hear of anything.
    pub(crate) fn of(plan: Blueprint<V>) -> Vec<Self> {
        let edges = plan.edges().to_vec();
        let mut seats: Vec<Seat<V>> = plan
            .into_parts()
            .into_iter()
            .map(|part| Seat {
                name: part.name,
                stage: part.stage,
                ways: Vec::new(),
                goes_on: false,
                alarm: Time::NEVER,
                rang: true,
                weight: 1,
            })
            .collect();
        for edge in edges {
            let ways = &mut seats[edge.to.index()].ways;
            match ways.iter_mut().find(|way| way.from == edge.from) {
                Some(way) => way.at_most = way.at_most.saturating_add(edge.at_most),
                None => ways.push(Way { from: edge.from, letters: VecDeque::new(), at_most: edge.at_most, weight: 1 }),
            }
        }
        seats
    }

    /// Whether its alarm is due. Amid its own turn nobody looks.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.rings_at() <= now
    }

    /// When its alarm rings; never amid a turn.
    pub(crate) fn rings_at(&self) -> Time {
        if self.stage.is_some() && !self.goes_on { self.alarm } else { Time::NEVER }
    }

    /// Its alarm rings.
    pub(crate) fn ring(&mut self) {
        (self.alarm, self.rang) = (Time::NEVER, true);
    }

    /// Whether it could take a turn.
    pub(crate) fn is_ready(&self) -> bool {
        let waits = || self.ways.iter().any(|way| !way.letters.is_empty());
        self.stage.is_some() && (self.goes_on || self.rang || waits())
    }

    /// How likely it is to go next, against others.
    pub(crate) fn weight(&self) -> u32 {
        self.weight
    }

    /// Others are slow from now on, and others are heard late.
    pub(crate) fn change(&mut self, habits: &Habits, rng: &mut Xoshiro256PlusPlus) {
        self.weight = habits.weight(rng);
        self.ways.iter_mut().for_each(|way| way.weight = habits.weight(rng));
    }

    /// What its next turn is for; it must be ready. Which of the senders is heard first is drawn.
    pub(crate) fn take_cause(&mut self, rng: &mut Xoshiro256PlusPlus) -> Cause<V::Message> {
        if std::mem::take(&mut self.goes_on) {
            return Cause::Rest;
        }
        if std::mem::take(&mut self.rang) {
            return Cause::Alarm;
        }
        let waiting = self.ways.iter_mut().filter(|way| !way.letters.is_empty());
        let way = draw(rng, waiting, |way| way.weight).expect("a message waits");
        Cause::Message(way.letters.pop_front().expect("it is not empty"))
    }

    /// A message comes from another stage. More than the plan admits is a fault of the firmware.
    pub(crate) fn receive(&mut self, from: StageId, message: V::Message) {
        let way = self.ways.iter_mut().find(|way| way.from == from);
        let way = way.unwrap_or_else(|| panic!("no edge leads from {from} to {}", self.name));
        assert!(
            way.letters.len() < way.at_most as usize,
            "more than the {} messages that the plan admits are under way from {from} to {}",
            way.at_most,
            self.name
        );
        way.letters.push_back(message);
    }
}

/// One of them, by their weights; none where there is none.
pub(crate) fn draw<T>(
    rng: &mut Xoshiro256PlusPlus,
    among: impl Iterator<Item = T>,
    weight: impl Fn(&T) -> u32,
) -> Option<T> {
    let mut sum = 0;
    // The n-th takes the place of those before by its share of all so far.
    among.fold(None, |chosen, next| {
        sum += weight(&next);
        if rng.random_range(0..sum) < weight(&next) { Some(next) } else { chosen }
    })
}
