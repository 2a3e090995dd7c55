//! That the map names every crate, that every page can be reached, and that one speaks of each firmware architecture.

use super::tree::File;
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check =
    Check { name: "pages", why: "README.md and ARCHITECTURE.md lead to everything; what they miss is not found", find };

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    let Some(map) = tree.file("ARCHITECTURE.md") else {
        println!("tidy: pages: skipped, there is no ARCHITECTURE.md yet");
        return offences;
    };
    for (name, _) in tree.manifests() {
        let is_named =
            [format!("`{name}`"), format!("{name}/"), format!("`{name}::")].iter().any(|form| map.text.contains(form));
        if !is_named {
            let remedy = "add a line on what it is for";
            offences.push(map.offence(1, format!("crate {name} is not on the map"), remedy));
        }
    }
    let Some(readme) = tree.file("README.md") else {
        println!("tidy: pages: links skipped, there is no README.md yet");
        return offences;
    };
    for page in tree.pages() {
        if ![readme, map].iter().any(|from| from.text.contains(&page.path)) {
            let remedy = "link to it from README.md or ARCHITECTURE.md, or fold it into another page";
            offences.push(page.offence(1, "no link leads to this page", remedy));
        }
    }
    for file in tree.rust().filter(|file| file.path.starts_with(ARCHITECTURES)) {
        for (line, name) in architectures(file) {
            let form = format!("`{name}`");
            if !tree.pages().chain([readme]).any(|page| page.text.contains(&form)) {
                let what = format!("no page speaks of the architecture {form}");
                offences.push(file.offence(line, what, "say what it is in README.md or docs/platforms.md"));
            }
        }
    }
    offences
}

/// Where each firmware architecture has its file.
const ARCHITECTURES: &str = "crates/firmware/src/architecture/";

/// The names that architectures in a file say they have, each with its line.
fn architectures(file: &File) -> Vec<(usize, &str)> {
    let lines = (2..).zip(file.text.lines().zip(file.text.lines().skip(1)));
    let says_name = |(_, (before, _)): &(usize, (&str, &str))| before.trim() == "fn name(&self) -> &'static str {";
    let named = lines.filter(says_name).map(|(line, (_, name))| (line, name.trim().trim_matches('"')));
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn named_crates_and_linked_pages_are_found_by_a_reader() {
        let files = [
            ("ARCHITECTURE.md", "├── flash/  the array; `sim` is a world; see [locks](docs/locks.md)\n"),
            ("README.md", "[style](docs/style.md)\n"),
            ("crates/flash/Cargo.toml", ""),
            ("crates/sim/Cargo.toml", ""),
            ("docs/locks.md", ""),
            ("docs/style.md", ""),
        ];
        assert!(found(&CHECK, &files).is_empty());
    }

    #[test]
    fn a_crate_off_the_map_and_a_page_without_link_are_offences() {
        let files = [
            ("ARCHITECTURE.md", "we simulate flash\n"),
            ("README.md", "style\n"),
            ("crates/sim/Cargo.toml", ""),
            ("docs/style.md", ""),
        ];
        assert_eq!(found(&CHECK, &files), ["ARCHITECTURE.md:1", "docs/style.md:1"]);
    }

    #[test]
    fn an_architecture_that_no_page_speaks_of_is_an_offence() {
        let code =
            |name| format!("impl A for B {{\n    fn name(&self) -> &'static str {{\n        \"{name}\"\n    }}\n}}\n");
        let [told, read, untold] = ["naive", "layered", "thermal"].map(code);
        let files = [
            ("ARCHITECTURE.md", "[platforms](docs/platforms.md), `thermal`\n"),
            ("README.md", "the firmware `naive`\n"),
            ("crates/firmware/src/architecture/layered.rs", &*read),
            ("crates/firmware/src/architecture/naive.rs", &*told),
            ("crates/firmware/src/architecture/thermal.rs", &*untold),
            ("docs/platforms.md", "thermal, and `layered`\n"),
        ];
        assert_eq!(found(&CHECK, &files), ["crates/firmware/src/architecture/thermal.rs:3"]);
    }
}
