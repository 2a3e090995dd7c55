//! What helps a firmware that has too little room on flash.

use super::Resolved;
use firmware::architecture::DrawError;

impl Resolved {
    /// What gives a firmware room that has none: about how much over-provisioning, where a `share` of it makes the drive, and perhaps fewer
    /// owners of flash, which keep room of their own, where what they hold itself has room.
    pub(super) fn way_out(&self, error: &DrawError, share: Option<f64>) -> String {
        let DrawError::NoRoom { owned, pages, spare, .. } = *error else { return String::new() };
        let least = share.filter(|_| owned > spare).map(|share| {
            let least = (1.0 + share) * pages as f64 / (owned - spare) as f64 - 1.0;
            (least * 100.0).ceil() / 100.0
        });
        let key = self.architecture.trans_key();
        let fewer = match key.strip_prefix("threads.") {
            Some(group) => format!("(--threads {group}=1)"),
            None => format!("(--set {key}=1)"),
        };
        match (least, self.settings.parts.trans > 1 && pages <= owned) {
            (Some(least), true) => format!("; about {least:.2} does, or fewer owners may {fewer}"),
            (Some(least), false) => format!("; about {least:.2} does"),
            (None, true) => format!("; fewer owners may need less {fewer}"),
            (None, false) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;
    use firmware::architecture::Materials;
    use std::sync::Arc;

    /// What is said of a small drive where it is refused.
    fn drawn(architecture: &str, threads: &str, share: &str) -> Option<String> {
        let layers = Layers::new().flag("--device", "small").unwrap().set("cache.size_bytes=1MiB").unwrap();
        let layers = layers.set(&format!("device.over_provisioning={share}")).unwrap();
        let layers = layers.flag("--architecture", architecture).unwrap();
        let layers = if threads.is_empty() { layers } else { layers.flag("--threads", threads).unwrap() };
        let resolved = layers.resolve().unwrap();
        let Resolved { drive, settings, placement, architecture, .. } = resolved.clone();
        let materials = Materials { drive: Arc::new(drive), settings, placement, link_threads: 1, watch: None };
        let error = architecture.draw(materials, &mut |_| {}).err();
        error.map(|error| resolved.undrawable(&error).to_string())
    }

    #[test]
    fn who_owns_flash_is_called_as_the_architecture_calls_it() {
        for (architecture, threads, share, owner, fewer) in [
            ("many_layered", "instance=4,fcmd=4", "0.05", "instance0", Some("--threads instance=1")),
            ("naive", "hil=2,ftl=2", "0.05", "region 0", Some("--set lock.regions=1")),
            ("layered", "", "0.01", "ftl0", None),
            ("pipessd", "", "0.01", "ftl0", None),
            ("tradition", "", "0.01", "the firmware", None),
        ] {
            let message = drawn(architecture, threads, share).expect("a full drive is refused");
            assert!(message.contains(&format!("leaves the firmware room: {owner} owns ")), "{message}");
            let way = fewer.map_or_else(|| " does".into(), |fewer| format!(" does, or fewer owners may ({fewer})"));
            assert!(message.ends_with(&way), "{message}");
        }
    }

    #[test]
    fn a_drive_without_room_is_refused_at_the_key_that_filled_it_with_a_way_out() {
        let drawn = |share: &str| drawn("deepflash", "", share);
        for full in ["0", "0.1"] {
            let message = drawn(full).expect("a full drive is refused");
            let start = format!(
                "--set: device.over_provisioning is {full}; expected a value that leaves the firmware room: trans0 owns"
            );
            assert!(message.starts_with(&start), "{message}");
            let (_, ways) = message.split_once("; about ").expect("what helps");
            let (least, fewer) = ways.split_once(" does").expect("a figure");
            // Where the pages alone are too many no number of threads helps.
            assert!(fewer == if full == "0" { "" } else { ", or fewer owners may (--threads trans=1)" }, "{message}");
            assert_eq!(drawn(least), None, "{message}");
        }
    }
}
