//! Reference runs repeat bit for bit: in one process, side by side, and on other machines and days, where `golden/digests.toml`
//! says what they came to.

use crate::media::worn;
use crate::small::{Small, processor};
use firmware::architecture::{ARCHITECTURES, Architecture};
use flash::{ErrorModel, FaultSettings};
use host::{Pace, Phase};
use rig::{Device, Fill, Session};
use std::collections::BTreeMap;
use std::fmt::Write;
use workload::{Arrivals, Others, Parameters, Pattern, Recipe, Sizes, WeightedSize};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/digests.toml");

const HEADER: &str = "# The digest of a reference run of each architecture on each device, by seed. A change of any is a change of what\n\
    # the drive does or what it costs, to be reviewed. To accept: FLASHLOOM_ACCEPT=1 cargo test -p rig --test device golden\n";

fn phase(name: &str, seed: u64, sectors: u64) -> Phase {
    let mut recipe = Recipe::fixed("golden", Pattern::Random, 0.4, 4096);
    let sizes = [(512, 1.0), (4096, 4.0), (12_288, 1.0), (65_536, 1.0)];
    recipe.sizes = Sizes::Weighted(sizes.map(|(bytes, weight)| WeightedSize { bytes, weight }).into());
    recipe.others = Others { deallocate: 0.02, flush: 0.002, write_zeroes: 0.02, compare: 0.02 };
    recipe.alignment_bytes = Some(512);
    let source = recipe.source(&Parameters::new(sectors, seed)).expect("a drawable workload");
    Phase { ios: Some(2_000), ..Phase::new(name, Box::new(source), Pace::Closed) }
}

fn session(small: &Small) -> Session {
    let phases = ["first", "second", "third"].iter().zip(0..);
    small.session(phases.map(|(name, at)| phase(name, small.seed + 100 * at, small.sectors())).collect())
}

fn next(session: &mut Session) -> bool {
    let outcome = session.next_phase();
    outcome.map(|summary| summary.unwrap_or_else(|error| panic!("{error}"))).is_some()
}

fn digest(small: &Small) -> u64 {
    ended(session(small))
}

fn ended(mut session: Session) -> u64 {
    while next(&mut session) {}
    session.digest()
}

/// All that is drawn through logarithms and powers, which mathematical libraries round differently: popularity, arrivals, errors of flash
/// by wear, time and block, and what a drive that was overwritten holds.
fn drawn(architecture: &'static dyn Architecture) -> u64 {
    let fill = Fill::Random { times: 1.5 };
    let small = Small { architecture, fill, ..Small::default() };
    let wears =
        ErrorModel { wear: 4e-10, wear_exponent: 2.05, retention: 6e-5, retention_exponent: 0.54, ..worn().errors };
    let faults = FaultSettings { errors: wears, cycles: 500, days: 20.0, ..worn() };
    let mut recipe = Recipe::fixed("drawn", Pattern::Zipf { theta: 0.9 }, 0.6, 4096);
    recipe.arrivals = Arrivals::Poisson { per_second: 60_000.0 };
    let source = recipe.source(&Parameters::new(small.sectors(), 1)).expect("a drawable workload");
    let phase = Phase { ios: Some(4_000), ..Phase::new("drawn", Box::new(source), Pace::Timed) };
    let device = Device { faults: Some(faults), ..small.device() };
    ended(Session::new(&device, "small", processor(), 1, vec![phase], 0).expect("it can be built"))
}

#[test]
fn reference_runs_come_to_the_digests_in_the_file() {
    let mut found = BTreeMap::new();
    for &architecture in ARCHITECTURES {
        for seed in 1..=3 {
            let small = Small { architecture, seed, ..Small::default() };
            found.insert(format!("{}/small/{seed}", architecture.name()), format!("{:016x}", digest(&small)));
        }
        found.insert(format!("{}/small/drawn", architecture.name()), format!("{:016x}", drawn(architecture)));
    }
    let lines = found.iter().fold(String::new(), |mut lines, (run, digest)| {
        writeln!(lines, "\"{run}\" = \"{digest}\"").expect("strings do not fail");
        lines
    });
    if std::env::var_os("FLASHLOOM_ACCEPT").is_some() {
        std::fs::write(FILE, format!("{HEADER}\n{lines}")).expect("the file can be written");
    }
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    let kept: BTreeMap<String, String> = toml::from_str(&text).expect("a table of digests");
    assert_eq!(
        kept, found,
        "digests changed; they are now\n\n{lines}\nto accept: FLASHLOOM_ACCEPT=1 cargo test -p rig --test device golden"
    );
}

#[test]
fn two_sessions_side_by_side_do_not_touch_each_other() {
    for &architecture in ARCHITECTURES {
        let [one, other] = [1, 2].map(|seed| Small { architecture, seed, ..Small::default() });
        let (mut first, mut second, mut third) = (session(&one), session(&other), session(&one));
        while next(&mut first) {
            next(&mut second);
            next(&mut third);
        }
        assert_eq!(first.digest(), third.digest(), "{}", architecture.name());
        assert_ne!(first.digest(), second.digest(), "{}", architecture.name());
        assert_eq!(second.digest(), digest(&other), "{}", architecture.name());
    }
}
