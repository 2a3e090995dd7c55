//! A run: phase after phase in one of the two worlds, each summed up, and what must hold at its end.

mod agree;
mod drain;
mod error;
mod world;

use crate::array::{journal_erases, media_summary, space, wear};
use crate::build::{Built, Device, Prepared, Risen};
use crate::hardware::{
    ChannelStage, Fate, Halt, HostStage, LastWords, LinkStage, LinkUsage, MediaCounts, MediaTally, PhaseOutcome,
};
use crate::meter::{Meter, Step, Window};
use crate::power::{Drained, PowerBudget};
use crate::recovery::Recovery;
use crate::samples::Samples;
use crate::summary::{Labels, summarise};
use firmware::{Counter, Drive, Firmware, Frames, Tables};
use flash::{Contents, Oob, Usage};
use host::{MediaFailure, Phase};
use report::Summary;
use sim::{CoreUsage, Processor, StageUsage};
use stage::{Place, Stage};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;
use units::{CoreId, Lpn, Ppn, StageId, Time};
use workload::{IoKind, Range as SectorRange};

pub(crate) use agree::check_ended;
pub use error::SessionError;

use agree::{ErasesAhead, check_tables, entry_at, holds};
use world::World;

/// A round of a phase: what there was at its ends, and what the meter counted between them.
struct Round {
    before: Snapshot,
    after: Snapshot,
    counted: Window,
}

/// What everything had done at some moment.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) at: Time,
    pub(crate) stages: Vec<StageUsage>,
    pub(crate) cores: Vec<CoreUsage>,
    pub(crate) channels: Vec<Usage>,
    pub(crate) link: LinkUsage,
    pub(crate) media: MediaCounts,
    pub(crate) wall: Instant,
}

/// What a power cut leaves.
pub(crate) struct Remains {
    /// What each flash channel holds.
    pub(crate) contents: Vec<Contents>,
    pub(crate) host: Box<dyn Stage<Firmware>>,
    /// Pages of eight sectors of which a host may have made some unreadable, each with its namespace.
    pub(crate) spoiled: Vec<(u16, u64)>,
    /// What was done on the energy that the drive holds, if it holds any.
    pub(crate) drained: Option<Drained>,
}

/// A run in virtual time, or in an order that only threads show.
pub struct Session {
    world: World,
    tables: Arc<Tables>,
    drive: Arc<Drive>,
    channels: Vec<StageId>,
    host: StageId,
    link: StageId,
    ledger: std::sync::Arc<std::sync::Mutex<crate::hardware::Ledger>>,
    parts: Vec<(&'static str, String)>,
    places: Vec<Option<CoreId>>,
    labels: Labels,
    pages: u32,
    left: usize,
    media: Arc<MediaTally>,
    /// Whether flash fails.
    fails: bool,
    /// What watches the power, and the energy there is when it fails.
    watch: Option<StageId>,
    pub(crate) power: Option<PowerBudget>,
    /// How tables and flash counted erases at the beginning, where they are to be compared.
    erases: Option<ErasesAhead>,
}

impl Session {
    /// Builds a device and gives it phases to run. `events_max` is how many turns and die operations are kept for a time line.
    pub fn new(
        device: &Device,
        device_name: &str,
        processor: Processor,
        seed: u64,
        phases: Vec<Phase>,
        events_max: usize,
    ) -> Result<Self, SessionError> {
        let left = phases.len();
        let built = device.build(phases, true)?;
        let labels = Labels::of(device, device_name, processor.name.clone(), "sim", seed);
        Ok(Session::over(built, device, labels, processor, left, events_max))
    }

    fn over(
        built: Built,
        device: &Device,
        labels: Labels,
        processor: Processor,
        left: usize,
        events_max: usize,
    ) -> Self {
        let Built { blueprint, tables, drive, ledger, media, host, link, watch, channels, parts, .. } = built;
        let core = |place| if let Place::Core(core) = place { Some(core) } else { None };
        let places: Vec<Option<CoreId>> = blueprint.parts().iter().map(|part| core(part.place)).collect();
        let meter = || {
            let mut meter = Meter::of(device, &parts, events_max);
            meter.samples = device.series.map(|interval| Box::new(Samples::new(interval, &parts, &places)));
            meter
        };
        let world = match &device.interleaving {
            Some(interleaving) => World::interleaved(blueprint, interleaving),
            None => World::virtual_time(blueprint, processor, meter(), device.audits()),
        };
        let pages = drive.pages();
        let mut session = Session {
            world,
            tables,
            drive,
            channels,
            host,
            link,
            ledger,
            parts,
            places,
            labels,
            pages,
            left,
            media,
            fails: device.damages_pages(),
            watch,
            power: device.power,
            erases: None,
        };
        session.erases =
            device.audits().then(|| ErasesAhead::of(&session.tables, &session.channels().collect::<Vec<_>>()));
        session
    }

    /// What happened to the sub-requests of a pipeline so far, as many steps as events are kept.
    pub fn steps(&self) -> &[Step] {
        &self.world.sim().probe().steps
    }

    /// Runs the next phase and sums it up; nothing if all are over.
    pub fn next_phase(&mut self) -> Option<Result<Summary, SessionError>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.run_phase())
    }

    fn run_phase(&mut self) -> Result<Summary, SessionError> {
        let mut before = self.snapshot();
        self.world.sim_mut().probe_mut().begin_phase();
        let mut rounds: VecDeque<Round> = VecDeque::new();
        loop {
            if !self.world.sim_mut().run() {
                return Err(self.stuck());
            }
            let mut ledger = self.ledger.lock().expect("nobody panics with the ledger");
            let halt = ledger.halt.take().filter(|_| ledger.fault.is_none());
            match halt {
                Some(Halt::Opened) => {
                    drop(ledger);
                    before = self.snapshot();
                    self.world.sim_mut().probe_mut().reset(before.at);
                }
                Some(halt @ (Halt::Round | Halt::Closed)) => {
                    drop(ledger);
                    let after = self.snapshot();
                    if halt == Halt::Closed {
                        self.world.sim_mut().probe_mut().close(after.at);
                    }
                    rounds.push_back(Round {
                        counted: self.world.sim_mut().probe_mut().take_window(),
                        before,
                        after: after.clone(),
                    });
                    if rounds.len() > workload::STEADY_WINDOW {
                        rounds.pop_front();
                    }
                    before = after;
                }
                Some(Halt::Finished) => {
                    let outcome = ledger.phases.pop().expect("a finished phase is in the ledger");
                    drop(ledger);
                    judge(&outcome)?;
                    let mut after = self.snapshot();
                    self.world.sim_mut().probe_mut().close(after.at);
                    if let Some(last) = rounds.back() {
                        after = last.after.clone();
                        // What completed after the last round does not count.
                        self.world.sim_mut().probe_mut().take_window();
                        rounds.iter().for_each(|round| self.world.sim_mut().probe_mut().add_window(&round.counted));
                        before = rounds.swap_remove_front(0).expect("there is one").before;
                    }
                    return Ok(self.sum_up(&before, &after, &outcome));
                }
                Some(Halt::TimeIsOver) => return Err(SessionError::TimeIsOver),
                Some(Halt::Stalled) | None => {
                    drop(ledger);
                    return Err(self.stuck());
                }
            }
        }
    }

    /// Switches a device on again after a power cut, over what recovery found.
    pub(crate) fn again(
        device: &Device,
        processor: Processor,
        seed: u64,
        recovered: Prepared,
        host: Box<dyn Stage<Firmware>>,
        phases: Vec<Phase>,
    ) -> Result<Self, SessionError> {
        let left = phases.len();
        let built = device.build_again(recovered, host, phases)?;
        let labels = Labels::of(device, "recovered", processor.name.clone(), "sim", seed);
        Ok(Session::over(built, device, labels, processor, left, 0))
    }

    /// Runs what is left of the phases without summing them up, but nothing that is due at `end` or later; how many phases ended.
    pub(crate) fn run_before(&mut self, end: Time) -> Result<usize, SessionError> {
        let mut ended = 0;
        while self.world.run_before(end) {
            let mut ledger = self.ledger.lock().expect("nobody panics with the ledger");
            match ledger.halt.take().filter(|_| ledger.fault.is_none()) {
                Some(Halt::Finished) => {
                    judge(&ledger.phases.pop().expect("a finished phase is in the ledger"))?;
                    drop(ledger);
                    (ended, self.left) = (ended + 1, self.left - 1);
                    self.give_up_lost();
                    if end == Time::NEVER {
                        return Ok(ended);
                    }
                }
                Some(Halt::Opened | Halt::Round | Halt::Closed) => {}
                Some(Halt::TimeIsOver) => return Err(SessionError::TimeIsOver),
                Some(Halt::Stalled) | None => {
                    drop(ledger);
                    return Err(self.stuck());
                }
            }
        }
        if self.left > 0 && self.world.now() < end {
            return Err(self.stuck());
        }
        Ok(ended)
    }

    /// Cuts the power now: what remains is what the flash holds, and the host.
    ///
    /// # Errors
    /// What the host saw before was wrong, or the energy that protects the buffer did not last.
    pub(crate) fn cut(mut self, fate: &mut dyn FnMut() -> Fate) -> Result<Remains, SessionError> {
        let now = self.world.now();
        let host: &mut HostStage = self.world.inspect_mut(self.host);
        let LastWords { problems, first_problem, .. } = host.last_words();
        if let Some(wrong) = wrong(None, problems, first_problem.as_ref()) {
            return Err(wrong);
        }
        host.power_cut(now);
        let spoiled = host.spoiled_pages();
        let drained = self.drain()?;
        if let Some(drained) = drained.filter(|drained| !drained.is_whole) {
            let what = format!("the energy was used up before the buffer was on flash: {drained:?}");
            return Err(SessionError::Invariant(what));
        }
        let now = self.world.now();
        let mut cut = |&id: &StageId| self.world.inspect_mut::<ChannelStage>(id).cut(now, fate);
        let contents = self.channels.iter().map(&mut cut).collect();
        Ok(Remains { contents, host: self.world.into_stage(self.host), spoiled, drained })
    }

    /// Cuts the power now, tearing whatever flash was doing, and switches the drive on again: what recovery did.
    ///
    /// # Errors
    /// A drive that cannot be recovered.
    pub fn lose_power(self, device: &Device, processor: Processor) -> Result<Recovery, SessionError> {
        // The tables of a large drive are not in memory twice.
        let Remains { contents, drained, .. } = self.cut(&mut || Fate::Torn)?;
        match device.rise(&processor, contents, Time::NEVER, &mut || Fate::Torn)? {
            Risen::Up(_, recovery) => Ok(Recovery { drained, ..recovery.kept_promises()? }),
            Risen::Cut(_) => unreachable!("the power stays on"),
        }
    }

    /// Pages that flash could not give back are as uncertain after a phase that read all of them as before. They may hold whatever they
    /// might have held.
    fn give_up_lost(&mut self) {
        let (media, drive) = (self.media.clone(), self.drive.clone());
        let is_lost = |device, page: u64| has_lost(&media, &drive, device, page * 8..(page + 1) * 8);
        self.world.inspect_mut::<HostStage>(self.host).give_up(is_lost);
    }

    /// Checks that a command ended with a media error only where a page of it is lost, or where it was to write to a drive that takes no
    /// more writes, as a read with force unit access may have to. `seen` of them were checked before; how many there are now.
    pub(crate) fn check_media_errors(&self, seen: usize) -> Result<usize, SessionError> {
        let failures = self.world.inspect::<HostStage>(self.host).media_failures();
        for failure in &failures[seen..] {
            let MediaFailure { kind, device, lba, sectors, ref ranges, through } = *failure;
            let writes = through || !matches!(kind, IoKind::Read | IoKind::Compare | IoKind::Verify);
            let own = [SectorRange { lba, sectors }];
            let is_due = writes && self.tables.groups.is_read_only()
                || own.iter().chain(ranges).any(|range| {
                    let sectors = range.lba.0..range.lba.0 + u64::from(range.sectors);
                    has_lost(&self.media, &self.drive, device, sectors)
                });
            if !is_due {
                let what = format!("{kind:?} of {sectors} sectors at {lba} failed, and no page of it is lost");
                return Err(SessionError::Invariant(what));
            }
        }
        Ok(failures.len())
    }

    /// Programs and erases that failed since the drive was switched on, pages given up, and whether it takes no more writes.
    pub(crate) fn failures(&self) -> (u64, u64, bool) {
        let counts = self.media.counts();
        (counts.failed, counts.uncorrectable, self.tables.groups.is_read_only())
    }

    /// Whether a page whose program failed is on its way to another place.
    pub(crate) fn is_replacing(&self) -> bool {
        self.tables.groups.replacing() > 0
    }

    /// Blocks erased so far, since the drive was switched on.
    pub(crate) fn reclaimed(&self) -> u64 {
        self.channels().map(|channel| channel.usage().blocks_erased).sum()
    }

    /// Groups that were moved because they wore little, since the drive was switched on.
    pub(crate) fn levelled(&self) -> u64 {
        self.world.sums().get(Counter::Levelled)
    }

    /// Whether a die erases.
    pub(crate) fn is_erasing(&self) -> bool {
        self.channels().any(|channel| !channel.being_erased(self.world.now()).is_empty())
    }

    /// Whether a die erases a page whose logical page is mapped to a place that is not programmed yet. No correct firmware does that.
    pub(crate) fn erases_ahead(&self) -> bool {
        let channels: Vec<&ChannelStage> = self.channels().collect();
        let geometry = channels[0].contents().geometry();
        let held = |ppn| entry_at(&channels, ppn);
        let erased = channels.iter().flat_map(|channel| channel.being_erased(self.world.now()));
        let mut pages = erased.flat_map(|block| {
            let pages = geometry.shape().pages_per_block;
            (block.0 * pages..(block.0 + 1) * pages).map(Ppn)
        });
        pages.any(|page| {
            let lpn = held(page).map(|oob| oob.lpn).filter(|lpn| lpn.0 < self.pages);
            let is_there = |lpn, place| held(place).is_some_and(|oob| holds(oob, lpn));
            lpn.is_some_and(|lpn| self.tables.mapping.get(lpn).is_some_and(|place| !is_there(lpn, place)))
        })
    }

    /// The time of the last event.
    pub(crate) fn now(&self) -> Time {
        self.world.now()
    }

    /// Pages of which no read has said yet what they hold since the power was cut.
    pub(crate) fn uncertain(&self) -> usize {
        self.world.inspect::<HostStage>(self.host).uncertain()
    }

    /// Verifies, Writes Uncorrectable and Copies of this host that are over, fused pairs that were carried out and those of which nothing
    /// was, and commands that failed because blocks were unreadable.
    pub(crate) fn carried(&self) -> [u64; 6] {
        let host = self.world.inspect::<HostStage>(self.host);
        let [verifies, spoils, copies] =
            [IoKind::Verify, IoKind::WriteUncorrectable, IoKind::Copy].map(|kind| host.over(kind));
        let [pairs, aborted] = host.pairs();
        [verifies, spoils, copies, pairs, aborted, host.unreadable()]
    }

    fn stuck(&self) -> SessionError {
        let fault = self.ledger.lock().expect("nobody panics with the ledger").fault;
        stands_still(fault, self.world.inspect::<HostStage>(self.host).last_words(), self.world.now())
    }

    fn sum_up(&self, before: &Snapshot, after: &Snapshot, outcome: &PhaseOutcome) -> Summary {
        let mut summary = summarise(&self.labels, &self.parts, &self.places, before, after, outcome, self.world.sim());
        summary.digest = Some(format!("{:016x}", self.world.digest()));
        summary.wear = Some(wear(&self.tables));
        summary.space = Some(space(&self.tables, self.pages));
        add_journal_wear(&mut summary, &self.tables);
        summary.media = self.fails.then(|| media_summary(after.media.since(before.media), outcome, &self.tables));
        if let Some(samples) = &self.world.sim().probe().samples {
            summary.samples = samples.of(&outcome.results, after.at);
            summary.samples_cut = samples.are_cut(&outcome.results, after.at);
        }
        summary
    }

    fn channels(&self) -> impl Iterator<Item = &ChannelStage> {
        self.channels.iter().map(|&id| self.world.inspect::<ChannelStage>(id))
    }

    fn snapshot(&mut self) -> Snapshot {
        let now = self.world.now();
        self.world.sim_mut().probe_mut().count_waits(now);
        Snapshot {
            at: now,
            stages: self.world.sim().stages().collect(),
            cores: self.world.sim().cores().collect(),
            channels: self.channels().map(|channel| channel.usage_at(now)).collect(),
            link: self.world.inspect::<LinkStage>(self.link).usage(),
            media: self.media.counts(),
            wall: Instant::now(),
        }
    }

    /// Checks that maps, valid pages, counts and what the flash holds agree. Costs a look at every logical page.
    pub fn check_invariants(&self) -> Result<(), SessionError> {
        let channels: Vec<&ChannelStage> = self.channels().collect();
        let is_stale = |ppn| self.erases.as_ref().is_some_and(|erases| erases.is_ordered(&self.tables, &channels, ppn));
        check_tables(&self.tables, self.pages, |ppn| entry_at(&channels, ppn), is_stale)
    }

    /// The same of a drive that was just recovered: nothing is on its way, so that every mapped page is on flash.
    pub(crate) fn check_recovered(&self) -> Result<(), SessionError> {
        let channels: Vec<&ChannelStage> = self.channels().collect();
        let nothing = Oob { lpn: Frames::ERASED, ..Oob::default() };
        check_tables(&self.tables, self.pages, |ppn| entry_at(&channels, ppn).or(Some(nothing)), |_| false)
    }

    /// The same, in the midst of a run: flash is not looked at, for what it holds may be on its way.
    pub(crate) fn check_maps(&self) -> Result<(), SessionError> {
        check_tables(&self.tables, self.pages, |_| None, |_| false)
    }

    /// The tables that the firmware's stages share, for checks between phases.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The digest of the run so far.
    pub fn digest(&self) -> u64 {
        self.world.digest()
    }

    /// Events of virtual time so far: what the simulator's speed is counted in.
    pub fn events(&self) -> u64 {
        self.world.sim().events()
    }

    /// Requests completed so far, warm-up included, for whoever watches from another thread.
    pub fn completed(&self) -> Arc<AtomicU64> {
        self.ledger.lock().expect("nobody panics with the ledger").completed.clone()
    }

    /// Turns of all stages so far.
    pub fn turns(&self) -> u64 {
        self.world.sim().stages().map(|stage| stage.turns).sum()
    }

    /// What a time line is made of.
    pub(crate) fn meter(&self) -> &Meter {
        self.world.sim().probe()
    }

    /// Group and name of each stage.
    pub(crate) fn parts(&self) -> &[(&'static str, String)] {
        &self.parts
    }

    /// The core of each stage; none for hardware.
    pub(crate) fn places(&self) -> &[Option<CoreId>] {
        &self.places
    }

    /// Where flash channels are among the stages, in their order.
    pub(crate) fn channel_stages(&self) -> &[StageId] {
        &self.channels
    }
}

/// What the host found wrong in a phase that is over.
pub(crate) fn judge(outcome: &PhaseOutcome) -> Result<(), SessionError> {
    let wrong = wrong(None, outcome.problems, outcome.first_problem.as_ref());
    let name = || outcome.results.name.clone();
    let unsendable = || outcome.unsendable.clone().map(|why| SessionError::Unsendable(name(), why));
    wrong.or_else(unsendable).map_or(Ok(()), Err)
}

/// Why a phase does not end: what went wrong before that, if anything did.
pub(crate) fn stands_still(fault: Option<flash::MediaFault>, words: LastWords, at: Time) -> SessionError {
    let LastWords { unanswered, problems, first_problem } = words;
    wrong(fault, problems, first_problem.as_ref()).unwrap_or(SessionError::Stuck { at, unanswered })
}

fn wrong(fault: Option<flash::MediaFault>, problems: u64, first: Option<&String>) -> Option<SessionError> {
    let answer = first.map(|first| SessionError::Wrong { problems, first: first.clone() });
    fault.map(SessionError::Media).or(answer)
}

/// Erase counts of the journal's groups.
pub(crate) fn add_journal_wear(summary: &mut Summary, tables: &Tables) {
    let counts = || journal_erases(&tables.groups);
    if let Some(journal) = &mut summary.journal {
        (journal.erase_count_min, journal.erase_count_max) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    }
}

/// Whether a page that has one of these sectors of a namespace is lost.
fn has_lost(media: &MediaTally, drive: &Drive, namespace: u16, sectors: Range<u64>) -> bool {
    let space = drive.namespaces()[usize::from(namespace)];
    let sectors = sectors.start..sectors.end.min(space.sectors);
    if sectors.is_empty() {
        return false;
    }
    let page_of = |sector| drive.page_of(space.base.0 + sector).0;
    (page_of(sectors.start)..=page_of(sectors.end - 1)).any(|page| media.is_lost(Lpn(page)))
}
