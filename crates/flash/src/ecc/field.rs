//! Arithmetic in GF(2^m), by tables of logarithms.

/// The least degree of a field that a code is built over.
pub(super) const DEGREE_MIN: u32 = 5;
/// The greatest: words of 16,383 bits, room for 1 KiB and the parity of 72 errors.
pub(super) const DEGREE_MAX: u32 = 14;

/// Primitive polynomials of degree 5 to 14, without their highest term (Lin and Costello, Error Control Coding, table 2.7).
const PRIMITIVE: [u32; (DEGREE_MAX - DEGREE_MIN + 1) as usize] =
    [0x05, 0x03, 0x09, 0x1d, 0x11, 0x09, 0x05, 0x53, 0x1b, 0x443];

/// A field. Elements are polynomials over GF(2) as bits; addition is exclusive or.
#[derive(Clone, Debug)]
pub(super) struct Field {
    degree: u32,
    /// Powers of the primitive element, twice over, so that sums of two logarithms need no remainder.
    powers: Vec<u16>,
    logarithms: Vec<u16>,
}

impl Field {
    pub(super) fn new(degree: u32) -> Self {
        assert!((DEGREE_MIN..=DEGREE_MAX).contains(&degree), "no primitive polynomial of degree {degree} is known");
        let order = (1u32 << degree) - 1;
        let reduce = PRIMITIVE[(degree - DEGREE_MIN) as usize];
        let (mut powers, mut logarithms) = (vec![0u16; 2 * order as usize], vec![0u16; 1 << degree]);
        let mut element = 1u32;
        for exponent in 0..order {
            powers[exponent as usize] = element as u16;
            powers[(exponent + order) as usize] = element as u16;
            logarithms[element as usize] = exponent as u16;
            element <<= 1;
            if element >> degree != 0 {
                element = (element & order) ^ reduce;
            }
        }
        Field { degree, powers, logarithms }
    }

    /// The power of two that it has elements of.
    pub(super) fn degree(&self) -> u32 {
        self.degree
    }

    /// Elements that are not zero: the longest word of a code.
    pub(super) fn order(&self) -> u32 {
        (1 << self.degree) - 1
    }

    /// A power of the primitive element; the exponent is below twice the order.
    #[inline]
    pub(super) fn power(&self, exponent: u32) -> u16 {
        self.powers[exponent as usize]
    }

    /// The logarithm of an element that is not zero.
    #[inline]
    pub(super) fn logarithm(&self, element: u16) -> u32 {
        assert!(element != 0, "zero has no logarithm");
        self.logarithms[element as usize].into()
    }

    #[inline]
    pub(super) fn multiply(&self, one: u16, other: u16) -> u16 {
        if one == 0 || other == 0 { 0 } else { self.power(self.logarithm(one) + self.logarithm(other)) }
    }

    /// One element by another that is not zero.
    pub(super) fn divide(&self, one: u16, other: u16) -> u16 {
        if one == 0 { 0 } else { self.power(self.logarithm(one) + self.order() - self.logarithm(other)) }
    }

    /// The exponents that `exponent` goes through by doubling: the roots of one minimal polynomial.
    pub(super) fn conjugates(&self, exponent: u32) -> Vec<u32> {
        let mut coset = vec![exponent];
        let mut next = exponent * 2 % self.order();
        while next != exponent {
            coset.push(next);
            next = next * 2 % self.order();
        }
        coset
    }

    /// The minimal polynomial over GF(2) of a power of the primitive element, its lowest coefficient first.
    pub(super) fn minimal_polynomial(&self, exponent: u32) -> Vec<bool> {
        let mut product = vec![1u16];
        for root in self.conjugates(exponent) {
            product.push(0);
            for at in (0..product.len()).rev() {
                let below = if at > 0 { product[at - 1] } else { 0 };
                product[at] = below ^ self.multiply(product[at], self.power(root));
            }
        }
        product.into_iter().map(|coefficient| coefficient == 1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A polynomial that is not primitive would give a power twice and leave elements without logarithm.
    #[test]
    fn powers_of_the_primitive_element_are_all_elements() {
        for degree in DEGREE_MIN..=DEGREE_MAX {
            let field = Field::new(degree);
            let mut powers: Vec<u16> = (0..field.order()).map(|exponent| field.power(exponent)).collect();
            powers.sort_unstable();
            let elements: Vec<u16> = (1..=field.order() as u16).collect();
            assert_eq!(powers, elements, "degree {degree}");
        }
    }

    #[test]
    fn a_minimal_polynomial_has_its_element_as_root() {
        let field = Field::new(8);
        for exponent in [1, 3, 5, 17, 85] {
            let terms = field.minimal_polynomial(exponent).into_iter().zip(0u32..).filter(|(set, _)| *set);
            let value = terms.fold(0, |sum, (_, at)| sum ^ field.power(exponent * at % field.order()));
            assert_eq!(value, 0, "of the power {exponent}");
        }
    }
}
