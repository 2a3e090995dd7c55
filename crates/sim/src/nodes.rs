//! Messages under way: written once where they arise, read once where they are handled, in line by index between.

use units::{StageId, Time};

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// A message under way, or in an inbox.
#[derive(Debug)]
pub(crate) struct Node<M> {
    pub(crate) message: M,
    /// When it arrives; while it waits in an inbox, since when.
    pub(crate) at: Time,
    next: u32,
    pub(crate) to: StageId,
    /// Who sent it.
    pub(crate) from: StageId,
}

/// All nodes. Those given back are used again, the last first, so that few of them are ever cold.
#[derive(Debug)]
pub(crate) struct Nodes<M> {
    nodes: Vec<Node<M>>,
    free: u32,
}

/// Some of the nodes, first in first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    head: u32,
    tail: u32,
}

impl Line {
    pub(crate) const EMPTY: Line = Line { head: NONE, tail: NONE };

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.head == NONE
    }

    /// The node that is taken next.
    #[inline]
    pub(crate) fn first(self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }
}

impl<M: Copy> Nodes<M> {
    pub(crate) fn new() -> Self {
        Nodes { nodes: Vec::with_capacity(1024), free: NONE }
    }

    /// Keeps a message at the end of a line. True if it is the only one there.
    #[inline]
    pub(crate) fn push(&mut self, line: &mut Line, from: StageId, to: StageId, message: &M, at: Time) -> bool {
        let place = self.free;
        let place = match self.nodes.get_mut(place as usize) {
            Some(node) => {
                self.free = node.next;
                *node = Node { message: *message, at, next: NONE, to, from };
                place
            }
            None => self.grow(Node { message: *message, at, next: NONE, to, from }),
        };
        // Lines are empty about as often as not: what depends on it is chosen, not branched to. A node that is alone is its own last.
        let alone = line.is_empty();
        let (last, next) = if alone { (place, NONE) } else { (line.tail, place) };
        line.head = if alone { place } else { line.head };
        line.tail = place;
        self.nodes[last as usize].next = next;
        alone
    }

    #[cold]
    fn grow(&mut self, node: Node<M>) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> &Node<M> {
        &self.nodes[place as usize]
    }

    /// Takes the first node out of a line; then it has no next.
    #[inline]
    pub(crate) fn take_first(&mut self, line: &mut Line) -> Option<u32> {
        let place = line.head;
        let node = self.nodes.get_mut(place as usize)?;
        line.head = std::mem::replace(&mut node.next, NONE);
        Some(place)
    }

    /// Gives a node back. What it holds may be read until another message is put anywhere.
    #[inline]
    pub(crate) fn free(&mut self, place: u32) -> &Node<M> {
        let node = &mut self.nodes[place as usize];
        node.next = self.free;
        self.free = place;
        node
    }

    /// Takes the first node out of a line that has one, and gives it back at once; see [`Nodes::free`].
    #[inline]
    pub(crate) fn free_first(&mut self, line: &mut Line) -> &Node<M> {
        let place = line.head;
        let node = &mut self.nodes[place as usize];
        line.head = node.next;
        node.next = self.free;
        self.free = place;
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_order_and_nodes_are_used_again() {
        let mut nodes = Nodes::<u64>::new();
        let (mut first, mut second) = (Line::EMPTY, Line::EMPTY);
        let at = Time::from_picos;
        for number in 0..6u16 {
            let line = if number % 2 == 0 { &mut first } else { &mut second };
            assert_eq!(
                nodes.push(line, StageId(0), StageId(number), &u64::from(number), at(number.into())),
                number < 2
            );
        }
        for due in [0u16, 2, 4] {
            assert_eq!(first.first(), Some(due.into()));
            let node = nodes.free_first(&mut first);
            assert_eq!((node.to, node.at, node.message), (StageId(due), at(due.into()), due.into()));
        }
        assert!(first.is_empty() && nodes.take_first(&mut first).is_none());
        let mut third = Line::EMPTY;
        let reused: Vec<u32> = (0..4)
            .map(|number| {
                nodes.push(&mut third, StageId(0), StageId(9), &number, Time::ZERO);
                third.tail
            })
            .collect();
        assert!(reused == [4, 2, 0, 6] && !second.is_empty());
    }
}
