//! Every message of the firmware, in the order a command meets them. All are plain words; the largest has 64 bytes.

mod carried;
mod host;
mod locks;
mod place;

pub use carried::*;
pub use host::*;
pub use locks::*;
pub use place::HostPlace;

use flash::{PLANES_MAX, Transaction, TransactionTag};
use nvme::spec::Status;
use units::{BlockId, HostAddress, Lpn, Ppn, QueueId};

/// Names a command of the host while it is in the drive: its queue and its command identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandKey(pub u32);

impl CommandKey {
    /// Work that no command of the host asked for.
    pub const NONE: CommandKey = CommandKey(u32::MAX);

    /// The command `id` of a submission queue.
    #[inline]
    pub fn new(queue: QueueId, id: u16) -> Self {
        CommandKey(u32::from(queue.0) << 16 | u32::from(id))
    }
    /// The submission queue it came by.
    #[inline]
    pub fn queue(self) -> QueueId {
        QueueId((self.0 >> 16) as u16)
    }
    /// Its identifier in that queue.
    #[inline]
    pub fn id(self) -> u16 {
        self.0 as u16
    }
}

/// Commands may be fetched: the controller's arbiter chose their queue. To the NVMQ thread that the queue belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// The submission queue.
    pub queue: QueueId,
    /// Where the entries lie in host memory.
    pub at: HostAddress,
    /// How many; one run, at most 64.
    pub entries: u16,
    /// Whether the link wants to know when they are dealt, as [`QueueDealt`] says.
    pub asks: bool,
}

/// Entries of a queue's SQ buffer are to be taken, as many as `count`.
#[derive(Clone, Copy, Debug)]
pub struct Take {
    /// The submission queue.
    pub queue: QueueId,
    /// How many.
    pub count: u16,
}

/// What a command says, without its wire layout; and the tickets that keep its queue's order at the locks.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Card {
    /// Whose command it is.
    pub key: CommandKey,
    /// Number of sectors; 0 where the command has no range of its own.
    pub sectors: u32,
    /// Place in the order of this queue's lock requests at each of the one or two lock threads concerned.
    pub tickets: [u32; 2],
    /// First sector, counted over the whole drive.
    pub sector: u64,
    /// First data pointer.
    pub prp1: HostAddress,
    /// Second data pointer.
    pub prp2: HostAddress,
    /// The NVM opcode.
    pub opcode: u8,
    /// Force unit access.
    pub fua: bool,
    /// It passes over sectors that a host has marked, as a Verify of the drive's own.
    pub passes_marked: bool,
    /// Ranges of a Dataset Management command.
    pub ranges: u16,
}

impl Card {
    /// No command's.
    pub(crate) const NONE: Card = Card {
        key: CommandKey::NONE,
        sectors: 0,
        tickets: [NO_TICKET; 2],
        sector: 0,
        prp1: HostAddress(0),
        prp2: HostAddress(0),
        opcode: 0,
        fua: false,
        passes_marked: false,
        ranges: 0,
    };
}

/// A command goes to the NVMQ thread that owns its range already, instead of waiting for the lock.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Forward {
    /// The command.
    pub card: Card,
    /// What its owner holds.
    pub lock: LockId,
}

/// What a transfer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Submission queue entries into the SQ buffer; or none of these, but the range that one of them points to.
    Entries,
    /// PRP list entries or Dataset Management ranges into the list buffer.
    List,
    /// Sectors from the host into a frame.
    FromHost,
    /// Sectors of a frame to the host.
    ToHost,
}

/// A DMA over the host link.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Transfer {
    /// For whom.
    pub key: CommandKey,
    /// What moves.
    pub lane: Lane,
    /// The NVMQ thread that is told.
    pub nvmq: u8,
    /// First sector of the frame.
    pub first_sector: u8,
    /// The page that its sectors are of.
    pub lpn: Lpn,
    /// Who asked, in that thread's terms.
    pub token: u32,
    /// A second frame that the thread must remember meanwhile.
    pub aside: u32,
    /// The frame, or the first word of the buffer.
    pub local: u64,
    /// Where in host memory it begins or ends.
    pub place: HostPlace,
}

impl Transfer {
    /// What a transfer of words has that are no page's sectors.
    pub(crate) const WORDS: Transfer = Transfer {
        key: CommandKey::NONE,
        lane: Lane::List,
        nvmq: 0,
        first_sector: 0,
        lpn: Lpn(0),
        token: 0,
        aside: 0,
        local: 0,
        place: HostPlace::NOWHERE,
    };
}

/// A transfer is over.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Transferred {
    /// For whom.
    pub key: CommandKey,
    /// What moved.
    pub lane: Lane,
    /// Whether the sectors that went to the host are those that it asked for, as they were sealed; or whether those that were to come
    /// from it have: the memory of a guest can be taken away.
    pub intact: bool,
    /// As given.
    pub token: u32,
    /// As given.
    pub aside: u32,
    /// As given.
    pub local: u64,
    /// How many bytes moved.
    pub bytes: u32,
}

impl Transferred {
    /// How the command fails whose sectors did not move as they should.
    pub fn failure(&self) -> Option<Status> {
        let status = if self.lane == Lane::FromHost { Status::DATA_TRANSFER_ERROR } else { Status::UNRECOVERED_READ };
        (!self.intact).then_some(status)
    }
}

/// Who is told when a page is done.
#[derive(Clone, Copy, Debug)]
pub struct Requester {
    /// The group.
    pub group: Asker,
    /// Which of its threads.
    pub index: u8,
    /// What the page is to that thread.
    pub tag: u32,
}

/// What is asked of the burst buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOperation {
    /// Copy the page into the frame.
    Read,
    /// The same, but only when nothing of the page is left that is not on flash.
    ReadThrough,
    /// As [`CacheOperation::Read`], for what a write leaves of a page as it is.
    Fill,
    /// Keep the frame as the page's newest content and give another frame back.
    Write,
    /// The same, but done only when it is on flash.
    WriteThrough,
    /// Make what is kept of the page zeros; else as the next.
    Discard,
    /// Keep nothing of the page, and leave zeros on flash.
    DiscardThrough,
    /// Done when all that is held now is on flash.
    Flush,
}

/// To a CACHE thread.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct CacheRequest {
    /// For whom.
    pub key: CommandKey,
    /// What to do.
    pub operation: CacheOperation,
    /// The page.
    pub lpn: Lpn,
    /// The frame lent with the request.
    pub frame: u32,
    /// Of a read, how many pieces of the page are wanted; 0 is all of it.
    pub pieces: u8,
    /// Whether it counts as a look-up, as what reads or writes data does.
    pub counts: bool,
    /// Who is told.
    pub requester: Requester,
}

/// What is asked of the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransOperation {
    /// Read the page into the frame; zeros where it is not mapped.
    Read,
    /// Give the page a new place and program the frame there.
    Write,
    /// Leave zeros, written where anything was: it lasts when it is answered.
    Discard,
    /// The same for all pages of the tombstone that the frame is labelled as.
    Bury,
    /// Program the frame to a new place, if the page is still at the old one; the map stays as it is.
    Relocate(Ppn),
    /// The same for a page of a group that is moved because it wore little: its new place is apart from others, where much wore.
    Level(Ppn),
    /// Programming the page at this place failed: give it another, and use the block no more.
    Replace(Ppn),
    /// Put the number from which on the pages of this thread are new into the frame, the head of a checkpoint: all pages with lower
    /// numbers are in the map, or never will be.
    Sign,
    /// Place nothing more in this page's group: it is to be emptied.
    Close(Ppn),
    /// The new place is programmed: map the page there, unless it has been written since.
    Settle(Ppn),
    /// Answered by every FCMD thread when all that was sent there to be programmed before is programmed.
    Fence,
    /// Nothing of this page's group is valid any more, and what superseded it is programmed: erase its blocks.
    Erase(Ppn),
    /// The drive is idle: a hybrid-mapped thread may ask for a merge ahead of need.
    Tidy,
}

/// To the TRANS thread that owns the page.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct TransRequest {
    /// For whom.
    pub key: CommandKey,
    /// What to do.
    pub operation: TransOperation,
    /// The page.
    pub lpn: Lpn,
    /// The frame.
    pub frame: u32,
    /// Of a read, how many pieces of the page are wanted; 0 is all of it.
    pub pieces: u8,
    /// Who is told.
    pub requester: Requester,
}

/// To the FCMD thread that owns the channel.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct FlashRequest {
    /// For whom.
    pub key: CommandKey,
    /// What the die does.
    pub operation: flash::Operation,
    /// The page; for an erase any page of the block; [`NOWHERE`] for a fence.
    pub ppn: Ppn,
    /// The frame.
    pub frame: u32,
    /// Who is told.
    pub requester: Requester,
    /// The TRANS part that asked; of others it is 0.
    pub owner: u8,
    /// Place among that part's requests at this thread; [`NO_TICKET`] where they come in their order anyway.
    pub ticket: u32,
    /// Whether it is a page whose program failed elsewhere.
    pub replaces: bool,
    /// Of a read, how many pieces of the page ([`flash::PIECE`]) are wanted; 0 is all of it.
    pub pieces: u8,
}

impl FlashRequest {
    /// All of a page, of no TRANS part, in the order in which it comes.
    pub(crate) fn page(
        operation: flash::Operation,
        ppn: Ppn,
        frame: u32,
        requester: Requester,
        key: CommandKey,
    ) -> Self {
        let (owner, ticket) = (0, NO_TICKET);
        FlashRequest { operation, ppn, frame, requester, owner, ticket, replaces: false, pieces: 0, key }
    }

    /// No page: the answer comes when every page of earlier requests is programmed.
    pub(crate) fn fence(requester: Requester, owner: u8, ticket: u32) -> Self {
        let page = FlashRequest::page(flash::Operation::Program, NOWHERE, 0, requester, CommandKey::NONE);
        FlashRequest { owner, ticket, ..page }
    }

    /// Whether it is a [`FlashRequest::fence`].
    pub(crate) fn is_fence(&self) -> bool {
        self.ppn == NOWHERE
    }
}

/// To a flash channel.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct ChannelRequest {
    /// For whom the first of its pages is.
    pub key: CommandKey,
    /// What FCMD composed.
    pub transaction: Transaction,
}

/// What the media said of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// It went well.
    Good,
    /// It was read, but with nearly as many errors as can be corrected: its group is to be rewritten. Told to FCMD only.
    Weak,
    /// A page could not be read. Told to FCMD, that its group is to be rewritten.
    Unreadable,
    /// It could not be read, and its group is none the worse for it: it was lost at an earlier place and moved as such, or came back so
    /// from the beginning. Told to FCMD only.
    Lost,
    /// A page could not be programmed or a block not erased.
    Failed,
}

/// A flash channel has finished a transaction.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct ChannelDone {
    /// For whom the first of its pages is.
    pub key: CommandKey,
    /// Which channel.
    pub channel: u16,
    /// As given.
    pub tag: TransactionTag,
    /// What the media said of each of its pages.
    pub media: [Media; PLANES_MAX],
}

/// A page is done, to whoever asked for it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct PageDone {
    /// For whom.
    pub key: CommandKey,
    /// Who asked, and what the page is to it.
    pub requester: Requester,
    /// A frame given back with it; not always the one that was lent.
    pub frame: u32,
    /// How it went.
    pub media: Media,
}

/// A TRANS thread runs out of free groups and has stopped, or will stop, serving the host until one is reclaimed.
#[derive(Clone, Copy, Debug)]
pub struct ReclaimRequest {
    /// Which TRANS thread.
    pub trans: u8,
    /// With hybrid mapping, what is to be done; with page mapping BGC chooses a victim.
    pub merge: Option<MergeStep>,
}

/// A step of a merge: a logical block's pages are copied to its data group, in order, and a group is erased.
#[derive(Clone, Copy, Debug)]
pub struct MergeStep {
    /// The logical block; any of its set where none is copied.
    pub block: u32,
    /// The first offset to be copied; as many as a group has pages where nothing is.
    pub from: u32,
    /// The first block of the group that nothing is valid in afterwards.
    pub old: Option<BlockId>,
    /// Whether the host waits for it.
    pub on_demand: bool,
}

/// A group of blocks is erased and free, to the TRANS thread that owns it.
#[derive(Clone, Copy, Debug)]
pub struct Reclaimed {
    /// Which TRANS thread.
    pub trans: u8,
    /// Whether that thread asked for it.
    pub asked: bool,
    /// Its first block; none if no group had garbage, or a step of a merge had none to erase.
    pub first: Option<BlockId>,
    /// The logical block of the step of a merge that is over.
    pub merged: Option<u32>,
    /// Whether it can be used again: none of its programs and erases failed.
    pub sound: bool,
}

/// A completion stands in the CQ buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Posted {
    /// Of which command.
    pub key: CommandKey,
    /// Its place there, counted from the beginning.
    pub index: u64,
}

/// A command ended while its queue was held for one that runs alone.
#[derive(Clone, Copy, Debug)]
pub struct QueueEased {
    /// The submission queue.
    pub queue: QueueId,
}

/// All entries of a queue up to a batch that asked are dealt, or a command that runs alone holds the queue before. The link limits
/// how many are not dealt: behind such a command they wait until it is over.
#[derive(Clone, Copy, Debug)]
pub struct QueueDealt {
    /// The submission queue.
    pub queue: QueueId,
    /// How many of its entries are dealt, counted from the beginning.
    pub entries: u64,
    /// Whether the queue is held: the answer that all are dealt comes later.
    pub held: bool,
}

macro_rules! messages {
    ($($name:ident),* $(,)?) => {
        /// All of them.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "each variant is the struct of its name")]
        pub enum Message { $($name($name),)* LockGranted(u32) }
        $(impl From<$name> for Message {
            #[inline]
            fn from(message: $name) -> Self { Message::$name(message) }
        })*
    };
}

messages!(
    DoorbellsWritten,
    Fetch,
    Take,
    Forward,
    Transfer,
    Transferred,
    LockRequest,
    LockSkip,
    LockSkipped,
    LockReply,
    LockJoin,
    LockRelease,
    CacheRequest,
    TransRequest,
    FlashRequest,
    ChannelRequest,
    ChannelDone,
    PageDone,
    ReclaimRequest,
    Reclaimed,
    Posted,
    QueueEased,
    QueueDealt,
    WorkerIdle,
    SubRequest,
    ReclaimOrder,
    EventPulled,
    Interrupt,
);

const _: () = assert!(size_of::<Message>() <= 64, "a message fills one line at most");

impl Message {
    /// The command it is about. Executors ask it of every message, so the key stands first in all structs that have one and these
    /// are aligned alike, but for the longest: it is one load for nearly all of them, and no jump.
    #[inline]
    pub fn key(&self) -> CommandKey {
        match self {
            Message::Forward(message) => message.card.key,
            Message::Transfer(message) => message.key,
            Message::Transferred(message) => message.key,
            Message::LockRequest(message) => message.key,
            Message::LockSkip(message) => message.key,
            Message::LockSkipped(message) => message.key,
            Message::LockReply(message) => message.key,
            Message::LockJoin(message) => message.key,
            Message::CacheRequest(message) => message.key,
            Message::TransRequest(message) => message.key,
            Message::FlashRequest(message) => message.key,
            Message::ChannelRequest(message) => message.key,
            Message::ChannelDone(message) => message.key,
            Message::PageDone(message) => message.key,
            Message::Posted(message) => message.key,
            Message::SubRequest(message) => message.key,
            Message::DoorbellsWritten(_)
            | Message::LockRelease(_)
            | Message::ReclaimOrder(_)
            | Message::EventPulled(_)
            | Message::Fetch(_)
            | Message::Take(_)
            | Message::ReclaimRequest(_)
            | Message::Reclaimed(_)
            | Message::QueueEased(_)
            | Message::QueueDealt(_)
            | Message::WorkerIdle(_)
            | Message::Interrupt(_)
            | Message::LockGranted(_) => CommandKey::NONE,
        }
    }

    /// Whether the status says that all went well.
    pub fn status_of(media: Media, write: bool) -> Status {
        match (media, write) {
            (Media::Good | Media::Weak, _) => Status::SUCCESS,
            // A read fails so too, if what it wanted on flash first cannot be brought there.
            (Media::Failed, _) | (_, true) => Status::WRITE_FAULT,
            (_, false) => Status::UNRECOVERED_READ,
        }
    }
}
