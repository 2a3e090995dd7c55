//! Physical region pages: where in host memory the bytes of a transfer lie (Base §4.1.1).
//!
//! A transfer of one or two pages is told whole by a command's PRP1 and PRP2. A longer one has a list of entries, whose
//! pages are chained by their last entry. Nothing here reads memory: the device fetches what [`ListWalk::run`] names
//! and hands it back.

use crate::HostMemory;
use crate::spec::{DataPointer, PAGE_BYTES, Status};
use units::{Bytes, HostAddress};

const ENTRY_BYTES: u64 = 8;
const ENTRIES_PER_PAGE: usize = (PAGE_BYTES / ENTRY_BYTES) as usize;

/// What PRP1 and PRP2 of a command say about a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrpPlan {
    first: HostAddress,
    second: HostAddress,
    bytes: Bytes,
}

/// Reads the entries of a command that moves `bytes`.
///
/// # Errors
/// [`Status::PRP_OFFSET_INVALID`] where PRP1 is not dword aligned, PRP2 as a page has an offset, or PRP2 as a list is
/// not qword aligned.
#[inline]
pub fn plan(prp1: HostAddress, prp2: HostAddress, bytes: Bytes) -> Result<PrpPlan, Status> {
    let plan = PrpPlan { first: prp1, second: prp2, bytes };
    let misaligned = match plan.pages() {
        0 | 1 => 0,
        2 => prp2.0 % PAGE_BYTES,
        _ => prp2.0 % ENTRY_BYTES,
    };
    if !prp1.0.is_multiple_of(4) || misaligned != 0 { Err(Status::PRP_OFFSET_INVALID) } else { Ok(plan) }
}

/// Adjoining host memory that part of a transfer goes to or comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub at: HostAddress,
    /// How long it is; never zero.
    pub bytes: Bytes,
}

/// Where a range of a transfer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The beginning of the range, up to the end of its page.
    pub first: Piece,
    /// What is behind that.
    pub rest: Rest,
}

/// What of a range lies behind the page that it begins in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing.
    Nothing,
    /// A piece of one page.
    Page(Piece),
    /// More than a page: whole pages and what is left, which entries of the list name.
    Listed {
        /// The first of these entries.
        entry: usize,
        /// How much it is.
        bytes: Bytes,
    },
}

impl Pieces {
    /// Piece after piece, by the entries of the list.
    pub fn each(self, list: impl Fn(usize) -> u64) -> impl Iterator<Item = Piece> {
        let (one, from, total) = match self.rest {
            Rest::Nothing => (None, 0, 0),
            Rest::Page(piece) => (Some(piece), 0, 0),
            Rest::Listed { entry, bytes } => (None, entry, bytes.0),
        };
        let listed = (from..).zip((0..total).step_by(PAGE_BYTES as usize)).map(move |(entry, done)| Piece {
            at: HostAddress(list(entry)),
            bytes: Bytes((total - done).min(PAGE_BYTES)),
        });
        [Some(self.first), one].into_iter().flatten().chain(listed)
    }
}

impl PrpPlan {
    /// Bytes of the whole transfer.
    #[inline]
    pub const fn bytes(&self) -> Bytes {
        self.bytes
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.first.0 % PAGE_BYTES
    }

    #[inline]
    fn pages(&self) -> u64 {
        (self.offset() + self.bytes.0).div_ceil(PAGE_BYTES)
    }

    /// Entries to be fetched from a list before the transfer can be resolved; 0 where PRP1 and PRP2 tell it all.
    #[inline]
    pub fn list_entries(&self) -> usize {
        match self.pages() {
            0..=2 => 0,
            pages => (pages - 1) as usize,
        }
    }

    /// Whether a unit of so many bytes, a power of two, lies across two pages.
    #[inline]
    pub fn splits(&self, unit: u64) -> bool {
        !self.first.0.is_multiple_of(unit) && self.pages() > 1
    }

    /// The way along the list, if there is one.
    #[inline]
    pub fn walk(&self) -> Option<ListWalk> {
        let remaining = self.list_entries();
        (remaining > 0).then_some(ListWalk { next: self.second, remaining })
    }

    /// Where `bytes` (at least 1) from `offset` of the transfer on lie. `list` tells the entries gathered by [`ListWalk::take`] by
    /// their place. Takes the same time wherever the range is.
    ///
    /// # Panics
    /// If the range is not within the transfer: the device asks only for what it admitted.
    #[inline]
    pub fn resolve(&self, offset: Bytes, bytes: Bytes, list: impl Fn(usize) -> u64) -> Pieces {
        assert!(bytes.0 >= 1 && offset.0 + bytes.0 <= self.bytes.0);
        let from = self.offset() + offset.0;
        let (page, within) = (from / PAGE_BYTES, from % PAGE_BYTES);
        let here = bytes.0.min(PAGE_BYTES - within);
        let first = Piece { at: HostAddress(self.page(page, &list).wrapping_add(within)), bytes: Bytes(here) };
        let rest = match bytes.0 - here {
            0 => Rest::Nothing,
            rest @ 1..=PAGE_BYTES => {
                Rest::Page(Piece { at: HostAddress(self.page(page + 1, &list)), bytes: Bytes(rest) })
            }
            // Three pages: there is a list, whose first entry is of the second page.
            rest => Rest::Listed { entry: page as usize, bytes: Bytes(rest) },
        };
        Pieces { first, rest }
    }

    #[inline]
    fn page(&self, index: u64, list: &impl Fn(usize) -> u64) -> u64 {
        match index {
            0 => self.first.0 - self.offset(),
            1 if self.pages() == 2 => self.second.0,
            _ => list(index as usize - 1),
        }
    }
}

/// Words of a list that lie in one page, to be fetched by one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRun {
    /// Where they begin.
    pub at: HostAddress,
    /// How many: 1 to 512.
    pub words: usize,
}

/// The way along the chained pages of a list: fetch [`ListWalk::run`], hand it to [`ListWalk::take`], until there is no
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListWalk {
    next: HostAddress,
    remaining: usize,
}

impl ListWalk {
    /// What to fetch next; `None` when every entry is known.
    #[inline]
    pub fn run(&self) -> Option<ListRun> {
        let room = ENTRIES_PER_PAGE - (self.next.0 % PAGE_BYTES / ENTRY_BYTES) as usize;
        (self.remaining > 0).then(|| ListRun { at: self.next, words: self.remaining.min(room) })
    }

    /// Takes the words of [`ListWalk::run`] and gives back those that are entries for data: the last word of a page
    /// names the next page where more entries remain than fit.
    ///
    /// # Errors
    /// [`Status::PRP_OFFSET_INVALID`] where an entry, or the next page's address, has an offset.
    #[inline]
    pub fn take<'a>(&mut self, fetched: &'a [u64]) -> Result<&'a [u64], Status> {
        let run = self.run().expect("words of a list that is known already");
        assert_eq!(fetched.len(), run.words);
        if fetched.iter().any(|entry| !entry.is_multiple_of(PAGE_BYTES)) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        if run.words == self.remaining {
            self.remaining = 0;
            return Ok(fetched);
        }
        let (next, entries) = fetched.split_last().expect("a run has at least one word");
        self.next = HostAddress(*next);
        self.remaining -= entries.len();
        Ok(entries)
    }
}

/// Pages a host needs for the lists of a transfer over `data_pages` pages, each list page used from its beginning.
pub const fn list_pages(data_pages: usize) -> usize {
    // All but the last page give one of their entries to the chain.
    if data_pages <= 2 { 0 } else { (data_pages - 2).div_ceil(ENTRIES_PER_PAGE - 1) }
}

/// Makes the entries for a transfer over `pages`, writing the list, if one is needed, into `lists`.
///
/// `pages[0]` may have a dword-aligned offset, and `lists[0]` a qword-aligned one; every other address is a page's.
///
/// # Panics
/// If `pages` is empty, an address is misaligned, or `lists` is too short (see [`list_pages`]).
pub fn build(memory: &(impl HostMemory + ?Sized), pages: &[HostAddress], lists: &[HostAddress]) -> DataPointer {
    assert!(pages[0].0.is_multiple_of(4) && pages[1..].iter().all(|page| page.0.is_multiple_of(PAGE_BYTES)));
    if pages.len() <= 2 {
        return DataPointer { prp1: pages[0], prp2: pages.get(1).copied().unwrap_or_default() };
    }
    let mut words = [0u64; ENTRIES_PER_PAGE];
    let mut rest = &pages[1..];
    for (at, list) in lists.iter().enumerate() {
        assert!(list.0.is_multiple_of(if at == 0 { ENTRY_BYTES } else { PAGE_BYTES }));
        let room = ENTRIES_PER_PAGE - (list.0 % PAGE_BYTES / ENTRY_BYTES) as usize;
        let here = if rest.len() > room { room - 1 } else { rest.len() };
        for (word, page) in words.iter_mut().zip(&rest[..here]) {
            *word = page.0;
        }
        rest = &rest[here..];
        if rest.is_empty() {
            memory.write_words(*list, &words[..here]);
            return DataPointer { prp1: pages[0], prp2: lists[0] };
        }
        words[here] = lists.get(at + 1).expect("too few pages for the list").0;
        memory.write_words(*list, &words[..=here]);
    }
    panic!("no page for the list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::SmallMemory;
    use proptest::prelude::*;

    /// Fetches the whole list as a device would.
    fn gather(memory: &SmallMemory, plan: &PrpPlan) -> Result<Vec<u64>, Status> {
        let mut entries = Vec::new();
        let Some(mut walk) = plan.walk() else { return Ok(entries) };
        while let Some(run) = walk.run() {
            let mut words = vec![0; run.words];
            memory.read_words(run.at, &mut words);
            entries.extend_from_slice(walk.take(&words)?);
        }
        assert_eq!(entries.len(), plan.list_entries());
        Ok(entries)
    }

    #[test]
    fn offsets_that_must_be_zero_are_refused() {
        let refused = |prp1, prp2, bytes| plan(HostAddress(prp1), HostAddress(prp2), Bytes(bytes)).is_err();
        assert!(refused(0x1002, 0, 512) && !refused(0x1004, 0, 512));
        assert!(!refused(0x1000, 0x2001, 4096), "PRP2 is not used by one page");
        assert!(refused(0x1000, 0x2200, 8192) && !refused(0x1000, 0x2000, 8192));
        assert!(refused(0x1000, 0x2004, 12288) && !refused(0x1000, 0x2008, 12288));
        assert!(refused(0x1e00, 0x2008, 1024), "one byte over makes two pages");
    }

    #[test]
    fn a_frame_across_two_pages_comes_in_two_pieces() {
        let plan = plan(HostAddress(0x1200), HostAddress(0x8000), Bytes(4096)).unwrap();
        let pieces = plan.resolve(Bytes(0), Bytes(4096), |_| unreachable!("there is no list"));
        assert_eq!(pieces.first, Piece { at: HostAddress(0x1200), bytes: Bytes(0xe00) });
        assert_eq!(pieces.rest, Rest::Page(Piece { at: HostAddress(0x8000), bytes: Bytes(0x200) }));
        assert!(!plan.splits(512) && plan.splits(1024));
    }

    #[test]
    fn a_frame_over_more_pages_names_them_by_the_list() {
        let plan = plan(HostAddress(0x1e00), HostAddress(0x8000), Bytes(0x6000)).unwrap();
        let list = |at: usize| [0x2_0000, 0x3_0000, 0x4_0000, 0x5_0000, 0x6_0000, 0x7_0000][at];
        let pieces = plan.resolve(Bytes(0x1000), Bytes(0x4000), list);
        assert_eq!(pieces.first, Piece { at: HostAddress(0x2_0e00), bytes: Bytes(0x200) });
        assert_eq!(pieces.rest, Rest::Listed { entry: 1, bytes: Bytes(0x3e00) });
        let pieces: Vec<_> = pieces.each(list).map(|piece| (piece.at.0, piece.bytes.0)).collect();
        assert_eq!(
            pieces,
            [(0x2_0e00, 0x200), (0x3_0000, 0x1000), (0x4_0000, 0x1000), (0x5_0000, 0x1000), (0x6_0000, 0xe00)]
        );
    }

    #[test]
    fn lists_need_as_many_pages_as_they_say() {
        assert_eq!([1, 2, 3, 513, 514, 1024, 1025].map(list_pages), [0, 0, 1, 1, 2, 2, 3]);
    }

    proptest! {
        #[test]
        fn what_is_built_resolves_to_the_same_pages(
            count in 1usize..1600, offset in 0u64..1024, list_slot in 0u64..512, tail in 1u64..=4096,
            from in 0.0f64..1.0, most in 1u64..5 * PAGE_BYTES,
        ) {
            let memory = SmallMemory::with_words(8 * 512);
            let pages = (0..count as u64)
                .map(|at| HostAddress((at * 7919 + 3) * PAGE_BYTES + if at == 0 { offset * 4 } else { 0 }))
                .collect::<Vec<_>>();
            let lists = [HostAddress(list_slot * 8), HostAddress(0x3000), HostAddress(0x1000), HostAddress(0x7000),
                HostAddress(0x5000)];
            let pointer = build(&memory, &pages, &lists);
            let tail = if count == 1 { tail.min(PAGE_BYTES - offset * 4) } else { tail };
            let first = if count == 1 { 0 } else { PAGE_BYTES - offset * 4 };
            let bytes = first + count.saturating_sub(2) as u64 * PAGE_BYTES + tail;
            let plan = plan(pointer.prp1, pointer.prp2, Bytes(bytes)).unwrap();
            let list = gather(&memory, &plan).unwrap();

            let start = ((bytes - 1) as f64 * from) as u64;
            let length = (bytes - start).min(most);
            let pieces = plan.resolve(Bytes(start), Bytes(length), |at| list[at]);
            let mut at = start;
            for piece in pieces.each(|at| list[at]) {
                let within = offset * 4 + at;
                let page = pages[(within / PAGE_BYTES) as usize].0 & !(PAGE_BYTES - 1);
                prop_assert_eq!(piece.at.0, page + within % PAGE_BYTES);
                prop_assert_eq!(piece.at.0 / PAGE_BYTES, (piece.at.0 + piece.bytes.0 - 1) / PAGE_BYTES);
                at += piece.bytes.0;
            }
            prop_assert_eq!(at, start + length);
        }

        #[test]
        fn garbage_gets_a_status_or_addresses_but_never_a_panic(
            prp1: u64, prp2 in any::<u64>().prop_map(|at| at & !7), bytes in 1u64..=1 << 22,
            words in prop::collection::vec(any::<u64>(), 512), aligned: bool,
        ) {
            if let Ok(plan) = plan(HostAddress(prp1), HostAddress(prp2), Bytes(bytes)) {
                let mut entries = Vec::new();
                let mut walk = plan.walk();
                while let Some(run) = walk.and_then(|walk| walk.run()) {
                    let fetched = words[..run.words].iter().map(|word| if aligned { word & !4095 } else { *word });
                    match walk.as_mut().unwrap().take(&fetched.collect::<Vec<_>>()) {
                        Ok(more) => entries.extend_from_slice(more),
                        Err(status) => {
                            prop_assert_eq!(status, Status::PRP_OFFSET_INVALID);
                            return Ok(());
                        }
                    }
                }
                let last = bytes.min(PAGE_BYTES);
                plan.resolve(Bytes(bytes - last), Bytes(last), |at| entries[at]);
            }
        }
    }
}
