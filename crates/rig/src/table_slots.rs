//! Two slots of a file that hold a table in turn: however a process ends while it writes one, the other is whole.
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

/// The table that counts in both slots as they lie in a file, and its sequence; none if neither is whole.
pub fn table_in(slots: &[u8]) -> Option<(u64, Vec<u8>)> {
    let slots = slots.chunks_exact(SLOT_BYTES as usize).take(SLOTS as usize);
    // One that is not whole was being written when the process ended: nobody was told of it.
    let whole =
        (0u64..).zip(slots).filter_map(|(at, slot)| decode(slot).filter(|(sequence, _)| sequence % SLOTS == at));
    whole.max()
}

impl TableSlots {
    /// The slots of a new file at a place of it, with a table of no bytes.
    pub(crate) fn format(file: Arc<File>, at: u64) -> std::io::Result<TableSlots> {
        let mut slots = TableSlots { file, at, sequence: 0 };
        slots.keep(&[])?;
        Ok(slots)
    }

    /// The slots of a file and the table that counts; none if neither is whole.
    pub(crate) fn open(file: Arc<File>, at: u64) -> std::io::Result<Option<(TableSlots, Vec<u8>)>> {
        let mut slots = vec![0; SLOTS_BYTES as usize];
        file.read_exact_at(&mut slots, at)?;
        Ok(table_in(&slots).map(|(sequence, table)| (TableSlots { file, at, sequence }, table)))
    }

    /// Writes a table over the one before the last.
    ///
    /// # Panics
    /// If it is longer than a slot.
    pub(crate) fn keep(&mut self, table: &[u8]) -> std::io::Result<()> {
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

    #[test]
    fn a_table_that_was_cut_while_it_was_written_leaves_the_one_before() {
        let scratch = Scratch(std::env::temp_dir().join(format!("flashloom-slots-{}", std::process::id())));
        let opened = OpenOptions::new().read(true).write(true).create_new(true).open(&scratch.0);
        let file = Arc::new(opened.expect("a new file"));
        file.set_len(100 + SLOTS_BYTES).expect("it has room");
        let found = || TableSlots::open(file.clone(), 100).expect("it can be read").map(|(_, table)| table);
        assert_eq!(found(), None, "nobody wrote one");
        TableSlots::format(file.clone(), 100).expect("it can be written");
        assert_eq!(found(), Some(Vec::new()));
        let mut before = Vec::new();
        for round in 1..=5u8 {
            let table: Vec<u8> = (0..100 * u16::from(round)).map(|at| at as u8 ^ round).collect();
            let mut slots = TableSlots::open(file.clone(), 100).expect("it can be read").expect("it is whole").0;
            let at = 100 + (slots.sequence + 1) % SLOTS * SLOT_BYTES;
            let mut old = vec![0; SLOT_BYTES as usize];
            file.read_exact_at(&mut old, at).expect("it is there");
            slots.keep(&table).expect("it can be written");
            let mut new = vec![0; SLOT_BYTES as usize];
            file.read_exact_at(&mut new, at).expect("it is there");
            for cut in [0, 1, 8, 9, 16, 17, 23, 60, 24 + table.len() - 1, 24 + table.len(), 4095, 4096] {
                let torn = [&new[..cut], &old[cut..]].concat();
                file.write_all_at(&torn, at).expect("it can be written");
                let due = if torn == new { &table } else { &before };
                assert_eq!(found().as_ref(), Some(due), "round {round}, cut at {cut}");
            }
            before = table;
        }
        file.write_all_at(&[0xff; 2 * 4096], 100).expect("it can be written");
        assert_eq!(found(), None, "neither is whole");
    }
}
