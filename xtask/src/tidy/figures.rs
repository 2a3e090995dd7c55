//! That the figures in sentences are what the rows in `results/` say. A comment below a paragraph tells where each is from:
//!
//! ```text
//! With one thread random reads stop at 607 K IOPS.
//! <!-- says fig16b: "607 K IOPS" iops 0K; where series=1 thread and pattern=randread -->
//! ```
//! Behind the quoted words stand a metric and how it is shown. Of several rows the least and the most stand in the sentence, unless
//! `take least`, `take most`, `take mean` or `take each` says which; `take each KEY` is one row for each value of a key. `over key=value`
//! divides by the rows that differ in these keys.

use super::rows::{Rows, clause, number, shown};
use super::{Check, Offence, Tree};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const CHECK: Check =
    Check { name: "figures", why: "a figure that was typed into a sentence says what an older build did", find };

const MARK: &str = "<!-- says ";

fn find(tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for page in tree.pages() {
        let mut paragraph = String::new();
        let mut marked = false;
        for (at, line) in page.text.lines().enumerate() {
            if let Some(mark) = line.strip_prefix(MARK) {
                marked = true;
                if let Err(what) = judged(tree, &paragraph, mark.trim_end_matches("-->").trim()) {
                    offences.push(page.offence(at + 1, what, "write what the rows say, or mend the comment"));
                }
                continue;
            }
            if line.is_empty() || std::mem::take(&mut marked) {
                paragraph.clear();
            }
            paragraph += line.trim();
            paragraph.push(' ');
        }
    }
    offences
}

/// Whether the words of a mark stand in the paragraph above it, with the numbers that the rows have.
fn judged(tree: &Tree, paragraph: &str, mark: &str) -> Result<(), String> {
    let (name, rest) = mark.split_once(": \"").ok_or("expected `says NAME: \"words\" metric form; clauses`")?;
    let (words, clauses) = rest.split_once('"').ok_or("the words have no end")?;
    if !stands(paragraph, words) {
        return Err(format!("no sentence above has the words \"{words}\""));
    }
    let (metric, form) = clauses.split(';').next().and_then(|first| first.trim().split_once(' ')).ok_or("no metric")?;
    let values = values(&Rows::of(tree, name)?, metric, clauses)?;
    let right = |of: &[f64]| of.iter().map(|value| number(*value, form)).collect::<Vec<_>>();
    let [least, most] = [f64::min, f64::max].map(|choose| values.iter().copied().reduce(choose).unwrap_or(f64::NAN));
    let (mut right, any_order) = match clause(clauses, "take") {
        "" => (right(&[least, most]), true),
        each if each.starts_with("each") => (right(&values), false),
        "least" => (right(&[least]), false),
        "most" => (right(&[most]), false),
        "mean" => (right(&[values.iter().sum::<f64>() / values.len() as f64]), false),
        other => return Err(format!("`take {other}` is not known: each, least, most, mean")),
    };
    if any_order {
        right.dedup();
    }
    let (said, behind) = numbers(words);
    let parts = || right.iter().map(|text| text.split_once(' ').unwrap_or((text, "")));
    let figures: Vec<&str> = parts().map(|(figure, _)| figure).collect();
    let is_said = said == figures || any_order && said.iter().eq(figures.iter().rev());
    let unit = parts().next().map_or("", |(_, unit)| unit);
    if is_said && UNITS.iter().find(|unit| **unit == behind).copied().unwrap_or("") == unit {
        return Ok(());
    }
    Err(format!("\"{words}\": the rows say {}", right.join(if any_order { " to " } else { ", " })))
}

/// What a figure may be shown as; behind several it stands once.
const UNITS: [&str; 3] = ["%", "K", "M"];

/// Whether the words stand there, and not in the middle of a longer number.
fn stands(paragraph: &str, words: &str) -> bool {
    paragraph.match_indices(words).any(|(at, _)| {
        let (before, after) = (paragraph[..at].chars().next_back(), paragraph[at + words.len()..].chars().next());
        let begins = !words.starts_with(is_digit) || !before.is_some_and(|c| is_digit(c) || ".,-".contains(c));
        begins && (!words.ends_with(is_digit) || !after.is_some_and(is_digit))
    })
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// The metric in each chosen row; what it is over that in the rows of `over`, where there is such a clause.
fn values(rows: &Rows, metric: &str, clauses: &str) -> Result<Vec<f64>, String> {
    let of = |conditions: &str| -> Result<Vec<f64>, String> {
        let mut chosen = rows.chosen(conditions);
        if let Some(key) = clause(clauses, "take").strip_prefix("each ") {
            let mut known = BTreeSet::new();
            chosen.retain(|row| known.insert(shown(&row[key])));
        }
        let values: Vec<f64> = chosen.iter().filter_map(|row| row.get(metric).and_then(Value::as_f64)).collect();
        if values.is_empty() { Err(format!("{} with {metric}", rows.none_chosen())) } else { Ok(values) }
    };
    let (conditions, other) = (clause(clauses, "where"), clause(clauses, "over"));
    let values = of(conditions)?;
    if other.is_empty() {
        return Ok(values);
    }
    let replaced = |one: &&str| other.split(" and ").any(|new| new.split('=').next() == one.split('=').next());
    let kept = conditions.split(" and ").filter(|one| !replaced(one)).chain([other]).collect::<Vec<_>>().join(" and ");
    let base = of(&kept)?;
    if base.len() != values.len() {
        return Err(format!("{} rows stand over {}", values.len(), base.len()));
    }
    Ok(values.iter().zip(base).map(|(value, base)| value / base).collect())
}

/// The numbers that stand in `words`, and the word behind the last.
fn numbers(words: &str) -> (Vec<&str>, &str) {
    let is_part = |c: char| is_digit(c) || ".,-".contains(c);
    let parts = words.split(|c| !is_part(c)).map(|part| part.trim_end_matches(['.', ',', '-']));
    let last = words.rfind(is_digit).map_or("", |at| &words[at + 1..]);
    (parts.filter(|part| part.contains(is_digit)).collect(), last.split_whitespace().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const RESULTS: (&str, &str) = (
        "results/fig.json",
        r#"{"rows": [{"series": "a", "cores": 2, "iops": 607262, "w": 7.2}, {"series": "a", "cores": 4, "iops": 1213000, "w": 7.3},
            {"series": "b", "cores": 2, "iops": 303631}, {"series": "b", "cores": 4, "iops": 303250}]}"#,
    );

    #[test]
    fn a_sentence_with_the_figures_of_the_rows_is_no_offence_and_another_is_found() {
        let page =
            |watts: &str| format!("It takes {watts}\nin all.\n<!-- says fig: \"{watts}\" w 1; where series=a -->\n");
        assert!(found(&CHECK, &[RESULTS, ("docs/a.md", &page("7.2 to 7.3 W"))]).is_empty());
        assert_eq!(found(&CHECK, &[RESULTS, ("docs/a.md", &page("7.2 to 7.4 W"))]), ["docs/a.md:3"]);
        assert_eq!(found(&CHECK, &[RESULTS, ("docs/a.md", &page("7.2 W"))]), ["docs/a.md:3"]);
        let apart = "It takes 7.2 to 7.3 W.\n\n<!-- says fig: \"7.2 to 7.3 W\" w 1; where series=a -->\n";
        assert_eq!(found(&CHECK, &[RESULTS, ("docs/a.md", apart)]), ["docs/a.md:3"]);
    }

    #[test]
    fn one_row_a_ratio_and_a_chosen_one_of_several() {
        let tree = Tree::of(&[RESULTS]);
        let says = |words: &str, clauses: &str| judged(&tree, words, &format!("fig: \"{words}\" {clauses}"));
        assert_eq!(says("607 K", "iops 0K; where series=a and cores=2"), Ok(()));
        assert_eq!(says("2.0 to 4.0 times", "iops 1; where series=a; over series=b"), Ok(()));
        assert_eq!(says("up to 4.0", "iops 1; where series=a; over series=b; take most"), Ok(()));
        assert_eq!(says("1.21 M", "iops 2M; take most"), Ok(()));
        assert_eq!(says("7.2 and 7.3", "w 1; take each"), Ok(()));
        assert_eq!(says("607, 1,213, 304 and 303 K", "iops 0K; take each"), Ok(()));
        assert!(says("607, 304, 1,213 and 303", "iops 0K; take each").is_err());
        assert!(says("303, 304, 1,213 and 607 K", "iops 0K; take each").is_err());
        assert_eq!(says("910,131", "iops 0; where series=a; take mean"), Ok(()));
        assert_eq!(says("608 K", "iops 0K; where series=a and cores=2"), Err("\"608 K\": the rows say 607 K".into()));
        assert_eq!(says("1", "iops 0; where series=c"), Err("no row of results/fig.json is chosen with iops".into()));
        assert_eq!(says("1", "iops 0; take any"), Err("`take any` is not known: each, least, most, mean".into()));
        assert!(judged(&tree, "words", "fig: words").is_err());
        for words in ["607 M", "607 %", "607"] {
            assert!(says(words, "iops 0K; where series=a and cores=2").is_err(), "{words}");
        }
        let within = |paragraph: &str| judged(&tree, paragraph, "fig: \"7.2 W\" w 1; where series=a and cores=2");
        assert_eq!(
            [within("7.2 W").is_ok(), within("17.2 W").is_ok(), within("at 7.2 W").is_ok()],
            [true, false, true]
        );
        let twice = r#"{"rows": [{"x": 5}, {"x": 5}, {"x": 6}]}"#;
        let tree = Tree::of(&[("results/fig.json", twice)]);
        let each = |words: &str| judged(&tree, words, &format!("fig: \"{words}\" x 0; take each"));
        assert!(each("5, 5 and 6").is_ok() && each("5 and 6").is_err());
        assert_eq!(judged(&tree, "5 and 6", "fig: \"5 and 6\" x 0; take each x"), Ok(()));
    }
}
