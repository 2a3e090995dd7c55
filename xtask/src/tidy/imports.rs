//! Which crate may depend on which: lower levels only, and a few stricter rules.

use super::dependencies::declared;
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check = Check {
    name: "imports",
    why: "crates depend on lower levels only, so that firmware stays pure and the worlds stay generic over it",
    find,
};

/// The crates of each level, lowest first, as in ARCHITECTURE.md.
const LEVELS: &[&[&str]] = &[
    &["units"],
    &["files", "stage", "nvme", "flash", "workload"],
    &["trace", "firmware"],
    &["sim", "threads", "interleave", "host", "target", "report"],
    &["rig"],
    &["lab"],
    &["abuse", "cli", "python"],
];

/// Stricter than the levels: of our own crates only these.
const ONLY: &[(&str, &[&str])] = &[
    ("firmware", &["units", "stage", "nvme", "flash"]),
    ("host", &["nvme", "workload", "units"]),
    ("report", &["units", "trace"]),
];

/// Stricter than the levels: never these, ours or others'.
const NEVER: &[(&str, &[&str])] = &[
    ("firmware", &["rand", "rand_core", "rand_xoshiro"]),
    ("sim", &["firmware", "nvme", "flash"]),
    ("threads", &["firmware", "nvme", "flash"]),
    ("interleave", &["firmware", "nvme", "flash"]),
];

/// The one crate that knows everything; its tests drive whole devices.
const FREE_IN_TESTS: &str = "rig";

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (name, manifest) in tree.manifests() {
        let Some(level) = level_of(name) else {
            let remedy = "add it to LEVELS in xtask/src/tidy/imports.rs and to ARCHITECTURE.md";
            offences.push(manifest.offence(1, format!("crate {name} has no level"), remedy));
            continue;
        };
        for dependency in declared(manifest) {
            let other = dependency.package.as_str();
            let listed = |rules: &[(&str, &[&str])]| {
                rules.iter().find(|rule| rule.0 == name).map(|rule| rule.1.contains(&other))
            };
            let what = match level_of(other) {
                _ if dependency.for_tests && name == FREE_IN_TESTS => continue,
                _ if listed(NEVER) == Some(true) => format!("{name} must never depend on {other}"),
                Some(_) if listed(ONLY) == Some(false) => format!("{name} may not depend on {other}"),
                Some(upper) if upper >= level => format!("{name} (level {level}) depends on {other} (level {upper})"),
                _ => continue,
            };
            let remedy = "move what is needed to a lower level, or let rig bring the two together";
            offences.push(manifest.offence(dependency.line, what, remedy));
        }
    }
    offences
}

fn level_of(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn lower_levels_are_free_and_rig_tests_may_use_anything() {
        let flash = "[dependencies]\nunits = { workspace = true }\nthiserror = { workspace = true }\n";
        let rig = "[dependencies]\nfirmware.workspace = true\n[dev-dependencies]\ncli.workspace = true\n";
        assert!(found(&CHECK, &[("crates/flash/Cargo.toml", flash), ("crates/rig/Cargo.toml", rig)]).is_empty());
    }

    #[test]
    fn same_and_higher_levels_are_refused_in_every_table_and_under_any_name() {
        for text in [
            "[dependencies]\nstage = { workspace = true }\n",
            "[dev-dependencies]\nsim = { workspace = true }\n",
            "[build-dependencies]\nrig = { workspace = true }\n",
            "[target.'cfg(unix)'.dependencies]\nhost = { workspace = true }\n",
            "[dependencies]\nother = { path = \"../stage\", package = \"stage\" }\n",
        ] {
            assert_eq!(found(&CHECK, &[("crates/flash/Cargo.toml", text)]), ["crates/flash/Cargo.toml:2"], "{text}");
        }
    }

    #[test]
    fn the_stricter_rules_hold() {
        for (name, other) in [("firmware", "workload"), ("firmware", "rand"), ("sim", "flash"), ("report", "stage")] {
            let (path, text) = (format!("crates/{name}/Cargo.toml"), format!("[dependencies]\n{other} = \"1\"\n"));
            assert_eq!(found(&CHECK, &[(&path, &text)]), [format!("{path}:2")]);
        }
        assert_eq!(found(&CHECK, &[("crates/novel/Cargo.toml", "")]), ["crates/novel/Cargo.toml:1"]);
    }
}
