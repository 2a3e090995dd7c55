//! Who sends to whom, as a picture of letters: groups down the side, a column for each receiver.

use serde::Serialize;

/// Stages that do the same.
#[derive(Serialize)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) threads: u32,
    /// The core of each; none for hardware.
    pub(crate) cores: Vec<u16>,
}

/// That stages of one group may send to stages of another.
#[derive(Serialize)]
pub(crate) struct Link {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    /// How many addresses of one's stages the other's hold.
    pub(crate) addresses: u32,
}

/// Boxes one below the other in the order in which a command meets them. Each group that is sent to has a line beside the boxes:
/// it points into its own box, and a `o` joins whoever sends there.
pub(crate) fn picture(groups: &[Group], links: &[Link]) -> String {
    let label = |group: &Group| match group.threads {
        1 => group.name.to_owned(),
        threads => format!("{} x {threads}", group.name),
    };
    let width = groups.iter().map(|group| label(group).len()).max().unwrap_or(0);
    let sends = |from: &str, to: &str| links.iter().any(|link| link.from == from && link.to == to);
    // A receiver's line spans from its first to its last end.
    let spans: Vec<(usize, usize, usize)> = (0..groups.len())
        .filter_map(|to| {
            let ends = (0..groups.len()).filter(|&from| from == to || sends(groups[from].name, groups[to].name));
            let ends: Vec<usize> = ends.collect();
            let received = links.iter().any(|link| link.to == groups[to].name);
            received.then(|| (to, ends[0], ends[ends.len() - 1]))
        })
        .collect();
    let mut text = String::new();
    for (row, group) in groups.iter().enumerate() {
        let hardware = group.cores.is_empty();
        let [open, close] = if hardware { ["(", ")"] } else { ["[", "]"] };
        text += &format!("  {open} {:width$} {close}", label(group));
        let last = spans.iter().rposition(|&(to, _, _)| to == row || sends(group.name, groups[to].name));
        let mut arrow = false;
        for (column, &(to, first, end)) in spans.iter().enumerate() {
            let joined = last.is_some_and(|last| column <= last);
            let (into, out) = (to == row, sends(group.name, groups[to].name));
            let fill = if joined { '-' } else { ' ' };
            let lead = if into && !arrow { '<' } else { fill };
            arrow |= into;
            let mark = match (into, out) {
                (true, _) => '+',
                (_, true) => 'o',
                _ if row > first && row < end => '|',
                _ => fill,
            };
            text += &format!("{fill}{lead}{mark}");
        }
        text = text.trim_end().to_owned();
        text.push('\n');
    }
    text
}
