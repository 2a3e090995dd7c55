//! What an architecture brings of its own is told by the names that it gives.

use firmware::architecture::{Architecture, DEFAULT, DrawError, Drawing, Materials, NamedPart, ThreadGroup};
use firmware::{LatencyPart, PartCounts, Settings, Tables};
use report::{Named, Summary};
use rig::check::small::{Small, mixed};
use std::sync::LazyLock;

/// DeepFlash, two of whose groups do what it has no name for.
struct Toy;

static GROUPS: LazyLock<Vec<ThreadGroup>> = LazyLock::new(|| {
    let own = |group: &ThreadGroup| match group.name {
        "cache" => LatencyPart::Own(0),
        "trans" => LatencyPart::Own(2),
        _ => group.part,
    };
    DEFAULT.groups().iter().map(|group| ThreadGroup { part: own(group), ..*group }).collect()
});

const PARTS: &[NamedPart] = &[
    NamedPart::new(LatencyPart::Fetch, "fetch", "to be fetched"),
    NamedPart::new(LatencyPart::Nvmq, "nvmq", "in nvmq"),
    NamedPart::new(LatencyPart::Ilock, "ilock", "for index locks"),
    NamedPart::new(LatencyPart::Own(0), "sieve", "to fall through the sieve"),
    NamedPart::new(LatencyPart::Own(2), "atlas", "for a page of the atlas"),
    NamedPart::new(LatencyPart::Fcmd, "fcmd", "in fcmd"),
];

impl Architecture for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }
    fn summary(&self) -> &'static str {
        "for tests"
    }
    fn groups(&self) -> &'static [ThreadGroup] {
        &GROUPS
    }
    fn latency_parts(&self) -> &'static [NamedPart] {
        PARTS
    }
    fn parts(&self, settings: &Settings) -> PartCounts {
        DEFAULT.parts(settings)
    }
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&mut Tables)) -> Result<Drawing, DrawError> {
        DEFAULT.draw(materials, prepare)
    }
}

fn run(architecture: &'static dyn Architecture) -> Summary {
    let small = Small { architecture, ..Small::default() };
    let mut session = small.session(vec![mixed("mixed", 1, small.sectors(), 3_000)]);
    session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"))
}

/// What the toy calls a part of DeepFlash's.
fn called(name: &str) -> &str {
    match name {
        "cache" => "sieve",
        "trans" => "atlas",
        _ => name,
    }
}

#[test]
fn parts_of_an_architectures_own_are_told_as_deepflashs_are() {
    let (toy, same) = (run(&Toy), run(DEFAULT));
    assert_eq!(toy.check(), []);
    let renamed = |times: &Named<f64>| times.iter().map(|(name, time)| (called(name), *time)).collect::<Named<f64>>();
    assert_eq!(toy.breakdown, renamed(&same.breakdown));
    assert_eq!(toy.breakdown_queueing, renamed(&same.breakdown_queueing));
    assert_eq!(toy.breakdown_slowest, renamed(&same.breakdown_slowest));
    assert!(["sieve", "atlas"].iter().all(|part| toy.breakdown.get(part).is_some_and(|time| *time > 0.0)));
    assert_eq!(toy.waits.get("sieve"), Some(&"to fall through the sieve"));
}
