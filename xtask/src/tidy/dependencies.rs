//! Dependencies: versions in one place, each from outside with its reason and a user.

use super::tree::File;
use super::{Check, Offence, Tree};
use toml::{Table, Value};

pub(super) const CHECK: Check = Check {
    name: "dependencies",
    why: "each dependency from outside is code we vouch for, so it has one version, a reason and a user",
    find,
};

/// A dependency that a manifest declares.
pub(super) struct Dependency {
    /// The package, whatever name it goes by in the crate.
    pub(super) package: String,
    /// The name it goes by, which is its key in the workspace's list.
    key: String,
    /// Where it stands, counted from 1.
    pub(super) line: usize,
    pub(super) for_tests: bool,
    /// Taken from the workspace's list.
    shared: bool,
    /// Lies in this repository.
    local: bool,
}

/// What a crate's manifest declares, in all its dependency tables.
pub(super) fn declared(manifest: &File) -> Vec<Dependency> {
    let root = parse(manifest);
    let targets = root.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let mut all = Vec::new();
    for part in targets.filter_map(Value::as_table).chain([&root]) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (key, value) in part.get(kind).and_then(Value::as_table).into_iter().flatten() {
                all.push(read(manifest, key, value, kind == "dev-dependencies"));
            }
        }
    }
    all
}

fn read(manifest: &File, key: &str, value: &Value, for_tests: bool) -> Dependency {
    let package = value.get("package").and_then(Value::as_str).unwrap_or(key).to_string();
    let is_here = |line: &str| {
        let entry = line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', '.']));
        entry || (line.starts_with('[') && line.trim_end().ends_with(&format!("dependencies.{key}]")))
    };
    let line = manifest.text.lines().position(is_here).map_or(1, |index| index + 1);
    let shared = value.get("workspace").is_some();
    Dependency { package, key: key.into(), line, for_tests, shared, local: value.get("path").is_some() }
}

fn parse(manifest: &File) -> Table {
    // Cargo has read every manifest of the workspace before it could start this program.
    manifest.text.parse().unwrap_or_else(|error| panic!("{} is no TOML: {error}", manifest.path))
}

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut used = Vec::new();
    let members = tree.manifests().map(|(_, manifest)| manifest).chain(tree.file("xtask/Cargo.toml"));
    for manifest in members {
        for dependency in declared(manifest) {
            if !dependency.shared {
                let what = format!("{} names its own version or path", dependency.key);
                let remedy = "add it to [workspace.dependencies] and write `{ workspace = true }` here";
                offences.push(manifest.offence(dependency.line, what, remedy));
            }
            used.push(dependency.key);
        }
    }
    let Some(workspace) = tree.file("Cargo.toml") else { return offences };
    let root = parse(workspace);
    let listed = root.get("workspace").and_then(|table| table.get("dependencies")).and_then(Value::as_table);
    for (key, value) in listed.into_iter().flatten() {
        let dependency = read(workspace, key, value, false);
        let line = workspace.text.lines().nth(dependency.line - 1).unwrap_or_default();
        if dependency.local {
            continue;
        }
        if line.rsplit_once('#').is_none_or(|(_, reason)| reason.trim().is_empty()) {
            let remedy = "say at the end of its line what it is for: `# reason`";
            offences.push(workspace.offence(dependency.line, format!("{key} has no reason"), remedy));
        }
        if !used.contains(key) {
            let remedy = "remove it from [workspace.dependencies], or from the code that does its work by hand";
            offences.push(workspace.offence(dependency.line, format!("no crate uses {key}"), remedy));
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn a_reason_and_a_user_are_enough() {
        let root = "[workspace.dependencies]\nunits = { path = \"crates/units\" }\ntoml = \"1\" # device files\n";
        let member = "[dev-dependencies]\ntoml = { workspace = true }\n";
        assert!(found(&CHECK, &[("Cargo.toml", root), ("crates/rig/Cargo.toml", member)]).is_empty());
    }

    #[test]
    fn missing_reason_missing_user_and_own_version_are_found() {
        let root = "[workspace.dependencies]\n# Others'.\ntoml = \"1\"\nzstd = \"1\" # compressed traces\n";
        let member = "[dependencies]\ntoml.workspace = true\n\n[dependencies.serde]\nversion = \"1\"\n";
        let files = [("Cargo.toml", root), ("crates/rig/Cargo.toml", member)];
        assert_eq!(found(&CHECK, &files), ["crates/rig/Cargo.toml:4", "Cargo.toml:3", "Cargo.toml:4"]);
    }
}
