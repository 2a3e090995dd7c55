//! A workload as data: where requests fall, how large they are, what they ask for and when they arrive. Presets are
//! recipes, and a file holds one.

use crate::draw::Weighted;
use crate::parameters::{UnusableParameter, checked_number, checked_size};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use units::{Bytes, SECTOR_BYTES};

/// The unit that most hosts address flash in, and the step of sizes drawn by their mean.
const PAGE_BYTES: u64 = 4096;

/// A workload's definition. `sizes = { fixed_bytes = 4096 }` and `pattern = "random"` are how a file spells the
/// choices; sizes may have their units, as in `"128KiB"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// One line for people.
    #[serde(default)]
    pub summary: String,
    /// Where requests fall.
    pub pattern: Pattern,
    /// Reads among reads and writes, 0 to 1.
    pub read_fraction: f64,
    /// How large requests are.
    pub sizes: Sizes,
    /// Boundary on which a request that does not continue another begins; without it the only size there is, else
    /// 4,096.
    #[serde(default, deserialize_with = "some_bytes")]
    pub alignment_bytes: Option<u64>,
    /// When requests arrive.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// What else is asked for.
    #[serde(default)]
    pub others: Others,
    /// Reads and writes come in turns of so many bytes of each, reads first, instead of mixed; `read_fraction` then does not count.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_bytes")]
    pub cycle_bytes: Option<u64>,
}

/// Where requests fall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// Anywhere with equal chance.
    Random,
    /// Upwards and round again, in turns over streams that share the region evenly.
    Sequential {
        /// How many streams; without it one for each queue of the host, as separate jobs would have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        streams: Option<u32>,
    },
    /// Blocks of the alignment by popularity: the block of rank `k` is asked for in proportion to `1 / k^theta`.
    /// Neighbouring ranks lie far apart.
    Zipf {
        /// The exponent, 0 (even) to 10.
        theta: f64,
    },
    /// Runs: a request begins where the last one ended, except for a fraction that begins anywhere.
    Runs {
        /// The fraction that does not continue, 0 to 1.
        randomness: f64,
    },
    /// Hot and cold parts, lowest addresses first, random within each.
    Regions(Vec<Share>),
}

/// One part of a pattern of regions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Its weight among all accesses.
    pub accesses: f64,
    /// Its weight in all space.
    pub space: f64,
}

/// How large requests are, in bytes: multiples of 512 up to 1 MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    /// All alike.
    FixedBytes(#[serde(deserialize_with = "bytes")] u64),
    /// Each by its weight.
    Weighted(Vec<WeightedSize>),
    /// A geometric number of 4 KiB pages (of sectors, for a mean below 4 KiB) with this mean: of all distributions over
    /// whole pages the one of greatest entropy, so that nothing is assumed beyond the mean.
    MeanBytes(#[serde(deserialize_with = "mean_bytes")] f64),
}

/// A size and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedSize {
    /// The size.
    #[serde(deserialize_with = "bytes")]
    pub bytes: u64,
    /// Its weight among all sizes.
    pub weight: f64,
}

/// When requests arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// As soon as the driver has room: queues are kept full.
    #[default]
    Closed,
    /// Evenly spaced.
    Fixed {
        /// Requests a second.
        per_second: f64,
    },
    /// Exponentially spaced, as from many independent users.
    Poisson {
        /// Requests a second, on average.
        per_second: f64,
    },
    /// Evenly spaced in bursts, with silence between them.
    Bursty {
        /// Length of the silence before the first burst in milliseconds.
        #[serde(default)]
        lead_ms: f64,
        /// Requests a second within a burst.
        per_second: f64,
        /// Length of a burst in milliseconds.
        on_ms: f64,
        /// Length of the silence in milliseconds.
        off_ms: f64,
    },
}

/// Fractions of all requests that are neither reads nor writes; together at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Others {
    /// Trims.
    pub deallocate: f64,
    /// Flushes.
    pub flush: f64,
    /// Zeroes without a transfer.
    pub write_zeroes: f64,
    /// Compares.
    pub compare: f64,
}

impl Recipe {
    /// A recipe of one size that keeps queues full.
    pub fn fixed(summary: &str, pattern: Pattern, read_fraction: f64, bytes: u64) -> Self {
        let (summary, sizes) = (summary.into(), Sizes::FixedBytes(bytes));
        let (alignment_bytes, arrivals, others) = (None, Arrivals::Closed, Others::default());
        Recipe { summary, pattern, read_fraction, sizes, alignment_bytes, arrivals, others, cycle_bytes: None }
    }

    /// Reads a workload file's text (TOML). Values are checked when a source is made from it.
    ///
    /// # Errors
    /// Not TOML, an unknown or missing field, a value of the wrong type.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The text that [`Recipe::from_toml`] reads back.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a recipe has no key that TOML cannot hold")
    }
}

impl Sizes {
    /// The sizes in sectors, with their weights.
    pub(crate) fn choices(&self) -> Result<Vec<(u32, f64)>, UnusableParameter> {
        match self {
            Sizes::FixedBytes(bytes) => Ok(vec![(checked_size("sizes.fixed_bytes", *bytes)?, 1.0)]),
            Sizes::MeanBytes(mean) => geometric(*mean),
            Sizes::Weighted(sizes) => {
                let mut choices = Vec::new();
                for size in sizes {
                    let weight = checked_number("sizes.weighted.weight", size.weight, 0.0, 1e12)?;
                    choices.push((checked_size("sizes.weighted.bytes", size.bytes)?, weight));
                }
                checked_weights("sizes.weighted", &choices)?;
                Ok(choices)
            }
        }
    }
}

/// A size as a number of bytes, or as a text with its unit.
#[derive(Deserialize)]
#[serde(untagged)]
enum Size<N> {
    Number(N),
    Text(String),
}

fn size<'de, N: Deserialize<'de>, D: Deserializer<'de>>(from: D, of: fn(u64) -> N) -> Result<N, D::Error> {
    const EXPECTED: &str = "expected a size in bytes, as 4096, \"4k\" or \"128KiB\"";
    match Size::deserialize(from) {
        Ok(Size::Number(bytes)) => Ok(bytes),
        Ok(Size::Text(text)) => Bytes::parse(&text)
            .map(|bytes| of(bytes.0))
            .ok_or_else(|| D::Error::custom(format!("is {text:?}; {EXPECTED}"))),
        Err(_) => Err(D::Error::custom(EXPECTED)),
    }
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    size(from, |bytes| bytes)
}

/// A mean need not be whole.
fn mean_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    size(from, |bytes| bytes as f64)
}

fn some_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    bytes(from).map(Some)
}

/// Weights that [`Weighted`] can draw from.
pub(crate) fn checked_weights<T: Copy>(field: &str, choices: &[(T, f64)]) -> Result<Weighted<T>, UnusableParameter> {
    if choices.iter().map(|choice| choice.1).sum::<f64>() > 0.0 {
        return Ok(Weighted::new(choices));
    }
    Err(UnusableParameter::new(field, "without weight", "at least one entry with a weight above 0"))
}

fn geometric(mean_bytes: f64) -> Result<Vec<(u32, f64)>, UnusableParameter> {
    // Means close to the limit would be cut short by it, and no longer be the mean that was asked for.
    let mean = checked_number("sizes.mean_bytes", mean_bytes, SECTOR_BYTES as f64, 131_072.0)?;
    let step = if mean < PAGE_BYTES as f64 { SECTOR_BYTES } else { PAGE_BYTES };
    let more = 1.0 - step as f64 / mean;
    let steps = crate::REQUEST_MAX.0 / step;
    let sectors = (step / SECTOR_BYTES) as u32;
    let weight = |extra: u64| libm::pow(more, extra as f64);
    let weights = (0..steps).map(|extra| ((extra as u32 + 1) * sectors, weight(extra)));
    Ok(weights.take_while(|choice| choice.1 > 1e-15).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_written_back() {
        let text = r#"
            summary = "a shop"
            pattern = { zipf = { theta = 0.99 } }
            read_fraction = 0.7
            alignment_bytes = 4096
            arrivals = { bursty = { per_second = 1e5, on_ms = 10, off_ms = 40.5 } }
            sizes = { weighted = [{ bytes = 4096, weight = 3 }, { bytes = 65536, weight = 1 }] }
            [others]
            deallocate = 0.01
        "#;
        let recipe = Recipe::from_toml(text).unwrap();
        assert_eq!(recipe.pattern, Pattern::Zipf { theta: 0.99 });
        assert_eq!(recipe.others, Others { deallocate: 0.01, ..Others::default() });
        assert_eq!(Recipe::from_toml(&recipe.to_toml()).unwrap(), recipe);
        let regions = Recipe { pattern: Pattern::Regions(vec![Share { accesses: 1.0, space: 2.0 }]), ..recipe };
        assert_eq!(Recipe::from_toml(&regions.to_toml()).unwrap(), regions);
    }

    #[test]
    fn a_mean_may_have_its_unit_and_need_not_be_whole() {
        let sizes = |mean: &str| {
            let text = format!("pattern = \"random\"\nread_fraction = 1\nsizes = {{ mean_bytes = {mean} }}");
            Recipe::from_toml(&text).map(|recipe| recipe.sizes).map_err(|error| error.message().to_owned())
        };
        for mean in ["8192", "8192.0", "\"8KiB\"", "\"8k\""] {
            assert_eq!(sizes(mean), Ok(Sizes::MeanBytes(8192.0)), "{mean}");
        }
        assert_eq!(sizes("7680.5"), Ok(Sizes::MeanBytes(7680.5)));
        for mean in ["true", "\"8 pages\""] {
            let refused = sizes(mean).expect_err("no size");
            assert!(refused.ends_with("expected a size in bytes, as 4096, \"4k\" or \"128KiB\""), "{refused}");
        }
    }

    #[test]
    fn geometric_sizes_have_their_mean() {
        for mean in [512.0, 1_000.0, 4_096.0, 4_101.1, 7_680.0, 64_921.6, 131_072.0] {
            let choices = geometric(mean).unwrap();
            let total: f64 = choices.iter().map(|choice| choice.1).sum();
            let found = choices.iter().map(|choice| f64::from(choice.0) * 512.0 * choice.1).sum::<f64>() / total;
            assert!((found / mean - 1.0).abs() < 0.01, "{found} for {mean}");
        }
        assert!(geometric(f64::NAN).is_err() && geometric(100.0).is_err() && geometric(1e6).is_err());
    }
}
