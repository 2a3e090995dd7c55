//! `replay`: a drive fed from a recorded trace.

use crate::Shell;
use crate::arguments::{ASKING_KEYS, Shared, note_idle_keys};
use crate::failure::unusable;
use crate::names::Called;
use crate::run::{Measurement, ROUND_KEYS, check_supported, note_processor, note_rounds};
use clap::builder::{EnumValueParser, PossibleValuesParser};
use clap::{Args, ValueEnum};
use host::{Pace, Phase, Rounds};
use nvme::NAMESPACES_MAX;
use report::{Addresses, Replay, Summary};
use rig::config::{Layers, Resolved};
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use units::{Bytes, SECTOR_BYTES, Span, is_called};
use workload::Source;
use workload::replay::{
    Bounds, CountUnit, Devices, Event, FORMATS, Mode, Options, TimeUnit, Trace, TraceError, TraceSummary,
    checked_speed, format_named,
};

/// What messages call a trace that comes from there.
const STANDARD_INPUT: &str = "standard input";

/// Flags that ask for something: the trace does.
pub(crate) const IDLE: &[&str] = &["--workload", "--block-size"];

/// Why what asks for something changes nothing here.
const TRACE_SAYS: &str = "the trace says what is asked for";

/// What `--devices` says, a word in its own spelling.
fn devices(said: &str) -> Result<String, Infallible> {
    let known = ["separate", "fold"].into_iter().find(|known| is_called(known, said));
    Ok(known.unwrap_or(said).to_owned())
}

/// What `replay` is told.
#[derive(Args)]
pub(crate) struct ReplayArguments {
    /// The trace: plain, or compressed with zstd, gzip or xz; - is standard input
    trace: PathBuf,
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Format of the trace (`list formats`); auto recognises it
    #[arg(long, default_value = "auto", value_parser = Called(PossibleValuesParser::new(formats())))]
    format: String,
    /// closed keeps the queues full; timed sends each request at its recorded time
    #[arg(long, value_parser = Called(EnumValueParser::<Timing>::new()), default_value = "closed")]
    mode: Timing,
    /// How much faster than recorded a timed replay goes
    #[arg(long, value_name = "FACTOR")]
    speed: Option<f64>,
    /// Workers, each with a queue of its own [default: 16]
    #[arg(long, value_name = "N", conflicts_with = "queues")]
    workers: Option<String>,
    /// Unit of time, for formats that leave it open
    #[arg(long, value_parser = Called(PossibleValuesParser::new(TimeUnit::OFFERED.map(TimeUnit::name))))]
    unit: Option<String>,
    /// What request sizes of mqsim, ssdsim and disksim are counted in: 512 B sectors [default], or 4 KiB pages as in some conversions
    #[arg(long, value_parser = Called(EnumValueParser::<Count>::new()))]
    count_unit: Option<Count>,
    /// Which event of blkparse and blktrace is a request: queued by the application [default], or issued to the drive
    #[arg(long, value_parser = Called(EnumValueParser::<Point>::new()))]
    event: Option<Point>,
    /// Where the devices of the trace go: each to a namespace of its own, all into one address space, or only
    /// the one at a place in their order, from 0: numbers by value, then names
    #[arg(long, value_name = "separate|fold|N", default_value = "separate", value_parser = devices)]
    devices: String,
    /// Counts lines and records that cannot be used, and skips them
    #[arg(long)]
    lenient: bool,
    /// Takes addresses past the end of the drive modulo its size
    #[arg(long)]
    wrap: bool,
    #[command(flatten)]
    shared: Shared,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Timing {
    Closed,
    Timed,
}

/// What sizes are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Count {
    Sectors,
    Pages,
}

/// The event of a block trace that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Point {
    Queued,
    Issued,
}

fn formats() -> Vec<&'static str> {
    std::iter::once("auto").chain(FORMATS.iter().map(|format| format.name())).collect()
}

impl ReplayArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        self.check_speed()?;
        let mut layers = self.shared.layers(&self.config)?;
        if let Some(workers) = &self.workers {
            layers = layers.flag("--workers", workers)?;
        }
        let (idle, rounds) = (idle_keys(&layers), layers.said(ROUND_KEYS));
        let warm_ups = ["workload.warm_up_ios", "workload.warm_up_ms"].map(|key| layers.said(&[key]));
        let resolved = layers.resolve()?;
        check_supported(&self.shared, &resolved)?;
        let recorded = self.open()?;
        let (trace, namespaces) = self.fit(&recorded, &resolved)?;
        self.shared.note_idle(shell, IDLE, TRACE_SAYS)?;
        idle.iter().try_for_each(|(said, why)| note_idle_keys(shell, said, why))?;
        note_warm_ups(shell, &resolved, &warm_ups)?;
        let phase = self.phase(&resolved, &trace)?;
        note_rounds(shell, &self.shared, &rounds, resolved.phases[0].rounds.is_some())?;
        shell.follows(&resolved)?;
        note_processor(shell, &self.shared, &resolved)?;
        let json = shell.json(self.shared.json.as_deref())?;
        self.introduce(shell, (&recorded, &trace), &namespaces)?;
        let mut device = resolved.plan();
        device.drive.namespaces.clone_from(&namespaces);
        let requests = trace.summary().records;
        let expected = phase.ios.unwrap_or(requests).min(requests);
        let complete = |summary: &mut Summary| {
            summary.trace = Some(Replay {
                name: self.name(),
                mode: if self.mode == Timing::Timed { "timed" } else { "closed" }.into(),
                replayed: summary.ios,
                device: self.chosen(recorded.summary()).map(str::to_owned),
                namespace_devices: self.apart(recorded.summary()).to_vec(),
                ..described(recorded.summary(), trace.summary(), &namespaces)
            });
        };
        let measurement = Measurement { resolved: &resolved, device, then_cut: false, expected, complete: &complete };
        measurement.report(shell, json, vec![phase])
    }

    fn name(&self) -> String {
        if self.trace == Path::new("-") {
            return STANDARD_INPUT.into();
        }
        self.trace.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The device that `--devices N` chose, of which the trace has no other left.
    fn chosen<'a>(&self, found: &'a TraceSummary) -> Option<&'a str> {
        found.devices.first().filter(|_| matches!(self.wanted(), Ok(Devices::Only(_)))).map(String::as_str)
    }

    /// The devices that have a namespace each, in the order of these; none where all go to one.
    fn apart<'a>(&self, found: &'a TraceSummary) -> &'a [String] {
        let are_apart = found.devices.len() > 1 && matches!(self.wanted(), Ok(Devices::Separate));
        if are_apart { &found.devices } else { &[] }
    }

    /// Queues that are kept full have no speed to be played at. Whether it is fast enough for a trace, the trace says.
    fn check_speed(&self) -> anyhow::Result<()> {
        match self.speed {
            Some(speed) if self.mode == Timing::Closed => {
                let message = format!("--speed is {}; expected --mode timed beside it", workload::short_number(speed));
                Err(unusable(message, "without --mode timed the queues are kept full, whatever times the trace has"))
            }
            _ => checked_speed(self.speed()).map(drop).map_err(|error| unusable(format!("--{error}"), "")),
        }
    }

    fn speed(&self) -> f64 {
        self.speed.unwrap_or(1.0)
    }

    /// The trace as one phase, all of it counted unless the user says how much.
    fn phase(&self, resolved: &Resolved, trace: &Trace) -> anyhow::Result<Phase> {
        let (mode, pace) = match self.mode {
            Timing::Closed => (Mode::Closed, Pace::Closed),
            Timing::Timed => (Mode::Timed { speed: self.speed() }, Pace::Timed),
        };
        let help = "--mode closed needs no times";
        let source = trace.source(mode).map_err(|error| unusable(format!("--{error}"), help))?;
        let said = &resolved.phases[0];
        if said.rounds.is_some() {
            if self.mode == Timing::Timed {
                let help = "rounds begin the trace again, which has no times for that";
                return Err(unusable("--until is steady; expected end with --mode timed", help));
            }
            let again = Phase::new(self.name(), Box::new(trace.looped()), pace);
            return Ok(Phase { rounds: said.rounds, ..again });
        }
        let mut phase = Phase::new(self.name(), Box::new(source), pace);
        phase.ios = said.ios.filter(|_| self.shared.ios.is_some());
        phase.rounds = Rounds::one(None, said.duration.filter(|_| self.shared.duration.is_some()));
        Ok(phase)
    }

    fn wanted(&self) -> anyhow::Result<Devices> {
        Ok(match self.devices.as_str() {
            "separate" => Devices::Separate,
            "fold" => Devices::Fold,
            number => Devices::Only(number.parse().map_err(|_| {
                unusable(
                    format!("--devices is {number}; expected separate, fold or the number of a device, from 0"),
                    "",
                )
            })?),
        })
    }

    fn options(&self) -> anyhow::Result<Options> {
        Ok(Options {
            format: format_named(&self.format),
            unit: self.unit.as_deref().and_then(TimeUnit::named),
            count_unit: self.count_unit.map(|unit| match unit {
                Count::Sectors => CountUnit::Sectors,
                Count::Pages => CountUnit::Pages,
            }),
            event: self.event.map(|event| match event {
                Point::Queued => Event::Queued,
                Point::Issued => Event::Issued,
            }),
            devices: self.wanted()?,
            bounds: Bounds::Open,
            lenient: self.lenient,
            timed: (self.mode == Timing::Timed).then(|| self.speed()),
        })
    }

    fn open(&self) -> anyhow::Result<Trace> {
        let options = self.options()?;
        if self.trace == Path::new("-") {
            return Ok(Trace::read(Path::new(STANDARD_INPUT), std::io::stdin(), &options)?);
        }
        Ok(Trace::open(&self.trace, &options)?)
    }

    /// The trace as the drive gets it, and the namespaces that it fits: those that the configuration gives, else one for each device.
    fn fit(&self, trace: &Trace, resolved: &Resolved) -> anyhow::Result<(Trace, Vec<u64>)> {
        let (ends, page) = (ends(trace, self.devices == "fold"), resolved.device.geometry.shape().page);
        if ends.len() > NAMESPACES_MAX {
            return Err(trace.too_many_devices(NAMESPACES_MAX, "namespaces").into());
        }
        let own = has_namespaces(resolved).then_some(&resolved.device.namespaces);
        let dealt = own.cloned().or_else(|| deal(&ends, resolved.device.user, page));
        if let Some(namespaces) = dealt
            && namespaces.len() >= ends.len()
            && namespaces.iter().zip(&ends).all(|(sectors, end)| end <= sectors)
        {
            return Ok((trace.clone(), namespaces));
        }
        if let Some(own) = own.filter(|own| own.len() < ends.len()) {
            return Err(trace.too_many_devices(own.len(), "namespaces").into());
        }
        // Each device gets the same, and what lies past that is refused or taken modulo that.
        let sectors = resolved.device.user.0 / ends.len() as u64 / page.0 * page.0 / SECTOR_BYTES;
        let namespaces = own.cloned().unwrap_or_else(|| vec![sectors; ends.len()]);
        if own.is_none() && sectors == 0 {
            let pages = (resolved.device.user.0 / page.0) as usize;
            return Err(trace.too_many_devices(pages, "pages").into());
        }
        if self.wrap || ends.len() == 1 || own.is_some() {
            let within = trace.within(&namespaces, self.wrap);
            return Ok((within.map_err(|error| beyond(error, own.is_some()))?, namespaces));
        }
        // As `deal` counts them: in whole pages, and one at least.
        let whole = |end: &u64| end.max(&1).next_multiple_of(page.0 / SECTOR_BYTES);
        let needed = ends.iter().map(whole).fold(0, u64::saturating_add);
        Err(trace.too_wide(needed, resolved.device.user.0 / SECTOR_BYTES).into())
    }

    /// What was found in the file, and what became of it on the drive.
    fn introduce(
        &self,
        shell: &mut Shell<'_>,
        (recorded, trace): (&Trace, &Trace),
        namespaces: &[u64],
    ) -> anyhow::Result<()> {
        let summary = TraceSummary { wrapped: trace.summary().wrapped, ..recorded.summary().clone() };
        let mut text = format!("{}\n", shell.strong(&self.name()));
        text += &summary.to_string().lines().map(|line| format!("  {line}\n")).collect::<String>();
        if summary.wrapped > 0 {
            let Addresses { touched_bytes, end_bytes, .. } = addresses(trace.summary());
            let (touched, end) = (Bytes(touched_bytes), Bytes(end_bytes));
            text += &format!("  on the drive: touches {touched} in pages of 4 KiB, up to {end}\n");
        }
        if let Some(name) = self.chosen(&summary) {
            text += &format!("  --devices {} is device {name}\n", self.devices);
        }
        let apart = self.apart(&summary);
        if !apart.is_empty() {
            let each = apart.iter().zip(namespaces).zip(1..);
            let each = each
                .map(|((device, sectors), at)| format!("{at} is device {device} ({})", Bytes(sectors * SECTOR_BYTES)));
            let more = if apart.len() > 3 { ", ..." } else { "" };
            text += &format!("  namespace {}{more}\n", each.take(3).collect::<Vec<_>>().join(", "));
        }
        text.push('\n');
        shell.say(&text)?;
        for message in &summary.messages {
            shell.warn(&format!("skipped {message}\n"))?;
        }
        Ok(())
    }
}

/// What files and assignments say of keys that a replay does not read, and why it does not.
fn idle_keys(layers: &Layers) -> [(Vec<String>, &'static str); 3] {
    [
        (layers.said(ASKING_KEYS), TRACE_SAYS),
        (layers.said(&["workload.pace"]), "--mode says when requests are sent"),
        (layers.said(&["workload.ios", "workload.duration_ms"]), "--ios or --duration cuts a replay short"),
    ]
}

/// Says which warm-ups there are not, by requests and by time; one of nothing is none.
fn note_warm_ups(shell: &mut Shell<'_>, resolved: &Resolved, said: &[Vec<String>; 2]) -> io::Result<()> {
    let phase = &resolved.phases[0];
    let asked = said.iter().zip([phase.warm_up_ios > 0, phase.warm_up > Span::ZERO]);
    let mut asked = asked.filter(|(_, is_some)| *is_some);
    asked.try_for_each(|(said, _)| note_idle_keys(shell, said, "a replay has no warm-up: every request counts"))
}

/// Whether the configuration says what namespaces there are: by default there is one, of all the drive.
fn has_namespaces(resolved: &Resolved) -> bool {
    resolved.rows().any(|row| row.key == "device.namespace_bytes" && row.value != "[\"rest\"]")
}

/// What a result says of a trace as its file records it, and where it went.
fn described(recorded: &TraceSummary, replayed: &TraceSummary, namespaces: &[u64]) -> Replay {
    let found = &recorded.statistics;
    Replay {
        format: recorded.format.into(),
        requests: recorded.records,
        skipped: recorded.skipped,
        devices: recorded.devices.len() as u64,
        namespace_bytes: namespaces.iter().map(|sectors| sectors * SECTOR_BYTES).collect(),
        assumed: recorded.assumed.clone(),
        wrapped: replayed.wrapped,
        reordered: recorded.reordered,
        read_fraction: found.read_fraction(),
        read_bytes_mean: (found.reads > 0).then(|| found.read_bytes_mean()),
        write_bytes_mean: (found.writes > 0).then(|| found.write_bytes_mean()),
        span_ns: recorded.span.nanos().filter(|_| recorded.timed),
        addresses: addresses(recorded),
        on_drive: (replayed.wrapped > 0).then(|| addresses(replayed)),
        ..Replay::default()
    }
}

/// What the requests of a trace address.
fn addresses(summary: &TraceSummary) -> Addresses {
    let found = &summary.statistics;
    Addresses {
        randomness: found.randomness(),
        unaligned_fraction: found.unaligned_fraction(),
        touched_bytes: summary.unique_pages.saturating_mul(4096),
        end_bytes: found.end.0 * SECTOR_BYTES,
    }
}

/// The refusal of a request past the end of a namespace. Of those that the configuration has none grows with the drive.
fn beyond(error: TraceError, configured: bool) -> anyhow::Error {
    let help = match error {
        TraceError::OutOfBounds { .. } if configured => {
            "device.namespace_bytes gives it more, --wrap takes addresses modulo its size"
        }
        TraceError::TooLong { .. } if configured => {
            "device.namespace_bytes gives it more; --wrap moves requests and makes none shorter"
        }
        _ => return error.into(),
    };
    unusable(error.to_string(), help)
}

/// How far each namespace is addressed, in sectors; folded devices share the first.
fn ends(trace: &Trace, folded: bool) -> Vec<u64> {
    let mut ends = vec![0; if folded { 1 } else { trace.summary().devices.len() }];
    let mut source = trace.source(Mode::Closed).expect("a closed replay needs nothing");
    while let Some(io) = source.next_io() {
        let end = &mut ends[usize::from(io.device)];
        *end = io.end().0.max(*end);
    }
    ends
}

/// Sectors of namespaces that hold what each device needs, in whole pages; the rest of the drive goes to all alike.
fn deal(ends: &[u64], user: Bytes, page: Bytes) -> Option<Vec<u64>> {
    let sectors_per_page = page.0 / SECTOR_BYTES;
    let pages: Vec<u64> = ends.iter().map(|end| end.div_ceil(sectors_per_page).max(1)).collect();
    let needed = pages.iter().try_fold(0u64, |sum, &pages| sum.checked_add(pages))?;
    let spare = (user.0 / page.0).checked_sub(needed)? / ends.len() as u64;
    Some(pages.iter().map(|pages| (pages + spare) * sectors_per_page).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_dealt_to_devices_in_whole_pages() {
        let page = Bytes(4096);
        assert_eq!(deal(&[9, 0], Bytes(8 * 4096), page), Some(vec![32, 24]));
        assert_eq!(deal(&[64], Bytes(8 * 4096), page), Some(vec![64]));
        assert_eq!(deal(&[65], Bytes(8 * 4096), page), None);
        assert_eq!(deal(&[u64::MAX, u64::MAX], Bytes(8 * 4096), page), None);
    }
}
