//! What a run is interval by interval: of all that counts, and as much in sum as the summary says.

use crate::shell::{argument, file, flashloom, small};
use serde_json::Value;

/// The last interval is a fraction of the others: what is still answered after it would be many times what it is.
#[test]
fn samples_are_of_the_measured_part_and_add_up_to_it() {
    let words =
        ["run", "--device", "small", "--set", "cache.size_bytes=1MiB", "--set", "run.series_ms=1", "--json", "-"];
    let measured = |more: &[&str]| flashloom(&[&words, more].concat()).json();
    let reads = ["--workload", "randread", "--duration", "10.002ms", "--set", "workload.warm_up_ios=1000"];
    let writes = ["--workload", "randwrite", "--ios", "20000", "--set", "run.precondition=rand:1"];
    // Half of them are Compares: what they move counts, too.
    let compares = file(
        "compares.toml",
        b"pattern = \"random\"\nread_fraction = 1.0\nsizes = { fixed_bytes = 4096 }\n[others]\ncompare = 0.5\n",
    );
    let compares = ["--workload", argument(&compares), "--ios", "2000", "--set", "workload.warm_up_ios=100"];
    for json in [measured(&reads), measured(&writes), measured(&compares)] {
        let samples = json["samples"].as_array().expect("there are samples");
        for sample in samples {
            for (group, active) in sample["groups"].as_object().expect("groups") {
                let threads = json["groups"][group]["threads"].as_f64().expect("a group of the summary");
                assert!(active.as_f64().is_some_and(|active| active <= threads + 1e-9), "{group}: {sample}");
            }
        }
        let sum = |key: &str| samples.iter().map(|sample| sample[key].as_u64().expect("a count")).sum::<u64>();
        assert_eq!(sum("length_ns"), json["simulated_ns"].as_u64().expect("a length"));
        assert_eq!(sum("pages_moved"), json["gc"]["pages_moved"].as_u64().expect("a count"));
        assert_eq!(sum("journal_pages"), json["journal"]["pages"].as_u64().expect("a count"));
        for rate in ["iops", "bandwidth"] {
            let over =
                |of: &Value, length: &str| of[rate].as_f64().expect("a rate") * of[length].as_f64().expect("a length");
            let sum: f64 = samples.iter().map(|sample| over(sample, "length_ns")).sum();
            let of = over(&json, "simulated_ns");
            assert!((sum / of - 1.0).abs() < 1e-4, "{rate}: {sum} of {of}");
        }
    }
}

/// Seconds in binary digits are less than these, and nanoseconds are whole.
#[test]
fn a_run_is_as_long_as_it_was_told_to_the_last_nanosecond() {
    for length in [983u64, 1_001] {
        let json =
            small(&["run", "--workload", "randread", "--duration", &format!("{length}us"), "--json", "-"]).json();
        assert_eq!(json["simulated_ns"], length * 1_000);
    }
}

/// A run as short as this has more intervals than there may be only with a drive that has next to nothing to do.
#[test]
fn a_series_that_ends_before_the_run_does_is_said_to() {
    let words =
        ["run", "--architecture", "layered", "--device", "small", "--workload", "randread", "--duration", "1.001s"];
    let slow = ["--set", "workload.pace=timed", "--set", "workload.per_second=1000", "--set", "workload.warm_up_ios=0"];
    let notes = |interval: &str| {
        let series = format!("run.series_ms={interval}");
        flashloom(&[&words[..], &slow, &["--set", &series]].concat()).err
    };
    let expected = "note: the samples of workload randread end after 1000000 intervals, the most that there may be \
                    (run.series_ms), and the run went on\n";
    assert_eq!((notes("0.001").as_str(), notes("0.1").as_str()), (expected, ""));
}

/// Of a drive that fills up rounds are not alike at once. Samples show how it came there, and the summary says which of them it is of.
#[test]
fn samples_are_of_all_rounds_and_the_summary_says_from_where_on_it_is_of_them() {
    let words = ["run", "--workload", "randwrite", "--until", "steady", "--round", "1ms", "--json", "-"];
    let keys = ["cache.size_bytes=1MiB", "workload.warm_up_ios=0", "run.series_ms=0.1"];
    let json = small(&[&words[..], &keys.map(|key| ["--set", key]).concat()].concat()).json();
    let from = json["steady_state"]["from_ns"].as_u64().expect("a time");
    let samples: Vec<[f64; 3]> = json["samples"]
        .as_array()
        .expect("samples")
        .iter()
        .map(|sample| ["at_ns", "length_ns", "iops"].map(|key| sample[key].as_f64().expect("a number")))
        .collect();
    let (rounds, length) =
        (json["steady_state"]["rounds"].as_u64(), samples.iter().map(|[_, length, _]| length).sum::<f64>());
    assert!(rounds.is_some_and(|rounds| rounds > 5 && from == (rounds - 5) * 1_000_000), "{from} of {rounds:?}");
    assert_eq!(length, (from + json["simulated_ns"].as_u64().expect("a length")) as f64, "they are of all rounds");
    let measured = samples.iter().filter(|[at, ..]| *at >= from as f64);
    let ios: f64 = measured.map(|[_, length, iops]| length * iops / 1e9).sum();
    assert!((ios - json["ios"].as_f64().expect("a count")).abs() < 0.5, "{ios} of {}", json["ios"]);
}
