//! What the pages of one channel hold: payload words, out-of-band entries and wear, in memory for the pages touched.

use crate::Geometry;
use crate::media_fault::MediaFault;
use crate::oob::{Entry, Oob};
use crate::scrambler;
use crate::slabs::{Room, Slabs};
use crate::store::{PageStore, StoreFailed, StoredBlock, StoredPage};
use prefetch_index::prefetch_index;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use units::{BlockId, Bytes, ChannelId, Lba, Lpn, Ppn, SECTOR_BYTES, pattern};
use zerocopy::FromZeros;

/// Something that keeps pages. [`Contents`] is one; layers that add faults or count are others.
pub trait Media {
    /// Writes a page and its out-of-band entry.
    fn program(&mut self, ppn: Ppn, oob: Oob, payload: &[u64]) -> Result<(), MediaFault>;
    /// Reads a page. An erased one has no entry, and all its bits are set.
    fn read(&mut self, ppn: Ppn, payload: &mut [u64]) -> Result<Option<Oob>, MediaFault>;
    /// Erases a block.
    fn erase(&mut self, block: BlockId) -> Result<(), MediaFault>;
}

/// Which logical page each preconditioned page holds: a rule, so that a drive that was filled needs neither time nor memory
/// for it.
pub trait Labels: Debug + Send + Sync {
    /// The logical page that was left at `ppn`, a page that was preconditioned. At most [`Oob::LPN_MAX`].
    fn label(&self, ppn: Ppn) -> Lpn;
    /// Its whole out-of-band entry. Pages of the host are older than whatever is written later.
    fn entry(&self, ppn: Ppn) -> Oob {
        Oob { lpn: self.label(ppn), owner: 0, sequence: 0 }
    }
    /// Writes what a page holds that is kept whole (see [`Contents::keeping_whole`]).
    fn payload(&self, ppn: Ppn, payload: &mut [u64]) {
        let _ = ppn;
        payload.fill(0);
    }
}

/// Words of a sector of which every byte is kept.
const WHOLE_SECTOR: u32 = (SECTOR_BYTES / 8) as u32;

/// In the table of logical pages: not programmed. Zero, so that a fresh table is zeroed memory that nobody has touched.
const ERASED: u32 = 0;
/// In the table of logical pages: programmed or erased in part. Other entries are the logical page plus one.
const TORN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, FromZeros)]
struct Block {
    /// The lowest page that can still be programmed.
    written: u32,
    erases: u32,
    /// Pages before this one are preconditioned: their logical pages follow from the rule, and the table has nothing.
    ruled: u32,
    /// One more than the index of its chunk; zero for none.
    chunk: u32,
}

/// What the table of logical pages leaves open about the pages of one block.
#[derive(Debug)]
struct Chunk {
    /// Pages before this one were preconditioned, and are not in the chunk.
    first: u32,
    /// From that page on, as far as is programmed.
    entries: Vec<Entry>,
    /// Where its payload is.
    room: Room,
    /// Whether its pages are kept whole.
    is_whole: bool,
}

/// The pages of one channel. Channels share nothing, so each can live on a thread of its own.
///
/// A page takes 4 bytes, untouched until it is programmed; a block takes 16. The first program in a block after an
/// erase or after preconditioning takes a chunk for the rest, which the next erase gives back. Preconditioned pages
/// need neither: [`Labels`] names their logical pages;
/// sector `s` of logical page `l` holds `units::pattern` of sector `l x (sectors a page) + s` as write 0
/// left it, with owner 0 and sequence 0: older than whatever is written later.
#[derive(Debug)]
pub struct Contents {
    geometry: Geometry,
    channel: ChannelId,
    sector_words: u32,
    /// Words of tag and seal behind those of each sector.
    tag_words: usize,
    /// Whether what cells hold is scrambled, where every byte is kept.
    scrambles: bool,
    page_words: usize,
    erases_max: u32,
    lpns: Vec<u32>,
    blocks: Vec<Block>,
    chunks: Vec<Chunk>,
    /// Of pages that are not kept whole, and of those that are.
    chunks_free: [Vec<u32>; 2],
    slabs: Slabs,
    labels: Option<Arc<dyn Labels>>,
    /// Every byte of this page and of those behind it is kept, whatever is kept of others.
    whole_from: Ppn,
    /// Blocks in which an operation failed, by their index.
    bad: BTreeSet<usize>,
    /// Where payload is, if not in the chunks.
    store: Option<Box<dyn PageStore>>,
}

impl Contents {
    /// An erased channel that keeps `sector_words` words of each 512-byte sector (0: none, 1: a fingerprint, 64: all),
    /// with blocks that stand `erases_max` erases.
    pub fn for_channel(geometry: &Geometry, channel: ChannelId, sector_words: u32, erases_max: u32) -> Self {
        assert!(u32::from(channel.0) < geometry.shape().channels, "{channel} is not on this array");
        assert!(sector_words <= WHOLE_SECTOR, "a sector has 64 words, not {sector_words}");
        let channels = geometry.shape().channels;
        let blocks = (geometry.block_count() / channels) as usize;
        let pages = (geometry.page_count() / channels) as usize;
        let page_words = (geometry.shape().page.0 / SECTOR_BYTES) as usize * sector_words as usize;
        Contents {
            geometry: geometry.clone(),
            channel,
            sector_words,
            tag_words: 0,
            scrambles: false,
            page_words,
            erases_max,
            lpns: vec![ERASED; pages],
            blocks: Block::new_vec_zeroed(blocks).expect("memory for sixteen bytes a block"),
            chunks: Vec::new(),
            chunks_free: Default::default(),
            slabs: Slabs::for_words(pages * page_words),
            labels: None,
            whole_from: Ppn(u32::MAX),
            bad: BTreeSet::new(),
            store: None,
        }
    }

    /// The array's geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The logical page that a programmed page holds, without reading it: for checks between runs.
    pub fn labelled(&self, ppn: Ppn) -> Option<Lpn> {
        let (block, page) = self.locate_page(ppn).ok()?;
        let mark = self.mark_at(ppn, block, page);
        (mark != ERASED && mark != TORN).then(|| Lpn(mark - 1))
    }

    /// Brings near what a read or program of a page will need. Changes nothing.
    pub fn prefetch(&self, ppn: Ppn) {
        let Ok((block, page)) = self.locate_page(ppn) else { return };
        prefetch_index(&self.blocks, block);
        // Until something is programmed, all follows from the rule, and the table is not looked at.
        if !self.chunks.is_empty() {
            prefetch_index(&self.lpns, self.page_index(block, page));
            // Where every byte is kept a turn is long enough to look further on.
            let whole = self.sector_words == WHOLE_SECTOR;
            let chunk = if whole { (self.blocks[block].chunk as usize).checked_sub(1) } else { None };
            if let Some(chunk) = chunk.map(|index| &self.chunks[index]).filter(|chunk| page >= chunk.first) {
                let index = (page - chunk.first) as usize;
                prefetch_index(&chunk.entries[..], index);
                self.slabs.prefetch(chunk.room, index * self.page_words);
            }
        }
    }

    /// Keeps every byte of the pages of this block and of all behind it: firmware's own pages, which are of no use in part.
    #[must_use]
    pub fn keeping_whole(mut self, from: BlockId) -> Self {
        self.whole_from = Ppn(from.0.saturating_mul(self.geometry.shape().pages_per_block));
        self
    }

    /// Keeps a tag and a seal beside each sector (see [`crate::seal`]): two words more. Preconditioned sectors have tags of zero.
    #[must_use]
    pub fn with_tags(mut self) -> Self {
        let sectors = self.geometry.shape().page.0 / SECTOR_BYTES;
        self.tag_words = crate::TAG_WORDS;
        self.page_words = sectors as usize * self.words_from_sector_to_sector();
        self
    }

    /// Scrambles pages of which every byte is kept, on the way to the cells and back. Preconditioned pages are made when they are read,
    /// and have no cells.
    #[must_use]
    pub fn scrambling(mut self) -> Self {
        self.scrambles = true;
        self
    }

    /// Takes the memory of all its pages now, unless a store keeps them.
    pub fn set_memory_aside(&mut self) {
        if self.store.is_none() {
            self.slabs.set_aside(self.lpns.len() * self.page_words);
        }
    }

    /// Words from one sector to the next in a page that is not kept whole.
    pub fn words_from_sector_to_sector(&self) -> usize {
        self.sector_words as usize + self.tag_words
    }

    /// Whether every byte of a page's data is kept.
    pub fn keeps_every_byte(&self, ppn: Ppn) -> bool {
        self.sector_words == WHOLE_SECTOR || ppn >= self.whole_from
    }

    /// How many words are kept of a page that is not kept whole.
    pub fn page_words(&self) -> usize {
        self.page_words
    }

    /// How many words are kept of a page at most.
    pub fn page_words_max(&self) -> usize {
        let all_whole = self.whole_from.0 == u32::MAX;
        if all_whole { self.page_words } else { self.page_words.max(self.whole_words()) }
    }

    /// How many words are kept of a page.
    #[inline]
    pub fn words_of(&self, ppn: Ppn) -> usize {
        if ppn < self.whole_from { self.page_words } else { self.whole_words() }
    }

    fn whole_words(&self) -> usize {
        self.geometry.shape().page.0 as usize / 8
    }

    /// How often a block has been erased.
    pub fn erase_count(&self, block: BlockId) -> Result<u32, MediaFault> {
        Ok(self.blocks[self.locate(block)?].erases)
    }

    /// One more than the highest page of a block that is programmed; 0 for an erased block.
    pub fn written_pages(&self, block: BlockId) -> Result<u32, MediaFault> {
        Ok(self.blocks[self.locate(block)?].written)
    }

    /// The rule that preconditioned pages follow from now on. Only an erased channel, or one that followed it before, takes it.
    pub fn follow(&mut self, labels: Arc<dyn Labels>) {
        self.labels = Some(labels);
    }

    /// Leaves the first `pages` pages of an erased block as the rule says, with the preconditioning pattern. Costs no erase and
    /// no simulated time.
    pub fn precondition(&mut self, block: BlockId, pages: u32) -> Result<(), MediaFault> {
        assert!(self.labels.is_some(), "preconditioned pages follow a rule");
        assert!(pages <= self.geometry.shape().pages_per_block, "{pages} pages of {block}");
        let at = self.locate(block)?;
        if self.blocks[at].written > 0 {
            return Err(MediaFault::ProgrammedTwice { ppn: self.geometry.page(block, 0) });
        }
        self.blocks[at].written = pages;
        self.blocks[at].ruled = pages;
        Ok(())
    }

    /// Counts the erases that a block had before anything here was done to it. Costs no simulated time.
    pub fn begin_with_erases(&mut self, block: BlockId, erases: u32) -> Result<(), MediaFault> {
        let at = self.locate(block)?;
        assert!(self.blocks[at].erases == 0, "{block} was erased {} times already", self.blocks[at].erases);
        self.blocks[at].erases = erases;
        self.store_block(block, at, false)
    }

    /// Leaves a page as a program that loses power does: it counts as programmed and cannot be read.
    pub fn tear_program(&mut self, ppn: Ppn) -> Result<(), MediaFault> {
        let (block, page) = self.admit(ppn)?;
        self.blocks[block].written = page + 1;
        let index = self.page_index(block, page);
        self.lpns[index] = TORN;
        let erases = self.blocks[block].erases;
        let (words, torn) = (vec![0; self.words_of(ppn)], StoredPage { mark: TORN, erases, ..StoredPage::default() });
        let failed = |_| MediaFault::StoreFailed { block: self.geometry.block_of(ppn) };
        self.store.as_mut().map_or(Ok(()), |store| store.write(ppn, torn, &words)).map_err(failed)
    }

    /// Leaves a block as an erase that loses power does: no page can be read, and none programmed before another erase.
    pub fn tear_erase(&mut self, block: BlockId) -> Result<(), MediaFault> {
        let at = self.locate(block)?;
        self.clear(at, TORN);
        self.blocks[at].written = self.geometry.shape().pages_per_block;
        self.store_block(block, at, true)
    }

    /// Marks a block in which an operation failed. The mark outlasts everything, erases too.
    pub fn mark_bad(&mut self, block: BlockId) -> Result<(), MediaFault> {
        let at = self.locate(block)?;
        self.bad.insert(at);
        let Block { written, chunk, .. } = self.blocks[at];
        let whole = written == self.geometry.shape().pages_per_block && chunk == 0;
        let torn = whole && self.lpns[self.page_index(at, 0)] == TORN;
        self.store_block(block, at, torn)
    }

    /// Whether a block is marked as bad.
    pub fn is_bad(&self, block: BlockId) -> bool {
        self.locate(block).is_ok_and(|at| self.bad.contains(&at))
    }

    /// Whether a block is one of this channel.
    pub(crate) fn has(&self, block: BlockId) -> bool {
        self.locate(block).is_ok()
    }

    fn store_block(&mut self, block: BlockId, at: usize, torn: bool) -> Result<(), MediaFault> {
        let state = StoredBlock { erases: self.blocks[at].erases, bad: self.bad.contains(&at), torn };
        let stored = self.store.as_mut().map_or(Ok(()), |store| store.set_block(block, state));
        stored.map_err(|StoreFailed| MediaFault::StoreFailed { block })
    }

    /// Keeps payload, entries and block states in a store from now on. Only a fresh channel, or one restored from that store, takes
    /// one.
    #[must_use]
    pub fn kept_in(mut self, store: Box<dyn PageStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// A block as a store had it, before its pages.
    ///
    /// # Errors
    /// A block of another channel.
    pub fn restore_block(&mut self, block: BlockId, state: StoredBlock) -> Result<(), MediaFault> {
        let at = self.locate(block)?;
        self.blocks[at].erases = state.erases;
        if state.bad {
            self.bad.insert(at);
        }
        if state.torn {
            self.clear(at, TORN);
            self.blocks[at].written = self.geometry.shape().pages_per_block;
        }
        Ok(())
    }

    /// A page as a store had it; pages of a block come in ascending order.
    ///
    /// # Errors
    /// A page of another channel or out of order, or an entry that does not match its check value.
    pub fn restore_page(&mut self, ppn: Ppn, stored: StoredPage) -> Result<(), MediaFault> {
        let (block, page) = self.admit(ppn)?;
        let StoredPage { mark, owner, sequence, check, .. } = stored;
        if mark != TORN {
            let oob = Oob { lpn: Lpn(mark.wrapping_sub(1)), owner, sequence };
            if oob.lpn > Oob::LPN_MAX || oob.check(ppn) != check {
                return Err(MediaFault::Unreadable { ppn });
            }
            let words = self.words_of(ppn);
            let chunk = self.chunk(block, words);
            let index = (page - chunk.first) as usize;
            chunk.entries.resize(index, Entry::default());
            chunk.entries.push(Entry::new(oob, check));
        }
        let index = self.page_index(block, page);
        self.lpns[index] = mark;
        self.blocks[block].written = page + 1;
        Ok(())
    }

    /// The out-of-band entry of a page, without reading it; none where it is erased or cannot be read.
    pub fn entry(&self, ppn: Ppn) -> Option<Oob> {
        let (block, page) = self.locate_page(ppn).ok()?;
        let lpn = self.labelled(ppn)?;
        let chunk = (self.blocks[block].chunk as usize).checked_sub(1).map(|index| &self.chunks[index]);
        let Some(chunk) = chunk.filter(|chunk| page >= chunk.first) else {
            return self.labels.as_ref().map(|labels| labels.entry(ppn));
        };
        Some(chunk.entries[(page - chunk.first) as usize].oob(lpn))
    }

    /// Memory set aside: what is used of it grows with the pages touched.
    pub fn reserved(&self) -> Bytes {
        let chunk = |chunk: &Chunk| chunk.entries.capacity() * size_of::<Entry>() + size_of::<Chunk>();
        let tables = size_of_val(&*self.lpns) + size_of_val(&*self.blocks) + self.slabs.taken() * 8;
        Bytes((tables + self.chunks.iter().map(chunk).sum::<usize>()) as u64)
    }

    /// The index of a block among those of this channel.
    fn locate(&self, block: BlockId) -> Result<usize, MediaFault> {
        let (channel, index) = self.geometry.block_in_channel(block);
        if channel != self.channel || index >= self.blocks.len() {
            return Err(MediaFault::WrongChannel { block, channel: self.channel });
        }
        Ok(index)
    }

    fn locate_page(&self, ppn: Ppn) -> Result<(usize, u32), MediaFault> {
        Ok((self.locate(self.geometry.block_of(ppn))?, self.geometry.page_in_block(ppn)))
    }

    fn page_index(&self, block: usize, page: u32) -> usize {
        block * self.geometry.shape().pages_per_block as usize + page as usize
    }

    /// What the table says of a page, or the rule in its place.
    fn mark_at(&self, ppn: Ppn, block: usize, page: u32) -> u32 {
        match &self.labels {
            Some(labels) if page < self.blocks[block].ruled => mark(labels.label(ppn)),
            _ => self.lpns[self.page_index(block, page)],
        }
    }

    /// Whether a page is as preconditioning left it.
    pub(crate) fn is_preconditioned(&self, ppn: Ppn) -> bool {
        self.locate_page(ppn).is_ok_and(|(block, page)| page < self.blocks[block].ruled)
    }

    /// Reads a page that follows the rule.
    fn read_ruled(&self, ppn: Ppn, payload: &mut [u64]) -> Oob {
        let labels = self.labels.as_ref().expect("what was preconditioned follows a rule");
        let oob = labels.entry(ppn);
        if ppn < self.whole_from {
            self.precondition_payload(oob.lpn, payload);
        } else {
            labels.payload(ppn, payload);
        }
        oob
    }

    /// Whether a page is next to be programmed, or after that.
    fn admit(&self, ppn: Ppn) -> Result<(usize, u32), MediaFault> {
        let (block, page) = self.locate_page(ppn)?;
        let expected = self.blocks[block].written;
        if page >= expected {
            return Ok((block, page));
        }
        let is_ruled = page < self.blocks[block].ruled;
        let is_erased = !is_ruled && self.lpns[self.page_index(block, page)] == ERASED;
        Err(if is_erased { MediaFault::OutOfOrder { ppn, expected } } else { MediaFault::ProgrammedTwice { ppn } })
    }

    /// The block's chunk, taken if it has none; `words` are kept of each of its pages.
    fn chunk(&mut self, block: usize, words: usize) -> &mut Chunk {
        if self.blocks[block].chunk == 0 {
            let first = self.blocks[block].written;
            let is_whole = words != self.page_words;
            let index = self.chunks_free[usize::from(is_whole)].pop().unwrap_or_else(|| {
                let pages = self.geometry.shape().pages_per_block as usize;
                // Room for a whole block, so that a chunk used again for another never grows.
                let room = if self.store.is_some() { Room::default() } else { self.slabs.take(pages * words) };
                self.chunks.push(Chunk { first, entries: Vec::with_capacity(pages), room, is_whole });
                self.chunks.len() as u32 - 1
            });
            let chunk = &mut self.chunks[index as usize];
            chunk.first = first;
            chunk.entries.clear();
            self.blocks[block].chunk = index + 1;
        }
        &mut self.chunks[self.blocks[block].chunk as usize - 1]
    }

    /// Sets all pages of a block to one mark and gives its chunk back.
    fn clear(&mut self, block: usize, mark: u32) {
        let pages = self.geometry.shape().pages_per_block as usize;
        let Block { written, ruled, .. } = self.blocks[block];
        // What the table has nothing about is not touched, so that it takes no memory.
        let marked = if mark == ERASED { ruled as usize..written as usize } else { 0..pages };
        self.lpns[block * pages..][marked].fill(mark);
        self.blocks[block].ruled = 0;
        let chunk = std::mem::take(&mut self.blocks[block].chunk);
        if chunk > 0 {
            let is_whole = self.chunks[chunk as usize - 1].is_whole;
            self.chunks_free[usize::from(is_whole)].push(chunk - 1);
        }
    }

    fn precondition_payload(&self, lpn: Lpn, payload: &mut [u64]) {
        let (data, apart) = (self.sector_words as usize, self.words_from_sector_to_sector());
        if data == 0 {
            return;
        }
        let sectors = self.geometry.shape().page.0 / SECTOR_BYTES;
        let first = Lba(u64::from(lpn.0) * sectors);
        for (sector, words) in payload.chunks_exact_mut(apart).enumerate() {
            let place = first + sector as u64;
            for (word, at) in words[..data].iter_mut().zip(0..) {
                *word = pattern(place, 0, at);
            }
            if self.tag_words > 0 {
                words[data] = 0;
                words[data + 1] = crate::seal(place.0, &words[..=data]);
            }
        }
    }
}

impl Media for Contents {
    fn program(&mut self, ppn: Ppn, oob: Oob, payload: &[u64]) -> Result<(), MediaFault> {
        let words = self.words_of(ppn);
        assert_eq!(payload.len(), words, "a payload of another size than a page's");
        let (block, page) = self.admit(ppn)?;
        let scrambles = self.scrambles && self.keeps_every_byte(ppn);
        if let Some(store) = &mut self.store {
            let erases = self.blocks[block].erases;
            let (mark, check) = (mark(oob.lpn), oob.check(ppn));
            let stored = StoredPage { mark, owner: oob.owner, sequence: oob.sequence, check, erases };
            let failed = |_| MediaFault::StoreFailed { block: self.geometry.block_of(ppn) };
            if scrambles {
                let mut scrambled = vec![0; words];
                scrambler::combine(ppn, payload, &mut scrambled);
                store.write(ppn, stored, &scrambled).map_err(failed)?;
            } else {
                store.write(ppn, stored, payload).map_err(failed)?;
            }
        }
        let is_stored = self.store.is_some();
        let chunk = self.chunk(block, words);
        // Pages that were left out are in the chunk, but marked as erased in the table.
        let index = (page - chunk.first) as usize;
        chunk.entries.resize(index, Entry::default());
        chunk.entries.push(Entry::new(oob, oob.check(ppn)));
        let room = chunk.room;
        if !is_stored {
            let cells = self.slabs.cells_mut(room, index * words, words);
            match scrambles {
                true => scrambler::combine(ppn, payload, cells),
                false => cells.copy_from_slice(payload),
            }
        }
        let index = self.page_index(block, page);
        self.lpns[index] = mark(oob.lpn);
        self.blocks[block].written = page + 1;
        Ok(())
    }

    fn read(&mut self, ppn: Ppn, payload: &mut [u64]) -> Result<Option<Oob>, MediaFault> {
        let words = self.words_of(ppn);
        assert_eq!(payload.len(), words, "a payload of another size than a page's");
        let (block, page) = self.locate_page(ppn)?;
        if page < self.blocks[block].ruled {
            return Ok(Some(self.read_ruled(ppn, payload)));
        }
        let scrambles = self.scrambles && self.keeps_every_byte(ppn);
        let lpn = match self.lpns[self.page_index(block, page)] {
            ERASED => {
                payload.fill(u64::MAX);
                return Ok(None);
            }
            TORN => return Err(MediaFault::Unreadable { ppn }),
            marked => Lpn(marked - 1),
        };
        let chunk = &self.chunks[self.blocks[block].chunk as usize - 1];
        let index = (page - chunk.first) as usize;
        let entry = chunk.entries[index];
        let oob = entry.oob(lpn);
        if oob.check(ppn) != entry.check {
            return Err(MediaFault::Unreadable { ppn });
        }
        match &mut self.store {
            None => {
                let cells = self.slabs.cells(chunk.room, index * words, words);
                match scrambles {
                    true => scrambler::combine(ppn, cells, payload),
                    false => payload.copy_from_slice(cells),
                }
            }
            Some(store) => {
                store.read(ppn, payload).map_err(|StoreFailed| MediaFault::Unreadable { ppn })?;
                if scrambles {
                    scrambler::apply(ppn, payload);
                }
            }
        }
        Ok(Some(oob))
    }

    fn erase(&mut self, block: BlockId) -> Result<(), MediaFault> {
        let at = self.locate(block)?;
        if self.blocks[at].erases >= self.erases_max {
            return Err(MediaFault::WornOut { block, limit: self.erases_max });
        }
        self.clear(at, ERASED);
        self.blocks[at].erases += 1;
        self.blocks[at].written = 0;
        self.store_block(block, at, false)
    }
}

fn mark(lpn: Lpn) -> u32 {
    assert!(lpn <= Oob::LPN_MAX, "{lpn} has no room in an out-of-band entry");
    lpn.0 + 1
}
