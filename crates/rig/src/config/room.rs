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
        const FEWER: &str = "(--threads trans=1)";
        match (least, self.settings.threads.of("trans") > 1 && pages <= owned) {
            (Some(least), true) => format!("; about {least:.2} does, or fewer TRANS threads may {FEWER}"),
            (Some(least), false) => format!("; about {least:.2} does"),
            (None, true) => format!("; fewer TRANS threads may need less {FEWER}"),
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

    #[test]
    fn a_drive_without_room_is_refused_at_the_key_that_filled_it_with_a_way_out() {
        let drawn = |share: &str| {
            let layers = Layers::new().flag("--device", "small").unwrap().set("cache.size_bytes=1MiB").unwrap();
            let layers = layers.set(&format!("device.over_provisioning={share}")).unwrap();
            let resolved = layers.resolve().unwrap();
            let Resolved { drive, settings, placement, architecture, .. } = resolved.clone();
            let materials = Materials { drive: Arc::new(drive), settings, placement, link_threads: 1 };
            let error = architecture.draw(materials, &mut |_| {}).err();
            error.map(|error| resolved.undrawable(&error).to_string())
        };
        for full in ["0", "0.1"] {
            let message = drawn(full).expect("a full drive is refused");
            let start = format!(
                "--set: device.over_provisioning is {full}; expected a value that leaves the firmware room: trans0 owns"
            );
            assert!(message.starts_with(&start), "{message}");
            let (_, ways) = message.split_once("; about ").expect("what helps");
            let (least, fewer) = ways.split_once(" does").expect("a figure");
            // Where the pages alone are too many no number of threads helps.
            assert!(
                fewer == if full == "0" { "" } else { ", or fewer TRANS threads may (--threads trans=1)" },
                "{message}"
            );
            assert_eq!(drawn(least), None, "{message}");
        }
    }
}
