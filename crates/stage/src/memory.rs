//! Shared memory: words that several stages read and write, the same in both worlds.

use crate::room::NoMemory;
use prefetch_index::prefetch_index;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use units::{Bytes, Span, StageId, Time};
use zerocopy::FromZeros;

/// Bytes in a cache line: the unit in which cores pass memory to each other.
pub const LINE_BYTES: usize = 64;

/// A line of shared memory, numbered over all tables of a blueprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineId(pub u64);

/// What is done to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write.
    Atomic,
}

/// Prices accesses to shared lines in virtual time.
pub trait Coherence {
    /// How long `stage` waits for the line, if it accesses it at `at`.
    fn access(&mut self, stage: StageId, line: LineId, access: Access, at: Time) -> Span;

    /// Brings near what is known of a line. Changes nothing.
    fn prefetch(&self, _line: LineId) {}
}

/// Is told of each access to words before it happens: where turns of others may come between on real threads.
pub trait Watch: Debug + Send + Sync {
    /// Somebody accesses words of the line.
    fn access(&self, line: LineId, access: Access);
}

#[derive(Debug)]
enum Cells {
    Narrow(Box<[AtomicU32]>),
    Wide(Box<[AtomicU64]>),
}

/// Words of one length.
trait Cell: Sized {
    fn of(cells: &Cells) -> &[Self];
}

impl Cell for AtomicU32 {
    fn of(cells: &Cells) -> &[Self] {
        let Cells::Narrow(cells) = cells else { panic!("only tables of 4-byte words do that") };
        cells
    }
}

impl Cell for AtomicU64 {
    #[inline]
    fn of(cells: &Cells) -> &[Self] {
        let Cells::Wide(cells) = cells else { panic!("only tables of 8-byte words do that") };
        cells
    }
}

/// The words of a table. One that is watched shows none, and whoever finds no word at an index looks among the hidden ones: an access to
/// a table that nobody watches asks no more than whether its index is one.
#[derive(Debug)]
struct Table {
    shown: Cells,
    hidden: Option<Hidden>,
}

#[derive(Debug)]
struct Hidden {
    cells: Cells,
    watch: Arc<dyn Watch>,
}

impl Table {
    fn new(cells: Cells, watch: Option<&Arc<dyn Watch>>) -> Self {
        let Some(watch) = watch else { return Table { shown: cells, hidden: None } };
        let shown = match cells {
            Cells::Narrow(_) => Cells::Narrow(Box::default()),
            Cells::Wide(_) => Cells::Wide(Box::default()),
        };
        Table { shown, hidden: Some(Hidden { cells, watch: watch.clone() }) }
    }

    /// All words, shown or not.
    fn cells(&self) -> &Cells {
        self.hidden.as_ref().map_or(&self.shown, |hidden| &hidden.cells)
    }
}

/// A table of shared words of 4 or 8 bytes, all zero at first. Memory that is never touched is never resident.
///
/// Loads acquire and stores release, so what a stage wrote before it stored a word is seen by whoever loads it.
#[derive(Clone, Debug)]
pub struct Words {
    table: Arc<Table>,
    first_line: u64,
    /// Words of a line are a power of two: the shift that divides by it.
    line_shift: u32,
}

impl Words {
    fn new(table: Table, first_line: u64) -> Self {
        let bytes = match table.shown {
            Cells::Narrow(_) => 4,
            Cells::Wide(_) => 8,
        };
        Words { table: Arc::new(table), first_line, line_shift: (LINE_BYTES / bytes).ilog2() }
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        match self.table.cells() {
            Cells::Narrow(cells) => cells.len(),
            Cells::Wide(cells) => cells.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The line a word lies in.
    #[inline]
    pub fn line(&self, index: usize) -> LineId {
        LineId(self.first_line + (index as u64 >> self.line_shift))
    }

    /// The word at an index.
    #[inline]
    fn at<'a, C: Cell>(&'a self, shown: &'a [C], index: usize, access: Access) -> &'a C {
        match shown.get(index) {
            Some(cell) => cell,
            None => self.hidden_at(index, access),
        }
    }

    /// The words at some indices that follow each other.
    #[inline]
    fn range<'a, C: Cell>(&'a self, shown: &'a [C], range: Range<usize>, access: Access) -> &'a [C] {
        match shown.get(range.clone()) {
            Some(cells) => cells,
            None => self.hidden_range(range, access),
        }
    }

    #[cold]
    #[inline(never)]
    fn hidden_at<C: Cell>(&self, index: usize, access: Access) -> &C {
        &self.hidden(index, access)[index]
    }

    #[cold]
    #[inline(never)]
    fn hidden_range<C: Cell>(&self, range: Range<usize>, access: Access) -> &[C] {
        &self.hidden(range.start, access)[range]
    }

    /// All words of a table that shows none, once its watch has been told which is accessed.
    fn hidden<C: Cell>(&self, index: usize, access: Access) -> &[C] {
        let Some(hidden) = &self.table.hidden else { panic!("a table of {} words has no word {index}", self.len()) };
        hidden.watch.access(self.line(index), access);
        C::of(&hidden.cells)
    }

    /// The 8-byte word at an index.
    #[inline]
    fn wide(&self, index: usize, access: Access) -> &AtomicU64 {
        self.at(Cell::of(&self.table.shown), index, access)
    }

    /// Reads a word without a price: for hardware, start-up and tests. Stages on cores use [`crate::Turn::load`], but for a word that they
    /// alone write, which may stand in a register, and for a word of a line that they have loaded in the same turn.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        match &self.table.shown {
            Cells::Narrow(cells) => self.at(cells, index, Access::Read).load(Ordering::Acquire).into(),
            Cells::Wide(cells) => self.at(cells, index, Access::Read).load(Ordering::Acquire),
        }
    }

    /// Writes a word without a price, as [`Words::get`] reads one: on a core only to a line that the same turn stores to.
    /// A value that a 4-byte table cannot hold is our own fault.
    #[inline]
    pub fn set(&self, index: usize, value: u64) {
        match &self.table.shown {
            Cells::Narrow(cells) => {
                let value = u32::try_from(value).expect("the value fits the table");
                self.at(cells, index, Access::Write).store(value, Ordering::Release);
            }
            Cells::Wide(cells) => self.at(cells, index, Access::Write).store(value, Ordering::Release),
        }
    }

    /// Adds to a word, wrapping, and returns what it was, without a price.
    #[inline]
    pub fn fetch_add(&self, index: usize, amount: u64) -> u64 {
        match &self.table.shown {
            Cells::Narrow(cells) => {
                self.at(cells, index, Access::Atomic).fetch_add(amount as u32, Ordering::AcqRel).into()
            }
            Cells::Wide(cells) => self.at(cells, index, Access::Atomic).fetch_add(amount, Ordering::AcqRel),
        }
    }

    /// Adds one to an 8-byte word that holds `next`; whether it did, without a price.
    #[inline]
    pub fn advance(&self, index: usize, next: u64) -> bool {
        let cell = self.wide(index, Access::Atomic);
        cell.compare_exchange(next, next.wrapping_add(1), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Raises an 8-byte word that is less than `least` to it, without a price.
    #[inline]
    pub fn raise(&self, index: usize, least: u64) {
        self.wide(index, Access::Atomic).fetch_max(least, Ordering::AcqRel);
    }

    /// Sets bits of an 8-byte word without a price; a look first spares the line where they are set already.
    #[inline]
    pub fn set_bits(&self, index: usize, bits: u64) {
        let cell = self.wide(index, Access::Atomic);
        if cell.load(Ordering::Acquire) & bits != bits {
            cell.fetch_or(bits, Ordering::AcqRel);
        }
    }

    /// Sets bits of an 8-byte word and returns what it was, without a price.
    pub fn fetch_bits(&self, index: usize, bits: u64) -> u64 {
        self.wide(index, Access::Atomic).fetch_or(bits, Ordering::AcqRel)
    }

    /// Clears bits of an 8-byte word without a price.
    #[inline]
    pub fn clear_bits(&self, index: usize, bits: u64) {
        let cell = self.wide(index, Access::Atomic);
        if cell.load(Ordering::Acquire) & bits != 0 {
            cell.fetch_and(!bits, Ordering::AcqRel);
        }
    }

    /// Takes the bits of an 8-byte word and leaves it zero, without a price.
    pub fn take_bits(&self, index: usize) -> u64 {
        let cell = self.wide(index, Access::Atomic);
        if cell.load(Ordering::Acquire) == 0 { 0 } else { cell.swap(0, Ordering::AcqRel) }
    }

    /// Brings a word near, for [`crate::Stage::prefetch`], and says in which line it lies.
    #[inline]
    pub fn prefetch(&self, index: usize) -> LineId {
        match &self.table.shown {
            Cells::Narrow(cells) => prefetch_index(cells, index),
            Cells::Wide(cells) => prefetch_index(cells, index),
        }
        self.line(index)
    }

    /// Copies 8-byte words out, without a price: what a DMA engine does.
    #[inline]
    pub fn read(&self, index: usize, out: &mut [u64]) {
        let cells: &[AtomicU64] = self.range(Cell::of(&self.table.shown), index..index + out.len(), Access::Read);
        for (word, cell) in out.iter_mut().zip(cells) {
            *word = cell.load(Ordering::Relaxed);
        }
    }

    /// Copies 8-byte words in, without a price.
    #[inline]
    pub fn write(&self, index: usize, values: &[u64]) {
        let cells: &[AtomicU64] = self.range(Cell::of(&self.table.shown), index..index + values.len(), Access::Write);
        for (word, cell) in values.iter().zip(cells) {
            cell.store(*word, Ordering::Relaxed);
        }
    }

    /// Copies 4-byte words in, two from each value, its lower half first, without a price.
    pub fn write_halves(&self, index: usize, count: usize, values: &[u64]) {
        let cells: &[AtomicU32] = self.range(Cell::of(&self.table.shown), index..index + count, Access::Write);
        let halves = values.iter().flat_map(|value| [*value as u32, (value >> 32) as u32]);
        for (cell, half) in cells.iter().zip(halves) {
            cell.store(half, Ordering::Relaxed);
        }
    }

    /// Gives all words of a table of 4-byte words, in order, without a price.
    #[inline]
    pub fn each_narrow(&self, mut each: impl FnMut(u32)) {
        let cells: &[AtomicU32] = Cell::of(self.table.cells());
        cells.iter().for_each(|cell| each(cell.load(Ordering::Relaxed)));
    }
}

/// Hands out tables and locks; every line has one number over all of them.
#[derive(Debug, Default)]
pub struct SharedMemory {
    lines: u64,
    /// Lines that nobody pays for, from [`BESIDE`] on.
    beside: u64,
    locks: u32,
    watch: Option<Arc<dyn Watch>>,
}

/// The first line of what turns do not pay for: how long pages are does not change which lines the others have, and share.
const BESIDE: u64 = 1 << 40;

impl SharedMemory {
    /// Memory whose tables are watched, if anybody does.
    pub fn watched(watch: Option<Arc<dyn Watch>>) -> Self {
        SharedMemory { watch, ..SharedMemory::default() }
    }

    /// Whether anybody watches them.
    pub fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// A table of 4-byte words, all zero. Where there is no memory for it, [`crate::with_memory`] says so.
    pub fn narrow(&mut self, len: usize) -> Words {
        let cells = <[AtomicU32]>::new_box_zeroed_with_elems(len);
        let cells = cells.unwrap_or_else(|_| NoMemory::unwind(len.saturating_mul(4)));
        self.table(Cells::Narrow(cells), len * 4)
    }

    /// A table of 8-byte words, all zero. Where there is no memory for it, [`crate::with_memory`] says so.
    pub fn wide(&mut self, len: usize) -> Words {
        self.table(wide_cells(len), len * 8)
    }

    /// The same for words that turns do not pay for: whoever has them was told so by a message.
    pub fn beside(&mut self, len: usize) -> Words {
        let words = Words::new(Table::new(wide_cells(len), self.watch.as_ref()), BESIDE + self.beside);
        self.beside += lines_of(len * 8);
        words
    }

    /// So many buffers of so many words each, which turns do not pay for either; see [`crate::Buffers`].
    pub fn buffers(&mut self, count: usize, words: usize) -> crate::Buffers {
        self.beside += lines_of(count * words * 8);
        crate::Buffers::new(count, words)
    }

    /// A lock on a line of its own; see [`crate::Lock`].
    pub fn lock(&mut self, waiters: &crate::Waiters) -> crate::Lock {
        let line = self.take_lines(LINE_BYTES);
        self.locks += 1;
        crate::Lock::new(self.locks - 1, line, waiters.clone())
    }

    /// Bytes of all tables and locks; what was never touched is not resident.
    pub fn reserved(&self) -> Bytes {
        Bytes((self.lines + self.beside) * LINE_BYTES as u64)
    }

    /// How many locks it handed out.
    pub fn lock_count(&self) -> u32 {
        self.locks
    }

    /// Numbers the lines of so many bytes and returns the first.
    pub(crate) fn take_lines(&mut self, bytes: usize) -> LineId {
        let first = LineId(self.lines);
        self.lines += lines_of(bytes);
        first
    }

    fn table(&mut self, cells: Cells, bytes: usize) -> Words {
        let first = self.take_lines(bytes);
        Words::new(Table::new(cells, self.watch.as_ref()), first.0)
    }
}

fn wide_cells(len: usize) -> Cells {
    let cells = <[AtomicU64]>::new_box_zeroed_with_elems(len);
    Cells::Wide(cells.unwrap_or_else(|_| NoMemory::unwind(len.saturating_mul(8))))
}

fn lines_of(bytes: usize) -> u64 {
    bytes.div_ceil(LINE_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_do_not_share_lines() {
        let mut memory = SharedMemory::default();
        let (first, second) = (memory.narrow(17), memory.wide(8));
        assert_eq!((first.line(15), first.line(16), second.line(0)), (LineId(0), LineId(1), LineId(2)));
    }

    #[test]
    fn a_watch_is_told_of_each_access_and_words_are_as_without() {
        #[derive(Debug, Default)]
        struct Told(AtomicU64);
        impl Watch for Told {
            fn access(&self, line: LineId, access: Access) {
                let amount = if access == Access::Read { 1 } else { 10 };
                self.0.fetch_add(amount + 1_000 * line.0, Ordering::Relaxed);
            }
        }
        let told = Arc::new(Told::default());
        let mut memory = SharedMemory::watched(Some(told.clone()));
        let (narrow, wide) = (memory.narrow(17), memory.wide(8));
        assert_eq!((narrow.len(), wide.len(), wide.line(7)), (17, 8, LineId(2)));
        narrow.set(16, 5);
        assert_eq!((narrow.get(16), told.0.swap(0, Ordering::Relaxed)), (5, 2_011));
        wide.write(2, &[7, 8]);
        assert!(wide.advance(3, 8) && !wide.advance(3, 8));
        let mut out = [0; 2];
        wide.read(2, &mut out);
        assert_eq!((out, told.0.swap(0, Ordering::Relaxed)), ([7, 9], 8_031));
        let mut all = Vec::new();
        narrow.each_narrow(|word| all.push(word));
        assert_eq!((all[16], wide.prefetch(0), told.0.load(Ordering::Relaxed)), (5, LineId(2), 0));
    }

    #[test]
    fn words_copy_and_count() {
        let table = SharedMemory::default().wide(4);
        table.write(1, &[7, 8]);
        assert_eq!(table.fetch_add(1, 2), 7);
        assert!(table.advance(2, 8) && !table.advance(2, 8) && table.advance(2, 9));
        table.set(2, 8);
        let mut out = [0; 3];
        table.read(1, &mut out);
        assert_eq!(out, [9, 8, 0]);
        let halves = SharedMemory::default().narrow(5);
        halves.write_halves(1, 3, &[7 << 32 | 6, 9 << 32 | 8]);
        let mut all = Vec::new();
        halves.each_narrow(|word| all.push(word));
        assert_eq!(all, [0, 6, 7, 8, 0]);
    }
}
