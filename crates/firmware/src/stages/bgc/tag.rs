//! Tags of what BGC asks for.

/// What an answer is about: a page, tagged by its place in the window, or a victim, tagged by its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tag {
    Page(usize),
    Fence(usize),
    Erase(usize),
    /// TRANS was told that the drive is idle, or to close a group.
    Tidy,
}

/// Bits of a tag's place.
const PLACE_BITS: u32 = 24;

impl From<Tag> for u32 {
    fn from(tag: Tag) -> u32 {
        let (kind, place) = match tag {
            Tag::Page(place) => (0, place),
            Tag::Fence(place) => (1, place),
            Tag::Erase(place) => (2, place),
            Tag::Tidy => (3, 0),
        };
        kind << PLACE_BITS | place as u32
    }
}

impl From<u32> for Tag {
    fn from(tag: u32) -> Tag {
        let place = (tag & ((1 << PLACE_BITS) - 1)) as usize;
        match tag >> PLACE_BITS {
            0 => Tag::Page(place),
            1 => Tag::Fence(place),
            2 => Tag::Erase(place),
            _ => Tag::Tidy,
        }
    }
}
