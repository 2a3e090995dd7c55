//! Every real trace at hand is replayed through the whole drive. They are not part of the repository (their owners' terms do
//! not allow it): the test looks for them in `FLASHLOOM_TRACES`, then in `../shared/traces` beside the repository.

use crate::shell::{argument, flashloom};
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("FLASHLOOM_TRACES").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        // The harness keeps what `println!` says in a test that passes.
        let mut stdout = std::io::stdout();
        writeln!(stdout, "skipped: no real traces; set FLASHLOOM_TRACES to their folder").unwrap();
        return None;
    }
    Some(folder)
}

#[test]
fn every_real_trace_is_replayed() {
    let Some(folder) = folder() else { return };
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("its entries can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".zst") {
            continue;
        }
        let pages: &[&str] = if name.contains("4Kpages") { &["--count-unit", "pages"] } else { &[] };
        let trace = [&["replay", argument(&path), "--lenient", "--wrap", "--json", "-"], pages].concat();
        // A few thousand requests on a drive of 50 GB go through every part; all of them on 1 TB take minutes.
        let less = ["--ios", "3000", "--set", "device.blocks_per_plane=64", "--set", "device.user_bytes=50GB"];
        let ended = flashloom(&[&trace[..], &less].concat());
        assert_eq!(ended.code, 0, "{name}: {}", ended.err);
        let json = ended.json();
        assert!(json["ios"] == json["trace"]["replayed"] && json["ios"].as_u64().unwrap() > 100, "{name}: {json}");
        let read = json["read"]["ios"].as_u64().unwrap();
        assert!(read == 0 || json["flash"]["reads"].as_u64().unwrap() > 0, "reads meet flash: {name}: {json}");
        replayed += 1;
    }
    assert!(replayed > 0, "the folder has traces");
}
