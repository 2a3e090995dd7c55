//! A drive that is served to this process while something is measured.

use super::Bench;
use super::drive::{Buffer, UNOBSERVED, one_thread_a_group, sectors};
use rig::config::Layers;
use rig::{Door, Keys, Layout, Service, ServiceSettings};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const SUBSYSTEM: &str = "nqn.2026-11.org.flashloom:bench";

/// Bytes of a request, and blocks of it.
pub(super) const BYTES: u32 = 4096;
pub(super) const BLOCKS: u32 = BYTES / 512;

/// A door at any free port of this machine.
pub(super) fn loopback() -> Door {
    Door::Tcp { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), advertised: None }
}

/// How fast something went.
pub(super) struct Speed {
    pub(super) per_second: f64,
    /// What the drive's thread had of its processor for each, where the system says. It is the price where the drive has always something
    /// to do; where it waits for hosts, it looks for them meanwhile.
    processor: Option<Duration>,
}

impl Speed {
    /// Of so many requests.
    pub(super) fn of(requests: u64, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Speed> {
        let (before, began) = (processor_time(), Instant::now());
        work()?;
        let (seconds, after) = (began.elapsed().as_secs_f64(), processor_time());
        let processor = before.zip(after).map(|(before, after)| (after - before) / requests.max(1) as u32);
        Ok(Speed { per_second: requests as f64 / seconds, processor })
    }

    pub(super) fn put(&self, bench: &mut Bench<'_>, name: &str, requests: u64) {
        bench.put(name, self.per_second, "1/s", requests);
        if let Some(processor) = self.processor {
            bench.put(format!("{name}: processor time of each"), processor.as_nanos() as f64, "ns", requests);
        }
    }
}

/// What the thread of a served drive has had of its processor (`schedstat` of proc(5)), where there is one and the system says.
fn processor_time() -> Option<Duration> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?.flatten().map(|thread| thread.path());
    let front = threads.into_iter().find(|path| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim_end() == rig::SERVICE_THREAD)
    })?;
    let times = std::fs::read_to_string(front.join("schedstat")).ok()?;
    times.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// The small drive with such a buffer on one thread, with one firmware thread a group, served at a door, with flash and link times or
/// without, to hosts of these keys where there are any. `measure` is told the address, if there is one, and how many blocks the drive has.
pub(super) fn serve<T>(
    door: Door,
    keys: Option<Keys>,
    timing: &str,
    buffer: Buffer,
    measure: impl FnOnce(Option<SocketAddr>, u64) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let resolved = layers(timing, buffer)?.resolve()?;
    let blocks = sectors(&resolved)?;
    let settings = ServiceSettings {
        device: resolved.device.name.clone(),
        door,
        subsystem: SUBSYSTEM.into(),
        allowed: Vec::new(),
        keys,
        layout: Layout::on(1),
        processor: resolved.processor.clone(),
    };
    let service = Service::listen(resolved.plan(), settings)?;
    let (address, stop) = (service.address(), service.stop());
    thread::scope(|scope| {
        let ran = rig::start(scope, "served", move || service.run())?;
        let measured = measure(address, blocks);
        stop.stop();
        ran.join().expect("it does not panic")?;
        measured
    })
}

fn layers(timing: &str, buffer: Buffer) -> anyhow::Result<Layers> {
    let mut layers = Layers::new();
    for (flag, value) in [
        ("--device", "small"),
        ("--world", "threads"),
        ("--timing", timing),
        ("--payload", "full"),
        ("--precondition", "none"),
        ("--queues", "2"),
    ] {
        layers = layers.flag(flag, value)?;
    }
    one_thread_a_group(layers.set(buffer.setting())?.set(UNOBSERVED)?)
}
