//! Collects what the user says and resolves it over the files that it names.

use super::catalogue::Source;
use super::kept::{drop_foreign, kept};
use super::layered::{Layer, Layered, MEMORY, Setting, layer};
use super::resolved::{Resolved, THREADS_MAX};
use super::schema::{Key, schema};
use super::text::{self, Named};
use super::value::Value;
use super::{ConfigError, DEVICES, Origin, PROCESSORS, firmware_keys};
use firmware::architecture::{ARCHITECTURES, Architecture, ThreadCounts, ThreadGroup, find};
use std::path::Path;
use std::sync::Arc;

/// Flags of the command line and the key that each sets. `--threads` takes `GROUP=N,...`.
pub const FLAGS: &[(&str, &str)] = &[
    ("--architecture", "platform.architecture"),
    ("--device", "platform.device"),
    ("--processor", "platform.processor"),
    ("--cores", "platform.cores"),
    ("--threads", "threads"),
    ("--workload", "workload.phases"),
    ("--block-size", "workload.block_bytes"),
    ("--ios", "workload.ios"),
    ("--duration", "workload.duration_ms"),
    ("--until", "run.until"),
    ("--round", "run.round"),
    ("--queues", "host.queues"),
    ("--workers", "host.queues"),
    ("--depth", "host.depth"),
    ("--precondition", "run.precondition"),
    ("--payload", "run.payload"),
    ("--seed", "run.seed"),
    ("--world", "run.world"),
    ("--timing", "run.timing"),
    ("--timeline", "run.timeline_file"),
];

/// What a user says, layer by layer. Order between the layers is fixed; within one, later words win.
#[derive(Clone, Default)]
pub struct Layers {
    /// What nobody said: a command's own choices, below all others.
    beneath: Layer,
    files: Vec<Layer>,
    flags: Layer,
    sets: Layer,
    /// Whether groups have at most as many threads as the machine lends them, where nobody says how many.
    as_lent: bool,
    /// A processor that is no file yet.
    processor: Option<Source>,
}

impl Layers {
    /// Nothing said: everything by default.
    pub fn new() -> Self {
        Layers::default()
    }

    /// A configuration file.
    ///
    /// # Errors
    /// Unreadable, not TOML, an unknown key; a device or a processor, for which there are flags.
    pub fn file(self, path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let layers = self.text(&name, &text::read(path)?)?;
        let last = layers.files.last().expect("it was added");
        let described = ["device", "processor"].into_iter().find_map(|table| Some((table, described(last, table)?)));
        match described {
            None => Ok(layers),
            Some((what, lacks)) if lacks.is_empty() => Err(ConfigError::OfOneTable { file: name, what }),
            Some((what, lacks)) => Err(ConfigError::OfAPart { file: name, what, lacks: lacks.join(", ") }),
        }
    }

    /// The same, from memory; `name` stands for its path in origins.
    ///
    /// # Errors
    /// Not TOML, an unknown key.
    pub fn text(mut self, name: &str, text: &str) -> Result<Self, ConfigError> {
        let file: Arc<str> = name.into();
        self.files.push(layer(name, text, None, |line| Origin::File { file: file.clone(), line })?);
        Ok(self)
    }

    /// What a command chooses by itself, below everything that the user says, as the text of a file; `name` stands for its path in origins.
    ///
    /// # Errors
    /// Not TOML, an unknown key.
    pub fn beneath(name: &str, text: &str) -> Result<Self, ConfigError> {
        let beneath = Layers::new().text(name, text)?.files.concat();
        Ok(Layers { beneath, ..Layers::default() })
    }

    /// One key of a file that is more than a configuration, such as an experiment's. `value` is TOML.
    ///
    /// # Errors
    /// An unknown key.
    pub fn key(mut self, file: &str, line: usize, key: &str, value: &str) -> Result<Self, ConfigError> {
        self.files.push(vec![assign(key, value, Origin::File { file: file.into(), line })?]);
        Ok(self)
    }

    /// A processor file before it is written, in the place of the one that `platform.processor` names; `name` is to be its path. Like
    /// that one it is read when all is resolved.
    pub fn processor(self, name: &str, text: &str) -> Self {
        Layers { processor: Some(Source::of(name, text.into())), ..self }
    }

    /// A flag of [`FLAGS`], with its dashes, and its value.
    ///
    /// # Errors
    /// An unknown flag; for `--threads` an unknown group.
    pub fn flag(mut self, flag: &str, value: &str) -> Result<Self, ConfigError> {
        let Some((_, key)) = FLAGS.iter().find(|(name, _)| *name == flag) else {
            let expected = FLAGS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            return Err(ConfigError::UnknownFlag { flag: flag.into(), expected });
        };
        let origin = Origin::Flag(flag.into());
        if *key != "threads" {
            self.flags.push(assign(key, value, origin)?);
            return Ok(self);
        }
        for group in value.split(',') {
            let Some((group, count)) = group.split_once('=') else {
                let found = if value.is_empty() { "\"\"" } else { value };
                let (key, found, expected) = ("threads".into(), found.into(), "GROUP=N, separated by commas".into());
                return Err(ConfigError::Refused { at: origin, key, found, expected });
            };
            let key = format!("threads.{}", group.trim());
            let (index, setting) = assign(&key, count, origin.clone())?;
            if self.flags.iter().any(|(known, _)| *known == index) {
                let expected = "each group once".into();
                return Err(ConfigError::Refused { at: origin, key, found: "given twice".into(), expected });
            }
            self.flags.push((index, setting));
        }
        Ok(self)
    }

    /// `KEY=VALUE`, the key dotted as in a file. A value that is no TOML is text.
    ///
    /// # Errors
    /// No equals sign, an unknown key.
    pub fn set(mut self, assignment: &str) -> Result<Self, ConfigError> {
        let Some((key, value)) = assignment.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            return Err(ConfigError::NotAnAssignment { found: assignment.into() });
        };
        self.sets.push(assign(key.trim(), value.trim(), Origin::Set)?);
        Ok(self)
    }

    /// What files and `--set` say of these keys, as they say it, for who has to tell that it changes nothing. What a file says as the
    /// defaults do is left out: one that `describe --toml` wrote says everything.
    pub fn said(&self, keys: &[&str]) -> Vec<String> {
        let is_one = |index: usize| keys.contains(&&*schema().keys[index].path);
        let in_files = self.files.iter().flatten().filter(|(index, it)| it.value != schema().keys[*index].default);
        let said = in_files.chain(&self.sets).filter(|(index, _)| is_one(*index));
        said.map(|(index, Setting { value, origin })| {
            let key = &schema().keys[*index].path;
            match origin {
                Origin::Set => format!("--set {key}={value}"),
                origin => format!("{}: {key} = {value}", origin.place()),
            }
        })
        .collect()
    }

    /// Lays everything over the device, processor and architecture that were chosen, and checks it.
    ///
    /// # Errors
    /// The first key that is missing, of the wrong type, or refused by what it is for.
    pub fn resolve(self) -> Result<Resolved, ConfigError> {
        let resolved = self.resolved();
        resolved.map_err(|error| self.explain(error, &|layers| layers.resolved().map(drop)))
    }

    /// The same, with at most as many threads as the threads world has of this machine's in each group that is [`ThreadGroup::lent`],
    /// where the user does not say how many.
    ///
    /// # Errors
    /// As [`Layers::resolve`].
    pub fn resolve_as_lent(self) -> Result<Resolved, ConfigError> {
        Layers { as_lent: true, ..self }.resolve()
    }

    /// All that the user says, the lowest layer first.
    pub(super) fn all(&self) -> Layer {
        let said = self.files.iter().flatten().chain(&self.flags).chain(&self.sets);
        self.beneath.iter().chain(said).cloned().collect()
    }

    /// These with nothing said but a layer.
    pub(super) fn only(&self, layer: Layer) -> Layers {
        Layers { files: vec![layer], as_lent: self.as_lent, processor: self.processor.clone(), ..Layers::default() }
    }

    /// As [`Layers::resolve`], where an error is told of what was refused.
    pub(super) fn resolved(&self) -> Result<Resolved, ConfigError> {
        let mut user = self.all();
        let mut chosen = Layered::defaults();
        chosen.lay(user.clone());
        let device = platform_file(&chosen, &user, "platform.device", DEVICES)?;
        let processor = match &self.processor {
            Some(unwritten) => unwritten.clone(),
            None => platform_file(&chosen, &user, "platform.processor", PROCESSORS)?,
        };
        let name: String = chosen.get("platform.architecture")?;
        let architecture = find(&name).ok_or_else(|| {
            let names: Vec<&str> = ARCHITECTURES.iter().map(|architecture| architecture.name()).collect();
            chosen.refuse("platform.architecture", format!("one of {}", names.join(", ")))
        })?;

        let mut layered = Layered::defaults();
        let of_device = device.layer("device", |name, file, line| Origin::Device { name, file, line })?;
        layered.lay_file("device", &device.file, of_device);
        let of_processor = processor.layer("processor", |name, file, line| Origin::Processor { name, file, line })?;
        layered.lay_file("processor", &processor.file, of_processor);
        let bare = layered.clone();
        layered.lay(firmware_keys::architecture_layer(&bare, architecture)?);
        let left_out = drop_foreign(&mut user, &chosen, architecture);
        let kept = kept(&user, &chosen, (&bare, &layered), architecture)?;
        if self.as_lent {
            let threads = chosen.within("run.world_threads", 1, THREADS_MAX)?;
            layered.lay(lent_threads(&layered, architecture, threads)?);
        }
        let cores_are_given = schema().find("platform.cores").is_some_and(|key| user.iter().any(|(at, _)| *at == key));
        if cores_are_given {
            layered.lay(a_thread_each_core(&chosen, architecture)?);
        }
        layered.lay(user);
        layered.settle_alternatives();
        let mut resolved = Resolved::read(layered, architecture, &device.name, &processor.name)?;
        let idle = resolved.cores - resolved.placement.cores();
        resolved.idle =
            (cores_are_given && idle > 0).then(|| idle_cores(idle, architecture, resolved.settings.threads));
        resolved.unread = self.said(&architecture.unread());
        (resolved.kept, resolved.left_out, resolved.said) = (kept, left_out, self.clone());
        Ok(resolved)
    }
}

/// What a file lacks that describes a table, as a device, and says nothing else; none where it is a configuration. One that gives half of
/// what such a file must is none that changes a little of another one's: laid over that, the two would be a mixture that nobody meant.
fn described(layer: &Layer, table: &str) -> Option<Vec<&'static str>> {
    let (given, lacking) = required(layer, table);
    let describes = layer.iter().all(|(index, _)| is_of(table, &schema().keys[*index].path));
    (describes && given.len() >= lacking.len()).then_some(lacking)
}

/// Whether a file that describes a table may have a key.
fn is_of(table: &str, key: &str) -> bool {
    key.split('.').next() == Some(table) || MEMORY.contains(&(table, key))
}

/// The keys that a file must have which describes a table: those that a layer gives, and those that it lacks.
fn required(layer: &Layer, table: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let needed = schema().keys.iter().enumerate().filter(|(_, key)| key.is_required() && is_of(table, &key.path));
    let (given, lacking): (Vec<_>, Vec<_>) =
        needed.partition(|(index, _)| layer.iter().any(|(given, _)| given == index));
    let names = |keys: Vec<(usize, &'static Key)>| keys.into_iter().map(|(_, key)| &*key.path).collect();
    (names(given), names(lacking))
}

/// No more than `most` threads of the groups that have as many as the machine lends.
fn lent_threads(layered: &Layered, architecture: &dyn Architecture, most: u16) -> Result<Layer, ConfigError> {
    let few = |group: &ThreadGroup| {
        let key = format!("threads.{}", group.name);
        let count: u16 = layered.get(&key)?;
        let origin = layered.setting(&key).origin.clone();
        assign(&key, &count.min(most).to_string(), origin)
    };
    architecture.groups().iter().filter(|group| group.lent).map(few).collect()
}

/// As many threads as cores that were chosen, of the groups that have one on each.
fn a_thread_each_core(chosen: &Layered, architecture: &dyn Architecture) -> Result<Layer, ConfigError> {
    // What is no number of cores is refused where cores are read.
    let Ok(cores) = chosen.get::<u16>("platform.cores") else { return Ok(Layer::new()) };
    let groups = architecture.groups().iter().filter(|group| group.each_core);
    let origin = Origin::Architecture(architecture.name());
    let threads = |group: &ThreadGroup| cores.clamp(group.least, group.most).to_string();
    groups.map(|group| assign(&format!("threads.{}", group.name), &threads(group), origin.clone())).collect()
}

/// Says that cores which were asked for have no thread, and what would give them one.
fn idle_cores(idle: u16, architecture: &dyn Architecture, threads: ThreadCounts) -> String {
    let more = architecture.groups().iter().filter(|group| threads.of(group.name) < group.most);
    let more: Vec<&str> = more.map(|group| group.name).collect();
    let cores = if idle == 1 { "core has" } else { "cores have" };
    let remedy = match more.is_empty() {
        true => "it can have no more".to_owned(),
        false => format!("--threads gives it more of {}", more.join(", ")),
    };
    format!("{idle} {cores} no thread of {}; {remedy}", architecture.name())
}

fn assign(key: &str, value: &str, origin: Origin) -> Result<(usize, Setting), ConfigError> {
    match schema().find(key) {
        Some(index) => Ok((index, Setting::written(&schema().keys[index].path, Value::from_argument(value), origin))),
        None if schema().is_table(key) => {
            let expected = format!("one of its keys, as in {key}.KEY");
            Err(ConfigError::Refused { at: origin, key: key.into(), found: "a table".into(), expected })
        }
        None => Err(schema().unknown(key, origin)),
    }
}

/// The file that a key names. It need not be there where the file that names it says what is in it, as one that `describe --toml` wrote
/// does: then its name is what the device or processor is called.
fn platform_file(chosen: &Layered, user: &Layer, key: &str, catalogue: &[Named]) -> Result<Source, ConfigError> {
    let wanted: String = chosen.get(key)?;
    if let Some(found) = Source::find(catalogue, &wanted)? {
        return Ok(found);
    }
    let table = key.rsplit('.').next().unwrap_or_default();
    let named = &chosen.setting(key).origin;
    let says = |(index, setting): &(usize, Setting)| {
        is_of(table, &schema().keys[*index].path) && setting.origin.is_beside(named)
    };
    let is_record = matches!(named, Origin::File { .. }) && user.iter().any(says);
    if is_record && !wanted.is_empty() && required(user, table).1.is_empty() {
        return Ok(Source::of(&wanted, String::new()));
    }
    let names: Vec<&str> = catalogue.iter().map(|named| named.name).collect();
    Err(chosen.refuse(key, format!("a file or one of {}; {}", names.join(", "), text::looked_for(&wanted))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_architecture_has_no_use_for_is_told_to_who_said_it() {
        let unread = |layers: Layers, architecture| {
            let layers = layers.text("run.toml", "[lock]\nregions = 2\nstalls = true\n").unwrap();
            let layers = layers.flag("--architecture", architecture).unwrap().set("pipeline.poll_ns=100").unwrap();
            layers.resolve().unwrap().unread
        };
        let [regions, stalls, poll] =
            ["run.toml:2: lock.regions = 2", "run.toml:3: lock.stalls = true", "--set pipeline.poll_ns=100"];
        for (architecture, expected) in [
            ("deepflash", &[regions, poll][..]),
            ("naive", &[poll]),
            ("pipessd", &[regions, stalls]),
            ("tradition", &[regions, stalls, poll]),
        ] {
            // What a command chooses by itself nobody said.
            let beneath = Layers::beneath("serve", "reclaim.paced = true\nlock.forwarding = false\n").unwrap();
            assert_eq!(unread(beneath, architecture), expected, "{architecture}");
        }
    }

    #[test]
    fn what_keys_only_some_have_a_use_for_the_page_says() {
        let page = include_str!("../../../../docs/configuration.md");
        for key in ARCHITECTURES.iter().flat_map(|architecture| architecture.unread()) {
            assert!(page.contains(&format!("`{key}`")), "docs/configuration.md does not say who has a use for {key}");
        }
    }

    #[test]
    fn commands_that_dies_could_take_are_told_where_nobody_says_whether_they_get_them() {
        let unused = |sets: &[&str]| {
            let layers = sets.iter().try_fold(Layers::new(), |layers, set| layers.set(set)).unwrap();
            layers.resolve().unwrap().unused_commands()
        };
        let can = "device.timing.cache_commands=true";
        let said = "--set: device.timing.cache_commands is true, but flash.cache_commands is false (default): dies get no \
                    cache commands";
        assert_eq!(unused(&[can]).as_deref(), Some(said));
        assert_eq!([unused(&[can, "flash.cache_commands=false"]), unused(&[])], [None, None]);
    }
}
