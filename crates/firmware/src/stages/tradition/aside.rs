//! Pages of a drive that takes no more writes, whose line holds what has no place on flash: they are read past it.

use super::worker::{Step, Worker};
use crate::Turn;

impl Worker {
    /// The frame that the page at hand is in: that of its line, or the one beside.
    pub(super) fn frame(&self) -> u32 {
        if self.is_aside { self.aside } else { self.shared.pool.line(self.task().lpn) as u32 }
    }

    /// The line keeps what it holds, for which there is no room on flash. Other pages are read all the same.
    pub(super) fn leave_line(&mut self, turn: &mut Turn<'_>, hit: bool) {
        if hit {
            self.refuse_page();
            self.unlock(turn);
            return;
        }
        self.is_aside = true;
        if self.bring(turn, self.aside, Step::Aside) {
            self.move_data(turn);
        }
    }
}
