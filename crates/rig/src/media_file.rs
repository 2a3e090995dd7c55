//! The pages of a drive in a sparse file: what was written is in it when the process ends, however it ends.
//!
//! ```text
//! header, one page, with the power cycles and what the drive has done at its end | namespaces: two slots of a page |
//! blocks: 16 bytes each | page records: 32 bytes each | payload
//! ```
//! A page's payload is written before its record, a block's record is all that an erase writes: whenever the process ends, each page
//! and each block is as it was before or after. What is not sound when it is read back is told from its check values. Every record that is
//! read has been written: those of the blocks, and what the header counts, when the file is made, those of a block's pages before the
//! block's own says that it is used. So zeros, as a file system may leave them where the machine stopped, are damage. The operating
//! system has what was written at once, so it outlasts the process; only closing the file waits until it outlasts the machine. Once it has
//! refused a write it takes no more (`aside`).

mod aside;
mod header;
mod making;
mod past;
mod refusal;
mod room;
mod seed;
mod switch;

pub(crate) use past::Past;
pub use refusal::Refusal;

use crate::hardware::Standstill;
use crate::kept_namespaces::KEPT_MAX;
use crate::table_slots::{SLOTS_BYTES, TableSlots};
use aside::Aside;
use flash::{Contents, DRAW, Geometry, StoredBlock, StoredPage};
use header::VERSION;
use making::{Hindrance, Making};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use thiserror::Error;
use units::{BlockId, ChannelId, Ppn};

const HEADER_BYTES: u64 = 4096;
const BLOCK_BYTES: u64 = 16;
const PAGE_BYTES: u64 = 32;

/// A file that cannot keep a drive's pages.
#[derive(Debug, Error)]
pub enum MediaFileError {
    /// The system refuses.
    #[error("{file}: {error}; expected a file that can be read and written")]
    System {
        /// The file.
        file: String,
        /// What it says.
        error: std::io::Error,
    },
    /// There is no room for a new one.
    #[error("{file}: {error}; expected a disk with room for a new media file, and for what hosts will write")]
    NoRoom {
        /// The file, which was not made.
        file: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// Another process has it.
    #[error("{file}: in use by another drive; expected a file of its own")]
    InUse {
        /// The file.
        file: String,
    },
    /// Something else, or of another version.
    #[error("{file}: {found}; expected a media file of version {VERSION}, or one that does not exist yet")]
    Foreign {
        /// The file.
        file: String,
        /// What it is.
        found: String,
    },
    /// More namespaces than it has room to keep.
    #[error(
        "{file}: device.namespace_bytes has {found} namespaces; expected at most {KEPT_MAX}, which a media file can keep"
    )]
    TooManyNamespaces {
        /// The file, which was not made.
        file: String,
        /// How many the drive has.
        found: usize,
    },
    /// Made by a drive of another kind.
    #[error("{file}: {field} is {found}; expected {expected}, as this drive has")]
    OtherDrive {
        /// The file.
        file: String,
        /// What differs.
        field: String,
        /// What the file has.
        found: String,
        /// What the drive has.
        expected: String,
        /// The key that decides it, where `field` is none.
        key: Option<&'static str>,
    },
    /// Made by a build that drew otherwise what fails: other pages would be lost, and other blocks nobody's.
    #[error(
        "{file}: what fails of its flash was drawn in way {found}, and this build draws in way {DRAW}; expected a file that it made, or \
         device.media.faults=false"
    )]
    OtherDraw {
        /// The file.
        file: String,
        /// How it was drawn.
        found: u32,
    },
    /// What fails of it is drawn by another seed: other pages would be lost.
    #[error(
        "{file}: what fails of its flash is drawn by run.seed {found}; expected {expected}, as this drive has, or \
         device.media.faults=false"
    )]
    OtherSeed {
        /// The file.
        file: String,
        /// The seed that it has.
        found: u64,
        /// The drive's.
        expected: u64,
    },
    /// Cut, or with something behind its end.
    #[error("{file}: {found} bytes; expected {expected}, as a whole file of this drive has")]
    OtherLength {
        /// The file.
        file: String,
        /// Its bytes.
        found: u64,
        /// How many they should be.
        expected: u64,
    },
    /// A record that nobody wrote so.
    #[error("{file}: the record of {what} is damaged; expected a file as its drive left it")]
    Damaged {
        /// The file.
        file: String,
        /// Of what.
        what: String,
    },
}

/// How often a file is looked for that others make and remove meanwhile.
const ATTEMPTS: u32 = 16;

fn lock(file: &File, name: &str) -> Result<(), MediaFileError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(MediaFileError::InUse { file: name.into() }),
        Err(TryLockError::Error(error)) => Err(MediaFileError::System { file: name.into(), error }),
    }
}

/// Where the parts of a file are.
#[derive(Clone, Copy, Debug)]
struct Layout {
    namespaces: u64,
    blocks: u64,
    pages: u64,
    payload: u64,
    payload_bytes: u64,
    end: u64,
}

impl Layout {
    /// Every page has room for all its bytes, however many of them are kept, and for the words beside its sectors, if there are any:
    /// the file is sparse.
    fn of(geometry: &Geometry, page_words: usize) -> Layout {
        let payload_bytes = geometry.shape().page.0.max(page_words as u64 * 8);
        let whole = |bytes: u64| bytes.next_multiple_of(HEADER_BYTES);
        let namespaces = HEADER_BYTES;
        let blocks = namespaces + SLOTS_BYTES;
        let pages = blocks + whole(u64::from(geometry.block_count()) * BLOCK_BYTES);
        let payload = pages + whole(u64::from(geometry.page_count()) * PAGE_BYTES);
        let end = payload + u64::from(geometry.page_count()) * payload_bytes;
        Layout { namespaces, blocks, pages, payload, payload_bytes, end }
    }
}

/// An open file.
#[derive(Clone, Debug)]
pub(crate) struct MediaFile {
    file: Arc<File>,
    path: PathBuf,
    layout: Layout,
    geometry: Geometry,
    /// Why it takes no more pages, once it has refused one.
    refused: Arc<OnceLock<Refusal>>,
    /// Whether its dies stand still.
    standstill: Standstill,
}

impl MediaFile {
    /// Opens a file, or makes one; whether it is new. `identity` names whatever must be the same when it is opened again, a line
    /// `field = value` each. Where something fails, how that was drawn counts, and by which `seed`.
    ///
    /// # Errors
    /// A file that cannot be opened, is another's or is damaged.
    pub(crate) fn open(
        path: &Path,
        geometry: &Geometry,
        page_words: usize,
        identity: &str,
        seed: Option<u64>,
    ) -> Result<(MediaFile, bool), MediaFileError> {
        let name = path.display().to_string();
        let system = |error| MediaFileError::System { file: name.clone(), error };
        let foreign = |found: &str| MediaFileError::Foreign { file: name.clone(), found: found.into() };
        let layout = Layout::of(geometry, page_words);
        let of = |file| MediaFile {
            file: Arc::new(file),
            path: path.into(),
            layout,
            geometry: geometry.clone(),
            refused: Arc::default(),
            standstill: Standstill::default(),
        };
        // Another may make the file while this one looks for it, or begin to; then it is there the next time.
        for _ in 0..ATTEMPTS {
            match OpenOptions::new().read(true).write(true).open(path) {
                Ok(file) => match file.metadata().map_err(system)? {
                    about if !about.is_file() => return Err(foreign("no regular file")),
                    about if about.len() > 0 => {
                        lock(&file, &name)?;
                        let file = of(file);
                        file.check(about.len(), identity, seed)?;
                        making::clean(path);
                        return Ok((file, false));
                    }
                    _ => {}
                },
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(system(error)),
            }
            match Making::begin(path) {
                Ok(making) => {
                    let file = of(making.file.try_clone().map_err(system)?);
                    let Err(error) = file.format(identity).and_then(|()| making.finish()) else {
                        return Ok((file, true));
                    };
                    // While it is open it is in use.
                    drop(file);
                    making::clean(path);
                    return Err(match error.kind() {
                        ErrorKind::StorageFull => MediaFileError::NoRoom { file: name, error },
                        _ => system(error),
                    });
                }
                Err(Hindrance::IsThere) => {}
                Err(Hindrance::InUse) => return Err(MediaFileError::InUse { file: name }),
                Err(Hindrance::System(error)) => return Err(system(error)),
            }
        }
        Err(MediaFileError::InUse { file: name })
    }

    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn format(&self, identity: &str) -> std::io::Result<()> {
        self.file.set_len(self.layout.end)?;
        TableSlots::format(self.file.clone(), self.layout.namespaces)?;
        let blocks: Vec<u32> = (0..self.geometry.block_count()).collect();
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            let records: Vec<u8> = some.iter().flat_map(|block| block_record(BlockId(*block), None)).collect();
            self.file.write_all_at(&records, self.block_at(BlockId(some[0])))?;
        }
        self.file.write_all_at(&header::encode(identity), 0)?;
        self.keep_past(&Past::default())?;
        self.format_switch()
    }

    /// Checks that the header is that of this drive.
    fn check(&self, length: u64, identity: &str, seed: Option<u64>) -> Result<(), MediaFileError> {
        let foreign = |found: String| MediaFileError::Foreign { file: self.name(), found };
        let mut header = [0; HEADER_BYTES as usize];
        self.file.read_exact_at(&mut header, 0).map_err(|_| foreign("too short".into()))?;
        let header = header::decode(&header).map_err(foreign)?;
        self.compare(header.text, identity)?;
        if let Some(seed) = seed {
            if header.draw != DRAW {
                return Err(MediaFileError::OtherDraw { file: self.name(), found: header.draw });
            }
            self.check_seed(seed)?;
        }
        if length != self.layout.end {
            return Err(MediaFileError::OtherLength { file: self.name(), found: length, expected: self.layout.end });
        }
        self.check_switch()
    }

    /// Compares what names a drive, line by line.
    fn compare(&self, found: &str, expected: &str) -> Result<(), MediaFileError> {
        if found == expected {
            return Ok(());
        }
        let (held, asked) = (values(found), values(expected));
        let value = |lines: &[(&str, &str)], field: &str| {
            let usual = USUAL.iter().find(|(name, _)| *name == field);
            lines.iter().chain(usual).find(|(name, _)| *name == field).map_or("none", |&(_, value)| value).to_owned()
        };
        let mut pairs = asked.iter().chain(&held).map(|(field, _)| (*field, value(&held, field), value(&asked, field)));
        let Some((field, found, expected)) = pairs.find(|(_, found, expected)| found != expected) else {
            return Err(MediaFileError::Foreign { file: self.name(), found: "a damaged header".into() });
        };
        Err(MediaFileError::OtherDrive { file: self.name(), field: field.into(), found, expected, key: None })
    }

    /// The pages of a channel as the file has them, kept there from now on.
    ///
    /// # Errors
    /// A file that cannot be read, or with records that nobody wrote so.
    pub(crate) fn restore(&self, mut contents: Contents, channel: ChannelId) -> Result<Contents, MediaFileError> {
        contents = contents.kept_in(Box::new(Aside::new(self.clone())));
        let system = |error| MediaFileError::System { file: self.name(), error };
        let damaged = |what: String| MediaFileError::Damaged { file: self.name(), what };
        let per_block = self.geometry.shape().pages_per_block;
        let mut records = vec![0; (u64::from(per_block) * PAGE_BYTES) as usize];
        let of_channel = |block: &BlockId| self.geometry.die_of(*block).0 == channel;
        for block in (0..self.geometry.block_count()).map(BlockId).filter(of_channel) {
            let state = self.block(block).map_err(|error| match error.kind() {
                ErrorKind::InvalidData => damaged(block.to_string()),
                _ => system(error),
            })?;
            let Some(state) = state else { continue };
            contents.restore_block(block, state).map_err(|_| damaged(block.to_string()))?;
            if state.torn {
                continue;
            }
            let first = self.geometry.page(block, 0);
            self.file.read_exact_at(&mut records, self.page_at(first)).map_err(system)?;
            for (ppn, record) in (first.0..).map(Ppn).zip(records.chunks_exact(PAGE_BYTES as usize)) {
                if !is_sound(ppn.0, record, PAGE_SEAL) {
                    return Err(damaged(ppn.to_string()));
                }
                let (stored, _) = decode(record);
                // The block's own record comes first: one that says less is older than what it had said.
                if stored.erases > state.erases {
                    return Err(damaged(block.to_string()));
                }
                if stored.mark != 0 && stored.erases == state.erases {
                    contents.restore_page(ppn, stored).map_err(|_| damaged(ppn.to_string()))?;
                }
            }
        }
        Ok(contents)
    }

    /// Where the table of the namespaces is kept, and what it is: of no bytes until they have changed.
    ///
    /// # Errors
    /// A file that cannot be read, or that has none that is whole.
    pub(crate) fn namespaces(&self) -> Result<(TableSlots, Vec<u8>), MediaFileError> {
        let system = |error| MediaFileError::System { file: self.name(), error };
        let found = TableSlots::open(self.file.clone(), self.layout.namespaces).map_err(system)?;
        found.ok_or_else(|| self.damaged("the namespaces"))
    }

    /// The record of something is damaged.
    pub(crate) fn damaged(&self, what: impl Into<String>) -> MediaFileError {
        MediaFileError::Damaged { file: self.name(), what: what.into() }
    }

    fn page_at(&self, ppn: Ppn) -> u64 {
        self.layout.pages + u64::from(ppn.0) * PAGE_BYTES
    }

    fn payload_at(&self, ppn: Ppn) -> u64 {
        self.layout.payload + u64::from(ppn.0) * self.layout.payload_bytes
    }

    fn block_at(&self, block: BlockId) -> u64 {
        self.layout.blocks + u64::from(block.0) * BLOCK_BYTES
    }

    /// The record of a block; none if it was never touched.
    fn block(&self, block: BlockId) -> std::io::Result<Option<StoredBlock>> {
        let mut record = [0; BLOCK_BYTES as usize];
        self.file.read_exact_at(&mut record, self.block_at(block))?;
        if !is_sound(block.0, &record, BLOCK_SEAL) {
            return Err(refusal::unsound(block));
        }
        let erases = u32::from_le_bytes(record[..4].try_into().expect("four bytes"));
        let [_, _, _, _, touched, bad, torn, ..] = record;
        Ok((touched == 1).then_some(StoredBlock { erases, bad: bad == 1, torn: torn == 1 }))
    }

    fn touch(&self, block: BlockId, state: StoredBlock) -> std::io::Result<()> {
        if self.block(block)?.is_none() {
            let (first, pages) = (self.geometry.page(block, 0), self.geometry.shape().pages_per_block);
            let nothing = (first.0..first.0 + pages).flat_map(|page| encode(Ppn(page), StoredPage::default(), 0));
            self.file.write_all_at(&nothing.collect::<Vec<u8>>(), self.page_at(first))?;
        }
        self.file.write_all_at(&block_record(block, Some(state)), self.block_at(block))
    }
}

/// Lines that a header has only where they say something else than this.
const USUAL: [(&str, &str); 2] = [("device.media.factory_bad", "0"), ("firmware.mapping", "page")];

/// The lines of what names a drive, each as its field and value.
fn values(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter_map(|line| line.split_once(" = ")).collect()
}

/// Records of blocks that a new file is given at once.
const BLOCKS_AT_ONCE: usize = 1 << 16;

/// The record of a block; of one that was never touched, none.
fn block_record(block: BlockId, state: Option<StoredBlock>) -> [u8; BLOCK_BYTES as usize] {
    let mut record = [0; BLOCK_BYTES as usize];
    if let Some(state) = state {
        record[..4].copy_from_slice(&state.erases.to_le_bytes());
        (record[4], record[5], record[6]) = (1, state.bad.into(), state.torn.into());
    }
    seal(block.0, &mut record, BLOCK_SEAL);
    record
}

/// A sum over the words of a payload in their order (multiply and rotate, with the golden ratio of 64 bits).
pub(crate) fn sum(payload: &[u64]) -> u64 {
    payload
        .iter()
        .fold(0x9e37_79b9_7f4a_7c15, |sum: u64, word| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

/// The same of a page's payload: the 48 bits that its record has room for.
fn page_sum(payload: &[u64]) -> u64 {
    sum(payload) >> 16
}

/// Where the check value of a record is: two bytes that hold nothing else.
const BLOCK_SEAL: usize = 8;
const PAGE_SEAL: usize = 30;

/// The check value of the `number`-th record, of all its other bytes; never 0, so that none is of zeros alone.
fn check_of(number: u32, record: &[u8], at: usize) -> [u8; 2] {
    let check = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &record[..at]);
    let check = crc32c::crc32c_append(check, &record[at + 2..]);
    ((check >> 16 ^ check) as u16).max(1).to_le_bytes()
}

fn seal(number: u32, record: &mut [u8], at: usize) {
    let check = check_of(number, record, at);
    record[at..at + 2].copy_from_slice(&check);
}

fn is_sound(number: u32, record: &[u8], at: usize) -> bool {
    record[at..at + 2] == check_of(number, record, at)
}

fn encode(ppn: Ppn, page: StoredPage, sum: u64) -> [u8; PAGE_BYTES as usize] {
    let mut record = [0; PAGE_BYTES as usize];
    record[..4].copy_from_slice(&page.mark.to_le_bytes());
    record[4..8].copy_from_slice(&page.erases.to_le_bytes());
    record[8..12].copy_from_slice(&page.check.to_le_bytes());
    for (at, word) in [(12, page.sequence), (18, page.owner), (24, sum)] {
        record[at..at + 6].copy_from_slice(&word.to_le_bytes()[..6]);
    }
    seal(ppn.0, &mut record, PAGE_SEAL);
    record
}

/// A page's record, and the sum of its payload.
fn decode(record: &[u8]) -> (StoredPage, u64) {
    let whole =
        |from: usize, to: usize| record[from..to].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let [mark, erases, check] = [0, 4, 8].map(|at| whole(at, at + 4) as u32);
    (StoredPage { mark, owner: whole(18, 24), sequence: whole(12, 18), check, erases }, whole(24, 30))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flash::{CellKind, Media, Oob, Shape};
    use units::{Bytes, Lpn};

    /// As where the machine stopped, and of two writes the second alone was on the medium: a page of a later cycle than its block's.
    #[test]
    fn a_page_of_a_cycle_that_its_block_has_not_come_to_is_damaged() {
        let shape = Shape {
            channels: 1,
            packages_per_channel: 1,
            dies_per_package: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 8,
            page: Bytes::kib(4),
            oob: Bytes(224),
            kind: CellKind::Mlc,
        };
        let (geometry, channel, block) = (Geometry::new(shape).unwrap(), ChannelId(0), BlockId(0));
        let path = std::env::temp_dir().join(format!("flashloom-cycles-{}.media", std::process::id()));
        let (file, _) = MediaFile::open(&path, &geometry, 512, "drive = a small one\n", None).unwrap();
        let restored = || file.restore(Contents::for_channel(&geometry, channel, 64, 100), channel);
        let (mut contents, page) = (restored().unwrap(), geometry.page(block, 0));
        let oob = |sequence| Oob { lpn: Lpn(5), owner: 1, sequence };
        contents.program(page, oob(1), &[7; 512]).unwrap();
        let before = file.block(block).unwrap().expect("it was used");
        contents.erase(block).unwrap();
        contents.program(page, oob(2), &[8; 512]).unwrap();
        assert_eq!(restored().unwrap().entry(page), Some(oob(2)));
        file.touch(block, before).unwrap();
        assert!(matches!(restored(), Err(MediaFileError::Damaged { .. })));
        std::fs::remove_file(path).unwrap();
    }
}
