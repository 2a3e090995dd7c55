//! Flash under load, beside a queueing model that shares no line with it.

use crate::configured;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use report::{Summary, render};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// An array, the length of its pages and of the reads, and how many of them are outstanding.
struct Case {
    channels: usize,
    dies: usize,
    page: u64,
    read: u64,
    depth: u64,
    /// Whether a channel has the next read of each die at hand.
    ahead: bool,
}

const BUS_MT: u64 = 400;
const COMMAND_NS: u64 = 175;
const SENSE_NS: u64 = 53_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives,
    CommandOut(usize),
    Sensed(usize),
    DataOut(usize),
}

/// A closed network: each request goes to a die at random, stands in its line, and comes back after `outside` for the next. A die is
/// its request's until the data are out. The bus of a channel is granted to commands first, then to data, first come, first served; the
/// command that follows data out comes when the bus has been granted anew, but where it is `ahead`.
struct Network {
    data_ns: u64,
    dies: usize,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    lines: Vec<u64>,
    at_work: Vec<bool>,
    commands: Vec<VecDeque<usize>>,
    data: Vec<VecDeque<usize>>,
    held: Vec<bool>,
}

impl Network {
    fn push(&mut self, after: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + after, self.count, event)));
    }

    fn start(&mut self, die: usize) {
        if !self.at_work[die] && self.lines[die] > 0 {
            self.lines[die] -= 1;
            self.at_work[die] = true;
            self.commands[die / self.dies].push_back(die);
            self.grant(die / self.dies);
        }
    }

    fn grant(&mut self, channel: usize) {
        if self.held[channel] {
            return;
        }
        if let Some(die) = self.commands[channel].pop_front() {
            self.held[channel] = true;
            self.push(COMMAND_NS, Event::CommandOut(die));
        } else if let Some(die) = self.data[channel].pop_front() {
            self.held[channel] = true;
            self.push(COMMAND_NS + self.data_ns, Event::DataOut(die));
        }
    }

    /// Reads a second.
    fn rate(case: &Case, outside: u64, reads: u64) -> f64 {
        let Case { channels, dies, read, depth, ahead, .. } = *case;
        let all = channels * dies;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut network = Network {
            data_ns: read * 1000 / BUS_MT,
            dies,
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            lines: vec![0; all],
            at_work: vec![false; all],
            commands: vec![VecDeque::new(); channels],
            data: vec![VecDeque::new(); channels],
            held: vec![false; channels],
        };
        (0..depth).for_each(|_| network.push(0, Event::Arrives));
        let mut done = 0;
        while done < reads {
            let Reverse((at, _, event)) = network.events.pop().expect("as many are outstanding as there were");
            network.now = at;
            match event {
                Event::Arrives => {
                    let die = random.random_range(0..all);
                    network.lines[die] += 1;
                    network.start(die);
                }
                Event::CommandOut(die) => {
                    network.held[die / dies] = false;
                    network.push(SENSE_NS, Event::Sensed(die));
                    network.grant(die / dies);
                }
                Event::Sensed(die) => {
                    network.data[die / dies].push_back(die);
                    network.grant(die / dies);
                }
                Event::DataOut(die) => {
                    done += 1;
                    (network.held[die / dies], network.at_work[die]) = (false, false);
                    if !ahead {
                        network.grant(die / dies);
                    }
                    network.start(die);
                    network.grant(die / dies);
                    network.push(outside, Event::Arrives);
                }
            }
        }
        done as f64 * 1e9 / network.now as f64
    }
}

/// What a drive whose firmware takes no time delivers, and how long a read is not at flash.
fn measured(case: &Case, reads: u64) -> (f64, u64) {
    let Case { channels, dies, page, read, depth, ahead } = case;
    let (read, depth, reads) = (read.to_string(), depth.to_string(), reads.to_string());
    let flags = [
        ("--device", "small"),
        ("--processor", "timeless"),
        ("--workload", "randread"),
        ("--block-size", &read),
        ("--queues", "1"),
        ("--depth", &depth),
        ("--ios", &reads),
        ("--payload", "none"),
    ];
    let array = [
        format!("device.channels={channels}"),
        format!("device.dies_per_package={dies}"),
        format!("device.page_bytes={page}"),
        format!("flash.ahead={ahead}"),
    ];
    let sets = [
        "device.planes_per_die=1",
        "device.blocks_per_plane=128",
        "device.oob_bytes=896",
        "device.timing.oob_moved_bytes=0",
        "host.entries=256",
        "workload.warm_up_ios=0",
        "threads.fcmd=1",
        "threads.trans=1",
    ];
    let sets = [&array.each_ref().map(String::as_str)[..], &sets].concat();
    let summary = configured::run(&flags, &sets).expect("it answers");
    let all = summary.read.latency.expect("it read").mean;
    let flash = summary.breakdown.get("flash").expect("it was there");
    (summary.iops, (all - flash) as u64)
}

/// Dies in lines behind a bus are a network of queues: its laws give what an array can deliver at any load, whatever simulates it.
#[test]
fn an_array_delivers_what_a_network_of_queues_does() {
    let case = |channels, dies, [page, read]: [u64; 2], depth| Case { channels, dies, page, read, depth, ahead: false };
    for case in [
        case(8, 1, [4096, 4096], 32),
        case(4, 2, [4096, 4096], 32),
        case(4, 8, [4096, 4096], 128),
        Case { ahead: true, ..case(4, 8, [4096, 4096], 128) },
        case(4, 8, [16_384, 4096], 64),
        case(4, 8, [16_384, 16_384], 16),
        case(4, 8, [16_384, 16_384], 128),
    ] {
        let (rate, outside) = measured(&case, 40_000);
        let law = Network::rate(&case, outside, 40_000);
        let Case { channels, dies, page, read, depth, ahead } = case;
        assert!(
            (rate / law - 1.0).abs() < 0.01,
            "{channels} x {dies} dies, {read} of {page} bytes, {depth}, {ahead}: {rate}, {law}"
        );
    }
}

/// Sequential reads of a die with one plane, whose pages are longer on the bus than they are sensed.
fn one_die(sets: &[&str]) -> Summary {
    let flags = [
        ("--device", "small"),
        ("--processor", "timeless"),
        ("--workload", "seqread"),
        ("--queues", "1"),
        ("--depth", "64"),
        ("--ios", "3000"),
    ];
    let array = [
        "device.channels=1",
        "device.dies_per_package=1",
        "device.planes_per_die=1",
        "device.blocks_per_plane=512",
        "device.timing.bus_mt_per_s=50",
        "threads.nvmq=1",
        "threads.trans=1",
        "threads.fcmd=1",
    ];
    configured::run(&flags, &[&array, sets].concat()).expect("it answers")
}

/// Of pages that are longer on the bus than they are sensed, one is on it all the time where the die knows of the next but one.
#[test]
fn cache_reads_fill_a_bus_that_is_slower_than_the_array() {
    let busy = |ahead: &str| {
        let cached = ["device.timing.cache_commands=true", "flash.cache_commands=true"];
        one_die(&[&cached[..], &[ahead]].concat()).flash.expect("it has flash").channel_utilisation[0]
    };
    let (without, with) = (busy("flash.ahead=false"), busy("flash.ahead=true"));
    assert!(with > 0.97 && without < 0.8, "{with} with the next but one, {without} without");
}

/// What the die could do by cache commands it does not do for firmware that gives it none, however much of what comes it knows.
#[test]
fn a_die_overlaps_nothing_for_firmware_without_cache_commands() {
    let run = |of_device: &str, of_firmware: &str| one_die(&["flash.ahead=true", of_device, of_firmware]).iops;
    let [has, lacks] = ["device.timing.cache_commands=true", "device.timing.cache_commands=false"];
    let (unused, lacking) = (run(has, "flash.cache_commands=false"), run(lacks, "flash.cache_commands=false"));
    assert_eq!(unused, lacking);
    assert!(run(has, "flash.cache_commands=true") > 1.5 * unused, "{unused}");
}

/// Dies that transfer one after the other and then sense together leave neither themselves nor their bus full, however many reads wait.
/// Few reads leave them without any.
#[test]
fn dies_and_buses_that_wait_for_each_other_are_named_as_the_limit() {
    let said = |depth: &str, ahead: &str| {
        let flags = [
            ("--device", "small"),
            ("--workload", "randread"),
            ("--block-size", "16k"),
            ("--queues", "4"),
            ("--depth", depth),
            ("--ios", "10000"),
            ("--payload", "none"),
        ];
        let summary = configured::run(&flags, &["device.page_bytes=16384", ahead]).expect("it answers");
        assert!(summary.check().is_empty(), "{:?}", summary.check());
        let words: Vec<String> = render(&summary).split_whitespace().map(str::to_owned).collect();
        words.join(" ")
    };
    for depth in ["16", "64"] {
        let said = said(depth, "flash.ahead=false");
        assert!(
            said.contains("The flash dies and buses wait for each other") && said.contains("with flash.ahead"),
            "{said}"
        );
    }
    let few = said("1", "flash.ahead=false");
    assert!(few.contains("Nothing is near its limit") && few.contains("More requests in flight may raise"), "{few}");
    let in_time = said("64", "flash.ahead=true");
    assert!(in_time.contains("The flash dies limit this run"), "{in_time}");
}
