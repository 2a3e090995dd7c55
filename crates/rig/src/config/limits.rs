//! The least and the most that keys may hold whose numbers other crates check: what is no such number is told these and not what its type
//! holds, however it is wrong.

/// By key: least and most, and more to say of them.
const LIMITS: &[(&str, u32, u32, &str)] = &[
    ("device.channels", 1, 256, ""),
    ("device.packages_per_channel", 1, 256, ""),
    ("device.dies_per_package", 1, 64, ""),
    ("device.planes_per_die", 1, 4, ""),
    ("device.pages_per_block", 1, 65_536, ""),
    ("firmware.commands", 2, 8192, ""),
    ("firmware.frames", 2, 65_535, ": Compare holds two at a time"),
    ("firmware.page_window", 1, 65_535, ""),
    ("lock.forwarding_lead", 1, 65_535, ""),
    ("lock.regions", 1, 64, ""),
    ("cache.lines_per_lock", 1, u32::MAX, ""),
    ("reclaim.window", 1, 65_535, ""),
    ("reclaim.window_per_group", 1, 65_535, ""),
    ("reclaim.victims", 1, 256, ""),
    ("journal.window_per_group", 0, 256, ""),
];

/// What a key may hold, where it has limits of its own.
pub(super) fn of(key: &str) -> Option<String> {
    let (_, least, most, why) = LIMITS.iter().find(|(limited, ..)| *limited == key)?;
    Some(format!("{least} to {most}{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    /// Whether its type holds it or not, and no more than that is refused.
    #[test]
    fn whatever_is_wrong_with_a_number_its_limits_are_the_same() {
        let refused = |key: &str, value: i64| {
            let layers = Layers::new().set(&format!("{key}={value}")).expect("a key");
            layers.resolve().err().map(|error| error.to_string())
        };
        for &(key, least, most, _) in LIMITS {
            let (least, most) = (i64::from(least), i64::from(most));
            for value in [-1, least - 1, most + 1, 1 << 40] {
                let expected = format!("--set: {key} is {value}; expected {}", of(key).expect("it is listed"));
                assert_eq!(refused(key, value), Some(expected));
            }
            for value in [least, most] {
                let limits = of(key).expect("it is listed");
                assert!(refused(key, value).is_none_or(|said| !said.ends_with(&limits)), "{key} = {value}");
            }
        }
    }
}
