//! That the tables of pages which show experiments are what the rows in `results/` say; `cargo xtask tables` writes them.
//!
//! ```text
//! <!-- table fig15: where pattern=randread; rows queues; columns series; cells iops 0 -->
//! | queues | static | dynamic |      a person writes the head, this the body
//! |---|---|---|
//! ```
//! `where` chooses rows, `rows` are the keys in the first cells of a line, `columns` the keys whose values stand side by side in the
//! order of the file; without `columns` there is a cell for each metric. A metric has its decimals behind it, and `%` where it is a share.

use super::rows::{Rows, clause, number, shown};
use super::{Check, File, Offence, Tree};
use serde_json::Value;
use std::path::Path;

pub(super) const CHECK: Check =
    Check { name: "tables", why: "a table that was typed says what an older build did", find };

const MARK: &str = "<!-- table ";

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for page in tree.pages() {
        match filled(tree, page) {
            Ok(text) => {
                let differs = |(at, (old, new)): (usize, (&str, &str))| (old != new).then_some(at + 1);
                let first = page.text.lines().zip(text.lines()).enumerate().find_map(differs);
                if text != page.text {
                    let line = first.unwrap_or(1);
                    offences.push(page.offence(line, "a table that is not of results/", "cargo xtask tables"));
                }
            }
            Err((line, what)) => offences.push(page.offence(line, what, "mend the comment above the table")),
        }
    }
    offences
}

/// Writes every table anew.
pub(crate) fn fill(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    for page in tree.pages() {
        let text = filled(&tree, page).map_err(|(line, what)| format!("{}:{line}: {what}", page.path))?;
        if text != page.text {
            std::fs::write(root.join(&page.path), text).map_err(|error| format!("{}: {error}", page.path))?;
            println!("{} has new figures", page.path);
        }
    }
    Ok(())
}

/// The page with the bodies of its tables made from the rows; else the line that cannot be followed and why.
fn filled(tree: &Tree, page: &File) -> Result<String, (usize, String)> {
    let mut text = String::new();
    let mut lines = page.text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        text += &format!("{line}\n");
        let Some(spec) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        for _ in 0..2 {
            let head = lines.next_if(|(_, line)| line.starts_with('|'));
            let (_, head) = head.ok_or((at + 1, "no head of a table follows".to_string()))?;
            text += &format!("{head}\n");
        }
        while lines.next_if(|(_, line)| line.starts_with('|')).is_some() {}
        text += &body(tree, spec).map_err(|what| (at + 1, what))?;
    }
    Ok(text)
}

fn body(tree: &Tree, spec: &str) -> Result<String, String> {
    let (name, clauses) = spec.split_once(':').ok_or("expected `table NAME: clauses`")?;
    let rows = Rows::of(tree, name)?;
    let clause = |wanted: &str| clause(clauses, wanted);
    let chosen = rows.chosen(clause("where"));
    let key = |row: &Value, keys: &str| keys.split_whitespace().map(|key| shown(&row[key])).collect::<Vec<_>>();
    let [labels, columns] = ["rows", "columns"].map(|keys| distinct(chosen.iter().map(|row| key(row, clause(keys)))));
    let cells: Vec<&str> = clause("cells").split(',').map(str::trim).collect();
    let mut body = String::new();
    for label in &labels {
        body += &format!("| {} |", label.join(" | "));
        for column in &columns {
            let of_cell = |row: &&&Value| key(row, clause("rows")) == *label && key(row, clause("columns")) == *column;
            let row = chosen.iter().find(of_cell);
            for cell in &cells {
                let (metric, form) = cell.split_once(' ').ok_or_else(|| format!("{cell} has no decimals"))?;
                let value = row.and_then(|row| row.get(metric)).and_then(Value::as_f64);
                body += &format!(" {} |", value.map_or("-".into(), |value| number(value, form)));
            }
        }
        body += "\n";
    }
    if labels.is_empty() { Err(rows.none_chosen()) } else { Ok(body) }
}

/// Each once, in the order in which they come first.
fn distinct(all: impl Iterator<Item = Vec<String>>) -> Vec<Vec<String>> {
    let mut known = Vec::new();
    all.for_each(|one| {
        if !known.contains(&one) {
            known.push(one);
        }
    });
    known
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const RESULTS: (&str, &str) = (
        "results/fig.json",
        r#"{"rows": [{"series": "a", "queues": 1, "iops": 1234.5, "share": 0.5}, {"series": "b", "queues": 1, "iops": 7}]}"#,
    );

    #[test]
    fn a_table_of_the_rows_is_no_offence_and_another_is_found_where_it_differs() {
        let page = |cell: &str| {
            format!(
                "<!-- table fig: rows queues; columns series; cells iops 1 -->\n| | a | b |\n|---|---|---|\n| 1 | {cell} | 7.0 |\n"
            )
        };
        assert!(found(&CHECK, &[RESULTS, ("docs/a.md", &page("1,234.5"))]).is_empty());
        assert_eq!(found(&CHECK, &[RESULTS, ("docs/a.md", &page("1,234.6"))]), ["docs/a.md:4"]);
    }

    #[test]
    fn metrics_stand_side_by_side_and_what_is_not_there_is_a_dash() {
        let spec = "fig: rows series; cells iops 0, share 0%";
        let tree = Tree::of(&[RESULTS]);
        assert_eq!(body(&tree, spec).unwrap(), "| a | 1,234 | 50 % |\n| b | 7 | - |\n");
        assert_eq!(body(&tree, "fig: where series=b; rows queues; cells iops 0").unwrap(), "| 1 | 7 |\n");
        assert_eq!(
            body(&tree, "fig: where series=c; rows queues; cells iops 0"),
            Err("no row of results/fig.json is chosen".into())
        );
        assert_eq!(body(&tree, "none: rows queues"), Err("there is no results/none.json".into()));
    }
}
