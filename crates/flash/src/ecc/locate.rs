//! From syndromes to the places of the errors.

use super::field::Field;

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

/// The exponents of the errors: the inverses of the locator's roots, by Chien's search over the places of a word of `bits`.
/// None if there are not as many as the locator has degrees, or more than `most`.
pub(super) fn positions(field: &Field, locator: &[u16], bits: u32, most: u32) -> Option<Vec<u32>> {
    let degree = locator.len() as u32 - 1;
    if degree == 0 || degree > most {
        return None;
    }
    let order = field.order();
    // Term `j` at place `e` is its coefficient times the primitive element to the power of `-j e`: by logarithms.
    let terms = locator.iter().zip(0u32..).skip(1).filter(|(coefficient, _)| **coefficient != 0);
    let mut terms: Vec<(u32, u32)> =
        terms.map(|(coefficient, power)| (field.logarithm(*coefficient), order - power)).collect();
    let mut found = Vec::with_capacity(degree as usize);
    for exponent in 0..bits {
        let mut value = locator[0];
        for (logarithm, step) in &mut terms {
            value ^= field.power(*logarithm);
            *logarithm += *step;
            if *logarithm >= order {
                *logarithm -= order;
            }
        }
        if value == 0 {
            found.push(exponent);
            if found.len() == degree as usize {
                return Some(found);
            }
        }
    }
    None
}
