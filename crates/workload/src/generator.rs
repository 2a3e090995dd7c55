//! A recipe and a run's parameters, checked, as an endless source of requests.

use crate::draw::{Chance, Draw, Weighted};
use crate::io::{Io, IoKind, Source};
use crate::parameters::{Parameters, UnusableParameter, checked_number, checked_size};
use crate::placement::Placement;
use crate::recipe::{Arrivals, Others, Pattern, Recipe, Sizes, checked_weights};
use units::{Lba, SECTOR_BYTES, Span, Time};

/// Draws requests by a [`Recipe`]; the same recipe, parameters and seed give the same requests.
#[derive(Clone, Debug)]
pub struct Generator {
    draw: Draw,
    kinds: Kinds,
    sizes: Weighted<u32>,
    placement: Placement,
    arrivals: Arriving,
    cycle: Option<Cycle>,
}

/// Reads and writes in turns.
#[derive(Clone, Debug)]
struct Cycle {
    /// Of each turn.
    sectors: u64,
    left: u64,
    reads: bool,
}

impl Cycle {
    fn new(bytes: u64) -> Result<Self, UnusableParameter> {
        let sectors = bytes / SECTOR_BYTES;
        if sectors == 0 {
            return Err(UnusableParameter::new("cycle_bytes", bytes, format!("{SECTOR_BYTES} bytes at least")));
        }
        Ok(Cycle { sectors, left: sectors, reads: true })
    }

    /// What the next request of so many sectors is; a turn ends with the request that fills it.
    fn next(&mut self, sectors: u32) -> IoKind {
        if self.left == 0 {
            (self.left, self.reads) = (self.sectors, !self.reads);
        }
        self.left = self.left.saturating_sub(sectors.into());
        if self.reads { IoKind::Read } else { IoKind::Write }
    }
}

impl Recipe {
    /// The requests that this recipe describes, for one run.
    ///
    /// # Errors
    /// A value of the recipe or of the parameters that nothing can be drawn from, by name.
    pub fn source(&self, parameters: &Parameters) -> Result<Generator, UnusableParameter> {
        let region = parameters.checked_region()?;
        let sizes = self.sizes_in_sectors(parameters)?;
        let largest = sizes.iter().map(|size| size.0).max().unwrap_or(0);
        if u64::from(largest) > region.sectors {
            return Err(parameters.without_room(largest, region.sectors));
        }
        let read_fraction = parameters.read_fraction.unwrap_or(self.read_fraction);
        let rate = parameters.per_second.map(|per_second| Arrivals::Poisson { per_second });
        let pattern = match (&self.pattern, parameters.streams) {
            (Pattern::Sequential { .. }, streams @ Some(_)) => &Pattern::Sequential { streams },
            (pattern, _) => pattern,
        };
        let (alignment, largest) = (self.alignment(parameters)?, u64::from(largest));
        Ok(Generator {
            draw: Draw::seeded(parameters.seed),
            kinds: Kinds::new(checked_number("read_fraction", read_fraction, 0.0, 1.0)?, &self.others)?,
            placement: Placement::new(pattern, region, alignment, largest, parameters.queues, parameters.popular)?,
            sizes: checked_weights("sizes", &sizes)?,
            arrivals: Arriving::new(rate.as_ref().unwrap_or(&self.arrivals))?,
            cycle: self.cycle_bytes.map(Cycle::new).transpose()?,
        })
    }

    /// How many bytes a request has on average.
    ///
    /// # Errors
    /// As [`Recipe::source`].
    pub fn mean_bytes(&self, parameters: &Parameters) -> Result<f64, UnusableParameter> {
        let sizes = self.sizes_in_sectors(parameters)?;
        let (sum, weights) = sizes.iter().fold((0.0, 0.0), |(sum, weights), &(sectors, weight)| {
            (sum + f64::from(sectors) * weight, weights + weight)
        });
        Ok(sum / weights * SECTOR_BYTES as f64)
    }

    /// The sizes in sectors, with their weights.
    fn sizes_in_sectors(&self, parameters: &Parameters) -> Result<Vec<(u32, f64)>, UnusableParameter> {
        match parameters.block {
            Some(bytes) => Ok(vec![(checked_size("block", bytes.0)?, 1.0)]),
            None => self.sizes.choices(),
        }
    }

    /// In sectors.
    fn alignment(&self, parameters: &Parameters) -> Result<u64, UnusableParameter> {
        let only_size = match self.sizes {
            Sizes::FixedBytes(bytes) => Some(bytes),
            _ => None,
        };
        let given = parameters.alignment.map(|bytes| bytes.0).or(self.alignment_bytes);
        let natural = parameters.block.map(|bytes| bytes.0).or(only_size);
        let bytes = given.or(natural).unwrap_or(4096);
        if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(UnusableParameter::new("alignment", bytes, format!("a multiple of {SECTOR_BYTES} bytes")));
        }
        Ok(bytes / SECTOR_BYTES)
    }
}

impl Generator {
    fn draw_io(&mut self, worker: Option<u32>) -> Option<Io> {
        let at = self.arrivals.next(&mut self.draw);
        let kind = self.kinds.pick(&mut self.draw);
        if !kind.addresses() {
            return Some(Io { kind, lba: Lba(0), sectors: 0, device: 0, at });
        }
        let sectors = self.sizes.pick(&mut self.draw);
        let kind = match &mut self.cycle {
            Some(cycle) if matches!(kind, IoKind::Read | IoKind::Write) => cycle.next(sectors),
            _ => kind,
        };
        let lba = Lba(self.placement.next(u64::from(sectors), worker, &mut self.draw));
        Some(Io { kind, lba, sectors, device: 0, at })
    }
}

impl Source for Generator {
    /// Streams take turns.
    fn next_io(&mut self) -> Option<Io> {
        self.draw_io(None)
    }
    /// Workers are dealt to the streams in turn, and stay with them; of more streams than workers each has several, in turn.
    fn next_for(&mut self, worker: u32) -> Option<Io> {
        self.draw_io(Some(worker))
    }
}

/// What requests ask for. Reads and writes, the common case, cost one draw and one comparison.
#[derive(Clone, Debug)]
struct Kinds {
    read: Chance,
    other: Chance,
    others: Weighted<IoKind>,
}

impl Kinds {
    fn new(read_fraction: f64, others: &Others) -> Result<Self, UnusableParameter> {
        let weights = [
            (IoKind::Deallocate, checked_number("others.deallocate", others.deallocate, 0.0, 1.0)?),
            (IoKind::Flush, checked_number("others.flush", others.flush, 0.0, 1.0)?),
            (IoKind::WriteZeroes, checked_number("others.write_zeroes", others.write_zeroes, 0.0, 1.0)?),
            (IoKind::Compare, checked_number("others.compare", others.compare, 0.0, 1.0)?),
        ];
        // Tenths that add up to one come to a little more here.
        let all = weights.iter().map(|weight| weight.1).sum::<f64>();
        let all = if (all - 1.0).abs() < 1e-9 { 1.0 } else { checked_number("others", all, 0.0, 1.0)? };
        let drawn = if all > 0.0 { weights } else { weights.map(|weight| (weight.0, 1.0)) };
        Ok(Kinds { read: Chance::new(read_fraction), other: Chance::new(all), others: Weighted::new(&drawn) })
    }

    fn pick(&self, draw: &mut Draw) -> IoKind {
        if self.other.happens(draw) {
            self.others.pick(draw)
        } else {
            // Looked up, not branched on: no processor predicts it.
            [IoKind::Write, IoKind::Read][usize::from(self.read.happens(draw))]
        }
    }
}

/// When requests arrive; intervals are picoseconds with their fraction, so that a rate is kept over any length of run.
#[derive(Clone, Debug)]
enum Arriving {
    Closed,
    Fixed { interval: f64, count: u64 },
    Poisson { interval: f64, at: f64 },
    Bursty { interval: f64, lead: Span, on: Span, off: Span, count: u64 },
}

impl Arriving {
    fn new(arrivals: &Arrivals) -> Result<Self, UnusableParameter> {
        // Slower than one an hour or faster than one a nanosecond is a slip of the unit.
        let interval = |rate: f64| Ok(1e12 / checked_number("arrivals.per_second", rate, 1.0 / 3_600.0, 1e9)?);
        let span =
            |field: &str, millis: f64| Ok(Span::from_nanos_f64(checked_number(field, millis, 1e-3, 3.6e6)? * 1e6));
        Ok(match *arrivals {
            Arrivals::Closed => Arriving::Closed,
            Arrivals::Fixed { per_second } => Arriving::Fixed { interval: interval(per_second)?, count: 0 },
            Arrivals::Poisson { per_second } => Arriving::Poisson { interval: interval(per_second)?, at: 0.0 },
            Arrivals::Bursty { per_second, lead_ms, on_ms, off_ms } => Arriving::Bursty {
                interval: interval(per_second)?,
                lead: Span::from_nanos_f64(checked_number("arrivals.lead_ms", lead_ms, 0.0, 3.6e6)? * 1e6),
                on: span("arrivals.on_ms", on_ms)?,
                off: span("arrivals.off_ms", off_ms)?,
                count: 0,
            },
        })
    }

    fn next(&mut self, draw: &mut Draw) -> Option<Time> {
        match self {
            Arriving::Closed => None,
            Arriving::Fixed { interval, count } => {
                *count += 1;
                Some(Time::from_picos(((*count - 1) as f64 * *interval) as u64))
            }
            Arriving::Poisson { interval, at } => {
                *at += *interval * draw.exponential();
                Some(Time::from_picos(*at as u64))
            }
            Arriving::Bursty { interval, lead, on, off, count } => {
                // Evenly spaced in the time of the bursts alone: what does not divide them evenly goes on in the next.
                let busy = (*count as f64 * *interval) as u64;
                *count += 1;
                let (bursts, within) = (busy / on.picos(), busy % on.picos());
                let before = (*on + *off).picos().saturating_mul(bursts);
                Some(Time::from_picos(lead.picos().saturating_add(before).saturating_add(within)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Pattern, WeightedSize};
    use units::Bytes;

    const DRIVE: u64 = 1 << 21;

    fn drawn(recipe: &Recipe, parameters: &Parameters, count: usize) -> Vec<Io> {
        let mut source = recipe.source(parameters).unwrap();
        (0..count).map(|_| source.next_io().unwrap()).collect()
    }

    #[test]
    fn a_seed_decides_everything() {
        let recipe = Recipe::fixed("", Pattern::Zipf { theta: 0.9 }, 0.5, 4096);
        let parameters = Parameters { per_second: Some(1e6), ..Parameters::new(DRIVE, 3) };
        assert_eq!(drawn(&recipe, &parameters, 1_000), drawn(&recipe, &parameters, 1_000));
        let other = Parameters { seed: 4, ..parameters.clone() };
        assert_ne!(drawn(&recipe, &parameters, 1_000), drawn(&recipe, &other, 1_000));
    }

    #[test]
    fn sequential_streams_take_turns_and_wrap() {
        let recipe = Recipe::fixed("", Pattern::Sequential { streams: Some(2) }, 0.0, 4096);
        let starts: Vec<u64> = drawn(&recipe, &Parameters::new(64, 1), 10).iter().map(|io| io.lba.0).collect();
        assert_eq!(starts, [0, 32, 8, 40, 16, 48, 24, 56, 0, 32]);
    }

    #[test]
    fn reads_and_writes_take_turns_of_as_many_bytes() {
        let recipe = Recipe { cycle_bytes: Some(10_000), ..Recipe::fixed("", Pattern::Random, 0.0, 4096) };
        let kinds: Vec<IoKind> = drawn(&recipe, &Parameters::new(DRIVE, 1), 7).iter().map(|io| io.kind).collect();
        let (read, write) = (IoKind::Read, IoKind::Write);
        assert_eq!(kinds, [read, read, read, write, write, write, read]);
        let none = Recipe { cycle_bytes: Some(511), ..recipe.clone() };
        assert_eq!(none.source(&Parameters::new(DRIVE, 1)).unwrap_err().field, "cycle_bytes");
        let others = Others { deallocate: 0.2, flush: 0.1, write_zeroes: 0.1, compare: 0.1 };
        let mixed = drawn(&Recipe { others, ..recipe }, &Parameters::new(DRIVE, 1), 1_000);
        let [deallocates, flushes, zeroes, compares] =
            [IoKind::Deallocate, IoKind::Flush, IoKind::WriteZeroes, IoKind::Compare]
                .map(|kind| mixed.iter().filter(|io| io.kind == kind).count());
        assert!((150..250).contains(&deallocates), "{deallocates}");
        assert!([flushes, zeroes, compares].iter().all(|count| (70..130).contains(count)));
        let turns: Vec<IoKind> = mixed.iter().map(|io| io.kind).filter(|kind| [read, write].contains(kind)).collect();
        assert_eq!(turns[..7], [read, read, read, write, write, write, read], "what comes between is of no turn");
    }

    #[test]
    fn a_worker_stays_with_its_stream() {
        let recipe = Recipe::fixed("", Pattern::Sequential { streams: Some(2) }, 0.0, 4096);
        let mut source = recipe.source(&Parameters { queues: 4, ..Parameters::new(64, 1) }).unwrap();
        let starts: Vec<u64> = [0, 0, 1, 2, 3].map(|worker| source.next_for(worker).unwrap().lba.0).to_vec();
        assert_eq!(starts, [0, 8, 32, 16, 40]);
    }

    #[test]
    fn of_more_streams_than_workers_each_has_several_in_turn() {
        let recipe = Recipe::fixed("", Pattern::Sequential { streams: Some(5) }, 0.0, 4096);
        let mut source = recipe.source(&Parameters { queues: 2, ..Parameters::new(5 * 16, 1) }).unwrap();
        let mut starts = |worker| [(); 4].map(|()| source.next_for(worker).unwrap().lba.0);
        assert_eq!((starts(0), starts(1)), ([0, 32, 64, 8], [16, 48, 24, 56]));
    }

    /// A stream a queue unless the recipe counts them, and what the run says over both.
    #[test]
    fn streams_that_nobody_counted_are_one_for_each_queue() {
        let starts = |said, streams, queues| {
            let recipe = Recipe::fixed("", Pattern::Sequential { streams: said }, 0.0, 4096);
            let parameters = Parameters { streams, queues, ..Parameters::new(64, 1) };
            drawn(&recipe, &parameters, 3).iter().map(|io| io.lba.0).collect::<Vec<_>>()
        };
        assert_eq!(starts(None, None, 4), [0, 16, 32]);
        assert_eq!(starts(Some(2), None, 4), [0, 32, 8]);
        assert_eq!(starts(Some(2), Some(1), 4), [0, 8, 16]);
        // Room for four of two requests each.
        assert_eq!(starts(None, None, 100), [0, 16, 32]);
    }

    #[test]
    fn kinds_and_sizes_come_in_their_shares() {
        let mut recipe = Recipe::fixed("", Pattern::Random, 0.25, 4096);
        recipe.others = Others { deallocate: 0.1, flush: 0.1, ..Others::default() };
        let (small, large) = (WeightedSize { bytes: 512, weight: 1.0 }, WeightedSize { bytes: 8192, weight: 3.0 });
        recipe.sizes = Sizes::Weighted(vec![small, large]);
        let drawn = drawn(&recipe, &Parameters::new(DRIVE, 1), 100_000);
        let share = |test: &dyn Fn(&Io) -> bool| drawn.iter().filter(|io| test(io)).count() as f64 / 1e5;
        for (found, expected) in [
            (share(&|io| io.kind == IoKind::Deallocate), 0.1),
            (share(&|io| io.kind == IoKind::Flush && io.sectors == 0), 0.1),
            (share(&|io| io.kind == IoKind::Read), 0.2),
            (share(&|io| io.kind == IoKind::Write), 0.6),
            (share(&|io| io.sectors == 16), 0.9 * 0.75),
        ] {
            assert!((found - expected).abs() < 0.01, "{found} {expected}");
        }
    }

    #[test]
    fn shares_may_add_up_to_one() {
        let others = |compare| Others { deallocate: 0.05, flush: 0.55, write_zeroes: 0.3, compare };
        assert!(Kinds::new(0.5, &others(0.1)).is_ok() && Kinds::new(0.5, &others(0.101)).is_err());
    }

    /// Long before the clock ends its requests have no time of their own any more.
    #[test]
    fn bursts_without_end_stay_in_order() {
        let arrivals = Arrivals::Bursty { per_second: 1e3, lead_ms: 1.0, on_ms: 1.0, off_ms: 3.6e6 };
        let recipe = Recipe { arrivals, ..Recipe::fixed("", Pattern::Random, 1.0, 4096) };
        assert!(drawn(&recipe, &Parameters::new(DRIVE, 9), 6_000).is_sorted_by_key(|io| io.at));
    }

    #[test]
    fn arrivals_keep_their_rate() {
        for arrivals in [Arrivals::Fixed { per_second: 3e5 }, Arrivals::Poisson { per_second: 3e5 }] {
            let recipe = Recipe { arrivals, ..Recipe::fixed("", Pattern::Random, 1.0, 4096) };
            let drawn = drawn(&recipe, &Parameters::new(DRIVE, 9), 60_001);
            let seconds = drawn[60_000].at.unwrap().since(Time::ZERO).secs_f64();
            assert!((seconds - 0.2).abs() < 0.004, "{seconds}");
            assert!(drawn.is_sorted_by_key(|io| io.at));
        }
        let arrivals = Arrivals::Bursty { per_second: 1e4, lead_ms: 0.5, on_ms: 1.0, off_ms: 9.0 };
        let recipe = Recipe { arrivals, ..Recipe::fixed("", Pattern::Random, 1.0, 4096) };
        let drawn = drawn(&recipe, &Parameters::new(DRIVE, 9), 25);
        let micros: Vec<u64> = drawn.iter().map(|io| io.at.unwrap().nanos() / 1_000).collect();
        assert_eq!(micros[8..12], [1_300, 1_400, 10_500, 10_600]);
        assert_eq!(micros[20], 20_500);
        // A burst and a half for each request.
        let arrivals = Arrivals::Bursty { per_second: 2_000.0 / 3.0, lead_ms: 0.0, on_ms: 1.0, off_ms: 1.0 };
        let recipe = Recipe { arrivals, ..Recipe::fixed("", Pattern::Random, 1.0, 4096) };
        let drawn = super::tests::drawn(&recipe, &Parameters::new(DRIVE, 9), 4);
        let micros: Vec<u64> = drawn.iter().map(|io| io.at.unwrap().nanos() / 1_000).collect();
        assert_eq!(micros, [0, 2_500, 6_000, 8_500]);
    }

    #[test]
    fn a_region_may_be_as_small_as_one_request() {
        let recipe = Recipe::fixed("", Pattern::Random, 1.0, 4096);
        let region = Some(crate::Region { start: Lba(16), sectors: 8 });
        let drawn = drawn(&recipe, &Parameters { region, ..Parameters::new(DRIVE, 1) }, 3);
        assert!(drawn.iter().all(|io| (io.lba, io.sectors) == (Lba(16), 8)), "{drawn:?}");
    }

    #[test]
    fn parameters_are_refused_by_name() {
        let recipe = Recipe::fixed("", Pattern::Random, 1.0, 4096);
        let good = Parameters::new(DRIVE, 1);
        let block = |bytes| Parameters { block: Some(Bytes(bytes)), ..good.clone() };
        let region = |start, sectors| crate::Region { start: Lba(start), sectors };
        for (parameters, field) in [
            (block(0), "block"),
            (block(700), "block"),
            (block((1 << 20) + 512), "block"),
            (Parameters { capacity: 4, ..good.clone() }, "capacity"),
            (Parameters { capacity: 4, ..block(4_096) }, "block"),
            (Parameters { region: Some(region(0, 7)), ..good.clone() }, "region"),
            (Parameters { region: Some(region(0, 7)), ..block(4_096) }, "region"),
            (Parameters { capacity: 0, ..good.clone() }, "capacity"),
            (Parameters { read_fraction: Some(f64::NAN), ..good.clone() }, "read_fraction"),
            (Parameters { alignment: Some(Bytes(0)), ..good.clone() }, "alignment"),
            (Parameters { per_second: Some(0.0), ..good.clone() }, "arrivals.per_second"),
            (Parameters { region: Some(region(DRIVE, 1)), ..good.clone() }, "region"),
            (Parameters { region: Some(region(u64::MAX, 2)), ..good.clone() }, "region"),
            (Parameters { region: Some(region(1, 9)), ..good.clone() }, "region"),
        ] {
            let error = recipe.source(&parameters).unwrap_err();
            assert_eq!(error.field, field, "{error}");
        }
        let none = Recipe { sizes: Sizes::Weighted(Vec::new()), ..recipe.clone() };
        assert_eq!(none.source(&good).unwrap_err().field, "sizes.weighted");
        let streams = Recipe { pattern: Pattern::Sequential { streams: Some(0) }, ..recipe };
        assert_eq!(streams.source(&good).unwrap_err().field, "pattern.sequential.streams");
    }
}
