//! Which of the user's settings it is that a value which is not the user's was refused for.

use super::layered::Layer;
use super::layers::Layers;
use super::schema::schema;
use super::{ConfigError, Resolved};

/// Settings that are left out one after another to find the one. Of more, the one is looked for by halves with which the others before
/// it bring it about.
const TRIED_MAX: usize = 64;
/// The refused key, or nothing where there is no error or another.
type Tried<'a> = &'a dyn Fn(Layers) -> Result<(), ConfigError>;

impl Layers {
    /// An error of these layers, told of the user's setting that it comes from. `tried` says what becomes of others.
    pub(super) fn explain(&self, error: ConfigError, tried: Tried<'_>) -> ConfigError {
        let ConfigError::Refused { at, key, .. } = &error else { return error };
        let said = self.all();
        if !at.is_shipped() {
            return error;
        }
        let becomes = |layer: Layer| tried(self.only(layer));
        let without = |index: usize| said.iter().filter(|one| one.0 != index).cloned().collect::<Layer>();
        // What chooses a whole file is named where no single key is to blame.
        let is_choice = |index: usize| schema().keys[index].path.starts_with("platform.");
        let mut order: Vec<usize> = said.iter().rev().map(|(index, _)| *index).collect();
        order.sort_by_key(|index| is_choice(*index));
        let few = said.len() <= TRIED_MAX;
        let decides = order.into_iter().filter(|_| few).find(|index| becomes(without(*index)).is_ok());
        // Where several are, the last of the fewest that bring it about.
        let is_same =
            |found: Result<(), ConfigError>| matches!(found, Err(ConfigError::Refused { key: of, .. }) if of == *key);
        let index = decides.or_else(|| {
            let brings_it = |count: usize| is_same(becomes(said[..count].to_vec()));
            Some(said[last_needed(said.len(), brings_it)?].0)
        });
        let Some((index, setting)) = index.and_then(|index| said.iter().rfind(|one| one.0 == index)) else {
            return error;
        };
        let cause = format!("{} is {}", schema().keys[*index].path, setting.value);
        ConfigError::Beside { at: setting.origin.clone(), cause, refused: Box::new(error) }
    }
}

/// The index of one of so many with which it holds of all up to it and without which it does not, where it holds of all and not of none.
fn last_needed(all: usize, holds_of: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut without, mut with) = (0, all);
    while without + 1 < with {
        let middle = without.midpoint(with);
        if holds_of(middle) { with = middle } else { without = middle }
    }
    with.checked_sub(1)
}

impl Resolved {
    /// The same for what is found when the device is drawn.
    pub(super) fn explain_drawn(&self, error: ConfigError) -> ConfigError {
        self.said.explain(error, &|layers| {
            let resolved = layers.resolve()?;
            let refused = |error| match error {
                crate::build::BuildError::Draw(error) => resolved.refuse_drawing(&error),
                crate::build::BuildError::Power(error) => resolved.refuse_power(&error),
                other => resolved.refuse("platform.device", &other.to_string()),
            };
            resolved.plan().draw().map(drop).map_err(refused)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{ConfigError, Layers};

    fn refused(flags: &[(&str, &str)], sets: &[&str], text: &str) -> String {
        let layers = Layers::new().text("run.toml", text).unwrap();
        let layers = flags.iter().try_fold(layers, |layers, (flag, value)| layers.flag(flag, value)).unwrap();
        let layers = sets.iter().try_fold(layers, |layers, set| layers.set(set)).unwrap();
        match layers.resolve().map(|resolved| resolved.draw(&resolved.plan()).map(drop)) {
            Ok(drawn) => drawn.unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Each blamed a line of `default.toml`, or of a file of ours, that the user never wrote.
    #[test]
    fn a_value_of_ours_is_refused_with_what_the_user_said() {
        let protected = "device.power.protected is true, but";
        // More settings than are left out one after another: they do not hide the one.
        let whole = Layers::new().flag("--device", "mlc-4gb").unwrap().resolve().unwrap().to_toml();
        let lines = whole.lines().filter(|line| !line.starts_with(['#', '[']) && line.contains('=')).count();
        let whole = whole.replace("\ncode_data_bytes", "\n# code_data_bytes");
        assert!(lines > 200 && whole.contains("# code_data_bytes"), "{lines} settings");
        let flipped =
            refused(&[], &["device.media.faults=true", "device.page_bytes=512", "device.oob_bytes=224"], &whole);
        let expected = "--set: device.page_bytes is 512, but device.media.code_data_bytes is 1024 (default); expected";
        assert!(flipped.starts_with(expected), "{flipped}");
        for (flags, sets, text, expected) in [
            (
                &[][..],
                &["device.power.protected=true"][..],
                "",
                format!("--set: {protected} device.power.energy_j is 10 (default); expected 306."),
            ),
            (
                &[("--device", "small")],
                &[],
                "[device.power]\nprotected = true\n",
                format!("run.toml:2: {protected} cache.size_bytes is \"512MiB\" (default); expected a buffer that"),
            ),
            (
                &[("--device", "small"), ("--seed", "3")],
                &["device.kind=tlc", "device.pages_per_block=48"],
                "",
                "--set: device.kind is \"tlc\", but device.timing.read_csb_us is 0 (default); expected more".into(),
            ),
            (
                &[("--queues", "2000")],
                &["host.depth=1024"],
                "",
                "--set: host.depth is 1024; expected no more than".into(),
            ),
        ] {
            let said = refused(flags, sets, text);
            assert!(said.starts_with(&expected), "{said}\nwithout {expected}");
        }
    }

    #[test]
    fn a_device_file_is_told_what_its_kind_needs_and_is_no_configuration() {
        let path = std::env::temp_dir().join(format!("flashloom-device-{}.toml", std::process::id()));
        let tlc = include_str!("../../../../devices/tlc-1.5tb.toml");
        let lacks = |name: &str| tlc.lines().filter(|line| !line.starts_with(name)).collect::<Vec<_>>().join("\n");
        std::fs::write(&path, lacks("read_csb_us")).unwrap();
        let file = path.display().to_string();
        let said = refused(&[("--device", &file)], &[], "");
        let expected = "device.timing.read_csb_us is missing; expected it where device.kind is \"tlc\"";
        assert_eq!(said, format!("{file}: {expected}"));
        std::fs::write(&path, tlc).unwrap();
        let taken = Layers::new().file(&path).err();
        assert_eq!(taken, Some(ConfigError::OfOneTable { file: file.clone(), what: "device" }));
        assert!(taken.unwrap().to_string().ends_with(&format!("expected a configuration here, or --device {file}")));
        std::fs::write(&path, format!("{tlc}\n[run]\nseed = 2\n")).unwrap();
        assert!(Layers::new().file(&path).is_ok(), "it says more");
        for (absent, lacking) in [("channels", "device.channels"), ("read_lsb_us", "device.timing.read_lsb_us")] {
            std::fs::write(&path, lacks(absent)).unwrap();
            let said = Layers::new().file(&path).err().expect("no device, and no configuration").to_string();
            let expected = format!("{file}: it describes a device and nothing else, but lacks {lacking}; expected a");
            assert!(said.starts_with(&expected), "{said}");
        }
        let few =
            |count| tlc.lines().filter(|line| !line.starts_with("source")).take(count).collect::<Vec<_>>().join("\n");
        std::fs::write(&path, few(12)).unwrap();
        assert!(Layers::new().file(&path).is_ok(), "it lies over a device: {}", few(12));
        std::fs::remove_file(&path).unwrap();
    }
}
