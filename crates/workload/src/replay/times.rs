//! Recorded times: a file may hold any, however far apart, and only a replay that keeps to them has to reach them all.

use super::sink::Record;
use std::fmt;
use units::{Span, Time};

/// How long a timed replay may take, in picoseconds: half of what virtual time can count, 104 days.
pub(super) const LONGEST: f64 = 9e18;

/// How many bits of ticks there are on either side of the first record, so that the distance between any two fits as well.
const SIDE_BITS: u32 = 62;

/// What the times of a trace are counted in: 2^n ps, where n is 0 as long as they lie within 53 days of the first. Wider ones lose what is
/// less than a 2^62nd of their distance, which a replay that is fast enough to reach them all could not tell either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tick(u32);

impl Tick {
    /// Makes ticks so long that a time so many picoseconds from the first can be counted in them, and those counted before.
    pub(super) fn reach(&mut self, picos: i128, before: &mut [Record]) {
        let bits = u128::BITS - picos.unsigned_abs().leading_zeros();
        let more = bits.saturating_sub(SIDE_BITS).saturating_sub(self.0);
        if more > 0 {
            self.0 += more;
            before.iter_mut().for_each(|record| record.at >>= more.min(i64::BITS - 1));
        }
    }

    /// A reachable time in ticks, rounded down.
    pub(super) fn count(self, picos: i128) -> i64 {
        i64::try_from(picos >> self.0).expect("ticks are long enough to reach it")
    }

    /// So many ticks, none of them before the first.
    pub(super) fn span(self, ticks: i64) -> RecordedSpan {
        RecordedSpan(u128::from(ticks as u64) << self.0)
    }

    /// When a replay of that speed is so many ticks on; speed keeps it below [`LONGEST`].
    pub(super) fn time(self, ticks: i64, speed: f64) -> Time {
        let picos = self.span(ticks).0;
        Time::from_picos(if speed == 1.0 { picos as u64 } else { (picos as f64 / speed) as u64 })
    }

    /// What tells traces apart that are alike in all ticks; nothing for ticks of a picosecond.
    pub(super) fn word(self) -> u64 {
        self.0.into()
    }
}

/// From the first recorded time to the last: longer than a [`Span`] can be, where one of them is odd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedSpan(u128);

impl RecordedSpan {
    /// In picoseconds.
    pub(super) fn picos(self) -> f64 {
        self.0 as f64
    }

    /// In whole nanoseconds; none of what is longer than the 584 years that 64 bits of them hold.
    pub fn nanos(self) -> Option<u64> {
        u64::try_from(self.0 / 1_000).ok()
    }
}

impl fmt::Display for RecordedSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u64::try_from(self.0) {
            Ok(picos) => write!(f, "{}", Span::from_picos(picos)),
            Err(_) => write!(f, "{:.1} days", self.picos() / 1e12 / 86_400.0),
        }
    }
}

/// A number above zero, rounded up to four digits, without the zeros at their end.
pub(super) fn rounded_up(number: f64) -> String {
    let exponent = libm::log10(number).floor() as i32 - 3;
    let step = libm::pow(10.0, f64::from(exponent));
    let rounded = (number / step).ceil() * step;
    // A product in binary is a little off the decimal that is meant.
    let text = format!("{rounded:.*}", (-exponent).max(0) as usize);
    if exponent < 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::rounded_up;
    use crate::io::Source;
    use crate::replay::{Mode, Options, Trace};
    use std::io::Cursor;
    use std::path::Path;
    use units::Time;

    fn read(text: &str, options: Options) -> Trace {
        Trace::read(Path::new("sample"), Cursor::new(text.to_owned()), &options).expect("a trace of any times")
    }

    fn lbas(trace: &Trace) -> Vec<u64> {
        let mut source = trace.source(Mode::Closed).expect("times do not matter");
        std::iter::from_fn(|| source.next_io()).map(|io| io.lba.0).collect()
    }

    /// Sixty days, then a good trace behind a stamp of nothing, then the farthest that a text can say.
    #[test]
    fn a_replay_that_ignores_times_takes_any() {
        let days = read("0,100,512,R,5.0\n0,200,512,R,5184000\n0,300,512,R,7\n", Options::default());
        assert_eq!((days.summary().records, days.summary().skipped, lbas(&days)), (3, 0, vec![100, 300, 200]));
        assert_eq!((days.summary().span.nanos(), days.summary().reordered), (Some(5_183_995_000_000_000), 1));
        let stamps =
            (0..1_000).map(|at| format!("{},hm,0,Read,{},512,1\n", 128_166_372_003_061_629_u64 + at, at * 512));
        let stamps = read(
            &["0,hm,0,Read,0,512,1\n".to_owned()].into_iter().chain(stamps).collect::<String>(),
            Options::default(),
        );
        assert_eq!((stamps.summary().records, stamps.summary().skipped), (1_001, 0));
        assert!(stamps.summary().to_string().contains("spans 148340.7 days"), "{}", stamps.summary());
        let farthest = read("0,8,512,R,0\n0,16,512,R,9999999999999999999\n0,24,512,R,1e9\n", Options::default());
        assert_eq!((lbas(&farthest), farthest.summary().span.nanos()), (vec![8, 24, 16], None));
    }

    #[test]
    fn a_timed_replay_takes_what_its_speed_reaches_and_says_which_speed_that_is() {
        // 231 days, more than virtual time can count.
        let trace = read("0,8,512,R,5\n0,16,512,R,10000005\n0,24,512,R,20000005\n", Options::default());
        let refused = trace.source(Mode::Timed { speed: 1.0 }).expect_err("too slow").to_string();
        let expected = "speed is 1; expected at least 2.223: line 3 comes 20000000 s after line 1, and a replay lasts 104 days at most";
        assert_eq!(refused, expected);
        assert!(trace.source(Mode::Timed { speed: 2.223 }).is_ok(), "what it says is enough");
        let rounded = [1.000_2, 2.0, 0.020_406, 12_345.6, 99_999.0].map(rounded_up);
        assert_eq!(rounded, ["1.001", "2", "0.02041", "12350", "100000"]);
        let mut source = trace.source(Mode::Timed { speed: 4.0 }).expect("58 days");
        let times: Vec<u64> = std::iter::from_fn(|| source.next_io()?.at).map(Time::picos).collect();
        assert_eq!(times, [0, 2_500_000_000_000_000_000, 5_000_000_000_000_000_000]);
    }

    /// What a stray stamp lies away from the first is more than a replay reaches; the lines around it are not to blame.
    #[test]
    fn a_lenient_reader_skips_what_a_timed_replay_cannot_reach() {
        let text = "0,8,512,R,1\n0,16,512,R,99999999\n0,24,512,R,2\n";
        let trace = read(text, Options { lenient: true, timed: Some(1.0), ..Options::default() });
        let said = "line 2: Timestamp is \"99999998 s after the first\"; expected at most 52 days of the replay from it \
                    (is the unit right?)";
        assert_eq!((trace.summary().records, &trace.summary().messages[..]), (2, &[said.to_owned()][..]));
        let fast = read(text, Options { lenient: true, timed: Some(30.0), ..Options::default() });
        assert_eq!(fast.summary().records, 3);
        assert!(fast.source(Mode::Timed { speed: 30.0 }).is_ok());
    }
}
