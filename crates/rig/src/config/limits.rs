//! The least and the most that keys may hold whose numbers other crates check: what is no such number is told these and not what its type
//! holds, however it is wrong.

use firmware::Settings;
use flash::Shape;
use units::Limit;

/// What a key may hold, where it has limits of its own.
pub(super) fn of(key: &str) -> Option<String> {
    fn find<T>(limits: &[Limit<T>], key: &str) -> Option<String> {
        limits.iter().find(|limit| limit.key == key).map(Limit::to_string)
    }
    find(Settings::LIMITS, key).or_else(|| find(Shape::LIMITS, key.strip_prefix("device.")?))
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
        let array = Shape::LIMITS.iter().map(|limit| (format!("device.{}", limit.key), &limit.range));
        for (key, range) in array.chain(Settings::LIMITS.iter().map(|limit| (limit.key.to_owned(), &limit.range))) {
            let limits = of(&key).expect("it is listed");
            let [least, most] = [range.start(), range.end()].map(|bound| *bound as i64);
            for value in [-1, least - 1, most + 1, 1 << 40] {
                assert_eq!(refused(&key, value), Some(format!("--set: {key} is {value}; expected {limits}")));
            }
            for value in [least, most] {
                assert!(refused(&key, value).is_none_or(|said| !said.ends_with(&limits)), "{key} = {value}");
            }
        }
    }
}
