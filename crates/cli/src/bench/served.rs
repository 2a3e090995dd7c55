//! A drive that is served to this process while something is measured.

use super::drive::sectors;
use rig::config::Layers;
use rig::{Door, Layout, Service, ServiceSettings};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

pub(super) const SUBSYSTEM: &str = "nqn.2026-11.org.flashloom:bench";

/// Bytes of a request, and blocks of it.
pub(super) const BYTES: u32 = 4096;
pub(super) const BLOCKS: u32 = BYTES / 512;

/// A door at any free port of this machine.
pub(super) fn loopback() -> Door {
    Door::Tcp { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), advertised: None }
}

/// The small drive on one thread, served at a door, with flash and link times or without. `measure` is told the address, if there
/// is one, and how many blocks the drive has.
pub(super) fn serve<T>(
    door: Door,
    timing: &str,
    measure: impl FnOnce(Option<SocketAddr>, u64) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let resolved = layers(timing)?.resolve()?;
    let blocks = sectors(&resolved)?;
    let settings = ServiceSettings {
        door,
        subsystem: SUBSYSTEM.into(),
        allowed: Vec::new(),
        keys: None,
        layout: Layout { threads: 1, pin: false },
        processor: resolved.processor.clone(),
    };
    let service = Service::listen(resolved.plan(), settings)?;
    let (address, stop) = (service.address(), service.stop());
    thread::scope(|scope| {
        let ran = scope.spawn(move || service.run());
        let measured = measure(address, blocks);
        stop.stop();
        ran.join().expect("it does not panic")?;
        measured
    })
}

fn layers(timing: &str) -> anyhow::Result<Layers> {
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
    Ok(layers.set("cache.size_bytes=4MiB")?)
}
