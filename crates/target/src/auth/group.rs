//! The Diffie-Hellman groups of DH-HMAC-CHAP (Base figure 452): those of RFC 7919, whose primes are made from e.

use num_bigint::BigUint;
use std::sync::OnceLock;
use units::Span;

/// A group that both ends know; the null group has no exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) id: u8,
    bits: u32,
    /// What is added until it is a safe prime (RFC 7919 appendix A).
    offset: u32,
}

/// All of them, the one that is chosen first in front: 2,048 bits are enough for years and cost the least.
pub(crate) const GROUPS: [Group; 6] = [
    Group { id: 1, bits: 2048, offset: 560_316 },
    Group { id: 2, bits: 3072, offset: 2_625_351 },
    Group { id: 3, bits: 4096, offset: 5_736_041 },
    Group { id: 4, bits: 6144, offset: 15_705_020 },
    Group { id: 5, bits: 8192, offset: 10_965_728 },
    Group { id: 0, bits: 0, offset: 0 },
];

/// Bytes of an exponent: twice the strength of the largest group (RFC 7919 §5.2).
pub(crate) const EXPONENT_BYTES: usize = 50;

/// What a power in the group of 8,192 bits took where it was measured, rounded up.
const LARGEST_POWER: Span = Span::from_millis(20);

impl Group {
    /// What a power takes, about: exponents are equally long, so it goes by the square of the bits. What has none counts as the smallest:
    /// the cost is also what limits how many begin in a second, and so push out others that have begun.
    pub(crate) fn cost(self) -> Span {
        let bits = self.bits.max(GROUPS[0].bits);
        LARGEST_POWER * u64::from(bits).pow(2) / 8192u64.pow(2)
    }

    /// Bytes of its values.
    pub(crate) fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    /// The prime, which is worked out when it is first asked for.
    fn prime(self) -> &'static BigUint {
        static PRIMES: [OnceLock<BigUint>; GROUPS.len()] = [const { OnceLock::new() }; GROUPS.len()];
        PRIMES[usize::from(self.id)].get_or_init(|| self.work_out())
    }

    /// p = 2^b - 2^(b-64) + (floor(2^(b-130) e) + offset) 2^64 - 1.
    fn work_out(self) -> BigUint {
        let one = || BigUint::from(1u8);
        let middle = euler(self.bits - 130) + self.offset;
        (one() << self.bits) - (one() << (self.bits - 64)) + (middle << 64) - one()
    }

    /// The value that goes to the other end, for an exponent of one's own; nothing in the null group.
    pub(crate) fn public(self, exponent: &[u8]) -> Vec<u8> {
        if self.bits == 0 {
            return Vec::new();
        }
        self.padded(&BigUint::from(2u8).modpow(&BigUint::from_bytes_be(exponent), self.prime()))
    }

    /// What both ends know of their exponents; `None` for a value of the other end that gives one's own away.
    pub(crate) fn shared(self, exponent: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
        let (prime, theirs) = (self.prime(), BigUint::from_bytes_be(theirs));
        let is_safe = theirs > BigUint::from(1u8) && theirs < prime - 1u8;
        is_safe.then(|| self.padded(&theirs.modpow(&BigUint::from_bytes_be(exponent), prime)))
    }

    fn padded(self, value: &BigUint) -> Vec<u8> {
        let bytes = value.to_bytes_be();
        let mut padded = vec![0; self.bytes() - bytes.len()];
        padded.extend(bytes);
        padded
    }
}

/// e in units of 2^-bits, rounded down: the sum of 1/n!, worked out a word more exactly.
fn euler(bits: u32) -> BigUint {
    let mut term = BigUint::from(1u8) << (bits + 64);
    let (mut sum, mut next) = (term.clone(), 1u32);
    while term > BigUint::ZERO {
        term /= next;
        sum += &term;
        next += 1;
    }
    sum >> 64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of each prime as RFC 7919 prints them, and what makes it one: 4^((p-1)/2) is 1 modulo a safe prime.
    #[test]
    fn the_primes_are_those_of_the_rfc() {
        let ends = [
            "886b423861285c97ffffffffffffffff",
            "25e41d2b66c62e37ffffffffffffffff",
            "c68a007e5e655f6affffffffffffffff",
            "a41d570d7938dad4a40e329cd0e40e65ffffffffffffffff",
            "d68c8bb7c5c6424cffffffffffffffff",
        ];
        for (group, end) in GROUPS.into_iter().zip(ends) {
            let (prime, text) = (group.prime(), format!("{:x}", group.prime()));
            assert!(text.starts_with("ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1"), "{text}");
            assert!(text.ends_with(end), "{text}");
            if group.bits < 4096 {
                let half = (prime - 1u8) >> 1;
                assert_eq!(BigUint::from(4u8).modpow(&half, prime), BigUint::from(1u8));
            }
        }
    }

    #[test]
    fn both_ends_come_to_one_secret_and_weak_values_are_refused() {
        let group = GROUPS[0];
        let (mine, theirs) = ([7; EXPONENT_BYTES], [9; EXPONENT_BYTES]);
        let shared = group.shared(&mine, &group.public(&theirs));
        assert_eq!(shared, group.shared(&theirs, &group.public(&mine)));
        assert_eq!(shared.expect("a good value").len(), 256);
        for weak in [BigUint::ZERO, BigUint::from(1u8), group.prime() - 1u8, group.prime().clone()] {
            assert_eq!(group.shared(&mine, &weak.to_bytes_be()), None);
        }
        assert!(GROUPS[5].public(&mine).is_empty());
    }
}
