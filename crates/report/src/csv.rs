//! Rows of figures as CSV (RFC 4180), for experiments and for other programs. Units are in the names of the columns.

use crate::{Figure, Summary};

/// One field of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Text; quoted where it has to be.
    Text(String),
    /// A figure, written so that reading it back gives the same number.
    Number(f64),
    /// A whole number, all its digits.
    Whole(u64),
    /// Nothing: the run has no such part.
    Empty,
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Field::Text(text.to_owned())
    }
}
impl From<f64> for Field {
    fn from(number: f64) -> Self {
        Field::Number(number)
    }
}
impl From<u64> for Field {
    fn from(number: u64) -> Self {
        Field::Whole(number)
    }
}
impl<T: Into<Field>> From<Option<T>> for Field {
    fn from(field: Option<T>) -> Self {
        field.map_or(Field::Empty, Into::into)
    }
}

/// A table in CSV, growing row by row.
#[derive(Clone, Debug)]
pub struct Csv {
    columns: usize,
    text: String,
}

impl Csv {
    /// A table with these columns; their names end in their units (`latency_mean_ns`).
    pub fn new<T: AsRef<str>>(columns: &[T]) -> Csv {
        let mut csv = Csv { columns: columns.len(), text: String::new() };
        csv.row(columns.iter().map(|name| Field::from(name.as_ref())));
        csv
    }

    /// Adds a row, which must have as many fields as the table has columns.
    pub fn row(&mut self, fields: impl IntoIterator<Item = Field>) {
        let mut count = 0;
        for field in fields {
            if count > 0 {
                self.text.push(',');
            }
            self.text += &written(&field);
            count += 1;
        }
        assert_eq!(count, self.columns, "a row has as many fields as the table has columns");
        self.text.push('\n');
    }

    /// The whole table.
    pub fn finish(self) -> String {
        self.text
    }
}

fn written(field: &Field) -> String {
    match field {
        Field::Text(text) if text.contains([',', '"', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
        Field::Text(text) => text.clone(),
        Field::Number(number) => number.to_string(),
        Field::Whole(number) => number.to_string(),
        Field::Empty => String::new(),
    }
}

/// Several runs, a row each, with these figures of theirs after their labels and what was run.
pub fn runs_csv(runs: &[(&str, &Summary)], figures: &[Figure]) -> String {
    let named = ["run", "architecture", "device", "processor", "workload", "world", "seed"].map(str::to_owned);
    let columns: Vec<String> = named.into_iter().chain(figures.iter().map(|figure| figure.column())).collect();
    let mut csv = Csv::new(&columns);
    for (index, (label, run)) in runs.iter().enumerate() {
        let texts = [label, run.architecture.as_str(), &run.device, &run.processor].map(Field::from);
        let workload = Field::from(run.workload.as_deref());
        let rest = [workload, Field::from(run.world.as_str()), Field::from(run.seed)];
        let values = figures.iter().map(|figure| Field::from(figure.values[index]));
        csv.row(texts.into_iter().chain(rest).chain(values));
    }
    csv.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;
    use crate::sample::sample;

    #[test]
    fn fields_are_quoted_only_where_they_must_be() {
        let mut csv = Csv::new(&["name", "latency_mean_ns", "bytes", "none"]);
        csv.row(["a \"b\", c".into(), 0.1.into(), u64::MAX.into(), None::<f64>.into()]);
        assert_eq!(csv.finish(), "name,latency_mean_ns,bytes,none\n\"a \"\"b\"\", c\",0.1,18446744073709551615,\n");
    }

    #[test]
    #[should_panic(expected = "as many fields")]
    fn a_short_row_is_refused() {
        Csv::new(&["a", "b"]).row([Field::Empty]);
    }

    #[test]
    fn runs_make_rows_under_the_same_columns() {
        let (mut first, second) = (sample(), sample());
        first.cache = None;
        first.workload = Some("mixed".into());
        let text = runs_csv(&[("a", &first), ("b", &second)], &figures(&[&first, &second]));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let column = rows[0].iter().position(|name| *name == "cache_hits_share").unwrap();
        assert_eq!(rows[1][column], "");
        // The workload of the second run holds a comma, and so one more piece.
        assert_eq!(rows[2][column + 1], "0.62");
        assert_eq!((rows[1].len(), rows[2].len()), (rows[0].len(), rows[0].len() + 1));
    }
}
