//! What a replay lets its user decide: units that a format leaves open, which device goes where, what may be skipped.

use super::Format;

/// How a trace is read. The default reads strictly, recognises the format, and keeps devices apart.
#[derive(Clone, Copy, Default)]
pub struct Options {
    /// The format; recognised from the file where absent.
    pub format: Option<&'static dyn Format>,
    /// The unit of time, for formats that leave it open.
    pub unit: Option<TimeUnit>,
    /// What DiskSim, MQSim and SSDsim traces count a request's size in.
    pub count_unit: Option<CountUnit>,
    /// Which event of a block trace is replayed.
    pub event: Option<Event>,
    /// Where the trace's devices go.
    pub devices: Devices,
    /// What happens to records past the end of the drive.
    pub bounds: Bounds,
    /// Whether lines or records that cannot be used are counted and skipped rather than refused.
    pub lenient: bool,
    /// The speed of the timed replay that is wanted, if one is: a lenient reader skips what it cannot reach.
    pub timed: Option<f64>,
}

/// What a format leaves open, so that whoever replays a trace of it may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// [`Options::unit`].
    Unit,
    /// [`Options::count_unit`].
    CountUnit,
    /// [`Options::event`].
    Event,
}

impl Opening {
    /// As the command line names it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Opening::Unit => "unit",
            Opening::CountUnit => "count-unit",
            Opening::Event => "event",
        }
    }
}

impl Options {
    /// What is said of each thing that a format may leave open, in words.
    pub(super) fn said(&self) -> [(Opening, Option<&'static str>); 3] {
        let count_unit = self.count_unit.map(|unit| if unit == CountUnit::Pages { "pages" } else { "sectors" });
        let event = self.event.map(|event| if event == Event::Issued { "issued" } else { "queued" });
        [(Opening::Unit, self.unit.map(TimeUnit::name)), (Opening::CountUnit, count_unit), (Opening::Event, event)]
    }
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// 10^-12 s.
    Picoseconds,
    /// 10^-9 s.
    Nanoseconds,
    /// 100 ns, as in Windows FILETIME.
    FileTimeTicks,
    /// 10^-6 s.
    Microseconds,
    /// 10^-3 s.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    /// The units that a user may name: `ps`, `ns`, `us`, `ms`, `s`.
    pub const OFFERED: [Self; 5] =
        [Self::Picoseconds, Self::Nanoseconds, Self::Microseconds, Self::Milliseconds, Self::Seconds];

    /// The one of these that is called so.
    pub fn named(name: &str) -> Option<Self> {
        Self::OFFERED.into_iter().find(|unit| unit.name() == name)
    }

    /// Its usual sign.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::Picoseconds => "ps",
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::FileTimeTicks => "100ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }

    pub(super) const fn picos(self) -> i128 {
        match self {
            TimeUnit::Picoseconds => 1,
            TimeUnit::Nanoseconds => 1_000,
            TimeUnit::FileTimeTicks => 100_000,
            TimeUnit::Microseconds => 1_000_000,
            TimeUnit::Milliseconds => 1_000_000_000,
            TimeUnit::Seconds => 1_000_000_000_000,
        }
    }
}

/// What a request's size is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountUnit {
    /// Sectors of 512 B, as DiskSim itself does.
    #[default]
    Sectors,
    /// Pages of 4 KiB, while addresses stay sectors, as some published conversions do.
    Pages,
}

/// The point in the kernel's block layer at which a traced request is taken; taking both would replay it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event {
    /// Q: as the application asked.
    #[default]
    Queued,
    /// D: as the drive was asked, after merging and splitting.
    Issued,
}

/// Where the devices of a trace go. They are numbered in the order of their numbers or names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Devices {
    /// Each to a namespace of its own.
    #[default]
    Separate,
    /// Into one address space, one after another, each rounded up to 1 MiB.
    Fold,
    /// This one only, as the only namespace.
    Only(u16),
}

/// What happens to records that end past the drive, or past each namespace where devices are kept apart; in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// Nothing: the trace's own size stands.
    #[default]
    Open,
    /// The trace is refused, naming the record that reaches farthest.
    Refuse(u64),
    /// Addresses are taken modulo the size; a record that would straddle the end moves down to end there.
    Wrap(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_named_as_the_command_line_names_it() {
        let said = |unit, count_unit, event| {
            let options = Options { unit, count_unit, event, ..Options::default() };
            options.said().map(|(opening, said)| (opening.name(), said))
        };
        assert_eq!(said(None, None, None), [("unit", None), ("count-unit", None), ("event", None)]);
        let first = said(Some(TimeUnit::FileTimeTicks), Some(CountUnit::Pages), Some(Event::Issued));
        assert_eq!(first.map(|(_, said)| said), ["100ns", "pages", "issued"].map(Some));
        let second = said(Some(TimeUnit::Milliseconds), Some(CountUnit::Sectors), Some(Event::Queued));
        assert_eq!(second.map(|(_, said)| said), ["ms", "sectors", "queued"].map(Some));
    }
}
