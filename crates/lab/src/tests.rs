//! Every experiment in its smallest form, and what a wrong file is told.

mod axes;
mod told;

use crate::file;
use crate::{EXPERIMENTS, Experiment, Idle, LabError, Orders, Outcome, Progress, Size, placements};
use firmware::architecture::ARCHITECTURES;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

fn carry_out(experiment: &Experiment, jobs: usize, out: Option<&PathBuf>) -> Result<Outcome, LabError> {
    let (out, watch) = (out.map(PathBuf::as_path), &|_: &Progress<'_>| {});
    experiment.carry_out(&Orders { size: Size::Tiny, sets: &[], jobs, out, traces: None, watch })
}

/// A folder of one test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("flashloom-lab-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// An experiment that cannot be carried out is an offence by name: none is passed over.
fn try_all(attempt: impl Fn(&str, &Experiment) -> Result<(), LabError>) {
    let tried = EXPERIMENTS.iter().map(|known| attempt(known.name, &Experiment::named(known.name)?));
    let wrong: Vec<String> = tried.filter_map(|tried| tried.err().map(|error| error.to_string())).collect();
    assert!(wrong.is_empty(), "these experiments cannot be carried out:\n{}", wrong.join("\n"));
}

#[test]
fn every_experiment_resolves_in_every_form() {
    try_all(|_, experiment| {
        experiment.check(Size::Full, false)?;
        experiment.check(Size::Quick, true).map(drop)
    });
}

#[test]
fn every_experiment_runs_and_draws() {
    try_all(|name, experiment| carry_out(experiment, 2, None).map(|outcome| look(name, &outcome)));
}

fn look(name: &str, outcome: &Outcome) {
    assert!(outcome.rows().len() > 0, "{name}");
    let picture = outcome.picture();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n") && !picture.contains("NaN"), "{name}");
    let json = outcome.to_json();
    assert_eq!((&json["experiment"], &json["quick"]), (&name.into(), &true.into()));
    assert!(json["rows"][0]["series"].is_string(), "{name}");
    assert_eq!(outcome.to_csv().lines().count(), outcome.rows().len() + 1);
}

#[test]
fn placements_name_what_there_is_and_fit_their_cores() {
    for table in placements() {
        let known = ARCHITECTURES.iter().any(|architecture| architecture.name() == table.architecture);
        assert!(known, "{} is no architecture", table.architecture);
        assert!(!table.found.is_empty() && table.placement.is_sorted_by_key(|placement| placement.cores));
    }
}

/// Greedy reclaim comes to what analysis says of the room that it has, in every collector.
#[test]
fn write_amplification_is_what_analysis_says() {
    let sets = ["device.blocks_per_plane=1024", "workload.warm_up_ios=25000", "workload.ios=25000"].map(String::from);
    let orders = Orders { size: Size::Tiny, sets: &sets, jobs: 2, out: None, traces: None, watch: &|_| {} };
    let outcome = Experiment::named("write-amplification").unwrap().carry_out(&orders).unwrap();
    assert_eq!(outcome.rows().len(), 4);
    for (measured, of_room) in column(&outcome, "write_amplification").iter().zip(column(&outcome, "deviation_of_room"))
    {
        assert!(*measured > 2.0 && of_room.abs() < 0.03, "{measured} deviates by {of_room}");
    }
}

const SWEEP: &str = r#"
title = "Depth"
summary = "IOPS by depth"
source = "a test"

[base]
platform.device = "small"
cache.size_bytes = "1MiB"
host.queues = 1
workload = { phases = "randread", ios = 300, warm_up_ios = 0 }

[[axis]]
name = "depth"
key = "host.depth"
values = [1, 2, 8]
tiny = [1, 2, 8]

[[axis]]
name = "series"
choice = [{ name = "xor", set.firmware.address_split = "xor" }, { name = "plain", set.firmware.address_split = "plain" }]

[[metric]]
name = "iops"
value = "iops"

[[metric]]
name = "iops_if_perfect"
value = "iops"
scaled_with = "depth"

[[metric]]
name = "relative"
value = "iops"
relative_to = { series = "plain" }

[[metric]]
name = "spread"
value = "iops"
spread_over = "series"

[[plot]]
form = "lines"
x = "depth"
x_label = "depth"
y = ["iops", "iops_if_perfect"]
y_label = "IOPS"
"#;

fn sweep(text: &str) -> Result<Experiment, LabError> {
    Experiment::read("depth", "depth.toml", text)
}

const PAGE: &str = include_str!("../../../docs/experiments.md");

/// Its code: the first block that is of TOML, and the words of that and of everything between backticks.
fn code(page: &str) -> (String, BTreeSet<String>) {
    let (before, rest) = page.split_once("```toml\n").expect("a file as an example");
    let (block, after) = rest.split_once("```\n").expect("its end");
    let without_comments = block.lines().map(|line| line.split(" #").next().unwrap_or(line));
    let spans = [before, after].into_iter().flat_map(|prose| prose.split('`').skip(1).step_by(2));
    let code: Vec<&str> = without_comments.chain(spans).collect();
    let word = |word: &str| word.to_owned();
    let words = code.iter().flat_map(|code| code.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    (block.into(), words.map(word).collect())
}

/// The names of a table's keys, from what is said of one that it does not have.
fn keys<T: DeserializeOwned>() -> Vec<String> {
    let error = toml::from_str::<T>("no_such_key = 1").err().expect("it is refused");
    error.message().split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_has_every_key_of_a_file() {
    let (block, words) = code(PAGE);
    sweep(&block).expect("the page's own file can be read");
    let tables = [
        keys::<file::File>(),
        keys::<crate::Open>(),
        keys::<file::Axis>(),
        keys::<file::Choice>(),
        keys::<file::Search>(),
        keys::<file::Metric>(),
        keys::<file::Plot>(),
        keys::<file::Reference>(),
        keys::<file::Trace>(),
    ];
    for keys in tables {
        assert!(!keys.is_empty());
        let missing: Vec<&String> = keys.iter().filter(|key| !words.contains(*key)).collect();
        assert!(missing.is_empty(), "docs/experiments.md has nothing of {missing:?}");
    }
}

fn of(outcome: &Outcome, name: &str) -> Vec<Value> {
    let at = outcome.columns().iter().position(|column| column == name).expect("a column");
    outcome.rows().map(|row| row[at].clone()).collect()
}

fn column(outcome: &Outcome, name: &str) -> Vec<f64> {
    of(outcome, name).iter().map(|value| value.as_f64().expect("a figure")).collect()
}

#[test]
fn rows_relate_to_each_other_as_their_metrics_say() {
    let outcome = carry_out(&sweep(SWEEP).unwrap(), 1, None).unwrap();
    assert_eq!(outcome.columns(), ["series", "depth", "iops", "iops_if_perfect", "relative", "spread"]);
    let (iops, perfect, relative) =
        (column(&outcome, "iops"), column(&outcome, "iops_if_perfect"), column(&outcome, "relative"));
    assert_eq!(iops.len(), 6);
    assert!(iops[4] > 1.2 * iops[0], "depth 8 is faster than depth 1: {iops:?}");
    assert_eq!((perfect[0], perfect[4]), (iops[0], 8.0 * iops[0]));
    assert_eq!(perfect[5], 8.0 * iops[1], "each series scales from its own first");
    assert_eq!((relative[0], relative[1]), (iops[0] / iops[1], 1.0));
    let spread = column(&outcome, "spread");
    assert_eq!((spread[0], spread[1]), (spread[1], (iops[0] - iops[1]).abs() / ((iops[0] + iops[1]) / 2.0)));
}

#[test]
fn choices_in_groups_have_a_figure_of_each_group() {
    let series = "choice = [{ name = \"xor\", group = \"split\", set.firmware.address_split = \"xor\" }, \
                  { name = \"plain\", group = \"split\", set.firmware.address_split = \"plain\" }, \
                  { name = \"slow\", group = \"other\", set.firmware.queue_allocation = \"static\" }]";
    let (head, tail) = SWEEP.split_once("name = \"series\"\nchoice").unwrap();
    let (_, tail) = tail.split_once('\n').unwrap();
    let mean = "name = \"mean\"\nvalue = \"iops\"\nmean_over = \"kind\"\n\n[[metric]]\nname = \"spread\"";
    let plot = "[[plot]]\nform = \"bars\"\nx = \"kind\"\ny = [\"mean\"]\npanels = [\"depth\"]\n";
    let tail = tail.replace("name = \"spread\"", mean);
    let tiny = "tiny = [\"xor\", \"plain\", \"slow\"]";
    let text = format!("{head}name = \"series\"\ngroup = \"kind\"\n{series}\n{tiny}\n{tail}{plot}");
    let outcome = carry_out(&sweep(&text).unwrap(), 2, None).unwrap();
    assert_eq!(outcome.columns()[..3], ["series", "depth", "kind"]);
    assert_eq!(of(&outcome, "kind")[..3], ["split", "split", "other"]);
    let (iops, mean) = (column(&outcome, "iops"), column(&outcome, "mean"));
    assert_eq!(mean[..3], [(iops[0] + iops[1]) / 2.0, (iops[0] + iops[1]) / 2.0, iops[2]]);
    assert!(outcome.picture().contains(">split<") && outcome.picture().contains(">other<"));
    for (old, new, said) in [
        ("group = \"kind\"\n", "", "axis.choice is \"xor\"; expected a choice with no group"),
        ("group = \"other\", ", "", "axis.choice is \"slow\"; expected a choice with a group"),
        ("y = [\"mean\"]", "y = [\"iops\"]", "plot.y is \"iops\"; expected a metric of a whole group"),
        (
            "mean_over = \"kind\"",
            "mean_over = \"sort\"",
            "metric.mean_over is \"sort\"; expected one of depth, series, kind",
        ),
        (
            "group = \"kind\"\n",
            "group = \"depth\"\n",
            "axis.group is \"depth\"; expected a name that no other column has",
        ),
    ] {
        let error = sweep(&text.replace(old, new)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_data_sheet_stands_beside_the_runs_and_says_no_more_than_it_knows() {
    let with = |drive: &str| sweep(&format!("{SWEEP}\n[[reference]]\ndrive = \"{drive}\"\n"));
    let sheet = carry_out(&with("intel-750").unwrap(), 1, None).unwrap();
    assert_eq!(sheet.rows().len(), 9, "one row for each depth beside two series");
    let last = sheet.to_csv().lines().last().unwrap().to_owned();
    assert!(last.starts_with("Intel 750 (sheet),8,4600"), "460,000 random reads a second: {last}");
    let unknown = carry_out(&with("intel-dc-p4600").unwrap(), 1, None).unwrap();
    let last = unknown.to_csv().lines().last().unwrap().to_owned();
    assert!(last.starts_with("Intel DC P4600 (sheet),8,,"), "{last}");
    let complaint = with("no such drive").expect_err("unknown").to_string();
    assert!(complaint.contains("reference.drive is \"no such drive\"; expected one of intel-750"), "{complaint}");
}

#[test]
fn results_do_not_depend_on_jobs_and_finished_runs_are_kept() {
    let (experiment, out) = (sweep(SWEEP).unwrap(), folder("kept"));
    let alone = carry_out(&experiment, 1, None).unwrap();
    let together = carry_out(&experiment, 4, Some(&out)).unwrap();
    assert_eq!(alone.to_json(), together.to_json());
    assert_eq!((together.runs, alone.picture()), ((6, 0), together.picture()));
    let again = carry_out(&experiment, 2, Some(&out)).unwrap();
    assert_eq!((again.runs, again.to_json()), ((6, 6), together.to_json()));
    let longer = sweep(&SWEEP.replace("values = [1, 2, 8]\ntiny = [1, 2, 8]", "values = [2, 8, 4]\ntiny = [2, 8, 4]"));
    assert_eq!(carry_out(&longer.unwrap(), 2, Some(&out)).unwrap().runs, (6, 4), "only what is new is run");
    let written = together.write(&out).unwrap();
    let names: Vec<_> = written.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    assert_eq!(names, ["depth.json", "depth.csv", "depth.svg"]);
    std::fs::remove_dir_all(&out).unwrap();
}

#[test]
fn rows_say_whether_the_steady_state_that_was_waited_for_was_reached() {
    let steady = "run = { until = \"steady\", round = 3, rounds_max = 5 }\nhost.queues = 1";
    let metric = "[[metric]]\nname = \"is_steady\"\nvalue = \"steady_state.reached\"\n";
    let text = format!("{}\n{metric}", SWEEP.replace("host.queues = 1", steady));
    let outcome = carry_out(&sweep(&text).unwrap(), 2, None).unwrap();
    let said: Vec<f64> = of(&outcome, "steady").iter().map(|steady| f64::from(u8::from(*steady == true))).collect();
    assert_eq!(said, column(&outcome, "is_steady"));
    let not = said.iter().filter(|steady| **steady == 0.0).count();
    assert!(not > 0, "{said:?}");
    assert_eq!(outcome.unsteady(), (not, 6));
    let of_sheet = carry_out(&sweep(&format!("{text}[[reference]]\ndrive = \"intel-750\"\n")).unwrap(), 2, None);
    assert_eq!(of(&of_sheet.unwrap(), "steady")[6..], [Value::Null, Value::Null, Value::Null]);
}

#[test]
fn an_axis_that_changes_nothing_is_told() {
    // A closed loop keeps its queues full, at whatever rate requests were to arrive.
    let rate = "[[axis]]\nname = \"rate\"\nkey = \"workload.per_second\"\nvalues = [1000, 2000]\ntiny = [1000, 2000]\n";
    let (paced, open) = (format!("{rate}\n[[metric]]"), ["pace = \"closed\"", "pace = \"timed\""]);
    let text = SWEEP.replacen("[[metric]]", &paced, 1).replace("tiny = [1, 2, 8]", "tiny = [1, 8]");
    let idle = open.map(|pace| {
        let text = text.replace("ios = 300", &format!("{pace}, ios = 300")).replace("randread", "bursty");
        carry_out(&sweep(&text).unwrap(), 2, None).unwrap()
    });
    let [closed, timed] = idle.map(|outcome| (outcome.idle.clone(), outcome.to_json()["idle"].clone()));
    let of = Idle { axis: "rate".into(), trace: None };
    assert_eq!(closed, (vec![of], serde_json::json!([{ "axis": "rate", "trace": null }])));
    assert_eq!(timed, (vec![], serde_json::json!([])), "one at a time, each waits for its time");
}

#[test]
fn a_search_ends_at_the_first_value_that_reaches_its_target() {
    let search = "[search]\naxis = \"depth\"\nmetric = \"iops\"\nacross = [\"series\"]\nat_least = ";
    let iops = column(&carry_out(&sweep(SWEEP).unwrap(), 1, None).unwrap(), "iops");
    let target = iops[2].min(iops[3]).floor();
    assert!(iops[0] < target, "{iops:?}");
    // A metric may name settings, too.
    let named = SWEEP.replace("value = \"iops\"", "value = \"iops * config.host.depth / config.host.depth\"");
    let found = carry_out(&sweep(&format!("{named}\n{search}{target:?}\n")).unwrap(), 2, None).unwrap();
    assert_eq!(column(&found, "depth"), [2.0, 2.0]);
    assert_eq!(found.runs, (4, 0), "depth 8 was not run");
    let said = |csv: &str, word: &str| csv.lines().skip(1).filter(|line| line.contains(word)).count();
    assert_eq!((said(&found.to_csv(), "true"), said(&found.to_csv(), "")), (2, 2));
    let never = carry_out(&sweep(&format!("{SWEEP}\n{search}1e12\n")).unwrap(), 2, None).unwrap();
    assert_eq!((said(&never.to_csv(), "false"), said(&never.to_csv(), "")), (2, 2));
    assert_eq!(never.unreached, ["no value of depth brings iops to 1.00 T"]);
    assert!(found.unreached.is_empty(), "{:?}", found.unreached);
}

/// With two at a time reads reach the target, and writes, which are longer, do not.
#[test]
fn a_search_is_over_when_all_phases_reach_its_target() {
    let phases = "phases = \"randread,randwrite\", block_bytes = [\"4k\", \"8k\"]";
    let text = SWEEP.replace("phases = \"randread\"", phases);
    let iops = column(&carry_out(&sweep(&text).unwrap(), 2, None).unwrap(), "iops");
    // Of each depth reads and writes of the one series, then of the other.
    let target = iops[8..].iter().fold(iops[4].min(iops[6]), |least, iops| least.min(*iops)).floor();
    assert!(iops[5].max(iops[7]) < target, "{iops:?}");
    let search = "[search]\naxis = \"depth\"\nmetric = \"iops\"\nacross = [\"series\"]\nat_least = ";
    let found = carry_out(&sweep(&format!("{text}\n{search}{target:?}\n")).unwrap(), 2, None).unwrap();
    assert_eq!(column(&found, "depth"), [8.0; 4]);
}

/// Each draws requests of its own, so that figures of one are not those of another.
#[test]
fn phases_and_intervals_are_compared_with_their_own_kind() {
    let twice = SWEEP.replace("phases = \"randread\"", "phases = \"randread,randread\"");
    let samples =
        twice.replace("title =", "rows = \"samples\"\ntitle =").replace("[base]", "[base]\nrun.series_ms = 1");
    let samples = samples.replace("value = \"iops\"\nscaled_with = \"depth\"\n", "value = \"iops\"\n");
    for text in [twice, samples] {
        let outcome = carry_out(&sweep(&text).unwrap(), 2, None).unwrap();
        let (relative, plain) = (of(&outcome, "relative"), of(&outcome, "series"));
        let own: Vec<&Value> =
            relative.iter().zip(&plain).filter(|(_, series)| **series == "plain").map(|(own, _)| own).collect();
        assert!(own.len() >= 6 && own.iter().all(|own| own.as_f64() == Some(1.0)), "{own:?}");
        let (iops, spread) = (of(&outcome, "iops"), of(&outcome, "spread"));
        assert!(iops[0] != iops[1], "the second phase or interval is another: {iops:?}");
        let ratio = relative[1].as_f64().unwrap();
        let apart = (ratio - 1.0).abs() / ((ratio + 1.0) / 2.0);
        assert!((spread[1].as_f64().unwrap() - apart).abs() < 1e-9, "{spread:?}");
    }
}

#[test]
fn rows_tell_their_phase_where_any_run_has_several() {
    let text =
        SWEEP.replacen("split = \"plain\" }", "split = \"plain\", set.workload.phases = \"randread,seqread\" }", 1);
    let outcome = carry_out(&sweep(&text).unwrap(), 2, None).unwrap();
    assert_eq!(outcome.columns()[..3], ["series", "phase", "depth"]);
    assert_eq!(of(&outcome, "phase")[..3], ["randread", "randread", "seqread"]);
    let twice = SWEEP.replace("phases = \"randread\"", "phases = \"randread,seqread,randread\"");
    let outcome = carry_out(&sweep(&twice).unwrap(), 2, None).unwrap();
    assert_eq!(of(&outcome, "phase")[..4], ["randread", "seqread", "randread (2)", "randread"], "known by its name");
    assert!(outcome.picture().contains("randread (2)"), "a line of its own");
}

#[test]
fn no_search_goes_across_the_axis_that_it_searches() {
    let search = "[search]\naxis = \"depth\"\nmetric = \"iops\"\nacross = [\"depth\"]\nat_least = 1\n";
    let error = sweep(&format!("{SWEEP}\n{search}")).unwrap_err().to_string();
    assert!(error.contains("search.across is \"depth\"; expected other axes than search.axis"), "{error}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    for (old, new, expected) in [
        (
            "[[plot]]",
            "[search]\naxis = \"depth\"\nmetric = \"relative\"\nat_least = 1.0\n\n[[plot]]",
            "search.metric is \"relative\"; expected a metric that no other row decides (relative_to,",
        ),
        ("[[plot]]", "[search]\naxis = \"depth\"\nmetric = \"iops\"\nat_least = nan\n\n[[plot]]", "finite number"),
        ("[1, 2, 8]\ntiny", "[1, -inf, 8]\ntiny", "depth.toml:15: axis.values is -inf; expected a finite number"),
        ("host.queues = 1", "\"host.queues\" = 1", "depth.toml:9: unknown key \"host.queues\"; did you mean"),
        ("title = \"Depth\"", "titel = \"Depth\"", "depth.toml:2:1: unknown field `titel`"),
        ("\"host.depth\"", "\"host.dept\"", "depth.toml:15: unknown key host.dept; did you mean host.depth?"),
        ("values = [1, 2, 8]", "values = [1, 2, 9]", "depth.toml:16: axis.tiny is 8; expected one of 1, 2, 9"),
        ("tiny = [1, 2, 8]", "quick = []", "axis is \"depth\"; expected an axis with a value or more in axis.quick"),
        ("tiny = [1, 2, 8]", "tiny = []", "axis is \"depth\"; expected an axis with a value or more in axis.tiny"),
        (
            "value = \"iops\"",
            "value = \"iops +\"",
            "depth.toml:24: metric.value is \"iops +\"; expected a figure's path",
        ),
        (
            "scaled_with = \"depth\"",
            "scaled_with = \"deep\"",
            "metric.scaled_with is \"deep\"; expected one of depth, series",
        ),
        ("{ series = \"plain\" }", "{ series = \"none\" }", "series is \"none\"; expected one of \"xor\", \"plain\""),
        (
            "scaled_with = \"depth\"",
            "scaled_with = \"series\"",
            "depth.toml:29: metric.scaled_with is \"series\"; expected an axis of numbers, of which \"xor\" is none",
        ),
        (
            "spread_over = \"series\"",
            "spread_over = \"seed\"",
            "metric.spread_over is \"seed\"; expected one of depth, series",
        ),
        ("form = \"lines\"", "form = \"pie\"", "depth.toml:42:8: plot.form: unknown variant `pie`"),
        ("name = \"depth\"", "name = \"\"", "axis.name is \"\"; expected a name that no other column has"),
        ("y = [\"iops\", \"iops_if_perfect\"]", "y = []", "depth.toml:45: plot.y is []; expected one metric at least"),
        ("x = \"depth\"", "x = \"width\"", "plot.x is \"width\"; expected one of depth, series"),
        ("key = \"host.depth\"\n", "", "expected an axis with key and values, or one with choices"),
        ("value = \"iops\"\n\n", "value = \"groups.nvmw.threads\"\n\n", "no run has groups.nvmw.threads"),
        ("ios = 300", "ios = 0", "depth.toml:10: workload.ios is 0; expected"),
        (
            "[base]",
            "[base]\nhost.depth = 2\n[quick]\nhost.depth = 2",
            "depth.toml:17: axis.key is \"host.depth\"; expected a key that line 9",
        ),
        (
            "firmware.address_split = \"xor\"",
            "host.depth = 4",
            "axis.key is \"host.depth\"; expected a key that line 20",
        ),
        ("[base]", "[base]\nrun.timeline_file = \"t.json\"", "run.timeline_file is \"t.json\"; expected nothing"),
        ("title =", "rows = \"samples\"\ntitle =", "expected the length of an interval"),
        (
            "title =",
            "outstanding = 8\ntitle =",
            "depth.toml:2: outstanding is 8; expected no host.depth beside it, as line 16",
        ),
    ] {
        assert!(SWEEP.contains(old), "{old}");
        let outcome = sweep(&SWEEP.replacen(old, new, 1)).and_then(|experiment| carry_out(&experiment, 1, None));
        let complaint = outcome.expect_err(new).to_string();
        assert!(complaint.contains(expected), "{new}: {complaint}");
    }
}

#[test]
fn a_key_that_an_axis_varies_cannot_be_set_for_all_runs() {
    let sets = ["cache.size_bytes=2MiB", "host.depth=4"].map(String::from);
    let orders = Orders { size: Size::Tiny, sets: &sets, jobs: 1, out: None, traces: None, watch: &|_| {} };
    let complaint = sweep(SWEEP).unwrap().carry_out(&orders).expect_err("an axis has it").to_string();
    assert_eq!(complaint, "--set host.depth=4: expected a key that depth does not vary; its axis depth does");
    let are_runs = Mutex::new(Vec::new());
    let watch = |told: &Progress<'_>| are_runs.lock().unwrap().push(matches!(told, Progress::Ran { total: 6, .. }));
    assert!(sweep(SWEEP).unwrap().carry_out(&Orders { sets: &sets[..1], watch: &watch, ..orders }).is_ok());
    assert_eq!(are_runs.into_inner().unwrap(), [[false; 6], [true; 6]].concat(), "all are checked before the first");
    // Whatever else tells two choices apart, both rows said of it what neither was. What all say alike is no part of their names.
    let sets = ["firmware.address_split=plain".into()];
    let told_apart = SWEEP.replace("\"xor\" }, {", "\"xor\", set.lock.forwarding = false }, {");
    let one_says_it = SWEEP.replace(", set.firmware.address_split = \"plain\"", "");
    for text in [SWEEP, &told_apart, &one_says_it] {
        let complaint = sweep(text).unwrap().carry_out(&Orders { sets: &sets, ..orders }).expect_err(text).to_string();
        assert!(complaint.starts_with("--set firmware.address_split=plain: expected a key that depth"), "{complaint}");
        assert!(complaint.ends_with("does not vary; its axis series does"), "{complaint}");
    }
    let alike = told_apart.replace("address_split = \"plain\"", "address_split = \"xor\"");
    assert!(sweep(&alike).unwrap().carry_out(&Orders { sets: &sets, ..orders }).is_ok(), "{alike}");
}

/// Of two ways to say a thing the one from above makes the other count for nothing.
#[test]
fn what_an_axis_varies_cannot_be_said_in_another_way_for_all_runs() {
    let along = |key: &str, values: &str, base: &str| {
        let (old, new) =
            ("key = \"host.depth\"\nvalues = [1, 2, 8]\ntiny = [1, 2, 8]", format!("key = {key:?}\nvalues = {values}"));
        assert!(SWEEP.contains(old));
        SWEEP.replace(old, &new).replace("[base]", &format!("[base]\n{base}"))
    };
    let tried = |text: &str, set: &str| {
        let sets = [set.to_owned()];
        let orders = Orders { size: Size::Tiny, sets: &sets, jobs: 1, out: None, traces: None, watch: &|_| {} };
        sweep(text)?.carry_out(&orders)
    };
    for (key, values, set) in [
        ("device.over_provisioning", "[0.3, 0.5]", "device.user_bytes=8MiB"),
        ("device.user_bytes", "[8388608, 16777216]", "device.over_provisioning=0.3"),
        ("workload.duration_ms", "[1, 2]", "workload.ios=100"),
    ] {
        let complaint = tried(&along(key, values, ""), set).expect_err(set).to_string();
        let said = format!("--set {set}: expected a key that depth does not vary; its axis depth, of {key}, does");
        assert_eq!(complaint, said);
    }
    let axis = |base| along("device.over_provisioning", "[0.3, 0.5]", base);
    for base in ["device.user_bytes = \"8MiB\"", "[quick]\ndevice.user_bytes = 8388608\n[base]"] {
        let text = axis(base).replace("[base]\n[quick]", "[quick]");
        let complaint = sweep(&text).expect_err(base).to_string();
        assert!(complaint.contains("expected a key that counts beside device.user_bytes, as line "), "{complaint}");
    }
    assert!(tried(&axis("device.user_bytes = \"derived\""), "device.user_bytes=derived").is_ok());
    let both_count = along("workload.duration_ms", "[1, 2]", "run.seed = 3");
    assert!(sweep(&both_count).is_ok(), "a number of requests and a time limit a phase together");
}

#[test]
fn words_of_a_file_may_be_written_as_people_do() {
    let text = SWEEP.replace("form = \"lines\"", "form = \"Stacked-Bars\"\nx_scale = \"LOG2\"");
    assert!(sweep(&text.replace("title =", "rows = \"Runs\"\ntitle =")).is_ok());
}

#[test]
fn metrics_have_sizes_and_what_holds_of_the_configuration_as_figures() {
    let metrics = ["config.cache.size_bytes", "or(config.lock.forwarding, 7)"];
    let metrics: String =
        metrics.iter().map(|value| format!("[[metric]]\nname = {value:?}\nvalue = {value:?}\n")).collect();
    let outcome = carry_out(&sweep(&format!("{SWEEP}\n{metrics}")).unwrap(), 2, None).unwrap();
    assert_eq!(column(&outcome, "config.cache.size_bytes"), [1_048_576.0; 6]);
    assert_eq!(column(&outcome, "or(config.lock.forwarding, 7)"), [1.0; 6]);
}

#[test]
fn a_trace_stands_beside_a_workload_by_its_name_or_as_it_is_written_and_beside_no_other() {
    let folder = folder("beside");
    std::fs::create_dir_all(&folder).unwrap();
    let workload = folder.join("Mine.toml");
    std::fs::write(&workload, "pattern = \"random\"\nread_fraction = 1.0\nsizes = { fixed_bytes = 4096 }\n").unwrap();
    std::fs::write(folder.join("ours.spc"), "0,8,4096,r,0.5\nno request\n0,16,4096,r,0.5\n").unwrap();
    let written = workload.to_str().unwrap();
    let trace = |beside: &str, more: &str| {
        let text = SWEEP.replace("phases = \"randread\"", &format!("phases = [{written:?}]"));
        let trace = format!("\n[[trace]]\nbeside = {beside:?}\nfile = \"ours\"\nrelation = \"none\"\n{more}");
        let experiment = sweep(&(text + &trace))?;
        let orders = Orders { size: Size::Tiny, sets: &[], jobs: 2, out: None, traces: Some(&folder), watch: &|_| {} };
        experiment.carry_out(&orders)
    };
    for beside in ["mine", written] {
        let outcome = trace(beside, "format = \"auto\"\n").unwrap();
        assert_eq!(
            of(&outcome, "workload_source").iter().filter(|source| **source == "ours.spc").count(),
            6,
            "{beside}"
        );
        assert_eq!(outcome.traces[0]["skipped"], 1);
    }
    for (beside, more, said) in [
        ("our", "", format!("depth.toml:49: trace.beside is \"our\"; expected a workload of the runs: {written}")),
        ("mine", "format = \"spx\"\n", "depth.toml:52: trace.format is \"spx\"; expected one of auto, spc, ".into()),
        ("mine", "unit = \"h\"\n", "depth.toml:52: trace.unit is \"h\"; expected one of ps, ns, us, ms, s".into()),
    ] {
        let complaint = trace(beside, more).expect_err(&said).to_string();
        assert!(complaint.contains(&said), "{complaint}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn commands_of_all_queues_are_dealt_to_them_alike_or_refused() {
    let text = SWEEP.replace("\ntitle =", "\noutstanding = 6\ntitle =").replace("host.queues = 1", "host.queues = 2");
    let text = text.replace("\"depth\"\nkey = \"host.depth\"", "\"depth\"\nkey = \"run.seed\"");
    let metric = "[[metric]]\nname = \"each\"\nvalue = \"config.host.depth\"\n";
    let experiment = |text: &str| sweep(&format!("{text}\n{metric}")).unwrap();
    let outcome = carry_out(&experiment(&text), 1, None).unwrap();
    assert_eq!(column(&outcome, "each")[0], 3.0);
    let uneven = experiment(&text.replace("host.queues = 2", "host.queues = 4"));
    let complaint = carry_out(&uneven, 1, None).expect_err("6 on 4 queues").to_string();
    assert!(
        complaint.contains("depth.toml:2: outstanding is 6; expected a multiple of host.queues, 4,"),
        "{complaint}"
    );
    let sets = ["host.depth=5".into()];
    let orders = Orders { size: Size::Tiny, sets: &sets, jobs: 1, out: None, traces: None, watch: &|_| {} };
    assert_eq!(column(&uneven.carry_out(&orders).unwrap(), "each")[0], 5.0);
}

#[test]
fn results_without_a_picture_leave_none_of_earlier_ones() {
    let out = folder("picture");
    let (drawn, _) = SWEEP.split_once("[[plot]]").unwrap();
    carry_out(&sweep(SWEEP).unwrap(), 2, None).unwrap().write(&out).unwrap();
    assert!(out.join("depth.svg").exists());
    let written = carry_out(&sweep(drawn).unwrap(), 2, None).unwrap().write(&out).unwrap();
    assert!(written.len() == 2 && !out.join("depth.svg").exists(), "{written:?}");
    std::fs::remove_dir_all(&out).unwrap();
}
