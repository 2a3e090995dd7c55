//! A small search from end to end, and what is refused.

use super::search::quoted;
use super::{Placing, PlacingOrders};
use crate::file;
use crate::placement::Placements;
use std::path::Path;

const SEARCH: &str = "[place]\narchitecture = \"deepflash\"\nprocessor = \"in-order-1ghz\"\ncores = [1, 2]\n\
    workloads = [\"randread\"]\ngroups = [\"nvmq\", \"ilock\", \"cache\", \"trans\", \"fcmd\"]\nfixed = { log = 1, bgc = 1 }\n\
    seeds = [2]\ntarget = 1\n[base]\nplatform.device = \"small\"\ndevice.over_provisioning = 1.0\nworkload.ios = 300\n\
    workload.warm_up_ios = 0\ncache.size_bytes = \"1MiB\"\n[verify]\nworkload.ios = 400\n";

fn search(text: &str, jobs: usize) -> Placements {
    let placing = Placing::read("placing", "placing.toml", text).unwrap();
    let orders = PlacingOrders { jobs, sets: &[], out: None, watch: &|_| {} };
    let mut search = placing.search(&orders).unwrap();
    while search.next_placement().unwrap().is_some() {}
    search.found()
}

#[test]
fn a_search_uses_its_hardware_threads_where_they_help_and_repeats_itself() {
    let found = search(SEARCH, 1);
    let [one, two] = &found.placement[..] else { panic!("{found:?}") };
    for (placement, most) in [(one, 5), (two, 8)] {
        let threads: usize = placement.seats.values().map(Vec::len).sum();
        assert!(threads <= most + 2 && placement.seats["log"] == [placement.cores - 1], "{placement:?}");
        assert!(placement.seats.values().flatten().all(|core| *core < placement.cores), "{placement:?}");
        assert!(!placement.ended.is_empty() && !placement.limits["randread"].is_empty());
    }
    assert!(two.runs > 20 && two.seats["nvmq"].len() > 1 && two.iops["randread"] > one.iops["randread"], "{found:?}");
    assert_eq!(found.fewest_cores, Some(1));
    let (again, _) = file::read::<Placements>("again", &found.to_toml()).unwrap();
    assert_eq!(again.placement, found.placement);
    assert_eq!(search(SEARCH, 2).to_toml(), found.to_toml());
}

#[test]
fn what_cannot_be_searched_is_refused_by_line_and_key() {
    let wrong = [
        ("cores = [1, 2]", "cores = []", "placing.toml:4: place.cores is []; expected numbers of cores, ascending"),
        ("cores = [1, 2]", "cores = [2, 2]", "placing.toml:4: place.cores is [2, 2]"),
        ("[\"randread\"]", "[]", "placing.toml:5: place.workloads is []; expected a list of names, each once"),
        ("seeds = [2]", "seeds = []", "placing.toml:8: place.seeds is []"),
        ("\"nvmq\", \"ilock\"", "\"log\", \"ilock\"", "expected groups without log, which is fixed"),
        ("target = 1", "targets = 1", "targets"),
    ];
    for (right, instead, expected) in wrong {
        let error = Placing::read("placing", "placing.toml", &SEARCH.replace(right, instead)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let before_any_run = [
        ("\"randread\"", "\"nothing\"", "placing.toml:5: workload.phases"),
        (
            "\"nvmq\", \"ilock\"",
            "\"nvmq\", \"hil\"",
            "placing.toml:6: place.groups is [\"nvmq\", \"hil\", \"cache\", \"trans\", \"fcmd\"]; expected groups of deepflash: \
             nvmq, ilock, cache, trans, log, bgc, fcmd; it has no hil",
        ),
        ("\"nvmq\", \"ilock\"", "\"nvmq\", \"heat\"", "bgc, fcmd; it has no heat"),
        (
            "log = 1, bgc",
            "heat = 1, bgc",
            "placing.toml:7: place.fixed is heat = 1; expected a group of deepflash: nvmq,",
        ),
        (
            "\"cache\", ",
            "",
            "placing.toml:6: place.groups is [\"nvmq\", \"ilock\", \"trans\", \"fcmd\"]; expected all groups of deepflash, \
             here or in place.fixed: cache is in neither",
        ),
        ("log = 1, bgc = 1", "log = 1", "here or in place.fixed: bgc is in neither"),
        ("cores = [1, 2]", "cores = [0]", "placing.toml:4: platform.cores is 0"),
        ("cores = [1, 2]", "cores = [2, 3000]", "placing.toml:4: platform.cores is 3000"),
        ("workload.ios = 400", "workload.ios = 0", "placing.toml:17: workload.ios is 0"),
        ("\"in-order-1ghz\"", "\"fast\"", "placing.toml:3: platform.processor is \"fast\""),
        ("log = 1, bgc = 1", "log = 3000, bgc = 1", "placing.toml:7: threads.log is 3000"),
    ];
    let orders = PlacingOrders { jobs: 1, sets: &[], out: None, watch: &|_| {} };
    let placing = |right, instead| Placing::read("placing", "placing.toml", &SEARCH.replace(right, instead)).unwrap();
    for (right, instead, expected) in before_any_run {
        let error = placing(right, instead).search(&orders).err().expect("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let short = placing("workload.ios = 300", "workload.duration_ms = 0.001");
    let error = short.search(&orders).unwrap().next_placement().unwrap_err().to_string();
    let expected = "placing: 1 core: no request of randread counted in any of its runs; expected runs that count some";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_the_table_says_is_not_set_over_it() {
    let placing = Placing::read("placing", "placing.toml", SEARCH).unwrap();
    let refused = |set: &str| {
        let sets = [set.to_owned()];
        placing
            .search(&PlacingOrders { jobs: 1, sets: &sets, out: None, watch: &|_| {} })
            .err()
            .map(|it| it.to_string())
    };
    for key in
        ["workload.phases", "platform.cores", "platform.processor", "platform", "run.seed", "threads.nvmq", "placement"]
    {
        let error = refused(&format!("{key}=1")).unwrap_or_else(|| panic!("{key} is refused"));
        let expected = format!("--set {key}=1: expected a key that the table [place] of placing.toml does not say");
        assert_eq!(error, expected);
    }
    assert_eq!(refused("workload.ios=200"), None);
}

#[test]
fn a_search_is_known_by_its_table_however_that_is_written() {
    let is_search = |text: &str| Placing::of(Path::new("a search.toml"), text).unwrap().is_some();
    assert!(is_search(SEARCH) && is_search(&SEARCH.replace("[place]", "[ place ] # what is searched")));
    assert!(!is_search("title = \"\"\"\n[place]\n\"\"\"\n") && !is_search("no TOML"));
}

/// Rust writes them in another way than TOML reads them.
#[test]
fn workloads_may_be_called_by_marks_over_letters_and_what_was_set_is_part_of_the_command() {
    let folder = std::env::temp_dir().join(format!("flashloom-placing-{}-marks", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let workload = folder.join("lo\u{308}sen.toml");
    std::fs::write(&workload, "pattern = \"random\"\nread_fraction = 1.0\nsizes = { fixed_bytes = 4096 }\n").unwrap();
    let text = SEARCH.replace("[\"randread\"]", &format!("[\"{}\"]", workload.display())).replace("[1, 2]", "[1]");
    let placing = Placing::read("placing", "a search.toml", &text).unwrap();
    let sets = ["cache.size_bytes=512KiB", "host.queues = 1"].map(String::from);
    let orders = PlacingOrders { jobs: 2, sets: &sets, out: None, watch: &|_| {} };
    let mut search = placing.search(&orders).unwrap();
    assert!(search.next_placement().unwrap().is_some());
    let command = "flashloom sweep 'a search.toml' --set cache.size_bytes=512KiB --set 'host.queues = 1'";
    let found = search.found().found;
    assert!(found.starts_with(&format!("`{command}`: a local search")), "{found}");
    let files = search.write(&folder).unwrap();
    let configuration = std::fs::read_to_string(&files[1]).unwrap();
    assert!(configuration.starts_with(&format!("# What `{command}` found, as")), "{configuration}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn words_are_quoted_where_a_shell_would_take_them_apart() {
    let words = ["device.user_bytes=8MiB", "", "a b", "it's"].map(quoted);
    assert_eq!(words, ["device.user_bytes=8MiB", "''", "'a b'", r"'it'\''s'"]);
}
