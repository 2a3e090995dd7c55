//! How long a file, a function and a line may be.

use super::source::{item_end, line_of, names_after};
use super::tree::File;
use super::{Check, Offence, Tree};

pub(super) const CHECK: Check =
    Check { name: "lengths", why: "what fits a screen is read whole; what does not is two things", find };

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const CODE_COLUMNS_MAX: usize = 120;
/// Comments, and strings, which rustfmt does not break.
const TEXT_COLUMNS_MAX: usize = 140;
/// Tables transcribed from the specification: as long as the specification's.
const SPECIFICATION: &str = "crates/nvme/src/spec";

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for file in tree.rust() {
        let lines = file.code.lines().count();
        if lines > FILE_LINES_MAX && !file.path.starts_with(SPECIFICATION) {
            let what = format!("the file has {lines} lines, more than {FILE_LINES_MAX}");
            offences.push(file.offence(FILE_LINES_MAX + 1, what, "split it by what its parts are for"));
        }
        offences.extend(long_lines(file));
        for (start, name) in names_after(&file.code, "fn") {
            let (first, last) = (line_of(&file.code, start), line_of(&file.code, item_end(&file.code, start)));
            let lines = last - first + 1;
            if lines > FUNCTION_LINES_MAX {
                let what = format!("function {name} has {lines} lines, more than {FUNCTION_LINES_MAX}");
                offences.push(file.offence(first + 1, what, "give its parts names of their own"));
            }
        }
    }
    offences
}

fn long_lines(file: &File) -> impl Iterator<Item = Offence> {
    file.text.lines().zip(file.code.lines()).enumerate().filter_map(|(index, (text, code))| {
        let columns = text.chars().count();
        let limit = if text == code { CODE_COLUMNS_MAX } else { TEXT_COLUMNS_MAX };
        let what = format!("the line has {columns} columns, more than {limit}");
        (columns > limit).then(|| file.offence(index + 1, what, "break it"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    fn lines(count: usize) -> String {
        "x();\n".repeat(count)
    }

    #[test]
    fn files_have_a_limit_and_specification_tables_none() {
        assert!(found(&CHECK, &[("a.rs", &lines(600))]).is_empty());
        assert!(found(&CHECK, &[("crates/nvme/src/spec/status.rs", &lines(601))]).is_empty());
        assert_eq!(found(&CHECK, &[("a.rs", &lines(601))]), ["a.rs:601"]);
    }

    #[test]
    fn functions_end_where_their_own_brace_closes() {
        let body =
            |count| format!("//! A.\nfn f<'a>(x: &'a [u8; 4]) -> char {{\n{}'}}'\n}}\n{}", lines(count), lines(80));
        assert!(found(&CHECK, &[("a.rs", &body(67))]).is_empty());
        assert_eq!(found(&CHECK, &[("a.rs", &body(68))]), ["a.rs:2"]);
        let declared = format!("trait T {{\n    fn f();\n{}\n}}\nlet x: fn(u8) = y;\n{}", lines(75), lines(80));
        assert!(found(&CHECK, &[("a.rs", &declared)]).is_empty());
    }

    #[test]
    fn text_may_be_wider_than_code() {
        for (text, allowed) in [
            ("x".repeat(120), true),
            ("x".repeat(121), false),
            (format!("// {}", "µ".repeat(137)), true),
            (format!("// {}", "x".repeat(138)), false),
            (format!("f(\"{}\");", "x".repeat(130)), true),
        ] {
            assert_eq!(found(&CHECK, &[("a.rs", &text)]).is_empty(), allowed, "{text}");
        }
    }
}
