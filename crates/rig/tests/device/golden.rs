//! Reference runs repeat bit for bit: in one process, side by side, and on other machines and days, where `golden/digests.toml`
//! says what they came to.

use crate::small::Small;
use firmware::architecture::ARCHITECTURES;
use host::{Pace, Phase};
use rig::Session;
use std::collections::BTreeMap;
use std::fmt::Write;
use workload::{Others, Parameters, Pattern, Recipe, Sizes, WeightedSize};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/digests.toml");

const HEADER: &str = "# The digest of a reference run of each architecture on each device, by seed. A change of any is a change of what\n\
    # the drive does or what it costs, to be reviewed. To accept: FLASHLOOM_ACCEPT=1 cargo test -p rig --test device golden\n";

/// Nothing here is drawn through a logarithm or a power, which mathematical libraries round differently.
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
    let mut session = session(small);
    while next(&mut session) {}
    session.digest()
}

#[test]
fn reference_runs_come_to_the_digests_in_the_file() {
    let mut found = BTreeMap::new();
    for &architecture in ARCHITECTURES {
        for seed in 1..=3 {
            let small = Small { architecture, seed, ..Small::default() };
            found.insert(format!("{}/small/{seed}", architecture.name()), format!("{:016x}", digest(&small)));
        }
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
