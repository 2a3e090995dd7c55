//! A local search: from the placement of fewer cores uphill, until no neighbour is better.

use super::judge::{Judge, Judged};
use super::moves::{Counts, Draws, added, dealt, doubled, exchanged, fewer, proportional, swapped};
use super::{Placing, PlacingOrders};
use crate::LabError;
use crate::placement::{Placement, Placements, Seats};
use crate::store::unwritable;
use files::put;
use report::of;
use rig::config::{ConfigError, Origin, Row};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A neighbour is better from here on: the score of one placement differs by as much between the seeds of short runs.
const BETTER: f64 = 1.01;
/// Swaps that are drawn at a time.
const SWAPS: usize = 16;
/// Placements that are judged again by longer runs.
const VERIFIED: usize = 3;
/// Threads on a core that has fewer hardware threads: these share it, as they would if the groups outnumbered the cores.
const SHARING: u16 = 4;
/// Placements judged on one number of cores before the search gives up.
const JUDGED_MAX: usize = 2_000;

/// A search under way: number of cores after number of cores.
pub struct Search<'a> {
    placing: &'a Placing,
    judge: Judge<'a>,
    counts: Counts,
    found: Vec<Placement>,
}

impl<'a> Search<'a> {
    pub(super) fn begin(placing: &'a Placing, orders: &'a PlacingOrders<'a>) -> Result<Self, LabError> {
        let place = &placing.place;
        let (groups, fixed) = (place.groups.get_ref(), place.fixed.get_ref());
        let counts = vec![1; groups.len()];
        let judge = Judge::new(placing, orders)?;
        judge.check(|cores| dealt(groups, &counts, fixed, cores))?;
        Ok(Search { placing, judge, counts, found: Vec::new() })
    }

    /// The placement for the next number of cores, beginning with the threads of the one before.
    ///
    /// # Errors
    /// A configuration that cannot be, or a run that fails.
    pub fn next_placement(&mut self) -> Result<Option<&Placement>, LabError> {
        let Some(&cores) = self.placing.place.cores.get_ref().get(self.found.len()) else { return Ok(None) };
        self.judge.turn_to(cores);
        let mut is_over = self.climb(cores)?;
        is_over &= self.swap()?;
        let mut best: Vec<(&Seats, &Judged)> = self.judge.known.iter().collect();
        // Equal ones stay in the order of their seats.
        best.sort_by(|one, other| other.1.score().total_cmp(&one.1.score()));
        let best = best.into_iter().take(VERIFIED).map(|(seats, _)| seats);
        // The placement of fewer cores can still be the best, with one more that has nothing to do.
        let best: Vec<&Seats> = best.chain(self.found.last().map(|before| &before.seats)).collect();
        let judged = self.judge.long(&best)?.into_iter().zip(best);
        let (judged, seats) =
            judged.min_by_key(|(judged, _)| Reverse(judged.score() as u64)).expect("the first was judged");
        if let Some(at) = judged.iops.iter().position(|iops| *iops == 0.0) {
            let workload = self.placing.place.workloads.get_ref()[at].clone();
            let point = format!("{}: {}", self.placing.name, of(cores.into(), "core"));
            return Err(LabError::NothingCounted { point, workload });
        }
        let groups = self.placing.place.groups.get_ref();
        self.counts = groups.iter().map(|group| seats[group].len() as u16).collect();
        let workloads = || self.placing.place.workloads.get_ref().iter().cloned();
        let ended = match is_over {
            true => {
                format!(
                    "no exchange, no two more for the tightest groups, no thread less and none of {SWAPS} swaps was better by 1 %"
                )
            }
            false => format!("{JUDGED_MAX} placements were judged"),
        };
        self.found.push(Placement {
            cores,
            iops: workloads().zip(judged.iops.iter().map(|iops| iops.round() as u64)).collect(),
            limits: workloads().zip(judged.limits).collect(),
            runs: self.judge.runs.load(Ordering::Relaxed),
            ended,
            seats: seats.clone(),
        });
        Ok(self.found.last())
    }

    /// All that was found by now.
    pub fn found(&self) -> Placements {
        let place = &self.placing.place;
        let reaches = |target: u64| {
            let all = |placement: &&Placement| placement.iops.values().all(|iops| *iops >= target);
            self.found.iter().find(all).map(|placement| placement.cores)
        };
        let seeds: Vec<String> = place.seeds.get_ref().iter().map(u64::to_string).collect();
        let found = format!(
            "`{}`: a local search for the most IOPS in the lesser of {}, then longer runs with seeds {}",
            self.command(),
            place.workloads.get_ref().join(", "),
            seeds.join(", ")
        );
        Placements {
            architecture: place.architecture.get_ref().clone(),
            processor: place.processor.get_ref().clone(),
            found,
            target: place.target,
            fewest_cores: place.target.and_then(reaches),
            placement: self.found.clone(),
        }
    }

    /// Writes all that was found by now into a folder: as `NAME.toml` in the form of `placements/`, and of each number of cores as
    /// `NAME-CORES.toml`, a configuration. Where they lie, the former first.
    ///
    /// # Errors
    /// A folder or file that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, LabError> {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        let found = std::iter::once(self.found().to_toml()).map(Ok);
        let texts = found.chain(self.found.iter().map(|placement| self.configuration(placement)));
        let named = self.placing.results().into_iter().zip(texts).map(|(name, text)| {
            let path = folder.join(format!("{name}.toml"));
            put(&path, text?.as_bytes()).map_err(|error| unwritable(&path, &error))?;
            Ok(path)
        });
        named.collect()
    }

    /// A placement as a configuration, with what the search says of the drive that it was found on, and without what it asks of it.
    fn configuration(&self, placement: &Placement) -> Result<String, LabError> {
        let name = &self.placing.name;
        let resolved = self.judge.resolve(placement.cores, &placement.seats, None);
        let failed = |error: ConfigError| LabError::Configuration { point: name.clone(), error: error.into() };
        let resolved = resolved.map_err(failed)?;
        let is_of_drive = |row: &Row| {
            let is_given = matches!(row.origin, Origin::File { .. } | Origin::Set);
            is_given && !["workload.", "run."].iter().any(|asks| row.key.starts_with(asks))
        };
        let keys = resolved.rows().filter(is_of_drive).map(|row| format!("{} = {}\n", row.key, row.value));
        // A file's name may hold a line break, a comment may not.
        let command = self.command().replace(char::is_control, " ");
        let head = format!("# What `{command}` found, as a configuration that `flashloom run` takes.\n\n");
        Ok(head + &keys.collect::<String>())
    }

    /// The command that searches so.
    fn command(&self) -> String {
        let sets = self.judge.orders.sets.iter().flat_map(|set| ["--set", set]);
        let words = ["flashloom", "sweep", &self.placing.file].into_iter().chain(sets);
        words.map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// Adds and exchanges threads while that is better; whether it came to an end of its own.
    fn climb(&mut self, cores: u16) -> Result<bool, LabError> {
        let (groups, fixed) = (self.placing.place.groups.get_ref(), self.placing.place.fixed.get_ref());
        let deal = |counts: &Counts| dealt(groups, counts, fixed, cores);
        let all: Vec<usize> = (0..groups.len()).collect();
        let first = deal(&self.counts);
        let each_most = self.judge.width(&first)?.max(SHARING);
        let room = cores.saturating_mul(each_most);
        let mut best = self.judge.first(&first)?;
        // Where threads poll, how many live on each core matters as much as what they do.
        let splits: Vec<Counts> = (1..=each_most).map(|each| proportional(&best.takes, each * cores)).collect();
        let seated: Vec<Seats> = splits.iter().map(deal).collect();
        if let Some(index) = self.better(&seated, best.score())? {
            best = self.judge.known[&seated[index]].clone();
            self.counts.clone_from(&splits[index]);
        }
        // The cheap changes come first; after each that is better it begins with them again.
        let mut kind = 0;
        while self.judge.known.len() < JUDGED_MAX {
            let free = room.saturating_sub(self.counts.iter().sum());
            let neighbours = match kind {
                0 => added(&self.counts, free, &best.tightest),
                1 => exchanged(&self.counts, &best.tightest),
                2 => doubled(&self.counts, free, &best.tightest),
                3 => exchanged(&self.counts, &all),
                4 => fewer(&self.counts),
                _ => return Ok(true),
            };
            let seated: Vec<Seats> = neighbours.iter().map(deal).collect();
            kind += 1;
            if let Some(index) = self.better(&seated, best.score())? {
                best = self.judge.known[&seated[index]].clone();
                (self.counts, kind) = (neighbours[index].clone(), 0);
            }
        }
        Ok(false)
    }

    /// Swaps threads between cores while that is better; whether it came to an end of its own.
    fn swap(&mut self) -> Result<bool, LabError> {
        let (groups, fixed) = (self.placing.place.groups.get_ref(), self.placing.place.fixed.get_ref());
        let cores = self.judge.cores;
        let mut seats = dealt(groups, &self.counts, fixed, cores);
        let mut draws = Draws(cores.into());
        while self.judge.known.len() < JUDGED_MAX {
            // On few cores many draws are of two that cannot be swapped.
            let drawn = (0..8 * SWAPS).filter_map(|_| swapped(groups, &seats, &mut draws));
            let drawn: Vec<Seats> = drawn.take(SWAPS).collect();
            let score = self.judge.known[&seats].score();
            let Some(index) = self.better(&drawn, score)? else { return Ok(true) };
            seats.clone_from(&drawn[index]);
        }
        Ok(false)
    }

    /// The best of the candidates, if it is better than a score.
    fn better(&mut self, candidates: &[Seats], than: f64) -> Result<Option<usize>, LabError> {
        self.judge.short(candidates)?;
        let scores = candidates.iter().enumerate().filter_map(|(index, seats)| {
            let score = self.judge.known.get(seats)?.score();
            (score > than * BETTER).then_some((index, score))
        });
        // The first of equal ones.
        let best = scores.reduce(|best, next| if next.1 > best.1 { next } else { best });
        Ok(best.map(|(index, _)| index))
    }
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
