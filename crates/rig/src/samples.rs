//! A phase interval by interval: which threads were in a turn, and what background work moved, for figures over time.

use firmware::Note;
use host::{INTERVALS_MAX, PhaseResults, interval_of};
use report::{Named, Sample};
use stage::TurnRecord;
use units::{CoreId, Span, Time};

/// Collects what only the observer of a run sees of each interval.
pub(crate) struct Samples {
    interval: Span,
    began: Time,
    /// When what counts of the phase was over; it is not yet while that is never.
    ended: Time,
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
        Samples { interval, began: Time::ZERO, ended: Time::ZERO, groups, group_of, rows: Vec::new() }
    }

    /// Begins anew with what counts of a phase.
    pub(crate) fn begin(&mut self, now: Time) {
        (self.began, self.ended) = (now, Time::NEVER);
        self.rows.clear();
    }

    /// Ends with what counts of the phase: what outstanding requests and the drive do after it is in no interval.
    pub(crate) fn close(&mut self, now: Time) {
        self.ended = self.ended.min(now);
    }

    /// The row of an interval, if there may be so many.
    fn row(&mut self, index: usize) -> Option<&mut Row> {
        if self.rows.len() <= index && index < INTERVALS_MAX {
            let busy = vec![0; self.groups.len()];
            self.rows.resize(index + 1, Row { busy, ..Row::default() });
        }
        self.rows.get_mut(index)
    }

    /// Spreads a turn over the intervals that it touches.
    pub(crate) fn turn(&mut self, record: &TurnRecord) {
        let Some(group) = self.group_of[record.stage.index()] else { return };
        let (mut from, ended) = (record.started.max(self.began), record.ended.min(self.ended));
        while from < ended {
            let into = from.since(self.began).picos();
            let index = (into / self.interval.picos()) as usize;
            let until = ended.min(from + self.interval.saturating_sub(Span::from_picos(into % self.interval.picos())));
            let Some(row) = self.row(index) else { return };
            row.busy[group] += until.since(from).picos();
            from = until;
        }
    }

    pub(crate) fn note(&mut self, at: Time, note: &Note) {
        let (moved, journal) = match note {
            Note::PageMoved => (1, 0),
            Note::JournalProgram => (0, 1),
            _ => return,
        };
        if self.ended < Time::NEVER {
            return;
        }
        let index = interval_of(at.since(self.began), self.interval);
        if let Some(row) = self.row(index) {
            row.pages_moved += moved;
            row.journal_pages += journal;
        }
    }

    /// What counted of a phase that is over, with what its host saw. The last interval ends with that, unless there are too many before.
    pub(crate) fn of(&self, host: &PhaseResults, now: Time) -> Vec<Sample> {
        let Some(length) = self.length(host, now) else { return Vec::new() };
        let count = length.div_ceil(self.interval.picos()) as usize;
        (0..count.min(INTERVALS_MAX)).map(|index| self.sample(host, index, length)).collect()
    }

    /// Whether the phase goes on after the last interval that there may be.
    pub(crate) fn are_cut(&self, host: &PhaseResults, now: Time) -> bool {
        let intervals = |length: u64| length.div_ceil(self.interval.picos());
        self.length(host, now).is_some_and(|length| intervals(length) > INTERVALS_MAX as u64)
    }

    /// How long was counted, in picoseconds; nothing if that never began.
    fn length(&self, host: &PhaseResults, now: Time) -> Option<u64> {
        host.opened.map(|_| now.since(host.series.from).picos().max(1))
    }

    fn sample(&self, host: &PhaseResults, index: usize, length: u64) -> Sample {
        let at = self.interval.picos() * index as u64;
        let picos = self.interval.picos().min(length - at);
        let none = Row { busy: vec![0; self.groups.len()], ..Row::default() };
        let row = self.rows.get(index).unwrap_or(&none);
        let seen = host.series.intervals.get(index).copied().unwrap_or_default();
        let per_second = |count: u64| count as f64 * 1e12 / picos as f64;
        let [read, write, other] = [&seen.reads, &seen.writes, &seen.others].map(|moved| moved.bytes.0);
        let active = row.busy.iter().map(|&busy| busy as f64 / picos as f64);
        let groups: Named<f64> = self.groups.iter().copied().zip(active).collect();
        Sample {
            at_ns: at / 1_000,
            length_ns: picos / 1_000,
            iops: per_second(seen.reads.ios + seen.writes.ios + seen.others.ios),
            bandwidth: per_second(read + write + other),
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
        (0..7).for_each(|_| samples.note(at(6_100), &Note::PageMoved));
        let mut host = PhaseResults::new(String::new(), at(1_000));
        (host.opened, host.series.from) = (Some(at(5_000)), at(5_000));
        let found = samples.of(&host, at(7_500));
        let nvmq: Vec<f64> = found.iter().map(|sample| *sample.groups.get("nvmq").unwrap()).collect();
        assert_eq!(nvmq, [0.5, 1.0, 0.5], "the last interval is 500 ns long");
        assert_eq!(found[0].groups.get("bgc"), Some(&0.1), "what lay before the phase is not its own");
        assert_eq!(found[0].groups.len(), 2, "hardware has no threads");
        assert_eq!((found[1].pages_moved, found[1].at_ns, found[2].length_ns), (7, 1_000, 500));
        host.opened = None;
        assert_eq!(samples.of(&host, at(7_500)), [], "of what never began to count there is nothing");
    }

    #[test]
    fn what_the_drive_does_after_the_last_interval_is_in_none() {
        let parts = [("nvmq", "nvmq0".into()), ("nvmq", "nvmq1".into())];
        let mut samples = Samples::new(Span::from_micros(1), &parts, &[Some(CoreId(0)); 2]);
        let at = |nanos: u64| Time::from_picos(nanos * 1_000);
        let turn = |stage, started, ended| {
            let (stage, started, ended) = (StageId(stage), at(started), at(ended));
            TurnRecord { stage, from: None, arrived: started, started, ended }
        };
        samples.turn(&turn(0, 0, 400));
        samples.note(at(400), &Note::PageMoved);
        samples.begin(at(500));
        samples.turn(&turn(0, 400, 2_400));
        samples.note(at(2_500), &Note::PageMoved);
        samples.close(at(2_500));
        samples.note(at(2_500), &Note::PageMoved);
        samples.note(at(2_900), &Note::PageMoved);
        // One turn goes on, the other begins while what is outstanding is answered.
        samples.turn(&turn(0, 2_450, 2_800));
        samples.turn(&turn(1, 2_600, 2_900));
        let mut host = PhaseResults::new(String::new(), at(0));
        (host.opened, host.series.from) = (Some(at(500)), at(500));
        let found = samples.of(&host, at(2_500));
        let nvmq: Vec<f64> = found.iter().map(|sample| *sample.groups.get("nvmq").unwrap()).collect();
        assert_eq!(nvmq, [1.0, 0.95]);
        let pages: Vec<u64> = found.iter().map(|sample| sample.pages_moved).collect();
        assert_eq!(pages, [0, 1], "what is over when the phase is belongs to its last interval");
        assert!(!samples.are_cut(&host, at(2_500)));
    }

    #[test]
    fn a_series_ends_with_the_last_interval_there_may_be() {
        let mut samples = Samples::new(Span::from_micros(1), &[], &[]);
        let at = |micros: u64| Time::from_picos(micros * 1_000_000);
        samples.begin(at(0));
        samples.note(at(1_000_000), &Note::JournalProgram);
        samples.note(at(1_000_001), &Note::JournalProgram);
        let mut host = PhaseResults::new(String::new(), at(0));
        host.opened = Some(at(0));
        let found = samples.of(&host, at(1_100_000));
        let last = found.last().expect("there are some");
        assert_eq!((found.len(), last.at_ns, last.length_ns, last.journal_pages), (1_000_000, 999_999_000, 1_000, 1));
        assert!(samples.are_cut(&host, at(1_100_000)) && !samples.are_cut(&host, at(1_000_000)));
    }
}
