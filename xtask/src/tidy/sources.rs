//! That each number of a device file says where it comes from.

use super::tree::File;
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check =
    Check { name: "sources", why: "a device is data from somewhere: a number nobody can look up is a guess", find };

fn find(tree: &Tree) -> Vec<Offence> {
    let is_device = |file: &&File| file.path.starts_with("devices/") && file.path.ends_with(".toml");
    tree.files.iter().filter(is_device).flat_map(numbers_without_source).collect()
}

/// A table with a `source` key vouches for all its numbers; elsewhere each line with a number ends in a comment.
fn numbers_without_source(file: &File) -> Vec<Offence> {
    #[derive(Default)]
    struct Group {
        cited: bool,
        silent: Vec<usize>,
    }
    let mut groups = vec![Group::default()];
    for (index, line) in file.text.lines().enumerate() {
        if line.starts_with('[') {
            groups.push(Group::default());
            continue;
        }
        let group = groups.last_mut().expect("the lines before the first header are a group too");
        let (bare, comment) = without_strings(line);
        // A line without a key goes on with the array above it.
        let (key, value) = bare.split_once('=').unwrap_or(("", &bare));
        group.cited |= key.trim() == "source";
        if !comment && value.contains(|c: char| c.is_ascii_digit()) {
            group.silent.push(index + 1);
        }
    }
    let remedy = "cite it: a key `source = \"...\"` in its table, or a comment at the end of its line";
    let silent = groups.into_iter().filter(|group| !group.cited).flat_map(|group| group.silent);
    silent.map(|line| file.offence(line, "a number without its source", remedy)).collect()
}

/// A line of TOML without what stands in quotes and without its comment, and whether it had a comment.
fn without_strings(line: &str) -> (String, bool) {
    let (mut bare, mut quote) = (String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (None, '#') => return (bare, true),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, _) => bare.push(c),
            _ => {}
        }
    }
    (bare, false)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn a_source_key_or_a_comment_on_each_number_is_enough() {
        let text = "name = \"a 64-die # array\"\nclock = 2 # Table 1\n\n[bus]\nrate_mt_per_s = 800\nsource = \"ONFI 4\"\n\
                    [die]\n# free\nread_ns = { slc = 25 } # Table 2\n";
        assert!(found(&CHECK, &[("devices/a.toml", text), ("experiments/a.toml", "n = 1\n")]).is_empty());
    }

    #[test]
    fn a_number_nobody_vouches_for_is_found() {
        let text = "clock = 2\n[bus]\nsource = \"x\"\nrate = 1\n\
                    [[die]]\nread = 3 # Table 2\nwrite = 4\nlabel = \"# 5\"\nsteps = [\n  6,\n]\n";
        let expected = ["devices/a.toml:1", "devices/a.toml:7", "devices/a.toml:10"];
        assert_eq!(found(&CHECK, &[("devices/a.toml", text)]), expected);
    }
}
