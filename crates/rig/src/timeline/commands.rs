//! Commands on a time line: each from its submission until the host saw its completion, cut into the parts of its latency.
//!
//! The cuts are the meter's: every instant belongs to one part, so that the parts of a command lie side by side below it.

use crate::latency::{COMPLETION, FETCH, LatencyParts, PARTS, QUEUEING, place_of, place_of_wait};
use crate::shares::{After, Share};
use crate::timeline::Lanes;
use firmware::{CommandKey, Note};
use nvme::spec::Opcode;
use stage::TurnRecord;
use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroU64;
use trace::{Timeline, TrackId};
use units::{QueueId, StageId, Time};

/// A command under way, or over.
struct Command {
    key: CommandKey,
    /// In the order of submission, from 1.
    number: NonZeroU64,
    submitted: Time,
    /// Up to here its time is accounted for; from here on it belongs to the part `after`.
    cursor: Time,
    after: After,
    cuts: Vec<Cut>,
    /// Opcode, first sector and sectors, once the firmware has read them.
    entry: Option<(u8, u64, u32)>,
}

/// Time of a command that counts as a part's, or as queueing for its thread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cut {
    from: Time,
    to: Time,
    part: usize,
    queueing: bool,
}

impl Command {
    /// The time up to `until` is a part's; what is accounted for already stays as it is.
    fn pass(&mut self, until: Time, part: usize, queueing: bool) {
        if until <= self.cursor {
            return;
        }
        let cut = Cut { from: std::mem::replace(&mut self.cursor, until), to: until, part, queueing };
        match self.cuts.last_mut() {
            Some(last) if (last.part, last.queueing) == (part, queueing) => last.to = until,
            _ => self.cuts.push(cut),
        }
    }

    /// What it stood in line for, which was not known while it did, is a part's.
    fn name_queueing(&mut self, part: usize) {
        let unnamed = self.cuts.iter_mut().filter(|cut| cut.part == QUEUEING);
        unnamed.for_each(|cut| (cut.part, cut.queueing) = (part, true));
    }

    fn name(&self) -> &'static str {
        match self.entry.map(|(opcode, ..)| Opcode::try_from(opcode)) {
            Some(Ok(Opcode::Read)) => "read",
            Some(Ok(Opcode::Write)) => "write",
            Some(Ok(Opcode::Flush)) => "flush",
            Some(Ok(Opcode::WriteUncorrectable)) => "write uncorrectable",
            Some(Ok(Opcode::Compare)) => "compare",
            Some(Ok(Opcode::WriteZeroes)) => "write zeroes",
            Some(Ok(Opcode::DatasetManagement)) => "dataset management",
            Some(Ok(Opcode::Verify)) => "verify",
            Some(Ok(Opcode::Copy)) => "copy",
            Some(Err(_)) | None => "command",
        }
    }
}

/// The commands of a time line, as its events come by.
pub(crate) struct Commands<'a> {
    /// The parts of a stage's turns.
    shares: &'a [Share],
    parts: &'a LatencyParts,
    live: BTreeMap<CommandKey, Command>,
    over: Vec<Command>,
    /// Those whose identifiers were used again, and whose ends are no events.
    unended: Vec<Command>,
    submitted: u64,
}

impl<'a> Commands<'a> {
    pub(crate) fn new(shares: &'a [Share], parts: &'a LatencyParts) -> Self {
        Commands { shares, parts, live: BTreeMap::new(), over: Vec::new(), unended: Vec::new(), submitted: 0 }
    }

    /// The number of the command that work since `from` is for; none if it was submitted before the time line begins.
    pub(crate) fn number(&self, key: CommandKey, from: Time) -> Option<NonZeroU64> {
        // An identifier is used again as soon as its command is over, which the last of its work need not be.
        self.live.get(&key).filter(|command| command.submitted <= from).map(|command| command.number)
    }

    pub(crate) fn turn(&mut self, record: &TurnRecord, key: CommandKey) {
        let share = self.shares[record.stage.index()];
        let Some(command) = self.live.get_mut(&key) else { return };
        let turn = usize::from(share.turn);
        command.pass(record.arrived, command.after.until(self.shares, record.from).into(), false);
        command.after = share.after;
        if record.ended > record.arrived {
            command.pass(record.started, turn, true);
            command.pass(record.ended, turn, false);
        }
    }

    /// A note at the end of a turn that began at `since`.
    pub(crate) fn note(&mut self, stage: StageId, since: Time, at: Time, note: &Note) {
        let submitted_by = |command: &&mut Command| command.submitted <= since;
        match *note {
            Note::Submitted(key) => self.submit(at, key),
            Note::Taken { key, opcode, sector, sectors } => {
                let Some(command) = self.live.get_mut(&key) else { return };
                command.pass(at, FETCH, false);
                let after = self.shares[stage.index()].taken();
                (command.after, command.entry) = (after, Some((opcode, sector, sectors)));
            }
            Note::Completed(key) => {
                let Some(command) = self.live.get_mut(&key).filter(submitted_by) else { return };
                command.after = After::of(COMPLETION);
            }
            Note::Waited { key, on, until } => {
                let Some(command) = self.live.get_mut(&key).filter(submitted_by) else { return };
                let Some(part) = place_of_wait(on) else { return };
                command.pass(until, part, false);
            }
            Note::PartHas { key, part } => {
                let Some(command) = self.live.get_mut(&key).filter(submitted_by) else { return };
                if !command.after.is_firmware() {
                    return;
                }
                command.after = After::said(part, stage);
                command.pass(at, command.after.part.into(), false);
                if let Some(place) = place_of(part) {
                    command.name_queueing(place);
                }
            }
            Note::Reaped { key, .. } => {
                let Some(mut command) = self.live.remove(&key) else { return };
                command.pass(at, COMPLETION, false);
                self.over.push(command);
            }
            _ => {}
        }
    }

    /// How many are over.
    #[cfg(test)]
    pub(crate) fn over(&self) -> u64 {
        self.over.len() as u64
    }

    /// The cuts of those that are over: part, whether queueing for it, how long.
    #[cfg(test)]
    pub(crate) fn cuts(&self) -> impl Iterator<Item = (usize, bool, units::Span)> {
        self.over.iter().flat_map(|command| &command.cuts).map(|cut| (cut.part, cut.queueing, cut.to.since(cut.from)))
    }

    /// Numbers of those that are over, with their beginnings and ends.
    #[cfg(test)]
    pub(crate) fn spans(&self) -> impl Iterator<Item = (NonZeroU64, (Time, Time))> {
        self.over.iter().map(|command| (command.number, (command.submitted, command.cursor)))
    }

    fn submit(&mut self, at: Time, key: CommandKey) {
        self.submitted += 1;
        let Some(number) = NonZeroU64::new(self.submitted) else { return };
        let fresh =
            Command { key, number, submitted: at, cursor: at, after: After::of(FETCH), cuts: Vec::new(), entry: None };
        self.unended.extend(self.live.insert(key, fresh));
    }

    /// Draws them below `parent`, a track for each queue. Those that are not over are drawn until what `until` says of when they began.
    pub(crate) fn draw<W: Write>(mut self, timeline: &mut Timeline<W>, parent: TrackId, until: impl Fn(Time) -> Time) {
        let live = std::mem::take(&mut self.live).into_values();
        for mut command in std::mem::take(&mut self.unended).into_iter().chain(live) {
            command.pass(until(command.submitted), command.after.part.into(), false);
            self.over.push(command);
        }
        self.over.sort_by_key(|command| command.number);
        let names = self.parts.names();
        let waits = names.map(|name| format!("wait for {name}"));
        let mut queues: BTreeMap<QueueId, Vec<&Command>> = BTreeMap::new();
        self.over.iter().for_each(|command| queues.entry(command.key.queue()).or_default().push(command));
        for (queue, commands) in queues {
            let mut lanes = Lanes::new(timeline.track(Some(parent), &format!("queue {}", queue.0)));
            for command in commands {
                let lane = lanes.take(timeline, command.submitted, command.cursor);
                draw_command(timeline, lane, command, (&names, &waits));
            }
        }
    }
}

fn draw_command<W: Write>(
    timeline: &mut Timeline<W>,
    lane: TrackId,
    command: &Command,
    (names, waits): (&[&'static str; PARTS], &[String; PARTS]),
) {
    let &Command { key, number, submitted, cursor, entry, .. } = command;
    let mut args = vec![("command", number.get()), ("identifier", key.id().into())];
    if let Some((_, sector, sectors)) = entry.filter(|(.., sectors)| *sectors > 0) {
        args.extend([("sector", sector), ("sectors", sectors.into())]);
    }
    timeline.slice(lane, command.name(), submitted, cursor, &args, Some(number));
    for &Cut { from, to, part, queueing } in &command.cuts {
        let name = if queueing && part != QUEUEING { waits[part].as_str() } else { names[part] };
        timeline.slice(lane, name, from, to, &[], None);
    }
}
