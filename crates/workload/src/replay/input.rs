//! Opens a trace, plain or compressed, and hands out its beginning, its lines or its bytes; never the whole of it.

use super::error::{Position, TraceError};
use super::gzip::GzipMembers;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// How much of a file its format is recognised by.
const HEAD_BYTES: u64 = 64 << 10;
/// No format has longer lines; a file without line ends is not read into memory whole.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// What some editors put before UTF-8. No binary format of the list begins so.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What traces come in that this does not open: its first bytes, where they stand, and its name.
const CONTAINERS: &[(&[u8], usize, &str)] = &[
    (b"PK\x03\x04", 0, "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", 0, "a 7z archive"),
    (b"Rar!\x1a\x07", 0, "a rar archive"),
    (b"ustar", 257, "a tar archive"),
    (b"BZh", 0, "compressed with bzip2"),
    (b"\x04\x22\x4d\x18", 0, "compressed with lz4"),
];

/// The beginning of a file, uncompressed.
pub struct Head {
    pub(super) bytes: Vec<u8>,
    /// Its name in lower case, without its folder.
    pub(super) file_name: String,
    /// Whether the bytes are the whole file.
    pub(super) whole: bool,
}

impl Head {
    /// What stands behind the points of its name, in order.
    pub(super) fn extensions(&self) -> impl Iterator<Item = &str> {
        self.file_name.split('.').skip(1)
    }

    /// The lines that are complete.
    pub(super) fn lines(&self) -> Vec<String> {
        let end = match self.bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) if !self.whole => last,
            _ => self.bytes.len(),
        };
        String::from_utf8_lossy(&self.bytes[..end]).lines().map(str::to_string).collect()
    }
}

/// An open trace.
pub(super) struct Input {
    pub(super) path: PathBuf,
    /// What it is compressed with.
    packed: Option<&'static str>,
    reader: BufReader<Box<dyn Read>>,
    line: Vec<u8>,
}

impl Input {
    /// Opens a file and reads its head.
    pub(super) fn open(path: &Path) -> Result<(Self, Head), TraceError> {
        let unusable = |source| TraceError::Open { path: path.into(), source };
        let file = File::open(path).map_err(unusable)?;
        if file.metadata().map_err(unusable)?.is_dir() {
            return Err(unusable(ErrorKind::IsADirectory.into()));
        }
        Input::new(path, file)
    }

    /// Reads the head, which is read again by what follows.
    pub(super) fn new(path: &Path, stored: impl Read + 'static) -> Result<(Self, Head), TraceError> {
        let mut file = BufReader::new(stored);
        let mut magic = Vec::new();
        let begun = file.by_ref().take(6).read_to_end(&mut magic);
        let packed = packed_with(&magic);
        let reading = |at: usize, source| {
            let (path, position) = (path.into(), Position::Byte(at as u64));
            TraceError::Read { path, position, packed, source }
        };
        begun.map_err(|source| reading(0, source))?;
        if magic.is_empty() {
            return Err(TraceError::Empty { path: path.into() });
        }
        let stored = BufReader::new(Cursor::new(magic).chain(file));
        let mut plain = decompressed(packed, stored).map_err(|source| reading(0, source))?;
        let mut bytes = Vec::new();
        let read = plain.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes);
        let length = read.map_err(|source| reading(bytes.len(), source))?;
        if length == 0 {
            return Err(TraceError::Empty { path: path.into() });
        }
        let twice = packed.and_then(|_| packed_with(&bytes)).map(|_| "compressed twice");
        if let Some(container) = twice.or_else(|| container(&bytes)) {
            return Err(TraceError::Container { path: path.into(), container });
        }
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let head = Head { bytes: bytes.clone(), file_name, whole: (length as u64) < HEAD_BYTES };
        let reader = BufReader::with_capacity(64 << 10, Box::new(Cursor::new(bytes).chain(plain)) as Box<dyn Read>);
        Ok((Input { path: path.into(), packed, reader, line: Vec::new() }, head))
    }

    /// The next line without its end; `None` at the end of the file. Bytes that are not UTF-8 become replacement
    /// characters, which no numeric field accepts and any name may hold. A line too long for any format comes cut, and its rest not
    /// at all.
    pub(super) fn line(&mut self, position: Position) -> Result<Option<std::borrow::Cow<'_, str>>, TraceError> {
        self.line.clear();
        let mut limited = self.reader.by_ref().take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.line);
        if read.map_err(|source| self.unread(position, source))? == 0 {
            return Ok(None);
        }
        if self.line.len() as u64 == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
            self.skip_line().map_err(|source| self.unread(position, source))?;
        }
        Ok(Some(String::from_utf8_lossy(self.line.trim_ascii_end())))
    }

    /// Passes over what is left of a line.
    fn skip_line(&mut self) -> std::io::Result<()> {
        loop {
            let rest = self.reader.fill_buf()?;
            let (end, length) = (rest.iter().position(|byte| *byte == b'\n'), rest.len());
            self.reader.consume(end.map_or(length, |end| end + 1));
            if end.is_some() || length == 0 {
                return Ok(());
            }
        }
    }

    /// Appends up to `count` bytes; how many there were.
    pub(super) fn bytes(&mut self, count: usize, into: &mut Vec<u8>, at: Position) -> Result<usize, TraceError> {
        let read = self.reader.by_ref().take(count as u64).read_to_end(into);
        read.map_err(|source| self.unread(at, source))
    }

    fn unread(&self, position: Position, source: std::io::Error) -> TraceError {
        TraceError::Read { path: self.path.clone(), position, packed: self.packed, source }
    }
}

/// The longest window that zstd writes (`ZSTD_WINDOWLOG_MAX`): without being told it reads none above 128 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = if usize::BITS == 32 { 30 } else { 31 };

const ZSTD: &str = "zstd";
const GZIP: &str = "gzip";
const XZ: &str = "xz";

/// By the magic bytes of each compression.
fn packed_with(magic: &[u8]) -> Option<&'static str> {
    match magic {
        // Frames that hold no text may stand first: pzstd begins with one (RFC 8878 §3.1.2).
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(ZSTD),
        // There is one method (RFC 1952 §2.3.1), and two bytes alone are a number that a record may begin with.
        [0x1f, 0x8b, 8, ..] => Some(GZIP),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Some(XZ),
        _ => None,
    }
}

/// Concatenated streams are read to their end.
fn decompressed(packed: Option<&str>, file: impl BufRead + 'static) -> std::io::Result<Box<dyn Read>> {
    Ok(match packed {
        Some(ZSTD) => {
            let mut decoder = zstd::Decoder::with_buffer(file)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
        Some(GZIP) => Box::new(GzipMembers::of(file)),
        Some(XZ) => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(file)),
        _ => Box::new(file),
    })
}

/// What the file is instead of a trace, by the bytes that its kind has in a fixed place.
fn container(bytes: &[u8]) -> Option<&'static str> {
    // Behind two bytes that may be a number stand the mode that all but the first of them write, and the bits of a code.
    if let [0x1f, 0x9d, mode, ..] = bytes
        && mode & 0x80 != 0
        && (9..=16).contains(&(mode & 0x7f))
    {
        return Some("compressed with compress");
    }
    // A mark, then letters of two bytes: one alone could be a number.
    let of_two = |mark: &[u8], letter: usize| {
        bytes.starts_with(mark) && bytes[2..].chunks(2).take(8).all(|two| two.get(letter) == Some(&0))
    };
    if of_two(b"\xff\xfe", 1) || of_two(b"\xfe\xff", 0) {
        return Some("text in UTF-16");
    }
    let fits = |(magic, at, _): &&(&[u8], usize, &str)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    CONTAINERS.iter().find(fits).map(|(_, _, name)| *name)
}

#[cfg(test)]
mod tests {
    use crate::replay::{Options, Trace, TraceError, TraceSummary, format_named};
    use std::io::{Cursor, Write};
    use std::path::Path;

    fn read(stored: &[u8], format: &str) -> Result<TraceSummary, TraceError> {
        let options = Options { format: format_named(format), ..Options::default() };
        Trace::read(Path::new("sample"), Cursor::new(stored.to_vec()), &options).map(|trace| trace.summary().clone())
    }

    /// As `zstd --long=28` writes it, in one block that is not compressed.
    #[test]
    fn a_zstd_window_may_be_longer_than_most_are() {
        let text = b"0,7,3584,w,0.5\n";
        let of_window = |log: u8| {
            let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3];
            frame.extend([(text.len() as u8) << 3 | 1, 0, 0]);
            frame.extend(text);
            frame
        };
        for log in [10, 27, 28] {
            assert_eq!(read(&of_window(log), "auto").expect("it is whole").records, 1, "{log}");
        }
    }

    /// Its first number is the first of some window of a long trace.
    #[test]
    fn a_number_that_begins_as_a_compression_does_is_none() {
        for first in [0x1f, 0x8b, 0, 0, 0x1f, 0x9d, 0, 0, 0x1f, 0x9d, 0x85, 0].chunks(4) {
            let mut record = first.to_vec();
            record.extend([0, 16, 0, 0, 1, 0, 0, 0, 0x28, 0, 0, 1]);
            record.resize(32, 0);
            assert_eq!(read(&record, "vscsi").expect("a record").records, 1, "{first:x?}");
        }
        let said = read(&[0x1f, 0x9d, 0x90, b'0', 0, 0, 0, 0], "auto").expect_err("it is packed").to_string();
        assert!(said.starts_with("sample: it is compressed with compress; expected"), "{said}");
    }

    #[test]
    fn what_follows_a_gzip_member_and_is_none_is_named() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"0,7,3584,w,0.5\n").expect("to memory");
        let member = gzip.finish().expect("to memory");
        for rubbish in [&b"no member"[..], b"x", b"\0\0x"] {
            let said = read(&[&member, rubbish].concat(), "auto").expect_err("it is no end").to_string();
            assert!(said.ends_with("neither zeros nor another member after a member"), "{said}");
        }
    }
}
