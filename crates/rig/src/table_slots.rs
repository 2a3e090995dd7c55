//! Two slots of a file that hold a table, one written after the other: however a process ends while it writes one, the other is whole, and
//! where one of them is damaged later, the other has the same.
//!
//! ```text
//! sum 8 | sequence 8 | bytes 8 | the table
//! ```
//! The sum is over all that follows it, up to the end of the slot. The slot of the higher sequence counts.

use crate::media_file::sum;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Of one slot.
pub(crate) const SLOT_BYTES: u64 = 4096;
const SLOTS: u64 = 2;
/// Of both.
pub(crate) const SLOTS_BYTES: u64 = SLOTS * SLOT_BYTES;
const TABLE_AT: usize = 24;

/// The slots.
#[derive(Clone, Debug)]
pub(crate) struct TableSlots {
    file: Arc<File>,
    at: u64,
    /// Of the table that counts.
    sequence: u64,
}

fn word(slot: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(slot[at..at + 8].try_into().expect("eight bytes"))
}

fn sum_of(slot: &[u8]) -> u64 {
    let words: Vec<u64> = slot[8..].chunks_exact(8).map(|bytes| word(bytes, 0)).collect();
    sum(&words)
}

/// The sequence and the table of a slot; none if it is not whole, or the last that there could be.
fn decode(slot: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (sequence, bytes) = (word(slot, 8), usize::try_from(word(slot, 16)).ok()?);
    let table = slot.get(TABLE_AT..TABLE_AT.checked_add(bytes)?)?;
    (sequence < u64::MAX && word(slot, 0) == sum_of(slot)).then(|| (sequence, table.to_vec()))
}

/// A table as it lies in the slot of its sequence.
///
/// # Panics
/// If it is longer than a slot.
pub fn slot_of(sequence: u64, table: &[u8]) -> Vec<u8> {
    let mut slot = vec![0; SLOT_BYTES as usize];
    slot[8..16].copy_from_slice(&sequence.to_le_bytes());
    slot[16..TABLE_AT].copy_from_slice(&(table.len() as u64).to_le_bytes());
    slot[TABLE_AT..][..table.len()].copy_from_slice(table);
    let sum = sum_of(&slot);
    slot[..8].copy_from_slice(&sum.to_le_bytes());
    slot
}

/// The tables of those slots that are whole, and their sequences.
fn whole(slots: &[u8]) -> impl Iterator<Item = (u64, Vec<u8>)> + '_ {
    let slots = slots.chunks_exact(SLOT_BYTES as usize).take(SLOTS as usize);
    (0u64..).zip(slots).filter_map(|(at, slot)| decode(slot).filter(|(sequence, _)| sequence % SLOTS == at))
}

/// The table that counts in both slots as they lie in a file, and its sequence; none if neither is whole.
pub fn table_in(slots: &[u8]) -> Option<(u64, Vec<u8>)> {
    // One that is not whole was being written when the process ended, so that nobody was told of it, or the other has the same.
    whole(slots).max()
}

impl TableSlots {
    /// The slots of a new file at a place of it, with a table of no bytes.
    pub(crate) fn format(file: Arc<File>, at: u64) -> std::io::Result<TableSlots> {
        let mut slots = TableSlots { file, at, sequence: 0 };
        slots.keep(&[])?;
        Ok(slots)
    }

    /// The slots of a file and the table that counts; none if neither is whole. Where a process ended between the two, one was damaged, or
    /// a build before wrote one only, the other gets the table now.
    pub(crate) fn open(file: Arc<File>, at: u64) -> std::io::Result<Option<(TableSlots, Vec<u8>)>> {
        let mut held = vec![0; SLOTS_BYTES as usize];
        file.read_exact_at(&mut held, at)?;
        let Some((sequence, table)) = table_in(&held) else { return Ok(None) };
        let mut slots = TableSlots { file, at, sequence };
        if whole(&held).filter(|(_, other)| *other == table).count() < SLOTS as usize {
            slots.put(&table)?;
        }
        Ok(Some((slots, table)))
    }

    /// Writes a table over both of the one before.
    ///
    /// # Panics
    /// If it is longer than a slot.
    pub(crate) fn keep(&mut self, table: &[u8]) -> std::io::Result<()> {
        self.put(table)?;
        // What one slot has counts, so it is kept even if the other does not take it: who opens the file next mends that one.
        let _ = self.put(table);
        Ok(())
    }

    /// Writes a table over the older slot.
    fn put(&mut self, table: &[u8]) -> std::io::Result<()> {
        let sequence = self.sequence + 1;
        self.file.write_all_at(&slot_of(sequence, table), self.at + sequence % SLOTS * SLOT_BYTES)?;
        self.sequence = sequence;
        Ok(())
    }
}

/// Bytes of the longest table that a slot has room for.
pub const TABLE_BYTES_MAX: usize = SLOT_BYTES as usize - TABLE_AT;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::path::PathBuf;

    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// A new file with slots at a place of it.
    fn file(name: &str) -> (Scratch, Arc<File>) {
        let scratch = Scratch(std::env::temp_dir().join(format!("flashloom-{name}-{}", std::process::id())));
        let opened = OpenOptions::new().read(true).write(true).create_new(true).open(&scratch.0);
        let file = Arc::new(opened.expect("a new file"));
        file.set_len(AT + SLOTS_BYTES).expect("it has room");
        (scratch, file)
    }

    const AT: u64 = 100;

    fn held(file: &File) -> Vec<u8> {
        let mut held = vec![0; SLOTS_BYTES as usize];
        file.read_exact_at(&mut held, AT).expect("it is there");
        held
    }

    fn found(file: &Arc<File>) -> Option<Vec<u8>> {
        TableSlots::open(file.clone(), AT).expect("it can be read").map(|(_, table)| table)
    }

    /// The table of a round.
    fn table(round: u8) -> Vec<u8> {
        (0..100 * u16::from(round)).map(|at| at as u8 ^ round).collect()
    }

    #[test]
    fn a_table_that_was_cut_while_it_was_written_leaves_the_one_before() {
        let (_scratch, file) = file("slots");
        assert_eq!(found(&file), None, "nobody wrote one");
        TableSlots::format(file.clone(), AT).expect("it can be written");
        assert_eq!(found(&file), Some(Vec::new()));
        for round in 1..=5u8 {
            let (before, table) = (table(round - 1), table(round));
            let mut slots = TableSlots::open(file.clone(), AT).expect("it can be read").expect("it is whole").0;
            let (old, first) = (held(&file), (slots.sequence + 1) % SLOTS * SLOT_BYTES);
            slots.keep(&table).expect("it can be written");
            let new = held(&file);
            for cut in [0, 1, 8, 9, 16, 17, 23, 60, 24 + table.len() - 1, 24 + table.len(), 4095, 4096] {
                let (first, second) = (first as usize, (SLOT_BYTES - first) as usize);
                // It ended in the first write, or in the second.
                let (mut torn, mut further) = (old.clone(), new.clone());
                torn[first..][..cut].copy_from_slice(&new[first..][..cut]);
                further[second + cut..][..4096 - cut].copy_from_slice(&old[second + cut..][..4096 - cut]);
                let is_there = torn[first..][..4096] == new[first..][..4096];
                let due = if is_there { &table } else { &before };
                assert_eq!(table_in(&torn).map(|(_, table)| table).as_ref(), Some(due), "round {round}, cut at {cut}");
                assert_eq!(table_in(&further).map(|(_, table)| table), Some(table.clone()), "round {round}: {cut}");
            }
        }
        file.write_all_at(&[0xff; 2 * 4096], AT).expect("it can be written");
        assert_eq!(found(&file), None, "neither is whole");
    }

    /// Wherever it is: what was kept is in both slots, and again as soon as the file is opened.
    #[test]
    fn one_slot_that_is_damaged_loses_nothing() {
        let (_scratch, file) = file("damaged-slots");
        TableSlots::format(file.clone(), AT).expect("it can be written");
        for round in 1..=4u8 {
            let mut slots = TableSlots::open(file.clone(), AT).expect("it can be read").expect("it is whole").0;
            slots.keep(&table(round)).expect("it can be written");
            for bit in [0, 9 * 8, 17 * 8 + 3, 50 * 8, 4000 * 8, 4096 * 8, 4105 * 8, 4150 * 8 + 7] {
                let mut damaged = held(&file);
                damaged[bit / 8] ^= 1 << (bit % 8);
                file.write_all_at(&damaged, AT).expect("it can be written");
                assert_eq!(found(&file), Some(table(round)), "round {round}, bit {bit}");
            }
        }
    }

    /// Builds before wrote each table to one slot, over the one before the last.
    #[test]
    fn a_table_that_one_slot_has_comes_into_the_other() {
        let (_scratch, file) = file("old-slots");
        let slots = [slot_of(6, &table(1)), slot_of(7, &table(2))].concat();
        file.write_all_at(&slots, AT).expect("it can be written");
        assert_eq!(found(&file), Some(table(2)));
        file.write_all_at(&[0xff; 4096], AT + SLOT_BYTES).expect("it can be written");
        assert_eq!(found(&file), Some(table(2)), "it is in the other, too");
    }
}
