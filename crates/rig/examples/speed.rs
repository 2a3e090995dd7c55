//! tmp
#[path = "../tests/device/small.rs"]
mod small;
use firmware::*;
use flash::*;
use host::{Pace, Phase};
use rig::*;
use small::*;
use units::*;
use workload::*;
fn main() {
    let n: u64 = std::env::args().nth(1).map_or(200_000, |x| x.parse().unwrap());
    let wl = std::env::args().nth(2).unwrap_or("randread".into());
    let fill = std::env::args().nth(3).unwrap_or("none".into());
    let small = Small::default();
    let mut d = small.device();
    d.drive.geometry = Geometry::new(Shape {
        channels: 16,
        packages_per_channel: 16,
        dies_per_package: 4,
        planes_per_die: 4,
        blocks_per_plane: 256,
        pages_per_block: 256,
        page: Bytes(4096),
        oob: Bytes(224),
        kind: CellKind::Mlc,
    })
    .unwrap();
    d.drive.namespaces = vec![1_000_000_000_000 / 512];
    d.drive.queues = 16;
    d.depth = 64;
    d.queue_entries = 128;
    d.drive.queue_entries = 128;
    d.vectors = 16;
    d.settings.threads = ThreadCounts { nvmq: 14, ilock: 4, cache: 4, trans: 8, log: 1, bgc: 1, fcmd: 16 };
    d.settings.commands = 1024;
    d.settings.frames = 256;
    d.settings.cache.size = Bytes::mib(512);
    d.settings.cache.spare_frames = 4096;
    d.settings.journal.interval = Span::from_millis(100);
    d.settings.journal.only_when_idle = true;
    d.placement = architecture::Placement::dealt(d.settings.threads, 12).unwrap();
    d.precondition.fill = match fill.as_str() {
        "none" => Fill::None,
        "seq" => Fill::Sequential,
        _ => Fill::Random { times: 1.0 },
    };
    d.check = std::env::args().nth(4).is_none();
    let cap = 1_000_000_000_000 / 512;
    let mk = |name: &str| {
        let w = Workload::named(name).unwrap();
        let mut p = Parameters::new(cap, 7);
        p.block = Some(Bytes(4096));
        let s = w.recipe().source(&p).unwrap();
        let mut ph = Phase::new(name, Box::new(s), Pace::Closed);
        ph.ios = Some(n);
        ph.warm_up_ios = n / 5;
        ph
    };
    let t = std::time::Instant::now();
    let mut s = Session::new(&d, "mlc", processor(), 1, vec![mk(&wl)], 0).unwrap();
    eprintln!("build {:?}", t.elapsed());
    let t = std::time::Instant::now();
    let sum = s.next_phase().unwrap().unwrap();
    let el = t.elapsed();
    println!("{}", report::render(&sum));
    eprintln!(
        "{} ios in {:?}: {:.0} io/s, {} events/io",
        n,
        el,
        n as f64 / el.as_secs_f64(),
        s.events() as f64 / n as f64
    );
    let st = std::fs::read_to_string("/proc/self/status").unwrap();
    for l in st.lines().filter(|l| l.starts_with("VmRSS") || l.starts_with("VmHWM")) {
        eprintln!("{l}");
    }
}
