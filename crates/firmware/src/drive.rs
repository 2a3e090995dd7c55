//! What a drive is made of, resolved once and shared by every stage: array, namespaces, queues and payload.

use crate::LOCK_REGION;
use flash::{Geometry, TAG_WORDS};
use nvme::NAMESPACES_MAX;
use thiserror::Error;
use units::{BlockId, Lba, Lpn, Ppn, SECTOR_BYTES};

/// Sectors of 512 B that one logical block of the host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LbaFormat {
    /// 512-byte blocks.
    B512,
    /// 4,096-byte blocks.
    B4096,
}

impl LbaFormat {
    /// Sectors a block.
    pub const fn sectors(self) -> u64 {
        match self {
            LbaFormat::B512 => 1,
            LbaFormat::B4096 => 8,
        }
    }
}

/// A namespace: a range of the drive's sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its first sector; a page begins there.
    pub base: Lba,
    /// Its sectors.
    pub sectors: u64,
}

/// What a drive is built from.
#[derive(Clone, Debug)]
pub struct DriveShape {
    /// The flash array.
    pub geometry: Geometry,
    /// Sectors that hosts see, dealt to the namespaces in order.
    pub namespaces: Vec<u64>,
    /// How blocks are counted by the host.
    pub format: LbaFormat,
    /// Blocks that are bad from the factory.
    pub bad_blocks: Vec<BlockId>,
    /// How often each block can be erased, where the firmware is told; it goes by that if no erase that fails tells it.
    pub erases_max: Option<u32>,
    /// I/O queue pairs the host may create.
    pub queues: u32,
    /// Most entries of a submission queue.
    pub queue_entries: u32,
    /// Most sectors a command moves (MDTS).
    pub transfer_sectors: u32,
    /// Words of payload for each sector: 0 lengths only, 1 a fingerprint, 64 every byte.
    pub sector_words: usize,
    /// Whether each sector has a tag and a seal beside it ([`flash::seal`]): metadata of the host, and end-to-end protection.
    pub tags: bool,
    /// Whether every write is on flash before it is answered: the volatile write cache is off.
    pub write_through: bool,
    /// Whether what the buffer holds is brought to flash when the power fails.
    pub protected: bool,
    /// Whether every byte of the journal is kept, for recovery to read; else what is kept of other pages.
    pub keeps_journal: bool,
}

impl DriveShape {
    /// A drive of one queue pair that keeps a fingerprint of each sector, and has nothing else that it need not have.
    pub fn plain(geometry: Geometry, namespaces: Vec<u64>) -> Self {
        DriveShape {
            geometry,
            namespaces,
            format: LbaFormat::B512,
            bad_blocks: Vec::new(),
            erases_max: None,
            queues: 1,
            queue_entries: 64,
            transfer_sectors: (LOCK_REGION.0 / SECTOR_BYTES) as u32,
            sector_words: 1,
            tags: false,
            write_through: false,
            protected: false,
            keeps_journal: false,
        }
    }
}

/// The longest page: its out-of-band entry has a mark for each of 32 sectors.
const PAGE_BYTES_MAX: u64 = 32 * SECTOR_BYTES;

/// A drive that cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DriveError {
    /// The namespaces leave no room for the firmware.
    #[error("the namespaces need {needed} pages and the firmware {reserve} to work with, but the array has {pages}")]
    NoRoom {
        /// Pages of the namespaces.
        needed: u64,
        /// Pages that must stay free.
        reserve: u64,
        /// Pages of the array.
        pages: u64,
    },
    /// None, or more namespaces than requests can tell apart.
    #[error("{0} namespaces; expected 1 to {NAMESPACES_MAX}")]
    Namespaces(usize),
    /// A namespace of no size.
    #[error("namespace {0} has no sectors")]
    EmptyNamespace(usize),
    /// Too few or too many queues.
    #[error("{0} I/O queues; expected 1 to 65535")]
    Queues(u32),
    /// A queue of an impossible size.
    #[error("queues of {0} entries; expected 2 to 65536")]
    QueueEntries(u32),
    /// Commands longer than what two lock regions order.
    #[error("commands of {0} sectors; expected at most {most}: a range meets two lock regions", most = LOCK_REGION.0 / SECTOR_BYTES)]
    Transfer(u32),
    /// A page with more sectors than its out-of-band entry has marks for.
    #[error("flash pages of {0} bytes; the firmware maps pages of 512 to {PAGE_BYTES_MAX} bytes")]
    PageBytes(u64),
}

/// A checked [`DriveShape`].
#[derive(Clone, Debug)]
pub struct Drive {
    shape: DriveShape,
    namespaces: Vec<Namespace>,
    sectors_per_page: u32,
    pages: u32,
}

impl Drive {
    /// Checks a shape. `reserve` is the number of pages that the firmware needs beyond the namespaces.
    pub fn new(shape: DriveShape, reserve: u64) -> Result<Self, DriveError> {
        let page = shape.geometry.shape().page.0;
        if page > PAGE_BYTES_MAX {
            return Err(DriveError::PageBytes(page));
        }
        if shape.queues == 0 || shape.queues > 65_535 {
            return Err(DriveError::Queues(shape.queues));
        }
        if shape.queue_entries < 2 || shape.queue_entries > 65_536 {
            return Err(DriveError::QueueEntries(shape.queue_entries));
        }
        if u64::from(shape.transfer_sectors) * SECTOR_BYTES > LOCK_REGION.0 {
            return Err(DriveError::Transfer(shape.transfer_sectors));
        }
        if !(1..=NAMESPACES_MAX).contains(&shape.namespaces.len()) {
            return Err(DriveError::Namespaces(shape.namespaces.len()));
        }
        let sectors_per_page = page / SECTOR_BYTES;
        let (mut namespaces, mut at) = (Vec::new(), 0u64);
        for (index, &sectors) in shape.namespaces.iter().enumerate() {
            if sectors == 0 {
                return Err(DriveError::EmptyNamespace(index + 1));
            }
            namespaces.push(Namespace { base: Lba(at), sectors });
            at += sectors.next_multiple_of(sectors_per_page);
        }
        let (needed, pages) = (at / sectors_per_page, u64::from(shape.geometry.page_count()));
        if needed + reserve > pages {
            return Err(DriveError::NoRoom { needed, reserve, pages });
        }
        Ok(Drive { shape, namespaces, sectors_per_page: sectors_per_page as u32, pages: needed as u32 })
    }

    /// The flash array.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.shape.geometry
    }
    /// What it was built from.
    #[inline]
    pub fn shape(&self) -> &DriveShape {
        &self.shape
    }
    /// The namespace of an NVMe identifier, which counts from 1.
    #[inline]
    pub fn namespace(&self, id: u32) -> Option<&Namespace> {
        self.namespaces.get((id as usize).checked_sub(1)?)
    }
    /// All of them, in the order of their identifiers.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }
    /// Logical pages of all namespaces.
    pub fn pages(&self) -> u32 {
        self.pages
    }
    /// Sectors of a page.
    #[inline]
    pub fn sectors_per_page(&self) -> u32 {
        self.sectors_per_page
    }
    /// Words from one sector to the next: payload, and tag and seal where there are any.
    #[inline]
    pub fn sector_words(&self) -> usize {
        self.shape.sector_words + if self.shape.tags { TAG_WORDS } else { 0 }
    }
    /// Seals sectors anew that are copied, word by word, out of places from `first` on, or into them: in between they are sealed for
    /// the place 0.
    pub(crate) fn displace(&self, kept: &mut [u64], first: u64) {
        if self.shape.tags {
            let held = self.shape.sector_words + 1;
            for (sector, kept) in (first..).zip(kept.chunks_exact_mut(held + 1)) {
                kept[held] = flash::moved(kept[held], sector, 0, held);
            }
        }
    }
    /// Payload words of a page, with what lies beside each sector.
    pub fn page_words(&self) -> usize {
        self.sectors_per_page as usize * self.sector_words()
    }
    /// Words of a page of the journal.
    pub fn journal_words(&self) -> usize {
        if self.shape.keeps_journal { self.whole_words() } else { self.page_words() }
    }
    /// Words of a whole page.
    pub fn whole_words(&self) -> usize {
        self.geometry().shape().page.0 as usize / 8
    }
    /// The channel of a physical page, as an index.
    #[inline]
    pub fn channel_of(&self, ppn: Ppn) -> usize {
        let geometry = self.geometry();
        geometry.die_of(geometry.block_of(ppn)).0.index()
    }
    /// Blocks of a namespace as sectors of the drive: the first, and how many. None where some lie outside.
    #[inline]
    pub(crate) fn sectors_of(&self, namespace: Namespace, first: u64, blocks: u64) -> Option<(u64, u64)> {
        let scale = self.shape.format.sectors();
        let end = first.checked_add(blocks)?.checked_mul(scale)?;
        (end <= namespace.sectors).then(|| (namespace.base.0 + first * scale, blocks * scale))
    }
    /// The page that a sector of the drive lies in.
    #[inline]
    pub fn page_of(&self, sector: u64) -> Lpn {
        // A page is a power of two of bytes, and so of sectors.
        Lpn((sector >> self.sectors_per_page.trailing_zeros()) as u32)
    }
}
