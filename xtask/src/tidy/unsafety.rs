//! Where `unsafe` may stand, and that each use says why it is sound.

use super::source::{find_words, line_of};
use super::tree::File;
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check = Check {
    name: "unsafe",
    why: "unsafe code may stand in three places small enough to review whole, each use with its argument",
    find,
};

/// The ring between cores, the shared-memory words, and guest memory.
const PLACES: &[&str] = &["crates/threads/src/ring", "crates/stage/src/memory", "crates/target/src/guest"];

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for file in tree.rust() {
        for at in find_words(&file.code, "unsafe") {
            let line = line_of(&file.code, at);
            if !PLACES.iter().any(|place| file.path.starts_with(place)) {
                let remedy = format!("do without, or use what these offer: {}", PLACES.join("*, "));
                offences.push(file.offence(line + 1, "`unsafe` outside its places", remedy));
            } else if !is_argued(file, line) {
                let remedy = "write `// SAFETY: ` and the reason it is sound above it";
                offences.push(file.offence(line + 1, "`unsafe` without a SAFETY comment", remedy));
            }
        }
    }
    offences
}

/// Whether the comment of the statement that holds this line (counted from 0) argues for it.
fn is_argued(file: &File, line: usize) -> bool {
    let lines: Vec<&str> = file.text.lines().collect();
    let argues = |text: &str| text.contains("// SAFETY:") || text.contains("/// # Safety");
    let above = lines[..line].iter().rev().map(|text| text.trim());
    // A line that ends a statement or a block ends the search; a comment, an attribute or a first half does not.
    let above =
        above.take_while(|text| text.starts_with("//") || !(text.is_empty() || text.ends_with([';', '{', '}'])));
    argues(lines[line]) || above.into_iter().any(argues)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const RING: &str = "crates/threads/src/ring/slots.rs";

    #[test]
    fn argued_uses_in_their_places_are_allowed() {
        let text = "// SAFETY: one writer.\n// And more.\nlet x =\n    unsafe { read() };\n\
                    /// # Safety\n/// Call once.\n#[inline]\npub unsafe fn f() {}\n#![allow(unsafe_code)] // unsafe\n";
        assert!(found(&CHECK, &[(RING, text)]).is_empty());
    }

    #[test]
    fn other_places_and_silent_uses_are_refused() {
        assert_eq!(found(&CHECK, &[("crates/sim/src/a.rs", "// SAFETY: x\nunsafe {}\n")]), ["crates/sim/src/a.rs:2"]);
        let text = "// SAFETY: one writer.\nunsafe { a() };\nunsafe { b() };\n";
        assert_eq!(found(&CHECK, &[(RING, text)]), [format!("{RING}:3")]);
    }
}
