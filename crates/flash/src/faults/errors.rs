//! How many of a page's bits come back wrong, by what its block has been through.

/// What a block has been through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stress {
    /// Program and erase cycles.
    pub cycles: f64,
    /// Days since it was programmed.
    pub days: f64,
    /// Reads since it was erased.
    pub reads: f64,
}

/// The raw bit error rate `base + wear c^k + retention c^m t^n + disturb c^p r^q` for `c` cycles, `t` days and `r` reads
/// (Kim, Choi and Min, FAST 2019, equation 1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorModel {
    /// Of fresh flash: epsilon.
    pub base: f64,
    /// Alpha.
    pub wear: f64,
    /// k.
    pub wear_exponent: f64,
    /// Beta.
    pub retention: f64,
    /// m.
    pub retention_wear_exponent: f64,
    /// n.
    pub retention_exponent: f64,
    /// Gamma.
    pub disturb: f64,
    /// p.
    pub disturb_wear_exponent: f64,
    /// q.
    pub disturb_exponent: f64,
}

impl ErrorModel {
    /// The chance that a bit comes back wrong: at most one half, where nothing is known of it any more.
    pub fn rate(&self, stress: Stress) -> f64 {
        let Stress { cycles, days, reads } = stress;
        // What counts for nothing does so however far the other factor has grown, and if that is beyond all numbers.
        let times = |coefficient: f64, growth: f64| if coefficient == 0.0 { 0.0 } else { coefficient * growth };
        let wear = times(self.wear, libm::pow(cycles, self.wear_exponent));
        let retention = if days > 0.0 {
            times(
                self.retention,
                libm::pow(cycles, self.retention_wear_exponent) * libm::pow(days, self.retention_exponent),
            )
        } else {
            0.0
        };
        let disturb = if reads > 0.0 {
            times(self.disturb, libm::pow(cycles, self.disturb_wear_exponent) * libm::pow(reads, self.disturb_exponent))
        } else {
            0.0
        };
        (self.base + wear + retention + disturb).clamp(0.0, 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_for_nothing_does_so_whatever_it_would_grow_to() {
        let none = ErrorModel {
            base: 1e-4,
            wear: 0.0,
            wear_exponent: 300.0,
            retention: 0.0,
            retention_wear_exponent: 300.0,
            retention_exponent: 1.0,
            disturb: 0.0,
            disturb_wear_exponent: 300.0,
            disturb_exponent: 1.0,
        };
        assert_eq!(none.rate(Stress { cycles: 3000.0, days: 1.0, reads: 1.0 }), 1e-4);
    }

    /// The 72-layer TLC chip of the paper.
    const TLC: ErrorModel = ErrorModel {
        base: 1.48e-3,
        wear: 3.90e-10,
        wear_exponent: 2.05,
        retention: 6.28e-5,
        retention_wear_exponent: 0.14,
        retention_exponent: 0.54,
        disturb: 3.73e-9,
        disturb_wear_exponent: 0.33,
        disturb_exponent: 1.71,
    };

    #[test]
    fn rates_are_those_of_the_equation() {
        let near = |stress, expected: f64| {
            let rate = TLC.rate(stress);
            assert!((rate / expected - 1.0).abs() < 0.05, "{rate} for {stress:?}, expected {expected}");
        };
        // By hand from the equation: 1,000 cycles, fresh, after 90 days and after a year.
        near(Stress { cycles: 1000.0, days: 0.0, reads: 0.0 }, 2.0e-3);
        near(Stress { cycles: 1000.0, days: 90.0, reads: 0.0 }, 3.9e-3);
        near(Stress { cycles: 1000.0, days: 365.0, reads: 0.0 }, 6.0e-3);
        near(Stress { cycles: 0.0, days: 0.0, reads: 0.0 }, 1.48e-3);
    }

    #[test]
    fn every_kind_of_stress_adds_errors() {
        let stress = Stress { cycles: 500.0, days: 10.0, reads: 1000.0 };
        let worse = [
            Stress { cycles: 1500.0, ..stress },
            Stress { days: 100.0, ..stress },
            Stress { reads: 50_000.0, ..stress },
        ];
        assert!(worse.into_iter().all(|worse| TLC.rate(worse) > TLC.rate(stress)));
        assert_eq!(TLC.rate(Stress { cycles: 1e9, days: 1e9, reads: 1e9 }), 0.5);
    }
}
