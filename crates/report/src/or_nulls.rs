//! A latency whose keys are in JSON even where there is none.

use crate::Latency;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Default, Serialize, Deserialize)]
struct Figures {
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    p9999: Option<f64>,
    max: Option<f64>,
}

pub(crate) fn serialize<S: Serializer>(latency: &Option<Latency>, to: S) -> Result<S::Ok, S::Error> {
    match latency {
        Some(latency) => latency.serialize(to),
        None => Figures::default().serialize(to),
    }
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Latency>, D::Error> {
    let Figures { mean, p50, p90, p99, p999, p9999, max } = Option::deserialize(from)?.unwrap_or_default();
    let all = || Some(Latency { mean: mean?, p50: p50?, p90: p90?, p99: p99?, p999: p999?, p9999: p9999?, max: max? });
    Ok(all())
}
