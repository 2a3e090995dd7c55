//! The stages' alarms: those of hardware, which ring all the time, apart from those of threads, which seldom do.

use crate::timetable::Timetable;
use std::cmp::Ordering;
use units::{StageId, Time};

/// When the alarm of each stage rings. Among those due at one time the stage that was drawn first comes first.
#[derive(Debug)]
pub(crate) struct Alarms {
    /// Of stages on cores, and of stages in hardware.
    tables: [Timetable; 2],
    /// The stage of each place in a table.
    stages: [Vec<StageId>; 2],
    /// The table and the place of each stage.
    places: Box<[(bool, u16)]>,
}

impl Alarms {
    /// None is set. The stages in their order: whether each is in hardware.
    pub(crate) fn new(in_hardware: impl Iterator<Item = bool>) -> Self {
        let mut stages = [Vec::new(), Vec::new()];
        let mut places = Vec::new();
        for (hardware, id) in in_hardware.zip(0..) {
            let table: &mut Vec<StageId> = &mut stages[usize::from(hardware)];
            places.push((hardware, table.len() as u16));
            table.push(StageId(id));
        }
        let tables = [Timetable::new(stages[0].len()), Timetable::new(stages[1].len())];
        Alarms { tables, stages, places: places.into() }
    }

    /// When the first alarm rings; [`Time::NEVER`] where none is set.
    #[inline]
    pub(crate) fn first_at(&self) -> Time {
        self.tables[0].first().1.min(self.tables[1].first().1)
    }

    /// The stage whose alarm rings first, where one is set.
    #[inline]
    pub(crate) fn first(&self) -> StageId {
        let [(thread, thread_at), (hardware, hardware_at)] = [self.tables[0].first(), self.tables[1].first()];
        match hardware_at.cmp(&thread_at) {
            Ordering::Less => self.stages[1][hardware],
            Ordering::Greater => self.stages[0][thread],
            Ordering::Equal => self.stages[0][thread].min(self.stages[1][hardware]),
        }
    }

    /// Changes when a stage's alarm rings; [`Time::NEVER`] takes it back.
    pub(crate) fn set(&mut self, stage: StageId, at: Time) {
        let (hardware, place) = self.places[stage.index()];
        self.tables[usize::from(hardware)].set(usize::from(place), at);
    }

    /// The same for a stage in hardware.
    #[inline(always)]
    pub(crate) fn set_in_hardware(&mut self, stage: StageId, at: Time) {
        let (_, place) = self.places[stage.index()];
        self.tables[1].set(usize::from(place), at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_ring_in_time_and_then_in_the_order_they_were_drawn() {
        let mut alarms = Alarms::new([true, false, true, false].into_iter());
        let at = Time::from_picos;
        assert_eq!(alarms.first_at(), Time::NEVER);
        for (stage, time) in [(3, 5), (2, 5), (1, 5), (0, 9)] {
            alarms.set(StageId(stage), at(time));
        }
        let mut rung = Vec::new();
        while alarms.first_at() < Time::NEVER {
            let (stage, time) = (alarms.first(), alarms.first_at());
            alarms.set(stage, Time::NEVER);
            rung.push((stage.0, time));
        }
        assert_eq!(rung, [(1, at(5)), (2, at(5)), (3, at(5)), (0, at(9))]);
    }
}
