//! Rows of pages to be read, on all dies at once: one row, a page on each plane, of each die is under way at a time.

/// Which rows a step of recovery reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// All of some groups, up to the first row that is erased.
    Groups,
    /// All of some groups.
    Whole,
    /// The last of some groups.
    Last,
    /// Those listed.
    Listed,
}

/// How far a die is.
#[derive(Clone, Debug, Default)]
pub(super) struct DieRows {
    pub(super) group: u32,
    pub(super) row: u32,
    /// Pages of it that are not read yet.
    pub(super) left: u32,
    /// Whether all of them so far are erased.
    pub(super) erased: bool,
    /// Whether one of the group's first row is, and whether beside others: then an erase was cut short that had come to some of its blocks.
    pub(super) begins_erased: bool,
    is_half_erased: bool,
    /// What is left of a list, the next at the end.
    pub(super) listed: Vec<(u32, u32)>,
}

impl DieRows {
    /// The first row of one of several dies on a course, of those groups from `from` to `end` that are wanted. `rows` are those of a group.
    pub(super) fn begin(
        &mut self,
        course: Course,
        (dies, rows): (u32, u32),
        (from, end): (u32, u32),
        wanted: impl Fn(u32) -> bool,
    ) -> bool {
        (self.group, self.row) = (from, if course == Course::Last { rows - 1 } else { 0 });
        self.settle(course, dies, end, wanted)
    }

    /// The row after this one.
    pub(super) fn advance(
        &mut self,
        course: Course,
        (dies, rows): (u32, u32),
        end: u32,
        wanted: impl Fn(u32) -> bool,
    ) -> bool {
        if self.row == 0 {
            self.is_half_erased = std::mem::take(&mut self.begins_erased) && !self.erased;
        }
        match course {
            // A block is programmed in the order of its pages, so behind a row that is erased there is nothing. But a block that was filled
            // on behind a power cut may lack pages beside those of another, which may be erased by now.
            Course::Groups if (!self.erased || self.is_half_erased) && self.row + 1 < rows => {
                self.row += 1;
                return true;
            }
            Course::Whole if self.row + 1 < rows => {
                self.row += 1;
                return true;
            }
            Course::Groups | Course::Whole => (self.group, self.row) = (self.group + dies, 0),
            Course::Last => self.group += dies,
            Course::Listed => {}
        }
        self.settle(course, dies, end, wanted)
    }

    /// Goes on to a group that is wanted, or the next row of the list; `false` if there is none.
    fn settle(&mut self, course: Course, dies: u32, end: u32, wanted: impl Fn(u32) -> bool) -> bool {
        if course == Course::Listed {
            let Some(next) = self.listed.pop() else { return false };
            (self.group, self.row) = next;
            return true;
        }
        while self.group < end && !wanted(self.group) {
            self.group += dies;
        }
        self.group < end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that are read of one group, which has these beside each other on its planes: whether a page is there.
    fn read(group: &[[bool; 2]]) -> u32 {
        let mut rows = DieRows::default();
        let shape = (4, group.len() as u32);
        let mut more = rows.begin(Course::Groups, shape, (1, 5), |group| group == 1);
        let mut count = 0;
        while more {
            let row = group[rows.row as usize];
            rows.erased = !row.contains(&true);
            rows.begins_erased |= rows.row == 0 && row.contains(&false);
            count += 1;
            more = rows.advance(Course::Groups, shape, 5, |group| group == 1);
        }
        count
    }

    #[test]
    fn a_group_is_read_as_far_as_there_may_be_anything() {
        let (both, one, none) = ([true; 2], [false, true], [false; 2]);
        assert_eq!(read(&[none, none, none]), 1, "clean");
        assert_eq!(read(&[both, both, none, none]), 3, "filled so far");
        assert_eq!(read(&[both, one, both, none, none]), 4, "filled on behind a power cut");
        assert_eq!(
            read(&[one, none, one, one, none]),
            5,
            "the same, where one block is erased: its missing page is no end"
        );
        assert_eq!(read(&[both, both]), 2, "full");
    }
}
