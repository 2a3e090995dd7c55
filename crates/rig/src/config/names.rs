//! What has a name may be written as people do: `BaseDeepFlash`, `24HR`, `MLC-1TB`. What is kept and printed of it is the name itself.

use super::value::Value;
use super::{CHOICES, DEVICES, Named, PROCESSORS};
use firmware::architecture::ARCHITECTURES;
use std::path::Path;
use units::is_called;
use workload::WORKLOADS;

/// Keys that hold one of a few words among other things.
const WORDS: &[(&str, &[&str])] =
    &[("firmware.mapping", &["page"]), ("run.precondition", &["none", "seq"]), ("run.timing", &["on", "off"])];

/// Keys that may hold a word with a number behind a colon.
const WITH_NUMBERS: &[(&str, &str)] = &[("run.precondition", "rand")];

/// Keys that may hold several names in one text, with commas between them.
const LISTS: &[&str] = &["workload.phases", "host.priorities"];

/// What a key is given, with the names that it holds in their own spelling.
pub(super) fn in_their_spelling(key: &str, value: Value) -> Value {
    match value {
        Value::Text(text) if LISTS.contains(&key) => {
            let names: Vec<&str> = text.split(',').map(|said| spelled(key, said.trim()).unwrap_or(said)).collect();
            Value::Text(names.join(","))
        }
        Value::Text(text) => {
            let numbered = || with_number(key, &text);
            Value::Text(spelled(key, &text).map(str::to_owned).or_else(numbered).unwrap_or(text))
        }
        Value::List(values) => Value::List(values.into_iter().map(|value| in_their_spelling(key, value)).collect()),
        other => other,
    }
}

/// The name of what is called so, unless what is said is one, or a file that a key takes instead.
fn spelled(key: &str, said: &str) -> Option<&'static str> {
    let named = |catalogue: &'static [Named]| catalogue.iter().map(|named| named.name).collect();
    let (known, takes_files): (Vec<&'static str>, bool) = match key {
        "platform.architecture" => (ARCHITECTURES.iter().map(|architecture| architecture.name()).collect(), false),
        "platform.device" => (named(DEVICES), true),
        "platform.processor" => (named(PROCESSORS), true),
        "workload.phases" => (WORKLOADS.iter().map(|workload| workload.name).collect(), true),
        _ => {
            let words = CHOICES.iter().chain(WORDS).find(|(choice, _)| *choice == key);
            (words.map_or_else(Vec::new, |(_, words)| words.to_vec()), false)
        }
    };
    if known.contains(&said) || takes_files && Path::new(said).exists() {
        return None;
    }
    known.into_iter().find(|name| is_called(name, said))
}

/// What is said with its word in its own spelling, where it is a word with a number.
fn with_number(key: &str, said: &str) -> Option<String> {
    let (word, number) = said.split_once(':')?;
    let (_, known) = WITH_NUMBERS.iter().find(|(numbered, known)| *numbered == key && is_called(known, word))?;
    Some(format!("{known}:{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn what_has_a_name_may_be_written_as_papers_do_and_is_kept_by_its_name() {
        let file = "[platform]\narchitecture = \"Base-DeepFlash\"\nprocessor = \"In_Order_1GHz\"\n\
                    [reclaim]\nvictim = \"Cost-Benefit\"\n[host]\npriorities = [\"Urgent\"]\n\
                    [workload]\nphases = [\"24HR\", \"RandRead\"]\npace = \"Closed\"\n";
        let layers = Layers::new().text("run.toml", file).unwrap();
        let flags = [("--device", "SMALL"), ("--world", "Sim"), ("--payload", "NONE"), ("--precondition", "SEQ")];
        let layers = flags.into_iter().fold(layers, |layers, (flag, name)| layers.flag(flag, name).unwrap());
        let resolved = layers.set("firmware.mapping=PAGE").unwrap().resolve().unwrap();
        let rows: Vec<(&str, String)> = resolved.rows().map(|row| (row.key, row.value)).collect();
        for (key, value) in [
            ("platform.architecture", "\"base_deepflash\""),
            ("platform.device", "\"small\""),
            ("platform.processor", "\"in-order-1ghz\""),
            ("reclaim.victim", "\"cost_benefit\""),
            ("host.priorities", "[\"urgent\"]"),
            ("workload.phases", "[\"24hr\", \"randread\"]"),
            ("workload.pace", "\"closed\""),
            ("run.world", "\"sim\""),
            ("run.payload", "\"none\""),
            ("run.precondition", "\"seq\""),
            ("firmware.mapping", "\"page\""),
        ] {
            assert!(rows.contains(&(key, value.into())), "{key} is not {value}");
        }
        assert_eq!(resolved.files_read().count(), 0);
    }

    #[test]
    fn a_file_comes_before_a_name_in_another_spelling() {
        let said = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(spelled("platform.device", "Small"), Some("small"));
        assert_eq!(spelled("platform.device", &said.display().to_string()), None);
        assert_eq!(spelled("platform.device", "smaller"), None);
        let phases = in_their_spelling("workload.phases", Value::Text("24HR, my.toml,randread".into()));
        assert_eq!(phases, Value::Text("24hr, my.toml,randread".into()));
        let overwritten = in_their_spelling("run.precondition", Value::Text("Rand:1.5".into()));
        assert_eq!(overwritten, Value::Text("rand:1.5".into()));
    }

    #[test]
    fn no_two_things_of_a_kind_are_called_alike() {
        let named = |catalogue: &'static [Named]| catalogue.iter().map(|named| named.name).collect::<Vec<_>>();
        let architectures = ARCHITECTURES.iter().map(|architecture| architecture.name()).collect();
        let workloads = WORKLOADS.iter().map(|workload| workload.name).collect();
        for names in [named(DEVICES), named(PROCESSORS), architectures, workloads] {
            for (at, name) in names.iter().enumerate() {
                assert!(names[..at].iter().all(|other| !is_called(other, name)), "{name}");
            }
        }
    }
}
