//! Months of virtual time, which is counted in 64 bits of picoseconds.

use crate::shell::{SMALL, argument, file, flashloom};

/// The time of all workers together is more than that of one, which is all that 64 bits hold.
#[test]
fn what_workers_wait_in_weeks_counts_for_all_of_them() {
    let path = file("weeks.spc", b"0,100,512,R,0\n0,200,512,R,4611686\n");
    let timed = ["replay", argument(&path), "--mode", "timed", "--architecture", "tradition", "--json", "-"];
    let replay = |words: &[&str]| flashloom(&[&timed, words, &crate::shell::SMALL].concat()).json();
    let [weeks, hours] = ["1", "1000"].map(|speed| replay(&["--threads", "worker=4", "--speed", speed]));
    let wait = |json: &serde_json::Value| {
        let [flash, seconds] = [&json["workers"]["flash_wait"], &json["simulated_ns"]].map(|it| it.as_f64().unwrap());
        flash * seconds
    };
    assert!(weeks["simulated_ns"].as_u64() > Some(4_600_000_000_000_000), "{weeks}");
    assert!((wait(&weeks) / wait(&hours) - 1.0).abs() < 0.01, "{} and {}", wait(&weeks), wait(&hours));
}

/// Each phase is no longer than one may be.
#[test]
fn requests_that_arrive_after_the_end_of_time_are_refused() {
    // Nothing looks for work in between, which in months takes seconds.
    let idle = ["--architecture", "tradition", "--set", "reclaim.background=false"];
    let slow = ["--set", "workload.pace=timed", "--set", "workload.per_second=0.0003"];
    let many = vec!["randread"; 19].join(",");
    for length in [["--workload", "randread", "--ios", "30000"], ["--workload", &many, "--duration", "1000000s"]] {
        let ended = flashloom(&[&["run"], &idle[..], &slow, &length, &SMALL].concat());
        let said = "error: virtual time is over, after 160 days, and phases are not; expected fewer requests, or more a second";
        assert!(ended.code == 2 && ended.err.contains(said), "{ended:?}");
    }
    // The first of the next phase comes at once, the second never.
    let rare = b"pattern = \"random\"\nread_fraction = 1.0\nsizes = { fixed_bytes = 4096 }\n\
        arrivals = { bursty = { per_second = 0.1, on_ms = 1, off_ms = 3600000 } }\n";
    let rare = file("rare.toml", rare);
    let phases = format!("randread,{}", argument(&rare));
    let paced = ["run", "--workload", &phases, "--set", "workload.pace=[\"closed\",\"timed\"]", "--ios", "100"];
    let ended = flashloom(&[&paced, &idle[..], &SMALL].concat());
    assert!(ended.code == 2 && ended.err.contains("virtual time is over"), "{ended:?}");
}
