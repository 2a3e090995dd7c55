//! What is varied: once, over values that there are, and with figures of what each run was asked for.

use super::{SWEEP, carry_out, column, folder, of, sweep};
use crate::{Idle, LabError, Orders, Outcome, Size};
use std::fmt::Write as _;

/// The sweep with another axis instead of its depths.
fn along(axis: &str) -> String {
    let (head, rest) = SWEEP.split_once("[[axis]]\n").unwrap();
    let (_, tail) = rest.split_once("\n\n").unwrap();
    let (tail, _) = tail.split_once("[[metric]]\nname = \"iops_if_perfect\"").unwrap();
    format!("{head}[[axis]]\n{axis}\n\n{tail}")
}

fn complaint(text: &str) -> String {
    sweep(text).err().unwrap_or_else(|| panic!("it is read: {text}")).to_string()
}

/// Both rows of a choice would have named a timing that neither run had, which no other row shows where a third differs.
#[test]
fn what_choices_vary_is_said_by_no_other_axis_and_not_by_the_quick_form() {
    let drives = "name = \"drive\"\nchoice = [\n{ name = \"slow\", set.host.depth = 1 },\n{ name = \"fast\", set.host.depth = 8 }]";
    let [xor, plain] = ["xor", "plain"].map(|split| format!("set.firmware.address_split = \"{split}\""));
    let beside = |first: &str, second: &str| along(drives).replace(&xor, first).replace(&plain, second);
    let (deep, shallow) = ("set.host.depth = 4", "set.host.depth = 2");
    for (text, said) in [
        (beside(deep, &plain), "depth.toml:15: host.depth is 1; expected a key that line 20 does not set too"),
        (beside(deep, shallow), "depth.toml:15: host.depth is 1; expected a key that line 20 does not set too"),
        (beside(deep, deep), "depth.toml:15: host.depth is 1; expected a key that line 20 does not set too"),
        (
            along(drives).replace("[base]", "[quick]\nhost.depth = 2\n[base]"),
            "depth.toml:17: host.depth is 1; expected a key that line 7 does not set too",
        ),
    ] {
        assert_eq!(complaint(&text), said);
    }
    let room =
        drives.replace("host.depth = 1", "device.over_provisioning = 0.3").replace("host.depth = 8", "host.depth = 1");
    let elsewhere = along(&room).replace(&xor, "set.device.user_bytes = \"8MiB\"");
    let said = "device.over_provisioning is 0.3; expected a key that counts beside device.user_bytes, as line ";
    assert!(complaint(&elsewhere).contains(said), "{}", complaint(&elsewhere));
    let below = along(&room).replace("[base]", "[base]\ndevice.user_bytes = \"8MiB\"");
    assert!(complaint(&below).contains(said), "{}", complaint(&below));
    // A choice goes over the file's own keys, as it says; what all say alike names none; and nobody reads rows of the tiny form.
    let own = room.replace("set.device", "set.device.user_bytes = \"derived\", set.device");
    for text in [
        along(&own).replace("[base]", "[base]\ndevice.user_bytes = \"8MiB\""),
        along(drives).replace("[base]", "[base]\nhost.depth = 2"),
        along(drives).replace("[base]", "[tiny]\nhost.depth = 2\n[base]"),
        along(&drives.replace(" = 8", " = 1"))
            .replace(&xor, "set.host.depth = 2")
            .replace(&plain, "set.host.depth = 2"),
    ] {
        assert!(sweep(&text).is_ok(), "{text}");
    }
}

/// The smaller form found it when all its runs were over, and told of the wrong thing; of a picture it drew nothing.
#[test]
fn rows_that_no_form_or_not_the_quick_one_has_are_refused_before_a_run() {
    let quick = SWEEP.replace("tiny = [1, 2, 8]", "quick = [2, 8]").replace("series = \"plain\"", "depth = 1");
    let said =
        "depth.toml:34: metric.relative_to.depth is 1; expected one of 2, 8: the quick form has no 1 (axis.quick)";
    assert_eq!(complaint(&quick), said);
    assert!(sweep(&quick.replace("depth = 1", "depth = 8")).is_ok());
    // The tiny form is for tests, and leaves out what it likes.
    assert!(sweep(&SWEEP.replace("tiny = [1, 2, 8]", "tiny = [2]").replace("series = \"plain\"", "depth = 1")).is_ok());
    let drawn = |only: &str, text: &str| format!("{text}where = {{ {only} }}\n");
    let sheets = SWEEP.replace("[[plot]]", "[[reference]]\ndrive = \"intel-750\"\n\n[[plot]]");
    let grouped = SWEEP.replace("name = \"depth\"\nkey", "name = \"deep\"\nkey").replace("\"depth\"", "\"deep\"");
    for (text, said) in [
        (drawn("depth = 99", SWEEP), "plot.where.depth is 99; expected one of 1, 2, 8"),
        (drawn("series = \"both\"", SWEEP), "plot.where.series is \"both\"; expected one of \"xor\", \"plain\""),
        (drawn("series = \"both\"", &sheets), "expected one of \"xor\", \"plain\", \"Intel 750 (sheet)\""),
        (drawn("deep = \"8\"", &grouped), "plot.where.deep is \"8\"; expected one of 1, 2, 8"),
        (
            drawn("depth = 1", &SWEEP.replace("tiny = [1, 2, 8]", "quick = [2, 8]")),
            "plot.where.depth is 1; expected one of 2, 8: the quick form has no 1",
        ),
    ] {
        assert!(complaint(&text).contains(said), "{}", complaint(&text));
    }
    for only in ["depth = 2", "series = \"plain\"", "workload_source = \"generated\"", "iops = 3"] {
        assert!(sweep(&drawn(only, SWEEP)).is_ok(), "{only}");
    }
    assert!(sweep(&drawn("series = \"Intel 750 (sheet)\"", &sheets)).is_ok());
}

/// All were resolved and kept before the first run: an axis too many took the memory of the machine, and nobody was told.
#[test]
fn more_combinations_than_can_be_kept_are_refused_at_once() {
    let up_to = |most: u32| (1..=most).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let depths = SWEEP.replace("values = [1, 2, 8]\ntiny = [1, 2, 8]", &format!("values = [{}]", up_to(84)));
    let seeds = format!("[[axis]]\nname = \"seed\"\nkey = \"run.seed\"\nvalues = [{}]\n\n[[plot]]", up_to(60));
    let many = sweep(&depths.replace("[[plot]]", &seeds)).unwrap();
    let said = "depth.toml:13: axis is 84 of depth x 2 of series x 60 of seed: 10080 combinations; expected 10000 at most, each of which \
                is a run";
    assert_eq!(many.check(Size::Full, false).expect_err("too many").to_string(), said);
    assert_eq!(many.check(Size::Tiny, false).unwrap(), 8);
}

/// They came to be null in all rows.
#[test]
fn choices_that_no_row_can_show_are_refused() {
    for name in ["nan", "-inf"] {
        let said = format!("depth.toml:20: axis.choice is {name}; expected a finite number");
        assert_eq!(complaint(&SWEEP.replace("name = \"xor\"", &format!("name = {name}"))), said);
    }
}

#[test]
fn groups_that_no_choice_is_in_are_not_drawn() {
    let choices =
        "name = \"drive\"\ngroup = \"kind\"\nchoice = [{ name = \"one\", group = \"deep\", set.host.depth = 1 }]";
    let plot = "[[plot]]\nform = \"bars\"\nx = \"series\"\ny = [\"iops\"]\nwhere = { kind = ";
    assert!(sweep(&format!("{}{plot}\"deep\" }}\n", along(choices))).is_ok());
    let said = complaint(&format!("{}{plot}\"flat\" }}\n", along(choices)));
    assert!(said.ends_with("plot.where.kind is \"flat\"; expected one of \"deep\""), "{said}");
}

/// Sequential reads draw nothing, so that a seed is in their summaries and nowhere else.
#[test]
fn an_axis_that_only_gives_summaries_another_name_changes_nothing() {
    let seeds = "name = \"seed\"\nkey = \"run.seed\"\nvalues = [1, 2, 3]";
    let idle = |text: &str| carry_out(&sweep(text).unwrap(), 2, None).unwrap().idle;
    let reads = along(seeds).replace("randread", "seqread");
    assert_eq!(idle(&reads), [Idle { axis: "seed".into(), trace: None }]);
    assert_eq!(idle(&along(seeds)), [], "random ones are others with each seed");
}

#[test]
fn every_seed_replays_the_same_trace() {
    let folder = folder("seeds");
    std::fs::create_dir_all(&folder).unwrap();
    let lines = (0..40).fold(String::new(), |mut lines, at| {
        writeln!(lines, "0,{},4096,w,0.5", at * 5 % 40 * 8).unwrap();
        lines
    });
    std::fs::write(folder.join("ours.spc"), lines).unwrap();
    let trace = "\n[[trace]]\nbeside = \"randread\"\nfile = \"ours\"\nrelation = \"none\"\n";
    let text = along("name = \"seed\"\nkey = \"run.seed\"\nvalues = [1, 2]") + trace;
    let count = "[[metric]]\nname = \"count\"\nvalue = \"requests.count\"\n";
    let orders = Orders { size: Size::Full, sets: &[], jobs: 2, out: None, traces: Some(&folder), watch: &|_| {} };
    let outcome = sweep(&format!("{text}{count}")).unwrap().carry_out(&orders).unwrap();
    assert!(outcome.idle.contains(&Idle { axis: "seed".into(), trace: Some("ours.spc".into()) }), "{:?}", outcome.idle);
    assert_eq!(of(&outcome, "count").iter().filter(|count| **count == 40).count(), 4);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Their other figures are taken of the first of so many only.
#[test]
fn requests_are_counted_as_the_run_does() {
    let metrics = ["requests.count", "ios", "requests.read_fraction"];
    let metrics = metrics.map(|value| format!("[[metric]]\nname = \"{value} \"\nvalue = \"{value}\"\n")).concat();
    let tried = |axis: &str, folder: Option<&std::path::Path>, more: &str| -> Result<Outcome, LabError> {
        let text = along(axis).replace(", ios = 300", "").replace("small", "small\"\nplatform.processor = \"timeless");
        let orders = Orders { size: Size::Full, sets: &[], jobs: 2, out: None, traces: folder, watch: &|_| {} };
        sweep(&format!("{text}{metrics}{more}"))?.carry_out(&orders)
    };
    let outcome = tried("name = \"of\"\nkey = \"workload.ios\"\nvalues = [100, 51_000]", None, "").unwrap();
    assert_eq!(column(&outcome, "requests.count "), [100.0, 100.0, 51_000.0, 51_000.0]);
    assert_eq!(column(&outcome, "ios "), column(&outcome, "requests.count "));
    let folder = folder("counted");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ours.spc"), "0,8,4096,r,0.5\n0,16,4096,r,0.5\n").unwrap();
    let axis = "name = \"of\"\nkey = \"workload.duration_ms\"\nvalues = [1]";
    let trace = "\n[[trace]]\nbeside = \"randread\"\nfile = \"ours\"\nrelation = \"none\"\n";
    let outcome = tried(&axis.replace("[1]", "[1, 2]"), Some(&folder), trace).unwrap();
    let (counts, ios) = (column(&outcome, "requests.count "), column(&outcome, "ios "));
    assert_eq!((ios.clone(), ios[0] < 1_000.0 && ios[0] > 2.0), (counts, true));
    assert_eq!(outcome.traces[0]["statistics"]["generated"]["count"].as_f64(), Some(ios[0]));
    assert_eq!(outcome.traces[0]["statistics"]["trace"]["count"], 2);
    std::fs::remove_dir_all(&folder).unwrap();
}
