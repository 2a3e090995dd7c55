//! Whether the figures of a summary agree with each other: a part that does not add up is a fault of whoever filled it in.

use crate::{Direction, Latency, Sample, Summary};
use thiserror::Error;

/// How far the breakdown's sum may be from the mean latency: rounding of its parts, not a part forgotten.
const BREAKDOWN_TOLERANCE: f64 = 1e-3;
/// What dividing busy time by run time may add to a share of exactly one.
const SHARE_TOLERANCE: f64 = 1e-9;

/// A figure that cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Inconsistency {
    /// The parts of the latency are not the latency.
    #[error("the breakdown sums to {sum:.1} ns, but the mean latency is {mean:.1} ns")]
    Breakdown {
        /// Sum of the breakdown, ns.
        sum: f64,
        /// Mean latency of all requests, ns.
        mean: f64,
    },
    /// A share of time outside 0 to 1.
    #[error("utilisation of {of} is {value}, not within 0 to 1")]
    Share {
        /// What was in use.
        of: String,
        /// The share.
        value: f64,
    },
    /// The directions do not add up to the whole.
    #[error("read, write and other are {parts} requests, but there are {ios}")]
    Requests {
        /// All requests.
        ios: u64,
        /// Sum over the directions.
        parts: u64,
    },
    /// Percentiles fall, or a mean is above the maximum, or a latency is there for no request or missing for some.
    #[error("the latencies of {0} contradict each other")]
    Latency(String),
    /// A rate that is negative, infinite or not a number.
    #[error("{of} is {value}")]
    Rate {
        /// Its key.
        of: &'static str,
        /// Its value.
        value: f64,
    },
}

impl Summary {
    /// Everything about the figures that cannot be; empty for a sound summary.
    pub fn check(&self) -> Vec<Inconsistency> {
        let mut found = Vec::new();
        self.check_directions(&mut found);
        for (of, value) in [
            ("iops", self.iops),
            ("bandwidth", self.bandwidth),
            ("queue_depth_mean", self.queue_depth_mean),
            ("arrivals_per_s", self.arrivals_per_s.unwrap_or(0.0)),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                found.push(Inconsistency::Rate { of, value });
            }
        }
        if let (false, Some(mean)) = (self.breakdown.is_empty(), self.latency_mean()) {
            let sum: f64 = self.breakdown.iter().map(|(_, part)| part).sum();
            let (low, high) = (mean * (1.0 - BREAKDOWN_TOLERANCE), mean * (1.0 + BREAKDOWN_TOLERANCE));
            if !(low..=high).contains(&sum) {
                found.push(Inconsistency::Breakdown { sum, mean });
            }
        }
        let wrong = self.shares().into_iter().filter(|(_, share)| !(0.0..=1.0 + SHARE_TOLERANCE).contains(share));
        found.extend(wrong.map(|(of, value)| Inconsistency::Share { of, value }));
        found
    }

    fn check_directions(&self, found: &mut Vec<Inconsistency>) {
        let directions = self.directions();
        let parts = directions.iter().map(|(_, direction)| direction.ios).sum();
        if parts != self.ios {
            found.push(Inconsistency::Requests { ios: self.ios, parts });
        }
        let classes: u64 = self.classes.iter().map(|(_, class)| class.ios).sum();
        if !self.classes.is_empty() && classes != self.ios {
            found.push(Inconsistency::Requests { ios: self.ios, parts: classes });
        }
        let parts = self.namespaces.iter().map(|(_, namespace)| namespace.ios()).sum();
        if !self.namespaces.is_empty() && parts != self.ios {
            found.push(Inconsistency::Requests { ios: self.ios, parts });
        }
        let of_namespaces = self.namespaces.iter().flat_map(|(_, namespace)| namespace.directions());
        let rows = directions.into_iter().chain(self.classes.iter()).chain(of_namespaces);
        let wrong = rows.filter(|(_, direction)| !sound(direction));
        found.extend(wrong.map(|(name, _)| Inconsistency::Latency(name.to_owned())));
    }

    /// Every share of time, with what it is of.
    fn shares(&self) -> Vec<(String, f64)> {
        let mut shares: Vec<(String, f64)> = Vec::new();
        shares.extend(self.groups.iter().map(|(name, group)| (format!("group {name}"), group.utilisation)));
        shares.extend(self.hardware.iter().map(|(name, group)| (name.to_owned(), group.utilisation)));
        let threads = self.machine_threads.iter().enumerate();
        shares.extend(threads.map(|(index, thread)| (format!("machine thread {index}"), thread.utilisation)));
        shares.extend(self.bounds().iter().map(|bound| (bound.resource.clone(), bound.utilisation)));
        if let Some(cores) = &self.cores {
            let each = cores.utilisation.iter().enumerate();
            shares.extend(each.map(|(at, share)| (format!("core {at} of those that a thread lives on"), *share)));
            let groups = cores.busiest.iter().flat_map(|core| core.groups.iter());
            shares.extend(groups.map(|(group, share)| (format!("the busiest core ({group})"), *share)));
        }
        if let Some(flash) = &self.flash {
            let channels = flash.channel_utilisation.iter().enumerate();
            shares.extend(channels.map(|(channel, share)| (format!("channel {channel}"), *share)));
            shares.extend(flash.die_utilisation_mean.map(|share| ("the dies".to_owned(), share)));
            shares.extend(flash.die_taken_mean.map(|share| ("the dies (taken)".to_owned(), share)));
            shares.extend(flash.die_command_wait_mean.map(|share| ("the dies (commands)".to_owned(), share)));
        }
        let workers = self.workers.iter().flat_map(|workers| workers.shares());
        shares.extend(workers.map(|(of, share)| (format!("workers ({of})"), share)));
        let hits = self.cache.iter().filter_map(|cache| cache.hit_ratio);
        shares.extend(hits.map(|share| ("the cache (hit ratio)".to_owned(), share)));
        shares.extend(self.samples.iter().flat_map(|sample| self.shares_of(sample)));
        shares
    }

    /// How many of its threads a group had in a turn, within one interval.
    fn shares_of(&self, sample: &Sample) -> impl Iterator<Item = (String, f64)> {
        let at = sample.at_ns;
        sample.groups.iter().filter_map(move |(name, active)| {
            let threads = self.groups.get(name)?.threads;
            Some((format!("group {name} from {at} ns on"), active / f64::from(threads)))
        })
    }
}

fn sound(direction: &Direction) -> bool {
    match &direction.latency {
        None => direction.ios == 0,
        Some(Latency { mean, p50, p90, p99, p999, p9999, max }) => {
            let rising = [p50, p90, p99, p999, p9999, max].is_sorted_by(|a, b| a <= b);
            direction.ios > 0 && rising && *p50 >= 0.0 && (0.0..=*max).contains(mean)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use crate::{Named, Namespace, Workers};

    #[test]
    fn a_sound_summary_has_no_fault() {
        assert_eq!(sample().check(), []);
    }

    #[test]
    fn every_kind_of_fault_is_found() {
        let mut wrong = sample();
        wrong.breakdown.set("cache", wrong.breakdown.get("cache").unwrap() + 0.002 * wrong.latency_mean().unwrap());
        assert!(matches!(wrong.check()[..], [Inconsistency::Breakdown { .. }]));

        let mut wrong = sample();
        wrong.flash.as_mut().unwrap().channel_utilisation[1] = 1.01;
        assert_eq!(wrong.check(), [Inconsistency::Share { of: "channel 1".into(), value: 1.01 }]);

        let mut wrong = sample();
        wrong.workers = Some(Workers { work: -0.1, idle: 1.1, ..Workers::default() });
        assert_eq!(wrong.check().len(), 2);

        let mut wrong = sample();
        wrong.samples[0].groups.set("nvmq", 17.0);
        assert_eq!(wrong.check(), [Inconsistency::Share { of: "group nvmq from 0 ns on".into(), value: 17.0 / 16.0 }]);

        let mut wrong = sample();
        wrong.ios += 1;
        assert_eq!(wrong.check(), [Inconsistency::Requests { ios: wrong.ios, parts: wrong.ios - 1 }]);

        let mut wrong = sample();
        wrong.read.latency.as_mut().unwrap().p90 = 1.0;
        assert_eq!(wrong.check(), [Inconsistency::Latency("read".to_owned())]);

        let mut wrong = sample();
        wrong.iops = f64::NAN;
        assert!(matches!(wrong.check()[..], [Inconsistency::Rate { of: "iops", .. }]));
    }

    fn change<V: Clone>(all: &mut Named<V>, name: &str, change: impl FnOnce(&mut V)) {
        let mut value = all.get(name).unwrap().clone();
        change(&mut value);
        all.set(name, value);
    }

    #[test]
    fn every_share_of_time_is_looked_at() {
        type Change = fn(&mut Summary);
        let changes: [(&str, Change); 12] = [
            ("group trans", |it| change(&mut it.groups, "trans", |it| it.utilisation = 1.5)),
            ("link", |it| change(&mut it.hardware, "link", |it| it.utilisation = 1.5)),
            ("machine thread 0", |it| it.machine_threads[0].utilisation = 1.5),
            ("host link", |it| it.bounds.as_mut().unwrap().last_mut().unwrap().utilisation = 1.5),
            ("core 3 of those that a thread lives on", |it| it.cores.as_mut().unwrap().utilisation[3] = 1.5),
            ("the busiest core (trans)", |it| {
                it.cores.as_mut().unwrap().busiest.as_mut().unwrap().groups.set("trans", 1.5);
            }),
            ("channel 2", |it| it.flash.as_mut().unwrap().channel_utilisation[2] = 1.5),
            ("the dies", |it| it.flash.as_mut().unwrap().die_utilisation_mean = Some(1.5)),
            ("the dies (taken)", |it| it.flash.as_mut().unwrap().die_taken_mean = Some(1.5)),
            ("the dies (commands)", |it| it.flash.as_mut().unwrap().die_command_wait_mean = Some(1.5)),
            ("workers (idle)", |it| it.workers = Some(Workers { idle: 1.5, ..Workers::default() })),
            ("the cache (hit ratio)", |it| it.cache.as_mut().unwrap().hit_ratio = Some(1.5)),
        ];
        for (of, change) in changes {
            let mut wrong = sample();
            change(&mut wrong);
            assert_eq!(wrong.check(), [Inconsistency::Share { of: of.into(), value: 1.5 }]);
        }
    }

    #[test]
    fn classes_and_namespaces_add_up_and_their_latencies_are_looked_at() {
        let whole = |it: &Summary| Direction { ios: it.ios, ..it.read.clone() };
        let mut sound = sample();
        sound.classes.set("large", whole(&sound));
        sound.namespaces.set("1", Namespace { read: whole(&sound), ..Namespace::default() });
        assert_eq!(sound.check(), []);

        let requests = |parts| Inconsistency::Requests { ios: sound.ios, parts };
        let mut wrong = sound.clone();
        change(&mut wrong.classes, "large", |it| it.ios -= 1);
        assert_eq!(wrong.check(), [requests(sound.ios - 1)]);
        let mut wrong = sound.clone();
        change(&mut wrong.namespaces, "1", |it| it.read.ios += 1);
        assert_eq!(wrong.check(), [requests(sound.ios + 1)]);

        let changes: [fn(&mut Latency); 3] =
            [|it| it.p50 = -1.0, |it| it.mean = it.max + 1.0, |it| it.p9999 = it.max + 1.0];
        for spoil in changes {
            let mut wrong = sound.clone();
            change(&mut wrong.classes, "large", |it| spoil(it.latency.as_mut().unwrap()));
            assert_eq!(wrong.check(), [Inconsistency::Latency("large".into())]);
            let mut wrong = sound.clone();
            change(&mut wrong.namespaces, "1", |it| spoil(it.read.latency.as_mut().unwrap()));
            assert_eq!(wrong.check(), [Inconsistency::Latency("read".into())]);
        }
        let mut wrong = sound.clone();
        change(&mut wrong.classes, "large", |it| it.latency = None);
        assert_eq!(wrong.check(), [Inconsistency::Latency("large".into())]);
    }
}
