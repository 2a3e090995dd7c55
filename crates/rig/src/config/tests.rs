//! Configuration as a whole: defaults, layers, messages, round trips, and input that nobody meant.

use super::*;
use firmware::architecture::{ARCHITECTURES, DEFAULT, Materials};
use firmware::{LbaFormat, QueueAllocation};
use proptest::prelude::*;
use std::sync::Arc;
use units::{Bytes, CoreId, Span};

fn resolve(text: &str) -> Result<Resolved, ConfigError> {
    Layers::new().text("run.toml", text)?.resolve()
}

fn refusal(text: &str) -> String {
    resolve(text).err().unwrap_or_else(|| panic!("accepted: {text}")).to_string()
}

fn row(resolved: &Resolved, key: &str) -> Row {
    resolved.rows().find(|row| row.key == key).unwrap_or_else(|| panic!("no row {key}"))
}

/// All that a resolution holds, without origins.
fn contents(resolved: &Resolved) -> String {
    let Resolved { device, drive, processor, cores, settings, placement, controller, host, phases, .. } = resolved;
    let Resolved { payload, precondition, seed, world, timeline, architecture, .. } = resolved;
    let rows: Vec<(&str, String)> = resolved.rows().map(|row| (row.key, row.value)).collect();
    format!(
        "{device:?} {drive:?} {processor:?} {cores} {settings:?} {placement:?} {controller:?} {host:?} {phases:?} \
         {payload:?} {precondition:?} {seed} {world:?} {timeline:?} {} {rows:?}",
        architecture.name()
    )
}

#[test]
fn nothing_said_is_deepflash_on_twelve_cores_over_a_terabyte_of_mlc() {
    let resolved = Layers::new().resolve().unwrap();
    assert_eq!(resolved.architecture.name(), "deepflash");
    assert_eq!((resolved.device.name.as_str(), resolved.processor.name.as_str()), ("mlc-1tb", "in-order-1ghz"));
    assert_eq!((resolved.cores, resolved.settings.threads.total(), resolved.seed), (12, 48, 1));
    assert_eq!(resolved.device.geometry.capacity(), Bytes(1 << 40));
    // 10^12 bytes are 244,140,625 pages exactly.
    assert_eq!(resolved.device.user, Bytes(1_000_000_000_000));
    assert_eq!(resolved.drive.pages(), 244_140_625);
    assert_eq!(resolved.device.timing.program, [Span::from_micros(900), Span::ZERO, Span::from_micros(900)]);
    assert_eq!(resolved.device.timing.bus.beats(4096 + 224), Span::from_nanos(10_800));
    assert_eq!(resolved.processor.thread_slot, Span::from_nanos(2));
    assert_eq!(resolved.processor.prices.len(), firmware::Work::KEYS.len());
    let names: Vec<&str> = resolved.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["randread", "randwrite"]);
    assert_eq!(resolved.phases[1].parameters.seed, 1 | 1 << 32, "not what the first phase of the next seed draws by");
    assert_eq!((resolved.world, resolved.timeline), (World::Sim, None));
}

#[test]
fn capacities_are_those_of_table_1() {
    for (name, array, user) in [
        ("slc-512gb", 512 << 30, 512_000_000_000),
        ("mlc-1tb", 1 << 40, 1_000_000_000_000),
        ("tlc-1.5tb", 3 << 39, 1_500_000_000_000u64),
    ] {
        let resolved = Layers::new().flag("--device", name).unwrap().resolve().unwrap();
        assert_eq!(resolved.device.geometry.capacity(), Bytes(array), "{name}");
        assert_eq!(resolved.device.user, Bytes(user / 4096 * 4096), "{name}");
        assert_eq!(resolved.device.geometry.die_count(), 1024);
    }
}

/// What the bus alone allows, which is the part of Table 1's backbone maxima that does not depend on the cell.
#[test]
fn the_bus_is_as_fast_as_the_backbone_of_table_1_needs() {
    let resolved = Layers::new().resolve().unwrap();
    let timing = &resolved.device.timing;
    let page =
        timing.bus.beats(4 * (4096 + 224)) + timing.cycle * u64::from(4 * timing.cycles.program + timing.cycles.status);
    let picos_a_page = page.picos() / 4;
    // The line through the SLC and TLC maxima meets tPROG = 0 at 11.02 us a page.
    assert!((10_900_000..11_100_000).contains(&picos_a_page), "{picos_a_page} ps");
}

#[test]
fn every_named_device_and_processor_resolves_and_comes_back_from_its_text() {
    for device in DEVICES {
        for processor in PROCESSORS {
            for architecture in ARCHITECTURES {
                let layers = Layers::new().flag("--device", device.name).unwrap();
                let layers = layers.flag("--processor", processor.name).unwrap();
                let resolved = layers.flag("--architecture", architecture.name()).unwrap().resolve().unwrap();
                let again = resolve(&resolved.to_toml()).unwrap();
                assert_eq!(contents(&again), contents(&resolved), "{}", device.name);
                assert_eq!(again.to_toml().lines().count(), resolved.to_toml().lines().count());
            }
        }
    }
}

#[test]
fn the_default_architecture_is_the_default_of_the_configuration() {
    assert_eq!(Layers::new().resolve().unwrap().architecture.name(), DEFAULT.name());
}

#[test]
fn the_small_device_can_be_drawn_by_every_architecture() {
    for architecture in ARCHITECTURES {
        let layers = Layers::new().flag("--device", "small").unwrap();
        let mut layers = layers.flag("--architecture", architecture.name()).unwrap();
        // An instance a channel.
        if architecture.groups().iter().any(|group| group.shares_dies) {
            layers = layers.flag("--threads", "instance=4,fcmd=4").unwrap();
        }
        let resolved = layers.resolve().unwrap();
        let Resolved { drive, settings, placement, .. } = resolved.clone();
        let materials = Materials { drive: Arc::new(drive), settings, placement, link_threads: 1, watch: None };
        if let Err(error) = architecture.draw(materials, &mut |_| {}) {
            panic!("{}: {}", architecture.name(), resolved.undrawable(&error));
        }
    }
}

#[test]
fn higher_layers_win_and_every_value_knows_its_own() {
    let text = "[platform]\narchitecture = \"base_deepflash\"\ncores = 4\n[lock]\nforwarding = true\n";
    let layers = Layers::new().text("run.toml", text).unwrap();
    let layers = layers.set("platform.cores = 6").unwrap().flag("--cores", "5").unwrap();
    let layers = layers.flag("--threads", "nvmq=3, ilock=2").unwrap().flag("--timing", "off").unwrap();
    let resolved = layers.flag("--world", "threads").unwrap().resolve().unwrap();
    let origin = |key| row(&resolved, key).origin.to_string();
    assert_eq!((resolved.cores, origin("platform.cores")), (6, "--set".into()));
    assert_eq!((resolved.settings.threads.of("nvmq"), origin("threads.nvmq")), (3, "--threads".into()));
    assert_eq!(origin("platform.architecture"), "run.toml:2");
    // The architecture switches it off, the file on again.
    assert!(resolved.settings.lock.forwarding);
    assert_eq!(origin("lock.forwarding"), "run.toml:5");
    assert_eq!(resolved.settings.queues, QueueAllocation::Static);
    assert_eq!(origin("firmware.queue_allocation"), "architecture base_deepflash");
    assert_eq!(row(&resolved, "firmware.queue_allocation").value, "\"static\"");
    assert_eq!(origin("device.channels"), "device mlc-1tb");
    assert_eq!(origin("processor.prices.cache_find_entry.slots"), "processor in-order-1ghz");
    assert_eq!(origin("host.depth"), "default");
    let world = World::Threads { threads: 1, apart: threads::Apart::Hardware, timing: false, observed: Some(64) };
    assert_eq!(resolved.world, world);
}

/// With any of them at its longest the drive answers before its host gives it up.
#[test]
fn groups_have_few_threads_unless_the_user_says_how_many() {
    let threads = |resolved: Resolved| {
        let of = |group| resolved.settings.threads.of(group);
        (of("nvmq"), of("trans"), row(&resolved, "threads.nvmq").origin.to_string())
    };
    let drawn = threads(Layers::new().resolve().unwrap());
    assert!(drawn.0 > 2 && drawn.1 > 2, "{drawn:?}");
    assert_eq!(threads(Layers::new().resolve_as_lent().unwrap()), (1, 1, drawn.2.clone()));
    let said = Layers::new().set("threads.trans=3").unwrap().set("run.world_threads=2").unwrap();
    assert_eq!(threads(said.resolve_as_lent().unwrap()), (2, 3, drawn.2));
    for other in ["layered", "naive", "many_layered", "pipessd", "tradition"] {
        let other = Layers::new().flag("--architecture", other).unwrap();
        let usual = other.clone().resolve().unwrap().settings.threads;
        assert_eq!(other.resolve_as_lent().unwrap().settings.threads, usual, "their number is what it is about");
    }
}

#[test]
fn an_instance_a_core_is_as_many_as_the_cores_that_are_asked_for() {
    let threads = |layers: Layers| {
        let resolved = layers.resolve().unwrap();
        let of = |group| resolved.settings.threads.of(group);
        (of("hil"), of("ftl"), resolved.placement.cores(), resolved.idle)
    };
    let naive = || Layers::new().flag("--architecture", "naive").unwrap();
    assert_eq!(threads(naive()), (12, 12, 12, None));
    assert_eq!(threads(naive().flag("--cores", "32").unwrap()), (32, 32, 32, None));
    assert_eq!(threads(naive().text("run.toml", "[platform]\ncores = 1\n").unwrap()), (1, 1, 1, None));
    let said = "22 cores have no thread of naive; --threads gives it more of hil, ftl".to_owned();
    let few = naive().flag("--cores", "32").unwrap().flag("--threads", "hil=10,ftl=10").unwrap();
    assert_eq!(threads(few), (10, 10, 10, Some(said)));
    let idle = |name, cores| {
        Layers::new().flag("--architecture", name).unwrap().flag("--cores", cores).unwrap().resolve().unwrap().idle
    };
    assert_eq!(idle("pipessd", "5").as_deref(), Some("1 core has no thread of pipessd; it can have no more"));
    assert_eq!(idle("deepflash", "48"), None);
}

#[test]
fn what_is_said_of_a_key_is_told_where_it_is_not_the_default() {
    let text = "[host]\ndepth = 16\nentries = 64\n[workload]\npace = \"timed\"\n";
    let layers = Layers::new().text("run.toml", text).unwrap().flag("--depth", "4").unwrap();
    let layers = layers.set("host.depth=16").unwrap();
    let said = layers.said(&["host.depth", "host.entries"]);
    assert_eq!(said, ["run.toml:3: host.entries = 64", "--set host.depth=16"]);
}

#[test]
fn of_two_ways_to_say_a_thing_the_higher_layer_wins() {
    let resolved = resolve("[device]\nover_provisioning = 0.25\n").unwrap();
    assert_eq!(resolved.device.user, Bytes(((1u64 << 40) as f64 / 1.25) as u64 / 4096 * 4096));
    assert_eq!(row(&resolved, "device.user_bytes").value, "\"derived\"");
    let resolved = Layers::new().flag("--duration", "1.5s").unwrap().resolve().unwrap();
    assert_eq!((resolved.phases[0].ios, resolved.phases[0].duration), (None, Some(Span::from_millis(1_500))));
    let both = resolve("[workload]\nduration_ms = 2\nios = 7\n").unwrap();
    assert_eq!((both.phases[0].ios, both.phases[0].duration), (Some(7), Some(Span::from_millis(2))));
}

#[test]
fn phases_share_values_or_have_one_each() {
    let text = "[workload]\nphases = [\"zipf\", \"mixed\"]\nios = [5, \"none\"]\nduration_ms = [\"none\", 0.5]\n\
                zipf_theta = [1.1, \"own\"]\nblock_bytes = \"8k\"\nregion_bytes = \"1MiB\"\nper_second = [\"own\", 1e5]\n";
    let resolved = resolve(text).unwrap();
    let [first, second] = resolved.phases.as_slice() else { panic!("two phases") };
    assert_eq!((first.ios, first.duration, second.ios), (Some(5), None, None));
    assert_eq!(second.duration, Some(Span::from_micros(500)));
    assert_eq!(first.recipe.pattern, workload::Pattern::Zipf { theta: 1.1 });
    assert_eq!(second.recipe.pattern, workload::Pattern::Random);
    assert_eq!([first.parameters.block, second.parameters.block], [Some(Bytes(8192)); 2]);
    assert_eq!(first.parameters.region.unwrap().sectors, 2048);
    assert_eq!([first.parameters.per_second, second.parameters.per_second], [None, Some(1e5)]);
    let one = Layers::new().flag("--workload", "seqread,seqwrite").unwrap().resolve().unwrap();
    assert_eq!(one.phases.len(), 2);
}

#[test]
fn an_architecture_brings_its_own_groups_and_cores() {
    let layers = Layers::new().flag("--architecture", "layered").unwrap();
    let resolved = layers.flag("--threads", "fcmd=4").unwrap().resolve().unwrap();
    assert_eq!(resolved.settings.threads.iter().collect::<Vec<_>>(), [("hil", 1), ("ftl", 1), ("fcmd", 4)]);
    assert_eq!(
        (resolved.cores, resolved.placement.core("ftl", 0), resolved.placement.core("fcmd", 1).0),
        (17, CoreId(0), 2)
    );
    let keys: Vec<&str> = resolved.rows().map(|row| row.key).filter(|key| key.starts_with("threads.")).collect();
    assert_eq!(keys, ["threads.fcmd", "threads.hil", "threads.ftl"]);
}

#[test]
fn threads_can_be_placed_by_hand() {
    let resolved = resolve("[threads]\nilock = 2\n[placement]\nilock = [3, 3]\n").unwrap();
    assert_eq!([0, 1].map(|index| resolved.placement.core("ilock", index)), [CoreId(3); 2]);
    assert_eq!(resolved.placement.core("nvmq", 0), CoreId(0));
}

#[test]
fn namespaces_share_what_hosts_see() {
    let text =
        "[platform]\ndevice = \"small\"\n[device]\nlba_bytes = 4096\nnamespace_bytes = [\"1MiB\", \"rest\", 4096]\n";
    let resolved = resolve(text).unwrap();
    let sectors = resolved.device.user.0 / 512;
    assert_eq!(resolved.device.namespaces, [2048, sectors - 2048 - 8, 8]);
    assert_eq!(resolved.device.format, LbaFormat::B4096);
    assert_eq!(resolved.phases[0].parameters.capacity, 2048);
}

/// Each bad input with the message it gets, in full.
const REFUSALS: &[(&str, &str)] = &[
    ("[platform]\ncores = 61", "run.toml:2: platform.cores is 61; expected 1 to 60: what in-order-1ghz has"),
    (
        "[platform]\ncores = \"many\"",
        "run.toml:2: platform.cores is \"many\"; expected a whole number from 1 to 60: what in-order-1ghz has",
    ),
    ("[platform]\n\ncores = -1", "run.toml:3: platform.cores is -1; expected 1 to 60: what in-order-1ghz has"),
    ("cores = 4", "run.toml:1: unknown key cores; did you mean platform.cores?"),
    ("[threads]\nnvmw = 4", "run.toml:2: unknown key threads.nvmw; did you mean threads.nvmq?"),
    ("\n[devcie]", "run.toml:2: unknown key devcie; did you mean device?"),
    ("[run]\ncolour = 1", "run.toml:2: unknown key run.colour; expected one that `describe` lists"),
    (
        "[platform]\ncores = ",
        "run.toml:2:9: platform.cores has no value; expected a number, a text in quotes, true or false, or a list of these",
    ),
    ("host.depth = 'x", "run.toml:1:16: host.depth: invalid literal string, expected `'`"),
    ("[host] # a table\ndepth = 4\ndepth = 5", "run.toml:3:1: host.depth: duplicate key"),
    ("[host]\n[run]\n[host] # again", "run.toml:3:2: [host] stands twice; expected all its keys in one place"),
    ("[host\ndepth = 4", "run.toml:1:6: unclosed table, expected `]`"),
    (
        "[host]\ndepth = 0x",
        "run.toml:2: host.depth is a number without digits; expected a number, a text in quotes, true or false, or a list of these",
    ),
    ("run = 3", "run.toml:1: run is 3; expected a table"),
    ("[run.seed]\nx = 1", "run.toml:1: run.seed is a table; expected a value"),
    ("[run]\nseed = 1979-05-27", SEED_DATE),
    ("[[run]]\nseed = 1", RUN_LIST),
    ("[run]\nseed = 99999999999999999999", SEED_LARGE),
    (
        "[platform]\narchitecture = \"deepflsh\"",
        "run.toml:2: platform.architecture is \"deepflsh\"; expected one of deepflash, base_deepflash, \
         layered, naive, many_layered, pipessd, tradition",
    ),
    (
        "[platform]\ndevice = \"/mlc\"",
        "run.toml:2: platform.device is \"/mlc\"; expected a file or one of mlc-1tb, slc-512gb, tlc-1.5tb, mlc-4gb, small, \
         pipessd-8ch, pipessd-4ch, pipessd-4ch-half, pipessd-prototype, cosmosplus-mlc, cosmosplus-slc; there is no file /mlc",
    ),
    ("[device]\nchannels = 0", "run.toml:2: device.channels is 0; expected 1 to 256"),
    (
        "[device]\nblocks_per_plane = 1048576",
        "run.toml:2: device.blocks_per_plane is 1048576; expected an array of at most 4294967293 pages; this has 274877906944",
    ),
    (
        "[device]\npage_bytes = \"32k\"\noob_bytes = 1792\nuser_bytes = \"derived\"",
        "run.toml:2: device.page_bytes is \"32k\"; expected a power of two from 512 to 16384: a page has 32 sectors at most",
    ),
    (
        "[device]\npage_bytes = \"32k\"\noob_bytes = 1792\nuser_bytes = \"derived\"\n[platform]\narchitecture = \"naive\"",
        "run.toml:2: device.page_bytes is \"32k\"; expected a power of two from 512 to 16384: a page has 32 sectors at most",
    ),
    (
        "[device]\nuser_bytes = \"2TB\"",
        "run.toml:2: device.user_bytes is \"2TB\"; expected 4096 to 1099511627776 bytes: a page up to the whole array",
    ),
    (
        "[device]\nnamespace_bytes = [\"2TB\"]",
        "run.toml:2: device.namespace_bytes is [\"2TB\"]; expected at most 1000000000000 bytes together",
    ),
    (
        "[device]\nnamespace_bytes = [100]",
        "run.toml:2: device.namespace_bytes is [100]; expected sizes above 0 in multiples of the page of 4096 bytes",
    ),
    (
        "[device.timing]\nread_msb_us = 0",
        "run.toml:2: device.timing.read_msb_us is 0; expected more than nothing and at most 1 s",
    ),
    ("[device.timing]\nbus_mt_per_s = 9600", "run.toml:2: device.timing.bus_mt_per_s is 9600; expected 1 to 4800"),
    (
        "[device.timing]\noob_moved_bytes = 300",
        "run.toml:2: device.timing.oob_moved_bytes is 300; expected at most the out-of-band area",
    ),
    (
        "[device.timing]\nerase_us = \"soon\"",
        "run.toml:2: device.timing.erase_us is \"soon\"; expected a time in us, or a text such as \"1.5ms\"",
    ),
    ("[device.timing]\nsuspend_reads_max = 0", "run.toml:2: device.timing.suspend_reads_max is 0; expected 1 to 1000"),
    (
        "[flash]\nsuspend = true",
        "run.toml:2: flash.suspend is true; expected false: this device cannot suspend (device.timing.suspend_programs_max)",
    ),
    (
        "[lock]\nunit_bytes = \"3k\"",
        "run.toml:2: lock.unit_bytes is \"3k\"; expected a power of two from 512 B to 1 MiB",
    ),
    ("[threads]\nlog = 2", "run.toml:2: threads.log is 2; expected 0 or 1: checkpoints have one order"),
    ("[threads]\nlog = 70_000", "run.toml:2: threads.log is 70000; expected 0 or 1: checkpoints have one order"),
    ("[threads]\nfcmd = 0", "run.toml:2: threads.fcmd is 0; expected 1 to 128"),
    (
        "[cache]\nsize_bytes = \"1TB\"",
        "run.toml:2: cache.size_bytes is \"1TB\"; expected at most 68719476736 bytes: it lies in the memory of this machine",
    ),
    (
        "[host]\nentries = 65536\ndepth = 65535\nqueues = 64\n[controller]\nqueue_entries = 65536",
        "run.toml:3: host.depth is 65535; expected no more than 1048576 commands on all 64 queues",
    ),
    ("[reclaim]\nvictim = \"lazy\"", "run.toml:2: reclaim.victim is \"lazy\"; expected one of greedy, cost_benefit"),
    (
        "[placement]\nilock = [0]",
        "run.toml:2: placement.ilock is [0]; expected one core for each of the 6 threads of ilock, not 1",
    ),
    ("[placement]\nlog = [12]", "run.toml:2: placement.log is [12]; expected cores from 0 to 11"),
    ("[host]\ndepth = 64\nentries = 64", "run.toml:2: host.depth is 64; expected 1 to 63: one less than host.entries"),
    ("[host]\ndepth = 65536", "run.toml:2: host.depth is 65536; expected 1 to 65535"),
    ("[controller]\nqueue_entries = 8\n[host]\ndepth = 8", "run.toml:4: host.depth is 8; expected 1 to 7"),
    ("[host]\nqueues = 65536", "run.toml:2: host.queues is 65536; expected 1 to 65535"),
    (
        "[controller]\nqueues = \"all\"",
        "run.toml:2: controller.queues is \"all\"; expected a whole number from 1 to 65535, or \"auto\"",
    ),
    (
        "[run]\ncheck = true",
        "run.toml:2: run.check is true; expected false, or run.payload = \"fingerprint\" or \"full\"",
    ),
    ("[run]\ncheck = 1", "run.toml:2: run.check is 1; expected true or false, or \"auto\""),
    (
        "[run]\nprecondition = \"rand\"",
        "run.toml:2: run.precondition is \"rand\"; expected none, seq, or rand:TIMES with up to 100 times all pages",
    ),
    (
        "[controller]\ntransfer_bytes = 4096",
        "run.toml:2: controller.transfer_bytes is 4096; expected a power of two from 8192 to 1048576",
    ),
    (
        "[controller]\nweights = [1, 2]",
        "run.toml:2: controller.weights is [1, 2]; expected three weights from 1 to 256: high, medium, low",
    ),
    (
        "[workload]\nios = [1, 2, 3]",
        "run.toml:2: workload.ios is [1, 2, 3]; expected one value, or 2: one for each phase",
    ),
    (
        "[workload]\nios = \"none\"",
        "run.toml:2: workload.ios is \"none\"; expected at least 1, or \"none\" with a workload.duration_ms",
    ),
    (
        "[workload]\nread_fraction = 1.5",
        "run.toml:2: workload.read_fraction is 1.5; expected a number from 0 to 1 (0.1 is 10 %)",
    ),
    (
        "[workload]\ndeallocate_fraction = 2",
        "run.toml:2: workload.deallocate_fraction is 2; expected a number from 0 to 1 (0.1 is 10 %)",
    ),
    (
        "[workload]\nblock_bytes = 100",
        "run.toml:2: workload.block_bytes is 100; expected a multiple of 512 bytes from 512 to 1048576",
    ),
    ("\"host.queues\" = 3", "run.toml:1: unknown key \"host.queues\"; did you mean host.queues?"),
    ("[host]\n\"a.b\" = 3", "run.toml:2: unknown key host.\"a.b\"; expected one that `describe` lists"),
    ("[processor]\ncores = 65", "run.toml:2: processor.cores is 65; expected 1 to 64"),
    (
        "[processor.prices]\nnvmq_parse = {slots = 1}",
        "run.toml:2: unknown key processor.prices.nvmq_parse; did you mean processor.prices.nvmq_parse_command?",
    ),
];

const SEED_DATE: &str =
    "run.toml:2: run.seed is a date; expected a number, a text in quotes, true or false, or a list of these";
const RUN_LIST: &str = "run.toml:1: run is a list of tables; expected one table, in single brackets, or a value";
const SEED_LARGE: &str = "run.toml:2: run.seed is a number beyond 2^63 - 1; \
                          expected a number, a text in quotes, true or false, or a list of these";

#[test]
fn every_refusal_names_file_line_key_and_expectation() {
    let found: Vec<(&str, String)> = REFUSALS.iter().map(|(text, _)| (*text, refusal(text))).collect();
    for ((text, found), (_, expected)) in found.iter().zip(REFUSALS) {
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn words_of_the_command_line_are_refused_by_name() {
    let set = |assignment: &str| Layers::new().set(assignment).and_then(Layers::resolve).err().unwrap().to_string();
    assert_eq!(set("cores"), "--set: found cores; expected KEY=VALUE");
    assert_eq!(set("platform.core=1"), "--set: unknown key platform.core; did you mean platform.cores?");
    assert_eq!(set("host.depth=0"), "--set: host.depth is 0; expected 1 to 65535");
    let flag = |flag, value| Layers::new().flag(flag, value).and_then(Layers::resolve).err().unwrap().to_string();
    assert_eq!(
        flag("--cores", "x"),
        "--cores: platform.cores is \"x\"; expected a whole number from 1 to 60: what in-order-1ghz has"
    );
    assert_eq!(flag("--threads", ""), "--threads: threads is \"\"; expected GROUP=N, separated by commas");
    assert_eq!(flag("--threads", "4"), "--threads: threads is 4; expected GROUP=N, separated by commas");
    assert_eq!(flag("--threads", "nvm=4"), "--threads: unknown key threads.nvm; did you mean threads.nvmq?");
    assert_eq!(flag("--threads", "nvmq=4,nvmq=5"), "--threads: threads.nvmq is given twice; expected each group once");
    assert_eq!(
        flag("--timing", "maybe"),
        "--timing: run.timing is \"maybe\"; expected true or false (--timing on or off)"
    );
    assert_eq!(set("platform=3"), "--set: platform is a table; expected one of its keys, as in platform.KEY");
    assert_eq!(set("journal.window=0"), "--set: journal.window is 0; expected more than 0");
    let media = |key: &str, value: &str| {
        let faults = Layers::new().set(&format!("device.media.faults={}", key.starts_with("code"))).unwrap();
        let set = faults.set(&format!("device.media.{key}={value}")).and_then(Layers::resolve);
        set.err().unwrap().to_string()
    };
    assert_eq!(media("rber_base", "2"), "--set: device.media.rber_base is 2; expected a number from 0 to 0.5");
    assert_eq!(media("days", "1e300"), "--set: device.media.days is 1e300; expected a number from 0 to 100000");
    assert_eq!(media("code_correctable", "0"), "--set: device.media.code_correctable is 0; expected at least 1");
    assert_eq!(set("device.power.energy_j=-1"), "--set: device.power.energy_j is -1; expected a number above 0");
    let groups = "nvmq, ilock, cache, trans, log, bgc, fcmd";
    let foreign = format!("--threads: threads.hil is 1; expected a group of deepflash: {groups}");
    assert_eq!(flag("--threads", "hil=1"), foreign);
    let unknown = flag("--threads", "pumps=4");
    let expected =
        format!("expected a group of the architecture: deepflash has {groups}; base_deepflash has {groups}; ");
    assert!(unknown.contains(&expected) && unknown.contains("layered has hil, ftl, fcmd"), "{unknown}");
    assert!(flag("--core", "4").starts_with("--core: no such flag; expected one of --architecture, --device,"));
    let unreadable = Layers::new().file(std::path::Path::new("no/such.toml")).err().unwrap().to_string();
    assert!(
        unreadable.starts_with("no/such.toml: ") && unreadable.ends_with("; expected a readable file"),
        "{unreadable}"
    );
}

#[test]
fn files_of_devices_and_processors_are_checked_like_any_other() {
    let folder = std::env::temp_dir().join(format!("flashloom-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let resolved = |flag: &str, name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        let path = path.display().to_string();
        let result = Layers::new().flag(flag, &path).unwrap().resolve();
        result.map_err(|error| error.to_string().replace(&path, name))
    };
    let mlc = DEVICES[0].text;
    let ok = resolved("--device", "mine.toml", &mlc.replace("channels = 16\n", "channels = 8\n")).err().unwrap();
    assert!(ok.starts_with("mine.toml:16: device.user_bytes is \"1TB\"; expected 4096 to 549755813888 bytes"), "{ok}");
    let ok = resolved("--device", "mine.toml", &mlc.replace("read_lsb_us = 53", "read_lsb_us = 50")).unwrap();
    assert_eq!((ok.device.name.as_str(), ok.device.timing.read[0]), ("mine", Span::from_micros(50)));
    let missing = resolved("--device", "mine.toml", &mlc.replace("erase_us", "resume_overhead_us")).err().unwrap();
    assert_eq!(missing, "device.timing.erase_us is missing; expected it in mine.toml");
    let foreign = resolved("--device", "mine.toml", "[run]\nseed = 1\n").err().unwrap();
    let expected =
        "mine.toml:2: run.seed is misplaced; expected in a configuration file; here stand keys of [device] only";
    assert_eq!(foreign, expected);
    let without = PROCESSORS[0].text.lines().filter(|line| !line.starts_with("ilock_search"));
    let without = without.collect::<Vec<_>>().join("\n");
    let missing = resolved("--processor", "core.toml", &without).err().unwrap();
    let expected = "processor.prices.ilock_search.slots is missing; expected it in core.toml, as ilock_search = \
                    { slots = N, stall_ns = N } below [processor.prices]";
    assert_eq!(missing, expected);
    let here = std::env::current_dir().unwrap().join("gone.toml");
    for (flag, name) in [("--device", "gone.toml"), ("--processor", "gone.toml"), ("--workload", "gone.toml")] {
        let said = Layers::new().flag(flag, name).unwrap().resolve().err().unwrap().to_string();
        assert!(said.ends_with(&format!("there is no file {}", here.display())), "{said}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Values that no key means, or that some do.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        (-5i64..70_000).prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| toml::Value::Float(number).to_string()),
        "[a-z0-9:,.]{0,6}".prop_map(|text| format!("\"{text}\"")),
        proptest::sample::select(vec![
            "true",
            "false",
            "[]",
            "[1, 2]",
            "[[]]",
            "{}",
            "1979-05-27",
            "\"none\"",
            "\"own\"",
            "\"rest\"",
            "\"required\"",
            "\"derived\"",
            "\"small\"",
            "\"full\"",
            "inf",
            "nan",
            "0",
            "1e300",
            "\"9999999TB\"",
            "\"/\"",
            "[\"/\"]",
        ])
        .prop_map(str::to_string),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]a-z.=\"#0-9\\n {},'_\\\\-]{0,80}") {
        if let Err(error) = resolve(&text) {
            prop_assert!(error.to_string().starts_with("run.toml:"), "{error}");
        }
    }

    #[test]
    fn any_values_of_known_keys_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 1..4),
    ) {
        let keys = &schema::schema().keys;
        let mut layers = Layers::new().flag("--device", "small").unwrap();
        for (index, value) in &changes {
            layers = layers.set(&format!("{}={value}", index.get(keys).path)).unwrap();
        }
        match layers.resolve() {
            Ok(resolved) => {
                let again = resolve(&resolved.to_toml()).unwrap();
                prop_assert_eq!(contents(&again), contents(&resolved));
            }
            Err(error) => prop_assert!(error.to_string().contains("expected"), "{}", error),
        }
    }
}
