//! What a run does: the host's queues, the controller's features, the phases of the workload.

use super::field::Field;
use super::layered::Layered;
use super::resolved::{Controller, Host, Payload, Phase, Until};
use super::rings::Rings;
use super::schema::distance;
use super::text;
use super::value::Value;
use super::{ConfigError, Device, Origin};
use crate::precondition::Fill;
use firmware::LOCK_REGION;
use host::{Rounds, SERIES_MIN};
use nvme::spec::QueuePriority;
use nvme::{Arbitration, ArbitrationShares, CoalescingSettings};
use std::path::Path;
use units::{Bytes, Lba, SECTOR_BYTES, Span};
use workload::{Parameters, Pattern, Recipe, Region, UnusableParameter, WORKLOADS, Workload};

/// What workloads are that are in files.
pub(super) const RECIPE: &str = "workload.recipe";

/// Most commands outstanding on all queues: each has lists and buffers in the memory of this machine.
const OUTSTANDING_MAX: u64 = 1 << 20;

pub(super) fn controller(from: &Layered, rings: &Rings) -> Result<Controller, ConfigError> {
    let transfer: Bytes = from.get("controller.transfer_bytes")?;
    // A range meets two lock regions at most; Identify Controller (MDTS) knows powers of two of a page only.
    if !transfer.0.is_power_of_two() || transfer < Bytes(8192) || transfer > LOCK_REGION {
        let expected = format!("a power of two from 8192 to {}", LOCK_REGION.0);
        return Err(from.refuse("controller.transfer_bytes", expected));
    }
    let time: Span = from.get("controller.coalescing_time_us")?;
    let steps = time.picos() / Span::from_micros(100).picos();
    if Span::from_micros(100) * steps != time || steps > 255 {
        return Err(from.refuse("controller.coalescing_time_us", "a multiple of 100 up to 25500"));
    }
    let threshold: u16 = from.within("controller.coalescing_threshold", 1, 256)?;
    Ok(Controller {
        queues: rings.offered,
        queue_entries: rings.longest,
        transfer_max: transfer,
        arbitration: from.get("controller.arbitration")?,
        shares: ArbitrationShares { burst: burst(from)?, weights: weights(from)? },
        // The feature counts from zero.
        coalescing: CoalescingSettings { threshold: (threshold - 1) as u8, time: steps as u8 },
    })
}

fn burst(from: &Layered) -> Result<u32, ConfigError> {
    match from.get_unless::<u32>("controller.burst", "unlimited") {
        Ok(None) => Ok(u32::MAX),
        Ok(Some(burst)) if burst.is_power_of_two() && burst <= 64 => Ok(burst),
        _ => Err(from.refuse("controller.burst", "a power of two up to 64, or \"unlimited\"")),
    }
}

fn weights(from: &Layered) -> Result<[u32; 3], ConfigError> {
    const KEY: &str = "controller.weights";
    let weights: Vec<u32> = from.get(KEY)?;
    match <[u32; 3]>::try_from(weights) {
        Ok(weights) if weights.iter().all(|weight| (1..=256).contains(weight)) => Ok(weights),
        _ => Err(from.refuse(KEY, "three weights from 1 to 256: high, medium, low")),
    }
}

/// The classes of queues, as a list or as words with commas between them.
fn priorities(from: &Layered) -> Result<Vec<QueuePriority>, ConfigError> {
    const KEY: &str = "host.priorities";
    let Ok(text) = from.get::<String>(KEY) else { return from.get(KEY) };
    let class = |word: &str| {
        let known = QueuePriority::read(&Value::Text(word.trim().into()), KEY);
        known.ok_or_else(|| from.refuse(KEY, Vec::<QueuePriority>::expected(KEY)))
    };
    text.split(',').map(class).collect()
}

pub(super) fn host(
    from: &Layered,
    controller: &Controller,
    rings: &Rings,
    payload: Payload,
) -> Result<Host, ConfigError> {
    let priorities = priorities(from)?;
    if controller.arbitration == Arbitration::RoundRobin
        && priorities.iter().any(|class| *class != QueuePriority::Urgent)
    {
        return Err(
            from.refuse("host.priorities", "controller.arbitration = \"weighted\" beside it, or urgent queues only")
        );
    }
    let keeps_words = payload.sector_words() > 0;
    let check = from.get_unless("run.check", "auto")?.unwrap_or(keeps_words);
    let series: Option<Span> = from.get_unless("run.series_ms", "none")?;
    if priorities.is_empty() {
        return Err(from.refuse("host.priorities", "at least one of urgent, high, medium, low"));
    }
    if check && !keeps_words {
        return Err(from.refuse("run.check", "false, or run.payload = \"fingerprint\" or \"full\""));
    }
    if series.is_some_and(|interval| interval < SERIES_MIN) {
        return Err(from.refuse("run.series_ms", "at least 0.001, or \"none\""));
    }
    if u64::from(rings.queues) * u64::from(rings.depth) > OUTSTANDING_MAX {
        let expected = format!("no more than {OUTSTANDING_MAX} commands on all {} queues", rings.queues);
        return Err(from.refuse("host.depth", expected));
    }
    let &Rings { queues, entries, depth, vectors, .. } = rings;
    Ok(Host { queues, entries, depth, vectors, priorities, check, series })
}

pub(super) fn precondition(from: &Layered) -> Result<Fill, ConfigError> {
    const KEY: &str = "run.precondition";
    let text: String = from.get(KEY)?;
    let times = text.strip_prefix("rand:").and_then(|times| times.parse().ok());
    match (text.as_str(), times) {
        ("none", _) => Ok(Fill::None),
        ("seq", _) => Ok(Fill::Sequential),
        // Nothing was overwritten.
        (_, Some(0.0)) => Ok(Fill::Sequential),
        // Where hybrid mapping's logs stand after so many overwrites nobody has reckoned.
        (_, Some(_)) if !from.setting("firmware.mapping").value.is_text("page") => {
            let mapping = &from.setting("firmware.mapping").value;
            let expected =
                format!("none or seq where firmware.mapping is {mapping}; workload.warm_up_ios overwrites it");
            Err(from.refuse(KEY, expected))
        }
        (_, Some(times)) if (0.0..=100.0).contains(&times) => Ok(Fill::Random { times }),
        _ => Err(from.refuse(KEY, "none, seq, or rand:TIMES with up to 100 times all pages")),
    }
}

/// A list of names, or a text of them separated by commas.
pub(super) fn names(from: &Layered, key: &str) -> Result<Vec<String>, ConfigError> {
    match from.get::<String>(key) {
        Ok(text) => Ok(text.split(',').map(|name| name.trim().to_string()).collect()),
        Err(_) => from.get(key),
    }
}

/// Pages of requests for each page of the burst buffer, of as many as are written: of pages drawn at random e^-4 = 2 % then have none.
const FILLING: u64 = 4;

/// The phases in order. Each draws a stream of its own from the seed of the run.
pub(super) fn phases(from: &Layered, device: &Device, queues: u32, seed: u64) -> Result<Vec<Phase>, ConfigError> {
    const KEY: &str = "workload.phases";
    let names = names(from, KEY)?;
    if names.is_empty() || names.len() > 1_000 {
        return Err(from.refuse(KEY, "1 to 1000 workloads"));
    }
    let count = names.len();
    let phases = names.iter().enumerate();
    phases.map(|(index, name)| phase(from, name, (index, count), device, queues, seed)).collect()
}

fn phase(
    from: &Layered,
    name: &str,
    (index, count): (usize, usize),
    device: &Device,
    queues: u32,
    seed: u64,
) -> Result<Phase, ConfigError> {
    let mut recipe = recipe(from, name, (index, count))?;
    if let Some(theta) = from.nth_unless("workload.zipf_theta", "own", index, count)? {
        recipe.pattern = Pattern::Zipf { theta };
    }
    if let Some(fraction) = from.nth_unless("workload.deallocate_fraction", "own", index, count)? {
        recipe.others.deallocate = fraction;
    }
    let parameters = Parameters {
        capacity: device.namespaces[0],
        // Not the next seed, whose run would then draw in this phase what this one draws in the next.
        seed: seed ^ (index as u64) << 32,
        // What is popular in one phase is in the next.
        popular: seed,
        block: from.nth_unless("workload.block_bytes", "own", index, count)?,
        read_fraction: from.nth_unless("workload.read_fraction", "own", index, count)?,
        alignment: from.nth_unless("workload.alignment_bytes", "own", index, count)?,
        region: region(from, index, count, device.namespaces[0])?,
        streams: from.nth_unless("workload.streams", "own", index, count)?,
        queues,
        per_second: from.nth_unless("workload.per_second", "own", index, count)?,
    };
    let unusable = |error| unusable(from, name, (index, count), &error);
    recipe.source(&parameters).map_err(unusable)?;
    let mean_bytes = recipe.mean_bytes(&parameters).map_err(unusable)?;
    for (key, said) in [("workload.block_bytes", parameters.block), ("workload.alignment_bytes", parameters.alignment)]
    {
        let block = device.format.sectors() * SECTOR_BYTES;
        if said.is_some_and(|said| !said.0.is_multiple_of(block)) {
            return Err(from.refuse(key, format!("a multiple of device.lba_bytes, which is {block}")));
        }
    }
    let (ios, duration) = (
        from.nth_unless("workload.ios", "none", index, count)?,
        from.nth_unless("workload.duration_ms", "none", index, count)?,
    );
    if ios == Some(0) || (ios.is_none() && duration.is_none()) {
        return Err(from.refuse("workload.ios", "at least 1, or \"none\" with a workload.duration_ms"));
    }
    if duration == Some(Span::ZERO) {
        return Err(from.refuse("workload.duration_ms", "more than 0, or \"none\""));
    }
    let sectors = parameters.region.map_or(parameters.capacity, |region| region.sectors);
    let (page, buffer) = (device.geometry.shape().page.0, from.get::<Bytes>("cache.size_bytes")?.0);
    let pages = (buffer / page).min(sectors.div_ceil(page / SECTOR_BYTES)) * FILLING;
    let filling = (pages as f64 / (mean_bytes / page as f64).max(1.0)).ceil() as u64;
    Ok(Phase {
        name: Workload::named(name).map_or_else(|| stem(name), |workload| workload.name.into()),
        written: name.into(),
        recipe,
        parameters,
        pace: from.nth("workload.pace", index, count)?,
        ios,
        duration,
        warm_up_ios: from.nth_unless("workload.warm_up_ios", "auto", index, count)?.unwrap_or(filling),
        warm_up: from.nth("workload.warm_up_ms", index, count)?,
        rounds: rounds(from)?,
    })
}

/// What the workload of a file is called.
fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or(path.into(), |stem| stem.to_string_lossy().into_owned())
}

/// The rounds of every phase, where phases run until they are steady.
fn rounds(from: &Layered) -> Result<Option<Rounds>, ConfigError> {
    const KEY: &str = "run.round";
    let most = from.within("run.rounds_max", workload::STEADY_WINDOW as u32, 10_000)?;
    let (ios, duration) = match from.get::<u64>(KEY) {
        Ok(ios) => (Some(ios), None),
        Err(_) => (None, from.get::<Span>(KEY).ok()),
    };
    if ios.is_none_or(|ios| ios == 0) && duration.is_none_or(|duration| duration == Span::ZERO) {
        return Err(from.refuse(KEY, "requests, at least 1, or a time above 0 such as \"50ms\""));
    }
    let until: Until = from.get("run.until")?;
    Ok((until == Until::Steady).then_some(Rounds { ios, duration, most }))
}

/// A workload by name; else as its recipe has it, or the file at that path.
fn recipe(from: &Layered, name: &str, (index, count): (usize, usize)) -> Result<Recipe, ConfigError> {
    const KEY: &str = "workload.phases";
    let text: Option<String> = from.nth_unless(RECIPE, "own", index, count)?;
    match (Workload::named(name), text) {
        (Some(workload), None) => return Ok(workload.recipe()),
        (Some(_), Some(_)) => return Err(from.refuse(RECIPE, format!("\"own\": {name} is no file's"))),
        (None, Some(text)) => {
            let refuse = |error: toml::de::Error| from.refuse(RECIPE, format!("a workload: {}", error.message()));
            return Recipe::from_toml(&text).map_err(refuse);
        }
        (None, None) => {}
    }
    let path = Path::new(name);
    if name.is_empty() || !path.exists() {
        return Err(from.refuse(KEY, unknown_workload(name)));
    }
    let text = text::read(path)?;
    Recipe::from_toml(&text).map_err(|error| text::syntax(name, &text, &error))
}

/// What was expected where a name is neither a workload's nor a file's.
fn unknown_workload(name: &str) -> String {
    let names = WORKLOADS.iter().map(|workload| workload.name);
    let nearest =
        names.clone().map(|known| (distance(known, &name.to_lowercase()), known)).min().filter(|(far, _)| *far <= 2);
    let names: Vec<&str> = names.collect();
    let all = format!("workload files or one of {}", names.join(", "));
    match nearest {
        _ if name.is_empty() => format!("{all}, and a name on each side of a comma"),
        Some((_, known)) => format!("{all}; \"{name}\" may be {known}"),
        None => format!("{all}; {}", text::looked_for(name)),
    }
}

/// The part of the first namespace that requests stay in, where it is not all of it.
fn region(from: &Layered, index: usize, count: usize, capacity: u64) -> Result<Option<Region>, ConfigError> {
    let sectors = |key: &str, bytes: Bytes| {
        let whole = bytes.0.is_multiple_of(SECTOR_BYTES);
        let expected = || format!("a multiple of {SECTOR_BYTES} bytes");
        if whole { Ok(bytes.0 / SECTOR_BYTES) } else { Err(from.refuse(key, expected())) }
    };
    let start = sectors("workload.region_start_bytes", from.nth("workload.region_start_bytes", index, count)?)?;
    let Some(rest) = capacity.checked_sub(start) else {
        let expected = format!("at most the namespace's {} bytes", capacity * SECTOR_BYTES);
        return Err(from.refuse("workload.region_start_bytes", expected));
    };
    let length = match from.nth_unless("workload.region_bytes", "rest", index, count)? {
        Some(bytes) => sectors("workload.region_bytes", bytes)?,
        None => rest,
    };
    Ok((start != 0 || length != capacity).then_some(Region { start: Lba(start), sectors: length }))
}

/// The key that leaves requests little room: the last of those that cut it down.
fn narrowing(from: &Layered, index: usize, count: usize) -> &'static str {
    const NAMESPACES: &str = "device.namespace_bytes";
    let says = |key: &str, word| from.of_phase(key, index, count).is_ok_and(|value| value.is_text(word));
    if !says("workload.region_bytes", "rest") {
        return "workload.region_bytes";
    }
    if from.nth("workload.region_start_bytes", index, count).is_ok_and(|start: Bytes| start > Bytes(0)) {
        return "workload.region_start_bytes";
    }
    // What the first namespace leaves out, or the others take from it.
    let whole =
        matches!(&from.setting(NAMESPACES).value, Value::List(sizes) if sizes.len() == 1 && sizes[0].is_text("rest"));
    match (whole, says("workload.alignment_bytes", "own")) {
        (false, _) => NAMESPACES,
        (true, false) => "workload.alignment_bytes",
        (true, true) => "device.user_bytes",
    }
}

/// The key behind a field that the workload crate names; what a key leaves to the workload itself is the workload's fault, and a field
/// that no key stands for is.
fn unusable(from: &Layered, name: &str, (index, count): (usize, usize), error: &UnusableParameter) -> ConfigError {
    const PHASES: &str = "workload.phases";
    let key = match error.field.as_str() {
        "block" => "workload.block_bytes",
        "alignment" => "workload.alignment_bytes",
        "read_fraction" => "workload.read_fraction",
        "others.deallocate" => "workload.deallocate_fraction",
        "pattern.sequential.streams" => "workload.streams",
        "pattern.zipf.theta" => "workload.zipf_theta",
        "arrivals.per_second" => "workload.per_second",
        "region" | "capacity" => narrowing(from, index, count),
        "pattern.regions" if Workload::named(name).is_some() => narrowing(from, index, count),
        _ => PHASES,
    };
    let UnusableParameter { field, found, expected } = error;
    if key == PHASES || from.of_phase(key, index, count).is_ok_and(|value| value.is_text("own")) {
        // What we ship ourselves can be drawn, so it is a file.
        let key = if field == "alignment" { "alignment_bytes" } else { field }.to_owned();
        let line = text::read(Path::new(name)).map_or(1, |text| text::line_with(&text, &key));
        let at = Origin::Workload { file: name.into(), line };
        return ConfigError::Refused { at, key, found: found.clone(), expected: expected.clone() };
    }
    // Of what the run cut out of the drive a key says where it ends at most.
    let is_of_room = ["region", "capacity", "pattern.regions"].contains(&&**field);
    let expected = match () {
        () if is_of_room => format!("{expected} ({field} was {found})"),
        () if key.ends_with("_fraction") => format!("{expected} (0.1 is 10 %)"),
        () => expected.clone(),
    };
    from.refuse(key, expected)
}

#[cfg(test)]
mod tests {
    use crate::config::Layers;

    #[test]
    fn what_leaves_no_room_is_named_with_its_place() {
        let of = |text: &str, set: &[&str]| {
            let layers = Layers::new().set("platform.device=small").unwrap().text("run.toml", text).unwrap();
            let layers = set.iter().fold(layers, |layers, set| layers.set(set).unwrap());
            layers.resolve().err().expect("it is refused").to_string()
        };
        let room = "expected at least 8 sectors of 512 B, as long as the largest request";
        for (text, set, said) in [
            ("", &["workload.region_bytes=1k"][..], format!("--set: workload.region_bytes is \"1k\"; {room}")),
            (
                "[workload]\nregion_bytes = \"1k\"\n",
                &[],
                format!("run.toml:2: workload.region_bytes is \"1k\"; {room}"),
            ),
            (
                "[device]\nuser_bytes = \"40MiB\"\n[workload]\nregion_start_bytes = 41942016\n",
                &[],
                format!("run.toml:4: workload.region_start_bytes is 41942016; {room}"),
            ),
            (
                "[device]\nuser_bytes = \"40MiB\"\n[workload]\nregion_start_bytes = \"4k\"\nregion_bytes = \"40MiB\"\n",
                &[],
                "run.toml:5: workload.region_bytes is \"40MiB\"; expected ".into(),
            ),
            (
                "[device]\nnamespace_bytes = [4096, \"rest\"]\n",
                &["workload.phases=exchange"],
                "run.toml:2: device.namespace_bytes is [4096, \"rest\"]; expected ".into(),
            ),
            (
                "[workload]\nregion_bytes = \"16k\"\n",
                &["workload.phases=jesd219", "workload.block_bytes=4k"],
                "run.toml:2: workload.region_bytes is \"16k\"; expected room for 8 sectors".into(),
            ),
            (
                "[device]\nnamespace_bytes = [4096, \"rest\"]\n",
                &["workload.block_bytes=8k"],
                "--set: workload.block_bytes is \"8k\"; expected a size within the 8 sectors to draw from".into(),
            ),
        ] {
            let error = of(text, set);
            assert!(error.starts_with(&said), "{error}\nwithout {said}");
        }
    }

    #[test]
    fn papers_may_spell_a_workload_as_they_do() {
        let resolved = |phases: &str| Layers::new().flag("--workload", phases).and_then(Layers::resolve);
        let names: Vec<String> = ["24HR,Exchange,CHEETAH,RandRead", "24hr,exchange,cheetah,randread"]
            .map(|phases| resolved(phases).expect("workloads by name").phases.into_iter().map(|phase| phase.name))
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(names[..4], names[4..], "results name them alike");
        let read = resolved("24HR").expect("a workload by name").files_read().collect::<Vec<_>>();
        assert!(read.is_empty(), "{read:?}");
    }

    #[test]
    fn a_field_of_a_workload_file_is_refused_as_its_own() {
        let path = std::env::temp_dir().join(format!("flashloom-workload-{}.toml", std::process::id()));
        std::fs::write(&path, "pattern = \"random\"\nread_fraction = 2\nsizes = { fixed_bytes = 4096 }\n").unwrap();
        let file = path.display().to_string();
        let of =
            |layers: Layers| layers.flag("--workload", &file).unwrap().resolve().err().map(|error| error.to_string());
        let own = of(Layers::new()).unwrap().replace(&file, "w.toml");
        assert_eq!(own, "w.toml:2: read_fraction is 2; expected a number from 0 to 1");
        assert_eq!(of(Layers::new().set("workload.read_fraction=0.5").unwrap()), None);
        let said = of(Layers::new().set("workload.read_fraction=3").unwrap()).unwrap();
        assert!(said.starts_with("--set: workload.read_fraction is 3; expected a number from 0 to 1"), "{said}");
        let sizes = "sizes = { fixed_bytes = 4096 }\n";
        let shares = "{ accesses = 1, space = 0 }, { accesses = 1, space = 1 }";
        for (text, expected) in [
            (format!("pattern = \"random\"\nsize = 3\nread_fraction = 1\n{sizes}"), "w.toml:2:1: unknown field `size`"),
            (
                format!("pattern = \"random\"\nread_fraction = \"half\"\n{sizes}"),
                "w.toml:2:17: read_fraction: invalid type: string \"half\", expected f64",
            ),
            ("=\u{0}".into(), "w.toml:1:"),
            ("pattern = \"random\"\nread_fraction = 1\n".into(), "w.toml:1:1: missing field `sizes`"),
            (
                format!("pattern = \"runs\"\nread_fraction = 1\n{sizes}"),
                "w.toml:1:11: pattern: expected a table with the fields of that choice",
            ),
            (
                "pattern = \"random\"\nread_fraction = 1\nsizes = { fixed_bytes = 5 }\n".into(),
                "w.toml:3: sizes.fixed_bytes is 5",
            ),
            (
                "pattern = \"random\"\nread_fraction = 1\nsizes = { fixed_bytes = \"4q\" }\n".into(),
                "w.toml:3:9: sizes: is \"4q\"; expected a size in bytes, as 4096, \"4k\" or \"128KiB\"",
            ),
            (
                format!("pattern = {{ regions = [{shares}] }}\nread_fraction = 1\n{sizes}"),
                "w.toml:1: pattern.regions is share 1: 0 sectors from lba0; expected room for 8 sectors",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = of(Layers::new()).unwrap().replace(&file, "w.toml");
            assert!(said.starts_with(expected), "{said}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
