//! What the threads of this machine did, where the firmware ran on them.

use crate::human::{bar, count, percent};
use crate::page::{bar_cell, bar_cells, cells, put};
use crate::{Named, Page, Summary};
use serde::{Deserialize, Serialize};

/// A thread of the machine that stages live on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineThread {
    /// Whether it was bound to a processor.
    pub pinned: bool,
    /// Share of its time that one of its stages was in a turn.
    pub utilisation: f64,
    /// Messages that came from other threads.
    pub received: u64,
    /// How often it found nothing to do for so long that it slept.
    pub sleeps: u64,
    /// Stages that live there, by group.
    pub stages: Named<u32>,
}

/// A line for each thread.
pub(crate) fn machine_threads(page: Page, summary: &Summary, out: &mut String) {
    if summary.machine_threads.is_empty() {
        return;
    }
    *out += &format!("{}\n", page.strong("Threads of this machine"));
    let mut table = page.table(&["thread", "stages", "messages from others", "sleeps", "busy", ""]);
    for (index, thread) in summary.machine_threads.iter().enumerate() {
        let stages = thread.stages.iter().map(|(group, &stages)| match stages {
            1 => group.to_owned(),
            several => format!("{several} {group}"),
        });
        let name = if thread.pinned { index.to_string() } else { format!("{index}, on any processor") };
        let (received, sleeps) = (count(thread.received as f64), count(thread.sleeps as f64));
        let stages = stages.collect::<Vec<_>>().join(", ");
        let mut row = cells(&[&name, &stages, &received, &sleeps, &percent(thread.utilisation)]);
        row.push(bar_cell(&bar(thread.utilisation, bar_cells(page) / 2)));
        table.add_row(row);
    }
    put(out, &table);
}
