//! What a file is, in the first sectors of its header: written once, when it is made.
//!
//! ```text
//! magic 16 | version 4 | how what fails was drawn 4 | what names its drive: lines of text, zeros behind them | check 4
//! ```
//! The check value is over the text and the zeros. It is 0 in files of builds that had none, and otherwise never.

use super::{HEADER_BYTES, switch};
use flash::DRAW;

const MAGIC: &[u8; 16] = b"flashloom media\n";
pub(super) const VERSION: u32 = 6;
/// Where it says how what fails was drawn; 0 in files of builds that did not say.
const DRAW_AT: usize = 20;
/// Where the text begins, and ends at the latest: there the check value stands, before what is written often.
const TEXT_AT: usize = 24;
const CHECK_AT: usize = switch::AT as usize - 4;

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) draw: u32,
    pub(super) text: &'a str,
}

/// The header of a drive that this text names.
pub(super) fn encode(text: &str) -> Vec<u8> {
    assert!(TEXT_AT + text.len() < CHECK_AT, "the header has room for what names a drive");
    let mut header = vec![0; HEADER_BYTES as usize];
    header[..16].copy_from_slice(MAGIC);
    header[16..20].copy_from_slice(&VERSION.to_le_bytes());
    header[DRAW_AT..][..4].copy_from_slice(&DRAW.to_le_bytes());
    header[TEXT_AT..][..text.len()].copy_from_slice(text.as_bytes());
    let check = check_of(&header);
    header[CHECK_AT..][..4].copy_from_slice(&check.to_le_bytes());
    header
}

/// What it says.
///
/// # Errors
/// What it is instead.
pub(super) fn decode(header: &[u8]) -> Result<Header<'_>, String> {
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    if &header[..16] != MAGIC {
        return Err("something else".into());
    }
    if word(16) != VERSION {
        return Err(format!("version {}", word(16)));
    }
    let text = &header[TEXT_AT..CHECK_AT];
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let text = std::str::from_utf8(&text[..end]).ok().filter(|_| [0, check_of(header)].contains(&word(CHECK_AT)));
    let text = text.ok_or("a damaged header")?;
    Ok(Header { draw: word(DRAW_AT), text })
}

fn check_of(header: &[u8]) -> u32 {
    crc32c::crc32c(&header[TEXT_AT..CHECK_AT]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_as_it_was_written_is_damage_and_no_other_drive() {
        let header = encode("threads.trans = 2\n");
        assert_eq!(decode(&header), Ok(Header { draw: DRAW, text: "threads.trans = 2\n" }));
        for at in (TEXT_AT..CHECK_AT + 4).step_by(3) {
            let mut damaged = header.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), Err("a damaged header".into()), "byte {at}");
        }
    }

    #[test]
    fn a_header_without_a_check_value_is_taken_as_it_is() {
        let mut header = encode("threads.trans = 2\n");
        header[CHECK_AT..][..4].fill(0);
        header[DRAW_AT..][..4].fill(0);
        assert_eq!(decode(&header), Ok(Header { draw: 0, text: "threads.trans = 2\n" }));
    }
}
