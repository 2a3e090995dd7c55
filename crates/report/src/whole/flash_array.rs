//! What the flash array did in all phases.

use super::{Shares, side_by_side};
use crate::Flash;

impl Shares<'_> {
    pub(super) fn flash(&self) -> Flash {
        let all = || self.phases.iter().filter_map(|(share, phase)| Some((share, phase.flash.as_ref()?)));
        let count =
            |of: fn(&Flash) -> Option<u64>| all().filter_map(|(_, flash)| of(flash)).reduce(|sum, one| sum + one);
        let mean = |of: fn(&Flash) -> Option<f64>| all().map(|(share, flash)| Some(share * of(flash)?)).sum();
        Flash {
            reads: all().map(|(_, flash)| flash.reads).sum(),
            programs: all().map(|(_, flash)| flash.programs).sum(),
            erases: all().map(|(_, flash)| flash.erases).sum(),
            channel_utilisation: side_by_side(all().map(|(share, flash)| (*share, &flash.channel_utilisation[..]))),
            die_utilisation_mean: mean(|flash| flash.die_utilisation_mean),
            die_taken_mean: mean(|flash| flash.die_taken_mean),
            die_command_wait_mean: mean(|flash| flash.die_command_wait_mean),
            pages_per_operation: self.pages_per_operation(),
            multi_plane_operations: count(|flash| flash.multi_plane_operations),
            cached_operations: count(|flash| flash.cached_operations),
            suspensions: count(|flash| flash.suspensions),
        }
    }

    /// All pages for all operations. A phase that does not say has operations on as many pages as there are planes.
    fn pages_per_operation(&self) -> Option<f64> {
        let flashes = || self.phases.iter().filter_map(|(_, phase)| phase.flash.as_ref());
        flashes().find(|flash| flash.pages_per_operation.is_some())?;
        let pages = |flash: &Flash| (flash.reads + flash.programs + flash.erases) as f64;
        let operations = |flash: &Flash| pages(flash) / flash.pages_per_operation.unwrap_or(self.pages.planes.into());
        Some(flashes().map(pages).sum::<f64>() / flashes().map(operations).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::combined;
    use super::super::tests::PAGES;
    use super::*;
    use crate::Summary;

    #[test]
    fn what_dies_do_at_once_or_again_is_counted_in_all_phases_that_have_it() {
        let phase = |suspensions| {
            let flash = Some(Flash { suspensions, cached_operations: Some(2), ..Flash::default() });
            Summary { simulated_ns: 1_000, flash, ..Summary::default() }
        };
        let whole = combined(&[phase(None), phase(Some(3)), phase(Some(4))], PAGES).flash.expect("there is flash");
        assert_eq!(
            (whole.suspensions, whole.cached_operations, whole.multi_plane_operations),
            (Some(7), Some(6), None)
        );
    }

    #[test]
    fn pages_an_operation_are_those_of_all_operations_however_long_a_phase_took() {
        let phase = |simulated_ns, reads, pages_per_operation| {
            let flash = Some(Flash { reads, pages_per_operation, ..Flash::default() });
            Summary { simulated_ns, flash, ..Summary::default() }
        };
        let of = |phases: &[Summary]| combined(phases, PAGES).flash.expect("there is flash").pages_per_operation;
        assert_eq!(of(&[phase(1_000, 30, Some(1.0)), phase(9_000, 20, Some(2.0))]), Some(50.0 / 40.0));
        assert_eq!(of(&[phase(1_000, 30, Some(1.0)), phase(9_000, 20, None)]), Some(50.0 / 40.0));
        assert_eq!(of(&[phase(1_000, 30, None), phase(9_000, 20, None)]), None);
    }
}
