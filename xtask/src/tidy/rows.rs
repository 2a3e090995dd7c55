//! The rows of an experiment in `results/`: chosen by what their keys say, and their numbers as a page shows them.

use super::Tree;
use serde_json::Value;

/// What one experiment wrote.
pub(super) struct Rows {
    path: String,
    rows: Vec<Value>,
}

impl Rows {
    /// Those of `results/NAME.json`, else what is wrong with it.
    pub(super) fn of(tree: &Tree, name: &str) -> Result<Self, String> {
        let path = format!("results/{name}.json");
        let file = tree.file(&path).ok_or_else(|| format!("there is no {path}"))?;
        let mut results: Value = serde_json::from_str(&file.text).map_err(|error| format!("{path}: {error}"))?;
        let Value::Array(rows) = results["rows"].take() else { return Err(format!("{path} has no rows")) };
        Ok(Self { path, rows })
    }

    /// The rows for which all of `key=value and key>=number and key<=number` hold, in the order of the file.
    pub(super) fn chosen(&self, conditions: &str) -> Vec<&Value> {
        let conditions: Vec<&str> = conditions.split(" and ").map(str::trim).filter(|one| !one.is_empty()).collect();
        self.rows.iter().filter(|row| conditions.iter().all(|one| holds(row, one))).collect()
    }

    pub(super) fn none_chosen(&self) -> String {
        format!("no row of {} is chosen", self.path)
    }
}

fn holds(row: &Value, condition: &str) -> bool {
    let limit = |sign: &str| {
        let (key, limit) = condition.split_once(sign)?;
        row[key].as_f64().zip(limit.parse::<f64>().ok())
    };
    if condition.contains(">=") {
        limit(">=").is_some_and(|(value, limit)| value >= limit)
    } else if condition.contains("<=") {
        limit("<=").is_some_and(|(value, limit)| value <= limit)
    } else {
        condition.split_once('=').is_some_and(|(key, value)| shown(&row[key]) == value)
    }
}

/// What stands behind `word` in clauses that `;` parts; nothing where it is not among them.
pub(super) fn clause<'a>(clauses: &'a str, word: &str) -> &'a str {
    let mut all = clauses.split(';').filter_map(|clause| clause.trim().split_once(' '));
    all.find(|(first, _)| *first == word).map_or("", |(_, rest)| rest.trim())
}

pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// With so many decimals, thousands apart; behind the decimals may stand what it is shown as: `%` a share, `+%` and `-%` what a ratio
/// is above and below one, `K` and `M` thousands and millions.
pub(super) fn number(value: f64, form: &str) -> String {
    let (decimals, unit) = form.split_at(form.find(|c: char| !c.is_ascii_digit()).unwrap_or(form.len()));
    let (value, behind) = match unit {
        "%" => (value * 100.0, " %"),
        "+%" => ((value - 1.0) * 100.0, " %"),
        "-%" => ((1.0 - value) * 100.0, " %"),
        "K" => (value / 1e3, " K"),
        "M" => (value / 1e6, " M"),
        _ => (value, ""),
    };
    let digits = format!("{value:.*}", decimals.parse().unwrap_or(0));
    let (whole, rest) = digits.find('.').map_or((&digits[..], ""), |dot| digits.split_at(dot));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut apart = String::from(sign);
    for (at, digit) in whole.bytes().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit.into());
    }
    apart + rest + behind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart_and_units_behind() {
        for (value, form, text) in [
            (999.4, "0", "999"),
            (1e6, "0", "1,000,000"),
            (-1234.0, "0", "-1,234"),
            (0.0123, "1%", "1.2 %"),
            (123.0, "0", "123"),
            (1.46, "0+%", "46 %"),
            (0.826, "1-%", "17.4 %"),
            (1.31e6, "2M", "1.31 M"),
        ] {
            assert_eq!(number(value, form), text);
        }
    }

    #[test]
    fn rows_are_chosen_by_words_and_by_limits() {
        let rows =
            r#"{"rows": [{"series": "one, slow", "at": 1}, {"series": "two", "at": 2}, {"series": "two", "at": 3}]}"#;
        let tree = Tree::of(&[("results/fig.json", rows)]);
        let rows = Rows::of(&tree, "fig").unwrap();
        let at = |conditions: &str| {
            rows.chosen(conditions).iter().map(|row| row["at"].as_u64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(at(""), [1, 2, 3]);
        assert_eq!(at("series=one, slow"), [1]);
        assert_eq!(at("series=two and at>=3"), [3]);
        assert_eq!(at("at<=2 and at>=2"), [2]);
        assert_eq!((at("at>=many"), at("nothing>=1"), at("series")), (vec![], vec![], vec![]));
    }
}
