//! The device: array, times, capacity, namespaces and the link to the host.

use super::layered::{Layered, Setting};
use super::media;
use super::schema::schema;
use super::value::Value;
use super::{ConfigError, Origin};
use crate::config::field::Field;
use crate::hardware::LinkTiming;
use crate::power::PowerBudget;
use firmware::LbaFormat;
use flash::OOB_ENTRY;
use flash::{CommandCycles, FaultSettings, Geometry, GeometryError, Shape, Suspend, Timing};
use sim::Processor;
use units::{Bytes, BytesPerSecond, MegaTransfers, SECTOR_BYTES, Span};

/// A device, checked.
#[derive(Clone, Debug)]
pub struct Device {
    /// What it is called: its name in the catalogue, or its file's.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// The array.
    pub geometry: Geometry,
    /// How long everything takes.
    pub timing: Timing,
    /// Erases a block stands.
    pub erase_limit: u32,
    /// How flash fails; none if it does not.
    pub faults: Option<FaultSettings>,
    /// What brings the buffer to flash when the power fails; none if nothing does.
    pub power: Option<PowerBudget>,
    /// What hosts see: whole pages.
    pub user: Bytes,
    /// Sectors of each namespace, in order.
    pub namespaces: Vec<u64>,
    /// How hosts count blocks.
    pub format: LbaFormat,
    /// Whether each sector has a tag and a seal beside it.
    pub tags: bool,
    /// Chance of a page that one of its bits flips in the drive's memory before it is programmed.
    pub memory_flips: f64,
    /// Whether cells hold pages scrambled.
    pub scrambler: bool,
    /// The link to the host.
    pub link: LinkTiming,
}

/// What pages there can be.
pub(super) const PAGES: &str = "a power of two from 512 to 16384: a page has 32 sectors at most";

impl Device {
    /// A device that firmware on this processor runs.
    pub(super) fn read(from: &Layered, name: &str, processor: &Processor) -> Result<Device, ConfigError> {
        let geometry = geometry(from)?;
        let timing = timing(from)?;
        timing.validate(&geometry).map_err(|error| refuse_time(from, timing_key(error.field), error.expected))?;
        let user = user_bytes(from, &geometry)?;
        let format = format(from, geometry.shape().page)?;
        let tags = tag_bytes(from, &geometry, format)?;
        Ok(Device {
            name: name.into(),
            summary: from.get("device.summary")?,
            timing,
            erase_limit: from.within("device.erase_limit", 1, u32::MAX)?,
            faults: media::read(from, &geometry, tags.unwrap_or_default())?,
            power: power(from, processor)?,
            namespaces: namespaces(from, user, geometry.shape().page)?,
            geometry,
            user,
            format,
            tags: tags.is_some(),
            scrambler: from.get("device.media.scrambler")?,
            memory_flips: from.within("device.memory_flips", 0.0, 1.0)?,
            link: link(from)?,
        })
    }
}

fn link(from: &Layered) -> Result<LinkTiming, ConfigError> {
    let rate: Bytes = from.get("device.link.raw_bytes_per_s")?;
    if rate < Bytes(1_000_000) {
        return Err(from.refuse("device.link.raw_bytes_per_s", "at least 1000000"));
    }
    Ok(LinkTiming {
        rate: BytesPerSecond(rate.0),
        packet: Bytes(from.within("device.link.payload_bytes", 64u64, 4096)?),
        header: Bytes(from.within("device.link.header_bytes", 0u64, 4096)?),
        flight: from.get("device.link.latency_ns")?,
    })
}

fn geometry(from: &Layered) -> Result<Geometry, ConfigError> {
    let shape = Shape {
        channels: from.get("device.channels")?,
        packages_per_channel: from.get("device.packages_per_channel")?,
        dies_per_package: from.get("device.dies_per_package")?,
        planes_per_die: from.get("device.planes_per_die")?,
        blocks_per_plane: from.get("device.blocks_per_plane")?,
        pages_per_block: from.get("device.pages_per_block")?,
        page: from.get("device.page_bytes")?,
        oob: from.get("device.oob_bytes")?,
        kind: from.get("device.kind")?,
    };
    Geometry::new(shape).map_err(|error| match error {
        // Flash itself has larger pages, the firmware has not.
        GeometryError::Count { field: "page_bytes", .. } => from.refuse("device.page_bytes", PAGES),
        GeometryError::Count { field, expected, .. } => from.refuse(&format!("device.{field}"), expected),
        GeometryError::TooManyPages { pages, limit } => {
            from.refuse("device.blocks_per_plane", format!("an array of at most {limit} pages; this has {pages}"))
        }
    })
}

fn timing(from: &Layered) -> Result<Timing, ConfigError> {
    let span = |key: &str| from.get::<Span>(&format!("device.timing.{key}"));
    let count = |key: &str| from.get::<u32>(&format!("device.timing.{key}"));
    Ok(Timing {
        bus: MegaTransfers(count("bus_mt_per_s")?),
        cycle: span("cycle_ns")?,
        cycles: CommandCycles {
            read: count("read_cycles")?,
            read_out: count("read_out_cycles")?,
            program: count("program_cycles")?,
            erase: count("erase_cycles")?,
            status: count("status_cycles")?,
            cache: count("cache_cycles")?,
            suspend: count("suspend_cycles")?,
            resume: count("resume_cycles")?,
        },
        oob_moved: from.get("device.timing.oob_moved_bytes")?,
        read: [span("read_lsb_us")?, span("read_csb_us")?, span("read_msb_us")?],
        program: [span("program_lsb_us")?, span("program_csb_us")?, span("program_msb_us")?],
        erase: span("erase_us")?,
        further_plane: span("further_plane_us")?,
        cache_commands: from.get("device.timing.cache_commands")?,
        cache_read_busy: span("cache_read_busy_us")?,
        cache_program_busy: span("cache_program_busy_us")?,
        suspend: Suspend {
            programs_max: count("suspend_programs_max")?,
            erases_max: count("suspend_erases_max")?,
            reads_max: count("suspend_reads_max")?,
            program_latency: span("suspend_program_latency_us")?,
            erase_latency: span("suspend_erase_latency_us")?,
            resume_overhead: span("resume_overhead_us")?,
        },
    })
}

/// The energy that keeps the buffer when the power fails, where anything does.
fn power(from: &Layered, processor: &Processor) -> Result<Option<PowerBudget>, ConfigError> {
    let positive = |key: &str| match from.get::<f64>(key)? {
        number if number > 0.0 => Ok(number),
        _ => Err(from.refuse(key, "a number above 0")),
    };
    let budget = PowerBudget {
        energy_j: positive("device.power.energy_j")?,
        hold_w: positive("device.power.hold_w")?,
        die_w: positive("device.power.die_w")?,
        page: PowerBudget::page_on(processor),
    };
    Ok(from.get::<bool>("device.power.protected")?.then_some(budget))
}

/// The key of a field that the flash crate names: the field, with a unit where it has one.
fn timing_key(field: &str) -> &'static str {
    let is_key = |path: &&str| {
        let Some(name) = path.strip_prefix("device.timing.") else { return false };
        name.strip_prefix(field).is_some_and(|unit| ["", "_ns", "_us", "_bytes"].contains(&unit))
    };
    let mut paths = schema().keys.iter().map(|key| key.path.as_str());
    paths.find(is_key).unwrap_or_else(|| panic!("default.toml lacks the timing's {field}"))
}

/// The complaint about a time: about its absence, where a device file does not give what its kind of cells needs.
fn refuse_time(from: &Layered, key: &str, expected: impl Into<String>) -> ConfigError {
    let is_absent = matches!(from.setting(key).origin, Origin::Default { .. });
    match from.setting("device.kind") {
        Setting { value, origin: Origin::Device { file, .. } } if is_absent && key.contains("sb_us") => {
            ConfigError::Lacking { file: file.to_string(), key: key.into(), kind: value.to_string() }
        }
        _ => from.refuse(key, expected),
    }
}

/// Whole pages: a remainder is left to the firmware.
fn user_bytes(from: &Layered, geometry: &Geometry) -> Result<Bytes, ConfigError> {
    let (array, page) = (geometry.capacity(), geometry.shape().page);
    let given: Option<Bytes> = from.get_unless("device.user_bytes", "derived")?;
    let (key, user) = match given {
        Some(user) => ("device.user_bytes", user),
        None => {
            let key = "device.over_provisioning";
            let share = from.share(key, 100.0)?;
            (key, Bytes((array.0 as f64 / (1.0 + share)) as u64))
        }
    };
    if user < page || user > array {
        return Err(from.refuse(key, format!("{} to {} bytes: a page up to the whole array", page.0, array.0)));
    }
    Ok(page * (user.0 / page.0))
}

/// Namespaces that a configuration names: a host is told of so many in one list (Base, CNS 02h). A replay may deal the drive to more.
const NAMESPACES_MAX: usize = 1024;

/// Sectors of each namespace: whole pages, together no more than hosts see.
fn namespaces(from: &Layered, user: Bytes, page: Bytes) -> Result<Vec<u64>, ConfigError> {
    const KEY: &str = "device.namespace_bytes";
    let Value::List(values) = &from.setting(KEY).value else {
        return Err(from.refuse(KEY, "a list of sizes"));
    };
    let sizes: Option<Vec<Option<Bytes>>> = values
        .iter()
        .map(|value| if value.is_text("rest") { Some(None) } else { Bytes::read(value, KEY).map(Some) })
        .collect();
    let sizes = sizes.ok_or_else(|| from.refuse(KEY, "sizes, one of which may be \"rest\""))?;
    let rests = sizes.iter().filter(|size| size.is_none()).count();
    if !(1..=NAMESPACES_MAX).contains(&sizes.len()) || rests > 1 {
        return Err(from.refuse(KEY, format!("1 to {NAMESPACES_MAX} sizes, one of which may be \"rest\"")));
    }
    let given = sizes.iter().flatten().fold(0u64, |sum, size| sum.saturating_add(size.0));
    let Some(rest) = user.0.checked_sub(given) else {
        return Err(from.refuse(KEY, format!("at most {} bytes together", user.0)));
    };
    let sizes: Vec<u64> = sizes.into_iter().map(|size| size.map_or(rest, |size| size.0)).collect();
    if sizes.iter().any(|size| *size == 0 || !size.is_multiple_of(page.0)) {
        return Err(from.refuse(KEY, format!("sizes above 0 in multiples of the page of {} bytes", page.0)));
    }
    Ok(sizes.into_iter().map(|size| size / SECTOR_BYTES).collect())
}

/// What tags and seals take of a page's out-of-band area, where there are any; the entry for recovery needs room as well.
fn tag_bytes(from: &Layered, geometry: &Geometry, format: LbaFormat) -> Result<Option<Bytes>, ConfigError> {
    const KEY: &str = "device.tags";
    if !from.get::<bool>(KEY)? {
        return Ok(None);
    }
    let block = Bytes(format.sectors() * SECTOR_BYTES);
    let (needed, oob) = (flash::tag_bytes(geometry.shape().page, block), geometry.shape().oob);
    if needed + OOB_ENTRY > oob {
        let expected = format!("false, or device.oob_bytes of at least {}; this has {}", (needed + OOB_ENTRY).0, oob.0);
        return Err(from.refuse(KEY, expected));
    }
    Ok(Some(needed))
}

/// The block of the host. A write of one lasts whole or not at all when the power fails, which is so within a page.
fn format(from: &Layered, page: Bytes) -> Result<LbaFormat, ConfigError> {
    const KEY: &str = "device.lba_bytes";
    match from.get::<u64>(KEY).unwrap_or(0) {
        512 => Ok(LbaFormat::B512),
        4096 if page < Bytes(4096) => {
            let why = "a block is written whole or not at all";
            Err(from.refuse(KEY, format!("at most the page (device.page_bytes), which is {}: {why}", page.0)))
        }
        4096 => Ok(LbaFormat::B4096),
        _ => Err(from.refuse(KEY, "512 or 4096")),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Layers;

    #[test]
    fn blocks_are_no_longer_than_pages() {
        let of = |block: &str| {
            let keys = ["device.page_bytes=2048", "device.oob_bytes=112", "device.timing.oob_moved_bytes=112", block];
            let layers = Layers::new().flag("--device", "small").unwrap();
            let layers = keys.iter().try_fold(layers, |layers, key| layers.set(key)).unwrap();
            layers.resolve().err().map(|error| error.to_string())
        };
        let refusal = "--set: device.lba_bytes is 4096; expected at most the page (device.page_bytes), which is 2048: a block is \
                       written whole or not at all";
        assert_eq!([of("device.lba_bytes=512"), of("device.lba_bytes=4096")], [None, Some(refusal.to_string())]);
    }
}
