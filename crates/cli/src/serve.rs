//! `serve`: the drive in real time, behind a front end that real hosts connect to.

use crate::Shell;
use crate::arguments::{ASKING_KEYS, Shared, note_idle_keys};
use crate::failure::{advice_on_refusal, unusable};
use crate::keys::{note_openness, read_keys};
use crate::progress::Progress;
use crate::run::check_supported;
use crate::shell::Json;
use clap::Args;
use nvme::spec::fabrics::DISCOVERY_SUBSYSTEM;
use report::Summary;
use rig::config::{Layers, Payload, Resolved, World};
use rig::{
    Door, DoorbellPath, Ended, Layout, NoThread, Recovery, Refusal, Service, ServiceError, ServiceSettings, Stop,
    Trust, start,
};
use serde::Serialize;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Scope};
use std::time::Duration;
use units::Bytes;

/// What `serve` is told.
#[derive(Args)]
pub(crate) struct ServeArguments {
    /// Listens for NVMe/TCP here; port 0 is any that is free
    #[arg(long, value_name = "ADDR:PORT")]
    tcp: Option<String>,
    /// Listens for the monitor of a virtual machine here: the drive is a PCIe device of its guest
    #[arg(long, value_name = "SOCKET", conflicts_with = "tcp")]
    vfio_user: Option<PathBuf>,
    /// Lets the monitor send the guest's doorbell writes instead of mapping the doorbells, which have to be watched
    #[arg(long, requires = "vfio_user", conflicts_with = "tcp")]
    send_doorbells: bool,
    /// Maps all of the guest's memory, not only what cannot shrink (sealed memfds): faster with hugetlbfs and other files, but a
    /// monitor that shrinks such a file ends this process
    #[arg(long, requires = "vfio_user", conflicts_with = "tcp")]
    trust_monitor: bool,
    /// Keeps the drive's contents in a sparse file, and finds them there when it is served again
    #[arg(long, value_name = "FILE")]
    media: Option<PathBuf>,
    /// Takes the memory of all pages and of the buffer before it listens, so that the system clears none while hosts wait
    #[arg(long)]
    preallocate: bool,
    /// Shows the drive's figures over HTTP here, as Prometheus reads them
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<String>,
    /// NVMe qualified name of the subsystem; the identifiers of its namespaces follow from it
    #[arg(long, value_name = "NQN", default_value = "nqn.2026-11.org.flashloom:drive")]
    nqn: String,
    /// Lets in only hosts of this name; can be given often
    #[arg(long, value_name = "NQN", conflicts_with = "vfio_user")]
    allow_host: Vec<String>,
    /// Lets in only the hosts of this file, which have to prove that they know their secrets (DH-HMAC-CHAP), or connect under TLS
    #[arg(long, value_name = "FILE", conflicts_with = "vfio_user")]
    keys: Option<PathBuf>,
    /// Lets --tcp listen at an address that other machines reach: whoever reaches it can read and write the drive
    #[arg(long)]
    allow_remote: bool,
    /// The address that discovery tells, where address translation hides the one that hosts dial
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "vfio_user")]
    advertise: Option<String>,
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    #[command(flatten)]
    shared: Shared,
}

/// What a drive is that is served, where no file and no flag says otherwise: in real time, fresh, every byte kept, of no more flash
/// than this machine has memory for, and so of so few groups that hosts would wait for most of those that are reclaimed. No command is
/// followed.
const SERVED: &str = r#"
platform.device = "mlc-4gb"
run.world = "threads"
run.payload = "full"
run.precondition = "none"
run.observed = "none"
reclaim.paced = true
"#;

/// Flags that say what a host of ours would ask for.
pub(crate) const IDLE: &[&str] =
    &["--workload", "--block-size", "--depth", "--ios", "--duration", "--until", "--round"];

/// Why these change nothing here.
const HOSTS_SAY: &str = "hosts say what they want";

/// Keys that say the same, beside [`ASKING_KEYS`].
const IDLE_KEYS: &[&str] = &[
    "workload.pace",
    "workload.ios",
    "workload.duration_ms",
    "workload.warm_up_ios",
    "workload.warm_up_ms",
    "run.until",
    "run.round",
    "run.rounds_max",
    "host.entries",
    "controller.arbitration",
    "controller.weights",
    "host.priorities",
    "host.depth",
    "host.vectors",
];

/// What is known when a service has ended.
#[derive(Serialize)]
struct Served<'a> {
    connections: u64,
    protocol_violations: u64,
    keep_alive_expiries: u64,
    durable: bool,
    outlived: bool,
    /// What the drive did while hosts had commands there, if they ever had.
    #[serde(skip_serializing_if = "Option::is_none")]
    drive: Option<&'a Summary>,
}

impl ServeArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        let door = self.door()?;
        let metrics = self.metrics.as_ref().map(|text| self.local_address("--metrics", text)).transpose()?;
        let layers = self.shared.over(Layers::beneath("serve", SERVED)?, &self.config)?;
        let idle = idle_keys(&layers);
        let resolved = self.resolve(layers)?;
        self.shared.note_idle(shell, IDLE, HOSTS_SAY)?;
        idle.iter().try_for_each(|(said, why)| note_idle_keys(shell, said, why))?;
        self.keys.iter().try_for_each(|file| note_openness(shell, file))?;
        shell.follows(&resolved)?;
        shell.heed_signals();
        let json = shell.json(self.shared.json.as_deref())?;
        let waits = |error| unusable(format!("signals cannot be waited for: {error}"), "");
        let waiting = Progress::wait(shell.watched, "recovering what the drive holds");
        let service = self.service(&resolved, door)?;
        drop(waiting);
        let (stop, summary) = (service.stop(), service.summary());
        let signals = Signals::new([SIGINT, SIGTERM]).map_err(waits)?;
        let handle = signals.handle();
        let metrics = metrics.map(|address| service.metrics(address)).transpose()?;
        let shown = metrics.as_ref().map(rig::Metrics::address).transpose()?;
        let end_metrics = metrics.as_ref().map(rig::Metrics::ender).transpose()?;
        let ended = thread::scope(|scope| {
            // Before anybody is told where it listens.
            let begun = begin(scope, signals, stop, metrics).map_err(anyhow::Error::from);
            let told =
                begun.and_then(|()| self.introduce(shell, &resolved, service.recovery(), (service.address(), shown)));
            let ended = told.map(|()| service.run());
            handle.close();
            if let Some(end) = end_metrics {
                end();
            }
            ended
        });
        let (ended, refused) = match ended? {
            Err(error @ (ServiceError::NotKept { ended, .. } | ServiceError::NotDurable { ended, .. })) => {
                (ended, Some(error))
            }
            ended => (ended?, None),
        };
        let told = tell(shell, json, &ended, summary.get());
        // Whether or not anybody reads what it did.
        refused.map_or(told, |error| Err(error.into()))
    }

    fn door(&self) -> anyhow::Result<Door> {
        if let Some(socket) = &self.vfio_user {
            let doorbells = if self.send_doorbells { DoorbellPath::Sent } else { DoorbellPath::Mapped };
            let trust = if self.trust_monitor { Trust::Monitor } else { Trust::Seals };
            return Ok(Door::VfioUser { socket: socket.clone(), doorbells, trust });
        }
        let Some(text) = &self.tcp else {
            return Err(unusable(
                "nothing to listen at; expected --tcp ADDR:PORT or --vfio-user SOCKET",
                "for example --tcp 127.0.0.1:4420",
            ));
        };
        let advertised = self.advertise.as_ref().map(|text| resolve_address("--advertise", text)).transpose()?;
        Ok(Door::Tcp { address: self.local_address("--tcp", text)?, advertised })
    }

    /// An address that other machines do not reach, unless they may.
    fn local_address(&self, flag: &str, text: &str) -> anyhow::Result<SocketAddr> {
        let address = resolve_address(flag, text)?;
        if !address.ip().to_canonical().is_loopback() && !self.allow_remote {
            return Err(unusable(
                format!("{flag} {text} can be reached from other machines; expected a loopback address"),
                "--allow-remote lets whoever reaches it read and write the drive; --keys FILE asks who they are, and can have TLS",
            ));
        }
        Ok(address)
    }

    fn resolve(&self, layers: Layers) -> anyhow::Result<Resolved> {
        let resolved = layers.resolve_as_lent()?;
        if resolved.timeline.is_some() {
            let named = resolved.timeline_named();
            return Err(unusable(format!("{named}: expected none; a drive that is served keeps no time line"), ""));
        }
        check_supported(&self.shared, &resolved)?;
        if !matches!(resolved.world, World::Threads { .. }) {
            return Err(unusable(
                "--world sim; expected threads: hosts live in real time",
                "--world threads says so over a file",
            ));
        }
        if resolved.payload != Payload::Full {
            return Err(unusable(
                "--payload; expected full: hosts read what they wrote",
                "--payload full says so over a file",
            ));
        }
        Ok(resolved)
    }

    fn service(&self, resolved: &Resolved, door: Door) -> anyhow::Result<Service> {
        for name in self.allow_host.iter().chain([&self.nqn]) {
            check_name(name)?;
        }
        if self.nqn == DISCOVERY_SUBSYSTEM {
            return Err(unusable(
                "--nqn is the name of discovery; expected one of a drive",
                "without --nqn it has a name",
            ));
        }
        let World::Threads { threads, apart, .. } = resolved.world else { unreachable!("it was checked") };
        let settings = ServiceSettings {
            device: resolved.device.name.clone(),
            door,
            subsystem: self.nqn.clone(),
            allowed: self.allow_host.clone(),
            keys: self.keys.as_deref().map(read_keys).transpose()?,
            layout: Layout { apart, ..Layout::on(threads.into()) },
            processor: resolved.processor.clone(),
        };
        let mut device = resolved.plan();
        resolved.draw(&device)?;
        device.media.clone_from(&self.media);
        device.preallocates = self.preallocate;
        if self.preallocate {
            check_memory(device.memory_when_full())?;
        }
        let service = Service::listen(device, settings)?;
        Ok(match self.media.clone() {
            Some(file) => {
                let reserve = service.reserve();
                service.on_full(Box::new(move |refused| warn_of_full(&file, reserve, refused)))
            }
            None => service,
        })
    }

    fn introduce(
        &self,
        shell: &mut Shell<'_>,
        resolved: &Resolved,
        recovery: Option<&Recovery>,
        (address, metrics): (Option<SocketAddr>, Option<SocketAddr>),
    ) -> anyhow::Result<()> {
        let threads = resolved.settings.threads.iter().map(|(group, count)| format!("{group}={count}"));
        let threads = threads.collect::<Vec<_>>().join(",");
        let mut rows = vec![
            ("firmware", format!("{}; threads {threads}", resolved.architecture.name())),
            ("device", format!("{}: {}", resolved.device.name, resolved.device.summary)),
            ("subsystem", self.nqn.clone()),
        ];
        let new = if recovery.is_none() { ", which is new" } else { "" };
        rows.extend(self.media.as_ref().map(|file| ("contents", format!("{}{new}", file.display()))));
        rows.extend(recovery.map(|recovery| ("recovered", found_again(recovery))));
        if let Some(address) = address {
            let (ip, port) = (address.ip(), address.port());
            rows.push(("listening", address.to_string()));
            rows.push(("connect", format!("nvme connect -t tcp -a {ip} -s {port} -n {}", self.nqn)));
        }
        if let Some(socket) = &self.vfio_user {
            let device = json!({"driver": "vfio-user-pci", "socket": {"path": socket, "type": "unix"}});
            rows.push(("listening", socket.display().to_string()));
            rows.push(("connect", format!("qemu-system-x86_64 ... -device '{device}'")));
        }
        rows.extend(metrics.map(|address| ("metrics", format!("http://{address}/metrics"))));
        shell.announce(&rows.iter().map(|(name, text)| format!("{name:<10} {text}\n")).collect::<String>())?;
        Ok(())
    }
}

/// Starts who shows the figures, and who ends the service on a signal and says what is waited for then: when it is to end, threads may be
/// out.
fn begin<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut signals: Signals,
    stop: Stop,
    metrics: Option<rig::Metrics>,
) -> Result<(), NoThread> {
    let (ending, ends) = mpsc::channel();
    let is_told = Arc::new(AtomicBool::new(false));
    let heeded = is_told.clone();
    if let Some(metrics) = metrics {
        start(scope, "metrics", move || metrics.run())?;
    }
    start(scope, "ending", move || tell_waiting(&ends, &is_told))?;
    start(scope, "signals", move || heed(&mut signals, &stop, &ending, &heeded))?;
    Ok(())
}

/// How long an end may take that needs no words.
const SOON: Duration = Duration::from_secs(1);

/// Ends the service at the first signal, and the process at one that comes after it was said what that does: who ends it by one act may
/// send two signals, as `timeout` does.
fn heed(signals: &mut Signals, stop: &Stop, ending: &Sender<()>, is_told: &AtomicBool) {
    for (count, _) in signals.forever().enumerate() {
        if count == 0 {
            stop.stop();
            // Who says so ends after this.
            let _ = ending.send(());
        } else if is_told.load(Ordering::Acquire) {
            tell_aside("ended at once: what was not durable is lost\n");
            std::process::exit(1);
        }
    }
}

/// Says what is waited for once the service ends, unless that is over soon: nobody heeds signals then.
fn tell_waiting(ends: &Receiver<()>, is_told: &AtomicBool) {
    let goes_on = ends.recv().is_ok() && ends.recv_timeout(SOON) == Err(RecvTimeoutError::Timeout);
    if !goes_on {
        return;
    }
    // Before it is said, so that whoever has read it is heeded.
    is_told.store(true, Ordering::Release);
    tell_aside(
        "ending: commands under way are finished and what is in the buffer is written to flash; a signal from now on ends at \
         once, and what is not durable is lost\n",
    );
}

/// Says something from a thread that has no shell: the one that has it waits for the service.
fn tell_aside(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// What was done until the end.
fn tell(shell: &mut Shell<'_>, json: Json, ended: &Ended, drive: Option<&Summary>) -> anyhow::Result<()> {
    if let Some(drive) = drive {
        shell.say(&format!("\nwhile hosts had commands at the drive:\n{}\n", report::render(drive)))?;
    }
    let served = Served {
        connections: ended.connections,
        protocol_violations: ended.violations,
        keep_alive_expiries: ended.expired,
        durable: ended.durable,
        outlived: ended.outlived,
        drive,
    };
    let durable = if served.durable { "everything is durable" } else { "what was in the buffer is lost" };
    shell.say(&format!(
        "ended      {}, {} broke the protocol, {} fell silent; {durable}\n",
        report::of(served.connections, "connection"),
        served.protocol_violations,
        report::of(served.keep_alive_expiries, "host")
    ))?;
    if served.outlived {
        shell.say("it was served as long as a drive can be (160 days); serve it again\n")?;
    }
    shell.put(json, &served)
}

/// The drive's thread says so. Where nobody reads it, SMART says the same.
fn warn_of_full(file: &Path, reserve: Bytes, refused: Option<&Refusal>) {
    let why = refused.map_or_else(
        || {
            format!(
                "the disk of {} has not the room left that what was taken may need, {reserve} at most",
                file.display()
            )
        },
        |refusal| format!("{} could not be written ({refusal})", file.display()),
    );
    let help = match refused {
        None | Some(Refusal::System(_)) => "make room there, and serve it again",
        Some(refusal) => advice_on_refusal(refusal),
    };
    tell_aside(&format!(
        "warning: {why}: the drive takes no more writes, and goes on reading\nhelp: end it, and {help}\n"
    ));
}

/// What files and assignments say of keys that are not read here, and why they are not.
fn idle_keys(layers: &Layers) -> [(Vec<String>, &'static str); 2] {
    [
        (layers.said(&[ASKING_KEYS, IDLE_KEYS].concat()), HOSTS_SAY),
        (layers.said(&["controller.queue_entries"]), "a queue that is served has room for 128 commands"),
    ]
}

/// That this machine has so much memory to give, where it tells (proc(5)).
fn check_memory(needed: Bytes) -> anyhow::Result<()> {
    let Ok(told) = std::fs::read_to_string("/proc/meminfo") else { return Ok(()) };
    let available = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = available.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    match kibibytes.map(|count| Bytes(count * 1024)) {
        Some(available) if available < needed => Err(unusable(
            format!("--preallocate takes {needed}; expected at most {available}, which this machine has left"),
            "without it memory is taken as the drive is written; --media FILE keeps the pages in a file",
        )),
        _ => Ok(()),
    }
}

/// What was in a file when it was served again.
fn found_again(recovery: &Recovery) -> String {
    let from = recovery.checkpoint.map_or_else(|| "every page".into(), |number| format!("checkpoint {number}"));
    let millis = recovery.took.secs_f64() * 1e3;
    let missing = match recovery.dropped {
        0 => String::new(),
        dropped => format!("; {dropped} more that it names are not there: this is a fault of the firmware"),
    };
    format!("{} pages from {from}, {millis:.1} ms of virtual time{missing}", recovery.mapped)
}

fn resolve_address(flag: &str, text: &str) -> anyhow::Result<SocketAddr> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        unusable(format!("{flag} {text}; expected an address and a port"), "for example 127.0.0.1:4420 or [::1]:4420")
    })
}

/// Base §4.5: UTF-8 of at most 223 bytes that begins with `nqn.`.
fn check_name(name: &str) -> anyhow::Result<()> {
    if is_name(name) {
        return Ok(());
    }
    Err(unusable(
        format!("{name:?} is no NVMe qualified name; expected nqn.YYYY-MM.DOMAIN:NAME, at most 223 bytes"),
        "",
    ))
}

/// Whether it is a name as hosts and subsystems have.
pub(crate) fn is_name(name: &str) -> bool {
    nvme::spec::fabrics::is_qualified(name)
}

/// The exit code of a service follows from what ended it.
pub(crate) fn is_fault(error: &ServiceError) -> bool {
    !matches!(
        error,
        ServiceError::Serve(
            rig::ServeError::Listen { .. }
                | rig::ServeError::Socket { .. }
                | rig::ServeError::Files { .. }
                | rig::ServeError::Wait(_)
        ) | ServiceError::Session(rig::SessionError::Build(_) | rig::SessionError::NoThread(_))
            | ServiceError::TooManyQueues(_)
    )
}
