//! A client of the socket: its messages, one at a time, and what the function answers to each.

use super::config_space::{CONFIG_BYTES, ConfigSpace, Effect, MSIX_BAR, MSIX_BAR_BYTES, PENDING_AT};
use super::function::Function;
use super::interrupts::{INDICES, Interrupts, MSIX_INDEX};
use super::message::{
    Broken, DATA_MAX, FILES_MAX, HEADER_BYTES, Header, MAP_READ, MAP_WRITE, Request, body, version_body,
};
use crate::guest::{Access, GuestMemory};
use crate::session::World;
use mio::net::UnixStream;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Messages taken in one turn.
const TURN_MESSAGES: usize = 64;

const CONFIG_REGION: u32 = 7;
const REGIONS: u32 = 9;

// Flags of what a client asks about (linux/vfio.h).
const DEVICE_RESETS: u32 = 1;
const DEVICE_IS_PCI: u32 = 1 << 1;
const REGION_READ_WRITE: u32 = 3;
const REGION_MAPS: u32 = 1 << 2;
const REGION_HAS_CAPABILITIES: u32 = 1 << 3;
const SPARSE_MAP: u32 = 1;
const INTERRUPT_IS_EVENT: u32 = 1;
const INTERRUPT_KEEPS_SIZE: u32 = 1 << 3;

/// What the function has beyond NVMe: what a client sees of PCI.
pub(crate) struct Bus {
    pub(crate) config: ConfigSpace,
    /// The MSI-X table, for clients that keep theirs here; signalling follows the events alone.
    table: Vec<u8>,
    /// Bytes of BAR 0.
    registers: u64,
    /// Whether clients may map the doorbells.
    mapped: bool,
    vendor: u16,
    vectors: u16,
}

impl Bus {
    pub(crate) fn new(vendor: u16, vectors: u16, registers: u64, mapped: bool) -> Self {
        let config = ConfigSpace::new(vendor, vectors, registers);
        let mut table = vec![0; PENDING_AT as usize];
        // Every vector begins masked (Vector Control, PCI Express Base 4.0 section 7.7.2.7).
        table[..16 * usize::from(vectors)].chunks_exact_mut(16).for_each(|entry| entry[12] = 1);
        Bus { config, table, registers, mapped, vendor, vectors }
    }

    pub(crate) fn reset(&mut self) {
        *self = Bus::new(self.vendor, self.vectors, self.registers, self.mapped);
    }

    /// Reads the MSI-X table, and behind it which vectors are pending (PCI Express Base 4.0 section 7.7.2.9).
    fn read_table(&self, at: usize, to: &mut [u8], interrupts: &Interrupts) {
        for (at, byte) in (at..).zip(to) {
            *byte = match at.checked_sub(PENDING_AT as usize) {
                Some(octet) => interrupts.pending(octet),
                None => self.table[at],
            };
        }
    }

    /// Writes the table; pending bits are the function's.
    fn write_table(&mut self, at: usize, data: &[u8]) {
        let table = self.table.get_mut(at..).unwrap_or_default();
        let bytes = table.len().min(data.len());
        table[..bytes].copy_from_slice(&data[..bytes]);
    }

    fn region_bytes(&self, region: u32) -> u64 {
        match region {
            0 => self.registers,
            MSIX_BAR => MSIX_BAR_BYTES,
            CONFIG_REGION => CONFIG_BYTES as u64,
            _ => 0,
        }
    }

    /// The range of a region that an access is to.
    fn range(&self, region: u32, offset: u64, bytes: usize) -> Result<std::ops::Range<usize>, Errno> {
        let end = offset.checked_add(bytes as u64).filter(|end| *end <= self.region_bytes(region));
        let end = end.filter(|_| bytes > 0).ok_or(Errno::INVAL)?;
        Ok(offset as usize..end as usize)
    }
}

struct Reply {
    bytes: Vec<u8>,
    sent: usize,
    file: Option<OwnedFd>,
}

/// A body, and whether the doorbells' file goes with it.
pub(crate) type Answer = (Vec<u8>, bool);

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// It has closed its end, or broken the protocol.
    pub(crate) is_gone: bool,
    pub(crate) has_violated: bool,
    has_greeted: bool,
    head: [u8; HEADER_BYTES],
    header: Option<Header>,
    /// What there is of the header, or of the body.
    filled: usize,
    body: Vec<u8>,
    files: Vec<OwnedFd>,
    /// Whether files came with the message that this process may not open any more.
    has_lost_files: bool,
    reply: Option<Reply>,
}

impl Client {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Client {
            stream,
            readable: true,
            writable: true,
            is_gone: false,
            has_violated: false,
            has_greeted: false,
            head: [0; HEADER_BYTES],
            header: None,
            filled: 0,
            body: Vec::new(),
            files: Vec::new(),
            has_lost_files: false,
            reply: None,
        }
    }

    /// Whether there is something to do without waiting for the socket.
    pub(crate) fn has_work(&self) -> bool {
        let can_send = self.reply.is_some() && self.writable;
        !self.is_gone && (can_send || (self.reply.is_none() && self.readable))
    }

    /// Takes messages and answers them, each before the next; whether there was any.
    pub(crate) fn work(&mut self, bus: &mut Bus, function: &mut Function, world: &mut World<'_>) -> bool {
        for taken in 0..TURN_MESSAGES {
            self.send();
            if self.reply.is_some() || self.is_gone || !self.receive() {
                return taken > 0;
            }
            self.answer(bus, function, world);
        }
        self.send();
        true
    }

    fn violate(&mut self) {
        (self.is_gone, self.has_violated) = (true, true);
    }

    /// Reads on; whether a message is whole.
    fn receive(&mut self) -> bool {
        loop {
            let wanted = self.header.map_or(HEADER_BYTES, |header| header.body_bytes());
            if self.filled == wanted {
                match self.header {
                    Some(_) => return true,
                    None => match Header::parse(&self.head) {
                        Ok(header) => {
                            self.body.resize(header.body_bytes(), 0);
                            (self.header, self.filled) = (Some(header), 0);
                            continue;
                        }
                        Err(Broken) => self.violate(),
                    },
                }
            }
            if self.is_gone || !self.readable || !self.read_part(wanted) {
                return false;
            }
        }
    }

    /// Reads once, files included; whether anything came.
    fn read_part(&mut self, wanted: usize) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = if self.header.is_some() { &mut self.body[..] } else { &mut self.head[..] };
        let mut parts = [IoSliceMut::new(&mut into[self.filled..wanted])];
        match recvmsg(&self.stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT) {
            Ok(message) if message.bytes > 0 => {
                self.filled += message.bytes;
                self.has_lost_files |= message.flags.contains(ReturnFlags::CTRUNC);
                for part in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(files) = part {
                        self.files.extend(files);
                    }
                }
                if self.files.len() > FILES_MAX {
                    self.violate();
                }
                !self.is_gone
            }
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => {
                self.readable = false;
                false
            }
            Ok(_) | Err(_) => {
                self.is_gone = true;
                false
            }
        }
    }

    fn send(&mut self) {
        while let Some(reply) = &mut self.reply {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let file: Vec<BorrowedFd<'_>> = reply.file.iter().map(AsFd::as_fd).collect();
            if !file.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(&file));
            }
            let parts = [IoSlice::new(&reply.bytes[reply.sent..])];
            let sent = sendmsg(&self.stream, &parts, &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            match sent {
                Ok(bytes) => {
                    // Files go with the first byte.
                    reply.file = None;
                    reply.sent += bytes;
                    if reply.sent == reply.bytes.len() {
                        self.reply = None;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.writable = false;
                    return;
                }
                Err(_) => {
                    self.is_gone = true;
                    return;
                }
            }
        }
    }

    fn answer(&mut self, bus: &mut Bus, function: &mut Function, world: &mut World<'_>) {
        let header = self.header.take().expect("it is whole");
        let (body, files) = (std::mem::take(&mut self.body), std::mem::take(&mut self.files));
        self.filled = 0;
        let has_lost_files = std::mem::take(&mut self.has_lost_files);
        let outcome = Request::parse(&header, &body).and_then(|request| match request {
            // Without them it would be another request.
            _ if has_lost_files => Err(Errno::MFILE),
            Request::Version { major: 0, minor } if !self.has_greeted => {
                if bus.mapped {
                    function.renew_doorbells().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))?;
                }
                self.has_greeted = true;
                Ok((version_body(minor), false))
            }
            Request::Version { .. } => Err(Errno::INVAL),
            _ if !self.has_greeted => Err(Errno::INVAL),
            request => serve(request, &body, files, bus, function, world),
        });
        let (parts, with_file) = match &outcome {
            Ok((body, with_file)) => (Ok(&body[..]), *with_file),
            Err(errno) => (Err(*errno), false),
        };
        let file = with_file.then(|| function.doorbells.shared().0.try_clone_to_owned().ok()).flatten();
        self.reply = header.reply(parts).map(|bytes| Reply { bytes, sent: 0, file });
        self.body = body;
    }
}

/// What a request does, and the body of its reply.
pub(crate) fn serve(
    request: Request<'_>,
    asked: &[u8],
    mut files: Vec<OwnedFd>,
    bus: &mut Bus,
    function: &mut Function,
    world: &mut World<'_>,
) -> Result<Answer, Errno> {
    let reply = match request {
        Request::Version { .. } => return Err(Errno::INVAL),
        Request::Map { access, offset, first, bytes } => {
            let access = Access { read: access & MAP_READ != 0, write: access & MAP_WRITE != 0 };
            let file = files.pop().map(|file| (file, offset));
            if !files.is_empty() || !(access.read || access.write) {
                return Err(Errno::INVAL);
            }
            function.change_memory(|memory| memory.map(first, bytes, access, file))?;
            Vec::new()
        }
        Request::Unmap { all, first, bytes } => {
            let gone = match all {
                true => function.change_memory(GuestMemory::clear),
                false => function.change_memory(|memory| memory.unmap(first, bytes))?,
            };
            let mut reply = asked.to_vec();
            reply[16..24].copy_from_slice(&gone.to_le_bytes());
            reply
        }
        Request::DeviceInfo => body(&[16, DEVICE_RESETS | DEVICE_IS_PCI, REGIONS, INDICES]),
        Request::RegionInfo { room, region } if region < REGIONS => return Ok(about(room, region, bus, function)),
        Request::InterruptInfo { index } if index < INDICES => {
            let (flags, count) = match index {
                MSIX_INDEX => (INTERRUPT_IS_EVENT | INTERRUPT_KEEPS_SIZE, function.interrupts.count()),
                _ => (0, 0),
            };
            body(&[16, flags, index, count])
        }
        Request::RegionInfo { .. } | Request::InterruptInfo { .. } => return Err(Errno::INVAL),
        Request::SetInterrupts(asked) => {
            function.interrupts.set(asked, files)?;
            Vec::new()
        }
        Request::Read { .. } | Request::Write { .. } => access(request, asked, bus, function, world)?,
        Request::Reset => {
            reset(bus, function, world);
            Vec::new()
        }
    };
    Ok((reply, false))
}

/// The function is as after power-on, but for the memory and the events that the client gave it. It is silent until it is let master the
/// bus again (PCI Express Base 4.0 section 6.6.2).
fn reset(bus: &mut Bus, function: &mut Function, world: &mut World<'_>) {
    bus.reset();
    function.reset(world);
}

/// Reads or writes a part of a region.
fn access(
    request: Request<'_>,
    asked: &[u8],
    bus: &mut Bus,
    function: &mut Function,
    world: &mut World<'_>,
) -> Result<Vec<u8>, Errno> {
    let mut reply = asked[..16].to_vec();
    match request {
        Request::Read { region, offset, bytes } if bytes as usize <= DATA_MAX => {
            let range = bus.range(region, offset, bytes as usize)?;
            reply.resize(16 + bytes as usize, 0);
            let to = &mut reply[16..];
            match region {
                CONFIG_REGION => bus.config.read(range.start, to),
                MSIX_BAR => bus.read_table(range.start, to, &function.interrupts),
                _ => function.read_registers(world, offset, to),
            }
        }
        Request::Write { region, offset, data } => {
            let range = bus.range(region, offset, data.len())?;
            match region {
                CONFIG_REGION => {
                    if bus.config.write(range.start, data) == Effect::Reset {
                        reset(bus, function, world);
                    }
                    function.let_master(bus.config.is_bus_master());
                }
                MSIX_BAR => bus.write_table(range.start, data),
                _ => function.write_registers(world, offset, data),
            }
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(reply)
}

/// What a region is like: BAR 0 has a part that can be mapped, if the client has room to hear of it.
fn about(room: u32, region: u32, bus: &Bus, function: &Function) -> Answer {
    const PLAIN: u32 = 32;
    const WITH_PART: u32 = 64;
    let bytes = bus.region_bytes(region);
    let can_map = region == 0 && bus.mapped;
    let tells = can_map && room >= WITH_PART;
    let mut flags = if bytes > 0 { REGION_READ_WRITE } else { 0 };
    if can_map {
        flags |= REGION_MAPS | REGION_HAS_CAPABILITIES;
    }
    // Where the part would be is told without it as well: QEMU 11 takes no other.
    let (length, part_at) = if can_map { (WITH_PART, PLAIN) } else { (PLAIN, 0) };
    let mut reply = body(&[length, flags, region, part_at]);
    reply.extend(bytes.to_le_bytes());
    reply.extend(0u64.to_le_bytes());
    if tells {
        let (_, at, length) = function.doorbells.shared();
        reply.extend(body(&[SPARSE_MAP | 1 << 16, 0, 1, 0]));
        reply.extend(at.to_le_bytes());
        reply.extend(length.to_le_bytes());
    }
    (reply, tells)
}
