//! Planted bugs: which firmware has their part, and what finds them.

use crate::shell::flashloom;

#[test]
fn a_planted_bug_says_what_finds_it() {
    let finds = "--architecture deepflash --seed 912 --runs 16";
    let listed = flashloom(&["list", "mutations", "--json", "-"]).json();
    let summary = |name: &str| {
        let entry = listed.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == name));
        entry.and_then(|entry| entry["summary"].as_str()).expect("it is listed").to_owned()
    };
    assert!(summary("erase-unfenced").ends_with(&format!("; found by {finds}")), "{listed}");
    assert!(summary("renumber-tombstone").ends_with(", --architecture tradition --seed 352 --runs 16"), "{listed}");
    let none =
        |words: &[&str]| flashloom(&[&["check", "--runs", "1", "--ios", "20", "--cuts", "1"], words].concat()).out;
    let said = none(&["--mutation", "erase-unfenced"]);
    let does = format!(
        "none of 1 runs found the planted bug erase-unfenced: `flashloom check --mutation erase-unfenced {finds}` does\n"
    );
    assert!(said.ends_with(&does), "{said}");
    let said = none(&["--mutation", "renumber-tombstone", "--architecture", "pipessd"]);
    let does = "`flashloom check --mutation renumber-tombstone --architecture pipessd --seed 96 --runs 16` does\n";
    assert!(said.ends_with(does), "{said}");
}

#[test]
fn a_bug_of_a_part_that_firmware_has_not_is_refused() {
    for (mutation, architecture) in
        [("erase-unfenced", "pipessd"), ("commit-unfenced", "tradition"), ("fill-bad-group", "pipessd")]
    {
        let ended = flashloom(&["check", "--mutation", mutation, "--architecture", architecture, "--runs", "1"]);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{ended:?}");
        let begins =
            format!("error: --mutation is {mutation}; expected one of short-scan, oldest-wins, versions-anew, ");
        let ends = format!(
            "renumber-tombstone: {architecture} has no part that this is a bug of\nhelp: `flashloom list mutations`"
        );
        assert!(ended.err.starts_with(&begins) && ended.err.contains(&ends), "{}", ended.err);
    }
    let unknown = flashloom(&["check", "--mutation", "none-such", "--architecture", "pipessd"]);
    assert!(unknown.code == 2 && !unknown.err.contains("has no part"), "{}", unknown.err);
}
