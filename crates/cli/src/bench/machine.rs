//! A virtual machine without a processor, for measuring: it shares memory over the socket, enables the controller and drives one
//! queue by polling. It rings by mapped doorbells, by messages, or by messages where doorbells in its memory do not do.

use anyhow::{Context, bail, ensure};
use nvme::spec::registers::{self, AdminQueueAttributes, Configuration, Doorbell};
use nvme::spec::{Completion, FeatureId, Submission};
use nvme::{HostCompletionQueue, HostMemory, HostQueuePair, HostSubmissionQueue};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};
use units::{HostAddress, QueueId};
use vm_memory::{Bytes as _, FileOffset, MmapRegion, VolatileMemory};

/// Longer than anything takes that works.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Where the memory begins, what there is of it, and where data lie; rings lie before.
const MEMORY: u64 = 0x4000_0000;
const MEMORY_BYTES: u64 = 4 << 20;
pub(super) const DATA: u64 = MEMORY + (1 << 20);

/// Pages of doorbells and event indices.
const SHADOW: [u64; 2] = [MEMORY + (512 << 10), MEMORY + (516 << 10)];

/// Entries of the I/O queue.
const ENTRIES: u32 = 256;
const ADMIN: QueueId = QueueId(0);
const QUEUE: QueueId = QueueId(1);

// Commands of vfio-user.
const VERSION: u16 = 1;
const MAP: u16 = 2;
const REGION_INFO: u16 = 5;
const READ: u16 = 9;
const WRITE: u16 = 10;

/// The machine's memory, mapped.
struct Ram(MmapRegion);

impl HostMemory for Ram {
    fn read_words(&self, at: HostAddress, words: &mut [u64]) {
        for (index, word) in words.iter_mut().enumerate() {
            let place = (at.0 - MEMORY) as usize + 8 * index;
            *word = self.0.as_volatile_slice().load(place, Ordering::Acquire).expect("rings lie in the memory");
        }
    }
    fn write_words(&self, at: HostAddress, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            let place = (at.0 - MEMORY) as usize + 8 * index;
            self.0.as_volatile_slice().store(*word, place, Ordering::Release).expect("rings lie in the memory");
        }
    }
    fn read_sectors(&self, at: HostAddress, payload: &mut [u64]) -> bool {
        self.read_words(at, payload);
        true
    }
    fn write_sectors(&self, at: HostAddress, payload: &[u64]) {
        self.write_words(at, payload);
    }
}

/// The connection to the socket.
struct Wire {
    stream: UnixStream,
    next: u16,
}

impl Wire {
    /// Sends a message with files and reads its reply.
    fn ask(&mut self, command: u16, body: &[u8], files: &[BorrowedFd<'_>]) -> anyhow::Result<(Vec<u8>, Vec<OwnedFd>)> {
        self.next = self.next.wrapping_add(1);
        let mut message = Vec::new();
        message.extend(self.next.to_le_bytes());
        message.extend(command.to_le_bytes());
        message.extend(dwords(&[16 + body.len() as u32, 0, 0]));
        message.extend_from_slice(body);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        ensure!(files.is_empty() || control.push(SendAncillaryMessage::ScmRights(files)), "too many files");
        sendmsg(&self.stream, &[IoSlice::new(&message)], &mut control, SendFlags::NOSIGNAL)?;
        let mut head = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(&self.stream, &mut [IoSliceMut::new(&mut head)], &mut control, RecvFlags::WAITALL)?;
        ensure!(got.bytes == head.len(), "the target has closed the connection");
        let mut received = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = part {
                received.extend(files);
            }
        }
        let (length, flags, error) = (dword_of(&head, 4), dword_of(&head, 8), dword_of(&head, 12));
        let mut reply = vec![0; (length as usize).saturating_sub(16)];
        self.stream.read_exact(&mut reply)?;
        if flags & 0x20 != 0 {
            bail!("the target answers message {command} with error {error}");
        }
        Ok((reply, received))
    }
}

/// How a machine rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bells {
    /// By a plain write.
    Mapped,
    /// By messages.
    Sent,
    /// By its own memory, and by messages where it is asked to.
    Shadowed,
}

/// The machine and its two queues.
pub(super) struct Machine {
    wire: Wire,
    ram: Ram,
    /// The doorbells, if they are mapped.
    doorbells: Option<MmapRegion>,
    /// Where those of the queue are in its memory as it left them, if they are there.
    shadow: Option<[u32; 2]>,
    /// Doorbells that were sent.
    pub(super) sent: u64,
    admin: HostQueuePair,
    queue: HostQueuePair,
}

impl Machine {
    /// Connects, shares its memory, and makes one I/O queue without a vector.
    pub(super) fn start(socket: &Path, bells: Bells) -> anyhow::Result<Machine> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut wire = Wire { stream, next: 0 };
        wire.ask(VERSION, b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":8}}\0", &[])?;
        let doorbells = if bells == Bells::Mapped { Some(doorbells(&mut wire)?) } else { None };
        let file = File::from(memfd_create("bench", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        ftruncate(&file, MEMORY_BYTES)?;
        fcntl_add_seals(&file, SealFlags::SHRINK)?;
        let mut body = dwords(&[32, 3]);
        body.extend([0, MEMORY, MEMORY_BYTES].iter().flat_map(|field: &u64| field.to_le_bytes()));
        wire.ask(MAP, &body, &[file.as_fd()])?;
        let ram = Ram(MmapRegion::from_file(FileOffset::new(file, 0), MEMORY_BYTES as usize)?);
        let (admin, queue) = (pair(ADMIN, 32), pair(QUEUE, ENTRIES));
        let mut machine = Machine { wire, ram, doorbells, shadow: None, sent: 0, admin, queue };
        machine.enable()?;
        if bells == Bells::Shadowed {
            machine.administer(Submission::doorbell_buffers(HostAddress(SHADOW[0]), HostAddress(SHADOW[1])))?;
            machine.shadow = Some([0; 2]);
        }
        machine.sent = 0;
        Ok(machine)
    }

    fn enable(&mut self) -> anyhow::Result<()> {
        // Memory space and bus master, in Command of the configuration space.
        self.wire.ask(WRITE, &dwords(&[4, 0, 7, 4, 6]), &[])?;
        self.set_register(registers::AQA, AdminQueueAttributes::new(32, 32).0)?;
        for (register, at) in [(registers::ASQ, place(ADMIN, 0)), (registers::ACQ, place(ADMIN, 1))] {
            self.set_register(register, at as u32)?;
            self.set_register(register + 4, (at >> 32) as u32)?;
        }
        self.set_register(registers::CC, Configuration::ENABLE.0)?;
        let began = Instant::now();
        while self.register(registers::CSTS)? & 1 == 0 {
            ensure!(began.elapsed() < PATIENCE, "the controller does not become ready");
        }
        self.administer(Submission::set_features(FeatureId::NumberOfQueues, 0))?;
        let [submissions, completions] = [0, 1].map(|ring| HostAddress(place(QUEUE, ring)));
        self.administer(Submission::create_completion_queue(QUEUE, ENTRIES, completions, None))?;
        self.administer(Submission::create_submission_queue(QUEUE, ENTRIES, submissions, QUEUE))
    }

    /// An admin command that has to succeed.
    fn administer(&mut self, submission: Submission) -> anyhow::Result<()> {
        let tail = self.admin.push(&self.ram, submission).context("the admin queue has room")?;
        self.ring(Doorbell::SubmissionTail(ADMIN), tail.into())?;
        let began = Instant::now();
        let completion = loop {
            if let Some(completion) = self.admin.reap(&self.ram) {
                break completion;
            }
            ensure!(began.elapsed() < PATIENCE, "the admin queue stays silent");
        };
        self.ring(Doorbell::CompletionHead(ADMIN), self.admin.head().into())?;
        ensure!(completion.status().is_success(), "an admin command failed: {:?}", completion.status());
        Ok(())
    }

    fn register(&mut self, offset: u32) -> anyhow::Result<u32> {
        let (reply, _) = self.wire.ask(READ, &dwords(&[offset, 0, 0, 4]), &[])?;
        ensure!(reply.len() == 20, "a register has four bytes");
        Ok(dword_of(&reply, 16))
    }

    fn set_register(&mut self, offset: u32, value: u32) -> anyhow::Result<()> {
        self.wire.ask(WRITE, &dwords(&[offset, 0, 0, 4, value]), &[]).map(drop)
    }

    fn ring(&mut self, doorbell: Doorbell, value: u32) -> anyhow::Result<()> {
        let Some(doorbells) = &self.doorbells else {
            self.sent += 1;
            return self.set_register(doorbell.offset(), value);
        };
        let place = (doorbell.offset() - registers::DOORBELLS) as usize;
        doorbells.as_volatile_slice().store(value, place, Ordering::Release)?;
        Ok(())
    }

    /// Rings for the queue, where that has to be.
    fn ring_queue(&mut self, which: usize, value: u32) -> anyhow::Result<()> {
        let doorbell = [Doorbell::SubmissionTail(QUEUE), Doorbell::CompletionHead(QUEUE)][which];
        let Some(shadow) = &mut self.shadow else { return self.ring(doorbell, value) };
        let from = std::mem::replace(&mut shadow[which], value);
        let [mine, event] =
            SHADOW.map(|page| nvme::shadow::place(HostAddress(page), QUEUE).0 - MEMORY + 4 * which as u64);
        let memory = self.ram.0.as_volatile_slice();
        memory.store(value, mine as usize, Ordering::Release)?;
        fence(Ordering::SeqCst);
        let event: u32 = memory.load(event as usize, Ordering::Acquire)?;
        if nvme::shadow::has_to_ring(event, from, value) { self.ring(doorbell, value) } else { Ok(()) }
    }

    /// Puts a command into the ring, if there is room; [`Machine::ring_tail`] says so.
    pub(super) fn push(&mut self, submission: Submission) -> Option<()> {
        self.queue.push(&self.ram, submission).map(drop)
    }

    /// Tells the drive of new commands.
    pub(super) fn ring_tail(&mut self) -> anyhow::Result<()> {
        self.ring_queue(0, self.queue.tail().into())
    }

    /// Takes a completion; [`Machine::ring_head`] says so.
    pub(super) fn reap(&mut self) -> Option<Completion> {
        self.queue.reap(&self.ram)
    }

    /// Tells the drive of completions that were taken.
    pub(super) fn ring_head(&mut self) -> anyhow::Result<()> {
        self.ring_queue(1, self.queue.head().into())
    }
}

/// Where a queue's ring lies: 64 KiB for each.
fn place(queue: QueueId, ring: u64) -> u64 {
    MEMORY + (u64::from(queue.0) * 2 + ring) * (64 << 10)
}

fn pair(queue: QueueId, entries: u32) -> HostQueuePair {
    let [submissions, completions] = [0, 1].map(|ring| HostAddress(place(queue, ring)));
    let submissions = HostSubmissionQueue::new(submissions, entries);
    HostQueuePair::new(queue, submissions, HostCompletionQueue::new(completions, entries))
}

/// The doorbells, mapped.
fn doorbells(wire: &mut Wire) -> anyhow::Result<MmapRegion> {
    let (reply, mut files) = wire.ask(REGION_INFO, &dwords(&[64, 0, 0, 0, 0, 0, 0, 0]), &[])?;
    let file = files.pop().filter(|_| reply.len() >= 64).context("the doorbells can be mapped")?;
    let field = |at: usize| u64::from(dword_of(&reply, at)) | u64::from(dword_of(&reply, at + 4)) << 32;
    let (offset, bytes) = (field(48), field(56));
    ensure!(offset == u64::from(registers::DOORBELLS), "doorbells at {offset:#x}");
    Ok(MmapRegion::from_file(FileOffset::new(File::from(file), offset), bytes as usize)?)
}

fn dwords(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

fn dword_of(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
