//! The namespaces as bytes, for whoever keeps them while no controller lives.
//!
//! ```text
//! bytes of the drive's blocks: 4 | namespaces: 4 | namespaces created so far: 16
//! for each: id 4 | home 4 | first 8 | length 8 | blocks 8 | bytes of a block 4 | metadata, protection, shown, 0: 1 each
//!           | identifier, counted from that of the drive's first namespace: 16 | extended unique identifier 8
//! ```
//! All little endian. Identifiers are counted, so that they follow the subsystem's name. Which controllers have a namespace is not
//! kept: they go when the drive does, and those that come have what is shown. Nor is that contents are going: the command was not
//! answered.

use super::{BTreeSet, GRANULE_BYTES, Namespaces, Space};
use crate::{ControllerSettings, NamespaceSettings, Protection};
use thiserror::Error;

const HEAD_BYTES: usize = 24;
const ENTRY_BYTES: usize = 64;

/// A table that is not one of this drive's namespaces.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TableError {
    /// The drive counts in other blocks.
    #[error("blocks of {found} bytes; expected {expected}")]
    OtherBlocks {
        /// Bytes of a block as the table has them.
        found: u32,
        /// Bytes of a block of this drive.
        expected: u32,
    },
    /// It contradicts itself or the drive.
    #[error("{0}")]
    Damaged(String),
}

fn damaged<T>(what: impl Into<String>) -> Result<T, TableError> {
    Err(TableError::Damaged(what.into()))
}

/// Takes a number of so many bytes from the front; the caller has seen that they are there.
fn take<const BYTES: usize>(from: &mut &[u8]) -> [u8; BYTES] {
    let (bytes, rest) = from.split_first_chunk().expect("the length was looked at");
    *from = rest;
    *bytes
}

impl Namespaces {
    /// The most bytes of [`Namespaces::table`] for so many namespaces.
    pub const fn table_bytes_max(namespaces: u32) -> usize {
        HEAD_BYTES + namespaces as usize * ENTRY_BYTES
    }

    /// What [`Namespaces::of_table`] makes the same namespaces of.
    pub fn table(&self) -> Vec<u8> {
        let count = self.spaces.iter().flatten().count() as u32;
        let mut bytes = [self.unit.to_le_bytes(), count.to_le_bytes()].concat();
        bytes.extend(self.created.to_le_bytes());
        for (id, space) in (1u32..).zip(&self.spaces) {
            let Some(Space { settings, home, first, length, shown, .. }) = space else { continue };
            let NamespaceSettings { blocks, block_bytes, metadata, protection, nguid, eui64 } = settings;
            [id, *home].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            [first, length, blocks].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            bytes.extend(block_bytes.to_le_bytes());
            bytes.extend([u8::from(*metadata), protection.code(), u8::from(*shown), 0]);
            bytes.extend(u128::from_be_bytes(*nguid).wrapping_sub(self.nguid).to_le_bytes());
            bytes.extend(eui64);
        }
        bytes
    }

    /// The namespaces of a drive with these settings, as [`Namespaces::table`] told them; no controller has any yet.
    ///
    /// # Errors
    /// A table that names what the drive does not have, or contradicts itself.
    pub fn of_table(settings: &ControllerSettings, table: &[u8]) -> Result<Namespaces, TableError> {
        let mut all = Namespaces::new(settings);
        let mut rest = table;
        if table.len() < HEAD_BYTES {
            return damaged(format!("{} bytes; expected at least {HEAD_BYTES}", table.len()));
        }
        let found = u32::from_le_bytes(take(&mut rest));
        if found != all.unit {
            return Err(TableError::OtherBlocks { found, expected: all.unit });
        }
        let count = u32::from_le_bytes(take(&mut rest));
        all.created = u128::from_le_bytes(take(&mut rest));
        if count > all.count() || rest.len() != count as usize * ENTRY_BYTES {
            let most = all.count();
            return damaged(format!("{count} namespaces in {} bytes; expected at most {most}, whole", table.len()));
        }
        all.spaces.fill(None);
        for _ in 0..count {
            let (id, space) = all.entry(&mut rest);
            match all.spaces.get((id as usize).wrapping_sub(1)) {
                Some(None) => all.check(id, &space)?,
                Some(Some(_)) => return damaged(format!("namespace {id} twice; expected each once")),
                None => return damaged(format!("namespace {id}; expected 1 to {}", all.count())),
            }
            all.spaces[id as usize - 1] = Some(space?);
        }
        Ok(all)
    }

    /// The next namespace, and why it cannot be.
    fn entry(&self, rest: &mut &[u8]) -> (u32, Result<Space, TableError>) {
        let [id, home] = [(); 2].map(|()| u32::from_le_bytes(take(rest)));
        let [first, length, blocks] = [(); 3].map(|()| u64::from_le_bytes(take(rest)));
        let block_bytes = u32::from_le_bytes(take(rest));
        let flags: [u8; 4] = take(rest);
        let nguid = u128::from_le_bytes(take(rest)).wrapping_add(self.nguid).to_be_bytes();
        let eui64 = take(rest);
        let [metadata @ 0..=1, protection, shown @ 0..=1, 0] = flags else {
            return (
                id,
                damaged(format!("namespace {id}: flags {flags:?}; expected 0 or 1, and a type of protection")),
            );
        };
        let Some(protection) = Protection::from_code(protection.into()) else {
            return (id, damaged(format!("namespace {id}: protection {protection}; expected 0 to 3")));
        };
        let settings = NamespaceSettings { blocks, block_bytes, metadata: metadata == 1, protection, nguid, eui64 };
        let (shown, attached) = (shown == 1, BTreeSet::new());
        (id, Ok(Space { settings, home, first, length, attached, shown, since: 0, change: None }))
    }

    /// Whether a namespace can be here, beside those that there are.
    fn check(&self, id: u32, space: &Result<Space, TableError>) -> Result<(), TableError> {
        let Space { settings, home, first, length, .. } = space.as_ref().map_err(TableError::clone)?;
        let NamespaceSettings { blocks, block_bytes, metadata, protection, .. } = settings;
        if !matches!(block_bytes, 512 | 4096) || !(self.unit..=self.longest).contains(block_bytes) {
            return damaged(format!("namespace {id}: blocks of {block_bytes} bytes; expected 512 or 4096, as it has"));
        }
        if *metadata && !self.metadata || *protection != Protection::None && !metadata {
            return damaged(format!("namespace {id}: metadata; expected none, as the drive keeps none"));
        }
        let unit = u64::from(self.unit);
        let homes = (*home as usize).checked_sub(1).and_then(|home| self.homes.get(home)).copied().unwrap_or(0);
        let end = first.checked_add(*length).filter(|end| *end <= homes && first % (GRANULE_BYTES / unit) == 0);
        let used = blocks.checked_mul(u64::from(*block_bytes) / unit);
        let fits = used.is_some_and(|used| used > 0 && used <= *length);
        let Some(end) = end.filter(|_| fits) else {
            let found = format!("{blocks} blocks in {length} from {first} on");
            return damaged(format!("namespace {id}: {found} of space {home}; expected a piece of the drive"));
        };
        let others = self.spaces.iter().flatten().filter(|other| other.home == *home);
        if others.into_iter().any(|other| *first < other.first + other.length && other.first < end) {
            return damaged(format!("namespace {id}: a piece of the drive that another has; expected its own"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Change, Format};
    use super::*;
    use crate::settings::tests::example;

    fn settings() -> ControllerSettings {
        let mut settings = example();
        settings.namespaces[0].blocks = 10 * 2048 + 9;
        (settings.managed_namespaces, settings.metadata) = (4, true);
        settings
    }

    /// Three namespaces, of which the second has protection information and a controller, and the third is shown to nobody.
    fn made() -> Namespaces {
        let mut all = Namespaces::new(&settings());
        all.enter(1);
        all.begin_change(1, Change::Deleted).unwrap();
        all.on_erased(1, true);
        all.create(4096, Format::plain(512)).unwrap();
        let protected = Format { protection: Protection::Type2, ..Format::with_metadata(4096) };
        all.create(300, protected).unwrap();
        all.create(1, Format::plain(4096)).unwrap();
        all.begin_change(1, Change::Deleted).unwrap();
        all.on_erased(1, true);
        all.create(2048, Format::plain(512)).unwrap();
        all.attach(2, &[1], true).unwrap();
        all
    }

    #[test]
    fn namespaces_come_back_from_their_table() {
        for (before, shown) in [(made(), vec![2]), (Namespaces::new(&settings()), vec![1])] {
            let table = before.table();
            assert!(table.len() <= Namespaces::table_bytes_max(4));
            let mut after = Namespaces::of_table(&settings(), &table).unwrap();
            after.enter(7);
            assert_eq!(after.ids(Some(7)).collect::<Vec<_>>(), shown, "what was shown is");
            let mut before = before;
            before.enter(7);
            [&mut before, &mut after].into_iter().for_each(|all| [1, 7].iter().for_each(|id| all.leave(*id)));
            // Changes are counted anew, for the commands of a process.
            before.changes = 0;
            before.spaces.iter_mut().flatten().for_each(|space| space.since = 0);
            assert_eq!(before, after);
        }
    }

    #[test]
    fn identifiers_follow_the_name_of_the_subsystem_and_are_not_used_again() {
        let mut renamed = settings();
        renamed.namespaces[0].nguid = [0x77; 16];
        let mut after = Namespaces::of_table(&renamed, &made().table()).unwrap();
        let id = after.create(1, Format::plain(512)).unwrap();
        let names: BTreeSet<[u8; 16]> = after.ids(None).map(|id| after.allocated(id).unwrap().settings.nguid).collect();
        assert_eq!((names.len(), id), (4, 4));
        assert!(names.iter().all(|name| name[8..] == [0x77; 8]));
    }

    #[test]
    fn a_namespace_is_made_beside_any_number_of_others_under_a_name_of_its_own() {
        for own in [1u128, 255, 256, 300, 1024] {
            let mut settings = example();
            let space = settings.namespaces[0].clone();
            let named = |number: u128| NamespaceSettings { nguid: (number << 64).to_be_bytes(), ..space.clone() };
            settings.namespaces = (1..=own).map(named).collect();
            let mut all = Namespaces::new(&settings);
            all.begin_change(1, Change::Deleted).unwrap();
            all.on_erased(1, true);
            let id = all.create(space.blocks, Format::of(&space)).unwrap();
            let nguid = all.allocated(id).unwrap().settings.nguid;
            assert!(settings.namespaces.iter().all(|other| other.nguid != nguid), "{own} of its own");
        }
    }

    #[test]
    fn a_table_with_blocks_that_are_not_written_as_a_whole_is_refused() {
        let short = ControllerSettings { atomic_write_blocks: 4, ..settings() };
        let refused = Namespaces::of_table(&short, &made().table()).expect_err("two have blocks of 4 KiB");
        assert!(refused.to_string().starts_with("namespace 2: blocks of 4096 bytes"), "{refused}");
    }

    #[test]
    fn a_table_of_another_drive_or_that_contradicts_itself_is_refused() {
        let table = made().table();
        let with = |at: usize, value: u8| {
            let mut table = table.clone();
            table[at] = value;
            Namespaces::of_table(&settings(), &table).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let entry = HEAD_BYTES + ENTRY_BYTES;
        let cases = [
            (1, 16, "blocks of 4096 bytes; expected 512"),
            (4, 2, "2 namespaces in 216 bytes"),
            (4, 5, "5 namespaces"),
            (entry, 1, "namespace 1 twice"),
            (entry, 0, "namespace 0; expected 1 to 4"),
            (entry + 4, 9, "of space 9"),
            (entry + 8, 1, "from 4097 on"),
            (entry + 9, 0, "a piece of the drive that another has"),
            (entry + 15, 0xff, "expected a piece of the drive"),
            (entry + 25, 0xff, "65324 blocks in 4096"),
            (entry + 33, 8, "blocks of 2048 bytes"),
            (entry + 37, 9, "protection 9"),
            (entry + 36, 0, "namespace 2: metadata"),
            (entry + 38, 7, "flags"),
        ];
        for (at, value, due) in cases {
            let said = with(at, value);
            assert!(said.contains(due), "byte {at} is {value}: {said}");
        }
        for length in 0..table.len() {
            assert!(Namespaces::of_table(&settings(), &table[..length]).is_err(), "{length} bytes");
        }
        let plain = ControllerSettings { metadata: false, ..settings() };
        assert!(Namespaces::of_table(&plain, &table).is_err(), "it keeps no metadata");
        // Whatever is in it, namespaces that come of it are within the drive.
        for (at, bit) in (0..table.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut table = table.clone();
            table[at] ^= 1 << bit;
            if let Ok(all) = Namespaces::of_table(&settings(), &table) {
                assert!(all.pieces().all(|(_, piece)| piece.first + piece.blocks <= 10 * 2048 + 9));
                assert_eq!(all.table(), table);
            }
        }
    }
}
