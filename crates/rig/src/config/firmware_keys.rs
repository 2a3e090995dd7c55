//! The firmware's settings as keys: read from them, and written back where an architecture changes them.

use super::layered::{Layer, Layered, Setting};
use super::schema::{Key, schema};
use super::value::Value;
use super::{ConfigError, Origin};
use crate::config::field::Field;
use firmware::architecture::{Architecture, Placement, PlacementError, ThreadCounts};
use firmware::{
    CacheSettings, FlashSettings, JournalSettings, LockSettings, PartCounts, PipelineSettings, ReclaimSettings,
    Settings,
};
use units::{Bytes, CoreId};

/// The largest burst buffer.
const BUFFER_MAX: Bytes = Bytes::mib(64 << 10);
/// Most frames beyond the buffer's entries.
const FRAMES_MAX: u32 = 1 << 20;

macro_rules! keys {
    (
        Settings { $($field:ident: $key:literal,)* }
        $($part:ident: $type:ident { $($inner:ident: $inner_key:literal,)* })*
    ) => {
        fn read(from: &Layered, architecture: &dyn Architecture) -> Result<Settings, ConfigError> {
            let settings = Settings {
                $($field: from.get($key)?,)*
                $($part: $type { $($inner: from.get($inner_key)?,)* },)*
                threads: ThreadCounts::NONE,
                parts: PartCounts::NONE,
                mutation: None,
            };
            Ok(settings.staffed(architecture, threads(from, architecture)?))
        }

        fn differences(before: &Settings, after: &Settings, origin: &Origin) -> Layer {
            let values = [
                $(difference($key, &before.$field, &after.$field),)*
                $($(difference($inner_key, &before.$part.$inner, &after.$part.$inner),)*)*
            ];
            let setting = |(index, value)| (index, Setting { value, origin: origin.clone() });
            values.into_iter().flatten().map(setting).collect()
        }
    };
}

keys! {
    Settings {
        queues: "firmware.queue_allocation",
        commands: "firmware.commands",
        frames: "firmware.frames",
        page_window: "firmware.page_window",
        split: "firmware.address_split",
        deal: "firmware.block_deal",
        mapping: "firmware.mapping",
    }
    lock: LockSettings {
        unit: "lock.unit_bytes",
        forwarding: "lock.forwarding",
        stalls: "lock.stalls",
        forwarding_lead: "lock.forwarding_lead",
        regions: "lock.regions",
    }
    cache: CacheSettings {
        size: "cache.size_bytes",
        non_blocking: "cache.non_blocking",
        bypass: "cache.bypass",
        spare_frames: "cache.spare_frames",
        lines_per_lock: "cache.lines_per_lock",
    }
    pipeline: PipelineSettings {
        poll: "pipeline.poll_ns",
    }
    reclaim: ReclaimSettings {
        victim: "reclaim.victim",
        background: "reclaim.background",
        idle: "reclaim.idle_ms",
        background_free: "reclaim.background_free",
        window: "reclaim.window",
        window_per_group: "reclaim.window_per_group",
        victims: "reclaim.victims",
        paced: "reclaim.paced",
        wear_gap: "reclaim.wear_gap",
        wear_share: "reclaim.wear_share",
    }
    journal: JournalSettings {
        interval: "journal.interval_ms",
        only_when_idle: "journal.only_when_idle",
        patience: "journal.patience_ms",
        busy_share: "journal.busy_share",
        window: "journal.window",
        window_per_group: "journal.window_per_group",
    }
    flash: FlashSettings {
        multi_plane: "flash.multi_plane",
        gather: "flash.gather_us",
        suspend: "flash.suspend",
        cache_commands: "flash.cache_commands",
        ahead: "flash.ahead",
    }
}

/// The key, by its index, and the value that it has after where that is another.
fn difference<T: Field + PartialEq>(key: &str, before: &T, after: &T) -> Option<(usize, Value)> {
    (before != after).then(|| (schema().find(key).expect("every field has its key"), after.write(key)))
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
    use crate::config::Layers;

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
