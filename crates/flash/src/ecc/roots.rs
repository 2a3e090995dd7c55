//! The roots of a polynomial over GF(2^m), by Berlekamp's traces: what to try grows with its degree, and not with the length of a word.
//!
//! The trace of an element, the sum of its conjugates, is 0 or 1. Of two elements there is a member of any basis times which their traces
//! differ. So a greatest common divisor with the trace of `b x` parts the roots of a polynomial, with one `b` of a basis or another.

use super::field::Field;

/// A polynomial: its coefficients, lowest first, without zeros at the top.
type Polynomial = Vec<u16>;

/// The roots of a polynomial that is not constant, where there are as many as its degree, each once, in no order; else `None`.
pub(super) fn roots(field: &Field, polynomial: &[u16]) -> Option<Vec<u16>> {
    let modulus = trimmed(polynomial.to_vec());
    // x to the powers of two, each a square of the one before.
    let mut powers = vec![remainder(field, vec![0, 1], &modulus)];
    for at in 0..field.degree() as usize {
        powers.push(remainder(field, square(field, &powers[at]), &modulus));
    }
    // Every element is its own power of the field's size, and nothing else is: so many are roots as this divides.
    if powers.pop() != powers.first().cloned() {
        return None;
    }
    let mut found = Vec::with_capacity(modulus.len() - 1);
    let mut parts = vec![(modulus, 0)];
    while let Some((part, tried)) = parts.pop() {
        if let [constant, factor] = part[..] {
            found.push(field.divide(constant, factor));
            continue;
        }
        let trace = remainder(field, trace(field, &powers, tried), &part);
        let common = divisor(field, part.clone(), trace);
        if (2..part.len()).contains(&common.len()) {
            parts.push((quotient(field, part, &common), tried + 1));
            parts.push((common, tried + 1));
        } else {
            parts.push((part, tried + 1));
        }
    }
    Some(found)
}

/// The trace of `b x`, where `b` is a power of the primitive element: the first of them are a basis.
fn trace(field: &Field, powers: &[Polynomial], exponent: u32) -> Polynomial {
    let longest = powers.iter().map(Vec::len).max().unwrap_or(0);
    let mut sum = vec![0; longest];
    let mut conjugate = exponent;
    for power in powers {
        let factor = field.power(conjugate);
        sum.iter_mut().zip(power).for_each(|(sum, term)| *sum ^= field.multiply(factor, *term));
        conjugate = conjugate * 2 % field.order();
    }
    trimmed(sum)
}

fn trimmed(mut polynomial: Polynomial) -> Polynomial {
    let length = polynomial.iter().rposition(|term| *term != 0).map_or(0, |at| at + 1);
    polynomial.truncate(length);
    polynomial
}

/// Squaring is linear: every term for itself.
fn square(field: &Field, polynomial: &[u16]) -> Polynomial {
    let mut squared = vec![0; (2 * polynomial.len()).saturating_sub(1)];
    squared.iter_mut().step_by(2).zip(polynomial).for_each(|(to, term)| *to = field.multiply(*term, *term));
    squared
}

/// Divides by a polynomial that is not zero, in place: the remainder is at the bottom, the quotient above it.
fn divide(field: &Field, dividend: &mut [u16], by: &[u16]) {
    let (top, low) = by.split_last().expect("nothing is divided by zero");
    for at in (low.len()..dividend.len()).rev() {
        let factor = field.divide(dividend[at], *top);
        dividend[at] = factor;
        if factor != 0 {
            let beneath = &mut dividend[at - low.len()..at];
            beneath.iter_mut().zip(low).for_each(|(to, term)| *to ^= field.multiply(factor, *term));
        }
    }
}

fn remainder(field: &Field, mut dividend: Polynomial, by: &[u16]) -> Polynomial {
    divide(field, &mut dividend, by);
    dividend.truncate(by.len() - 1);
    trimmed(dividend)
}

fn quotient(field: &Field, mut dividend: Polynomial, by: &[u16]) -> Polynomial {
    divide(field, &mut dividend, by);
    dividend.split_off(by.len() - 1)
}

/// The greatest common divisor.
fn divisor(field: &Field, mut one: Polynomial, mut other: Polynomial) -> Polynomial {
    while !other.is_empty() {
        let rest = remainder(field, one, &other);
        one = std::mem::replace(&mut other, rest);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn product(field: &Field, factors: impl Iterator<Item = Polynomial>) -> Polynomial {
        factors.fold(vec![1], |product, factor| {
            let mut next = vec![0; product.len() + factor.len() - 1];
            for (at, one) in product.iter().enumerate() {
                next[at..].iter_mut().zip(&factor).for_each(|(to, other)| *to ^= field.multiply(*one, *other));
            }
            next
        })
    }

    proptest! {
        #[test]
        fn all_roots_are_found(
            degree in 5u32..=14,
            scale in 1u16..32,
            elements in proptest::collection::btree_set(0u16..1 << 14, 1..24),
        ) {
            let field = Field::new(degree);
            let elements: BTreeSet<u16> = elements.into_iter().map(|element| element % (1 << degree)).collect();
            let factors = elements.iter().map(|element| vec![*element, 1]).chain([vec![scale]]);
            let found: Option<BTreeSet<u16>> =
                roots(&field, &product(&field, factors)).map(|found| found.into_iter().collect());
            prop_assert_eq!(found, Some(elements));
        }

        /// Against every element in turn.
        #[test]
        fn a_polynomial_that_has_not_as_many_has_none(
            degree in 5u32..=9,
            terms in proptest::collection::vec(0u16..512, 2..9),
        ) {
            let field = Field::new(degree);
            let mut terms: Vec<u16> = terms.into_iter().map(|term| term % (1 << degree)).collect();
            terms.push(1);
            let value = |at: u16| terms.iter().rev().fold(0, |sum, term| field.multiply(sum, at) ^ term);
            let there: BTreeSet<u16> = (0..1 << degree).filter(|&at| value(at) == 0).collect();
            let found: Option<BTreeSet<u16>> = roots(&field, &terms).map(|found| found.into_iter().collect());
            prop_assert_eq!(found, (there.len() == terms.len() - 1).then_some(there));
        }
    }

    #[test]
    fn a_root_that_is_there_twice_is_none() {
        let field = Field::new(8);
        let square = product(&field, [vec![7, 1], vec![7, 1]].into_iter());
        assert_eq!(roots(&field, &square), None);
        assert_eq!(roots(&field, &[0, 1]), Some(vec![0]));
    }
}
