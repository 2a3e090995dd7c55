//! What a file goes on saying of a device, processor or architecture that a flag puts another in the place of. A file that
//! `describe --toml` wrote says everything of them, so that a run with it would have the new name and the old figures.

use super::layered::{Layer, Layered, Setting};
use super::schema::schema;
use super::{ConfigError, Origin, firmware_keys};
use firmware::architecture::{Architecture, find};
use std::collections::BTreeSet;

/// How many keys are named.
const NAMED_MAX: usize = 4;

/// A device, processor or architecture that a file names, and a flag or `--set` names another in place of.
struct Replaced<'a> {
    key: &'static str,
    file: &'a str,
    was: String,
    by: String,
}

impl<'a> Replaced<'a> {
    fn find(user: &'a Layer, chosen: &Layered, key: &'static str) -> Option<Replaced<'a>> {
        let Setting { value, origin } = chosen.setting(key);
        let by = match origin {
            Origin::Flag(flag) => format!("{flag} {}", value.to_string().trim_matches('"')),
            Origin::Set => format!("--set {key}={value}"),
            _ => return None,
        };
        let named = |(index, setting): &'a (usize, Setting)| match &setting.origin {
            Origin::File { file, .. } if schema().keys[*index].path == key => Some((file, &setting.value)),
            _ => None,
        };
        let (file, was) = user.iter().rev().find_map(named)?;
        (was != value).then(|| Replaced { key, file, was: was.to_string(), by })
    }

    /// What the file says otherwise than those below it do, of the keys that are about the one it names.
    fn kept(&self, user: &'a Layer, below: &Layered, is_about: impl Fn(usize) -> bool) -> Option<String> {
        let stays = |(index, setting): &&(usize, Setting)| {
            let in_file = matches!(&setting.origin, Origin::File { file, .. } if **file == *self.file);
            let key = &*schema().keys[*index].path;
            let is_figure = key != self.key && !key.ends_with(".summary");
            in_file && is_figure && is_about(*index) && below.setting(key).value != setting.value
        };
        let keys: Vec<&str> = user.iter().filter(stays).map(|(index, _)| &*schema().keys[*index].path).collect();
        let named = keys.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = match keys.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let Replaced { file, was, by, .. } = self;
        let stay = "but these stay as that file has them";
        (!keys.is_empty()).then(|| format!("{by} takes the place of {was} in {file}, {stay}: {named}{more}"))
    }
}

/// Takes out what a file says of groups of threads that the architecture has not which a flag names instead of the file's, and says so.
pub(super) fn drop_foreign(user: &mut Layer, chosen: &Layered, architecture: &dyn Architecture) -> Option<String> {
    let Replaced { file, was, by, .. } = Replaced::find(user, chosen, "platform.architecture")?;
    let file = file.to_owned();
    let is_foreign = |(index, setting): &(usize, Setting)| {
        let in_file = matches!(&setting.origin, Origin::File { file: of, .. } if **of == *file);
        in_file && firmware_keys::is_foreign(&schema().keys[*index].path, architecture)
    };
    let keys: Vec<&str> =
        user.iter().filter(|it| is_foreign(it)).map(|(index, _)| &*schema().keys[*index].path).collect();
    user.retain(|it| !is_foreign(it));
    let name = architecture.name();
    let left_out = format!("{name} has no such groups of threads, so these are left out: {}", keys.join(", "));
    (!keys.is_empty()).then(|| format!("{by} takes the place of {was} in {file}; {left_out}"))
}

/// What the user's files keep of what flags replace, in words; `below` is all that lies below them, and `bare` all below the
/// architecture.
pub(super) fn kept(
    user: &Layer,
    chosen: &Layered,
    (bare, below): (&Layered, &Layered),
    architecture: &dyn Architecture,
) -> Result<Vec<String>, ConfigError> {
    let mut said = Vec::new();
    for (key, table) in [("platform.device", "device."), ("platform.processor", "processor.")] {
        let gives = |index: usize| match &below.setting(&schema().keys[index].path).origin {
            Origin::Device { .. } => table == "device.",
            _ => schema().keys[index].path.starts_with(table),
        };
        let replaced = Replaced::find(user, chosen, key);
        said.extend(replaced.and_then(|replaced| replaced.kept(user, below, gives)));
    }
    if let Some(replaced) = Replaced::find(user, chosen, "platform.architecture") {
        let before = find(replaced.was.trim_matches('"'));
        let mut gives: BTreeSet<usize> = BTreeSet::new();
        for one in before.into_iter().chain([architecture]) {
            gives.extend(firmware_keys::architecture_layer(bare, one)?.iter().map(|(index, _)| *index));
        }
        said.extend(replaced.kept(user, below, |index| gives.contains(&index)));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use crate::config::Layers;

    #[test]
    fn what_a_file_keeps_of_what_a_flag_replaces_is_told() {
        let whole = |flag, name| Layers::new().flag(flag, name).unwrap().resolve().unwrap().to_toml();
        let kept = |text: &str, flag, name| {
            let layers = Layers::new().text("whole.toml", text).unwrap();
            layers.flag(flag, name).unwrap().resolve().unwrap().kept
        };
        let base = whole("--architecture", "base_deepflash");
        let [said] = &kept(&base, "--architecture", "deepflash")[..] else { panic!("one note") };
        let begins = "--architecture deepflash takes the place of \"base_deepflash\" in whole.toml, but these stay";
        assert!(said.starts_with(begins) && said.contains("lock.forwarding"), "{said}");
        for (flag, name, key) in [("--device", "small", "device.channels"), ("--processor", "timeless", "processor.")] {
            let [said] = &kept(&base, flag, name)[..] else { panic!("one note of {flag}") };
            assert!(said.contains(key) && said.ends_with(" more"), "{said}");
        }
        assert_eq!(kept(&base, "--architecture", "base_deepflash"), [""; 0], "the same again");
        let tradition = Layers::new().text("whole.toml", &whole("--architecture", "tradition")).unwrap();
        let tradition = tradition.flag("--architecture", "deepflash").unwrap().resolve().unwrap().left_out;
        let left_out = "deepflash has no such groups of threads, so these are left out: threads.fetch, ";
        assert!(tradition.as_ref().is_some_and(|said| said.contains(left_out)), "{tradition:?}");
        assert_eq!(kept(&base, "--cores", "24"), [""; 0], "a key of its own");
        assert_eq!(kept("device.channels = 8", "--device", "small"), [""; 0], "a file for any device");
        assert_eq!(kept("platform.device = \"mlc-4gb\"", "--device", "small"), [""; 0], "a file that keeps nothing");
    }
}
