//! Least squares without negative times, drawn towards what is known of the kinds' proportions.

/// How much the proportions weigh against one turn in a thousand: enough to divide what always comes together.
const RIDGE: f64 = 1e-3;

/// Rounds of descent. A fit of thirty kinds settles in some hundred.
const ROUNDS: usize = 5_000;

/// A kind of turn: how often each kind of work was in it, how many such turns there were, and how long one takes.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) counts: Vec<f64>,
    pub(super) weight: f64,
    pub(super) nanos: f64,
}

/// The time of each kind of work, ns: what comes nearest to the rows' times, by their weights. Errors count in proportion to a row's time,
/// as noise does.
pub(super) fn fit(rows: &[Row], priors: &[f64]) -> Vec<f64> {
    let total: f64 = rows.iter().map(|row| row.weight).sum();
    let scaled: Vec<(Vec<f64>, f64, f64)> = rows
        .iter()
        .map(|row| {
            let nanos = row.nanos.max(1.0);
            let counts = row.counts.iter().zip(priors).map(|(count, prior)| count * prior).collect();
            (counts, row.weight / total / (nanos * nanos), row.nanos)
        })
        .collect();
    // The one factor that all would have if the proportions were right.
    let ratio = |of: fn(f64, f64) -> f64| -> f64 {
        scaled.iter().map(|(counts, weight, nanos)| weight * of(counts.iter().sum(), *nanos)).sum()
    };
    let common = ratio(|sum, nanos| sum * nanos) / ratio(|sum, _| sum * sum).max(f64::MIN_POSITIVE);
    let mut factors = vec![common; priors.len()];
    for _ in 0..ROUNDS {
        for at in 0..factors.len() {
            let (mut slope, mut curve) = (0.0, 0.0);
            for (counts, weight, nanos) in scaled.iter().filter(|(counts, ..)| counts[at] > 0.0) {
                let others: f64 = counts.iter().zip(&factors).map(|(count, factor)| count * factor).sum();
                slope += weight * counts[at] * (nanos - others + counts[at] * factors[at]);
                curve += weight * counts[at] * counts[at];
            }
            // Towards the common factor, in units of its own.
            let ridge = RIDGE / (common * common).max(f64::MIN_POSITIVE);
            factors[at] = ((slope + ridge * common) / (curve + ridge)).max(0.0);
        }
    }
    factors.iter().zip(priors).map(|(factor, prior)| factor * prior).collect()
}

/// How far the rows are from what these times sum to, as a share of their time: the mean over all turns.
pub(super) fn error(rows: &[Row], nanos: &[f64]) -> f64 {
    let total: f64 = rows.iter().map(|row| row.weight).sum();
    let off = |row: &Row| {
        let sum: f64 = row.counts.iter().zip(nanos).map(|(count, nanos)| count * nanos).sum();
        row.weight * (sum - row.nanos).abs() / row.nanos.max(1.0)
    };
    rows.iter().map(off).sum::<f64>() / total.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(counts: [f64; 4], weight: f64, nanos: f64) -> Row {
        Row { counts: counts.to_vec(), weight, nanos }
    }

    #[test]
    fn times_that_can_be_told_apart_are_found() {
        let rows = [
            row([1.0, 0.0, 1.0, 0.0], 500.0, 50.0),
            row([1.0, 1.0, 0.0, 0.0], 300.0, 35.0),
            row([1.0, 2.0, 1.0, 0.0], 200.0, 80.0),
        ];
        let times = fit(&rows, &[60.0, 40.0, 100.0, 10.0]);
        for (found, right) in times.iter().zip([20.0, 15.0, 30.0]) {
            assert!((found - right).abs() < 0.5, "{times:?}");
        }
        assert!(error(&rows, &times) < 0.02);
    }

    #[test]
    fn what_always_comes_together_is_divided_by_what_is_known() {
        let rows = [row([0.0, 0.0, 1.0, 1.0], 10.0, 80.0)];
        let times = fit(&rows, &[1.0, 1.0, 30.0, 10.0]);
        assert!((times[2] - 60.0).abs() < 1.0 && (times[3] - 20.0).abs() < 1.0, "{times:?}");
    }
}
