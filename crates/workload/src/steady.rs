//! When a drive has settled: the rule of the SNIA Solid State Storage Performance Test Specification 2.0.2, over the
//! last five rounds of a measurement.

/// Rounds that the rule looks at.
pub const STEADY_WINDOW: usize = 5;
/// Largest distance between the highest and the lowest round, as a fraction of their mean.
const EXCURSION_MAX: f64 = 0.20;
/// Largest rise or fall of the least-squares line over the window, as a fraction of the mean.
const RISE_MAX: f64 = 0.10;

/// The rounds so far; feed one figure (IOPS, throughput or latency, always the same) a round.
#[derive(Clone, Debug, Default)]
pub struct SteadyState {
    last: [f64; STEADY_WINDOW],
    rounds: usize,
}

/// The window as the rule sees it; fractions of its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Mean of the rounds.
    pub mean: f64,
    /// Highest less lowest round.
    pub excursion: f64,
    /// What the least-squares line gains (or loses) from the first round to the last.
    pub rise: f64,
}

impl Window {
    /// Whether both limits hold.
    pub fn is_steady(&self) -> bool {
        self.excursion <= EXCURSION_MAX && self.rise.abs() <= RISE_MAX
    }
}

impl SteadyState {
    /// No round yet.
    pub fn new() -> Self {
        SteadyState::default()
    }

    /// Takes a round's figure; whether the drive is steady as of it.
    pub fn round(&mut self, figure: f64) -> bool {
        self.last.rotate_left(1);
        self.last[STEADY_WINDOW - 1] = figure;
        self.rounds += 1;
        self.window().is_some_and(|window| window.is_steady())
    }

    /// Rounds taken.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The last five rounds; `None` before there are five, or where their mean is zero and no fraction of it means
    /// anything.
    pub fn window(&self) -> Option<Window> {
        let mean = self.last.iter().sum::<f64>() / STEADY_WINDOW as f64;
        if self.rounds < STEADY_WINDOW || mean == 0.0 {
            return None;
        }
        let (low, high) = self.last.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
        let middle = (STEADY_WINDOW - 1) as f64 / 2.0;
        let (mut product, mut square) = (0.0, 0.0);
        for (round, figure) in self.last.iter().enumerate() {
            let distance = round as f64 - middle;
            product += distance * (figure - mean);
            square += distance * distance;
        }
        let rise = product / square * (STEADY_WINDOW - 1) as f64;
        Some(Window { mean, excursion: (high - low) / mean.abs(), rise: rise / mean.abs() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady_after(figures: &[f64]) -> Option<usize> {
        let mut state = SteadyState::new();
        figures.iter().position(|figure| state.round(*figure))
    }

    #[test]
    fn level_rounds_are_steady_at_the_fifth() {
        assert_eq!(steady_after(&[100.0; 8]), Some(4));
        assert_eq!(steady_after(&[0.0; 8]), None);
        assert_eq!(steady_after(&[f64::NAN; 8]), None);
    }

    /// 9.9 % from end to end passes both limits, 10.1 % breaks the second only.
    #[test]
    fn a_slope_is_found_within_the_excursion() {
        let line = |rise: f64| [-0.5, -0.25, 0.0, 0.25, 0.5].map(|x| 1_000.0 * (1.0 + rise * x));
        assert_eq!(steady_after(&line(0.099)), Some(4));
        assert_eq!(steady_after(&line(0.101)), None);
        assert_eq!(steady_after(&line(-0.101)), None);
    }

    /// Symmetric noise has no slope, so that the excursion decides.
    #[test]
    fn an_excursion_is_found_without_a_slope() {
        assert_eq!(steady_after(&[90.5, 100.0, 109.5, 100.0, 90.5]), Some(4));
        assert_eq!(steady_after(&[88.0, 100.0, 111.0, 100.0, 88.0]), None);
        assert_eq!(steady_after(&[87.5, 100.0, 112.5, 112.5, 87.5]), None, "25 %");
        assert_eq!(steady_after(&[35.0, 45.0, 40.0, 45.0, 35.0]), None, "10 of 40");
        assert_eq!(steady_after(&[36.0, 42.0, 44.0, 42.0, 36.0]), Some(4), "8 of 40 are 20 % and not more");
    }

    #[test]
    fn a_drive_that_falls_and_settles_is_steady_once_the_fall_has_left_the_window() {
        assert_eq!(steady_after(&[900.0, 600.0, 400.0, 310.0, 300.0, 302.0, 299.0, 301.0, 300.0]), Some(7));
    }
}
