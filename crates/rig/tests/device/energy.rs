//! Energy follows from what threads did, and power from that and from the cores they are on.

use crate::configured;
use crate::small::{Small, mixed, processor};
use firmware::architecture::ARCHITECTURES;
use report::Summary;
use rig::Session;
use sim::{EnergyPrices, Processor};
use stage::Price;
use units::Span;

const NOTHING: EnergyPrices = EnergyPrices { instruction: 0.0, transfer: 0.0, memory: 0.0, core: 0.0, base: 0.0 };

fn run(small: &Small, energy: Option<EnergyPrices>) -> Summary {
    run_on(small, Processor { energy, ..processor() })
}

fn run_on(small: &Small, processor: Processor) -> Summary {
    let phase = mixed("mixed", 1, small.sectors(), 2_000);
    let mut session =
        Session::new(&small.device(), "small", processor, 1, vec![phase], 0).expect("a device that can be built");
    session.next_phase().expect("one phase").unwrap_or_else(|error| panic!("{error}"))
}

fn joules(summary: &Summary) -> f64 {
    summary.groups.iter().map(|(_, group)| group.energy_j.expect("the processor has prices")).sum()
}

#[test]
fn power_is_what_threads_did_and_the_cores_they_are_on() {
    for &architecture in ARCHITECTURES {
        let small = Small { architecture, ..Small::default() };
        let none = run(&small, None);
        assert!(none.power_w.is_none() && none.groups.iter().all(|(_, group)| group.energy_j.is_none()));

        let instructions = run(&small, Some(EnergyPrices { instruction: 1e-9, ..NOTHING }));
        let twice = run(&small, Some(EnergyPrices { instruction: 2e-9, ..NOTHING }));
        let (once, twice) = (joules(&instructions), joules(&twice));
        assert!(once > 0.0 && (twice / once - 2.0).abs() < 1e-9, "{}: {once} {twice}", architecture.name());

        let lines = run(&small, Some(EnergyPrices { transfer: 1e-9, memory: 1e-9, ..NOTHING }));
        assert!(joules(&lines) > 0.0, "{}", architecture.name());

        let standing = run(&small, Some(EnergyPrices { core: 1.5, base: 2.0, ..NOTHING }));
        let cores = f64::from(standing.cores.as_ref().expect("it has cores").count);
        assert_eq!((joules(&standing), standing.power_w), (0.0, Some(1.5 * cores + 2.0)));

        let whole = instructions.power_w.expect("it has a power");
        let mean = once / (instructions.simulated_ns as f64 / 1e9);
        assert!((whole / mean - 1.0).abs() < 0.05, "{}: {whole} W, {mean} W", architecture.name());
        assert_eq!(instructions.polling_w, Some(0.0), "its threads sleep");
    }
}

/// A core on which enough threads live issues all it can, and what it issues is work or polling.
#[test]
fn threads_that_poll_take_what_work_leaves() {
    let small = Small::default();
    let mut processor = processor();
    processor.energy = Some(EnergyPrices { instruction: 1e-9, ..NOTHING });
    processor.poll = Price { slots: 3, stall: Span::ZERO };
    let summary = run_on(&small, processor);
    let cores = f64::from(summary.cores.as_ref().expect("it has cores").count);
    let (power, polling) = (summary.power_w.expect("it has a power"), summary.polling_w.expect("and polls"));
    assert!(polling > 0.0 && polling < power, "{polling} W of {power} W");
    assert!((power / cores - 1.0).abs() < 0.01, "an instruction of 1 nJ a nanosecond on {cores} cores: {power} W");
}

/// A placement may leave cores empty: these take no power, and could issue nothing.
#[test]
fn cores_that_no_thread_lives_on_count_for_nothing() {
    let run = |flags: &[(&str, &str)], sets: &[&str]| {
        let small =
            [("--architecture", "layered"), ("--device", "small"), ("--workload", "randread"), ("--ios", "1000")];
        configured::run(&[&small, flags].concat(), sets).unwrap_or_else(|error| panic!("{error}"))
    };
    let beside = run(&[], &[]);
    let far: Vec<String> = (44..60).map(|core: u16| core.to_string()).collect();
    let apart = run(&[("--cores", "60")], &[&format!("placement.fcmd=[{}]", far.join(","))]);
    let cores = |summary: &Summary| {
        let cores = summary.cores.clone().expect("it has cores");
        (cores.count, cores.utilisation.len())
    };
    assert_eq!((cores(&beside), cores(&apart)), ((17, 17), (17, 17)));
    let slots = |summary: &Summary| {
        let bound = summary.bounds().iter().find(|bound| bound.resource == "core issue slots");
        bound.expect("a bound").utilisation / summary.iops
    };
    let power = |summary: &Summary| summary.power_w.expect("it has a power");
    for (what, of) in [("slots", &slots as &dyn Fn(&Summary) -> f64), ("power", &power)] {
        let ratio = of(&apart) / of(&beside);
        assert!((ratio - 1.0).abs() < 0.05, "{what}: {ratio} times as much where the channels' cores lie apart");
    }
}
