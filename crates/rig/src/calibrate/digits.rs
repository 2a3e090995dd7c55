//! How often a turn did each kind of work, as the digits of one number.

use stage::Price;
use units::Span;

/// A kind's digit.
#[derive(Clone, Copy, Debug)]
struct Digit {
    shift: u32,
    bits: u32,
}

/// The digits of all kinds. Kinds of different groups share them: a thread does the work of one, but for what is shared.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    keys: &'static [&'static str],
    digits: Vec<Digit>,
}

/// The kind that threads of several groups do: its digit is the last one of each.
const SHARED: &str = "nvmq_fold_address";
const SHARED_BITS: u32 = 8;

/// The group that does a kind of work, by its key.
fn group(key: &str) -> &str {
    key.split_once('_').map_or(key, |(group, _)| group)
}

impl Digits {
    pub(super) fn of(keys: &'static [&'static str]) -> Self {
        let digits = keys
            .iter()
            .map(|key| {
                let own = u64::BITS - SHARED_BITS;
                if *key == SHARED {
                    return Digit { shift: own, bits: SHARED_BITS };
                }
                let alike = || keys.iter().filter(|other| group(other) == group(key) && **other != SHARED);
                let (bits, longer) = (own / alike().count() as u32, own % alike().count() as u32);
                let place = alike().position(|other| other == key).expect("it is one of them") as u32;
                // What is left over goes to the first: of NVMQ those are what is done to each entry of a batch.
                Digit { shift: place * bits + place.min(longer), bits: bits + u32::from(place < longer) }
            })
            .collect();
        Digits { keys, digits }
    }

    /// Whether a group's kinds of work are among them.
    pub(super) fn knows(&self, of: &str) -> bool {
        self.keys.iter().any(|key| group(key) == of)
    }

    /// The prices by which a turn's cost is its number.
    pub(super) fn prices(&self) -> Vec<Price> {
        self.digits.iter().map(|digit| Price { slots: 1 << digit.shift, stall: Span::ZERO }).collect()
    }

    /// How often a turn of a group did each kind.
    pub(super) fn counts(&self, of: &str, number: u64) -> Vec<u32> {
        let count = |digit: &Digit| (number >> digit.shift & ((1u128 << digit.bits) - 1) as u64) as u32;
        let of_group = |key: &str, digit| if group(key) == of || key == SHARED { count(digit) } else { 0 };
        self.keys.iter().zip(&self.digits).map(|(key, digit)| of_group(key, digit)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_how_often_each_kind_was_done() {
        let digits = Digits::of(firmware::Work::KEYS);
        let prices = digits.prices();
        let at = |key: &str| firmware::Work::KEYS.iter().position(|known| *known == key).unwrap();
        let number = 64 * prices[at("nvmq_deal_entry")].slots + 3 * prices[at("nvmq_compare_page")].slots;
        let counts = digits.counts("nvmq", number);
        assert_eq!((counts[at("nvmq_deal_entry")], counts[at("nvmq_compare_page")]), (64, 3));
        assert_eq!(counts.iter().sum::<u32>(), 67);
        let number = 2 * prices[at("cache_serve_entry")].slots + prices[at("nvmq_fold_address")].slots;
        let counts = digits.counts("cache", number);
        assert_eq!((counts[at("cache_serve_entry")], counts[at("nvmq_fold_address")]), (2, 1));
        assert_eq!(counts.iter().sum::<u32>(), 3);
        assert!(digits.knows("ilock") && !digits.knows("channel"));
    }
}
