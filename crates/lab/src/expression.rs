//! A metric as a file spells it: arithmetic over figures of a run's summary, such as `sum(groups.*.energy_j) / ios`.

use crate::analysis;
use serde_json::Value;

/// Arithmetic over paths. A path is names with dots; `*` stands for every name or element of one level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Number(f64),
    Path(Vec<String>),
    Call(Function, Vec<Expression>),
    Binary(char, Box<Expression>, Box<Expression>),
}

/// What can be done with a list of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Sum,
    Mean,
    Min,
    Max,
    /// The first argument, or the second where the run has no such figure.
    Or,
    /// Write amplification by analysis: of physical over logical pages, and pages of a group.
    Greedy,
}

const FUNCTIONS: [(&str, Function, usize); 6] = [
    ("sum", Function::Sum, 1),
    ("mean", Function::Mean, 1),
    ("min", Function::Min, 1),
    ("max", Function::Max, 1),
    ("or", Function::Or, 2),
    ("greedy", Function::Greedy, 2),
];

/// Names, numbers and signs of an expression: it is read and reckoned part within part, each of which takes some of the stack.
const TOKENS_MAX: usize = 1_000;

/// What figures are looked up in: the first that has a path gives it.
pub(crate) type Scopes<'a> = [&'a Value];

impl Expression {
    /// Reads an expression; the complaint says what was expected.
    pub(crate) fn parse(text: &str) -> Result<Expression, String> {
        let mut parser = Parser { tokens: tokens(text)?, at: 0 };
        if parser.tokens.len() > TOKENS_MAX {
            return Err(format!("at most {TOKENS_MAX} names, numbers and signs, not {}", parser.tokens.len()));
        }
        let expression = parser.sum()?;
        match parser.peek() {
            None => Ok(expression),
            Some(token) => Err(format!("an operator before {token}")),
        }
    }

    /// Its value; none where the run lacks a figure that it needs, or there is more than one.
    pub(crate) fn value(&self, scopes: &Scopes<'_>) -> Option<f64> {
        match self.list(scopes)?[..] {
            [value] if value.is_finite() => Some(value),
            _ => None,
        }
    }

    /// Whether it has no value although no figure lacks: of finite figures that is a division by zero, or more than numbers hold.
    pub(crate) fn is_not_finite(&self, scopes: &Scopes<'_>) -> bool {
        matches!(self.list(scopes).as_deref(), Some([value]) if !value.is_finite())
    }

    /// The paths in it, each with whether something stands for it where it is not there.
    pub(crate) fn paths(&self) -> Vec<(&[String], bool)> {
        match self {
            Expression::Number(_) => Vec::new(),
            Expression::Path(path) => vec![(path, false)],
            Expression::Call(Function::Or, arguments) => {
                let first = arguments[0].paths().into_iter().map(|(path, _)| (path, true));
                first.chain(arguments[1].paths()).collect()
            }
            Expression::Call(_, arguments) => arguments.iter().flat_map(Expression::paths).collect(),
            Expression::Binary(_, left, right) => [left.paths(), right.paths()].concat(),
        }
    }

    /// Whether one of these paths is in it.
    pub(crate) fn needs(&self, paths: &[&str]) -> bool {
        self.paths().iter().any(|(path, _)| paths.contains(&path.join(".").as_str()))
    }

    fn list(&self, scopes: &Scopes<'_>) -> Option<Vec<f64>> {
        match self {
            Expression::Number(number) => Some(vec![*number]),
            Expression::Path(path) => scopes.iter().find_map(|scope| {
                let mut found = Vec::new();
                collect(scope, path, &mut found);
                (!found.is_empty()).then_some(found)
            }),
            Expression::Call(Function::Or, arguments) => {
                arguments[0].list(scopes).or_else(|| arguments[1].list(scopes))
            }
            Expression::Call(Function::Greedy, arguments) => {
                let [ratio, pages] = [0, 1].map(|at| arguments[at].value(scopes));
                Some(vec![analysis::greedy(ratio?, pages?)?])
            }
            Expression::Call(function, arguments) => {
                let list = arguments[0].list(scopes)?;
                let sum: f64 = list.iter().sum();
                Some(vec![match function {
                    Function::Sum => sum,
                    Function::Mean => sum / list.len() as f64,
                    Function::Min => list.iter().copied().fold(f64::INFINITY, f64::min),
                    _ => list.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                }])
            }
            Expression::Binary(operator, left, right) => {
                let (left, right) = (left.list(scopes)?, right.list(scopes)?);
                combine(*operator, &left, &right)
            }
        }
    }
}

/// Element by element; a single figure goes with each of the others.
fn combine(operator: char, left: &[f64], right: &[f64]) -> Option<Vec<f64>> {
    let apply = |left: f64, right: f64| match operator {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        _ => left / right,
    };
    let of = |list: &[f64], index: usize| if list.len() == 1 { list[0] } else { list[index] };
    let count = left.len().max(right.len());
    let fits = [left, right].iter().all(|list| list.len() == 1 || list.len() == count);
    fits.then(|| (0..count).map(|index| apply(of(left, index), of(right, index))).collect())
}

fn collect(value: &Value, path: &[String], found: &mut Vec<f64>) {
    let Some((first, rest)) = path.split_first() else {
        match value {
            Value::Array(items) => items.iter().for_each(|item| collect(item, path, found)),
            Value::Bool(flag) => found.push(f64::from(u8::from(*flag))),
            value => found.extend(value.as_f64()),
        }
        return;
    };
    match value {
        Value::Object(fields) if first == "*" => fields.values().for_each(|value| collect(value, rest, found)),
        Value::Array(items) if first == "*" => items.iter().for_each(|item| collect(item, rest, found)),
        Value::Object(fields) => fields.get(first).into_iter().for_each(|value| collect(value, rest, found)),
        Value::Array(items) => {
            let index: Option<usize> = first.parse().ok();
            index.and_then(|index| items.get(index)).into_iter().for_each(|value| collect(value, rest, found));
        }
        _ => {}
    }
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let length = match first {
            '+' | '-' | '/' | '(' | ')' | ',' | '*' => 1,
            _ if is_name(first) => name_length(rest),
            other => return Err(format!("a figure's path, a number or + - * / ( ), not {other:?}")),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// A name goes on over dots, and over `*` after a dot; a number over its exponent's sign.
fn name_length(text: &str) -> usize {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let goes_on = c.is_ascii_alphanumeric()
            || c == '_'
            || c == '.'
            || (c == '*' && before == '.')
            || (is_number && before == 'e' && (c == '-' || c == '+'));
        if !goes_on {
            return at;
        }
        before = c;
    }
    text.len()
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn take(&mut self, wanted: &[&str]) -> Option<char> {
        let found = self.peek().filter(|token| wanted.contains(token))?.chars().next();
        self.at += 1;
        found
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        let found = self.peek().map_or("the end".to_owned(), str::to_owned);
        self.take(&[wanted]).map(|_| ()).ok_or_else(|| format!("{wanted} before {found}"))
    }

    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        while let Some(operator) = self.take(&["+", "-"]) {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.atom()?;
        while let Some(operator) = self.take(&["*", "/"]) {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expression, String> {
        if self.take(&["("]).is_some() {
            let inner = self.sum()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let Some(token) = self.peek().map(str::to_owned) else {
            return Err("a figure's path or a number at the end".into());
        };
        self.at += 1;
        // Words such as `inf` are paths.
        let number = token.parse::<f64>().ok().filter(|_| !token.starts_with(|c: char| c.is_ascii_alphabetic()));
        match number {
            Some(number) if number.is_finite() => return Ok(Expression::Number(number)),
            Some(_) => return Err(format!("a number up to {:.1e}, not {token}", f64::MAX)),
            None => {}
        }
        if !token.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(format!("a figure's path or a number, not {token}"));
        }
        if self.take(&["("]).is_none() {
            let path: Vec<String> = token.split('.').map(str::to_owned).collect();
            let whole = path.iter().all(|name| !name.is_empty());
            return whole.then_some(Expression::Path(path)).ok_or_else(|| format!("names between the dots of {token}"));
        }
        let Some((_, function, count)) = FUNCTIONS.iter().find(|(name, ..)| *name == token) else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
            return Err(format!("one of {} instead of {token}", names.join(", ")));
        };
        let mut arguments = vec![self.sum()?];
        for _ in 1..*count {
            self.expect(",")?;
            arguments.push(self.sum()?);
        }
        self.expect(")")?;
        Ok(Expression::Call(*function, arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Option<f64> {
        let run = json!({
            "iops": 10.0, "list": [1, 2, 6], "text": "no",
            "groups": {"a": {"threads": 2, "use": 0.5}, "b": {"threads": 4, "use": 0.25}},
            "is": true, "is_not": false,
        });
        let config = json!({"cores": 4, "iops": 99});
        Expression::parse(text).unwrap().value(&[&run, &config])
    }

    #[test]
    fn figures_are_found_and_reckoned_with() {
        for (text, expected) in [
            ("iops", 10.0),
            ("iops / cores - 1e-1 * 5", 2.0),
            ("2*(iops+cores)", 28.0),
            ("sum(list)", 9.0),
            ("mean(list)", 3.0),
            ("max(list) / min(list)", 6.0),
            ("list.2", 6.0),
            ("sum(groups.*.threads * groups.*.use)", 2.0),
            ("max(groups.*.use) * 2", 1.0),
            ("or(nothing.there, 7)", 7.0),
            ("or(iops, 7)", 10.0),
            ("or(is, 7)", 1.0),
            ("or(is_not, 7)", 0.0),
            ("greedy(50, cores)", 1.0),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_a_run_lacks_has_no_value() {
        for text in [
            "greedy(1, 64)",
            "greedy(nothing, 64)",
            "nothing",
            "groups.c.use",
            "list",
            "text",
            "iops / 0",
            "1 + nothing",
            "groups.*.use * list",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn a_division_by_zero_and_what_no_number_holds_are_told_from_a_figure_that_lacks() {
        let run = json!({"iops": 10.0, "writes": 0, "list": [1, 2]});
        for (text, expected) in [
            ("iops / writes", true),
            ("writes / writes", true),
            ("sum(list / writes)", true),
            ("iops * 1e308 * 1e308", true),
            ("iops / nothing", false),
            ("list / writes", false),
            ("iops / 2", false),
        ] {
            assert_eq!(Expression::parse(text).unwrap().is_not_finite(&[&run]), expected, "{text}");
        }
    }

    /// These took the stack of the program before they were refused.
    #[test]
    fn an_expression_that_is_too_deep_is_refused() {
        for text in ["(".repeat(100_000) + "iops", "iops + ".repeat(100_000) + "1"] {
            let complaint = Expression::parse(&text).unwrap_err();
            assert!(complaint.contains("at most 1000 names, numbers and signs, not"), "{complaint}");
        }
        let deepest = format!("{}iops{}", "(".repeat(499), ")".repeat(499));
        assert_eq!(value(&deepest), Some(10.0));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_was_expected() {
        for (text, expected) in [
            ("", "at the end"),
            ("iops +", "at the end"),
            ("iops iops", "an operator before iops"),
            ("(iops", ") before the end"),
            ("median(list)", "one of sum, mean"),
            ("or(iops)", ", before )"),
            ("greedy(2)", ", before )"),
            ("iops $", "not '$'"),
            ("groups..use", "names between the dots"),
            ("* 2", "not *"),
            ("iops + 1e400", "a number up to 1.8e308, not 1e400"),
        ] {
            let complaint = Expression::parse(text).unwrap_err();
            assert!(complaint.contains(expected), "{text}: {complaint}");
        }
    }
}
