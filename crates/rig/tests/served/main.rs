//! A served drive and hosts that talk to it over loopback: the whole firmware on threads, with every byte kept.

mod commands;
mod conversations;
mod damaged;
mod function;
mod hostile;
mod in_time;
mod initiator;
mod joining;
mod kept;
mod lasting;
mod monitor;
mod namespaces;
mod odd_guest;
mod pipelined;
mod plugged;
mod proof;
mod protected;
mod reported;
mod secured;
mod shadowed;
mod shut_down;
mod summed;
mod worn;

use initiator::{Attachment, Wishes};
use rig::config::Layers;
use rig::{
    Device, Door, DoorbellPath, Ended, Keys, Layout, Patience, Service, ServiceError, ServiceSettings, Stop, Trust,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use units::Span;

/// The longest that what must come may take, on a machine that does other things besides.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

const SUBSYSTEM: &str = "nqn.2026-11.org.flashloom:test";

/// Keys of a drive whose flash has pages of 16 KiB: four of the host's.
const LARGE_PAGES: &[&str] = &["device.page_bytes=16k", "device.oob_bytes=896"];

/// A service on a thread of its own.
struct Running {
    address: SocketAddr,
    stop: Stop,
    thread: JoinHandle<Result<Ended, ServiceError>>,
    metrics: SocketAddr,
    end_metrics: Box<dyn FnOnce()>,
}

/// How a service is set up.
struct Serving {
    allowed: Vec<String>,
    keys: Option<Keys>,
    advertised: Option<SocketAddr>,
    patience: Patience,
    lba_bytes: u32,
    /// I/O queues of all hosts together.
    queues: &'static str,
    /// Further keys.
    set: &'static [&'static str],
    architecture: &'static str,
    media: Option<PathBuf>,
    /// Threads of this machine.
    threads: usize,
}

impl Default for Serving {
    fn default() -> Self {
        let long = Span::from_secs(20);
        let patience = Patience { to_connect: long, to_take: long, to_end: long, ..Patience::default() };
        Serving {
            allowed: Vec::new(),
            keys: None,
            advertised: None,
            patience,
            lba_bytes: 512,
            queues: "8",
            set: &[],
            architecture: "deepflash",
            media: None,
            threads: 1,
        }
    }
}

impl Serving {
    fn start(self) -> Running {
        self.start_with(|service| service)
    }

    /// The same with a service that is set up further.
    fn start_with(self, further: impl FnOnce(Service) -> Service) -> Running {
        let address = "127.0.0.1:0".parse().expect("an address");
        let advertised = self.advertised;
        let service = further(self.listen(Door::Tcp { address, advertised }));
        let (address, stop) = (service.address().expect("TCP has one"), service.stop());
        let metrics = service.metrics("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let page = metrics.address().expect("it listens");
        let end_metrics = Box::new(metrics.ender().expect("it listens"));
        std::thread::spawn(|| metrics.run());
        Running { address, stop, thread: std::thread::spawn(move || service.run()), metrics: page, end_metrics }
    }

    /// The same as a device for a virtual machine.
    fn plug(self, doorbells: DoorbellPath) -> Plugged {
        self.plug_with(doorbells, |service| service)
    }

    fn plug_with(self, doorbells: DoorbellPath, with: impl FnOnce(Service) -> Service) -> Plugged {
        static SOCKETS: AtomicU32 = AtomicU32::new(0);
        let name = format!("flashloom-{}-{}", std::process::id(), SOCKETS.fetch_add(1, Ordering::Relaxed));
        let socket = std::env::temp_dir().join(name);
        let service = with(self.listen(Door::VfioUser { socket: socket.clone(), doorbells, trust: Trust::Seals }));
        Plugged { socket, stop: service.stop(), thread: std::thread::spawn(move || service.run()) }
    }

    fn listen(self, door: Door) -> Service {
        let patience = self.patience;
        Service::listen(self.device(), self.settings(door)).expect("a place to listen").with_patience(patience)
    }

    fn settings(self, door: Door) -> ServiceSettings {
        ServiceSettings {
            device: "small".into(),
            door,
            subsystem: SUBSYSTEM.into(),
            allowed: self.allowed,
            keys: self.keys,
            layout: Layout::on(self.threads),
            processor: rig::check::small::processor(),
        }
    }

    fn device(&self) -> Device {
        let mut layers = Layers::new();
        for (flag, value) in [
            ("--device", "small"),
            ("--architecture", self.architecture),
            ("--world", "threads"),
            ("--payload", "full"),
            ("--precondition", "none"),
            ("--queues", self.queues),
        ] {
            layers = layers.flag(flag, value).expect("a flag of the command line");
        }
        let lba = format!("device.lba_bytes={}", self.lba_bytes);
        for assignment in ["cache.size_bytes=4MiB", "host.vectors=8", &lba].iter().chain(self.set) {
            layers = layers.set(assignment).expect("a key");
        }
        let mut device = layers.resolve().expect("a configuration").plan();
        device.media.clone_from(&self.media);
        device
    }
}

/// A service at a virtual machine's socket.
struct Plugged {
    socket: PathBuf,
    stop: Stop,
    thread: JoinHandle<Result<Ended, ServiceError>>,
}

impl Plugged {
    /// Ends it; it must have gone well.
    fn end(self) -> Ended {
        self.stop.stop();
        let ended = self.thread.join().expect("it does not panic").expect("it ends well");
        assert!(!self.socket.exists(), "the socket is gone");
        ended
    }
}

impl Running {
    /// A host of this name, with two I/O queues.
    fn host(&self, name: &str) -> Attachment {
        Attachment {
            address: self.address,
            subsystem: SUBSYSTEM.into(),
            host: format!("nqn.2026-11.org.flashloom:{name}"),
            queues: 2,
            keep_alive_ms: 60_000,
            wishes: Wishes::default(),
        }
    }

    /// Connections open now.
    fn connections(&self) -> u64 {
        self.figure("flashloom_connections")
    }

    /// A figure, as the service's own page says.
    fn figure(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.metrics).expect("the page is served");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it reads");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("text");
        let figure = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).expect("the figure");
        figure.parse().expect("a count")
    }

    /// Waits until a figure is what it must come to: figures follow the answers that they count.
    fn wait_for_figure(&self, name: &str, is_so: impl Fn(u64) -> bool) {
        let began = Instant::now();
        while !is_so(self.figure(name)) {
            assert!(began.elapsed() < PATIENCE, "{name} stays {}", self.figure(name));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until only so many connections are left.
    fn wait_for_connections(&self, left: u64) {
        self.wait_for_figure("flashloom_connections", |connections| connections <= left);
    }

    /// Ends it; it must have gone well.
    fn end(self) -> Ended {
        (self.end_metrics)();
        self.stop.stop();
        self.thread.join().expect("it does not panic").expect("it ends well")
    }
}
