//! Where a row stands along the horizontal axis: at its number, at the size that its text is, or in a place of its own.

use crate::points::plain;
use serde_json::Value;
use units::Bytes;

/// A place along the axis, and what it is called there where that is not its number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) at: f64,
    pub(super) name: Option<String>,
}

/// How the values of a column are laid out.
#[derive(Debug, PartialEq)]
pub(super) enum Along {
    Numbers,
    Sizes,
    /// In this order, each as far from the next: some of them are no figures.
    Categories(Vec<Value>),
}

impl Along {
    /// Of all rows of a plot together, so that its panels have one axis.
    pub(super) fn of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Along {
        let mut known: Vec<Value> = Vec::new();
        for value in values.into_iter().filter(|value| !value.is_null()) {
            if !known.contains(value) {
                known.push(value.clone());
            }
        }
        match &known[..] {
            // A column that says nothing has one place for all.
            [] => Along::Categories(vec![Value::Null]),
            _ if known.iter().all(Value::is_number) => Along::Numbers,
            _ if known.iter().all(|value| size(value).is_some()) => Along::Sizes,
            _ => Along::Categories(known),
        }
    }

    /// None for what is nowhere: a figure that a row does not have.
    pub(super) fn place(&self, value: &Value) -> Option<Place> {
        let at = match self {
            Along::Numbers => value.as_f64(),
            Along::Sizes => size(value),
            Along::Categories(known) => known.iter().position(|other| other == value).map(|at| at as f64),
        };
        let name = || if value.is_null() { String::new() } else { plain(value) };
        Some(Place { at: at?, name: (*self != Along::Numbers).then(name) })
    }

    /// Whether places are figures, which alone have a logarithm.
    pub(super) fn is_of_figures(&self) -> bool {
        !matches!(self, Along::Categories(_))
    }
}

/// Bytes, where a text says so many, or a number stands beside such texts.
fn size(value: &Value) -> Option<f64> {
    value.as_str().map_or_else(|| value.as_f64(), |text| Bytes::parse(text).map(|bytes| bytes.0 as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places(values: &[Value]) -> Vec<Option<f64>> {
        let along = Along::of(values);
        values.iter().map(|value| along.place(value).map(|place| place.at)).collect()
    }

    #[test]
    fn figures_and_sizes_stand_where_they_are_and_words_side_by_side() {
        assert_eq!(places(&[json!(4), json!(null), json!(0.5)]), [Some(4.0), None, Some(0.5)]);
        assert_eq!(places(&[json!("4KiB"), json!("64k"), json!(512)]), [Some(4096.0), Some(65_536.0), Some(512.0)]);
        assert_eq!(places(&[json!("auto"), json!(9), json!("auto"), json!(1)]), [0.0, 1.0, 0.0, 2.0].map(Some));
        assert_eq!(places(&[json!(true), json!(false)]), [Some(0.0), Some(1.0)]);
        assert_eq!(places(&[json!(null), json!(null)]), [Some(0.0); 2], "a column that no row has");
        let named = |value: Value| Along::of([&value]).place(&value).and_then(|place| place.name);
        assert_eq!(
            (named(json!("4KiB")), named(json!(4)), named(json!(true))),
            (Some("4KiB".into()), None, Some("true".into()))
        );
    }
}
