//! A sweep of one's own: its files, the index beside them, and a trace beside what is generated.

use crate::shell::{argument, file, flashloom};
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SWEEP: &str = r#"
title = "OLTP"
summary = "a trace beside its statistics"
source = "a test"

[base]
platform.device = "small"
cache.size_bytes = "1MiB"
host.queues = 1
workload = { phases = "financial1", ios = 300, warm_up_ios = 0 }

[[axis]]
name = "series"
choice = [{ name = "xor", set.firmware.address_split = "xor" }, { name = "plain", set.firmware.address_split = "plain" }]

[[metric]]
name = "iops"
value = "iops"

[[metric]]
name = "reads"
value = "requests.read_fraction"

[[trace]]
beside = "financial1"
file = "oltp"
relation = "written for a test"

[[reference]]
drive = "intel-750"
"#;

/// A fresh folder of this name for results, and one in it of traces: fifty requests of a kind, and what is none.
fn with_trace(name: &str, kind: char) -> [PathBuf; 2] {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let traces = folder.join("traces");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&traces).unwrap();
    let lines: String = (0..50).map(|at| format!("0,{},4096,{kind},{at}.5\n", at * 8)).collect();
    std::fs::write(traces.join("oltp.spc"), lines + "no request\n").unwrap();
    [folder, traces]
}

#[test]
fn a_sweep_says_when_and_where_it_was_made_and_how_a_trace_differs() {
    let sweep = file("sweep-oltp.toml", SWEEP.as_bytes());
    let [folder, traces] = with_trace("sweep-of-oltp", 'w');
    let arguments = ["sweep", argument(&sweep), "--out", argument(&folder), "--traces", argument(&traces)];
    let ended = flashloom(&arguments);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for said in [
        "the trace      50 requests, 0.0 % reads, 4.00 KiB",
        "boundary; 1 skipped as unusable",
        "the generated  300 requests, 2",
        "written for a test",
    ] {
        assert!(ended.out.contains(said), "{said}: {}", ended.out);
    }
    assert_eq!(ended.out.matches("beside financial1").count(), 1, "once, not for each series: {}", ended.out);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let rows = read("sweep-oltp.csv");
    assert_eq!(
        rows.lines().count(),
        1 + 2 * 2 + 1,
        "two series, generated and from the trace, and a data sheet: {rows}"
    );
    let index: Value = serde_json::from_str(&read("index.json")).unwrap();
    let entry = &index["sweep-oltp"];
    assert_eq!((&entry["runs"], &entry["runs_kept_from_before"], &entry["traces"]), (&4.into(), &0.into(), &1.into()));
    assert!(entry["date"].as_str().unwrap().len() == 10 && entry["machine"]["cores"].as_u64() > Some(0), "{entry}");
    flashloom(&arguments);
    let again: Value = serde_json::from_str(&read("index.json")).unwrap();
    assert_eq!(again["sweep-oltp"]["runs_kept_from_before"], 4, "what was finished is not run again");
    // As many requests, as long, as far apart: only which is where differs.
    let swapped: String = (0..50).map(|at| format!("0,{},4096,w,{at}.5\n", (49 - at) * 8)).collect();
    std::fs::write(traces.join("oltp.spc"), swapped).unwrap();
    flashloom(&arguments);
    let again: Value = serde_json::from_str(&read("index.json")).unwrap();
    assert_eq!(again["sweep-oltp"]["runs_kept_from_before"], 2, "another trace of that name");
    // What it stands beside may be a later phase.
    let later = file(
        "sweep-later.toml",
        SWEEP
            .replace("\"financial1\"", "\"randread,financial1\"")
            .replace("beside = \"randread,financial1\"", "beside = \"financial1\"")
            .as_bytes(),
    );
    let ended = flashloom(&["sweep", argument(&later), "--out", argument(&folder), "--traces", argument(&traces)]);
    assert!(ended.out.contains("oltp.spc beside financial1"), "{}{}", ended.out, ended.err);
}

/// What was said of rounds counted for generated workloads only; figures that went over two lines could not be read.
#[test]
fn a_trace_goes_on_until_it_is_steady_and_every_row_of_the_table_is_a_line() {
    let (head, tail) = SWEEP.split_once("[[metric]]").unwrap();
    let metric = |number| format!("[[metric]]\nname = \"a_figure_with_a_long_name_{number}\"\nvalue = \"iops / 7\"\n");
    let many: String = (0..9).map(metric).collect();
    let plot = "[[plot]]\nform = \"bars\"\nx = \"series\"\ny = [\"rounds\", \"iops\"]\n";
    let rounds = "[[metric]]\nname = \"rounds\"\nlabel = \"rounds of it\"\nvalue = \"or(steady_state.rounds, 0)\"\n";
    let text = format!("{head}{rounds}{many}{plot}[[metric]]{tail}");
    let steady = "host.queues = 1\nrun = { until = \"steady\", round = 200 }";
    let text = text.replacen("host.queues = 1", steady, 1);
    let text = text.split("[[reference]]").next().unwrap();
    let sweep = file("sweep-steady.toml", text.as_bytes());
    let [folder, traces] = with_trace("sweep-until-steady", 'r');
    let ended = flashloom(&["sweep", argument(&sweep), "--out", argument(&folder), "--traces", argument(&traces)]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let rows = read("sweep-steady.csv");
    let of_trace: Vec<&str> = rows.lines().filter(|row| row.contains("oltp.spc")).collect();
    assert_eq!(of_trace.len(), 2, "{rows}");
    for row in of_trace {
        let rounds: u32 = row.split(',').nth(3).and_then(|cell| cell.parse().ok()).expect("rounds");
        assert!(rounds >= 5, "{rows}");
    }
    let head = rows.lines().next().unwrap().split(',').collect::<Vec<_>>();
    let line = ended.out.lines().find(|line| line.contains("a_figure_with_a_long_name_8")).expect("a whole head");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), head);
    let is_row =
        |line: &&str| line.contains(" oltp.spc ") && !["beside", "NO difference"].iter().any(|not| line.contains(not));
    for row in ended.out.lines().filter(is_row) {
        assert_eq!(row.split_whitespace().count(), head.len(), "{}", ended.out);
    }
    let picture = read("sweep-steady.svg");
    assert!(picture.contains(">series<") && picture.contains(">rounds of it, iops<"), "{picture}");
}

#[test]
fn a_sweep_says_how_many_of_its_rows_did_not_become_steady() {
    let hasty = "host.queues = 1\nrun = { until = \"steady\", round = 3, rounds_max = 5 }";
    let text = SWEEP.replacen("host.queues = 1", hasty, 1);
    let sweep = file("sweep-hasty.toml", text.split("[[trace]]").next().unwrap().as_bytes());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep-hasty");
    let _ = std::fs::remove_dir_all(&folder);
    let ended = flashloom(&["sweep", argument(&sweep), "--out", argument(&folder)]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let rows = std::fs::read_to_string(folder.join("sweep-hasty.csv")).unwrap();
    let not = rows.lines().filter(|row| row.contains(",false,")).count();
    assert!(not > 0 && ended.out.contains(&format!("NOT steady: {not} of 2 rows")), "{rows}{}", ended.out);
}

#[test]
fn a_sweep_says_of_which_trace_an_axis_changes_nothing() {
    let sizes = "[[axis]]\nname = \"size\"\nkey = \"workload.block_bytes\"\nvalues = [\"4k\", \"8k\"]\n\n[[metric]]";
    let sweep =
        file("sweep-sizes.toml", SWEEP.replacen("[[metric]]", sizes, 1).replace("financial1", "randread").as_bytes());
    let [folder, traces] = with_trace("sweep-of-sizes", 'w');
    let ended = flashloom(&["sweep", argument(&sweep), "--out", argument(&folder), "--traces", argument(&traces)]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let said: Vec<&str> = ended.out.lines().filter(|line| line.contains("NO difference: what size")).collect();
    let all = "all runs of trace oltp.spc that differ in it alone are the same";
    assert_eq!(said, [format!("  NO difference: what size varies changes nothing here; {all}")]);
}

#[test]
fn a_metric_that_divides_by_zero_is_told_from_one_that_no_run_has() {
    for (value, said) in [
        ("iops / write.ios", "metric ratio: iops / write.ios has no finite value in any run (a division by zero, or"),
        ("iops / write.oops", "metric ratio: no run has iops / write.oops; expected figures"),
        (
            "iops / config.host.dept",
            "metric ratio: no run has config.host.dept; expected a key that `flashloom describe`",
        ),
    ] {
        let (head, _) = SWEEP.split_once("[[metric]]").unwrap();
        let text =
            format!("{head}[[metric]]\nname = \"ratio\"\nvalue = \"{value}\"\n").replace("financial1", "randread");
        let sweep = file("sweep-ratio.toml", text.as_bytes());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep-of-ratio");
        let ended = flashloom(&["sweep", argument(&sweep), "--out", argument(&folder)]);
        assert!(ended.code == 2 && ended.err.contains(said), "{said}: {}", ended.err);
        assert!(ended.err.contains("sweep-ratio.toml:18: "), "{}", ended.err);
    }
}

#[test]
fn a_file_of_a_sweep_in_place_of_a_configuration_is_told_what_takes_it() {
    for (name, text) in [("sweep-misplaced.toml", SWEEP), ("search-misplaced.toml", SEARCH)] {
        let sweep = file(name, text.as_bytes());
        let ended = flashloom(&["run", argument(&sweep)]);
        let help = format!("looks like the file of a sweep: `flashloom sweep {}`", sweep.display());
        assert!(ended.code == 2 && ended.err.contains(&help), "{}", ended.err);
    }
}

const SEARCH: &str = r#"
[place]
architecture = "deepflash"
processor = "in-order-1ghz"
cores = [1]
workloads = ["randread"]
groups = ["nvmq", "ilock", "cache", "trans", "fcmd"]
fixed = { log = 1, bgc = 1 }
seeds = [2]
target = 1

[base]
platform.device = "small"
device.over_provisioning = 1.0
cache.size_bytes = "1MiB"
workload = { ios = 300, warm_up_ios = 0 }
"#;

#[test]
fn a_file_with_a_table_place_is_searched_and_goes_on_where_it_was() {
    let search = file("few-cores.toml", SEARCH.as_bytes());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("search-of-placements");
    let _ = std::fs::remove_dir_all(&folder);
    let arguments = ["sweep", argument(&search), "--out", argument(&folder), "--jobs", "2"];
    let ended = flashloom(&arguments);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for said in ["1 core: randread ", "nvmq=1", "runs; no exchange", "fewest cores with 1 IOPS in each workload: 1"] {
        assert!(ended.out.contains(said), "{said}: {}", ended.out);
    }
    let written = || std::fs::read_to_string(folder.join("few-cores.toml")).unwrap();
    let first = written();
    assert!(first.contains("[placement.seats]") && first.contains("fewest_cores = 1"), "{first}");
    let placed = folder.join("few-cores-1.toml");
    let found = std::fs::read_to_string(&placed).unwrap();
    for line in ["platform.cores = 1\n", "placement.log = [0]\n", "threads.nvmq = 1\n", "platform.device = \"small\"\n"]
    {
        assert!(found.contains(line) && !found.contains("workload."), "{found}");
    }
    let run = flashloom(&["run", argument(&placed), "--ios", "100", "--json", "-"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert_eq!((&run.json()["cores"]["count"], &run.json()["device"]), (&1.into(), &"small".into()));
    let kept = || std::fs::read_dir(folder.join("runs")).unwrap().count();
    let runs = kept();
    let again = flashloom(&[&arguments[..], &["--json", "-"]].concat());
    assert_eq!((kept(), written()), (runs, first), "what was finished is not run again");
    assert_eq!(again.json()["placement"][0]["cores"], 1);
    for flag in [&["--quick"][..], &["--traces", "."]] {
        let refused = flashloom(&[&arguments[..], flag].concat());
        assert!(refused.code == 2 && refused.err.contains("where a file has a table [place]"), "{refused:?}");
    }
}

/// A search whose folder for results was its own was replaced by what it found.
#[test]
fn results_take_the_place_of_nothing_that_is_named() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("results-of-their-own");
    std::fs::create_dir_all(&folder).unwrap();
    let within = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let out = argument(&folder);
    let (search, table, index) = (within("few.toml", SEARCH), within("rows.csv", SWEEP), within("index.toml", SWEEP));
    let said = "the results would take the place of";
    for (read, text, said) in [(&search, SEARCH, said), (&table, SWEEP, said), (&index, SWEEP, "another name")] {
        let refused = flashloom(&["sweep", argument(read), "--out", out]);
        assert!(refused.code == 2 && refused.err.contains(said), "{refused:?}");
        assert_eq!(std::fs::read_to_string(read).unwrap(), text);
    }
    let sweep = within("rows.toml", SWEEP);
    let json = folder.join("rows.json");
    let refused = flashloom(&["sweep", argument(&sweep), "--out", out, "--json", argument(&json)]);
    assert!(refused.code == 2 && refused.err.contains("a result of rows goes there"), "{refused:?}");
    let done = flashloom(&["sweep", argument(&sweep), "--out", out, "--json", "-"]);
    assert_eq!((done.code, done.json()[0]["experiment"].as_str()), (0, Some("rows")), "{}", done.err);
    let small = rig::config::DEVICES.iter().find(|device| device.name == "small").expect("an embedded device").text;
    let device = within("device-of-rows.toml", small);
    let named = SWEEP.replace("\"small\"", &format!("\"{}\"", argument(&device)));
    let sweep = within("with-device.toml", &named);
    let refused = flashloom(&["sweep", argument(&sweep), "--out", out, "--json", argument(&device)]);
    assert!(refused.code == 2 && refused.err.contains("the configuration names this file"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&device).unwrap(), small);
}

/// The index of a folder was the list of one sweep's results after `--json` had named it.
#[test]
fn no_list_of_results_takes_the_place_of_the_index_or_of_a_run() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("results-with-an-index");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("runs")).unwrap();
    let [sweep, search] =
        [("indexed.toml", SWEEP), ("searched.toml", SEARCH)].map(|(name, text)| file(name, text.as_bytes()));
    let (index, run, link) =
        (folder.join("index.json"), folder.join("runs/0123456789abcdef.json"), folder.join("link"));
    std::os::unix::fs::symlink("index.json", &link).unwrap();
    for is_there in [false, true] {
        for (path, what) in
            [(&index, "the index of results"), (&link, "the index of results"), (&run, "a run that is kept")]
        {
            for file in [&sweep, &search] {
                let refused =
                    flashloom(&["sweep", argument(file), "--out", argument(&folder), "--json", argument(path)]);
                let said = format!("--json {}: {what} goes there; expected a file of its own", argument(path));
                assert!(refused.code == 2 && refused.err.contains(&said), "{said}: {refused:?}");
                assert!(if is_there { std::fs::read(path).unwrap() == b"{}" } else { !path.exists() });
            }
        }
        [&index, &run].into_iter().for_each(|path| std::fs::write(path, "{}").unwrap());
    }
}

/// A file that is no index was replaced without a word.
#[test]
fn what_lies_in_the_place_of_the_index_is_kept_and_told() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("results-without-an-index");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let cut = "{\"an earlier one\": {\"date\": \"20";
    std::fs::write(folder.join("index.json"), cut).unwrap();
    let sweep = file("reindexed.toml", SWEEP.as_bytes());
    let ended = flashloom(&["sweep", argument(&sweep), "--out", argument(&folder)]);
    let said = format!("note: {0}/index.json was no index: it is kept as {0}/index.json.broken, ", argument(&folder));
    assert!(ended.code == 0 && ended.err.contains(&said), "{said}: {ended:?}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("index.json.broken"), cut);
    let index: Value = serde_json::from_str(&read("index.json")).unwrap();
    assert_eq!(index.as_object().map(|index| index.len()), Some(1));
}

/// Most that a process had in memory at a time, in bytes, as long as it could be asked.
fn most_memory(process: &mut Child) -> u64 {
    let mut most = 0;
    while process.try_wait().expect("it was started by this test").is_none() {
        let told = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let peak = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = kibibytes.map_or(most, |count| count << 10);
        std::thread::sleep(Duration::from_millis(5));
    }
    most
}

/// Read from a pipe, which says it once: and however many runs there are, the drive of one at a time is in memory.
#[test]
fn a_sweep_from_a_pipe_has_one_drive_at_a_time() {
    let depths: Vec<u32> = (1..=60).collect();
    let text = format!(
        "title = \"Many\"\nsummary = \"reads\"\nsource = \"a test\"\n[base]\nplatform.device = \"small\"\n\
         cache.size_bytes = \"256KiB\"\nhost.queues = 1\n\
         workload = {{ phases = \"randread\", ios = 1, warm_up_ios = 0 }}\n\
         [[axis]]\nname = \"depth\"\nkey = \"host.depth\"\nvalues = {depths:?}\n\
         [[metric]]\nname = \"iops\"\nvalue = \"iops\"\n"
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep-from-a-pipe");
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashloom"));
    command.args(["sweep", "/dev/stdin", "--jobs", "1", "--out"]).arg(&folder);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    process.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it is read");
    let most = most_memory(&mut process);
    assert!(process.wait().expect("it was started by this test").success());
    let rows = std::fs::read_to_string(folder.join("stdin.csv")).expect("it was written");
    assert_eq!(rows.lines().count(), 61, "{rows}");
    assert!(most < 200 << 20, "{most} bytes");
}
