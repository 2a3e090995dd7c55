//! Words that say nothing in the name of a type.

use super::source::{line_of, names_after};
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check =
    Check { name: "names", why: "a type is named for what it is or does; these words fit every type", find };

const BANNED: &[&str] =
    &["Manager", "Handler", "Engine", "Base", "Util", "Utils", "Helper", "Impl", "Ctx", "Data", "Info"];

/// Names of published parts: there the paper's word wins.
const PUBLISHED: &[&str] = &["PriorityManager"];

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for file in tree.rust() {
        for keyword in ["struct", "enum", "union", "trait", "type"] {
            for (at, name) in names_after(&file.code, keyword) {
                let Some(word) = BANNED.iter().find(|word| name.ends_with(**word)) else { continue };
                if !PUBLISHED.contains(&name) {
                    let what = format!("{keyword} {name} ends in {word}");
                    offences.push(file.offence(line_of(&file.code, at) + 1, what, "say what it holds or does"));
                }
            }
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn a_word_counts_at_the_end_of_a_name_only() {
        let text =
            "struct Metadata;\nstruct BaseDeepFlash;\n// struct FooManager\nstruct PriorityManager;\nfn data() {}\n";
        assert!(found(&CHECK, &[("a.rs", text)]).is_empty());
    }

    #[test]
    fn every_banned_word_is_found_after_every_keyword() {
        for word in BANNED {
            assert_eq!(found(&CHECK, &[("a.rs", &format!("pub struct {word} {{}}"))]), ["a.rs:1"]);
            assert_eq!(found(&CHECK, &[("a.rs", &format!("\npub(crate) trait Cache{word}<T> {{}}"))]), ["a.rs:2"]);
        }
    }
}
