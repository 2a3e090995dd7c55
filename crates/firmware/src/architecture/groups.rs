//! Which groups of threads an architecture has, how many threads are in each, and what the parts of a latency are called that they work on.

use crate::{LatencyPart, SettingsError};

/// Most groups of an architecture.
const GROUPS_MAX: usize = 8;

/// Most threads of a group; an architecture may allow fewer.
pub const THREADS_MAX: u16 = 128;

/// A group of threads that an architecture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadGroup {
    /// Its name: the key in `[threads]`, `[placement]` and the summary.
    pub name: &'static str,
    /// What its threads do, for help.
    pub summary: &'static str,
    /// How many there are unless a run says otherwise.
    pub threads: u16,
    /// The fewest there can be.
    pub least: u16,
    /// The most there can be.
    pub most: u16,
    /// Why there cannot be more or fewer, where that needs saying.
    pub reason: &'static str,
    /// The part of a request's latency that its turns count as.
    pub part: LatencyPart,
    /// Whether there is one for each core, where a run says how many cores and not how many threads.
    pub each_core: bool,
    /// How many there are on the small drives of checks and tests.
    pub few: u16,
    /// Whether each of its threads has as many dies as any other: their number divides that of the dies.
    pub shares_dies: bool,
    /// Whether a drive that is served has at most as many as the machine lends it threads, unless a run says how many. Fewer have less
    /// to do each time they are served, and none waits for another's processor.
    pub lent: bool,
}

impl ThreadGroup {
    /// A group of 1 to [`THREADS_MAX`] threads.
    pub const fn new(name: &'static str, threads: u16, part: LatencyPart, summary: &'static str) -> Self {
        ThreadGroup {
            name,
            summary,
            threads,
            least: 1,
            most: THREADS_MAX,
            reason: "",
            part,
            each_core: false,
            few: if threads > 2 { 2 } else { threads },
            shares_dies: false,
            lent: false,
        }
    }

    /// The same with other limits, and why.
    pub const fn within(self, least: u16, most: u16, reason: &'static str) -> Self {
        ThreadGroup { least, most, reason, ..self }
    }

    /// The same with a thread for each core that a run asks for.
    pub const fn on_each_core(self) -> Self {
        ThreadGroup { each_core: true, ..self }
    }

    /// The same with another number of threads on small drives than the default, which is two at most.
    pub const fn with_few(self, few: u16) -> Self {
        ThreadGroup { few, ..self }
    }

    /// The same where each thread has as many dies as any other.
    pub const fn sharing_dies(self) -> Self {
        ThreadGroup { shares_dies: true, ..self }
    }

    /// The same with as many threads as a machine lends.
    pub const fn as_lent(self) -> Self {
        ThreadGroup { lent: true, ..self }
    }

    /// How many threads it may have, and why no others.
    pub fn expected(&self) -> String {
        let range = match self.most - self.least {
            0 => self.least.to_string(),
            1 => format!("{} or {}", self.least, self.most),
            _ => format!("{} to {}", self.least, self.most),
        };
        if self.reason.is_empty() { range } else { format!("{range}: {}", self.reason) }
    }
}

/// A part of a request's latency that threads of an architecture work on, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedPart {
    /// Which.
    pub part: LatencyPart,
    /// Its name: where the time went, and `breakdown` in the summary.
    pub name: &'static str,
    /// What a request waits for that waits in it, after "Requests wait".
    pub wait: &'static str,
}

impl NamedPart {
    /// A part of such a name.
    pub const fn new(part: LatencyPart, name: &'static str, wait: &'static str) -> Self {
        NamedPart { part, name, wait }
    }
}

/// How many threads each group of one architecture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    groups: &'static [ThreadGroup],
    counts: [u16; GROUPS_MAX],
}

impl ThreadCounts {
    /// No group at all.
    pub const NONE: ThreadCounts = ThreadCounts { groups: &[], counts: [0; GROUPS_MAX] };

    /// These groups with the threads that each has by default.
    pub fn new(groups: &'static [ThreadGroup]) -> Self {
        assert!(groups.len() <= GROUPS_MAX, "an architecture has at most {GROUPS_MAX} groups");
        let mut counts = [0; GROUPS_MAX];
        for (count, group) in counts.iter_mut().zip(groups) {
            *count = group.threads;
        }
        ThreadCounts { groups, counts }
    }

    /// These groups with a few threads in each, as small drives have.
    pub fn few(groups: &'static [ThreadGroup]) -> Self {
        groups.iter().fold(ThreadCounts::new(groups), |threads, group| threads.with(group.name, group.few))
    }

    /// The same with so many threads in a group, which must be one of the architecture's.
    pub fn with(mut self, group: &str, threads: u16) -> Self {
        let at = self.groups.iter().position(|known| known.name == group);
        self.counts[at.unwrap_or_else(|| panic!("{group} is no group of {self:?}"))] = threads;
        self
    }

    /// Threads of a group; 0 where the architecture has no such group.
    pub fn of(&self, group: &str) -> u16 {
        self.iter().find(|(name, _)| *name == group).map_or(0, |(_, count)| count)
    }

    /// Names and counts, in the order a request meets them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u16)> {
        self.groups.iter().map(|group| group.name).zip(self.counts)
    }

    /// All threads.
    pub fn total(&self) -> u32 {
        self.iter().map(|(_, count)| u32::from(count)).sum()
    }

    /// Refuses a group with fewer or more threads than it can have.
    pub fn check(&self) -> Result<(), SettingsError> {
        let outside = |(group, count): &(&ThreadGroup, u16)| *count < group.least || *count > group.most;
        match self.groups.iter().zip(self.counts).find(outside) {
            None => Ok(()),
            Some((group, count)) => Err(SettingsError {
                key: format!("threads.{}", group.name),
                value: count.to_string(),
                expected: group.expected(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::ARCHITECTURES;

    #[test]
    fn a_small_drive_has_few_threads_in_a_group_whatever_its_name() {
        const HEAT: ThreadGroup = ThreadGroup::new("heat", 16, LatencyPart::Other, "a newcomer");
        const LONE: ThreadGroup = ThreadGroup::new("lone", 1, LatencyPart::Other, "another").within(0, 1, "");
        const MANY: ThreadGroup = ThreadGroup::new("many", 16, LatencyPart::Other, "a third").with_few(4);
        let few = ThreadCounts::few(&[HEAT, LONE, MANY]);
        assert_eq!(few.iter().collect::<Vec<_>>(), [("heat", 2), ("lone", 1), ("many", 4)]);
        for architecture in ARCHITECTURES {
            assert_eq!(ThreadCounts::few(architecture.groups()).check(), Ok(()), "{}", architecture.name());
        }
    }
}
