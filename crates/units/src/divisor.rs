//! Division by a number that is known when a device is drawn and not before.

/// A number to divide by, often: a quotient takes one multiplication, where a processor's division takes several times as long.
///
/// The inverse is `(2^64 - 1) / value`, rounded down. Its high product with the dividend and one more is the exact quotient for dividends
/// of 32 bits: it falls short of `(dividend + 1) / value` by `2^-32` at most, which is no more than that is above a whole number, unless it
/// is one (Robison, "N-bit unsigned division via N-bit multiply-add", 2005). So no value needs a case of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    value: u32,
    inverse: u64,
}

impl Divisor {
    /// Of one and above.
    ///
    /// # Panics
    /// If it is zero.
    pub const fn new(value: u32) -> Self {
        assert!(value > 0, "nothing is divided by zero");
        Divisor { value, inverse: u64::MAX / value as u64 }
    }

    /// The number itself.
    #[inline]
    pub const fn value(self) -> u32 {
        self.value
    }

    /// `dividend / value`.
    #[inline]
    pub const fn quotient(self, dividend: u32) -> u32 {
        ((self.inverse as u128 * (dividend as u64 + 1) as u128) >> 64) as u32
    }

    /// `dividend % value`.
    #[inline]
    pub const fn remainder(self, dividend: u32) -> u32 {
        dividend - self.quotient(dividend) * self.value
    }

    /// Quotient and remainder.
    #[inline]
    pub const fn divide(self, dividend: u32) -> (u32, u32) {
        let quotient = self.quotient(dividend);
        (quotient, dividend - quotient * self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_divides_as_a_processor_does(shift in 0u32..32, value: u32, dividend: u32, near in 0u32..3) {
            let value = (value >> shift).max(1);
            // Multiples and their neighbours are where a rounded inverse would fail first.
            let close = (dividend / value * value).wrapping_add(near).wrapping_sub(1);
            for dividend in [dividend, close, u32::MAX, 0] {
                let divisor = Divisor::new(value);
                prop_assert_eq!(divisor.divide(dividend), (dividend / value, dividend % value));
                prop_assert_eq!(divisor.remainder(dividend), dividend % value);
            }
        }
    }
}
