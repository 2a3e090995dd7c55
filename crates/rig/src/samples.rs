//! A phase interval by interval: which threads were in a turn, and what background work moved, for figures over time.

use firmware::Note;
use host::PhaseResults;
use report::{Named, Sample};
use stage::TurnRecord;
use units::{CoreId, Span, Time};

/// Collects what only the observer of a run sees of each interval.
pub(crate) struct Samples {
    interval: Span,
    began: Time,
    /// The groups of threads, in the order of their stages.
    groups: Vec<&'static str>,
    /// Of each stage its place among them; none for hardware.
    group_of: Vec<Option<usize>>,
    rows: Vec<Row>,
}

#[derive(Clone, Default)]
struct Row {
    /// Picoseconds that threads of each group were in a turn, added up.
    busy: Vec<u64>,
    pages_moved: u64,
    journal_pages: u64,
}

impl Samples {
    /// Of a run with these stages, each known by its group, and with its core where it has one.
    pub(crate) fn new(interval: Span, parts: &[(&'static str, String)], places: &[Option<CoreId>]) -> Self {
        let (mut groups, mut group_of) = (Vec::new(), Vec::new());
        for ((group, _), place) in parts.iter().zip(places) {
            if place.is_some() && !groups.contains(group) {
                groups.push(group);
            }
            group_of.push(groups.iter().position(|known| place.is_some() && known == group));
        }
        Samples { interval, began: Time::ZERO, groups, group_of, rows: Vec::new() }
    }

    /// Begins anew with what counts of a phase.
    pub(crate) fn begin(&mut self, now: Time) {
        self.began = now;
        self.rows.clear();
    }

    fn row(&mut self, at: Time) -> &mut Row {
        let index = (at.since(self.began).picos() / self.interval.picos()) as usize;
        if self.rows.len() <= index {
            let busy = vec![0; self.groups.len()];
            self.rows.resize(index + 1, Row { busy, ..Row::default() });
        }
        &mut self.rows[index]
    }

    /// Spreads a turn over the intervals that it touches.
    pub(crate) fn turn(&mut self, record: &TurnRecord) {
        let Some(group) = self.group_of[record.stage.index()] else { return };
        let mut from = record.started.max(self.began);
        while from < record.ended {
            let into = Span::from_picos(from.since(self.began).picos() % self.interval.picos());
            let until = record.ended.min(from + self.interval.saturating_sub(into));
            self.row(from).busy[group] += until.since(from).picos();
            from = until;
        }
    }

    pub(crate) fn note(&mut self, at: Time, note: &Note) {
        match note {
            Note::GroupReclaimed { moved, .. } => self.row(at).pages_moved += u64::from(*moved),
            Note::JournalProgram => self.row(at).journal_pages += 1,
            _ => {}
        }
    }

    /// What counted of a phase that is over, with what its host saw. The last interval ends with that.
    pub(crate) fn of(&self, host: &PhaseResults, now: Time) -> Vec<Sample> {
        let length = now.since(host.series.from).picos().max(1);
        let count = length.div_ceil(self.interval.picos()) as usize;
        (0..count).map(|index| self.sample(host, index, length)).collect()
    }

    fn sample(&self, host: &PhaseResults, index: usize, length: u64) -> Sample {
        let at = self.interval.picos() * index as u64;
        let picos = self.interval.picos().min(length - at);
        let none = Row { busy: vec![0; self.groups.len()], ..Row::default() };
        let row = self.rows.get(index).unwrap_or(&none);
        let seen = host.series.intervals.get(index).copied().unwrap_or_default();
        let per_second = |count: u64| count as f64 * 1e12 / picos as f64;
        let (read, write) = (seen.reads.bytes.0, seen.writes.bytes.0);
        let active = row.busy.iter().map(|&busy| busy as f64 / picos as f64);
        let groups: Named<f64> = self.groups.iter().copied().zip(active).collect();
        Sample {
            at_ns: at / 1_000,
            length_ns: picos / 1_000,
            iops: per_second(seen.reads.ios + seen.writes.ios + seen.others.ios),
            bandwidth: per_second(read + write),
            read_bandwidth: per_second(read),
            write_bandwidth: per_second(write),
            groups,
            pages_moved: row.pages_moved,
            journal_pages: row.journal_pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::StageId;

    #[test]
    fn a_turn_is_spread_over_the_intervals_it_touches_and_background_pages_fall_where_they_are_noted() {
        let parts = [("host", String::new()), ("nvmq", "nvmq0".into()), ("bgc", "bgc0".into())];
        let places = [None, Some(CoreId(0)), Some(CoreId(0))];
        let mut samples = Samples::new(Span::from_micros(1), &parts, &places);
        let at = |nanos: u64| Time::from_picos(nanos * 1_000);
        samples.begin(at(5_000));
        let turn =
            |stage, started, ended| TurnRecord { stage: StageId(stage), from: None, arrived: started, started, ended };
        samples.turn(&turn(0, at(5_000), at(9_000)));
        samples.turn(&turn(1, at(5_500), at(7_250)));
        samples.turn(&turn(2, at(4_000), at(5_100)));
        samples.note(at(6_100), &Note::GroupReclaimed { moved: 7, on_demand: false, since: at(5_000) });
        let mut host = PhaseResults::new(String::new(), at(1_000));
        host.series.from = at(5_000);
        let found = samples.of(&host, at(7_500));
        let nvmq: Vec<f64> = found.iter().map(|sample| *sample.groups.get("nvmq").unwrap()).collect();
        assert_eq!(nvmq, [0.5, 1.0, 0.5], "the last interval is 500 ns long");
        assert_eq!(found[0].groups.get("bgc"), Some(&0.1), "what lay before the phase is not its own");
        assert_eq!(found[0].groups.len(), 2, "hardware has no threads");
        assert_eq!((found[1].pages_moved, found[1].at_ns, found[2].length_ns), (7, 1_000, 500));
    }
}
