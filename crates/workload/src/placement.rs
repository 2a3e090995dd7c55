//! Where the next request begins.

use crate::draw::{Chance, Draw, Weighted, Zipf};
use crate::parameters::{Region, UnusableParameter, checked_number};
use crate::recipe::{Pattern, checked_weights};

/// The state of a [`Pattern`] over a region of the drive, in sectors.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    Random(Slots),
    Sequential(Streams),
    Zipf { slots: Slots, zipf: Zipf, scatter: Scatter },
    Runs { slots: Slots, jump: Chance, next: u64 },
    Regions(Vec<Slots>, Weighted<usize>),
}

/// The aligned places of a region at which a request may begin.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    start: u64,
    end: u64,
    count: u64,
    alignment: u64,
}

/// Sequential streams.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    all: Vec<Stream>,
    /// Whose turn it is where nobody has a stream of its own.
    turn: usize,
    /// The same for each queue where there are more streams than queues: it has every so-many-th from its own number on.
    turns: Vec<usize>,
}

/// One sequential stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    start: u64,
    end: u64,
    next: u64,
}

/// Popular slots that are drawn for a request: where all of them are too near the end for it, drawing on need not end.
const TRIES: usize = 64;

impl Slots {
    /// The first slot is the first aligned sector, and the largest request fits there; so every search for a slot ends.
    fn new(region: Region, alignment: u64, largest: u64) -> Result<Self, UnusableParameter> {
        let end = region.start.0 + region.sectors;
        let start = region.start.0.checked_next_multiple_of(alignment).unwrap_or(end);
        if start.saturating_add(largest) > end {
            let found = format!("{} sectors from {}", region.sectors, region.start);
            let expected = format!("room for {largest} sectors on a boundary of {alignment} sectors");
            return Err(UnusableParameter::new("region", found, expected));
        }
        Ok(Slots { start, end, count: (end - start).div_ceil(alignment), alignment })
    }

    fn at(&self, slot: u64) -> u64 {
        self.start + slot * self.alignment
    }

    /// Drawing again where a request would not fit leaves all places where it does equally likely.
    fn draw(&self, sectors: u64, draw: &mut Draw) -> u64 {
        loop {
            let at = self.at(draw.below(self.count));
            if at + sectors <= self.end {
                return at;
            }
        }
    }
}

impl Placement {
    /// `alignment` and `largest` (the largest request) are in sectors and not zero. Sequential streams that nobody counted are one
    /// for each of `queues`. The `seed` says which slots are popular.
    pub(crate) fn new(
        pattern: &Pattern,
        region: Region,
        alignment: u64,
        largest: u64,
        queues: u32,
        seed: u64,
    ) -> Result<Self, UnusableParameter> {
        let slots = Slots::new(region, alignment, largest)?;
        Ok(match pattern {
            Pattern::Random => Placement::Random(slots),
            Pattern::Sequential { streams: Some(streams) } => {
                Placement::Sequential(Streams::new(shared_out(&slots, *streams, largest)?, queues))
            }
            Pattern::Sequential { streams: None } => {
                // As many as have room for two requests each.
                let room = (slots.end - slots.start) / (2 * largest.next_multiple_of(alignment));
                let streams = u64::from(queues).min(room).max(1) as u32;
                Placement::Sequential(Streams::new(shared_out(&slots, streams, largest)?, queues))
            }
            Pattern::Zipf { theta } => {
                let zipf = Zipf::new(slots.count, checked_number("pattern.zipf.theta", *theta, 0.0, 10.0)?);
                Placement::Zipf { scatter: Scatter::over(slots.count, seed), slots, zipf }
            }
            Pattern::Runs { randomness } => {
                let jump = checked_number("pattern.runs.randomness", *randomness, 0.0, 1.0)?;
                // Beyond the end: the first request jumps.
                Placement::Runs { next: slots.end, slots, jump: Chance::new(jump) }
            }
            Pattern::Regions(shares) => {
                let mut weights = Vec::new();
                let mut parts = Vec::new();
                let (mut start, mut space) = (slots.start, 0.0);
                let all: f64 = shares.iter().map(|share| share.space).sum();
                for (index, share) in shares.iter().enumerate() {
                    let accesses = checked_number("pattern.regions.accesses", share.accesses, 0.0, 1e12)?;
                    space += checked_number("pattern.regions.space", share.space, 0.0, 1e12)?;
                    let last = index + 1 == shares.len();
                    let end = if last { slots.end } else { slots.at((slots.count as f64 * (space / all)) as u64) };
                    let part = Region { start: units::Lba(start), sectors: end.saturating_sub(start) };
                    let slots = Slots::new(part, alignment, largest).map_err(|error| {
                        let found = format!("share {}: {}", index + 1, error.found);
                        UnusableParameter::new("pattern.regions", found, error.expected)
                    })?;
                    parts.push(slots);
                    weights.push((index, accesses));
                    start = end;
                }
                Placement::Regions(parts, checked_weights("pattern.regions", &weights)?)
            }
        })
    }

    /// First sector of a request of so many sectors, of a worker's own streams if one asks.
    pub(crate) fn next(&mut self, sectors: u64, worker: Option<u32>, draw: &mut Draw) -> u64 {
        match self {
            Placement::Random(slots) => slots.draw(sectors, draw),
            Placement::Sequential(streams) => streams.next(worker).advance(sectors),
            Placement::Zipf { slots, zipf, scatter } => {
                let fits = |at: &u64| at + sectors <= slots.end;
                let popular = (0..TRIES).map(|_| slots.at(scatter.place(zipf.rank(draw) - 1))).find(fits);
                popular.unwrap_or_else(|| slots.draw(sectors, draw))
            }
            Placement::Runs { slots, jump, next } => {
                let at =
                    if *next + sectors > slots.end || jump.happens(draw) { slots.draw(sectors, draw) } else { *next };
                *next = at + sectors;
                at
            }
            Placement::Regions(parts, choice) => parts[choice.pick(draw)].draw(sectors, draw),
        }
    }
}

impl Streams {
    /// Of a host with so many queues.
    fn new(all: Vec<Stream>, queues: u32) -> Self {
        let queues = queues.max(1) as usize;
        let turns = if all.len() > queues { (0..queues).collect() } else { Vec::new() };
        Streams { all, turn: 0, turns }
    }

    /// The stream that the next request is of.
    fn next(&mut self, worker: Option<u32>) -> &mut Stream {
        let (count, queues) = (self.all.len(), self.turns.len());
        let Some(worker) = worker else {
            let next = if self.turn + 1 == count { 0 } else { self.turn + 1 };
            return &mut self.all[std::mem::replace(&mut self.turn, next)];
        };
        let worker = worker as usize;
        if queues == 0 {
            return &mut self.all[worker % count];
        }
        let queue = worker % queues;
        let turn = self.turns[queue];
        self.turns[queue] = if turn + queues < count { turn + queues } else { queue };
        &mut self.all[turn]
    }
}

impl Stream {
    fn advance(&mut self, sectors: u64) -> u64 {
        let at = if self.next + sectors > self.end { self.start } else { self.next };
        self.next = at + sectors;
        at
    }
}

fn shared_out(slots: &Slots, streams: u32, largest: u64) -> Result<Vec<Stream>, UnusableParameter> {
    let each = slots.count.checked_div(u64::from(streams)).unwrap_or(0);
    if each * slots.alignment < largest {
        let expected = format!("from 1 to as many as have room for {largest} sectors each");
        return Err(UnusableParameter::new("pattern.sequential.streams", streams, expected));
    }
    let stream = |index: u64| {
        let start = slots.at(index * each);
        let end = slots.at((index + 1) * each).min(slots.end);
        // The last stream's share may be cut short by the region's end.
        if start + largest > end {
            let found = format!("stream {index} of {streams} has {} sectors", end - start);
            return Err(UnusableParameter::new("region", found, format!("{largest} sectors for each stream")));
        }
        Ok(Stream { start, end, next: start })
    };
    (0..u64::from(streams)).map(stream).collect()
}

/// A permutation of the numbers below a count that looks random, another for each seed, without a division: rounds of steps that can be
/// undone on the next power of two, repeated while the outcome is not below the count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    keys: [u64; SCATTER_ROUNDS],
    half: u32,
    mask: u64,
    count: u64,
}

const SCATTER_ROUNDS: usize = 3;

impl Scatter {
    /// `count` is not zero and at most 2^63.
    fn over(count: u64, seed: u64) -> Self {
        let mask = count.next_power_of_two() - 1;
        let mut draw = Draw::seeded(seed);
        let keys = [(); SCATTER_ROUNDS].map(|()| draw.bits());
        Scatter { keys, half: (mask.count_ones() / 2).max(1), mask, count }
    }

    fn place(self, rank: u64) -> u64 {
        let mut place = rank;
        loop {
            for key in self.keys {
                // An odd factor carries upwards, and what is shifted down carries back.
                place = (place ^ key).wrapping_mul(key | 1) & self.mask;
                place ^= place >> self.half;
            }
            if place < self.count {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::Lba;

    proptest! {
        #[test]
        fn scattered_ranks_are_a_permutation(count in 1u64..2_000, seed: u64) {
            let scatter = Scatter::over(count, seed);
            let mut slots: Vec<u64> = (0..count).map(|rank| scatter.place(rank)).collect();
            slots.sort_unstable();
            prop_assert!(slots.into_iter().eq(0..count));
        }

        #[test]
        fn requests_stay_inside_and_aligned(
            start in 0u64..100, sectors in 1u64..5_000, alignment in 1u64..64, largest in 1u64..64, kind in 0usize..5,
        ) {
            use crate::recipe::Share;
            let (hot, cold) = (Share { accesses: 1.0, space: 0.2 }, Share { accesses: 1.0, space: 0.8 });
            let pattern = [
                Pattern::Random,
                Pattern::Sequential { streams: [None, Some(3)][(largest % 2) as usize] },
                Pattern::Zipf { theta: 1.1 },
                Pattern::Runs { randomness: 0.5 },
                Pattern::Regions(vec![hot, cold]),
            ][kind].clone();
            let region = Region { start: Lba(start), sectors };
            let placement = Placement::new(&pattern, region, alignment, largest, 5, start);
            let Ok(mut placement) = placement else { return Ok(()) };
            let mut draw = Draw::seeded(start);
            for _ in 0..200 {
                let size = 1 + draw.below(largest);
                let at = placement.next(size, None, &mut draw);
                prop_assert!(at >= start && at + size <= start + sectors);
                if !matches!(pattern, Pattern::Runs { .. } | Pattern::Sequential { .. }) {
                    prop_assert_eq!(at % alignment, 0);
                }
            }
        }
    }

    #[test]
    fn a_request_for_which_the_popular_slots_are_too_near_the_end_goes_to_another() {
        let drawn = |region, alignment, largest| {
            let region = Region { start: Lba(0), sectors: region };
            let placed = (0..40).map(|seed| {
                let mut placement = Placement::new(&Pattern::Zipf { theta: 10.0 }, region, alignment, largest, 1, seed)
                    .expect("it fits");
                placement.next(largest, None, &mut Draw::seeded(seed))
            });
            placed.max().expect("forty seeds")
        };
        assert_eq!(drawn(2_049, 1, 2_048), 1, "two places hold it, of 2,049 in the region");
        assert_eq!(drawn(16, 8, 8), 8);
    }

    /// Balls that are thrown at random into as many bins fill 1 - 1/e of them. A line of a cache is such a bin: the hottest pages meet in
    /// some, and which they are is another matter with another seed.
    #[test]
    fn the_hottest_slots_lie_as_if_thrown() {
        let lines = |seed| {
            let scatter = Scatter::over(1 << 20, seed);
            let mut lines: Vec<u64> = (0..1_024).map(|rank| scatter.place(rank) % 1_024).collect();
            lines.sort_unstable();
            lines.dedup();
            lines.len()
        };
        let filled: Vec<usize> = (0..20).map(lines).collect();
        let mean = filled.iter().sum::<usize>() / filled.len();
        assert!((637..657).contains(&mean), "{filled:?}, expected 647");
        let hottest = |seed| Scatter::over(1 << 20, seed).place(0);
        assert!((1..20).all(|seed| hottest(seed) != hottest(0)));
    }
}
