//! Events and messages under way: written once where they arise, read once where they are handled, in line by index
//! between.

use units::Time;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// An event, beside the message it is about: so a message is copied as it is and never as a part of something else.
#[derive(Debug)]
pub(crate) struct Node<E, M> {
    pub(crate) message: Option<M>,
    /// When it is due; while it waits in an inbox, since when.
    pub(crate) at: Time,
    pub(crate) next: u32,
    pub(crate) event: E,
}

/// All nodes. Those given back are used again, the last first, so that few of them are ever cold.
#[derive(Debug)]
pub(crate) struct Nodes<E, M> {
    nodes: Vec<Node<E, M>>,
    free: u32,
}

/// Some of the nodes, first in first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl Line {
    pub(crate) const EMPTY: Line = Line { head: NONE, tail: NONE };

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

impl<E, M: Copy> Nodes<E, M> {
    pub(crate) fn new() -> Self {
        Nodes { nodes: Vec::with_capacity(1024), free: NONE }
    }

    /// Keeps an event and tells where.
    #[inline]
    pub(crate) fn put(&mut self, event: E, message: Option<&M>) -> u32 {
        let at = self.free;
        let Some(node) = self.nodes.get_mut(at as usize) else { return self.grow(event, message.copied()) };
        self.free = node.next;
        (node.event, node.next) = (event, NONE);
        node.message = message.copied();
        at
    }

    #[cold]
    fn grow(&mut self, event: E, message: Option<M>) -> u32 {
        self.nodes.push(Node { message, at: Time::ZERO, next: NONE, event });
        self.nodes.len() as u32 - 1
    }

    /// Gives a node back. What it holds may be read until another event is put anywhere.
    #[inline]
    pub(crate) fn free(&mut self, at: u32) -> &Node<E, M> {
        let node = &mut self.nodes[at as usize];
        node.next = self.free;
        self.free = at;
        node
    }

    #[inline]
    pub(crate) fn get(&self, at: u32) -> &Node<E, M> {
        &self.nodes[at as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: u32) -> &mut Node<E, M> {
        &mut self.nodes[at as usize]
    }

    /// Puts a node that is in no line, and has no next, at the end of one. True if it is the only one there.
    #[inline]
    pub(crate) fn append(&mut self, line: &mut Line, at: u32) -> bool {
        let alone = line.is_empty();
        if alone {
            line.head = at;
        } else {
            self.nodes[line.tail as usize].next = at;
        }
        line.tail = at;
        alone
    }

    /// Takes the first node out of a line; then it has no next.
    #[inline]
    pub(crate) fn take_first(&mut self, line: &mut Line) -> Option<u32> {
        let at = line.head;
        let node = self.nodes.get_mut(at as usize)?;
        line.head = std::mem::replace(&mut node.next, NONE);
        Some(at)
    }

    /// Takes the first node out of a line that has one, and gives it back at once; see [`Nodes::free`].
    #[inline]
    pub(crate) fn free_first(&mut self, line: &mut Line) -> &Node<E, M> {
        let at = line.head;
        let node = &mut self.nodes[at as usize];
        line.head = node.next;
        node.next = self.free;
        self.free = at;
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_order_and_nodes_are_used_again() {
        let mut nodes = Nodes::<u32, u64>::new();
        let (mut first, mut second) = (Line::EMPTY, Line::EMPTY);
        for number in 0..6u32 {
            let at = nodes.put(number, Some(&u64::from(number)));
            assert_eq!(nodes.append(if number % 2 == 0 { &mut first } else { &mut second }, at), number < 2);
        }
        for due in [0, 2, 4] {
            let node = nodes.free_first(&mut first);
            assert_eq!((node.event, node.message), (due, Some(u64::from(due))));
        }
        assert!(first.is_empty() && nodes.take_first(&mut first).is_none());
        let reused: Vec<u32> = (0..3).map(|number| nodes.put(number, None)).collect();
        assert_eq!(reused, [4, 2, 0]);
        assert!(nodes.put(0, None) == 6 && !second.is_empty());
    }
}
