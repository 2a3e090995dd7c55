//! The scrambler: what cells hold is the data, byte by byte, exclusive-or the output of a shift register that begins with the row
//! address, so that a page has as many ones as zeros whatever the host writes (Cosmos+ OpenSSD, TOS 2020, section 3.2 and figure 6).

use units::Ppn;

/// States of a register of 8 bits that does not stand still.
const PERIOD: usize = 255;

/// Taps of x^8 + x^6 + x^5 + x^4 + 1, which passes through all of them (Xilinx XAPP052, table 3). The paper does not name its own.
const TAPS: u8 = 0b1011_1000;

/// Eight bytes of the register's output from each of its places on, the first lowest.
static KEYS: [u64; PERIOD] = keys();

/// Where in the output each state is.
static PLACES: [u8; 256] = places();

const fn states() -> [u8; PERIOD] {
    let mut states = [0; PERIOD];
    let (mut state, mut at) = (0xff, 0);
    while at < PERIOD {
        states[at] = state;
        let feedback = (state & TAPS).count_ones() as u8 & 1;
        state = state << 1 | feedback;
        at += 1;
    }
    states
}

const fn keys() -> [u64; PERIOD] {
    let (states, mut keys, mut at) = (states(), [0; PERIOD], 0);
    while at < PERIOD {
        let mut byte = 0;
        while byte < 8 {
            keys[at] |= (states[(at + byte) % PERIOD] as u64) << (8 * byte);
            byte += 1;
        }
        at += 1;
    }
    keys
}

const fn places() -> [u8; 256] {
    let (states, mut places, mut at) = (states(), [0; 256], 0);
    while at < PERIOD {
        places[states[at] as usize] = at as u8;
        at += 1;
    }
    places
}

/// What the words of a page are combined with, either way. A register of zeros would stand still: it begins with ones then.
pub(crate) fn stream(ppn: Ppn) -> impl Iterator<Item = u64> {
    let mut at = usize::from(PLACES[usize::from(ppn.0 as u8)]);
    std::iter::from_fn(move || {
        let key = KEYS[at];
        at = (at + 8) % PERIOD;
        Some(key)
    })
}

/// Scrambles words of a page, or brings them back.
pub(crate) fn apply(ppn: Ppn, words: &mut [u64]) {
    words.iter_mut().zip(stream(ppn)).for_each(|(word, key)| *word ^= key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_register_passes_through_every_state_but_zero() {
        let states: BTreeSet<u8> = states().into_iter().collect();
        assert_eq!((states.len(), states.contains(&0)), (PERIOD, false));
    }

    #[test]
    fn the_stream_is_the_register_from_the_row_on() {
        let bytes: Vec<u8> = stream(Ppn(0x1_0001)).take(64).flat_map(u64::to_le_bytes).collect();
        assert_eq!(bytes[..4], [0x01, 0x02, 0x04, 0x08], "the bit that is shifted in is of bits 7, 5, 4 and 3");
        assert_eq!(bytes[..255], bytes[255..510]);
        assert_eq!(stream(Ppn(0)).next(), stream(Ppn(0xff)).next(), "zeros would stand still");
    }

    #[test]
    fn words_come_back() {
        let mut words: Vec<u64> = (0..528).collect();
        apply(Ppn(77), &mut words);
        apply(Ppn(77), &mut words);
        assert_eq!(words, (0..528).collect::<Vec<u64>>());
    }
}
