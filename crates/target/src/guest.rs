//! A guest's memory, as its virtual machine monitor shares it: pieces of files, at the addresses that the guest uses.
//!
//! Nothing here trusts the monitor, unless it is told to: an access is checked against the maps, and memory that could go while it is
//! mapped, which would kill whoever touches it, is read and written by calls instead. Files of a filesystem that could let those who
//! read them wait for ever are no memory.

use nvme::HostMemory;
use nvme::spec::PAGE_BYTES;
use rustix::fs::{SealFlags, fcntl_get_seals, fstatfs};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use units::HostAddress;
use vm_memory::mmap::MmapRegionError;
use vm_memory::{AtomicAccess, Bytes as _, FileOffset, MmapRegion, VolatileMemory};
use zerocopy::IntoBytes;

/// Pieces at once: each is an entry of this process's own page tables. A machine has a few dozen.
pub(crate) const MAPS_MAX: usize = 1024;

/// An access to what is not mapped, or not for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unmapped;

/// What the guest lets its device do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// Which of a guest's memory is mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Files of small pages that are sealed against shrinking. Others are reached by calls, if they are memory at all.
    #[default]
    Seals,
    /// Every file: a monitor that takes a page of one away ends this process.
    Monitor,
}

/// How the bytes of a file are reached. It is mapped either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As memory.
    Mapped,
    /// By calls for this process's memory, which fail where an access would end it. Calls for the file would wait where the monitor
    /// holds its lock, and cannot write huge pages.
    Calls,
}

// How a file is mapped, as all of it that there is room for (PROT_READ, PROT_WRITE, MAP_SHARED | MAP_NORESERVE of linux/mman.h).
const PROT_READ: i32 = 1;
const PROT_WRITE: i32 = 2;
const SHARED: i32 = 0x1 | 0x4000;

/// What the kernel calls files of huge pages (HUGETLBFS_MAGIC of linux/magic.h).
const HUGE_PAGES: u64 = 0x9584_58f6;

impl Way {
    /// # Errors
    /// A file that is not in memory, where the monitor is not trusted: its filesystem can let this process wait as long as it likes.
    fn of(file: &OwnedFd, trust: Trust) -> Result<Way, Errno> {
        if trust == Trust::Monitor {
            return Ok(Way::Mapped);
        }
        // Files in memory alone have seals, and are asked for them without their filesystem.
        let seals = fcntl_get_seals(file)?;
        // A huge page that a file has room for need not be there, and is none where it cannot be had.
        let is_huge = fstatfs(file)?.f_type as u64 == HUGE_PAGES;
        Ok(if seals.contains(SealFlags::SHRINK) && !is_huge { Way::Mapped } else { Way::Calls })
    }
}

/// Where the bytes of a piece are.
enum Backing {
    /// Mapped here.
    Mapped(MmapRegion),
    /// In this process's memory, which is a file, from this offset on. They are mapped there for as long.
    Called { memory: File, start: u64, _there: MmapRegion },
    /// With the monitor alone: it would have to be asked, and is not.
    Nowhere,
}

/// A piece: addresses `first` to `last`, both of them in it.
#[derive(Clone)]
struct Map {
    first: u64,
    last: u64,
    access: Access,
    /// A copy shares it.
    backing: Arc<Backing>,
    /// None where all numbers are taken: the drive has no name for it.
    tenure: Option<Tenure>,
}

impl Map {
    fn bytes(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

/// Tenures that there are at once.
pub(crate) const TENURES: u32 = 1 << 17;

/// The time in which a piece is there, from its making or its renewal on. Its number is no other's while anybody has it: a piece, or a
/// command that the drive knows by it.
#[derive(Clone, Debug)]
pub(crate) struct Tenure(Arc<Number>);

impl Tenure {
    /// Below [`TENURES`].
    pub(crate) fn number(&self) -> u32 {
        self.0.number
    }
}

impl PartialEq for Tenure {
    fn eq(&self, other: &Tenure) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[derive(Debug)]
struct Number {
    number: u32,
    numbers: Arc<Mutex<Numbers>>,
}

impl Drop for Number {
    fn drop(&mut self) {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).free.push_back(self.number);
    }
}

/// Numbers of tenures that nobody has.
#[derive(Debug, Default)]
struct Numbers {
    /// From here on nobody had one yet.
    fresh: u32,
    free: VecDeque<u32>,
}

impl Numbers {
    fn take(&mut self) -> Option<u32> {
        if self.fresh == TENURES {
            return self.free.pop_front();
        }
        self.fresh += 1;
        Some(self.fresh - 1)
    }
}

/// All of a guest's memory that its device may reach.
#[derive(Clone, Default)]
pub(crate) struct GuestMemory {
    /// By address; they do not overlap.
    maps: Vec<Map>,
    numbers: Arc<Mutex<Numbers>>,
    trust: Trust,
}

/// The last address of a range, if it has one.
fn last_of(first: u64, bytes: u64) -> Option<u64> {
    first.checked_add(bytes.checked_sub(1)?)
}

impl GuestMemory {
    /// None yet, of which so much will be mapped.
    pub(crate) fn new(trust: Trust) -> Self {
        GuestMemory { trust, ..GuestMemory::default() }
    }

    /// Makes `bytes` of a file, from `offset` on, the guest's memory from `first` on.
    ///
    /// # Errors
    /// A range that is empty, overlaps another, is not made of whole pages, or is longer than its file; too many of them; a file that is
    /// not in memory.
    pub(crate) fn map(
        &mut self,
        first: u64,
        bytes: u64,
        access: Access,
        file: Option<(OwnedFd, u64)>,
    ) -> Result<(), Errno> {
        let placed = file.map(|(file, offset)| Ok((Way::of(&file, self.trust)?, file, offset)));
        self.map_by(first, bytes, access, placed.transpose()?)
    }

    /// The same for a file that is reached this way.
    fn map_by(
        &mut self,
        first: u64,
        bytes: u64,
        access: Access,
        file: Option<(Way, OwnedFd, u64)>,
    ) -> Result<(), Errno> {
        let last = last_of(first, bytes).ok_or(Errno::INVAL)?;
        if !first.is_multiple_of(PAGE_BYTES) || !bytes.is_multiple_of(PAGE_BYTES) {
            return Err(Errno::INVAL);
        }
        let place = self.maps.partition_point(|map| map.last < first);
        if self.maps.get(place).is_some_and(|map| map.first <= last) {
            return Err(Errno::EXIST);
        }
        if self.maps.len() >= MAPS_MAX {
            return Err(Errno::NOSPC);
        }
        let backing = match file {
            Some((way, file, offset)) => Backing::of(way, file, offset, bytes, access)?,
            None => Backing::Nowhere,
        };
        let tenure = self.begin_tenure();
        self.maps.insert(place, Map { first, last, access, backing: Arc::new(backing), tenure });
        Ok(())
    }

    /// Takes every piece within a range away; how many bytes they have.
    ///
    /// # Errors
    /// A range that is empty, that ends in the middle of a piece, or in which there is none; nothing is taken then.
    pub(crate) fn unmap(&mut self, first: u64, bytes: u64) -> Result<u64, Errno> {
        let last = last_of(first, bytes).ok_or(Errno::INVAL)?;
        let meets = |map: &Map| map.first <= last && map.last >= first;
        if self.maps.iter().any(|map| meets(map) && (map.first < first || map.last > last)) {
            return Err(Errno::INVAL);
        }
        let gone = self.maps.extract_if(.., |map| meets(map));
        let bytes = gone.map(|map| map.bytes()).reduce(u64::saturating_add);
        bytes.ok_or(Errno::NOENT)
    }

    /// Takes everything away; how many bytes it has.
    pub(crate) fn clear(&mut self) -> u64 {
        self.maps.drain(..).map(|map| map.bytes()).fold(0, u64::saturating_add)
    }

    fn begin_tenure(&self) -> Option<Tenure> {
        let number = self.numbers.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Tenure(Arc::new(Number { number, numbers: self.numbers.clone() })))
    }

    /// Ends the time of every piece; another begins.
    pub(crate) fn renew(&mut self) {
        for index in 0..self.maps.len() {
            self.maps[index].tenure = self.begin_tenure();
        }
    }

    /// The tenure of the piece that holds all of these pages, if it is one that is mapped here and its device may do this there.
    pub(crate) fn holds(&self, pages: &[u64], needed: Access) -> Option<Tenure> {
        let (map, ..) = self.find(*pages.first()?, 1).ok()?;
        let is_mapped = matches!(*map.backing, Backing::Mapped(_));
        let may = (map.access.read || !needed.read) && (map.access.write || !needed.write);
        let within = |page: &u64| *page >= map.first && last_of(*page, PAGE_BYTES).is_some_and(|last| last <= map.last);
        map.tenure.clone().filter(|_| is_mapped && may && pages.iter().all(within))
    }

    /// Whether a piece is still there.
    pub(crate) fn still_has(&self, tenure: &Tenure) -> bool {
        self.maps.iter().any(|map| map.tenure.as_ref() == Some(tenure))
    }

    /// The tenure of the piece that holds an address now.
    pub(crate) fn tenure(&self, at: HostAddress) -> Option<&Tenure> {
        self.find(at.0, 1).ok()?.0.tenure.as_ref()
    }

    /// The piece that holds an address, where in it that is, and how many of `length` bytes it holds from there on.
    fn find(&self, at: u64, length: usize) -> Result<(&Map, usize, usize), Unmapped> {
        let map = self.maps.get(self.maps.partition_point(|map| map.last < at)).filter(|map| map.first <= at);
        let map = map.ok_or(Unmapped)?;
        let left = (map.last - at).saturating_add(1);
        Ok((map, (at - map.first) as usize, left.min(length as u64) as usize))
    }

    /// Reads bytes, wherever they lie.
    pub(crate) fn read(&self, at: HostAddress, bytes: &mut [u8]) -> Result<(), Unmapped> {
        let mut done = 0;
        while done < bytes.len() {
            let here = at.0.checked_add(done as u64).ok_or(Unmapped)?;
            let (map, offset, take) = self.find(here, bytes.len() - done)?;
            let part = &mut bytes[done..done + take];
            match &*map.backing {
                _ if !map.access.read => return Err(Unmapped),
                Backing::Mapped(region) => region.as_volatile_slice().read_slice(part, offset).map_err(|_| Unmapped)?,
                Backing::Called { memory, start, .. } => {
                    memory.read_exact_at(part, start + offset as u64).map_err(|_| Unmapped)?;
                }
                Backing::Nowhere => return Err(Unmapped),
            }
            done += take;
        }
        Ok(())
    }

    /// Writes bytes, wherever they go. Where not all of them may, those before have been written.
    pub(crate) fn write(&self, at: HostAddress, bytes: &[u8]) -> Result<(), Unmapped> {
        let mut done = 0;
        while done < bytes.len() {
            let here = at.0.checked_add(done as u64).ok_or(Unmapped)?;
            let (map, offset, take) = self.find(here, bytes.len() - done)?;
            let part = &bytes[done..done + take];
            match &*map.backing {
                _ if !map.access.write => return Err(Unmapped),
                Backing::Mapped(region) => {
                    region.as_volatile_slice().write_slice(part, offset).map_err(|_| Unmapped)?;
                }
                Backing::Called { memory, start, .. } => {
                    memory.write_all_at(part, start + offset as u64).map_err(|_| Unmapped)?
                }
                Backing::Nowhere => return Err(Unmapped),
            }
            done += take;
        }
        Ok(())
    }

    /// Reads words in ascending order; `at` is 8-byte aligned, so that no word lies in two pieces.
    pub(crate) fn load(&self, at: HostAddress, words: &mut [u64]) -> Result<(), Unmapped> {
        // Rings and lists mostly lie in one piece, which then is looked for once.
        let (map, offset, there) = self.find(at.0, size_of_val(words))?;
        if let Backing::Mapped(region) = &*map.backing
            && map.access.read
            && there == size_of_val(words)
        {
            let slice = region.as_volatile_slice();
            for (index, word) in words.iter_mut().enumerate() {
                *word = slice.load(offset + 8 * index, Ordering::Acquire).map_err(|_| Unmapped)?;
            }
            return Ok(());
        }
        for (index, word) in words.iter_mut().enumerate() {
            let here = at.0.checked_add(8 * index as u64).ok_or(Unmapped)?;
            let (map, offset, _) = self.find(here, 8)?;
            *word = match &*map.backing {
                Backing::Mapped(region) if map.access.read => {
                    region.as_volatile_slice().load(offset, Ordering::Acquire).map_err(|_| Unmapped)?
                }
                _ => {
                    let mut bytes = [0; 8];
                    self.read(HostAddress(here), &mut bytes)?;
                    u64::from_le_bytes(bytes)
                }
            };
        }
        Ok(())
    }

    /// Writes words in ascending order, each after what was written before it; `at` is 8-byte aligned.
    pub(crate) fn store(&self, at: HostAddress, words: &[u64]) -> Result<(), Unmapped> {
        let (map, offset, there) = self.find(at.0, size_of_val(words))?;
        if let Backing::Mapped(region) = &*map.backing
            && map.access.write
            && there == size_of_val(words)
        {
            let slice = region.as_volatile_slice();
            for (index, word) in words.iter().enumerate() {
                slice.store(*word, offset + 8 * index, Ordering::Release).map_err(|_| Unmapped)?;
            }
            return Ok(());
        }
        for (index, word) in words.iter().enumerate() {
            let here = at.0.checked_add(8 * index as u64).ok_or(Unmapped)?;
            self.store_one(HostAddress(here), *word)?;
        }
        Ok(())
    }

    /// Writes a word, or half of one, at once; `at` is a multiple of its length.
    pub(crate) fn store_one<T: AtomicAccess>(&self, at: HostAddress, value: T) -> Result<(), Unmapped> {
        let (map, offset, _) = self.find(at.0, size_of::<T>())?;
        match &*map.backing {
            Backing::Mapped(region) if map.access.write => {
                region.as_volatile_slice().store(value, offset, Ordering::Release).map_err(|_| Unmapped)
            }
            _ => self.write(at, value.as_slice()),
        }
    }
}

/// What the kernel said.
fn said(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Backing {
    fn of(way: Way, file: OwnedFd, offset: u64, bytes: u64, access: Access) -> Result<Backing, Errno> {
        let file = File::from(file);
        let about = file.metadata().map_err(|_| Errno::BADF)?;
        let end = offset.checked_add(bytes).filter(|end| *end <= about.len());
        if !about.is_file() || end.is_none() {
            return Err(Errno::INVAL);
        }
        let length = usize::try_from(bytes).map_err(|_| Errno::NOMEM)?;
        // What the device may not write need not be open for writing, and cannot be written by a mistake of ours.
        let protection = if access.write { PROT_READ | PROT_WRITE } else { PROT_READ };
        let region = MmapRegion::build(Some(FileOffset::new(file, offset)), length, protection, SHARED);
        let region = region.map_err(|error| match error {
            MmapRegionError::Mmap(error) => said(&error),
            _ => Errno::INVAL,
        })?;
        if way == Way::Mapped {
            return Ok(Backing::Mapped(region));
        }
        let memory = File::options().read(true).write(true).open("/proc/self/mem").map_err(|error| said(&error))?;
        Ok(Backing::Called { memory, start: region.as_ptr().addr() as u64, _there: region })
    }
}

impl HostMemory for GuestMemory {
    fn read_words(&self, at: HostAddress, words: &mut [u64]) {
        if self.load(at, words).is_err() {
            words.fill(u64::MAX);
        }
    }

    fn write_words(&self, at: HostAddress, words: &[u64]) {
        // What may not be written is swallowed, as on a bus.
        let _ = self.store(at, words);
    }

    fn read_sectors(&self, at: HostAddress, payload: &mut [u64]) -> bool {
        self.read(at, payload.as_mut_bytes()).is_ok()
    }

    fn write_sectors(&self, at: HostAddress, payload: &[u64]) {
        let _ = self.write(at, payload.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    const ALL: Access = Access { read: true, write: true };

    fn file(bytes: u64, sealed: bool) -> OwnedFd {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, bytes).unwrap();
        if sealed {
            fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        }
        file
    }

    #[test]
    fn ranges_that_no_machine_has_are_refused() {
        let mut guest = GuestMemory::default();
        let mut map = |first, bytes, offset| guest.map(first, bytes, ALL, Some((file(8192, true), offset)));
        assert_eq!(map(0x1000, 0, 0), Err(Errno::INVAL));
        assert_eq!(map(0x1000, 4097, 0), Err(Errno::INVAL));
        assert_eq!(map(0x1008, 4096, 0), Err(Errno::INVAL));
        assert_eq!(map(u64::MAX - 4095, 8192, 0), Err(Errno::INVAL));
        assert_eq!(map(0x1000, 12288, 0), Err(Errno::INVAL), "longer than its file");
        assert_eq!(map(0x1000, 4096, u64::MAX - 4095), Err(Errno::INVAL));
        assert_eq!(map(0x1000, 4096, 2048), Err(Errno::INVAL), "from the middle of a page of its file");
        assert_eq!(map(0x1000, 4096, 4096), Ok(()));
        assert_eq!(map(0x1000, 4096, 0), Err(Errno::EXIST));
        assert_eq!(map(0, 8192, 0), Err(Errno::EXIST));
        assert_eq!(map(0x2000, 8192, 0), Ok(()));
        assert_eq!(guest.unmap(0x1000, 8192), Err(Errno::INVAL), "through the middle of a piece");
        assert_eq!(guest.unmap(0, 1 << 63), Ok(12288));
        assert_eq!(guest.unmap(0, 1 << 63), Err(Errno::NOENT), "nothing is there any more");
        assert_eq!(guest.read(HostAddress(0x2000), &mut [0]), Err(Unmapped));
    }

    #[test]
    fn a_pipe_is_no_memory_and_a_file_of_a_disk_only_where_the_monitor_is_trusted() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        assert_eq!(GuestMemory::default().map(0, 4096, ALL, Some((reader, 0))), Err(Errno::INVAL));
        let name = std::env::current_exe().unwrap();
        let program = || OwnedFd::from(File::open(&name).unwrap());
        assert_eq!(GuestMemory::default().map(0, 4096, ALL, Some((program(), 0))), Err(Errno::INVAL));
        assert_eq!(Way::of(&program(), Trust::Monitor), Ok(Way::Mapped));
    }

    /// It is sealed, and as long as it says, but no page of it need ever be there.
    #[test]
    fn huge_pages_are_reached_by_calls_whatever_their_seals() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        let file = memfd_create("guest", flags).expect("a kernel with huge pages");
        ftruncate(&file, 1 << 21).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        assert_eq!(Way::of(&file, Trust::Seals), Ok(Way::Calls));
        let mut guest = GuestMemory::default();
        guest.map(0, 1 << 21, ALL, Some((file, 0))).unwrap();
        let free = std::fs::read_to_string("/proc/meminfo").unwrap();
        if free.lines().any(|line| line.starts_with("HugePages_Total:") && line.ends_with(" 0")) {
            assert_eq!(guest.load(HostAddress(4096), &mut [0]), Err(Unmapped));
            assert_eq!(guest.store(HostAddress(4096), &[1]), Err(Unmapped));
        }
    }

    #[test]
    fn what_cannot_shrink_is_mapped_and_the_rest_only_where_the_monitor_is_trusted() {
        let way = |sealed, trust| Way::of(&file(4096, sealed), trust);
        assert_eq!((way(true, Trust::Seals), way(false, Trust::Seals)), (Ok(Way::Mapped), Ok(Way::Calls)));
        assert_eq!((way(true, Trust::Monitor), way(false, Trust::Monitor)), (Ok(Way::Mapped), Ok(Way::Mapped)));
    }

    #[test]
    fn a_file_that_shrinks_under_its_reader_reads_as_unmapped() {
        let shrinking = file(8192, false);
        let mut guest = GuestMemory::default();
        guest.map(0, 8192, ALL, Some((shrinking.try_clone().unwrap(), 0))).unwrap();
        guest.store(HostAddress(4096), &[7]).unwrap();
        ftruncate(&shrinking, 0).unwrap();
        let mut words = [0];
        assert_eq!(guest.load(HostAddress(4096), &mut words), Err(Unmapped));
        assert_eq!(guest.store(HostAddress(4096), &words), Err(Unmapped));
    }

    #[test]
    fn access_is_as_it_was_given() {
        let mut guest = GuestMemory::default();
        guest.map(0, 4096, Access { read: true, write: false }, Some((file(4096, true), 0))).unwrap();
        guest.map(4096, 4096, Access { read: false, write: true }, Some((file(4096, true), 0))).unwrap();
        guest.map(8192, 4096, ALL, None).unwrap();
        let mut words = [1];
        assert_eq!(guest.load(HostAddress(0), &mut words), Ok(()));
        assert_eq!(guest.store(HostAddress(0), &words), Err(Unmapped));
        assert_eq!(guest.load(HostAddress(4096), &mut words), Err(Unmapped));
        assert_eq!(guest.store(HostAddress(4096), &words), Ok(()));
        assert_eq!(guest.read(HostAddress(8192), &mut [0]), Err(Unmapped));
    }

    /// A monitor may give a file that it has open for reading alone, a guest's firmware for example. It is read, and a write to it is a
    /// fault of the device and no end of this process.
    #[test]
    fn a_file_that_cannot_be_written_is_memory_to_read() {
        use rustix::fs::{Mode, OFlags, open};
        use std::os::fd::AsRawFd;
        for way in [Way::Mapped, Way::Calls] {
            let written = file(4096, true);
            rustix::io::pwrite(&written, &[7; 8], 0).unwrap();
            let name = format!("/proc/self/fd/{}", written.as_raw_fd());
            let readable = || open(&name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
            let mut guest = GuestMemory::default();
            assert_eq!(guest.map_by(0, 4096, ALL, Some((way, readable(), 0))), Err(Errno::ACCESS));
            let read = Access { read: true, write: false };
            assert_eq!(guest.map_by(0, 4096, read, Some((way, readable(), 0))), Ok(()));
            let mut words = [0];
            assert_eq!(guest.load(HostAddress(0), &mut words), Ok(()));
            assert_eq!(words, [0x0707_0707_0707_0707]);
            assert_eq!(guest.store(HostAddress(0), &[1]), Err(Unmapped));
            assert_eq!(guest.write(HostAddress(0), &[1]), Err(Unmapped));
            guest.write_sectors(HostAddress(0), &[1; 64]);
            guest.write_words(HostAddress(0), &[1]);
            assert_eq!(guest.holds(&[0], Access { read: false, write: true }), None);
            assert_eq!((guest.load(HostAddress(0), &mut words), words), (Ok(()), [0x0707_0707_0707_0707]));
        }
    }

    proptest! {
        /// Mapped and by calls, over the edges of pieces, against a plain array.
        #[test]
        fn bytes_land_where_they_are_put(
            ways in prop::array::uniform3(prop::sample::select(&[Way::Mapped, Way::Calls][..])),
            at in 0usize..12288, bytes in prop::collection::vec(any::<u8>(), 0..6000),
        ) {
            let mut guest = GuestMemory::default();
            for (index, way) in ways.into_iter().enumerate() {
                guest.map_by(index as u64 * 4096, 4096, ALL, Some((way, file(4096, true), 0))).unwrap();
            }
            let fits = at + bytes.len() <= 12288;
            prop_assert_eq!(guest.write(HostAddress(at as u64), &bytes).is_ok(), fits);
            if fits {
                let mut model = vec![0u8; 12288];
                model[at..at + bytes.len()].copy_from_slice(&bytes);
                let mut held = vec![0u8; 12288];
                guest.read(HostAddress(0), &mut held).unwrap();
                prop_assert_eq!(&held, &model);
                let mut words = vec![0u64; 12288 / 8];
                guest.load(HostAddress(0), &mut words).unwrap();
                prop_assert_eq!(words.as_bytes(), &model[..]);
            }
        }
    }
}
