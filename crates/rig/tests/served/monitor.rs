//! A virtual machine of our own, without a processor: the client's side of vfio-user, written from the protocol and apart
//! from the target's code, and the driver of its one PCIe device.
//!
//! Its memory is a file that it reads and writes by calls, so nothing here is mapped.

use super::PATIENCE;
use nvme::spec::registers::{self, AdminQueueAttributes, Configuration, Doorbell};
use nvme::spec::{AdminOpcode, Completion, DataPointer, FeatureId, Status, Submission};
use nvme::{HostCompletionQueue, HostMemory, HostQueuePair, HostSubmissionQueue, prp};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};
use units::{HostAddress, QueueId};

/// Where the guest has its memory, and how much.
pub(crate) const MEMORY: u64 = 0x4000_0000;
pub(crate) const MEMORY_BYTES: u64 = 16 << 20;
/// Where its buffers begin; queues lie before.
pub(crate) const BUFFERS: u64 = MEMORY + (4 << 20);

// Commands.
pub(crate) const VERSION: u16 = 1;
pub(crate) const MAP: u16 = 2;
pub(crate) const UNMAP: u16 = 3;
const DEVICE_INFO: u16 = 4;
const REGION_INFO: u16 = 5;
const INTERRUPT_INFO: u16 = 7;
pub(crate) const SET_INTERRUPTS: u16 = 8;
pub(crate) const READ: u16 = 9;
pub(crate) const WRITE: u16 = 10;
pub(crate) const RESET: u16 = 13;

// Flags of SET_INTERRUPTS.
pub(crate) const NO_DATA: u32 = 1;
pub(crate) const EVENTS: u32 = 1 << 2;
pub(crate) const MASK: u32 = 1 << 3;
pub(crate) const UNMASK: u32 = 1 << 4;
pub(crate) const TRIGGER: u32 = 1 << 5;

pub(crate) const CONFIG: u32 = 7;

/// A command's data in one page of the guest's memory.
pub(crate) fn at(address: u64) -> DataPointer {
    DataPointer { prp1: HostAddress(address), prp2: HostAddress(0) }
}

/// The guest's memory.
pub(crate) struct Ram(File);

impl HostMemory for Ram {
    fn read_words(&self, at: HostAddress, words: &mut [u64]) {
        for (index, word) in words.iter_mut().enumerate() {
            let mut bytes = [0; 8];
            self.0.read_exact_at(&mut bytes, at.0 - MEMORY + 8 * index as u64).unwrap();
            *word = u64::from_le_bytes(bytes);
        }
    }
    fn write_words(&self, at: HostAddress, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            self.0.write_all_at(&word.to_le_bytes(), at.0 - MEMORY + 8 * index as u64).unwrap();
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

impl Ram {
    pub(crate) fn put(&self, at: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, at - MEMORY).unwrap();
    }

    pub(crate) fn get(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        self.0.read_exact_at(&mut data, at - MEMORY).unwrap();
        data
    }
}

/// What comes back: an error of the operating system's, or a body.
pub(crate) type Reply = Result<Vec<u8>, u32>;

/// A connection to the socket.
pub(crate) struct Wire {
    pub(crate) stream: UnixStream,
    next: u16,
}

pub(crate) fn header(id: u16, command: u16, bytes: u32, flags: u32) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(id.to_le_bytes());
    header.extend(command.to_le_bytes());
    header.extend([bytes, flags, 0].iter().flat_map(|field| field.to_le_bytes()));
    header
}

impl Wire {
    /// Connects without a word.
    pub(crate) fn open(path: &Path) -> Wire {
        let stream = UnixStream::connect(path).expect("the target listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Wire { stream, next: 0 }
    }

    /// Connects and agrees on the version. Who was there before may not have been seen to go, and then the newcomer is
    /// closed: it comes again.
    pub(crate) fn greet(path: &Path) -> Wire {
        let began = Instant::now();
        loop {
            let mut wire = Wire::open(path);
            let body = b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":8}}\0";
            let mut message = header(0, VERSION, 16 + body.len() as u32, 0);
            message.extend(body);
            if wire.send(&message, &[])
                && let Some((_, reply, _)) = wire.receive()
            {
                assert_eq!(reply.expect("a version")[..4], [0, 0, 1, 0]);
                return wire;
            }
            assert!(began.elapsed() < PATIENCE, "nobody is let in");
        }
    }

    /// Sends bytes with files; whether they went out.
    pub(crate) fn send(&mut self, message: &[u8], files: &[BorrowedFd<'_>]) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(files)));
        }
        let sent = sendmsg(&self.stream, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL);
        sent.is_ok_and(|sent| sent == message.len())
    }

    /// Reads a reply; nothing if the target has closed.
    pub(crate) fn receive(&mut self) -> Option<(Vec<u8>, Reply, Vec<OwnedFd>)> {
        let mut head = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(&self.stream, &mut [IoSliceMut::new(&mut head)], &mut control, RecvFlags::WAITALL).ok()?;
        if got.bytes < head.len() {
            return None;
        }
        let mut files = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                files.extend(received);
            }
        }
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let mut body = vec![0; word(4) as usize - 16];
        self.stream.read_exact(&mut body).ok()?;
        assert_eq!(word(8) & 1, 1, "a reply");
        let reply = if word(8) & 0x20 != 0 { Err(word(12)) } else { Ok(body) };
        Some((head.to_vec(), reply, files))
    }

    pub(crate) fn ask_for_files(
        &mut self,
        command: u16,
        body: &[u8],
        files: &[BorrowedFd<'_>],
    ) -> (Reply, Vec<OwnedFd>) {
        self.next = self.next.wrapping_add(1);
        let mut message = header(self.next, command, 16 + body.len() as u32, 0);
        message.extend_from_slice(body);
        assert!(self.send(&message, files), "the target reads");
        let (head, reply, files) = self.receive().expect("a reply");
        assert_eq!(head[..4], message[..4], "to this message");
        (reply, files)
    }

    pub(crate) fn ask(&mut self, command: u16, body: &[u8], files: &[BorrowedFd<'_>]) -> Reply {
        self.ask_for_files(command, body, files).0
    }

    /// Whether the target closes the connection, whatever it sends before.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

pub(crate) fn dwords(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

pub(crate) fn qwords(fields: &[u64]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

fn dword_of(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The machine.
pub(crate) struct Machine {
    pub(crate) wire: Wire,
    pub(crate) ram: Ram,
    /// The doorbells' file, if they can be mapped, and where they begin there.
    doorbells: Option<(File, u64)>,
    events: Vec<OwnedFd>,
    pub(crate) queues: Vec<HostQueuePair>,
    next_command: u16,
    /// Pages of doorbells and event indices in its memory, if it uses them.
    shadow: Option<[u64; 2]>,
    shadows_admin: bool,
    /// Doorbells of I/O queues that were written into registers.
    pub(crate) rings: u32,
    /// Whether the last completion said that there is more in the error log, which the others do not show.
    pub(crate) has_more: bool,
}

impl Machine {
    /// Starts a machine at the socket, up to where its firmware has found the device.
    pub(crate) fn start(path: &Path, sealed: bool) -> Machine {
        let mut wire = Wire::greet(path);
        let info = wire.ask(DEVICE_INFO, &dwords(&[16, 0, 0, 0]), &[]).unwrap();
        assert_eq!((dword_of(&info, 4), dword_of(&info, 8), dword_of(&info, 12)), (3, 9, 5), "PCI that can be reset");
        let file = memfd_create("ram", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, MEMORY_BYTES).unwrap();
        if sealed {
            fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        }
        let doorbells = doorbells(&mut wire);
        let ram = Ram(File::from(file));
        let (events, queues) = (Vec::new(), Vec::new());
        let (next_command, shadow, shadows_admin, rings) = (0, None, false, 0);
        let has_more = false;
        let mut machine =
            Machine { wire, ram, doorbells, events, queues, next_command, shadow, shadows_admin, rings, has_more };
        machine.map(MEMORY, 0, MEMORY_BYTES).expect("memory is taken");
        machine.give_events();
        machine
    }

    /// Goes without what it has mapped of the doorbells: what still rings the admin queue.
    pub(crate) fn leave(self) -> impl Fn(u16) {
        let (file, at) = self.doorbells.expect("they can be mapped");
        let place = at + u64::from(Doorbell::SubmissionTail(QueueId(0)).offset() - registers::DOORBELLS);
        move |tail| file.write_all_at(&u32::from(tail).to_le_bytes(), place).unwrap()
    }

    pub(crate) fn can_map_doorbells(&self) -> bool {
        self.doorbells.is_some()
    }

    /// Shares a part of the memory under an address.
    pub(crate) fn map(&mut self, first: u64, offset: u64, bytes: u64) -> Reply {
        let mut body = dwords(&[32, 3]);
        body.extend(qwords(&[offset, first, bytes]));
        let file = self.ram.0.as_fd();
        self.wire.ask(MAP, &body, &[file])
    }

    pub(crate) fn unmap(&mut self, first: u64, bytes: u64) -> Reply {
        let mut body = dwords(&[24, 0]);
        body.extend(qwords(&[first, bytes]));
        self.wire.ask(UNMAP, &body, &[])
    }

    fn give_events(&mut self) {
        let info = self.wire.ask(INTERRUPT_INFO, &dwords(&[16, 0, 2, 0]), &[]).unwrap();
        let vectors = dword_of(&info, 12).min(4);
        let event = |_| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        self.events = (0..vectors).map(event).collect();
        let files: Vec<BorrowedFd<'_>> = self.events.iter().map(AsFd::as_fd).collect();
        self.wire
            .ask(SET_INTERRUPTS, &dwords(&[20, EVENTS | TRIGGER, 2, 0, vectors]), &files)
            .expect("events are taken");
    }

    pub(crate) fn read_region(&mut self, region: u32, offset: u64, bytes: u32) -> Reply {
        let mut body = qwords(&[offset]);
        body.extend(dwords(&[region, bytes]));
        self.wire.ask(READ, &body, &[]).map(|reply| reply[16..].to_vec())
    }

    pub(crate) fn write_region(&mut self, region: u32, offset: u64, data: &[u8]) -> Reply {
        let mut body = qwords(&[offset]);
        body.extend(dwords(&[region, data.len() as u32]));
        body.extend_from_slice(data);
        self.wire.ask(WRITE, &body, &[])
    }

    pub(crate) fn register(&mut self, offset: u32) -> u32 {
        dword_of(&self.read_region(0, offset.into(), 4).expect("registers can be read"), 0)
    }

    pub(crate) fn set_register(&mut self, offset: u32, value: u32) {
        self.write_region(0, offset.into(), &value.to_le_bytes()).expect("registers can be written");
    }

    /// Tells the device of two pages for doorbells, which are zero, and uses them from now on: for the admin queue too if it is said.
    pub(crate) fn shadow(&mut self, pages: [u64; 2], admin: bool) {
        for page in pages {
            self.ram.put(page, &[0; 4096]);
        }
        for queue in usize::from(!admin)..self.queues.len() {
            let (tail, head) = (self.queues[queue].tail(), self.queues[queue].head());
            self.ram.put(pages[0] + 8 * queue as u64, &dwords(&[tail.into(), head.into()]));
        }
        self.shadow_as_left(pages);
        self.shadows_admin = admin;
    }

    /// The same with pages that hold whatever the queues of before have left there, as Linux 5.10 does it.
    pub(crate) fn shadow_as_left(&mut self, pages: [u64; 2]) {
        self.done(0, Submission::doorbell_buffers(HostAddress(pages[0]), HostAddress(pages[1])));
        self.shadow = Some(pages);
        self.shadows_admin = false;
        self.rings = 0;
    }

    /// Waits until the device asks to be told of the next command of a queue.
    pub(crate) fn await_event(&self, queue: QueueId) {
        let place = self.shadow.expect("doorbells in memory")[1] + 8 * u64::from(queue.0);
        let (began, tail) = (Instant::now(), self.queues[queue.index()].tail());
        while dword_of(&self.ram.get(place, 4), 0) != u32::from(tail) {
            assert!(began.elapsed() < PATIENCE, "the drive does not ask");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Writes a doorbell into memory; whether the register has to be written too, by the rule of the specification in its words:
    /// the event index is among the positions that are left.
    fn has_to_ring(&self, doorbell: Doorbell, value: u32) -> bool {
        let Some(pages) = self.shadow.filter(|_| self.shadows_admin || !is_admin(doorbell)) else { return true };
        let [at, event] = pages.map(|page| page + u64::from(doorbell.offset() - registers::DOORBELLS));
        let mut position = dword_of(&self.ram.get(at, 4), 0) as u16;
        self.ram.put(at, &value.to_le_bytes());
        fence(Ordering::SeqCst);
        let event = dword_of(&self.ram.get(event, 4), 0) as u16;
        while position != value as u16 {
            if position == event {
                return true;
            }
            position = position.wrapping_add(1);
        }
        false
    }

    pub(crate) fn ring(&mut self, doorbell: Doorbell, value: u32) {
        if !self.has_to_ring(doorbell, value) {
            return;
        }
        self.rings += u32::from(!is_admin(doorbell));
        match &self.doorbells {
            Some((file, at)) => {
                let place = at + u64::from(doorbell.offset() - registers::DOORBELLS);
                file.write_all_at(&value.to_le_bytes(), place).unwrap();
            }
            None => self.set_register(doorbell.offset(), value),
        }
    }

    /// Waits until the status register says so under a mask.
    pub(crate) fn wait_for(&mut self, mask: u32, status: u32) {
        let began = Instant::now();
        loop {
            let now = self.register(registers::CSTS);
            if now & mask == status {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "CSTS stays {now:#x}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn disable(&mut self) {
        self.set_register(registers::CC, 0);
        self.wait_for(1, 0);
    }

    /// Enables the controller with an admin queue of 32 entries.
    pub(crate) fn enable(&mut self) {
        self.disable();
        self.let_master(true);
        self.shadow = None;
        self.queues = vec![self.pair(QueueId(0), 32)];
        self.set_register(registers::AQA, AdminQueueAttributes::new(32, 32).0);
        for (register, at) in [(registers::ASQ, place(QueueId(0), 0)), (registers::ACQ, place(QueueId(0), 1))] {
            self.set_register(register, at as u32);
            self.set_register(register + 4, (at >> 32) as u32);
        }
        self.set_register(registers::CC, Configuration::ENABLE.0);
        self.wait_for(1, 1);
    }

    /// Memory Space Enable, and Bus Master Enable or not (Command, PCI Express Base 4.0 section 7.5.1.1.3).
    pub(crate) fn let_master(&mut self, is_master: bool) {
        let command = if is_master { 6u16 } else { 2 };
        self.write_region(CONFIG, 4, &command.to_le_bytes()).expect("the space can be written");
    }

    /// Both rings of a queue, zeroed.
    fn pair(&self, queue: QueueId, entries: u32) -> HostQueuePair {
        let [submissions, completions] = [0, 1].map(|ring| place(queue, ring));
        self.ram.put(completions, &vec![0; entries as usize * 16]);
        HostQueuePair::new(
            queue,
            HostSubmissionQueue::new(HostAddress(submissions), entries),
            HostCompletionQueue::new(HostAddress(completions), entries),
        )
    }

    /// Asks for two I/O queues and makes them, with vectors of their own.
    pub(crate) fn make_queues(&mut self, entries: u32) {
        let (granted, _) = self.done(0, Submission::set_features(FeatureId::NumberOfQueues, 1 << 16 | 1));
        assert!(granted as u16 >= 1 && granted >> 16 >= 1);
        for queue in [1, 2].map(QueueId) {
            self.make_queue(queue, entries);
        }
    }

    pub(crate) fn make_queue(&mut self, queue: QueueId, entries: u32) {
        let pair = self.pair(queue, entries);
        let [submissions, completions] = [0, 1].map(|ring| HostAddress(place(queue, ring)));
        self.done(0, Submission::create_completion_queue(queue, entries, completions, Some(queue.0)));
        self.done(0, Submission::create_submission_queue(queue, entries, submissions, queue));
        self.queues.truncate(queue.index());
        self.queues.push(pair);
    }

    /// Deletes both rings of a queue.
    pub(crate) fn delete_queue(&mut self, queue: u32) {
        for opcode in [AdminOpcode::DeleteSubmissionQueue, AdminOpcode::DeleteCompletionQueue] {
            self.done(0, Submission::new(opcode as u8, 0).with_dword(10, queue));
        }
    }

    /// Puts a command into a queue, under an identifier of its own.
    pub(crate) fn push(&mut self, queue: usize, submission: Submission) -> u16 {
        self.push_all(queue, &[submission])
    }

    /// The same with several, of which the device is told at once; the identifier of the last.
    pub(crate) fn push_all(&mut self, queue: usize, submissions: &[Submission]) -> u16 {
        let pair = &mut self.queues[queue];
        for submission in submissions {
            self.next_command = self.next_command.wrapping_add(1);
            pair.push(&self.ram, submission.with_command_id(self.next_command)).expect("there is room");
        }
        let (doorbell, tail) = (Doorbell::SubmissionTail(pair.id()), pair.tail());
        self.ring(doorbell, tail.into());
        self.next_command
    }

    /// A completion that is there, which is left where it is.
    pub(crate) fn peek(&self, queue: usize) -> Option<Completion> {
        let mut pair = self.queues[queue];
        pair.reap(&self.ram)
    }

    /// Takes a completion, when the queue's vector has been raised.
    pub(crate) fn reap(&mut self, queue: usize) -> Completion {
        let began = Instant::now();
        loop {
            if let Some(completion) = self.queues[queue].reap(&self.ram) {
                let (doorbell, head) = (Doorbell::CompletionHead(self.queues[queue].id()), self.queues[queue].head());
                self.ring(doorbell, head.into());
                self.has_more = completion.status().has_more();
                return completion.with_status(completion.status().with_more(false));
            }
            assert!(began.elapsed() < PATIENCE, "queue {queue} stays silent");
            let timeout = rustix::event::Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
            let raised = poll(&mut [PollFd::new(&self.events[queue], PollFlags::IN)], Some(&timeout)).unwrap();
            assert_eq!(raised, 1, "vector {queue} is not raised");
            rustix::io::read(&self.events[queue], &mut [0; 8]).unwrap();
        }
    }

    /// A command and its completion; no other may be outstanding in the queue.
    pub(crate) fn command(&mut self, queue: usize, submission: Submission) -> Completion {
        let id = self.push(queue, submission);
        let completion = self.reap(queue);
        assert_eq!(completion.command_id(), id);
        assert_eq!(completion.sq_id(), self.queues[queue].id());
        completion
    }

    /// The same for a command that succeeds.
    pub(crate) fn done(&mut self, queue: usize, submission: Submission) -> (u64, Completion) {
        let completion = self.command(queue, submission);
        assert_eq!(completion.status(), Status::SUCCESS, "{submission:x?}");
        (completion.result(), completion)
    }

    /// The pointer to `bytes` of the buffers from `at` on, each page of which lies before the one that comes first.
    pub(crate) fn scattered(&self, at: u64, bytes: usize) -> DataPointer {
        let pages = scattered(at, bytes).into_iter().map(HostAddress).collect::<Vec<_>>();
        prp::build(&self.ram, &pages, &[HostAddress(MEMORY + (3 << 20)), HostAddress(MEMORY + (3 << 20) + 4096)])
    }

    pub(crate) fn put_scattered(&self, at: u64, data: &[u8]) {
        let mut rest = data;
        for page in scattered(at, data.len()) {
            let (here, after) = rest.split_at(rest.len().min((4096 - page % 4096) as usize));
            self.ram.put(page, here);
            rest = after;
        }
    }

    pub(crate) fn get_scattered(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut data = Vec::new();
        for page in scattered(at, bytes) {
            data.extend(self.ram.get(page, (bytes - data.len()).min((4096 - page % 4096) as usize)));
        }
        data
    }
}

/// The first page with the offset of `at`, and the others backwards from the end.
fn scattered(at: u64, bytes: usize) -> Vec<u64> {
    let count = (at % 4096 + bytes as u64).div_ceil(4096);
    (0..count).map(|page| if page == 0 { at } else { (at & !4095) + (count - page) * 4096 }).collect()
}

fn is_admin(doorbell: Doorbell) -> bool {
    matches!(doorbell, Doorbell::SubmissionTail(QueueId(0)) | Doorbell::CompletionHead(QueueId(0)))
}

/// Where a queue's ring lies: 128 KiB for each.
pub(crate) fn place(queue: QueueId, ring: u64) -> u64 {
    MEMORY + (u64::from(queue.0) * 2 + ring) * (128 << 10)
}

fn doorbells(wire: &mut Wire) -> Option<(File, u64)> {
    let mut ask = |room| wire.ask_for_files(REGION_INFO, &dwords(&[room, 0, 0, 0, 0, 0, 0, 0]), &[]);
    let (reply, files) = ask(32);
    let reply = reply.unwrap();
    let (room, flags) = (dword_of(&reply, 0), dword_of(&reply, 4));
    assert!(files.is_empty() && reply.len() == 32, "no room for more");
    if flags & 4 == 0 {
        assert_eq!(flags, 3);
        return None;
    }
    let (reply, mut files) = ask(room);
    let reply = reply.unwrap();
    assert_eq!((reply.len(), dword_of(&reply, 12)), (64, 32));
    assert_eq!([32, 36, 40, 44].map(|at| dword_of(&reply, at)), [1 << 16 | 1, 0, 1, 0], "one part that can be mapped");
    let at = u64::from(dword_of(&reply, 48));
    assert_eq!(at, u64::from(registers::DOORBELLS));
    Some((File::from(files.pop().expect("the file of the doorbells")), at))
}
