//! NVMe/TCP over loopback: 4 KB random reads by an initiator of our own, beside a server that answers the same messages
//! with the same bytes and has no drive, and under TLS.

use super::Bench;
use super::drive::Buffer;
use super::secured;
use super::served::{BLOCKS, BYTES, SUBSYSTEM, Speed, loopback, serve};
use anyhow::{Context, bail, ensure};
use nvme::spec::fabrics::{ANY_CONTROLLER, Connect, ConnectRecord, Property};
use nvme::spec::registers::{self, Configuration};
use nvme::spec::{FeatureId, Sgl, Submission};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rig::Keys;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const HOST: &str = "nqn.2026-11.org.flashloom:initiator";

// Kinds of units (NVMe/TCP 1.0 section 3.6.1), and lengths of their headers.
const COMMAND: u8 = 4;
const RESPONSE: u8 = 5;
const DATA: u8 = 7;
const COMMAND_BYTES: usize = 72;
const HEADER_BYTES: usize = 24;

/// Reads a second at three depths, of the drive and of the bare server, and their ratio. 127 is what a queue of 128 entries
/// holds.
pub(super) fn reads(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    for depth in [1u16, 32, 127] {
        let reads = bench.repeat(if depth == 1 { 100_000 } else { 800_000 }, 300);
        let drive = served(Dial::PLAIN, depth, reads)?;
        let bare = bare(depth, reads)?;
        drive.put(bench, &format!("drive, depth {depth}"), reads);
        bench.put(format!("bare server, depth {depth}"), bare, "1/s", reads);
        bench.put(format!("drive to bare server, depth {depth}"), drive.per_second / bare, "", reads);
    }
    for depth in [1u16, 32, 127] {
        let reads = bench.repeat(if depth == 1 { 50_000 } else { 200_000 }, 300);
        served(Dial::SECURED, depth, reads)?.put(bench, &format!("drive under TLS, depth {depth}"), reads);
    }
    Ok(())
}

/// Both ends of a connection.
trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

/// How a host connects, and what the drive has to know of it for that.
#[derive(Clone, Copy)]
struct Dial {
    keys: fn() -> anyhow::Result<Option<Keys>>,
    wrap: fn(TcpStream) -> anyhow::Result<Box<dyn Wire>>,
}

impl Dial {
    const PLAIN: Dial = Dial { keys: || Ok(None), wrap: |stream| Ok(Box::new(stream)) };
    /// Under TLS 1.3.
    const SECURED: Dial =
        Dial { keys: || secured::keys(HOST).map(Some), wrap: |stream| Ok(Box::new(secured::secure(stream, HOST)?)) };
}

/// Reads a second of a served drive without flash times, all of which was written before.
fn served(dial: Dial, depth: u16, reads: u64) -> anyhow::Result<Speed> {
    serve(loopback(), (dial.keys)()?, "off", Buffer::Passed, |address, blocks| {
        let mut streams = attach(dial, address.context("TCP has an address")?, depth.max(32))?;
        fill(&mut streams, blocks)?;
        Speed::of(reads, || read_all(&mut streams, depth, reads, blocks, |_| ()))
    })
}

/// How long each of so many random reads took, one after the other, of a served drive with its flash times.
pub(super) fn latencies(reads: u64) -> anyhow::Result<Vec<Duration>> {
    serve(loopback(), None, "on", Buffer::Passed, |address, blocks| {
        let mut streams = attach(Dial::PLAIN, address.context("TCP has an address")?, 32)?;
        fill(&mut streams, blocks)?;
        let (mut began, mut latencies) = (Instant::now(), Vec::new());
        read_all(&mut streams, 1, reads, blocks, |_| {
            let now = Instant::now();
            latencies.push(now - std::mem::replace(&mut began, now));
        })?;
        Ok(latencies)
    })
}

/// Reads a second of a server that only sends.
fn bare(depth: u16, reads: u64) -> anyhow::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::scope(|scope| {
        let ran = rig::start(scope, "bare", move || answer_bare(&listener))?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let began = Instant::now();
        let measured = read_all(&mut stream, depth, reads, 1 << 20, |_| ());
        let seconds = began.elapsed().as_secs_f64();
        drop(stream);
        ran.join().expect("it does not panic")?;
        measured.map(|()| reads as f64 / seconds)
    })
}

/// Answers each command capsule with data and a response, all that came in one send.
fn answer_bare(listener: &TcpListener) -> anyhow::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let (mut input, mut output) = (vec![0; 64 << 10], Vec::new());
    let mut filled = 0;
    loop {
        let bytes = stream.read(&mut input[filled..])?;
        if bytes == 0 {
            return Ok(());
        }
        filled += bytes;
        let whole = filled - filled % COMMAND_BYTES;
        for capsule in input[..whole].chunks_exact(COMMAND_BYTES) {
            let id = &capsule[10..12];
            output.extend([DATA, 0x04, HEADER_BYTES as u8, HEADER_BYTES as u8]);
            output.extend((HEADER_BYTES as u32 + BYTES).to_le_bytes());
            output.extend(id);
            output.resize(output.len() + 14 + BYTES as usize, 0);
            output.extend([RESPONSE, 0, HEADER_BYTES as u8, 0]);
            output.extend((HEADER_BYTES as u32).to_le_bytes());
            output.extend([0; 12]);
            output.extend(id);
            output.extend([0; 2]);
        }
        input.copy_within(whole..filled, 0);
        filled -= whole;
        stream.write_all(&output)?;
        output.clear();
    }
}

/// Connects a controller and its first I/O queue. The admin connection lives as long as the queue's.
fn attach(dial: Dial, address: SocketAddr, depth: u16) -> anyhow::Result<TwoStreams> {
    let mut admin = greet(dial, address)?;
    let result = connect(&mut *admin, 0, 32, ANY_CONTROLLER)?;
    let property = Property { offset: registers::CC, bytes: 4 };
    ask(&mut *admin, Submission::property_set(property, Configuration::ENABLE.0.into()), &[])?;
    ask(&mut *admin, Submission::set_features(FeatureId::NumberOfQueues, 0), &[])?;
    let mut queue = greet(dial, address)?;
    connect(&mut *queue, 1, depth + 1, result as u16)?;
    Ok(TwoStreams { _admin: admin, queue })
}

struct TwoStreams {
    _admin: Box<dyn Wire>,
    queue: Box<dyn Wire>,
}

impl Read for TwoStreams {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.queue.read(to)
    }
}

impl Write for TwoStreams {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        self.queue.write(from)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.queue.flush()
    }
}

fn greet(dial: Dial, address: SocketAddr) -> anyhow::Result<Box<dyn Wire>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut stream = (dial.wrap)(stream)?;
    let mut unit = [0; 128];
    (unit[2], unit[4]) = (128, 128);
    stream.write_all(&unit)?;
    stream.read_exact(&mut unit)?;
    ensure!(unit[0] == 1, "the target answers ICReq with a unit of kind {}", unit[0]);
    Ok(stream)
}

fn connect(stream: &mut dyn Wire, queue: u16, entries: u16, controller: u16) -> anyhow::Result<u64> {
    let connect = Connect { format: 0, queue, last_entry: entries - 1, without_flow_control: false, keep_alive_ms: 0 };
    let field = |text: &str| std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(0));
    let mut record = ConnectRecord::default();
    record.set_host_id([7; 16]).set_controller(controller).set_subsystem(field(SUBSYSTEM)).set_host(field(HOST));
    ask(stream, Submission::connect(connect), record.as_bytes())
}

fn capsule(to: &mut Vec<u8>, submission: Submission, data: &[u8]) {
    let begin = if data.is_empty() { 0 } else { COMMAND_BYTES as u8 };
    to.extend([COMMAND, 0, COMMAND_BYTES as u8, begin]);
    to.extend(((COMMAND_BYTES + data.len()) as u32).to_le_bytes());
    submission.0.iter().for_each(|word| to.extend(word.to_le_bytes()));
    to.extend(data);
}

/// One command without data to the host, and the result of its response.
fn ask(stream: &mut dyn Wire, submission: Submission, data: &[u8]) -> anyhow::Result<u64> {
    let mut unit = Vec::new();
    let bytes = data.len() as u32;
    let sgl = if bytes > 0 { Sgl::InCapsule { offset: 0, bytes } } else { Sgl::Transport { bytes } };
    capsule(&mut unit, submission.with_sgl(sgl), data);
    stream.write_all(&unit)?;
    let mut response = [0; HEADER_BYTES];
    stream.read_exact(&mut response)?;
    let status = u16::from_le_bytes([response[22], response[23]]) >> 1;
    ensure!(response[0] == RESPONSE && status == 0, "a unit of kind {} with status {status:#x}", response[0]);
    Ok(u64::from_le_bytes(response[8..16].try_into().expect("eight bytes")))
}

/// Writes every block once.
fn fill(stream: &mut (impl Read + Write), blocks: u64) -> anyhow::Result<()> {
    let data = vec![0x5a; BYTES as usize];
    let write = |number: u64| {
        let submission = Submission::write(1, number * u64::from(BLOCKS), BLOCKS, Default::default());
        (submission.with_sgl(Sgl::InCapsule { offset: 0, bytes: BYTES }), &data[..])
    };
    keep_outstanding(stream, 32, blocks / u64::from(BLOCKS), write, |_| ())
}

/// Keeps so many random reads outstanding until enough are done, and says so of each.
fn read_all(
    stream: &mut (impl Read + Write),
    depth: u16,
    reads: u64,
    blocks: u64,
    done: impl FnMut(u16),
) -> anyhow::Result<()> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(depth));
    let read = |_| {
        let slba = random.random_range(0..blocks / u64::from(BLOCKS)) * u64::from(BLOCKS);
        let submission = Submission::read(1, slba, BLOCKS, Default::default());
        (submission.with_sgl(Sgl::Transport { bytes: BYTES }), &[][..])
    };
    keep_outstanding(stream, depth, reads, read, done)
}

/// Keeps so many commands outstanding until enough are done, and says so of each.
fn keep_outstanding<'a>(
    stream: &mut (impl Read + Write),
    depth: u16,
    count: u64,
    mut command: impl FnMut(u64) -> (Submission, &'a [u8]),
    mut is_done: impl FnMut(u16),
) -> anyhow::Result<()> {
    let mut free: Vec<u16> = (0..depth).collect();
    let (mut sent, mut done) = (0, 0);
    let (mut output, mut input) = (Vec::new(), vec![0; 1 << 20]);
    let (mut taken, mut filled) = (0, 0);
    while done < count {
        while let Some(id) = free.pop_if(|_| sent < count) {
            let (submission, data) = command(sent);
            capsule(&mut output, submission.with_command_id(id), data);
            sent += 1;
        }
        stream.write_all(&output)?;
        output.clear();
        let bytes = stream.read(&mut input[filled..])?;
        ensure!(bytes > 0, "the target has closed the connection");
        filled += bytes;
        while let Some((kind, length, id)) = unit(&input[taken..filled])? {
            taken += length;
            if kind == RESPONSE {
                free.push(id);
                done += 1;
                is_done(id);
            }
        }
        input.copy_within(taken..filled, 0);
        (taken, filled) = (0, filled - taken);
    }
    Ok(())
}

/// Kind and length of a unit that is there whole, and the command that a response is for.
fn unit(bytes: &[u8]) -> anyhow::Result<Option<(u8, usize, u16)>> {
    if bytes.len() < HEADER_BYTES {
        return Ok(None);
    }
    let length = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")) as usize;
    if bytes.len() < length {
        return Ok(None);
    }
    match bytes[0] {
        DATA => ensure!(length == HEADER_BYTES + BYTES as usize, "{length} bytes of data"),
        RESPONSE => ensure!(bytes[22] & 0xfe == 0 && bytes[23] == 0, "a command failed"),
        kind => bail!("a unit of kind {kind}"),
    }
    Ok(Some((bytes[0], length, u16::from_le_bytes([bytes[20], bytes[21]]))))
}
