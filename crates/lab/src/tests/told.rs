//! What rows are told to be: related to their own kind, of runs that counted, and of what was asked for.

use super::{SWEEP, carry_out, column, folder, of, sweep};
use crate::points::{Given, tasks};
use crate::result::{Incomplete, SAMPLES_CUT};
use crate::rows::Ran;
use crate::{LabError, Orders, Progress, Size};
use rig::{PlanError, SessionError};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The sweep with its first metric only, and no picture.
fn plain() -> &'static str {
    SWEEP.split_once("[[metric]]\nname = \"iops_if_perfect\"").unwrap().0
}

/// The depth that a search found told one series from the other, as their figures do: no row of the other had it, so that none was
/// related to any.
#[test]
fn rows_of_a_search_are_related_whatever_each_has_found() {
    let reads = |us: u32| format!("set.device.timing.read_lsb_us = {us}, set.device.timing.read_msb_us = {us}");
    let choices = format!("[{{ name = \"slow\", {} }}, {{ name = \"fast\", {} }}]", reads(120), reads(40));
    let (head, tail) = SWEEP.split_once("choice = ").unwrap();
    let (_, tail) = tail.split_once('\n').unwrap();
    let text = format!("{head}choice = {choices}\n{tail}").replace("series = \"plain\"", "series = \"slow\"");
    let mean = "[[metric]]\nname = \"mean\"\nvalue = \"iops\"\nmean_over = \"series\"\n\n[[plot]]";
    let text = text.replace("[[plot]]", mean);
    let all = column(&carry_out(&sweep(&text).unwrap(), 2, None).unwrap(), "iops");
    assert!(
        all[3] < all[4] && all[4] < all[5],
        "two at a time are slower than eight, however long reads take: {all:?}"
    );
    let target = all[3].floor();
    assert!(all[2] < target && all[1] < target, "the slow one needs eight: {all:?}");
    let search = format!("[search]\naxis = \"depth\"\nmetric = \"iops\"\nat_least = {target:?}\n");
    let found = carry_out(&sweep(&format!("{text}\n{search}")).unwrap(), 2, None).unwrap();
    assert_eq!(column(&found, "depth"), [8.0, 2.0]);
    let (iops, mean) = (column(&found, "iops"), (all[3] + all[4]) / 2.0);
    assert_eq!(iops, [all[4], all[3]]);
    assert_eq!(column(&found, "relative"), [1.0, all[3] / all[4]]);
    assert_eq!(column(&found, "spread"), [(all[4] - all[3]) / mean; 2]);
    assert_eq!(column(&found, "mean"), [mean; 2]);
}

#[test]
fn rows_of_a_sheet_have_reached_nothing() {
    let search = "[search]\naxis = \"depth\"\nmetric = \"iops\"\nat_least = 1.0\n";
    let text = format!("{SWEEP}\n[[reference]]\ndrive = \"intel-750\"\n{search}");
    let outcome = carry_out(&sweep(&text).unwrap(), 2, None).unwrap();
    assert_eq!(of(&outcome, "reached"), [true.into(), true.into(), Value::Null]);
}

#[test]
fn results_have_the_seed_of_their_runs_only_where_all_have_it() {
    let seed = |text: &str| carry_out(&sweep(text).unwrap(), 2, None).unwrap().to_json()["seed"].clone();
    assert_eq!(seed(plain()), 1);
    assert_eq!(seed(&plain().replace("\"host.depth\"", "\"run.seed\"")), Value::Null);
}

#[test]
fn phases_that_counted_nothing_are_told() {
    let cut = plain().replace("ios = 300", "duration_ms = 0.001");
    let outcome = carry_out(&sweep(&cut).unwrap(), 2, None).unwrap();
    assert_eq!(column(&outcome, "iops"), [0.0; 6]);
    assert_eq!(outcome.incomplete, Incomplete { phases: 6, nothing_counted: 6, samples_cut: 0 });
    assert_eq!(carry_out(&sweep(plain()).unwrap(), 2, None).unwrap().incomplete.nothing_counted, 0);
}

#[test]
fn phases_whose_samples_were_cut_are_told() {
    let experiment = sweep(plain()).unwrap();
    let given = Given { size: Size::Tiny, sets: &[], traces: None, drawn: false, watch: &|_| {} };
    let tasks = tasks(&experiment, &given).unwrap();
    let point = &tasks[0].steps[0][0];
    let phases = vec![json!({ "ios": 1, SAMPLES_CUT: true }), json!({ "ios": 1 })];
    let told = Incomplete::of(&[Ran { point, phases, reached: None }]);
    assert_eq!(told, Incomplete { phases: 2, nothing_counted: 0, samples_cut: 1 });
}

/// It was found after the last of them.
#[test]
fn a_key_that_no_configuration_has_is_refused_before_the_first_run() {
    let runs = AtomicUsize::new(0);
    let watch = |told: &Progress<'_>| {
        if matches!(told, Progress::Ran { .. }) {
            runs.fetch_add(1, Ordering::Relaxed);
        }
    };
    let tried = |value: &str| {
        let text = plain().replace("value = \"iops\"", &format!("value = \"{value}\""));
        let orders = Orders { size: Size::Tiny, sets: &[], jobs: 1, out: None, traces: None, watch: &watch };
        sweep(&text).unwrap().carry_out(&orders).map(drop).map_err(|error| error.to_string())
    };
    for (value, key) in [
        ("iops / config.host.dept", "config.host.dept"),
        ("or(config.host.dept, 1)", "config.host.dept"),
        ("sum(config.hosts.*)", "config.hosts.*"),
        ("config.host", "config.host"),
        ("config.firmware.address_split", "config.firmware.address_split"),
    ] {
        let said =
            format!("depth.toml:24: metric iops: no run has {key}; expected a key that `flashloom describe` lists");
        let complaint = tried(value).expect_err(value);
        assert!(complaint.starts_with(&said), "{complaint}");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    for value in [
        "sum(config.threads.*)",
        "or(config.run.series_ms, 7)",
        "or(config.threads.worker, 0)",
        "iops / config.host.depth",
    ] {
        assert_eq!(tried(value), Ok(()), "{value}");
    }
}

/// Each combination read and kept a copy of its own.
#[test]
fn a_trace_is_read_once_for_all_runs_on_drives_of_a_size() {
    let folder = folder("once");
    std::fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("ours.spc");
    std::fs::write(&trace, "0,8,4096,r,0.5\n0,16,4096,r,0.5\n").unwrap();
    let beside = "\n[[trace]]\nbeside = \"randread\"\nfile = \"ours\"\nrelation = \"none\"\n";
    let text = format!("{}{beside}", plain());
    // After the first combination it is no longer there.
    let watch = |_: &Progress<'_>| drop(std::fs::remove_file(&trace));
    let orders = Orders { size: Size::Tiny, sets: &[], jobs: 1, out: None, traces: Some(&folder), watch: &watch };
    let outcome = sweep(&text).unwrap().carry_out(&orders).unwrap();
    assert_eq!(of(&outcome, "workload_source").iter().filter(|source| **source == "ours.spc").count(), 6);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn input_is_to_blame_where_a_run_of_its_own_would_say_so() {
    let error = |error| LabError::Run { point: "a run".into(), error: Box::new(PlanError::Session(error)) };
    assert!(error(SessionError::TimeIsOver).is_input());
    assert!(!error(SessionError::Invariant("tables".into())).is_input());
}
