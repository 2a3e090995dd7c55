//! Results that were kept, side by side.

use crate::shell::{argument, file, flashloom, small};
use serde_json::Value;
use std::path::PathBuf;

/// Keeps the result of a run of some architecture.
fn kept(name: &str, architecture: &str) -> PathBuf {
    let path = file(name, b"");
    small(&["run", "--ios", "500", "--architecture", architecture, "--json", argument(&path)]);
    path
}

#[test]
fn runs_stand_side_by_side_and_equal_ones_are_told_so() {
    let one = kept("deepflash.json", "deepflash");
    let [two, again] = [kept("layered.json", "layered"), kept("again.json", "deepflash")];
    let csv = file("compared.csv", b"");
    let words = ["compare", argument(&one), argument(&two), argument(&again), "--csv", argument(&csv)];
    let ended = flashloom(&words);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
    let lines: Vec<String> =
        ended.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in ["deepflash layered again", "architecture deepflash layered deepflash"] {
        assert!(lines.iter().any(|one| one == line), "{line}: {}", ended.out);
    }
    assert!(ended.out.contains("again is deepflash again, bit for bit") && !ended.out.contains("layered is"));
    let rows = std::fs::read_to_string(csv).expect("it was written");
    assert_eq!(rows.lines().count(), 4, "{rows}");

    let json = flashloom(&["compare", argument(&one), argument(&two), "--only", "iops", "--json", "-"]).json();
    let figures = json["figures"].as_array().expect("a list");
    let iops = figures.iter().find(|figure| figure["column"] == "iops").expect("all runs have it");
    let of = |path: &PathBuf| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).expect("a result")).expect("JSON")
    };
    assert_eq!(iops["values"], Value::from(vec![of(&one)["iops"].clone(), of(&two)["iops"].clone()]));
    assert!(figures.iter().all(|figure| figure["name"].as_str().is_some_and(|name| name.contains("iops"))), "{json}");
}

#[test]
fn what_runs_were_told_is_kept_and_compared() {
    let kept = |name: &str, victim: &str| {
        let path = file(name, b"");
        small(&["run", "--ios", "500", "--set", &format!("reclaim.victim={victim}"), "--json", argument(&path)]);
        path
    };
    let [one, two] = [kept("victim-greedy.json", "greedy"), kept("victim-cost.json", "cost_benefit")];
    let json = flashloom(&["compare", argument(&one), argument(&two), "--json", "-"]).json();
    let set = &json["runs"][0]["set"];
    assert_eq!((&set["reclaim.victim"], &set["workload.ios"]), (&"greedy".into(), &"500".into()), "{set}");
    assert!(set.get("run.seed").is_none() && set.get("platform.device").is_none(), "a summary has its own: {set}");
    let ended = flashloom(&["compare", argument(&one), argument(&two), "--only", "iops"]);
    let is_told = |line: &str| line.split_whitespace().eq(["reclaim.victim", "greedy", "cost_benefit"]);
    assert!(ended.out.lines().any(is_told) && !ended.out.contains("workload.ios"), "{ended:?}");
}

#[test]
fn each_phase_is_compared_with_its_own_kind() {
    let files = ["deepflash", "layered"].map(|name| kept(&format!("phases-{name}.json"), name));
    let [one, two] = files.each_ref().map(|path| argument(path));
    let ended = flashloom(&["compare", one, two, "--phases", "--only", "latency mean"]);
    let out: Vec<&str> = ended.out.split_whitespace().collect();
    let [reads, writes] = ["randread", "randwrite"].map(|name| out.iter().position(|word| *word == name));
    assert!(reads.is_some() && reads < writes, "{ended:?}");
    assert_eq!(out.iter().filter(|word| **word == "phases-layered").count(), 2, "{ended:?}");
    assert!(!ended.out.contains("workload"), "it is the same in each table: {ended:?}");
}

/// All of a workload stood side by side, as though each were of another run.
#[test]
fn phases_of_a_workload_that_a_run_has_twice_are_compared_in_their_order() {
    let files = ["deepflash", "layered"].map(|name| {
        let path = file(&format!("twice-{name}.json"), b"");
        let workload = ["--workload", "randread,randwrite,randread", "--json", argument(&path)];
        small(&[&["run", "--ios", "500", "--architecture", name][..], &workload].concat());
        path
    });
    let [one, two] = files.each_ref().map(|path| argument(path));
    let ended = flashloom(&["compare", one, two, "--phases", "--only", "iops", "--json", "-"]);
    let workloads: Vec<_> =
        ended.json()["runs"].as_array().unwrap().iter().map(|run| run["workload"].clone()).collect();
    let twice = ["randread", "randwrite", "randread (2)"].map(|name| [name; 2]).concat();
    assert_eq!(workloads, twice, "{ended:?}");
    let ended = flashloom(&["compare", one, two, "--phases", "--only", "iops"]);
    let heads: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("rand")).collect();
    assert_eq!(heads, ["randread", "randwrite", "randread (2)"], "{ended:?}");
}

#[test]
fn what_is_no_result_is_refused_by_its_name() {
    let faulty = file("faulty.json", br#"{"architecture": "deepflash", "fault": "it stood still"}"#);
    let cut = file("cut.json", b"{\"iops\": ");
    let other = file("other.json", b"{}");
    let list = file("list.json", b"[1, 2]");
    let good = kept("good.json", "deepflash");
    for (path, message) in [
        (argument(&faulty), "faulty.json: the run found a fault (it stood still); expected one that ended well"),
        (argument(&cut), "cut.json: EOF while parsing a value at line 1 column 9; expected the result of a run"),
        (argument(&other), "other.json: missing field `architecture` at line 1 column 2; expected the result of a run"),
        (argument(&list), "list.json: no JSON object; expected the result of a run"),
        ("missing.json", "missing.json: No such file or directory"),
    ] {
        let ended = flashloom(&["compare", argument(&good), path]);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{ended:?}");
        assert!(ended.err.contains(message) && ended.err.contains("help: --json FILE"), "{message}: {}", ended.err);
    }
    let none = flashloom(&["compare", argument(&good), "--only", "nothing like it"]);
    assert!(none.code == 2 && none.err.contains("--only nothing like it: no figure"), "{none:?}");
    let onto = flashloom(&["compare", argument(&good), "--json", argument(&good)]);
    assert!(onto.code == 2 && onto.err.contains("expected a file of its own"), "{onto:?}");
}

#[test]
fn what_has_no_end_is_no_result() {
    let ended = flashloom(&["compare", "/dev/zero"]);
    assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{ended:?}");
    assert!(ended.err.starts_with("error: /dev/zero: no JSON object; expected the result of a run\n"), "{}", ended.err);
}
