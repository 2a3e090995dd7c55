//! The protocol data units of NVMe/TCP: headers, lengths, digests (NVMe/TCP 1.0 §3.6.2).

use nvme::spec::{Completion, Submission};
use std::ops::Range;

/// Kinds of units, §3.6.1 (PDU-Type).
pub(crate) mod kind {
    pub(crate) const INITIALIZE_REQUEST: u8 = 0x00;
    pub(crate) const INITIALIZE_RESPONSE: u8 = 0x01;
    pub(crate) const HOST_TERMINATES: u8 = 0x02;
    pub(crate) const CONTROLLER_TERMINATES: u8 = 0x03;
    pub(crate) const COMMAND: u8 = 0x04;
    pub(crate) const RESPONSE: u8 = 0x05;
    pub(crate) const HOST_DATA: u8 = 0x06;
    pub(crate) const CONTROLLER_DATA: u8 = 0x07;
    pub(crate) const READY_TO_TRANSFER: u8 = 0x09;
}

/// Flags of the common header.
pub(crate) mod flag {
    pub(crate) const HEADER_DIGEST: u8 = 1;
    pub(crate) const DATA_DIGEST: u8 = 1 << 1;
    pub(crate) const LAST: u8 = 1 << 2;
    pub(crate) const SUCCESS: u8 = 1 << 3;
}

/// Bytes that every unit begins with.
pub(crate) const COMMON_BYTES: usize = 8;
/// Bytes of ICReq and ICResp.
pub(crate) const INITIALIZE_BYTES: usize = 128;
/// Bytes of the header of a command: the common header and an entry.
pub(crate) const COMMAND_BYTES: usize = 72;
/// Bytes of the headers of responses, data, R2T and terminations.
pub(crate) const OTHER_BYTES: usize = 24;
/// Most bytes that a termination repeats: of the header of the unit in error (§3.6.2.4).
const REPEATED_MAX: usize = 128;
/// Where data begin at the latest: their place has a byte (PDO).
const DATA_BEGIN_MAX: usize = 255;
/// Bytes of a digest.
const DIGEST_BYTES: usize = 4;

/// Most data of a command within its capsule: what a host over a fabric may send so with every command of its admin
/// queue, and here with I/O commands too.
pub const CAPSULE_MAX: usize = 8192;
/// Most data of one H2CData (MAXH2CDATA), and of what is asked for at a time: with it a connection's input has its bound.
pub const HOST_DATA_MAX: usize = 128 << 10;
/// The longest unit a host may send.
pub(crate) const UNIT_MAX: usize = DATA_BEGIN_MAX + HOST_DATA_MAX + DIGEST_BYTES;

/// Why a connection must end (§3.6.2.5, FES and FEI).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) status: u16,
    pub(crate) detail: u32,
}

impl Violation {
    /// A field of a header holds what it must not; `at` is its place.
    pub(crate) const fn field(at: u32) -> Self {
        Violation { status: 1, detail: at }
    }
    /// A unit that must not come now, or data that do not begin where the last ended (§3.3.2.2).
    pub(crate) const SEQUENCE: Violation = Violation { status: 2, detail: 0 };
    /// The digest of a header is not what its bytes give; this is what came.
    pub(crate) const fn header_digest(came: u32) -> Self {
        Violation { status: 3, detail: came }
    }
    /// Data beyond what R2T asked for.
    pub(crate) const OUT_OF_RANGE: Violation = Violation { status: 4, detail: 0 };
    /// More data in a unit than may be.
    pub(crate) const LIMIT: Violation = Violation { status: 5, detail: 0 };
    /// A parameter of ICReq that is not supported; `at` is its place.
    pub(crate) const fn unsupported(at: u32) -> Self {
        Violation { status: 6, detail: at }
    }
}

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) header_digest: bool,
    pub(crate) data_digest: bool,
    /// Data to the host begin at a multiple of this many bytes; 0 and 4 are anywhere.
    pub(crate) data_alignment: usize,
}

/// A unit from the host, checked; data are left where they lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Initialize(Agreed),
    Terminated,
    Command {
        submission: Submission,
        data: Range<usize>,
        /// The data digest does not fit the data.
        damaged: bool,
    },
    Data {
        command: u16,
        tag: u16,
        offset: u32,
        last: bool,
        data: Range<usize>,
        damaged: bool,
    },
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads a host's units, one after another.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The header of the unit that is coming fits its digest: it is not compared again with every piece of the data.
    is_sound: bool,
}

impl Reader {
    /// The first unit of `bytes` and its length; nothing if it is not there whole. `agreed` is none before ICReq.
    pub(crate) fn read(&mut self, bytes: &[u8], agreed: Option<Agreed>) -> Result<Option<(Unit, usize)>, Violation> {
        if bytes.len() < COMMON_BYTES {
            return Ok(None);
        }
        let is_digested = agreed.is_some_and(|agreed| agreed.header_digest);
        self.is_sound = !is_digested || self.is_sound || fits_digest(bytes)?;
        if !self.is_sound {
            return Ok(None);
        }
        let read = parse(bytes, agreed)?;
        self.is_sound = read.is_none();
        Ok(read)
    }
}

/// Bytes of the header of a unit that a host may send.
fn header_bytes(kind: u8) -> Option<usize> {
    match kind {
        kind::INITIALIZE_REQUEST => Some(INITIALIZE_BYTES),
        kind::COMMAND => Some(COMMAND_BYTES),
        kind::HOST_DATA | kind::HOST_TERMINATES => Some(OTHER_BYTES),
        _ => None,
    }
}

/// Whether a header is there, and its digest: no field is believed before they fit, and the unit's length is not waited for, which may be
/// what is damaged (§3.5). How long the header is, its kind says, and of a kind that there is not its own length, if any has that.
fn fits_digest(bytes: &[u8]) -> Result<bool, Violation> {
    let header = match bytes[0] {
        // It has no digest.
        kind::HOST_TERMINATES => return Ok(true),
        kind @ (kind::COMMAND | kind::HOST_DATA) => header_bytes(kind),
        _ => Some(usize::from(bytes[2])).filter(|header| [COMMAND_BYTES, OTHER_BYTES].contains(header)),
    };
    let Some(header) = header else { return Ok(true) };
    if bytes.len() < header + DIGEST_BYTES {
        return Ok(false);
    }
    let came = u32_at(bytes, header);
    if came == crc32c::crc32c(&bytes[..header]) { Ok(true) } else { Err(Violation::header_digest(came)) }
}

/// The first unit of bytes whose header, where it has a digest, is as it was sent.
fn parse(bytes: &[u8], agreed: Option<Agreed>) -> Result<Option<(Unit, usize)>, Violation> {
    let (kind, flags, header, whole) = (bytes[0], bytes[1], usize::from(bytes[2]), u32_at(bytes, 4) as usize);
    let expected = header_bytes(kind).ok_or(Violation::field(0))?;
    if kind == kind::HOST_TERMINATES {
        return Ok(termination(bytes, header, whole));
    }
    if (kind == kind::INITIALIZE_REQUEST) != agreed.is_none() {
        return Err(Violation::SEQUENCE);
    }
    if header != expected {
        return Err(Violation::field(2));
    }
    let layout = match agreed {
        None if whole != INITIALIZE_BYTES => return Err(Violation::field(4)),
        None => None,
        Some(agreed) => Some(Layout::of(bytes, agreed)?),
    };
    if bytes.len() < whole {
        return Ok(None);
    }
    let unit = match layout {
        None => initialize(bytes)?,
        Some(layout) => {
            let damaged = layout.is_damaged(bytes, whole);
            match kind {
                kind::COMMAND => Unit::Command { submission: submission(bytes), data: layout.data, damaged },
                _ => host_data(bytes, flags, layout.data, damaged)?,
            }
        }
    };
    Ok(Some((unit, whole)))
}

/// The host ends the connection. What is wrong with how it says so is answered by nothing, and not waited for (§3.6.2.4).
fn termination(bytes: &[u8], header: usize, whole: usize) -> Option<(Unit, usize)> {
    let is_sound = header == OTHER_BYTES && (OTHER_BYTES..=OTHER_BYTES + REPEATED_MAX).contains(&whole);
    let length = if is_sound { whole } else { bytes.len() };
    (bytes.len() >= length).then_some((Unit::Terminated, length))
}

fn initialize(bytes: &[u8]) -> Result<Unit, Violation> {
    if u16_at(bytes, 8) != 0 {
        return Err(Violation::unsupported(8));
    }
    // HPDA counts dwords from zero, 31 at most (§3.6.2.2).
    if bytes[10] > 31 {
        return Err(Violation::field(10));
    }
    let data_alignment = (usize::from(bytes[10]) + 1) * 4;
    let (header_digest, data_digest) = (bytes[11] & 1 != 0, bytes[11] & 2 != 0);
    Ok(Unit::Initialize(Agreed { header_digest, data_digest, data_alignment }))
}

fn submission(bytes: &[u8]) -> Submission {
    Submission(crate::port::words_of(&bytes[COMMON_BYTES..COMMAND_BYTES]))
}

fn host_data(bytes: &[u8], flags: u8, data: Range<usize>, damaged: bool) -> Result<Unit, Violation> {
    let length = u32_at(bytes, 16) as usize;
    if length > HOST_DATA_MAX {
        return Err(Violation::LIMIT);
    }
    if length != data.len() || length == 0 {
        return Err(Violation::field(16));
    }
    Ok(Unit::Data {
        command: u16_at(bytes, 8),
        tag: u16_at(bytes, 10),
        offset: u32_at(bytes, 12),
        last: flags & flag::LAST != 0,
        data,
        damaged,
    })
}

/// Where the parts of a unit with data lie.
struct Layout {
    data: Range<usize>,
    agreed: Agreed,
}

impl Layout {
    /// From the common header alone, so that lengths are refused before their bytes are waited for.
    fn of(bytes: &[u8], agreed: Agreed) -> Result<Layout, Violation> {
        let (flags, header, begin, whole) =
            (bytes[1], usize::from(bytes[2]), usize::from(bytes[3]), u32_at(bytes, 4) as usize);
        let (is_command, digests) = (bytes[0] == kind::COMMAND, flags & (flag::HEADER_DIGEST | flag::DATA_DIGEST));
        let with_header = header + if agreed.header_digest { DIGEST_BYTES } else { 0 };
        let unexpected = digests & flag::HEADER_DIGEST != 0 && !agreed.header_digest;
        if unexpected || (digests & flag::DATA_DIGEST != 0 && !agreed.data_digest) {
            return Err(Violation::field(1));
        }
        if agreed.header_digest && digests & flag::HEADER_DIGEST == 0 {
            return Err(Violation::field(1));
        }
        if whole < with_header {
            return Err(Violation::field(4));
        }
        if whole == with_header && is_command {
            return Ok(Layout { data: 0..0, agreed });
        }
        let trailer = if agreed.data_digest { DIGEST_BYTES } else { 0 };
        // CPDA is 0: data begin at any dword, but within the unit.
        if begin < with_header || !begin.is_multiple_of(4) || begin + trailer >= whole {
            return Err(Violation::field(if begin + trailer >= whole { 4 } else { 3 }));
        }
        if agreed.data_digest && digests & flag::DATA_DIGEST == 0 {
            return Err(Violation::field(1));
        }
        let most = if is_command { CAPSULE_MAX } else { HOST_DATA_MAX };
        if whole - begin - trailer > most {
            return Err(Violation::LIMIT);
        }
        Ok(Layout { data: begin..whole - trailer, agreed })
    }

    /// Whether the data do not fit their digest.
    fn is_damaged(&self, bytes: &[u8], whole: usize) -> bool {
        let with_digest = self.agreed.data_digest && !self.data.is_empty();
        with_digest && u32_at(bytes, whole - DIGEST_BYTES) != crc32c::crc32c(&bytes[self.data.clone()])
    }
}

/// Appends units for the host.
pub(crate) struct Encoder<'a> {
    pub(crate) to: &'a mut Vec<u8>,
    pub(crate) agreed: Agreed,
}

impl Encoder<'_> {
    fn common(&mut self, kind: u8, flags: u8, header: usize, begin: usize, whole: usize) -> usize {
        let at = self.to.len();
        self.to.extend_from_slice(&[kind, flags, header as u8, begin as u8]);
        self.to.extend_from_slice(&(whole as u32).to_le_bytes());
        at
    }

    /// ICResp: version 0, no alignment asked of the host, digests as it asked.
    pub(crate) fn initialize(&mut self) {
        let at = self.common(kind::INITIALIZE_RESPONSE, 0, INITIALIZE_BYTES, 0, INITIALIZE_BYTES);
        let digests = u8::from(self.agreed.header_digest) | u8::from(self.agreed.data_digest) << 1;
        self.to.extend_from_slice(&[0, 0, 0, digests]);
        self.to.extend_from_slice(&(HOST_DATA_MAX as u32).to_le_bytes());
        self.to.resize(at + INITIALIZE_BYTES, 0);
    }

    fn end_header(&mut self, at: usize) {
        if self.agreed.header_digest {
            let digest = crc32c::crc32c(&self.to[at..]);
            self.to.extend_from_slice(&digest.to_le_bytes());
        }
    }

    fn header_flags(&self) -> u8 {
        if self.agreed.header_digest { flag::HEADER_DIGEST } else { 0 }
    }

    fn header_bytes(&self) -> usize {
        OTHER_BYTES + if self.agreed.header_digest { DIGEST_BYTES } else { 0 }
    }

    /// A response capsule.
    pub(crate) fn response(&mut self, completion: Completion) {
        let at = self.common(kind::RESPONSE, self.header_flags(), OTHER_BYTES, 0, self.header_bytes());
        completion.0.iter().for_each(|word| self.to.extend_from_slice(&word.to_le_bytes()));
        self.end_header(at);
    }

    /// R2T for a part of a command's data.
    pub(crate) fn ready(&mut self, command: u16, tag: u16, part: Range<usize>) {
        let at = self.common(kind::READY_TO_TRANSFER, self.header_flags(), OTHER_BYTES, 0, self.header_bytes());
        self.to.extend_from_slice(&command.to_le_bytes());
        self.to.extend_from_slice(&tag.to_le_bytes());
        self.to.extend_from_slice(&(part.start as u32).to_le_bytes());
        self.to.extend_from_slice(&(part.len() as u32).to_le_bytes());
        self.to.extend_from_slice(&0u32.to_le_bytes());
        self.end_header(at);
    }

    /// C2HData with the whole of a command's data, which `fill` appends; with `success` it is the completion as well.
    pub(crate) fn data(&mut self, command: u16, bytes: usize, success: bool, fill: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.header_bytes().next_multiple_of(self.agreed.data_alignment.max(4));
        let trailer = if self.agreed.data_digest { DIGEST_BYTES } else { 0 };
        let digest = if self.agreed.data_digest { flag::DATA_DIGEST } else { 0 };
        let success = if success { flag::SUCCESS } else { 0 };
        let flags = self.header_flags() | digest | flag::LAST | success;
        let at = self.common(kind::CONTROLLER_DATA, flags, OTHER_BYTES, begin, begin + bytes + trailer);
        self.to.extend_from_slice(&command.to_le_bytes());
        self.to.extend_from_slice(&[0; 6]);
        self.to.extend_from_slice(&(bytes as u32).to_le_bytes());
        self.to.extend_from_slice(&0u32.to_le_bytes());
        self.end_header(at);
        self.to.resize(at + begin, 0);
        fill(self.to);
        assert_eq!(self.to.len(), at + begin + bytes, "as much data as was announced");
        if self.agreed.data_digest {
            let digest = crc32c::crc32c(&self.to[at + begin..]);
            self.to.extend_from_slice(&digest.to_le_bytes());
        }
    }

    /// C2HTermReq: why, and the header of the unit that was wrong, with which `came` begins; data of hosts are not told to anybody. It has
    /// no digests.
    pub(crate) fn terminate(&mut self, violation: Violation, came: &[u8]) {
        let (says, most) = (usize::from(came[2]), header_bytes(came[0]).unwrap_or(REPEATED_MAX));
        let repeated = &came[..says.clamp(COMMON_BYTES, most).min(REPEATED_MAX).min(came.len())];
        self.common(kind::CONTROLLER_TERMINATES, 0, OTHER_BYTES, 0, OTHER_BYTES + repeated.len());
        self.to.extend_from_slice(&violation.status.to_le_bytes());
        self.to.extend_from_slice(&violation.detail.to_le_bytes());
        self.to.extend_from_slice(&[0; 10]);
        self.to.extend_from_slice(repeated);
    }
}

#[cfg(test)]
mod tests;
