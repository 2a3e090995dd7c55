//! `describe`: what a run would be made of, and where each value comes from. Nothing is run.

use crate::Shell;
use crate::arguments::Shared;
use crate::failure::unusable;
use crate::output::is_standard_output;
use crate::picture::{Group, Link, picture};
use crate::run::check_report;
use crate::table::table;
use clap::Args;
use firmware::architecture::Drawing;
use flash::page_types;
use report::{bandwidth, nanos, of};
use rig::config::{Resolved, Row};
use serde::Serialize;
use serde_json::json;
use stage::Place;
use std::collections::BTreeMap;
use std::path::PathBuf;
use units::{Bytes, Span};

/// What `describe` is told.
#[derive(Args)]
pub(crate) struct DescribeArguments {
    /// Configuration file
    #[arg(value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    #[command(flatten)]
    shared: Shared,
    /// Writes the whole configuration as a file that `run` takes, and nothing else
    #[arg(long)]
    toml: bool,
}

impl DescribeArguments {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> anyhow::Result<()> {
        let files: Vec<PathBuf> = self.config.iter().cloned().collect();
        if self.toml && self.shared.json.as_deref().is_some_and(is_standard_output) {
            return Err(unusable("--toml: expected --json FILE beside it; both would go to standard output", ""));
        }
        let resolved = self.shared.layers(&files)?.resolve()?;
        check_report(&self.shared)?;
        if !self.toml {
            self.shared.note_idle(shell, &["--timeline"], "describe runs nothing")?;
        }
        let drawing = resolved.draw(&resolved.plan())?;
        shell.follows(&resolved)?;
        let json = shell.json(self.shared.json.as_deref())?;
        let description = Description::of(&resolved, &drawing);
        let text = if self.toml { resolved.to_toml() } else { description.text(shell) };
        shell.say(&text)?;
        shell.put(json, &description.to_json())
    }
}

/// What is said of a run.
struct Description<'a> {
    resolved: &'a Resolved,
    groups: Vec<Group>,
    links: Vec<Link>,
    tables: Vec<Table>,
    bounds: Vec<Limit>,
}

/// A table that stages share.
#[derive(Serialize)]
struct Table {
    name: &'static str,
    bytes: u64,
}

/// What the hardware alone allows, whatever the firmware.
#[derive(Serialize)]
struct Limit {
    operation: &'static str,
    resource: String,
    /// Requests of 4 KiB at random places, each of which takes a page of its own or several.
    iops: f64,
    /// Bytes a second of whole pages, which requests in sequence share: the buffer has all parts of a page when it goes to flash.
    bandwidth: f64,
}

impl<'a> Description<'a> {
    fn of(resolved: &'a Resolved, drawing: &Drawing) -> Self {
        let (groups, links) = plan(drawing);
        Description { resolved, groups, links, tables: tables(resolved, drawing), bounds: limits(resolved) }
    }

    fn text(&self, shell: &Shell<'_>) -> String {
        let Resolved { architecture, device, processor, cores, .. } = self.resolved;
        let mut text = format!("{}\n", shell.strong(&format!("{}: {}", architecture.name(), architecture.summary())));
        text += &format!("\n{}\n", picture(&self.groups, &self.links));
        text += &format!("{}\n", shell.strong("Firmware threads"));
        let mut rows = vec![["group", "threads", "on cores", "sends to"].map(String::from).to_vec()];
        for group in self.groups.iter().filter(|group| !group.cores.is_empty()) {
            let to = self.links.iter().filter(|link| link.from == group.name).map(|link| link.to);
            let to = to.collect::<Vec<_>>().join(", ");
            rows.push(vec![group.name.into(), group.threads.to_string(), ranges(&group.cores), to]);
        }
        text += &table(shell.page, &rows, &[1]);
        text += &format!("\n{}\n", shell.strong("Hardware"));
        let shape = device.geometry.shape();
        let hardware = [
            ("device", format!("{}: {}", device.name, device.summary)),
            (
                "array",
                format!(
                    "{} of {}: {}",
                    [
                        of(shape.channels.into(), "channel"),
                        of(shape.packages_per_channel.into(), "package"),
                        of(shape.dies_per_package.into(), "die"),
                        of(shape.planes_per_die.into(), "plane"),
                        of(shape.blocks_per_plane.into(), "block"),
                        of(shape.pages_per_block.into(), "page"),
                    ]
                    .join(" x "),
                    shape.page.binary(),
                    device.geometry.capacity()
                ),
            ),
            ("capacity", format!("{} in {}", device.user, of(device.namespaces.len() as u64, "namespace"))),
            (
                "link",
                format!(
                    "{} each way after packet headers, {} one way",
                    device.link.effective(),
                    nanos(device.link.flight.nanos_f64())
                ),
            ),
            (
                "processor",
                format!(
                    "{}: {cores} of {}, {} each, {} MHz",
                    processor.name,
                    of(processor.cores.into(), "core"),
                    of(processor.threads_per_core.into(), "hardware thread"),
                    processor.clock.0 / 1_000_000
                ),
            ),
        ];
        let rows: Vec<Vec<String>> = hardware.map(|(name, text)| vec![name.to_owned(), text]).into();
        text += &table(shell.page, &rows, &[]);
        text +=
            &format!("\n{}\n", shell.strong("What the hardware alone allows, where nothing is found in the buffer"));
        let mut rows = vec![["", "", "random 4 KB", "whole pages"].map(String::from).to_vec()];
        rows.extend(self.bounds.iter().map(|limit| {
            vec![limit.operation.into(), limit.resource.clone(), count(limit.iops), bandwidth(limit.bandwidth)]
        }));
        text += &table(shell.page, &rows, &[2, 3]);
        text += &format!("\n{}\n", shell.strong("Tables that stages share (memory is taken where it is touched)"));
        let tables = self.tables.iter().map(|table| vec![table.name.into(), Bytes(table.bytes).to_string()]);
        text += &table(shell.page, &tables.collect::<Vec<_>>(), &[1]);
        text + &format!("\n{}\n{}", shell.strong("Configuration"), configuration(self.resolved))
    }

    fn to_json(&self) -> serde_json::Value {
        let rows = self.resolved.rows().map(|Row { key, value, origin, note, .. }| {
            json!({"key": key, "value": value, "origin": origin.to_string(), "note": note})
        });
        json!({
            "architecture": self.resolved.architecture.name(),
            "device": self.resolved.device.name,
            "processor": self.resolved.processor.name,
            "cores": self.resolved.cores,
            "groups": self.groups,
            "links": self.links,
            "tables": self.tables,
            "hardware_bounds": self.bounds,
            "configuration": rows.collect::<Vec<_>>(),
        })
    }
}

/// Every key below its table, with value and origin, in columns that no long value moves.
fn configuration(resolved: &Resolved) -> String {
    let (mut text, mut table) = (String::new(), String::new());
    for Row { key, value, origin, .. } in resolved.rows() {
        let (header, name) = key.split_once('.').unwrap_or(("", key));
        if header != table {
            table = header.to_owned();
            text += &format!("  [{table}]\n");
        }
        text += &format!("  {name:<36} {value:<28} {origin}\n");
    }
    text
}

/// The plan by groups, in the order in which they were drawn.
fn plan(drawing: &Drawing) -> (Vec<Group>, Vec<Link>) {
    let parts = drawing.blueprint.parts();
    let mut groups: Vec<Group> = Vec::new();
    for part in parts {
        let at = groups.iter().position(|group| group.name == part.group).unwrap_or_else(|| {
            groups.push(Group { name: part.group, threads: 0, cores: Vec::new() });
            groups.len() - 1
        });
        groups[at].threads += 1;
        if let Place::Core(core) = part.place {
            groups[at].cores.push(core.0);
        }
    }
    let order = |name: &str| groups.iter().position(|group| group.name == name).unwrap_or(usize::MAX);
    let mut links: BTreeMap<(usize, usize), Link> = BTreeMap::new();
    for edge in drawing.blueprint.edges() {
        let (from, to) = (parts[edge.from.index()].group, parts[edge.to.index()].group);
        let link = links.entry((order(from), order(to))).or_insert(Link { from, to, addresses: 0 });
        link.addresses += 1;
    }
    (groups, links.into_values().collect())
}

fn tables(resolved: &Resolved, drawing: &Drawing) -> Vec<Table> {
    let tables = &drawing.tables;
    let total = drawing.blueprint.memory.reserved().0;
    let wide = |words: usize| words as u64 * 8;
    let frames = u64::from(tables.frames.count()) * resolved.drive.page_words() as u64 * 8;
    let mut named = vec![
        Table { name: "logical to physical map", bytes: u64::from(resolved.drive.pages()) * 4 },
        Table { name: "page buffers", bytes: frames },
        Table { name: "buffer tags", bytes: wide(tables.tags.len()) },
        Table {
            name: "queue buffers",
            bytes: wide(tables.sq_buffer.len() + tables.cq_buffer.len() + tables.tickets.len()),
        },
        Table { name: "PRP lists", bytes: wide(tables.lists.len()) },
    ];
    let rest = total.saturating_sub(named.iter().map(|table| table.bytes).sum());
    named.push(Table { name: "block tables, labels, counters, locks", bytes: rest });
    named.push(Table { name: "all", bytes: total });
    named
}

const A_PLANE: &str = "flash dies, a plane at a time";

/// The rates at which bus, dies and link would be busy all the time.
fn limits(resolved: &Resolved) -> Vec<Limit> {
    let (device, timing) = (&resolved.device, &resolved.device.timing);
    let shape = device.geometry.shape();
    let pages_each = (4096.0 / shape.page.0 as f64).max(1.0);
    let (channels, dies) = (f64::from(shape.channels), f64::from(device.geometry.die_count()));
    let page = shape.page.0 + timing.oob_moved.0;
    let wanted = if resolved.architecture.reads_pieces() { flash::PIECE.0.min(shape.page.0) } else { shape.page.0 };
    let read = timing.bus.beats((page * wanted).div_ceil(shape.page.0));
    let cycles = |count: u32| timing.cycle * u64::from(count);
    let mean = |times: &[Span; 3]| {
        let total: Span = page_types(shape.kind).map(|kind| times[kind as usize]).sum();
        total.secs_f64() / f64::from(shape.kind.bits())
    };
    let read_bus = read + cycles(timing.cycles.read + timing.cycles.read_out);
    let program_bus = timing.bus.beats(page) + cycles(timing.cycles.program + timing.cycles.status);
    let link = 1.0 / device.link.occupies(4096).secs_f64();
    let whole = timing.bus.beats(page) + cycles(timing.cycles.read + timing.cycles.read_out);
    let (planes, together) = match resolved.settings.flash.multi_plane {
        true => (u64::from(shape.planes_per_die), "flash dies, all planes at a time"),
        false => (1, A_PLANE),
    };
    let reads = mean(&timing.read);
    let programs = mean(&timing.program) + (timing.further_plane * (planes - 1)).secs_f64();
    let commands = cycles(timing.cycles.program) * planes + cycles(timing.cycles.status);
    let programs_bus = timing.bus.beats(page * planes) + commands;
    // Without cache commands a die does nothing else while its own data are on the bus.
    let overlaps = timing.cache_commands && resolved.settings.flash.cache_commands;
    let die = |array: f64, bus: Span| if overlaps { array } else { array + bus.secs_f64() };
    // Of pages a second, in part and whole.
    let limit = |operation, resource: &str, parts: f64, pages: f64| {
        let (iops, bandwidth) = (parts / pages_each, pages * shape.page.0 as f64);
        Limit { operation, resource: resource.into(), iops, bandwidth }
    };
    let even = |operation, resource: &str, pages: f64| limit(operation, resource, pages, pages);
    let link = |operation| Limit { operation, resource: "host link".into(), iops: link, bandwidth: link * 4096.0 };
    vec![
        limit("read", "flash buses", channels / read_bus.secs_f64(), channels / whole.secs_f64()),
        limit("read", A_PLANE, dies / die(reads, read_bus), dies / die(reads, whole)),
        link("read"),
        even("program", "flash buses", channels / program_bus.secs_f64()),
        even("program", together, dies * planes as f64 / die(programs, programs_bus)),
        link("program"),
    ]
}

/// `0-11`, or `0, 3-5`.
fn ranges(cores: &[u16]) -> String {
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|a, b| a + 1 == *b);
    let text = |run: &[u16]| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    runs.map(text).collect::<Vec<_>>().join(", ")
}

/// `1.36 M`.
fn count(iops: f64) -> String {
    match iops {
        iops if iops >= 1e6 => format!("{:.2} M IOPS", iops / 1e6),
        iops if iops >= 1e3 => format!("{:.0} k IOPS", iops / 1e3),
        iops => format!("{iops:.0} IOPS"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rig::config::Layers;

    /// The small drive has 8 dies of 2 planes, and a page takes 10.8 us on the bus.
    #[test]
    fn dies_allow_what_their_arrays_and_their_own_data_leave() {
        let of = |sets: &[&str]| {
            let layers = Layers::new().flag("--device", "small").expect("a device");
            let layers = sets.iter().try_fold(layers, |layers, set| layers.set(set)).expect("keys");
            let limits = limits(&layers.resolve().expect("a configuration"));
            let dies = limits.into_iter().filter(|limit| limit.resource.starts_with("flash dies"));
            dies.map(|limit| (limit.resource, limit.iops.round())).collect::<Vec<_>>()
        };
        let named = |read: f64, (what, program): (&str, f64)| {
            [(A_PLANE.to_owned(), read.round()), (what.to_owned(), program.round())]
        };
        let (all, cycle) = ("flash dies, all planes at a time", 0.025);
        let read = 8.0 / (53.0 + 14.0 * cycle + 10.8) * 1e6;
        let program =
            |planes: f64, array: f64| 8.0 * planes / (array + planes * (7.0 * cycle + 10.8) + 2.0 * cycle) * 1e6;
        assert_eq!(of(&[]), named(read, (all, program(2.0, 900.0))));
        let further = "device.timing.further_plane_us=100";
        assert_eq!(of(&[further]), named(read, (all, program(2.0, 1_000.0))));
        assert_eq!(of(&[further, "flash.multi_plane=false"]), named(read, (A_PLANE, program(1.0, 900.0))));
        // A device with cache commands, of which firmware makes no use, and one of which it does.
        let able = "device.timing.cache_commands=true";
        assert_eq!(of(&[able]), of(&[]));
        assert_eq!(of(&[able, further, "flash.cache_commands=true"]), named(8.0e6 / 53.0, (all, 16.0e6 / 1_000.0)));
    }
}
