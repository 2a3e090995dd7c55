//! From syndromes to the places of the errors.

use super::field::Field;
use super::roots::roots;

/// The error locator of a binary code by Berlekamp and Massey: its coefficients, lowest first. Every second discrepancy is
/// zero over GF(2), so only odd syndromes are looked at.
pub(super) fn locator(field: &Field, syndromes: &[u16]) -> Vec<u16> {
    let (mut current, mut previous) = (vec![1u16], vec![1u16]);
    let (mut length, mut shift, mut last) = (0usize, 1usize, 1u16);
    for at in (0..syndromes.len()).step_by(2) {
        let terms = current.iter().take(at + 1).enumerate();
        let discrepancy = terms.fold(0, |sum, (back, term)| sum ^ field.multiply(*term, syndromes[at - back]));
        if discrepancy == 0 {
            shift += 2;
            continue;
        }
        let factor = field.divide(discrepancy, last);
        let mut next = current.clone();
        next.resize(next.len().max(previous.len() + shift), 0);
        for (to, term) in next[shift..].iter_mut().zip(&previous) {
            *to ^= field.multiply(factor, *term);
        }
        if 2 * length <= at {
            (length, last, shift) = (at + 1 - length, discrepancy, 2);
            previous = std::mem::replace(&mut current, next);
        } else {
            current = next;
            shift += 2;
        }
    }
    while current.last() == Some(&0) {
        current.pop();
    }
    current
}

/// The exponents of the errors, from the least on: the inverses of the locator's roots, which are places of a word of `bits`.
/// None if there are not as many as the locator has degrees, or more than `most`.
pub(super) fn positions(field: &Field, locator: &[u16], bits: u32, most: u32) -> Option<Vec<u32>> {
    let degree = locator.len() as u32 - 1;
    if degree == 0 || degree > most {
        return None;
    }
    let order = field.order();
    // The locator's lowest term is 1, so that zero is no root.
    let places = roots(field, locator)?.into_iter().map(|root| (order - field.logarithm(root)) % order);
    let mut places: Vec<u32> = places.collect();
    places.sort_unstable();
    places.last().is_some_and(|last| *last < bits).then_some(places)
}
