//! That every command shown in README.md and in `docs/` works: a page that shows what does not run is worse than none.
//!
//! Commands stand in blocks fenced as `sh`. In a block fenced as `sh run` they are made small: a tiny drive, a few requests.
//! A block fenced as `toml NAME` is a file for the commands of its page.
//! `TRACE.spc` stands for a trace that the test writes. Lines for other programs (cargo, git) are not run here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How the README starts the program from a checkout.
const FROM_CHECKOUT: &str = "cargo run --release -- ";
const INSTALLED: &str = "flashloom ";

/// Makes a run small, on a drive with room for any split of the threads. Assignments lie over flags and files, so they never
/// meet what the line itself says.
const SMALL: &[&str] =
    &["platform.device=small", "device.over_provisioning=1.0", "workload.ios=2000", "workload.warm_up_ios=0"];

/// Eight requests in the format of the UMass traces: unit, sector, bytes, operation, seconds.
const TRACE: &str = "0,0,4096,R,0.000\n0,64,4096,w,0.001\n0,8,8192,R,0.002\n0,4096,512,w,0.003\n\
                     0,16,4096,R,0.004\n0,72,4096,w,0.005\n0,1000,16384,R,0.006\n0,2000,4096,w,0.007\n";

/// A command of a page.
#[derive(Debug, PartialEq)]
struct Shown {
    /// Page and line, for messages.
    at: String,
    /// What follows the program's name.
    arguments: Vec<String>,
    /// Where its output goes, if the line says so.
    into: Option<String>,
    small: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("docs")).expect("there is a folder of pages");
    let mut pages: Vec<PathBuf> = folder.map(|entry| entry.expect("a page").path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages.insert(0, root().join("README.md"));
    pages
}

/// The commands of a page, in order.
fn shown(name: &str, text: &str) -> Vec<Shown> {
    let (mut block, mut found) = (None, Vec::new());
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(fence) = line.strip_prefix("```") {
            // Inside a block any fence closes it.
            block = if block.is_none() { Some(fence.trim()) } else { None };
            continue;
        }
        let small = match block {
            Some("sh") => false,
            Some("sh run") => true,
            _ => continue,
        };
        let mut line = line.split(" #").next().unwrap_or(line).trim().trim_start_matches("$ ").to_owned();
        while line.ends_with('\\') {
            line.pop();
            line.push_str(lines.next().map_or("", |(_, next)| next.trim()));
        }
        let Some(rest) = line.strip_prefix(INSTALLED).or_else(|| line.strip_prefix(FROM_CHECKOUT)) else { continue };
        let (command, into) = match rest.split_once('>') {
            Some((command, file)) => (command, Some(file.trim().to_owned())),
            None => (rest, None),
        };
        let arguments = command.split_whitespace().map(str::to_owned).collect();
        found.push(Shown { at: format!("{name}:{}", number + 1), arguments, into, small });
    }
    found
}

/// The files of a page: name and text of every block fenced as `toml NAME`.
fn files(text: &str) -> Vec<(&str, &str)> {
    let blocks = text.split("\n```toml ").skip(1);
    let file = |block: &'_ str| -> Option<(usize, usize)> { Some((block.find('\n')?, block.find("\n```")?)) };
    blocks.filter_map(|block| file(block).map(|(name, end)| (block[..name].trim(), &block[name + 1..=end]))).collect()
}

/// Runs a command in a folder of its own page, where earlier commands of the page left their files.
fn run(shown: &Shown, folder: &Path) -> Output {
    let first = shown.arguments.first().map(String::as_str);
    assert_ne!(first, Some("serve"), "{}: a server does not end by itself: fence it as text", shown.at);
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
    command.current_dir(folder).args(&shown.arguments);
    if shown.small {
        match first {
            Some("run" | "replay" | "describe") => command.args(SMALL.iter().flat_map(|set| ["--set", *set])),
            Some("bench") => command.arg("--quick"),
            _ => &mut command,
        };
    }
    command.output().expect("the program starts")
}

#[test]
fn every_command_of_the_pages_works() {
    let mut ran = 0;
    for page in pages() {
        let name = page.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        let folder = std::env::temp_dir().join(format!("flashloom-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the page's files");
        std::fs::write(folder.join("TRACE.spc"), TRACE).expect("a trace");
        for (file, text) in files(&text) {
            std::fs::write(folder.join(file), text).expect("a file of the page");
        }
        for shown in shown(&name, &text) {
            let output = run(&shown, &folder);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {:?}: {}\n{said}", shown.at, shown.arguments, output.status);
            if let Some(file) = &shown.into {
                std::fs::write(folder.join(file), &output.stdout).expect("the output is kept");
            }
            ran += 1;
        }
        std::fs::remove_dir_all(&folder).expect("the page's files go");
    }
    assert!(ran >= 8, "only {ran} commands were found: are the blocks still fenced as sh?");
}

#[test]
fn commands_are_found_where_they_stand() {
    let text = "```sh run\nflashloom run --seed 2 # a seed\ncargo xtask ci\n```\nflashloom no\n```text\nflashloom no\n```\n\
                ```sh\ncargo run --release -- describe --toml > whole.toml\n```\n";
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let expected = [
        Shown { at: "a.md:2".into(), arguments: words("run --seed 2"), into: None, small: true },
        Shown {
            at: "a.md:10".into(),
            arguments: words("describe --toml"),
            into: Some("whole.toml".into()),
            small: false,
        },
    ];
    assert_eq!(shown("a.md", text), expected);
}

#[test]
fn files_are_found_where_they_stand() {
    let text = "```toml\nno = 1\n```\n\n```toml a.toml\nyes = 1\n\n[b]\n```\nno\n```sh\nno\n```\n";
    assert_eq!(files(text), [("a.toml", "yes = 1\n\n[b]\n")]);
}

/// A flag that is taken only to be refused is in no help, so that nothing but the page tells of it.
#[test]
fn the_page_on_the_command_line_tells_of_the_flag_that_is_refused() {
    let refused = Command::new(env!("CARGO_BIN_EXE_flashloom")).args(["run", "--report", "folder"]).output();
    let refused = refused.expect("the program starts");
    let page = std::fs::read_to_string(root().join("docs/cli.md")).expect("the page");
    let said = page.contains("`--report DIR`, for a report in HTML, is refused with exit code 2");
    assert_eq!((said, refused.status.code()), (true, Some(2)), "{refused:?}");
}

#[test]
fn the_page_on_the_command_line_lists_everything_that_is_measured() {
    let refused = Command::new(env!("CARGO_BIN_EXE_flashloom")).args(["bench", "no-such"]).output();
    let refused = String::from_utf8(refused.expect("the program starts").stderr).expect("text");
    let (_, known) = refused.split_once("[possible values: ").expect("what there is");
    let known = known.split(']').next().unwrap_or_default().replace(", ", "\\|");
    let page = std::fs::read_to_string(root().join("docs/cli.md")).expect("the page");
    assert!(page.contains(&format!("`bench [{known}]`")), "{known}");
}

#[test]
fn the_page_on_serving_lists_every_feature() {
    use nvme::spec::FeatureId::{self, InterruptCoalescing, InterruptVectorConfiguration};
    let text = std::fs::read_to_string(root().join("docs/serve.md")).expect("the page");
    let (_, from) = text.split_once("; features ").expect("a list of features");
    let (list, _) = from.split_once(';').expect("an end of the list");
    let number = |text: &str| u8::from_str_radix(text.trim_end_matches('h'), 16).expect("a number as 0Bh");
    let listed: Vec<u8> = list
        .split(", ")
        .flat_map(|part| {
            let (first, last) = part.split_once(" to ").unwrap_or((part, part));
            number(first)..=number(last)
        })
        .collect();
    // Over a network there are no interrupts to be arranged.
    let is_served = |feature: &&FeatureId| !matches!(feature, InterruptCoalescing | InterruptVectorConfiguration);
    assert_eq!(listed, FeatureId::ALL.iter().filter(is_served).map(|feature| *feature as u8).collect::<Vec<_>>());
}

/// Keys of a summary that stand for names of the run's own: of groups, parts, keys.
const NAMES: [&str; 12] = [
    "set",
    "classes",
    "breakdown",
    "breakdown_queueing",
    "breakdown_slowest",
    "groups",
    "hardware",
    "completions",
    "stages",
    "steps",
    "namespaces",
    "busiest.groups",
];

/// Every key below a value, as the page names it.
fn named_keys(value: &serde_json::Value, path: &str, found: &mut std::collections::BTreeSet<String>) {
    use serde_json::Value;
    match value {
        Value::Object(keys) => {
            let is_named = NAMES.iter().any(|name| path == *name || path.ends_with(&format!(".{name}")));
            for (key, value) in keys.iter().filter(|(key, _)| *key != "phases") {
                // They have the keys of others, as the page says.
                let key = match key.as_str() {
                    "write" | "other" if path.is_empty() => "read",
                    "hardware" if path.is_empty() => "groups",
                    _ if is_named => "NAME",
                    key => key,
                };
                let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
                named_keys(value, &path, found);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().for_each(|item| named_keys(item, &format!("{path}[]"), found));
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// Of real runs, so that none is forgotten that the program writes.
#[test]
fn the_page_on_summaries_lists_every_key() {
    let folder = std::env::temp_dir().join(format!("flashloom-{}-keys", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("TRACE.spc"), TRACE).expect("a trace");
    let mut found = std::collections::BTreeSet::new();
    for words in [
        "run --then-cut --workload mixed --set run.series_ms=1 --set run.check=true --payload fingerprint",
        "run --architecture tradition --set device.media.faults=true",
        "run --until steady --workload randread --round 500 --set run.rounds_max=5 --set workload.pace=timed --set workload.per_second=1e5",
        "run --world threads",
        "replay TRACE.spc --wrap",
    ] {
        let arguments = words.split_whitespace().map(str::to_owned).chain(["--json".into(), "-".into()]).collect();
        let output = run(&Shown { at: words.into(), arguments, into: None, small: true }, &folder);
        let json = serde_json::from_slice(&output.stdout);
        let json = json.unwrap_or_else(|error| panic!("{words}: {error}: {}", String::from_utf8_lossy(&output.stderr)));
        named_keys(&json, "", &mut found);
    }
    std::fs::remove_dir_all(&folder).expect("the files go");
    let page = std::fs::read_to_string(root().join("docs/summary.md")).expect("the page");
    let listed: std::collections::BTreeSet<String> =
        page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect();
    let unlisted: Vec<_> = found.difference(&listed).collect();
    assert!(unlisted.is_empty(), "docs/summary.md does not list {unlisted:?}");
    // These take longer to come about than a test may take.
    let rare = [
        "trace.on_drive.",
        "trace.device",
        "trace.namespace_devices",
        "cores.busiest.",
        "locks.stalled_mean",
        "flash.cached_operations",
        "flash.suspensions",
        "recovery.drained.",
        "classes.",
    ];
    let unknown: Vec<_> =
        listed.difference(&found).filter(|key| !rare.iter().any(|rare| key.starts_with(rare))).collect();
    assert!(unknown.is_empty(), "docs/summary.md lists {unknown:?}, which no run has");
}
