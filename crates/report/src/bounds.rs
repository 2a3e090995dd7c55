//! What each resource alone would allow, by the utilisation law (Denning and Buzen, "The Operational Analysis of Queueing
//! Network Models", 1978): a resource that is busy a fraction `u` at `X` operations a second allows `X / u`, if an operation goes on taking
//! as much of it. Of flash and the link it does; of threads and cores it takes less under more load.

use crate::Bound;

/// The bounds that `resources` (name, busy fraction) set to a run at `iops`, tightest first, at what each operation takes now; equals keep
/// their order.
///
/// Give for each resource the fraction of its busiest instance where work cannot move between instances (a channel's bus), and
/// the mean where it can (threads that share an inbox). A resource that was never busy sets no bound and is left out.
pub fn bounds(iops: f64, resources: &[(String, f64)]) -> Vec<Bound> {
    let busy = resources.iter().filter(|(_, utilisation)| iops > 0.0 && *utilisation > 0.0);
    let mut bounds: Vec<Bound> = busy
        .map(|(resource, utilisation)| Bound {
            resource: resource.clone(),
            utilisation: *utilisation,
            iops_bound: iops / utilisation,
        })
        .collect();
    bounds.sort_by(|a, b| a.iops_bound.total_cmp(&b.iops_bound));
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(list: &[(&str, f64)]) -> Vec<(String, f64)> {
        list.iter().map(|(name, utilisation)| (name.to_string(), *utilisation)).collect()
    }

    #[test]
    fn a_resource_half_busy_allows_twice_the_rate() {
        let found = bounds(1_000.0, &resources(&[("dies", 0.5), ("idle", 0.0), ("buses", 0.8), ("cores", 0.5)]));
        let found: Vec<_> = found.iter().map(|bound| (bound.resource.as_str(), bound.iops_bound)).collect();
        assert_eq!(found, [("buses", 1_250.0), ("dies", 2_000.0), ("cores", 2_000.0)]);
    }

    #[test]
    fn a_run_without_operations_bounds_nothing() {
        assert!(bounds(0.0, &resources(&[("dies", 0.5)])).is_empty());
    }
}
