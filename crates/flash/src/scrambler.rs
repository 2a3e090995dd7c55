//! The scrambler: what cells hold is the data, byte by byte, exclusive-or the output of a shift register that begins with the row
//! address, so that a page has as many ones as zeros whatever the host writes (Cosmos+ OpenSSD, TOS 2020, section 3.2 and figure 6).

use pulp::Arch;
use units::Ppn;

/// States of a register of 8 bits that does not stand still.
const PERIOD: usize = 255;

/// Taps of x^8 + x^6 + x^5 + x^4 + 1, which passes through all of them (Xilinx XAPP052, table 3). The paper does not name its own.
const TAPS: u8 = 0b1011_1000;

/// The register's output as words of eight bytes, the first lowest, in the order of a page that begins with the first state. A step
/// of eight bytes passes through all places of the output as well, so that a page that begins with another state begins further on
/// in the same order. From any place of the first period on there is a run in one piece.
static KEYS: [u64; PERIOD + RUN] = keys();

/// Whole periods in which a page of 16 KiB has room, nearly.
const RUN: usize = 8 * PERIOD;

/// How many steps of eight bytes lead one byte on: 8 x 32 is one more than a period.
const STEPS_PER_BYTE: usize = 32;

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

const fn keys() -> [u64; PERIOD + RUN] {
    let (states, mut keys, mut at) = (states(), [0; PERIOD + RUN], 0);
    while at < PERIOD + RUN {
        let mut byte = 0;
        while byte < 8 {
            keys[at] |= (states[(at * 8 + byte) % PERIOD] as u64) << (8 * byte);
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

/// What the words of a page are combined with, either way: so many of them, and then the same again. A register of zeros would stand
/// still: it begins with ones then.
fn run(ppn: Ppn) -> &'static [u64] {
    let state = usize::from(PLACES[usize::from(ppn.0 as u8)]);
    let first = state * STEPS_PER_BYTE % PERIOD;
    &KEYS[first..first + RUN]
}

/// Scrambles words of a page, or brings them back.
pub(crate) fn apply(ppn: Ppn, words: &mut [u64]) {
    let keys = run(ppn);
    for words in words.chunks_mut(RUN) {
        words.iter_mut().zip(keys).for_each(|(word, key)| *word ^= key);
    }
}

/// Scrambles words of a page on their way to the cells, or brings them back on their way from them: with the widest registers that
/// this machine has, because cells are far and this is how fast they come.
pub(crate) fn combine(ppn: Ppn, from: &[u64], to: &mut [u64]) {
    let keys = run(ppn);
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (to, from) in to.chunks_mut(RUN).zip(from.chunks(RUN)) {
                to.iter_mut().zip(from).zip(keys).for_each(|((to, from), key)| *to = from ^ key);
            }
        },
    );
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
    #[cfg(target_arch = "x86_64")]
    fn wide_registers_are_used_where_there_are_any() {
        assert_eq!(matches!(Arch::new(), Arch::Scalar), !std::arch::is_x86_feature_detected!("avx2"));
    }

    fn stream_of(ppn: u32, words: usize) -> Vec<u64> {
        let mut cells = vec![0; words];
        combine(Ppn(ppn), &vec![0; words], &mut cells);
        cells
    }

    #[test]
    fn the_stream_is_the_register_from_the_row_on() {
        let bytes: Vec<u8> = stream_of(0x1_0001, 512).into_iter().flat_map(u64::to_le_bytes).collect();
        assert_eq!(bytes[..4], [0x01, 0x02, 0x04, 0x08], "the bit that is shifted in is of bits 7, 5, 4 and 3");
        let states = states();
        for ppn in 1..=255 {
            let first = usize::from(PLACES[usize::from(ppn as u8)]);
            assert_eq!(usize::from(states[first]), ppn as usize);
            let expected = (first..).map(|at| states[at % PERIOD]);
            let found = stream_of(ppn, 512).into_iter().flat_map(u64::to_le_bytes);
            assert!(expected.zip(found).all(|(expected, found)| expected == found), "row {ppn}");
        }
        assert_eq!(bytes[..255], bytes[255..510]);
        assert_eq!(stream_of(0, 8), stream_of(0xff, 8), "zeros would stand still");
    }

    #[test]
    fn words_come_back() {
        let words: Vec<u64> = (0..528).collect();
        let mut cells = words.clone();
        apply(Ppn(77), &mut cells);
        // Longer than a run: it begins again.
        assert_eq!(stream_of(77, RUN + 9)[RUN..], stream_of(77, 9));
        let mut back = vec![0; 528];
        combine(Ppn(77), &cells, &mut back);
        assert_eq!(back, words);
        apply(Ppn(77), &mut cells);
        assert_eq!(cells, words);
    }
}
