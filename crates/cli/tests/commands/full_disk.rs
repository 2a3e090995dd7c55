//! Results on a disk that has no room for them: earlier ones stay, and nothing is left of the new.
//!
//! The longest file that the process may have is shorter than any result: what is behind that is refused (EFBIG), as by a full disk.

use crate::shell::{SMALL, argument, file, flashloom, small, sweep_of_two};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// In blocks of 512 bytes (POSIX).
const LIMITED: &str = "ulimit -f 2; exec \"$0\" \"$@\"";

fn limited(words: &[&str]) -> Output {
    Command::new("sh").args(["-c", LIMITED, env!("CARGO_BIN_EXE_flashloom")]).args(words).output().expect("it starts")
}

/// All files below a folder, with what they hold.
fn held(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it is there").path());
    let held = |path: PathBuf| {
        if path.is_dir() { held(&path) } else { BTreeMap::from([(path.clone(), std::fs::read(path).expect("text"))]) }
    };
    entries.flat_map(held).collect()
}

#[test]
fn a_disk_without_room_keeps_earlier_results_whole_and_has_no_part_of_new_ones() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full-disk");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of ours");
    let [one, earlier, fresh] = ["one.json", "earlier", "fresh"].map(|name| folder.join(name));
    small(&["run", "--ios", "300", "--json", argument(&one)]);
    std::fs::copy(&one, &earlier).expect("there is room");
    let trace = file("full-disk.spc", b"0,8,4096,r,0.5\n0,16,4096,r,0.6\n");
    let before = held(&folder);
    for path in [argument(&earlier), argument(&fresh)] {
        let run = ["run", "--ios", "300"];
        for (words, flag) in [
            (&[&run[..], &SMALL, &["--json", path]].concat()[..], "--json"),
            (&[&run[..], &SMALL, &["--timeline", path]].concat(), "--timeline"),
            (&["replay", argument(&trace), "--device", "small", "--json", path], "--json"),
            (&["compare", argument(&one), "--json", path], "--json"),
            (&["compare", argument(&one), "--csv", path], "--csv"),
            (&["list", "devices", "--json", path], "--json"),
        ] {
            let ended = limited(words);
            let err = String::from_utf8(ended.stderr).expect("text");
            assert_eq!(ended.status.code(), Some(2), "{words:?}: {err}");
            assert!(err.contains(&format!("{flag} {path}: File too large")), "{words:?}: {err}");
            assert!(held(&folder) == before, "{words:?}: {:?}", held(&folder).keys());
        }
    }
}

#[test]
fn a_sweep_without_room_leaves_the_results_of_the_one_before() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full-disk-of-a-sweep");
    let _ = std::fs::remove_dir_all(&folder);
    let sweep = sweep_of_two("room.toml");
    let words = ["sweep", argument(&sweep), "--out", argument(&folder)];
    assert_eq!(flashloom(&words).code, 0);
    let before = held(&folder);
    let ended = limited(&[&words[..], &["--set", "run.seed=2"]].concat());
    let err = String::from_utf8(ended.stderr).expect("text");
    assert!(ended.status.code() == Some(2) && err.contains("File too large"), "{err}");
    assert!(held(&folder) == before, "{:?}", held(&folder).keys());
}
