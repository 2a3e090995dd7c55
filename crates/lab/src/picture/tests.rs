//! That the pictures in `results/` are what their rows draw; `cargo xtask pictures` writes them.

use super::draw;
use crate::points::plain;
use crate::rows::Columns;
use crate::{EXPERIMENTS, Experiment};
use serde_json::{Value, json};
use std::path::Path;

/// The picture of rows that were kept.
fn drawn(experiment: &Experiment, json: &str) -> String {
    let results: Value = serde_json::from_str(json).expect("results are JSON");
    let rows = results["rows"].as_array().expect("they have rows");
    let rows = rows.iter().map(|row| row.as_object().expect("a row has columns").clone()).collect();
    draw(experiment, &Columns { names: Vec::new(), rows })
}

const AREAS: &str = r#"
title = "Areas"
summary = "one above the other"
source = "a test"

[[axis]]
name = "request"
key = "workload.block_bytes"
values = ["4KiB"]

[[metric]]
name = "iops"
value = "iops"

[[plot]]
form = "stacked_area"
x = "request"
y = ["iops"]
"#;

/// A picture of one series that has ever more, in these places along the axis.
fn along(form: &str, places: &[Value]) -> String {
    let experiment = Experiment::read("areas", "areas.toml", &AREAS.replace("stacked_area", form)).unwrap();
    let row = |(at, place): (usize, &Value)| json!({ "series": "a", "request": place, "iops": 5 - at });
    let rows: Vec<Value> = places.iter().enumerate().map(row).collect();
    drawn(&experiment, &json!({ "rows": rows }).to_string())
}

fn is_marked(panel: &str) -> bool {
    ["<polyline ", "<rect ", "<polygon "].iter().any(|mark| panel.contains(mark))
}

#[test]
fn texts_along_the_axis_are_drawn_and_named() {
    for form in ["lines", "stacked_area"] {
        for places in [["4KiB", "64KiB"].map(Value::from), [json!("auto"), json!(1)]] {
            let picture = along(form, &places);
            assert!(picture.lines().any(|line| line.starts_with("<g ") && is_marked(line)), "{picture}");
            for place in &places {
                let name = format!(">{}<", plain(place));
                assert!(picture.contains(&name), "{name}: {picture}");
            }
        }
    }
}

#[test]
fn what_has_no_place_along_the_axis_moves_nothing_else() {
    let places = [json!(4), json!(8), Value::Null];
    assert_eq!(along("stacked_area", &places), along("stacked_area", &places[..2]));
}

#[test]
fn a_column_that_no_row_has_is_one_place() {
    let text = AREAS.replace("x = \"request\"", "x = \"phase\"").replace("stacked_area", "lines");
    let picture =
        drawn(&Experiment::read("areas", "areas.toml", &text).unwrap(), r#"{"rows": [{"series": "a", "iops": 5}]}"#);
    assert!(picture.contains("<circle "), "{picture}");
}

/// A picture of lines over cores, at these depths, beside what is reckoned for a row.
fn beside_reckoned(panels: &str, bound: impl Fn(u64, u64) -> u64) -> String {
    let axis = "[[axis]]\nname = \"queue_depth\"\nkey = \"host.depth\"\nvalues = [4, 12]\n\n[[metric]]\nname = \"bound\"\n\
                value = \"config.host.depth\"\nreckoned = true\n\n[[metric]]\nname = \"iops\"";
    let text = AREAS.replace("[[metric]]\nname = \"iops\"", axis).replace("stacked_area", "lines");
    let text = text.replace("y = [\"iops\"]", &format!("y = [\"iops\", \"bound\"]\npanels = {panels}"));
    let experiment = Experiment::read("areas", "areas.toml", &text).unwrap();
    let cases = [4, 12].into_iter().flat_map(|depth| [1, 2].map(|request| (depth, request)));
    let row = |(depth, request)| {
        let bound = bound(depth, request);
        json!({ "series": "a", "queue_depth": depth, "request": request, "iops": depth * request, "bound": bound })
    };
    drawn(&experiment, &json!({ "rows": cases.map(row).collect::<Vec<_>>() }).to_string())
}

#[test]
fn figures_that_tell_rows_apart_have_the_name_of_their_column() {
    let lines = beside_reckoned("[]", |depth, request| depth + request);
    let panels = beside_reckoned("[\"queue_depth\"]", |depth, request| depth + request);
    for (picture, names) in [
        (lines, [">queue depth 4: iops<", ">queue depth 12: bound<"]),
        (panels, [">queue depth 4<", ">queue depth 12<"]),
    ] {
        assert!(names.iter().all(|name| picture.contains(name)), "{picture}");
    }
}

#[test]
fn what_is_reckoned_is_dashed_and_drawn_once_where_it_is_the_same_for_all() {
    let [one, several] =
        [|_, request| request, |depth, request| depth + request].map(|bound| beside_reckoned("[]", bound));
    let dashed = |picture: &str, what: &str| {
        picture
            .split(what)
            .skip(1)
            .filter(|rest| rest.split("/>").next().is_some_and(|own| own.contains("stroke-dasharray")))
            .count()
    };
    // In the panel and in the legend.
    assert_eq!((dashed(&one, "<polyline "), dashed(&one, "<path ")), (1, 1), "{one}");
    assert_eq!((dashed(&several, "<polyline "), dashed(&several, "<path ")), (2, 2), "{several}");
    assert!(one.contains(">bound<") && one.contains(">queue depth 4<"), "{one}");
}

#[test]
fn panels_of_a_plot_have_one_scale_and_bars_the_order_of_their_numbers() {
    let panels = beside_reckoned("[\"queue_depth\"]", |depth, _| depth);
    // Up to 24, which only the second of them has.
    assert_eq!(panels.matches(">30</text>").count(), 2, "{panels}");
    let bars = along("bars", &[0, 8, 4].map(Value::from));
    let at = |name: &str| bars.find(&format!(">{name}</text>")).expect("it is named");
    assert!(at("4") < at("8"), "{bars}");
}

#[test]
fn what_has_no_figure_is_in_no_legend() {
    let experiment = Experiment::read("areas", "areas.toml", &AREAS.replace("stacked_area", "bars")).unwrap();
    let row = |series: &str, iops: Value| json!({ "series": series, "request": "4KiB", "iops": iops });
    let picture = drawn(&experiment, &json!({ "rows": [row("a", 5.into()), row("b", Value::Null)] }).to_string());
    assert!(picture.contains(">a<") && !picture.contains(">b<"), "{picture}");
}

/// `FLASHLOOM_ACCEPT=1` writes those that differ.
#[test]
fn committed_pictures_are_what_their_rows_draw_with_marks_in_every_panel() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let mut differ = Vec::new();
    for folder in [results.clone(), results.join("full")] {
        for named in EXPERIMENTS {
            let path = |ending: &str| folder.join(format!("{}.{ending}", named.name));
            let Ok(json) = std::fs::read_to_string(path("json")) else { continue };
            let picture = drawn(&Experiment::named(named.name).unwrap(), &json);
            let panels: Vec<&str> = picture.lines().filter(|line| line.starts_with("<g ")).collect();
            assert!(
                !panels.is_empty() && panels.iter().all(|panel| is_marked(panel)),
                "{}: an empty panel",
                path("svg").display()
            );
            if std::fs::read_to_string(path("svg")).is_ok_and(|kept| kept == picture) {
                continue;
            }
            if std::env::var_os("FLASHLOOM_ACCEPT").is_some() {
                std::fs::write(path("svg"), picture).unwrap();
            } else {
                differ.push(named.name);
            }
        }
    }
    assert!(differ.is_empty(), "other pictures than their rows draw: {differ:?}; to draw them: cargo xtask pictures");
}
