//! The firmware's settings as keys: read from them, and written back where an architecture changes them.

use super::layered::{Layer, Layered, Setting};
use super::schema::{Key, schema};
use super::value::Value;
use super::{ConfigError, Origin};
use crate::config::field::Field;
use firmware::architecture::{Architecture, Placement, PlacementError, ThreadCounts};
use firmware::{
    AddressSplit, BlockDeal, CacheSettings, FlashSettings, JournalSettings, LockSettings, MappingScheme, PartCounts,
    PipelineSettings, QueueAllocation, ReclaimSettings, Settings, VictimPolicy,
};
use units::{Bytes, CoreId, Span};

/// The largest burst buffer.
const BUFFER_MAX: Bytes = Bytes::mib(64 << 10);
/// Most frames beyond the buffer's entries.
const FRAMES_MAX: u32 = 1 << 20;

/// Settings before any key is read: every field is replaced.
const BLANK: Settings = Settings {
    threads: ThreadCounts::NONE,
    parts: PartCounts { nvmq: 0, ilock: 0, cache: 0, trans: 0, log: 0, bgc: 0, fcmd: 0 },
    queues: QueueAllocation::Static,
    commands: 0,
    frames: 0,
    page_window: 0,
    lock: LockSettings { unit: Bytes(0), forwarding: false, stalls: false, forwarding_lead: 0, regions: 0 },
    cache: CacheSettings { size: Bytes(0), non_blocking: false, bypass: false, spare_frames: 0, lines_per_lock: 0 },
    pipeline: PipelineSettings { poll: Span::ZERO },
    split: AddressSplit::Plain,
    deal: BlockDeal::Interleaved,
    mapping: MappingScheme::Page,
    reclaim: ReclaimSettings {
        victim: VictimPolicy::Greedy,
        background: false,
        idle: Span::ZERO,
        background_free: 0.0,
        window: 0,
        window_per_group: 0,
        victims: 0,
        paced: false,
        wear_gap: 0,
        wear_share: 0.0,
    },
    journal: JournalSettings {
        interval: Span::ZERO,
        only_when_idle: false,
        patience: Span::ZERO,
        busy_share: 0.0,
        window: 0,
        window_per_group: 0,
    },
    flash: FlashSettings {
        multi_plane: false,
        gather: Span::ZERO,
        suspend: false,
        cache_commands: false,
        ahead: false,
    },
    mutation: None,
};

macro_rules! keys {
    ($($key:literal => $($field:ident).+;)*) => {
        #[cfg(test)]
        const KEYS: &[&str] = &[$($key),*];

        fn read(from: &Layered, architecture: &dyn Architecture) -> Result<Settings, ConfigError> {
            let mut settings = BLANK;
            $(settings.$($field).+ = from.get($key)?;)*
            Ok(settings.staffed(architecture, threads(from, architecture)?))
        }

        fn differences(before: &Settings, after: &Settings, origin: &Origin) -> Layer {
            let mut layer = Layer::new();
            $(if before.$($field).+ != after.$($field).+ {
                let value = after.$($field).+.write($key);
                let index = schema().find($key).expect("every field has its key");
                layer.push((index, Setting { value, origin: origin.clone() }));
            })*
            layer
        }
    };
}

keys! {
    "firmware.queue_allocation" => queues;
    "firmware.commands" => commands;
    "firmware.frames" => frames;
    "firmware.page_window" => page_window;
    "firmware.address_split" => split;
    "firmware.block_deal" => deal;
    "firmware.mapping" => mapping;
    "lock.unit_bytes" => lock.unit;
    "lock.forwarding" => lock.forwarding;
    "lock.stalls" => lock.stalls;
    "lock.forwarding_lead" => lock.forwarding_lead;
    "lock.regions" => lock.regions;
    "cache.size_bytes" => cache.size;
    "cache.non_blocking" => cache.non_blocking;
    "cache.bypass" => cache.bypass;
    "cache.spare_frames" => cache.spare_frames;
    "cache.lines_per_lock" => cache.lines_per_lock;
    "pipeline.poll_ns" => pipeline.poll;
    "reclaim.victim" => reclaim.victim;
    "reclaim.background" => reclaim.background;
    "reclaim.idle_ms" => reclaim.idle;
    "reclaim.background_free" => reclaim.background_free;
    "reclaim.window" => reclaim.window;
    "reclaim.window_per_group" => reclaim.window_per_group;
    "reclaim.victims" => reclaim.victims;
    "reclaim.paced" => reclaim.paced;
    "reclaim.wear_gap" => reclaim.wear_gap;
    "reclaim.wear_share" => reclaim.wear_share;
    "journal.interval_ms" => journal.interval;
    "journal.only_when_idle" => journal.only_when_idle;
    "journal.patience_ms" => journal.patience;
    "journal.busy_share" => journal.busy_share;
    "journal.window" => journal.window;
    "journal.window_per_group" => journal.window_per_group;
    "flash.multi_plane" => flash.multi_plane;
    "flash.gather_us" => flash.gather;
    "flash.suspend" => flash.suspend;
    "flash.cache_commands" => flash.cache_commands;
    "flash.ahead" => flash.ahead;
}

/// Tables that have a key for each group of threads.
const GROUPED: [&str; 2] = ["threads", "placement"];

/// The threads of an architecture's groups.
fn threads(from: &Layered, architecture: &dyn Architecture) -> Result<ThreadCounts, ConfigError> {
    let mut threads = ThreadCounts::new(architecture.groups());
    for group in architecture.groups() {
        let key = format!("threads.{}", group.name);
        let is_whole = matches!(from.setting(&key).value, Value::Integer(_));
        // A number that its type does not hold is none that the group may have.
        let refused = |error| if is_whole { from.refuse(&key, group.expected()) } else { error };
        threads = threads.with(group.name, from.get(&key).map_err(refused)?);
    }
    Ok(threads)
}

/// Whether a key is for a group of threads that an architecture does not have.
pub(super) fn is_foreign(key: &str, architecture: &dyn Architecture) -> bool {
    let group = key.split_once('.').filter(|(table, _)| GROUPED.contains(table)).map(|(_, group)| group);
    group.is_some_and(|group| architecture.groups().iter().all(|own| own.name != group))
}

/// What a key means to an architecture: groups of one name do not do the same in each.
pub(super) fn note(key: &'static Key, architecture: &dyn Architecture) -> &'static str {
    let group = key.path.strip_prefix("threads.");
    let own = architecture.groups().iter().find(|own| group == Some(own.name));
    own.map_or(&key.note, |own| own.summary)
}

/// Refuses threads or places for a group that the architecture does not have.
fn check_groups(from: &Layered, architecture: &dyn Architecture) -> Result<(), ConfigError> {
    let own = Origin::Architecture(architecture.name()).layer();
    let is_given = |setting: &Setting| setting.origin.layer() > own;
    match from.iter().find(|(key, setting)| is_given(setting) && is_foreign(&key.path, architecture)) {
        None => Ok(()),
        Some((key, _)) => {
            let groups: Vec<&str> = architecture.groups().iter().map(|group| group.name).collect();
            let expected = format!("a group of {}: {}", architecture.name(), groups.join(", "));
            Err(from.refuse(&key.path, expected))
        }
    }
}

/// What makes an architecture what it is, as a layer over those so far.
pub(super) fn architecture_layer(from: &Layered, architecture: &dyn Architecture) -> Result<Layer, ConfigError> {
    let origin = Origin::Architecture(architecture.name());
    let mut layer = Layer::new();
    for group in architecture.groups() {
        let key = format!("threads.{}", group.name);
        let value = group.threads.write(&key);
        if from.setting(&key).value != value {
            let index = schema().find(&key).expect("every group has its key");
            layer.push((index, Setting { value, origin: origin.clone() }));
        }
    }
    let cores = architecture.cores().map(|cores| cores.write("platform.cores"));
    if let Some(value) = cores.filter(|value| from.setting("platform.cores").value != *value) {
        let index = schema().find("platform.cores").expect("it is a key");
        layer.push((index, Setting { value, origin: origin.clone() }));
    }
    let before = read(from, architecture)?;
    layer.extend(differences(&before, &architecture.settle(before), &origin));
    Ok(layer)
}

/// The settings, with the relations that every architecture needs.
pub(super) fn settings(from: &Layered, architecture: &dyn Architecture, page: Bytes) -> Result<Settings, ConfigError> {
    check_groups(from, architecture)?;
    let settings = read(from, architecture)?;
    settings.check(architecture, page).map_err(|error| from.refuse(&error.key, error.expected))?;
    if settings.cache.size > BUFFER_MAX {
        let expected = format!("at most {} bytes: it lies in the memory of this machine", BUFFER_MAX.0);
        return Err(from.refuse("cache.size_bytes", expected));
    }
    if settings.cache.spare_frames > FRAMES_MAX {
        return Err(from.refuse("cache.spare_frames", format!("at most {FRAMES_MAX}")));
    }
    Ok(settings)
}

/// The core of every thread: as the architecture deals them, except for groups with a list.
pub(super) fn placement(
    from: &Layered,
    architecture: &dyn Architecture,
    threads: ThreadCounts,
    cores: u16,
) -> Result<Placement, ConfigError> {
    let refuse_cores = |error: PlacementError| from.refuse("platform.cores", error.to_string());
    let mut placement = architecture.place(threads, cores).map_err(refuse_cores)?;
    for (group, _) in threads.iter() {
        let key = format!("placement.{group}");
        let value = &from.setting(&key).value;
        if value.is_text("dealt") {
            continue;
        }
        let list = Vec::<u16>::read(value, &key)
            .ok_or_else(|| from.refuse(&key, "a list with the core of each thread, or \"dealt\""))?;
        if list.iter().any(|core| *core >= cores) {
            return Err(from.refuse(&key, format!("cores from 0 to {}", cores - 1)));
        }
        let list = list.into_iter().map(CoreId).collect();
        placement = placement.with(group, list).map_err(|error| from.refuse(&key, error.to_string()))?;
    }
    Ok(placement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    /// A field without a key would keep its blank value unnoticed.
    #[test]
    fn every_field_of_the_settings_has_a_key() {
        let fields = format!("{BLANK:?}").replace("Span(0)", "0").replace("Bytes(0)", "0");
        // Groups of threads have keys by architecture; parts follow from them. A planted bug is for checks alone.
        let without = ["groups", "counts", "mutation"].len() + 7;
        let structures = fields.matches(" { ").count() - 1;
        assert_eq!(fields.matches(": ").count() - structures, KEYS.len() + without, "{fields}");
    }

    /// The head of a checkpoint, on the shortest page, has no word for each of so many: what is refused is the setting that says how many.
    #[test]
    fn too_many_parts_of_translation_are_refused_at_the_setting_that_says_how_many() {
        for (architecture, key) in
            [("deepflash", "threads.trans"), ("many_layered", "threads.instance"), ("naive", "lock.regions")]
        {
            let layers = Layers::new().flag("--architecture", architecture).unwrap().flag("--device", "small").unwrap();
            let layers = layers.set("device.page_bytes=512").unwrap().set(&format!("{key}=63")).unwrap();
            let message = layers.resolve().err().map_or_else(String::new, |error| error.to_string());
            let expected = format!(
                "{key} is 63; expected at most 62 threads of address translation, for the head of a checkpoint"
            );
            assert!(message.contains(&expected), "{architecture}: {message}");
        }
    }

    #[test]
    fn a_group_is_what_its_own_architecture_says_of_it() {
        for architecture in firmware::architecture::ARCHITECTURES {
            let resolved = Layers::new().flag("--architecture", architecture.name()).unwrap().resolve().unwrap();
            let notes: Vec<_> = resolved.rows().map(|row| (row.key, row.note)).collect();
            let whole = resolved.to_toml();
            for group in architecture.groups() {
                let key = format!("threads.{}", group.name);
                assert!(notes.contains(&(&key, group.summary)), "{}: {notes:?}", architecture.name());
                let line = whole.lines().find(|line| line.starts_with(&format!("{} = {} ", group.name, group.threads)));
                let line = line.unwrap_or_else(|| panic!("{key} of {}: {whole}", architecture.name()));
                assert!(line.ends_with(&format!("; {}", group.summary)), "{line}");
            }
        }
    }

    #[test]
    fn a_checkpoint_has_no_more_pages_under_way_than_there_is_memory_for() {
        let of = |pages: u16| {
            let layers = Layers::new().set(&format!("journal.window_per_group={pages}")).unwrap();
            layers.resolve().err().map(|error| error.to_string())
        };
        let refusal = "--set: journal.window_per_group is 257; expected 0 to 256";
        assert_eq!([0, 256, 257].map(of), [None, None, Some(refusal.to_string())]);
    }
}
