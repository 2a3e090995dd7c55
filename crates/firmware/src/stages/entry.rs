//! From a queue's entries into the drive and back to its completions: the same for every firmware.

use crate::message::{Card, CommandKey, Fetch, HostPlace, Lane, NO_TICKET, Posted, Transfer};
use crate::tables::{COMPLETION_VALID, ENTRY_WORDS, LINE_WORDS, LIST_WORDS};
use crate::{BlockGroups, Drive, Note, Tables, Turn, Work};
use nvme::prp::{ListWalk, PrpPlan};
use nvme::spec::{COPY_RANGES_MAX, Completion, Failure, Fuse, Opcode, Status, Submission};
use stage::{Address, Words};
use units::{Bytes, QueueId, SECTOR_BYTES};

/// The top bit of a CQ buffer's D-tail: the queue is held for a command that runs alone.
pub(crate) const HELD: u64 = 1 << 63;

/// What of an entry says where it is ordered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Its opcode, if there is such a one.
    pub(crate) opcode: Option<Opcode>,
    /// Its first sector: impossible of a range outside the namespace, zero where there is no range.
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
}

/// How far an entry reaches.
#[inline]
pub(crate) fn reach(drive: &Drive, entry: &Submission) -> Reach {
    let opcode = Opcode::try_from(entry.opcode()).ok();
    let ranged = opcode.is_some_and(|opcode| opcode.has_range() || opcode == Opcode::Copy);
    // How much a Copy writes, its ranges will say: what counts is where.
    let blocks = match opcode {
        Some(opcode) if opcode.has_range() => u64::from(entry.block_count()),
        _ => 0,
    };
    // A range outside the namespace is marked by an impossible first sector and refused when it is parsed.
    let inside = drive.namespace(entry.namespace()).and_then(|space| drive.sectors_of(*space, entry.slba(), blocks));
    let sector = match inside {
        Some((first, _)) if ranged => first,
        _ if ranged => u64::MAX,
        _ => 0,
    };
    Reach { opcode, sector, sectors: (blocks * drive.shape().format.sectors()) as u32 }
}

/// The card of an entry of a queue, without tickets.
pub(crate) fn card(drive: &Drive, queue: QueueId, entry: &Submission) -> Card {
    let Reach { opcode, sector, sectors } = reach(drive, entry);
    Card {
        key: CommandKey::new(queue, entry.command_id()),
        tickets: [NO_TICKET; 2],
        sector,
        sectors,
        prp1: entry.prp1(),
        prp2: entry.prp2(),
        opcode: entry.opcode(),
        // Of a Dataset Management the front end says it, never a host. What is written through leaves a read nothing to wait for.
        fua: drive.shape().write_through && opcode.is_some_and(Opcode::changes_media)
            || entry.fua() && !drive.shape().protected,
        passes_marked: opcode == Some(Opcode::Verify) && entry.passes_marked(),
        ranges: match opcode {
            Some(Opcode::DatasetManagement) => entry.dsm_range_count() as u16,
            Some(Opcode::Copy) => entry.copy_range_count() as u16,
            _ => 0,
        },
    }
}

/// Whether a command takes whole pages off the map: nothing but their tombstone is programmed. DLFEAT says so of Write Zeroes.
#[inline]
pub(crate) fn discards(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::WriteZeroes | Opcode::DatasetManagement)
}

/// The opcode of an entry, if the drive does that and the entry says it rightly. A half of a fused pair is not for this.
#[inline]
pub(crate) fn check(drive: &Drive, card: &Card, entry: &Submission) -> Result<Opcode, Status> {
    if entry.fuse() != Fuse::Normal {
        return Err(Status::ABORTED_MISSING_FUSED);
    }
    check_half(drive, card, entry)
}

fn check_half(drive: &Drive, card: &Card, entry: &Submission) -> Result<Opcode, Status> {
    let opcode = Opcode::try_from(card.opcode).map_err(|_| Status::INVALID_OPCODE)?;
    let every_namespace = entry.namespace() == nvme::spec::ALL_NAMESPACES && opcode == Opcode::Flush;
    if drive.namespace(entry.namespace()).is_none() && !every_namespace {
        return Err(Status::INVALID_NAMESPACE);
    }
    match opcode {
        Opcode::Flush | Opcode::DatasetManagement => Ok(opcode),
        _ if card.sector == u64::MAX => Err(Status::LBA_OUT_OF_RANGE),
        Opcode::Copy if entry.copy_format() != 0 => Err(Status::INVALID_FIELD),
        Opcode::Copy if entry.copy_range_count() > COPY_RANGES_MAX => Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED),
        _ if !entry.uses_prps() => Err(Status::INVALID_FIELD),
        _ => Ok(opcode),
    }
}

/// A Compare and the Write that follows it, which are one: both happen, or neither (Base §3.4.2). It lies within a page of the
/// drive, so that whoever changes that page comes before or after both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) compare: Card,
    pub(crate) write: Card,
}

/// Most sectors of a fused pair: of its Write no list is fetched, so its data lie in two pages of the host at most.
const PAIR_SECTORS_MAX: u32 = (nvme::spec::PAGE_BYTES / SECTOR_BYTES) as u32;

/// Puts two neighbours in a queue together, the first of which is the first of a pair.
///
/// # Errors
/// The statuses of both; `None` where the second is not of the pair and goes on alone.
pub(crate) fn pair(
    drive: &Drive,
    groups: &BlockGroups,
    [first, second]: [(Card, &Submission); 2],
) -> Result<Pair, (Status, Option<Status>)> {
    nvme::fuse(first.1, second.1)?;
    let both = |status| (status, Some(Status::ABORTED_FAILED_FUSED));
    let opcode = check_half(drive, &first.0, first.1).map_err(both)?;
    let second_opcode =
        check_half(drive, &second.0, second.1).map_err(|status| (Status::ABORTED_FAILED_FUSED, Some(status)))?;
    if (opcode, second_opcode) != (Opcode::Compare, Opcode::Write) {
        return Err(both(Status::INVALID_FIELD));
    }
    let last = first.0.sector + u64::from(first.0.sectors) - 1;
    if drive.page_of(first.0.sector) != drive.page_of(last) || first.0.sectors > PAIR_SECTORS_MAX {
        return Err(both(Status::ATOMIC_WRITE_UNIT_EXCEEDED));
    }
    if groups.is_read_only() {
        return Err((Status::ABORTED_FAILED_FUSED, Some(Status::WRITE_FAULT)));
    }
    // They share the page, so what either wants on flash is there when both are answered.
    Ok(Pair { compare: Card { fua: first.0.fua || second.0.fua, ..first.0 }, write: second.0 })
}

/// How a command ended; of one that failed, where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) failure: Failure,
}

impl Outcome {
    /// A failure is kept. Of several the host is told that of the lowest sector, as far as pages with it were begun at all; one that is
    /// no sector's comes before the first page.
    pub(crate) fn fail(&mut self, status: Status, failure: Failure) {
        let is_lower = match (self.failure.sector, failure.sector) {
            (Some(known), Some(sector)) => sector < known,
            _ => false,
        };
        if !status.is_success() && (self.status.is_success() || is_lower) {
            *self = Outcome { status, failure };
        }
    }
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Self {
        Outcome { status, failure: Failure::default() }
    }
}

/// Which half of a fused pair it is that ended as the pair did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Half {
    /// The Compare: the Write has not begun.
    #[default]
    Compare,
    /// The Write: what it replaces was compared.
    Write,
    /// The Write, of a drive that takes none: nothing was compared.
    Refused,
}

impl Half {
    /// How both halves of a pair ended: Compare and Write.
    pub(crate) fn outcomes(self, outcome: Outcome) -> [Outcome; 2] {
        match self {
            _ if outcome.status.is_success() => [outcome; 2],
            Half::Compare => [outcome, Status::ABORTED_FAILED_FUSED.into()],
            Half::Write => [Status::SUCCESS.into(), outcome],
            Half::Refused => [Status::ABORTED_FAILED_FUSED.into(), outcome],
        }
    }
}

/// Where the data of a command lie in host memory. The link moves whole sectors: one that lies across two pages of it is refused, which
/// only a host on the link itself can ask for. Front ends lend whole pages.
pub(crate) fn data_plan(drive: &Drive, card: &Card) -> Result<PrpPlan, Status> {
    if card.sectors > drive.shape().transfer_sectors {
        return Err(Status::INVALID_FIELD);
    }
    plan_of_whole(card, u64::from(card.sectors), SECTOR_BYTES)
}

/// Where so many units of a command lie in host memory, none of which lies across two pages of it.
pub(super) fn plan_of_whole(card: &Card, count: u64, unit: u64) -> Result<PrpPlan, Status> {
    let plan = nvme::prp::plan(card.prp1, card.prp2, Bytes(count * unit))?;
    if plan.splits(unit) { Err(Status::PRP_OFFSET_INVALID) } else { Ok(plan) }
}

/// How far the PRP list of a command is gathered in its list buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listing {
    /// The way along the list, while entries are missing.
    walk: Option<ListWalk>,
    /// Words gathered.
    listed: u16,
}

impl Listing {
    /// That of such data, of which nothing is here yet; some have none.
    pub(crate) fn new(plan: &PrpPlan) -> Self {
        Listing { walk: plan.walk(), listed: 0 }
    }

    /// Whether no entry is missing.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.walk.is_none()
    }

    /// The part that is to be fetched next: where it lies, and the word where it goes if the list buffer begins at `list`.
    pub(crate) fn next(&self, list: usize) -> Option<(HostPlace, u64)> {
        let run = self.walk?.run()?;
        Some((HostPlace::at(run.at, run.words as u32 * 8), list as u64 + u64::from(self.listed)))
    }

    /// A part stands in the list buffer, at the word `local`.
    ///
    /// # Errors
    /// The status that the command fails with; no other part is fetched.
    pub(crate) fn take(&mut self, lists: &Words, bytes: u32, local: u64) -> Result<(), Status> {
        let mut fetched = [0; LIST_WORDS];
        let words = bytes as usize / 8;
        lists.read(local as usize, &mut fetched[..words]);
        let mut walk = self.walk.take().expect("a list is fetched along its walk");
        self.listed += walk.take(&fetched[..words])?.len() as u16;
        self.walk = walk.run().map(|_| walk);
        Ok(())
    }
}

/// Starts a transfer between drive and host, where the turn that starts it also resolves where its bytes lie.
#[inline]
pub(crate) fn start_transfer(turn: &mut Turn<'_>, link: Address<Transfer>, transfer: Transfer) {
    turn.spend(Work::ResolvePrp);
    turn.spend(Work::StartDma);
    turn.send(link, transfer);
}

/// Starts the copy of a batch into its queue's SQ buffer, behind the `fetched` entries that went there before; `thread` is
/// told when it is there.
pub(crate) fn copy_batch(
    turn: &mut Turn<'_>,
    tables: &Tables,
    link: Address<Transfer>,
    thread: u8,
    fetched: &mut u64,
    fetch: &Fetch,
) {
    turn.spend(Work::FetchBatch);
    let mut copy = |at, place: usize, entries: usize| {
        let transfer = Transfer {
            lane: Lane::Entries,
            nvmq: thread,
            token: u32::from(fetch.queue.0),
            aside: entries as u32,
            local: (place * ENTRY_WORDS) as u64,
            place: HostPlace::at(at, (entries * ENTRY_WORDS * 8) as u32),
            ..Transfer::WORDS
        };
        turn.send(link, transfer);
    };
    let (ring, entries) = (tables.ring, usize::from(fetch.entries));
    let place = tables.place(fetch.queue, *fetched);
    *fetched += entries as u64;
    // The ring of the buffer, a power of two, may wrap inside the batch: then it is two copies.
    let first = entries.min(ring - (place & (ring - 1)));
    copy(fetch.at, place, first);
    if first < entries {
        copy(fetch.at + first as u64 * nvme::spec::SUBMISSION_BYTES, place + first - ring, entries - first);
    }
}

/// Puts a completion into the CQ buffer and tells the link; whether its queue is held for a command that runs alone.
#[inline]
pub(crate) fn post(
    turn: &mut Turn<'_>,
    tables: &Tables,
    link: Address<Posted>,
    key: CommandKey,
    Outcome { status, failure }: Outcome,
) -> bool {
    turn.spend(Work::PostCompletion);
    let queue = key.queue();
    let tail = turn.fetch_add(&tables.cq_tail, Tables::line(queue.index()), 1);
    let (index, held) = (tail & !HELD, tail & HELD != 0);
    let Completion([result, rest]) = Completion::new(failure.encode(), 0, queue, key.id(), false, status);
    let place = tables.place(queue, index) * 2;
    turn.store(&tables.cq_buffer, place + 1, rest);
    // Last: another command's announcement may make the link look here at any time.
    tables.cq_buffer.set(place, result | COMPLETION_VALID);
    turn.prefetch(&tables.cq_buffer, place + LINE_WORDS);
    turn.note(Note::Completed(key));
    turn.send(link, Posted { index, key });
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_sector_that_failed_is_told() {
        let mut outcome = Outcome::default();
        outcome.fail(Status::SUCCESS, Failure::at(1));
        assert_eq!(outcome, Outcome::default());
        outcome.fail(Status::UNRECOVERED_READ, Failure::at(40));
        outcome.fail(Status::COMPARE_FAILURE, Failure::at(48));
        assert_eq!(outcome, Outcome { status: Status::UNRECOVERED_READ, failure: Failure::at(40) });
        outcome.fail(Status::COMPARE_FAILURE, Failure::at(39));
        assert_eq!(outcome, Outcome { status: Status::COMPARE_FAILURE, failure: Failure::at(39) });
        let mut nowhere = Outcome::from(Status::PRP_OFFSET_INVALID);
        nowhere.fail(Status::UNRECOVERED_READ, Failure::at(0));
        assert_eq!(nowhere.status, Status::PRP_OFFSET_INVALID, "it came before any page");
    }

    #[test]
    fn a_pair_fails_by_the_half_that_failed() {
        let ended = |half: Half, status: Status| half.outcomes(status.into()).map(|outcome| outcome.status);
        assert_eq!(ended(Half::Compare, Status::SUCCESS), [Status::SUCCESS; 2]);
        let aborted = Status::ABORTED_FAILED_FUSED;
        assert_eq!(ended(Half::Compare, Status::COMPARE_FAILURE), [Status::COMPARE_FAILURE, aborted]);
        assert_eq!(ended(Half::Write, Status::WRITE_FAULT), [Status::SUCCESS, Status::WRITE_FAULT]);
        assert_eq!(ended(Half::Refused, Status::WRITE_FAULT), [aborted, Status::WRITE_FAULT]);
    }
}
