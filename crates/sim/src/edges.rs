//! Counts the messages under way from each stage to each other: for tests and checks, which assert that the plan admits them. The inbox of
//! a stage has room for those of all edges together, so that it says little about any one of them.

use stage::{Blueprint, Vocabulary};
use units::StageId;

/// What is admitted from one stage to another, by all edges between them, and what is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    admitted: u32,
    under_way: u32,
}

/// The ways from all stages to all.
#[derive(Debug)]
pub(crate) struct Edges {
    names: Vec<String>,
    /// By sender, then receiver.
    ways: Box<[Way]>,
}

impl Edges {
    pub(crate) fn of<V: Vocabulary>(plan: &Blueprint<V>) -> Self {
        let names: Vec<String> = plan.parts().iter().map(|part| part.name.clone()).collect();
        let mut edges = Edges { ways: vec![Way::default(); names.len() * names.len()].into(), names };
        for edge in plan.edges() {
            edges.way(edge.from, edge.to).admitted += edge.at_most;
        }
        edges
    }

    fn way(&mut self, from: StageId, to: StageId) -> &mut Way {
        &mut self.ways[from.index() * self.names.len() + to.index()]
    }

    /// A message leaves.
    pub(crate) fn leaves(&mut self, from: StageId, to: StageId) {
        let way = self.way(from, to);
        way.under_way += 1;
        let Way { admitted, under_way } = *way;
        let [from, to] = [from, to].map(|stage| &self.names[stage.index()]);
        assert!(
            under_way <= admitted,
            "more than the {admitted} messages that the plan admits are under way from {from} to {to}"
        );
    }

    /// A turn begins for it.
    pub(crate) fn comes(&mut self, from: StageId, to: StageId) {
        self.way(from, to).under_way -= 1;
    }
}
