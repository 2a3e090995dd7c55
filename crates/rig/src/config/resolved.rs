//! A configuration as it stands after all layers: checked settings, and every key with its value and origin.

use super::field::figure;
use super::layered::{Layered, Setting};
use super::rings::rings;
use super::schema::Key;
use super::value::Value;
use super::{
    ConfigError, DEVICES, Device, Layers, Origin, PROCESSORS, device, firmware_keys, longest, media, processor, run,
};
use crate::failures;
use crate::power::PowerError;
use crate::precondition::Fill;
use crate::wear::cycles_before;
use firmware::architecture::{Architecture, DrawError, Placement};
use firmware::{Drive, DriveError, DriveShape};
use host::{Pace, Rounds};
use nvme::spec::QueuePriority;
use nvme::{Arbitration, ArbitrationShares, CoalescingSettings};
use sim::Processor;
use std::path::PathBuf;
use threads::Apart;
use units::{Bytes, Span};
use workload::{Arrivals, Parameters, Recipe, Workload};

/// The most threads of this machine that a run may ask for.
pub(super) const THREADS_MAX: u16 = 1024;

const TIMELINE: &str = "run.timeline_file";

/// Everything a run is built from.
#[derive(Clone)]
pub struct Resolved {
    /// The firmware architecture.
    pub architecture: &'static dyn Architecture,
    /// Array, times, capacity and link.
    pub device: Device,
    /// What the stages share of it.
    pub drive: Drive,
    /// The modelled processor.
    pub processor: Processor,
    /// How many of its cores the firmware runs on.
    pub cores: u16,
    /// Every choice of the firmware.
    pub settings: firmware::Settings,
    /// The core of every thread.
    pub placement: Placement,
    /// The controller's features.
    pub controller: Controller,
    /// What the host asks for.
    pub host: Host,
    /// What is measured, in order.
    pub phases: Vec<Phase>,
    /// What pages hold.
    pub payload: Payload,
    /// What was written before.
    pub precondition: Fill,
    /// Of every draw. Phase `n`, from zero, draws from `seed ^ n << 32`.
    pub seed: u64,
    /// Where the firmware runs.
    pub world: World,
    /// Whether the firmware's tables are compared when the run is over, if somebody said.
    pub audit: Option<bool>,
    /// Where a trace of the run goes, if one is wanted.
    pub timeline: Option<PathBuf>,
    /// What files keep of a device, processor or architecture that flags put another in the place of, in words.
    pub kept: Vec<String>,
    /// What is left out of a file because it is of groups of threads that the architecture has not which a flag names, in words.
    pub left_out: Option<String>,
    /// What files and `--set` say of settings that the architecture has no use for, as they say it.
    pub unread: Vec<String>,
    /// That cores which a file or flag asks for have nothing to do, in words.
    pub idle: Option<String>,
    /// What the user said.
    pub(super) said: Layers,
    layered: Layered,
}

/// What hosts find and set in the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// I/O queue pairs that a host may create.
    pub queues: u16,
    /// Most entries of a queue.
    pub queue_entries: u32,
    /// Most bytes a command moves: a power of two from 8 KiB to 1 MiB.
    pub transfer_max: Bytes,
    /// How submission queues compete.
    pub arbitration: Arbitration,
    /// Burst and weights.
    pub shares: ArbitrationShares,
    /// When completions interrupt.
    pub coalescing: CoalescingSettings,
}

/// The queues of the host's driver, and what it looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// I/O queue pairs that it creates.
    pub queues: u16,
    /// Entries of each queue.
    pub entries: u32,
    /// Commands kept outstanding on each queue.
    pub depth: u32,
    /// Interrupt vectors.
    pub vectors: u16,
    /// Classes that queues are created in, in turn.
    pub priorities: Vec<QueuePriority>,
    /// Whether what reads bring is compared with what was written.
    pub check: bool,
    /// The interval of the time series, if one is wanted.
    pub series: Option<Span>,
}

/// One phase of a run.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The workload's name, or its file's.
    pub name: String,
    /// The same as `workload.phases` has it.
    pub written: String,
    /// The workload. `recipe.source(&parameters)` succeeds: it was tried.
    pub recipe: Recipe,
    /// What the run sets of it.
    pub parameters: Parameters,
    /// When requests are sent.
    pub pace: Pace,
    /// No more requests than this. It or the duration is given.
    pub ios: Option<u64>,
    /// No longer than this.
    pub duration: Option<Span>,
    /// Requests before counting begins.
    pub warm_up_ios: u64,
    /// Time before counting begins.
    pub warm_up: Span,
    /// Rounds until the figures are steady, in place of requests and duration.
    pub rounds: Option<Rounds>,
}

impl Phase {
    /// Whether requests have times at which they arrive: the workload's, or a rate that the run sets.
    pub fn has_arrivals(&self) -> bool {
        self.parameters.per_second.is_some() || self.recipe.arrivals != Arrivals::Closed
    }
}

/// What a page holds of the data written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing but its length.
    None,
    /// A word for each sector.
    Fingerprint,
    /// Every byte.
    Full,
}

impl Payload {
    /// Words kept of each sector.
    pub const fn sector_words(self) -> u32 {
        match self {
            Payload::None => 0,
            Payload::Fingerprint => 1,
            Payload::Full => 64,
        }
    }
}

/// Where the firmware runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// On the modelled processor, in virtual time.
    Sim,
    /// On pinned threads of this machine.
    Threads {
        /// How many; the cores are dealt to them.
        threads: u16,
        /// What leaves the thread that has all cores.
        apart: Apart,
        /// Whether flash takes its time.
        timing: bool,
        /// Of so many requests one is followed.
        observed: Option<u32>,
    },
}

/// When a phase ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// After so many requests, or so much time.
    End,
    /// When its rounds are steady, or enough.
    Steady,
}

/// The world as its key names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorldName {
    Sim,
    Threads,
}

/// A key for tables: as `describe` prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The key.
    pub key: &'static str,
    /// What it means.
    pub note: &'static str,
    /// Its value, as TOML.
    pub value: String,
    /// The same as a figure in the key's unit, where it is one: sizes in bytes, 0 or 1 of what holds or does not.
    pub figure: Option<f64>,
    /// Where that comes from.
    pub origin: Origin,
}

impl Resolved {
    /// That a key's value is not what whoever uses the configuration can carry out, and what it takes instead.
    pub fn refuse(&self, key: &str, expected: &str) -> ConfigError {
        self.layered.refuse(key, expected)
    }

    /// Reads and checks every key.
    pub(super) fn read(
        layered: Layered,
        architecture: &'static dyn Architecture,
        device_name: &str,
        processor_name: &str,
    ) -> Result<Self, ConfigError> {
        let from = &layered;
        from.check_given()?;
        longest::check(from)?;
        let processor = processor::read(from, processor_name)?;
        let device = device::Device::read(from, device_name, &processor)?;
        // Nothing reads where prices come from but people.
        from.get::<String>("processor.summary")?;
        from.get::<String>("processor.fit")?;
        let whose = format!(": what {processor_name} has");
        let cores: u16 = from.within_those("platform.cores", 1, processor.cores, &whose)?;
        let rings = rings(from)?;
        let controller = run::controller(from, &rings)?;
        let (payload, precondition) = (from.get("run.payload")?, run::precondition(from)?);
        media::check_wear(from, &device, precondition)?;
        // Before the firmware's settings, some of which must fit the page: an impossible page is not theirs to name.
        let drive = drive(from, &device, &controller, payload)?;
        let settings = firmware_keys::settings(from, architecture, device.geometry.shape().page)?;
        check_device_can(from, &device, &settings)?;
        if let Some(faults) = &device.faults {
            failures::check(faults, architecture, &settings)
                .map_err(|error| from.refuse(&format!("device.media.{}", error.field), error.expected))?;
        }
        if let Some(power) = &device.power {
            let programs_fail = device.faults.is_some_and(|faults| faults.program_failures > 0.0);
            power
                .check(architecture, &settings, programs_fail)
                .map_err(|error| from.refuse(&format!("device.power.{}", error.field), error.expected))?;
        }
        let placement = firmware_keys::placement(from, architecture, settings.threads, cores)?;
        let host = run::host(from, &controller, &rings, payload)?;
        let seed = from.get("run.seed")?;
        Ok(Resolved {
            architecture,
            phases: run::phases(from, &device, host.queues.into(), seed)?,
            world: world(from)?,
            audit: from.get_unless("run.check", "auto")?,
            timeline: timeline(from)?,
            device,
            drive,
            processor,
            cores,
            settings,
            placement,
            controller,
            host,
            payload,
            precondition,
            seed,
            kept: Vec::new(),
            left_out: None,
            unread: Vec::new(),
            idle: None,
            said: Layers::new(),
            layered,
        })
    }

    /// The keys that this architecture has.
    fn shown(&self) -> impl Iterator<Item = (&'static Key, &Setting)> {
        self.layered.iter().filter(|(key, _)| !firmware_keys::is_foreign(&key.path, self.architecture))
    }

    /// The files beside the configuration that it was read from: device, processor and workloads, where they are no embedded ones.
    pub fn files_read(&self) -> impl Iterator<Item = String> {
        const READ: &str = "it was read before";
        let named = |key| self.layered.get::<String>(key).expect(READ);
        let device = Some(named("platform.device")).filter(|name| DEVICES.iter().all(|known| known.name != name));
        let processor =
            Some(named("platform.processor")).filter(|name| PROCESSORS.iter().all(|known| known.name != name));
        let phases = run::names(&self.layered, "workload.phases").expect(READ).into_iter();
        device.into_iter().chain(processor).chain(phases.filter(|name| Workload::named(name).is_none()))
    }

    /// That dies can take commands which nobody gives them, because nobody said whether to, in words.
    pub fn unused_commands(&self) -> Option<String> {
        let [can, does] = ["device.timing.cache_commands", "flash.cache_commands"].map(|key| self.layered.setting(key));
        let is_left = self.device.timing.cache_commands && matches!(does.origin, Origin::Default { .. });
        let but = "is true, but flash.cache_commands is false (default): dies get no cache commands";
        is_left.then(|| format!("{}: device.timing.cache_commands {but}", can.origin.place()))
    }

    /// What names the file of the time line, as messages begin: a flag, or place and key.
    pub fn timeline_named(&self) -> String {
        match &self.layered.setting(TIMELINE).origin {
            Origin::Flag(flag) => flag.clone(),
            origin => format!("{}: {TIMELINE}", origin.place()),
        }
    }

    /// Every key with its value and origin, in the order of `default.toml`.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.shown().map(|(key, setting)| Row {
            key: &key.path,
            note: firmware_keys::note(key, self.architecture),
            value: setting.value.to_string(),
            figure: figure(&setting.value, &key.path),
            origin: setting.origin.clone(),
        })
    }

    /// Keys that somebody gave a value, and the value without the quotes of a text: not those by which a summary calls its run, nor where a
    /// time line goes.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        let is_given = |(key, setting): &(&Key, &Setting)| {
            !setting.origin.is_shipped() && !CALLED_BY.contains(&key.path.as_str()) && key.path != "run.timeline_file"
        };
        self.shown().filter(is_given).map(|(key, setting)| {
            let value = match &setting.value {
                Value::Text(text) => text.clone(),
                other => other.to_string(),
            };
            (key.path.as_str(), value)
        })
    }

    /// What the workloads that are in files are, for a record that needs none of them.
    fn recipes(&self) -> Value {
        let is_named = |phase: &Phase| Workload::named(&phase.written).is_some();
        let text = |phase: &Phase| Value::Text(if is_named(phase) { "own".into() } else { phase.recipe.to_toml() });
        match &self.phases[..] {
            [phase] => text(phase),
            phases if phases.iter().all(is_named) => Value::Text("own".into()),
            phases => Value::List(phases.iter().map(text).collect()),
        }
    }

    /// All of it as a configuration file, which resolves to the same again without any other file. Comments tell where each value comes
    /// from, and what its key means.
    pub fn to_toml(&self) -> String {
        let (mut text, mut table) = (String::new(), "");
        for (key, setting) in self.shown() {
            let (header, name) = key.split();
            if header != table {
                text += &format!("{}[{header}]\n", if table.is_empty() { "" } else { "\n" });
                table = header;
            }
            // A file's name may hold a line break, a comment may not.
            let origin = setting.origin.to_string().replace(char::is_control, " ");
            let note = match firmware_keys::note(key, self.architecture) {
                "" => String::new(),
                note => format!("; {note}"),
            };
            let recipes = (key.path == run::RECIPE).then(|| self.recipes());
            text += &format!("{name} = {} # {origin}{note}\n", recipes.as_ref().unwrap_or(&setting.value));
        }
        text
    }

    /// The complaint about an architecture that cannot be drawn with these settings.
    pub fn undrawable(&self, error: &DrawError) -> ConfigError {
        self.explain_drawn(self.refuse_drawing(error))
    }

    /// The same, told of what was refused.
    pub(super) fn refuse_drawing(&self, error: &DrawError) -> ConfigError {
        let from = &self.layered;
        match error {
            DrawError::NoRoom { .. } => {
                if self.device.power.is_some() {
                    let expected = format!("a buffer that flash has room for when the power fails: {error}");
                    return from.refuse("cache.size_bytes", expected);
                }
                let derived = from.setting("device.user_bytes").value.is_text("derived");
                let share = derived.then(|| from.get("device.over_provisioning").unwrap_or_default());
                let key = if derived { "device.over_provisioning" } else { "device.user_bytes" };
                from.refuse(
                    key,
                    format!("a value that leaves the firmware room: {error}{}", self.way_out(error, share)),
                )
            }
            DrawError::FewErases(left) => {
                let least = left + cycles_before(self.device.faults.as_ref());
                from.refuse("device.erase_limit", format!("at least {least}: {error}"))
            }
            DrawError::PageMappingOnly => from.refuse("firmware.mapping", "page: this architecture has no other"),
            DrawError::NoForwarding => {
                from.refuse("lock.forwarding", "false: the threads of this architecture look for ranges themselves")
            }
            DrawError::Placement(error) => from.refuse("platform.cores", error.to_string()),
        }
    }

    /// What to say of a buffer that cannot be kept when the power fails.
    pub(crate) fn unprotected(&self, error: &PowerError) -> ConfigError {
        self.explain_drawn(self.refuse_power(error))
    }

    /// The same, told of what was refused.
    pub(super) fn refuse_power(&self, error: &PowerError) -> ConfigError {
        self.layered.refuse(&format!("device.power.{}", error.field), error.expected.clone())
    }
}

/// Keys whose values a summary has under names of its own.
const CALLED_BY: [&str; 6] =
    ["platform.architecture", "platform.device", "platform.processor", "run.seed", "run.world", "workload.phases"];

/// Reads are sent into programs, and second transactions to busy dies, only where the die has such commands.
fn check_device_can(from: &Layered, device: &Device, settings: &firmware::Settings) -> Result<(), ConfigError> {
    let suspend = &device.timing.suspend;
    if settings.flash.suspend && suspend.programs_max == 0 && suspend.erases_max == 0 {
        return Err(
            from.refuse("flash.suspend", "false: this device cannot suspend (device.timing.suspend_programs_max)")
        );
    }
    if settings.flash.cache_commands && !device.timing.cache_commands {
        return Err(from.refuse("flash.cache_commands", "false: this device lacks them (device.timing.cache_commands)"));
    }
    Ok(())
}

/// What the firmware needs beyond the namespaces depends on the architecture, which checks it when it draws.
fn drive(from: &Layered, device: &Device, controller: &Controller, payload: Payload) -> Result<Drive, ConfigError> {
    if device.tags && payload == Payload::None {
        let without = "false, or run.payload = \"fingerprint\" or \"full\"".into();
        let kept = "\"fingerprint\" or \"full\", or device.tags = false".into();
        return Err(from.refuse_later(("device.tags", without), ("run.payload", kept)));
    }
    let shape = DriveShape {
        geometry: device.geometry.clone(),
        namespaces: device.namespaces.clone(),
        format: device.format,
        bad_blocks: Vec::new(),
        erases_max: None,
        queues: controller.queues.into(),
        queue_entries: controller.queue_entries,
        transfer_sectors: (controller.transfer_max.0 / units::SECTOR_BYTES) as u32,
        sector_words: payload.sector_words() as usize,
        tags: device.tags,
        write_through: from.get("cache.write_through")?,
        protected: device.power.is_some(),
        keeps_journal: false,
    };
    Drive::new(shape, 0).map_err(|error| match error {
        DriveError::NoRoom { pages, .. } => from.refuse("device.user_bytes", format!("at most {pages} pages")),
        DriveError::Namespaces(_) => {
            from.refuse("device.namespace_bytes", format!("1 to {} sizes", nvme::NAMESPACES_MAX))
        }
        DriveError::EmptyNamespace(_) => from.refuse("device.namespace_bytes", "sizes above 0"),
        DriveError::Transfer(_) => from.refuse("controller.transfer_bytes", error.to_string()),
        DriveError::Queues(_) => from.refuse("controller.queues", "1 to 65535"),
        DriveError::QueueEntries(_) => from.refuse("controller.queue_entries", "2 to 65536"),
        DriveError::PageBytes(_) => from.refuse("device.page_bytes", device::PAGES),
    })
}

fn timeline(from: &Layered) -> Result<Option<PathBuf>, ConfigError> {
    let path = from.get_unless::<String>(TIMELINE, "none")?;
    let is_empty = path.as_ref().is_some_and(String::is_empty);
    if is_empty { Err(from.refuse(TIMELINE, "a file, or \"none\"")) } else { Ok(path.map(PathBuf::from)) }
}

fn world(from: &Layered) -> Result<World, ConfigError> {
    let threads = from.within("run.world_threads", 1, THREADS_MAX)?;
    let apart = from.get("run.world_apart")?;
    let timing: bool =
        from.get("run.timing").map_err(|_| from.refuse("run.timing", "true or false (--timing on or off)"))?;
    let observed: Option<u32> = from.get_unless("run.observed", "none")?;
    if observed == Some(0) {
        return Err(from.refuse("run.observed", "at least 1, or \"none\""));
    }
    Ok(match from.get("run.world")? {
        WorldName::Sim if !timing => {
            return Err(from.refuse("run.timing", "true (--timing on): virtual time is made of these times"));
        }
        WorldName::Sim => World::Sim,
        WorldName::Threads => World::Threads { threads, apart, timing, observed },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A run of files of the user's, one each for device, processor and a workload.
    fn of_files(at: &std::path::Path) -> Resolved {
        let known = |catalogue: &[super::super::Named], name| {
            catalogue.iter().find(|known| known.name == name).expect("it is in the catalogue").text
        };
        let file = |name: &str, text: &str| {
            let path = at.join(name);
            fs::write(&path, text).expect("a file of ours");
            path.display().to_string()
        };
        let device = file("mine.toml", known(DEVICES, "small"));
        let processor = file("fast.toml", known(PROCESSORS, "timeless"));
        let workload =
            file("load.toml", "pattern = \"random\"\nread_fraction = 0.25\nsizes = { fixed_bytes = 8192 }\n");
        let layers = Layers::new().flag("--device", &device).and_then(|layers| layers.flag("--processor", &processor));
        let workloads = format!("randread,{workload}");
        layers.and_then(|layers| layers.flag("--workload", &workloads)).and_then(Layers::resolve).expect("a run")
    }

    #[test]
    fn a_record_needs_none_of_the_files_that_it_was_made_of() {
        let at = std::env::temp_dir().join(format!("flashloom-record-{}", std::process::id()));
        fs::create_dir_all(&at).expect("a folder of ours");
        let first = of_files(&at);
        let record = first.to_toml();
        fs::remove_dir_all(&at).expect("it was made");
        let read = || Layers::new().text("record.toml", &record).expect("it has keys of ours only");
        let again = read().resolve().expect("it says all");
        let parts = |run: &Resolved| {
            let phases = run.phases.iter().map(|phase| (phase.name.clone(), phase.recipe.clone())).collect::<Vec<_>>();
            (run.device.name.clone(), run.processor.name.clone(), phases)
        };
        assert_eq!(parts(&again), parts(&first));
        let without_origins = |text: &str| {
            text.lines().map(|line| line.split(" # ").next().unwrap_or(line).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(without_origins(&again.to_toml()), without_origins(&record));
        let other = read().flag("--workload", "none-such.toml").and_then(Layers::resolve).err().expect("no file");
        assert!(other.to_string().contains("there is no file /"), "{other}");
        let whole = read().set("device.channels=3").and_then(Layers::resolve).expect("a label and all keys");
        assert_eq!(whole.device.name, "mine");
        let mistyped = read().flag("--device", "smal").and_then(Layers::resolve).err().expect("no file");
        assert!(mistyped.to_string().contains("expected a file or one of"), "{mistyped}");
        let part = Layers::new().set("platform.device=mine.toml").and_then(Layers::resolve).err().expect("no file");
        assert!(part.to_string().contains("expected a file or one of"), "{part}");
    }

    #[test]
    fn a_recipe_is_of_the_phases_beside_it_and_of_none_that_have_names() {
        let resolve = |text: &str, workload: Option<&str>| {
            let layers = Layers::new().text("run.toml", text)?;
            workload.into_iter().try_fold(layers, |layers, name| layers.flag("--workload", name))?.resolve()
        };
        let of_a_file =
            "phases = [\"gone.toml\"]\nrecipe = \"read_fraction = 1\\npattern = 'random'\\nsizes.fixed_bytes = 512\"";
        let text = format!("[workload]\n{of_a_file}\n");
        assert_eq!(resolve(&text, None).expect("it says what it is").phases[0].recipe.read_fraction, 1.0);
        assert_eq!(resolve(&text, Some("randwrite")).expect("another phase").phases[0].recipe.read_fraction, 0.0);
        let refusals = [
            ("0", "expected a text"),
            ("\"read_fraction = 1\"", "expected \"own\": randread is no file's"),
            ("[\"own\", \"own\"]", "expected one value: there is one phase"),
        ];
        for (recipe, expected) in refusals {
            let text = format!("[workload]\nphases = [\"randread\"]\nrecipe = {recipe}\n");
            let refused = resolve(&text, None).err().expect("no recipe of randread").to_string();
            assert!(refused.starts_with("run.toml:3: workload.recipe is ") && refused.contains(expected), "{refused}");
        }
        let part = text.replace("pattern = 'random'", "");
        let refused = resolve(&part, None).err().expect("half a recipe").to_string();
        assert!(refused.contains("expected a workload: missing field `pattern`"), "{refused}");
    }
}
