//! vfio-user on the wire: what a client can ask, and how it is answered. Layouts and codes are those of version 0.1 of the
//! protocol (libvfio-user, `docs/vfio-user.rst`) and of `linux/vfio.h`, which it takes its structures from.

use crate::guest::MAPS_MAX;
use rustix::io::Errno;
use serde_json::{Map, Value};

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 16;

/// The longest message that is taken, and the data of one that clients are told.
pub(crate) const DATA_MAX: usize = 64 << 10;
pub(crate) const MESSAGE_MAX: usize = DATA_MAX + 64;

/// File descriptors of one message; QEMU 11 takes no server that can have more.
pub(crate) const FILES_MAX: usize = 16;

/// The latest minor version of major version 0.
const MINOR: u16 = 1;

const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// A message that makes everything after it unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// What a message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    id: u16,
    command: u16,
    /// Of all of the message.
    bytes: usize,
    wants_reply: bool,
}

fn dword(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn qword(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Header {
    /// Reads a header. Nobody is asked anything here, so a reply is as wrong as a length that cannot be.
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Broken> {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (length, flags) = (dword(bytes, 4) as usize, dword(bytes, 8));
        if !(HEADER_BYTES..=MESSAGE_MAX).contains(&length) || flags & 0xf != 0 {
            return Err(Broken);
        }
        Ok(Header { id: word(0), command: word(2), bytes: length, wants_reply: flags & NO_REPLY == 0 })
    }

    /// A header as it comes, of a message with a body of so many bytes.
    pub(crate) fn raw(command: u16, body: usize) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[2..4].copy_from_slice(&command.to_le_bytes());
        bytes[4..8].copy_from_slice(&((HEADER_BYTES + body) as u32).to_le_bytes());
        bytes
    }

    /// Bytes that follow it.
    pub(crate) fn body_bytes(&self) -> usize {
        self.bytes - HEADER_BYTES
    }

    /// The reply to its message: with a body, or an error. Nothing where none is wanted.
    pub(crate) fn reply(&self, outcome: Result<&[u8], Errno>) -> Option<Vec<u8>> {
        if !self.wants_reply {
            return None;
        }
        let (body, flags, error) = match outcome {
            Ok(body) => (body, REPLY, 0),
            Err(errno) => (&[][..], REPLY | ERROR, errno.raw_os_error() as u32),
        };
        let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
        message.extend(self.id.to_le_bytes());
        message.extend(self.command.to_le_bytes());
        for field in [(HEADER_BYTES + body.len()) as u32, flags, error] {
            message.extend(field.to_le_bytes());
        }
        message.extend(body);
        Some(message)
    }
}

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    Version { major: u16, minor: u16 },
    Map { access: u32, offset: u64, first: u64, bytes: u64 },
    Unmap { all: bool, first: u64, bytes: u64 },
    DeviceInfo,
    RegionInfo { room: u32, region: u32 },
    InterruptInfo { index: u32 },
    SetInterrupts(SetInterrupts<'a>),
    Read { region: u32, offset: u64, bytes: u32 },
    Write { region: u32, offset: u64, data: &'a [u8] },
    Reset,
}

/// What is to happen to interrupts `start` to `start + count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetInterrupts<'a> {
    pub(crate) flags: u32,
    pub(crate) index: u32,
    pub(crate) start: u32,
    pub(crate) count: u32,
    pub(crate) data: &'a [u8],
}

/// What a device may do with a piece of memory (`VFIO_USER_F_DMA_REGION_READ` and `_WRITE`).
pub(crate) const MAP_READ: u32 = 1;
pub(crate) const MAP_WRITE: u32 = 1 << 1;

/// `VFIO_DMA_UNMAP_FLAG_ALL`. Bit 0 asks which pages are dirty, of which nobody here keeps count.
const UNMAP_ALL: u32 = 1 << 1;

impl<'a> Request<'a> {
    /// Reads what follows a header.
    ///
    /// # Errors
    /// `ENOTSUP` for a command that there is none of here, `EINVAL` for a body of the wrong length or of a wrong form, and for flags that
    /// mean nothing here: to overlook them would say that what they ask for was done.
    pub(crate) fn parse(header: &Header, body: &'a [u8]) -> Result<Request<'a>, Errno> {
        let fixed = match header.command {
            1 => 4,
            2 => 32,
            3 | 11 | 12 => 24,
            4 | 7 => 16,
            5 => 32,
            8 => 20,
            9 | 10 => 16,
            13 => 0,
            _ => return Err(Errno::NOTSUP),
        };
        if body.len() < fixed {
            return Err(Errno::INVAL);
        }
        let [flags, third, fourth] = [4, 8, 12].map(|at| if body.len() >= at + 4 { dword(body, at) } else { 0 });
        Ok(match header.command {
            1 if !is_object(&body[4..]) => return Err(Errno::INVAL),
            1 => {
                let [major, minor] = [0, 2].map(|at| u16::from_le_bytes([body[at], body[at + 1]]));
                Request::Version { major, minor }
            }
            2 if flags & !(MAP_READ | MAP_WRITE) != 0 => return Err(Errno::INVAL),
            2 => Request::Map { access: flags, offset: qword(body, 8), first: qword(body, 16), bytes: qword(body, 24) },
            3 => {
                let (all, first, bytes) = (flags & UNMAP_ALL != 0, qword(body, 8), qword(body, 16));
                if flags & !UNMAP_ALL != 0 || all && (first, bytes) != (0, 0) {
                    return Err(Errno::INVAL);
                }
                Request::Unmap { all, first, bytes }
            }
            4 => Request::DeviceInfo,
            5 => Request::RegionInfo { room: dword(body, 0), region: third },
            7 => Request::InterruptInfo { index: third },
            8 => {
                let data = &body[20..];
                let (index, start, count) = (third, fourth, dword(body, 16));
                Request::SetInterrupts(SetInterrupts { flags, index, start, count, data })
            }
            9 => Request::Read { region: third, offset: qword(body, 0), bytes: fourth },
            10 if body.len() - 16 == fourth as usize => {
                Request::Write { region: third, offset: qword(body, 0), data: &body[16..] }
            }
            13 => Request::Reset,
            10 => return Err(Errno::INVAL),
            _ => return Err(Errno::NOTSUP),
        })
    }
}

/// Whether the data of a version are an object of JSON and a zero, or none: then all that they could say is as it is by default.
fn is_object(data: &[u8]) -> bool {
    let object = |text: &[u8]| serde_json::from_slice::<Map<String, Value>>(text).is_ok();
    data.is_empty() || data.split_last().is_some_and(|(end, text)| *end == 0 && object(text))
}

/// A body of dwords.
pub(crate) fn body(dwords: &[u32]) -> Vec<u8> {
    dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect()
}

/// What the other end of a version is told: the version, no later than its own, and the shape of messages as JSON and a
/// zero (protocol, `VFIO_USER_VERSION`).
pub(crate) fn version_body(minor: u16) -> Vec<u8> {
    let mut body = vec![0, 0];
    body.extend(minor.min(MINOR).to_le_bytes());
    let capabilities =
        format!("\"max_msg_fds\":{FILES_MAX},\"max_data_xfer_size\":{DATA_MAX},\"max_dma_maps\":{MAPS_MAX}");
    body.extend(format!("{{\"capabilities\":{{{capabilities}}}}}\0").as_bytes());
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(command: u16, bytes: usize) -> Header {
        Header::parse(&Header::raw(command, bytes - HEADER_BYTES)).unwrap()
    }

    #[test]
    fn lengths_that_cannot_be_break_the_connection() {
        let mut raw = [0; HEADER_BYTES];
        for length in [0u32, 15, MESSAGE_MAX as u32 + 1, u32::MAX] {
            raw[4..8].copy_from_slice(&length.to_le_bytes());
            assert_eq!(Header::parse(&raw), Err(Broken), "{length}");
        }
        raw[4] = 16;
        raw[8] = REPLY as u8;
        assert_eq!(Header::parse(&raw), Err(Broken), "a reply to nothing");
    }

    #[test]
    fn a_write_has_as_much_data_as_it_says() {
        let mut written = vec![0; 20];
        written[12] = 4;
        let parsed = Request::parse(&header(10, 36), &written);
        assert_eq!(parsed, Ok(Request::Write { region: 0, offset: 0, data: &[0; 4] }));
        written[12] = 5;
        assert_eq!(Request::parse(&header(10, 36), &written), Err(Errno::INVAL));
    }

    #[test]
    fn flags_that_mean_nothing_here_are_refused() {
        let asked = |command, bytes: usize, flags: u32, first: u64, length: u64| {
            let mut asked = vec![0; bytes];
            asked[4..8].copy_from_slice(&flags.to_le_bytes());
            asked[bytes - 16..bytes - 8].copy_from_slice(&first.to_le_bytes());
            asked[bytes - 8..].copy_from_slice(&length.to_le_bytes());
            Request::parse(&header(command, HEADER_BYTES + bytes), &asked).map(drop)
        };
        for (flags, is_good) in [(1, true), (2, true), (3, true), (4, false), (7, false), (1 << 31, false)] {
            assert_eq!(asked(2, 32, flags, 0, 4096).is_ok(), is_good, "to map, {flags:#x}");
        }
        for (flags, first, length, is_good) in [
            (0, 4096, 4096, true),
            (1, 4096, 4096, false),
            (2, 0, 0, true),
            (2, 4096, 0, false),
            (2, 0, 4096, false),
            (3, 0, 0, false),
            (4, 4096, 4096, false),
        ] {
            assert_eq!(asked(3, 24, flags, first, length).is_ok(), is_good, "to unmap, {flags:#x}, {first}, {length}");
        }
    }

    #[test]
    fn the_data_of_a_version_are_an_object_and_a_zero_or_none() {
        let asked = |data: &[u8]| {
            let asked = [&[0, 0, 1, 0], data].concat();
            let parsed = Request::parse(&header(1, HEADER_BYTES + asked.len()), &asked);
            parsed.map(|request| request == Request::Version { major: 0, minor: 1 })
        };
        for good in [&b""[..], b"{}\0", b"{\"capabilities\":{\"max_msg_fds\":8}}\0"] {
            assert_eq!(asked(good), Ok(true), "{good:?}");
        }
        for bad in [&b"\0"[..], b"{}", b"[]\0", b"7\0", b"{\0", b"{}\0\0", b"hello\0", b"\xff\0"] {
            assert_eq!(asked(bad), Err(Errno::INVAL), "{bad:?}");
        }
    }

    #[test]
    fn a_client_is_told_of_every_limit() {
        let told = version_body(1);
        let text = std::str::from_utf8(&told[4..told.len() - 1]).expect("a text");
        let limits = "\"max_msg_fds\":16,\"max_data_xfer_size\":65536,\"max_dma_maps\":1024";
        assert_eq!(text, format!("{{\"capabilities\":{{{limits}}}}}"));
    }

    proptest! {
        #[test]
        fn no_body_panics(command in 0u16..20, body in prop::collection::vec(any::<u8>(), 0..80)) {
            let header = header(command, HEADER_BYTES + body.len());
            let answer = Request::parse(&header, &body).map(|_| &[][..]);
            prop_assert!(header.reply(answer).is_some_and(|reply| reply.len() == HEADER_BYTES));
        }
    }
}
