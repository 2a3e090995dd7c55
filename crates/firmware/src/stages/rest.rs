//! Whether the drive has anything to do for its host, and since when not.

use crate::Tables;
use units::Time;

/// What a thread that looks at the drive now and then knows of its rest.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    since: Option<Time>,
    /// The signs of life at the last look.
    signs: u64,
}

impl Rest {
    /// Since when none of the threads that run commands had one, as far as looks tell; none while one has. Commands that came and went
    /// between two looks end a rest: at one command at a time, a look falls between two of them often enough.
    pub(crate) fn look(&mut self, now: Time, tables: &Tables, threads: u16) -> Option<Time> {
        let signs = (0..usize::from(threads)).map(|thread| tables.signs_of_life(thread)).sum();
        let is_quiet = signs == std::mem::replace(&mut self.signs, signs);
        self.since = is_idle(tables, threads).then(|| self.since.filter(|_| is_quiet).unwrap_or(now));
        self.since
    }
}

/// Whether no thread that runs commands has one.
pub(crate) fn is_idle(tables: &Tables, threads: u16) -> bool {
    (0..usize::from(threads)).all(|thread| tables.commands_under_way(thread) == 0)
}
