//! The moment after the power has failed, on a drive that holds energy of its own.

use super::{Session, SessionError};
use crate::hardware::{LinkStage, PowerStage};
use crate::power::Drained;
use units::{Span, Time};

/// How often what was taken is compared with what there is.
const LOOK_EVERY: Span = Span::from_micros(20);

/// A drive whose turns have no price says nothing of energy. But it is to have its buffer on flash some time.
const DRAINS_WITHIN: Span = Span::from_secs(60);

impl Session {
    /// Lets the firmware bring its buffer to flash until that is done or the energy is used up; nothing where nothing protects the
    /// buffer. The host and its link are gone.
    pub(super) fn drain(&mut self) -> Result<Option<Drained>, SessionError> {
        let (Some(watch), Some(budget)) = (self.watch, self.power) else { return Ok(None) };
        self.world.inspect_mut::<LinkStage>(self.link).unplug();
        let (began, programmed) = (self.world.now(), self.programmed());
        let worked = self.dies_worked(began);
        self.tables.backup.fail();
        self.world.wake(watch);
        loop {
            self.world.run_before(self.world.now() + LOOK_EVERY);
            if let Some(fault) = self.ledger.lock().expect("nobody panics with the ledger").fault {
                return Err(SessionError::Media(fault));
            }
            let now = self.world.now();
            let took = now - began;
            let joules = budget.taken(took, self.dies_worked(now) - worked);
            let watch = self.world.inspect::<PowerStage>(watch);
            if watch.is_over() && watch.has_failed() {
                let what = format!("the buffer found no room on flash after {took} of the power failure");
                return Err(SessionError::Invariant(what));
            }
            if !self.world.has_prices() && took >= DRAINS_WITHIN {
                return Err(SessionError::Invariant(format!(
                    "the buffer is not on flash after {took} of the power failure"
                )));
            }
            let is_spent = self.world.has_prices() && joules >= budget.energy_j;
            let is_whole = watch.is_over() && !is_spent;
            if is_whole || is_spent {
                return Ok(Some(Drained { took, joules, pages: self.programmed() - programmed, is_whole }));
            }
        }
    }

    /// How long dies worked by now, added up, on what they are at as well.
    fn dies_worked(&self, now: Time) -> Span {
        self.channels().flat_map(|channel| channel.usage_at(now).die_busy).sum()
    }

    fn programmed(&self) -> u64 {
        self.channels().map(|channel| channel.usage().pages_programmed).sum()
    }
}
