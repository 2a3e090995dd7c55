//! PipeSSD's pilot, roadbooks and waitlist at work: what happens to five requests that meet on two cachelines, step by step.
//! docs/pipessd.md shows it, and a test holds the page to it.

use firmware::PipelineStep;
use host::{Pace, Phase};
use rig::Step;
use rig::config::{ConfigError, Layers, Resolved};
use std::fmt::Write;
use units::Lba;
use workload::{Io, IoKind, Source};

/// A cache of two lines, so that page 0, 2 and 4 meet on line 0, and 1 on line 1.
const SETTINGS: [&str; 3] = ["cache.size_bytes=\"8KiB\"", "host.queues=1", "run.precondition=\"seq\""];

/// Pages in the order of the queue, and whether they are written.
const REQUESTS: [(u64, bool); 5] = [(0, true), (2, false), (1, false), (2, true), (0, false)];

/// The requests, all at once.
struct Given(std::vec::IntoIter<Io>);

impl Source for Given {
    fn next_io(&mut self) -> Option<Io> {
        self.0.next()
    }
}

fn resolved() -> Result<Resolved, ConfigError> {
    let layers = Layers::new().flag("--architecture", "pipessd")?.flag("--device", "small")?;
    SETTINGS.iter().try_fold(layers, |layers, set| layers.set(set))?.resolve()
}

/// What happens, a line for each step.
pub(super) fn story() -> String {
    let resolved = resolved().expect("the settings above are good");
    let io = |(page, writes): (u64, bool)| {
        let kind = if writes { IoKind::Write } else { IoKind::Read };
        Io { kind, lba: Lba(page * 8), sectors: 8, device: 0, at: None }
    };
    let requests: Vec<Io> = REQUESTS.map(io).into();
    let phase = Phase {
        ios: Some(requests.len() as u64),
        ..Phase::new("five requests", Box::new(Given(requests.into_iter())), Pace::Closed)
    };
    let mut session = resolved.session(&resolved.plan(), vec![phase], 1_000).expect("a small device");
    session.next_phase().expect("one phase").expect("a run without a fault");
    let mut steps: Vec<Step> = session.steps().to_vec();
    steps.sort_by_key(|step| (step.at, step.id));
    let mut text = String::from("      us  stage  sub-request             what happens\n");
    for step in steps {
        let (stage, what) = told(&step);
        let (_, writes) = REQUESTS[step.id as usize - 1];
        let who = format!("{} ({} page {})", step.id, if writes { "write" } else { "read" }, step.lpn.0);
        let micros = step.at.nanos() as f64 / 1e3;
        writeln!(text, "{micros:>8.2}  {stage:<5}  {who:<22}  {what}").expect("strings do not fail");
    }
    text
}

fn told(step: &Step) -> (&'static str, String) {
    let line = step.line;
    match step.step {
        PipelineStep::Guided { roadbook, dirty } => {
            let number = |id: u32| if id == 0 { "nobody".to_owned() } else { id.to_string() };
            let state = |dirty| if dirty { "dirty" } else { "clean" };
            let found = match roadbook.victim {
                None => "empty".to_owned(),
                Some(victim) => format!("page {} {}", victim.0, state(roadbook.dirty)),
            };
            let hit = if roadbook.hit { "hit" } else { "miss" };
            let before = number(roadbook.before);
            let (page, id, left) = (step.lpn.0, step.id, state(dirty));
            let roadbook = format!("roadbook: {hit}; line {line}: {found}, after {before}");
            ("fetch", format!("{roadbook}; pilot's line {line} now: page {page} {left}, after {id}"))
        }
        PipelineStep::Waits => ("fil", format!("into the waitlist: line {line} is not there yet")),
        PipelineStep::LetGo => ("fil", format!("goes on: line {line} is as the roadbook says")),
        PipelineStep::Retired => ("post", format!("line {line} written: the last there is {}", step.id)),
    }
}
