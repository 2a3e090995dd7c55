//! Requests as blocks, and those that have several ranges: Dataset Management and Copy.

use nvme::HostMemory;
use nvme::spec::{COPY_BYTES_MAX, COPY_RANGES_MAX, CopyRange, DataPointer, DsmRange, Submission};
use units::{HostAddress, Lba, QueueId, SECTOR_BYTES};
use workload::{Io, IoKind, Range};

use super::{Driver, DriverSettings, Observe};
use crate::oracle::{Access, Oracle, Ticket};

/// Ranges of a Dataset Management at most: it counts them in eight bits (NVM §3.2.3).
const DSM_RANGES_MAX: u32 = 256;

/// The further ranges of a command under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// Of a Copy, what it is.
    copies: Option<Io>,
    pub(super) ranges: Vec<Range>,
    /// Of a Deallocate, what the oracle knows each by.
    pub(super) tickets: Vec<Ticket>,
}

/// As the oracle takes them.
pub(super) fn pairs(ranges: &[Range]) -> Vec<(Lba, u32)> {
    ranges.iter().map(|range| (range.lba, range.sectors)).collect()
}

impl<O: Observe> Driver<O> {
    /// Pages of eight sectors of which a host may have made some unreadable, each with its namespace.
    pub fn spoiled_pages(&self) -> Vec<(u16, u64)> {
        let of = |(oracle, device): (&Oracle, u16)| oracle.spoiled_pages().into_iter().map(move |page| (device, page));
        self.oracles.iter().zip(0..).flat_map(of).collect()
    }

    /// Tells the oracle of a command that is about to be sent: what it knows that by, and of a Flush its stamp. Apart, as all that the
    /// oracle does: a driver without one does not go through it.
    #[inline(never)]
    pub(super) fn foretell(
        &mut self,
        queue: QueueId,
        io: &Io,
        lba: Lba,
        sectors: u32,
        through: bool,
    ) -> (Option<Ticket>, Option<u64>) {
        let Some(oracle) = self.oracles.get_mut(usize::from(io.device)) else { return (None, None) };
        let flush = (io.kind == IoKind::Flush).then(|| oracle.flush_submitted());
        let mut ticket = access(io.kind).map(|access| match access {
            Access::Copy => oracle.copies(queue, lba, &pairs(&self.ranges)),
            access => oracle.submitted(queue, access, lba, sectors),
        });
        if let Some(ticket) = &mut ticket {
            ticket.through = through;
        }
        (ticket, flush)
    }

    /// A command with ranges: its own, which a Deallocate begins with and a Copy writes, and the further ones.
    #[inline(never)]
    pub(super) fn ranged(&mut self, queue: QueueId, command: u16, io: &Io, own: Range, through: bool) -> Submission {
        let (namespace, at) = (u32::from(io.device) + 1, self.layout.list(queue, command));
        let scale = self.settings.block_sectors.trailing_zeros();
        let blocks = |range: &Range| (range.lba.0 >> scale, range.sectors >> scale);
        let data = DataPointer { prp1: at, prp2: HostAddress(0) };
        let mut words = Vec::new();
        let submission = if io.kind == IoKind::Copy {
            for (slba, blocks) in self.ranges.iter().map(blocks) {
                words.extend_from_slice(&CopyRange { slba, blocks }.encode());
            }
            Submission::copy(namespace, own.lba.0 >> scale, self.ranges.len() as u32, data)
        } else {
            for (slba, blocks) in [own].iter().chain(&self.ranges).map(blocks) {
                words.extend_from_slice(&DsmRange { attributes: 0, blocks, slba }.encode());
            }
            Submission::dataset_management(namespace, 1 + self.ranges.len() as u32, data)
        };
        self.memory.write_words(at, &words);
        if !self.ranges.is_empty() {
            let mut tickets = Vec::new();
            if let Some(oracle) = self.oracles.get_mut(usize::from(io.device)).filter(|_| io.kind != IoKind::Copy) {
                for range in self.ranges.iter().filter(|range| range.sectors > 0) {
                    let mut ticket = oracle.submitted(queue, Access::Zero, range.lba, range.sectors);
                    ticket.through = through;
                    tickets.push(ticket);
                }
            }
            let copies = (io.kind == IoKind::Copy).then_some(*io);
            self.ranged.insert((queue, command), Ranges { copies, ranges: self.ranges.clone(), tickets });
        }
        submission
    }
}

/// A request as it is sent: of all blocks that it touches, or, where it deallocates, of those that lie in it whole, because nobody else's
/// data may go. None of one that names no namespace, no block, or what lies beyond the end.
#[inline]
pub(super) fn in_whole_blocks(io: Io, ranges: &[Range], settings: &DriverSettings) -> Option<Io> {
    let sectors = *settings.namespaces.get(usize::from(io.device))?;
    if (io.kind == IoKind::Copy || !ranges.is_empty()) && !may_be_sent(io, ranges, sectors, settings) {
        return None;
    }
    if !io.kind.addresses() {
        return (io.sectors == 0).then_some(io);
    }
    let (first, block) = (io.lba.0, u64::from(settings.block_sectors));
    let end = first.checked_add(u64::from(io.sectors)).filter(|end| io.sectors > 0 && *end <= sectors)?;
    if (first | end) & (block - 1) == 0 {
        return Some(io);
    }
    let (first, end) = match io.kind {
        IoKind::Deallocate => (first.next_multiple_of(block), end - end % block),
        _ => (first - first % block, end.next_multiple_of(block)),
    };
    let whole = end.checked_sub(first).filter(|whole| *whole > 0 && end <= sectors)?;
    Some(Io { lba: Lba(first), sectors: u32::try_from(whole).ok()?, ..io })
}

/// Whether a Copy reads what another one under way writes, or writes what that reads: nobody could say what it leaves.
#[inline(never)]
pub(super) fn meets_others<'a>(io: &Io, ranges: &[Range], others: impl Iterator<Item = &'a Ranges>) -> bool {
    let meets =
        |target: &Io, source: &Range| source.lba < target.end() && target.lba < source.lba + u64::from(source.sectors);
    let of_namespace = others.filter_map(|other| Some((other.copies.filter(|copy| copy.device == io.device)?, other)));
    of_namespace.into_iter().any(|(copy, other)| {
        ranges.iter().any(|source| meets(&copy, source)) || other.ranges.iter().any(|source| meets(io, source))
    })
}

/// Whether a request with further ranges can be one command: a Deallocate or Copy of whole blocks that are there, within what the drive
/// takes.
#[inline(never)]
fn may_be_sent(io: Io, ranges: &[Range], sectors: u64, settings: &DriverSettings) -> bool {
    let block = u64::from(settings.block_sectors);
    let is_there = |first: Lba, length: u32| {
        let end = first.0.checked_add(u64::from(length));
        (first.0 | u64::from(length)) & (block - 1) == 0 && end.is_some_and(|end| end <= sectors)
    };
    let all_there = is_there(io.lba, io.sectors) && ranges.iter().all(|range| is_there(range.lba, range.sectors));
    let (count, total) = (ranges.len() as u32, ranges.iter().map(|range| u64::from(range.sectors)).sum::<u64>());
    all_there
        && match io.kind {
            IoKind::Deallocate => settings.range_lists && count < DSM_RANGES_MAX,
            IoKind::Copy => {
                let is_short = total == u64::from(io.sectors) && total * SECTOR_BYTES <= COPY_BYTES_MAX;
                // What it writes it does not read.
                let lies_apart =
                    |range: &Range| range.lba >= io.end() || range.lba + u64::from(range.sectors) <= io.lba;
                let fits = |range: &Range| range.sectors > 0 && lies_apart(range);
                settings.range_lists && is_short && count <= COPY_RANGES_MAX && ranges.iter().all(fits)
            }
            _ => false,
        }
}

/// What a kind of request does to its sectors, if it has any.
pub(super) fn access(kind: IoKind) -> Option<Access> {
    match kind {
        IoKind::Read | IoKind::Compare | IoKind::Verify => Some(Access::Read),
        IoKind::Write => Some(Access::Write),
        IoKind::Deallocate | IoKind::WriteZeroes => Some(Access::Zero),
        IoKind::WriteUncorrectable => Some(Access::Spoil),
        IoKind::Copy => Some(Access::Copy),
        IoKind::Flush => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{io, settings};
    use super::*;
    use proptest::prelude::*;

    fn range(lba: u64, sectors: u32) -> Range {
        Range { lba: Lba(lba), sectors }
    }

    #[test]
    fn a_request_with_ranges_is_sent_where_one_command_can_say_it() {
        let settings = DriverSettings { block_sectors: 8, range_lists: true, ..settings() };
        let is_sent = |io: Io, ranges: &[Range]| match in_whole_blocks(io, ranges, &settings) {
            None => false,
            Some(sent) => {
                assert_eq!(sent, io, "it is sent as it is");
                true
            }
        };
        let (trim, copy) = (io(IoKind::Deallocate, 0, 8), |lba, sectors| io(IoKind::Copy, lba, sectors));
        let many = |count| vec![range(16, 8); count];
        assert!(is_sent(trim, &[range(16, 8), range(4_088, 8), range(8, 0)]) && is_sent(trim, &many(255)));
        assert!(!is_sent(trim, &many(256)), "it counts them in eight bits");
        assert!(
            !is_sent(trim, &[range(17, 8)]) && !is_sent(trim, &[range(16, 7)]) && !is_sent(trim, &[range(4_088, 16)])
        );
        assert!(!is_sent(io(IoKind::Deallocate, 4, 8), &many(1)), "its own is of blocks too");
        assert!(!is_sent(trim, &[range(u64::MAX - 7, 8)]) && !is_sent(io(IoKind::Write, 0, 8), &many(1)));
        // Beside what it reads it may write, but nothing of that.
        for lba in (8..64).step_by(8) {
            assert_eq!(is_sent(copy(lba, 16), &[range(24, 8), range(48, 8)]), [8, 32, 56].contains(&lba), "{lba}");
        }
        assert!(!is_sent(copy(8, 16), &[range(24, 8)]) && !is_sent(copy(8, 8), &[range(24, 8), range(40, 0)]));
        assert!(
            !is_sent(copy(0, 8), &[])
                && is_sent(copy(2_048, 1_024), &many(128))
                && !is_sent(copy(2_048, 1_032), &many(129))
        );
        let without = DriverSettings { range_lists: false, ..settings.clone() };
        assert_eq!(in_whole_blocks(trim, &many(1), &without).or(in_whole_blocks(copy(0, 8), &many(1), &without)), None);
        let wide = DriverSettings { namespaces: vec![1 << 20], ..settings.clone() };
        let most = (COPY_BYTES_MAX / SECTOR_BYTES) as u32;
        for (sectors, is_short) in [(most, true), (most + 8, false)] {
            assert_eq!(in_whole_blocks(copy(0, sectors), &[range(1 << 19, sectors)], &wide).is_some(), is_short);
        }
    }

    #[test]
    fn a_request_without_ranges_is_refused_where_it_says_nothing_that_is_there() {
        let settings = DriverSettings { block_sectors: 8, namespaces: vec![4_096, 1_001], ..settings() };
        let sent = |kind, device, lba, sectors| {
            in_whole_blocks(Io { device, ..io(kind, lba, sectors) }, &[], &settings)
                .map(|sent| (sent.lba.0, sent.sectors))
        };
        assert_eq!(sent(IoKind::Flush, 1, 0, 0), Some((0, 0)));
        assert_eq!((sent(IoKind::Flush, 2, 0, 0), sent(IoKind::Flush, 0, 0, 1)), (None, None));
        assert_eq!((sent(IoKind::Read, 1, 992, 1), sent(IoKind::Read, 1, 1_000, 1)), (Some((992, 8)), None));
        assert_eq!((sent(IoKind::Read, 0, 4_088, 8), sent(IoKind::Read, 0, u64::MAX, 8)), (Some((4_088, 8)), None));
        assert_eq!(sent(IoKind::Deallocate, 0, 9, 15), Some((16, 8)));
        assert_eq!((sent(IoKind::Deallocate, 0, 9, 14), sent(IoKind::Deallocate, 0, 9, 3)), (None, None));
    }

    proptest! {
        /// Sector by sector.
        #[test]
        fn a_copy_meets_one_that_writes_what_it_reads_or_reads_what_it_writes(
            [mine, theirs, reads, read] in prop::array::uniform4((0u64..12, 1u32..5)),
            device in 0u16..2, copies: bool,
        ) {
            let all = |(lba, sectors): (u64, u32)| lba..lba + u64::from(sectors);
            let meet = |one, other| all(one).any(|sector| all(other).contains(&sector));
            let copy = |(lba, sectors)| io(IoKind::Copy, lba, sectors);
            let other = Ranges {
                copies: copies.then_some(Io { device, ..copy(theirs) }),
                ranges: vec![range(1_000, 8), range(read.0, read.1)],
                tickets: Vec::new(),
            };
            let met = meets_others(&copy(mine), &[range(2_000, 8), range(reads.0, reads.1)], [&other].into_iter());
            prop_assert_eq!(met, copies && device == 0 && (meet(theirs, reads) || meet(mine, read)));
        }
    }
}
