//! A host of our own: the initiator's side of NVMe/TCP, written from the specification and apart from the target's code.

use super::PATIENCE;
use nvme::spec::fabrics::{ANY_CONTROLLER, Connect, ConnectRecord, Property};
use nvme::spec::registers;
use nvme::spec::{Completion, FeatureId, Sgl, Status, Submission};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// What a host asks for in ICReq.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) header_digest: bool,
    pub(crate) data_digest: bool,
    /// HPDA: dwords that data to the host are aligned to, from zero.
    pub(crate) alignment: u8,
    pub(crate) without_flow_control: bool,
}

/// A connection to a target.
pub(crate) struct Queue {
    pub(crate) stream: TcpStream,
    wishes: Wishes,
    pub(crate) host_data_max: usize,
    capsule_max: usize,
    next_id: u16,
    flights: BTreeMap<u16, Flight>,
    /// Whether the last completion said that there is more in the error log, which the others do not show.
    pub(crate) has_more: bool,
}

#[derive(Default)]
struct Flight {
    to_send: Vec<u8>,
    received: Vec<u8>,
}

/// Why a conversation is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The target closed the connection.
    Closed,
    /// C2HTermReq, with its status.
    Terminated(u16),
}

/// A command's data.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    None,
    Send(&'a [u8]),
    Receive(usize),
}

pub(crate) fn initialize_request(wishes: Wishes) -> Vec<u8> {
    let mut unit = vec![0u8; 128];
    unit[2] = 128;
    unit[4] = 128;
    unit[10] = wishes.alignment;
    unit[11] = u8::from(wishes.header_digest) | u8::from(wishes.data_digest) << 1;
    unit
}

impl Queue {
    /// Connects and exchanges ICReq and ICResp.
    pub(crate) fn greet(address: SocketAddr, wishes: Wishes) -> Queue {
        let mut stream = TcpStream::connect(address).expect("the target listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(&initialize_request(wishes)).unwrap();
        let mut answer = [0; 128];
        stream.read_exact(&mut answer).expect("ICResp");
        assert_eq!((answer[0], answer[2], answer[4], answer[8], answer[10]), (1, 128, 128, 0, 0));
        assert_eq!(answer[11], u8::from(wishes.header_digest) | u8::from(wishes.data_digest) << 1);
        let host_data_max = u32::from_le_bytes(answer[12..16].try_into().unwrap()) as usize;
        assert!(host_data_max >= 4096 && host_data_max.is_multiple_of(4));
        Queue {
            stream,
            wishes,
            host_data_max,
            capsule_max: 8192,
            next_id: 0,
            flights: BTreeMap::new(),
            has_more: false,
        }
    }

    fn send_unit(&mut self, kind: u8, flags: u8, header: &[u8], data: &[u8]) {
        let digest = self.wishes.header_digest;
        let begin = 8 + header.len() + if digest { 4 } else { 0 };
        let trailer = if self.wishes.data_digest && !data.is_empty() { 4 } else { 0 };
        let flags = flags | u8::from(digest) | u8::from(trailer > 0) << 1;
        let place = if data.is_empty() { 0 } else { begin };
        let mut unit = vec![kind, flags, 8 + header.len() as u8, place as u8];
        unit.extend_from_slice(&((begin + data.len() + trailer) as u32).to_le_bytes());
        unit.extend_from_slice(header);
        if digest {
            unit.extend_from_slice(&crc32c::crc32c(&unit).to_le_bytes());
        }
        unit.extend_from_slice(data);
        if trailer > 0 {
            unit.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
        }
        // A target that has closed already is found out by reading.
        let _ = self.stream.write_all(&unit);
    }

    /// Sends a command; its identifier.
    pub(crate) fn send(&mut self, submission: Submission, payload: &Payload<'_>) -> u16 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let mut flight = Flight::default();
        let (sgl, inline): (_, &[u8]) = match payload {
            Payload::None => (Sgl::Transport { bytes: 0 }, &[]),
            Payload::Receive(bytes) => (Sgl::Transport { bytes: *bytes as u32 }, &[]),
            Payload::Send(data) if data.len() <= self.capsule_max => {
                (Sgl::InCapsule { offset: 0, bytes: data.len() as u32 }, data)
            }
            Payload::Send(data) => {
                flight.to_send = data.to_vec();
                (Sgl::Transport { bytes: data.len() as u32 }, &[])
            }
        };
        self.flights.insert(id, flight);
        self.send_raw(submission.with_sgl(sgl).with_command_id(id), inline);
        id
    }

    /// Sends a command capsule as it is.
    pub(crate) fn send_raw(&mut self, submission: Submission, inline: &[u8]) {
        let entry = submission.0.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        self.send_unit(4, 0, &entry, inline);
    }

    /// The identifier of a command that the test sends by hand and waits for.
    pub(crate) fn expect_next(&mut self) -> u16 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        self.flights.insert(id, Flight::default());
        id
    }

    fn read(&mut self, bytes: usize) -> Result<Vec<u8>, Over> {
        let mut buffer = vec![0; bytes];
        match self.stream.read_exact(&mut buffer) {
            Ok(()) => Ok(buffer),
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the target is silent"),
            Err(_) => Err(Over::Closed),
        }
    }

    /// The next completion, with what came for its command.
    pub(crate) fn finish(&mut self) -> Result<(Completion, Vec<u8>), Over> {
        loop {
            let common = self.read(8)?;
            let whole = u32::from_le_bytes(common[4..8].try_into().unwrap()) as usize;
            let mut unit = common;
            unit.extend(self.read(whole - 8)?);
            if unit[0] == 3 {
                return Err(Over::Terminated(u16::from_le_bytes([unit[8], unit[9]])));
            }
            let header = usize::from(unit[2]);
            assert_eq!(header, 24);
            if self.wishes.header_digest {
                assert_eq!(unit[1] & 1, 1);
                let digest = crc32c::crc32c(&unit[..header]).to_le_bytes();
                assert_eq!(unit[header..header + 4], digest, "header digest");
            }
            let half = |at: usize| u16::from_le_bytes([unit[at], unit[at + 1]]);
            let word = |at: usize| u32::from_le_bytes(unit[at..at + 4].try_into().unwrap());
            match unit[0] {
                5 => {
                    let long = |at: usize| u64::from_le_bytes(unit[at..at + 8].try_into().unwrap());
                    let completion = Completion([long(8), long(16)]);
                    self.has_more = completion.status().has_more();
                    let completion = completion.with_status(completion.status().with_more(false));
                    let flight = self.flights.remove(&completion.command_id()).expect("it was sent");
                    return Ok((completion, flight.received));
                }
                7 => {
                    let (id, offset, bytes, begin) =
                        (half(8), word(12) as usize, word(16) as usize, usize::from(unit[3]));
                    assert!(begin.is_multiple_of((usize::from(self.wishes.alignment) + 1) * 4), "HPDA");
                    let data = &unit[begin..begin + bytes];
                    if self.wishes.data_digest {
                        assert_eq!(unit[begin + bytes..], crc32c::crc32c(data).to_le_bytes(), "data digest");
                    }
                    let flight = self.flights.get_mut(&id).expect("it was sent");
                    assert_eq!(flight.received.len(), offset);
                    flight.received.extend_from_slice(data);
                    if unit[1] & 8 != 0 {
                        assert!(self.wishes.without_flow_control && unit[1] & 4 != 0, "success only so");
                        let flight = self.flights.remove(&id).expect("it was found");
                        let head = 0;
                        let queue = units::QueueId(0);
                        return Ok((Completion::new(0, head, queue, id, false, Status::SUCCESS), flight.received));
                    }
                }
                9 => self.give(half(8), half(10), word(12) as usize, word(16) as usize),
                other => panic!("a unit of kind {other}"),
            }
        }
    }

    /// Answers an R2T.
    fn give(&mut self, id: u16, tag: u16, offset: usize, bytes: usize) {
        let data = self.flights[&id].to_send[offset..offset + bytes].to_vec();
        let count = data.chunks(self.host_data_max).count();
        for (index, part) in data.chunks(self.host_data_max).enumerate() {
            let at = offset + index * self.host_data_max;
            self.send_data(id, tag, at, part, index + 1 == count);
        }
    }

    pub(crate) fn send_data(&mut self, id: u16, tag: u16, offset: usize, data: &[u8], last: bool) {
        let mut header = Vec::new();
        header.extend_from_slice(&id.to_le_bytes());
        header.extend_from_slice(&tag.to_le_bytes());
        header.extend_from_slice(&(offset as u32).to_le_bytes());
        header.extend_from_slice(&(data.len() as u32).to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        self.send_unit(6, u8::from(last) << 2, &header, data);
    }

    /// Sends a command and waits for it; no other may be outstanding.
    pub(crate) fn command(&mut self, submission: Submission, payload: Payload<'_>) -> (Completion, Vec<u8>) {
        let id = self.send(submission, &payload);
        let (completion, data) = self.finish().expect("an answer");
        assert_eq!(completion.command_id(), id);
        (completion, data)
    }

    /// The same for a command that succeeds.
    pub(crate) fn done(&mut self, submission: Submission, payload: Payload<'_>) -> (u64, Vec<u8>) {
        let (completion, data) = self.command(submission, payload);
        assert_eq!(completion.status(), Status::SUCCESS, "{submission:x?}");
        (completion.result(), data)
    }

    /// Whether the target ends the connection, whatever it sends before.
    pub(crate) fn is_ended(&mut self) -> Over {
        loop {
            if let Err(over) = self.finish() {
                return over;
            }
        }
    }
}

/// A host with its controller.
pub(crate) struct Host {
    pub(crate) admin: Queue,
    pub(crate) queues: Vec<Queue>,
    pub(crate) controller: u16,
}

/// How a host attaches.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) address: SocketAddr,
    pub(crate) subsystem: String,
    pub(crate) host: String,
    pub(crate) queues: u16,
    pub(crate) keep_alive_ms: u32,
    pub(crate) wishes: Wishes,
}

pub(crate) fn record(subsystem: &str, host: &str, controller: u16) -> ConnectRecord {
    let field = |text: &str| std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(0));
    let mut record = ConnectRecord::default();
    record.set_host_id(std::array::from_fn(|at| host.as_bytes()[at % host.len()])).set_controller(controller);
    record.set_subsystem(field(subsystem)).set_host(field(host));
    record
}

impl Attachment {
    pub(crate) fn connect(&self, queue: u16, entries: u16, controller: u16) -> (Queue, Completion) {
        let mut connection = Queue::greet(self.address, self.wishes);
        let connect = Connect {
            format: 0,
            queue,
            last_entry: entries - 1,
            without_flow_control: self.wishes.without_flow_control,
            keep_alive_ms: self.keep_alive_ms,
        };
        let record = record(&self.subsystem, &self.host, controller);
        let (completion, _) = connection.command(Submission::connect(connect), Payload::Send(record.as_bytes()));
        (connection, completion)
    }

    /// Does what a host's driver does, up to its last I/O queue.
    pub(crate) fn attach(&self) -> Host {
        let (mut admin, completion) = self.connect(0, 32, ANY_CONTROLLER);
        assert_eq!(completion.status(), Status::SUCCESS);
        let controller = completion.result() as u16;
        let narrow = |offset| Property { offset, bytes: 4 };
        let wide = Submission::property_get(Property { offset: registers::CAP, bytes: 8 });
        let (capabilities, _) = admin.done(wide, Payload::None);
        assert_ne!(capabilities & registers::CAP_NVM, 0);
        admin.done(Submission::property_set(narrow(registers::CC), 0x46_0060), Payload::None);
        let mut host = Host { admin, queues: Vec::new(), controller };
        host.enable(self);
        host
    }
}

impl Host {
    /// Enables the controller and connects its queues.
    pub(crate) fn enable(&mut self, attachment: &Attachment) {
        self.configure(0x46_0061, 1);
        if attachment.queues > 0 {
            let asked = u32::from(attachment.queues) - 1;
            let set = Submission::set_features(FeatureId::NumberOfQueues, asked << 16 | asked);
            let (granted, _) = self.admin.done(set, Payload::None);
            for queue in 1..=attachment.queues.min(granted as u16 + 1) {
                let (queue, completion) = attachment.connect(queue, 128, self.controller);
                assert_eq!(completion.status(), Status::SUCCESS);
                self.queues.push(queue);
            }
        }
    }

    /// Resets the controller; its queues are gone when it says so.
    pub(crate) fn disable(&mut self) {
        self.configure(0x46_0060, 0);
        self.queues.clear();
    }

    /// Shuts the controller down; power may go when it says so.
    pub(crate) fn shut_down(&mut self) {
        self.configure(0x46_4061, 9);
    }

    /// Writes CC and waits until CSTS is `wanted`, whether or not the subsystem was reset.
    pub(crate) fn configure(&mut self, value: u64, wanted: u64) {
        let narrow = |offset| Property { offset, bytes: 4 };
        self.admin.done(Submission::property_set(narrow(registers::CC), value), Payload::None);
        let began = Instant::now();
        let reset = u64::from(registers::CSTS_SUBSYSTEM_RESET);
        let get = Submission::property_get(narrow(registers::CSTS));
        while self.admin.done(get, Payload::None).0 & !reset != wanted {
            assert!(began.elapsed() < PATIENCE, "CSTS never becomes {wanted}");
        }
    }
}
