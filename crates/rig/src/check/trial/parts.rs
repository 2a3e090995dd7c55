//! Cuts amid checkpoints that are written in parts.

use super::*;
use crate::Fill;
use crate::check::small::mixed;
use units::Bytes;

/// Requests in few places, until little of the journal is free, then everywhere: all of the map is due at once.
struct NarrowThenWide {
    narrow: Box<dyn Source>,
    wide: Box<dyn Source>,
    left: u32,
}

impl Source for NarrowThenWide {
    fn next_io(&mut self) -> Option<Io> {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 { self.narrow.next_io() } else { self.wide.next_io() }
    }
}

/// What is read, and the maps, are judged behind every cut; three of them each time, for what the first leaves must be written again by
/// the checkpoint that the second may tear.
#[test]
fn a_drive_is_whole_wherever_its_power_fails_amid_a_checkpoint_in_parts() {
    let small = Small { page: Bytes(512), blocks: [64, 32], fill: Fill::Sequential, ..Small::default() };
    let (mut device, sectors) = (small.device(), small.sectors());
    device.drive.keeps_journal = true;
    let journal = &mut device.settings.journal;
    (journal.interval, journal.patience) = (Span::from_micros(200), Span::ZERO);
    (journal.only_when_idle, journal.busy_share) = (false, 1.0);
    device.cuts = Some(device.power_cuts());
    for seed in 0..16 {
        let mut fates = Fates(Draw::new(seed));
        let mut report = Report::default();
        let source = |leg, sectors| mixed("mixed", 100 * seed + leg, sectors, 1).source;
        let phase = |leg, left| {
            let source = NarrowThenWide { narrow: source(leg, sectors / 16), wide: source(leg, sectors), left };
            Phase { ios: Some(6_000), ..Phase::new("mixed", Box::new(source), Pace::Closed) }
        };
        let phases = vec![phase(0, 3_000)];
        let mut session = Session::new(&device, "small", processor(), seed, phases, 0).expect("a device");
        session.run_before(Time::ZERO + Span::from_millis(40)).expect("right answers");
        for leg in 1..=3 {
            session.run_before(session.now() + fates.moment()).expect("right answers");
            let Remains { contents, host, spoiled, .. } = session.cut(&mut || fates.fate()).expect("a cut");
            let risen = bring_back(&device, contents, &mut fates, &mut report).expect("it can be recovered");
            let phases = vec![read_everything(&device, spoiled), phase(leg, 0)];
            session = Session::again(&device, processor(), seed, risen, host, phases).expect("it goes on");
            session.check_recovered().expect("every page is on flash");
            session.run_before(Time::NEVER).expect("nothing is lost");
            assert_eq!(session.uncertain(), 0);
        }
        session.run_before(Time::NEVER).expect("right answers");
        session.check_maps().expect("maps and groups agree");
    }
}
