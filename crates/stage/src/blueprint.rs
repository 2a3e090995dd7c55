//! Which stages exist, where they live, and who may send to whom: a plan that is drawn, checked, printed, then run.

use crate::{SharedMemory, Stage, Vocabulary, Waiters};
use std::fmt;
use std::marker::PhantomData;
use thiserror::Error;
use units::{CoreId, StageId};

/// Most stages of a blueprint, so that the waiters' lines can be sized before the stages are known.
const STAGES_MAX: usize = 4096;

/// Where a stage takes its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a firmware core, sharing its hardware threads.
    Core(CoreId),
    /// In hardware of its own: turns cost no firmware time.
    Hardware,
}

/// Says that a stage handles `In`. Without it no one can address an `In` to that stage.
pub trait Accepts<In> {}

/// A place in the blueprint waiting for an `S`.
pub struct Slot<S: ?Sized> {
    id: StageId,
    stage: PhantomData<fn(Box<S>)>,
}

/// The right to send `In` to one stage.
pub struct Address<In> {
    id: StageId,
    accepts: PhantomData<fn(In)>,
}

impl<In> Address<In> {
    pub(crate) fn stage(self) -> StageId {
        self.id
    }
}

/// One stage of the plan.
pub struct Part<V: Vocabulary> {
    /// What it is called, unique in the plan: `trans3`.
    pub name: String,
    /// The thread group it counts with: `trans`.
    pub group: &'static str,
    /// Where it lives.
    pub place: Place,
    /// The most messages that can wait for it: what the edges that lead to it admit together.
    pub inbox: u32,
    /// What takes the turns; none until installed.
    pub stage: Option<Box<dyn Stage<V>>>,
}

/// The right of one stage to send to another, and how many messages can be under way on it at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who sends.
    pub from: StageId,
    /// Who receives.
    pub to: StageId,
    /// The most messages under way.
    pub at_most: u32,
}

/// Why a plan cannot be run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    /// A slot was reserved and nothing installed in it.
    #[error("{name} is reserved but nothing is installed there")]
    Empty {
        /// The part.
        name: String,
    },
    /// Two parts have one name.
    #[error("two parts are called {name}")]
    SameName {
        /// The name.
        name: String,
    },
}

/// The plan of a device.
pub struct Blueprint<V: Vocabulary> {
    parts: Vec<Part<V>>,
    edges: Vec<Edge>,
    /// The memory its stages share.
    pub memory: SharedMemory,
    waiters: Waiters,
}

impl<V: Vocabulary> Default for Blueprint<V> {
    fn default() -> Self {
        Blueprint::on(SharedMemory::default())
    }
}

impl<V: Vocabulary> Blueprint<V> {
    /// An empty plan of stages that share this memory, of which nothing has been handed out.
    pub fn on(mut memory: SharedMemory) -> Self {
        let waiters = Waiters::new(&mut memory, STAGES_MAX);
        Blueprint { parts: Vec::new(), edges: Vec::new(), memory, waiters }
    }

    /// Reserves a slot, so that stages can address each other before they exist.
    pub fn reserve<S: Stage<V> + ?Sized>(&mut self, group: &'static str, name: String, place: Place) -> Slot<S> {
        assert!(self.parts.len() < STAGES_MAX, "a blueprint has at most {STAGES_MAX} stages");
        let id = StageId(self.parts.len() as u16);
        self.parts.push(Part { name, group, place, inbox: 0, stage: None });
        Slot { id, stage: PhantomData }
    }

    /// Puts a stage into its slot.
    pub fn install<S: Stage<V> + 'static>(&mut self, slot: Slot<S>, stage: S) {
        self.install_boxed(slot, Box::new(stage));
    }

    /// Puts a stage into the slot of a port: a trait object's slot, which any stage that plays the part can fill.
    pub fn install_boxed<S: ?Sized>(&mut self, slot: Slot<S>, stage: Box<dyn Stage<V>>) {
        let part = &mut self.parts[slot.id.index()];
        assert!(part.stage.is_none(), "{} is installed twice", part.name);
        part.stage = Some(stage);
    }

    /// Lets `from` send `In` to `to`, at most `at_most` of them under way at a time.
    ///
    /// `at_most` follows from what admits them. A message that is answered may be under way once for each command, page or frame that it
    /// is about, because its sender has that until the answer comes. Nothing bounds a message without an answer: a command may be over
    /// while what was sent about it still waits. Its sender then needs a credit, which the receiver gives back: with a message, or in a
    /// shared word that the receiver alone writes and counts up, and that the sender compares with how many it has sent.
    pub fn connect<In, From: ?Sized, To: Accepts<In> + ?Sized>(
        &mut self,
        from: Slot<From>,
        to: Slot<To>,
        at_most: u32,
    ) -> Address<In> {
        self.admit(Edge { from: from.id, to: to.id, at_most });
        Address { id: to.id, accepts: PhantomData }
    }

    /// Lets stages that share locks wake each other: a release tells who has waited longest. That may be the stage itself, if it asks
    /// again in the turn in which it gives the lock back. A stage waits for one lock at a time, and nobody else can be told of one.
    pub fn share_locks<S: ?Sized>(&mut self, among: &[Slot<S>]) {
        for (from, to) in among.iter().flat_map(|from| among.iter().map(move |to| (from.id, to.id))) {
            self.admit(Edge { from, to, at_most: 1 });
        }
    }

    fn admit(&mut self, edge: Edge) {
        let inbox = &mut self.parts[edge.to.index()].inbox;
        // As many as that have no room in any machine.
        *inbox = inbox.saturating_add(edge.at_most);
        self.edges.push(edge);
    }

    /// A lock that the plan's stages share.
    pub fn lock(&mut self) -> crate::Lock {
        self.memory.lock(&self.waiters)
    }

    /// The stages, in the order of their ids.
    pub fn parts(&self) -> &[Part<V>] {
        &self.parts
    }

    /// Who may send to whom.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// How many cores the plan uses: one more than the highest that a stage lives on.
    pub fn core_count(&self) -> usize {
        let cores = self.parts.iter().filter_map(|part| match part.place {
            Place::Core(core) => Some(core.index() + 1),
            Place::Hardware => None,
        });
        cores.max().unwrap_or(0)
    }

    /// Refuses a plan with an empty slot or two parts of one name.
    pub fn check(&self) -> Result<(), Fault> {
        let mut names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Fault::SameName { name: pair[0].into() });
        }
        match self.parts.iter().find(|part| part.stage.is_none()) {
            Some(part) => Err(Fault::Empty { name: part.name.clone() }),
            None => Ok(()),
        }
    }

    /// Whether no message can come back to a part it has passed: a pipeline without a loop among the given groups.
    pub fn is_loop_free(&self, groups: &[&str]) -> bool {
        let within = |id: StageId| groups.contains(&self.parts[id.index()].group);
        let edges = || self.edges.iter().filter(|edge| within(edge.from) && within(edge.to));
        let mut open: Vec<usize> = vec![0; self.parts.len()];
        for edge in edges() {
            open[edge.to.index()] += 1;
        }
        let mut free: Vec<usize> = (0..self.parts.len()).filter(|&part| open[part] == 0).collect();
        let mut taken = 0;
        while let Some(part) = free.pop() {
            taken += 1;
            for edge in edges().filter(|edge| edge.from.index() == part) {
                open[edge.to.index()] -= 1;
                if open[edge.to.index()] == 0 {
                    free.push(edge.to.index());
                }
            }
        }
        taken == self.parts.len()
    }

    /// Hands the stages to an executor.
    pub fn into_parts(self) -> Vec<Part<V>> {
        self.parts
    }
}

impl<S: ?Sized> Slot<S> {
    /// The stage's name to the executor.
    pub fn id(self) -> StageId {
        self.id
    }
    /// The same place as one of the parts that its stage runs: what is sent there is for that part.
    pub fn part<P: ?Sized>(self) -> Slot<P> {
        Slot { id: self.id, stage: PhantomData }
    }
}
impl<S: ?Sized> Clone for Slot<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: ?Sized> Copy for Slot<S> {}
impl<In> Clone for Address<In> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<In> Copy for Address<In> {}
impl<In> PartialEq for Address<In> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl<In> fmt::Debug for Address<In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{Node, Words};

    fn chain() -> (Blueprint<Words>, [Slot<Node>; 3]) {
        let mut plan = Blueprint::default();
        let slots = [0, 1, 2].map(|at| plan.reserve("node", format!("node{at}"), Place::Hardware));
        plan.connect::<u8, _, _>(slots[0], slots[1], 4);
        plan.connect::<u8, _, _>(slots[1], slots[2], 4);
        (plan, slots)
    }

    #[test]
    fn an_empty_slot_and_a_name_of_two_parts_are_refused() {
        let (mut plan, [first, others @ ..]) = chain();
        others.into_iter().for_each(|slot| plan.install(slot, Node));
        assert_eq!(plan.check(), Err(Fault::Empty { name: "node0".into() }));
        plan.install(first, Node);
        assert_eq!(plan.check(), Ok(()));
        plan.reserve::<Node>("node", "node1".into(), Place::Hardware);
        assert_eq!(plan.check(), Err(Fault::SameName { name: "node1".into() }));
    }

    #[test]
    fn an_inbox_has_room_for_what_all_edges_to_it_admit() {
        let (mut plan, slots) = chain();
        plan.connect::<u8, _, _>(slots[0], slots[2], 3);
        let inboxes = |plan: &Blueprint<Words>| plan.parts().iter().map(|part| part.inbox).collect::<Vec<_>>();
        assert_eq!(inboxes(&plan), [0, 4, 7]);
        plan.share_locks(&slots[..2]);
        assert_eq!(inboxes(&plan), [2, 6, 7], "a grant of each of those that share locks");
    }

    #[test]
    fn a_message_that_could_come_back_is_a_loop() {
        let (mut plan, slots) = chain();
        assert!(plan.is_loop_free(&["node"]));
        plan.connect::<u8, _, _>(slots[2], slots[0], 1);
        assert!(!plan.is_loop_free(&["node"]));
    }
}
