//! That the map names every crate, and that every page can be reached.

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
    offences
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
}
