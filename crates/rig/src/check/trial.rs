//! A checked run: a workload until the power fails, recovery, everything read and judged, and the workload goes on.

#[cfg(test)]
mod parts;

use super::case::Case;
use super::collide::{self, Colliding, collides};
use super::commands::{Varied, pairs, shares};
use super::draw::Draw;
use super::further::{self, goes_further, vary};
use super::levelled::{self, levels};
use super::protected::{charge, erases_slowly, protect};
use super::small::{Small, processor};
use crate::build::{Prepared, Risen};
use crate::hardware::Fate;
use crate::power::Drained;
use crate::recovery::Recovery;
use crate::session::{Remains, Session, SessionError};
use crate::{Device, Interleaving, Precondition};
use firmware::{GroupState, Mapping, MappingScheme, Mutation, Tables};
use flash::{Contents, ErrorModel, FaultSettings, ReadRetry};
use host::{Pace, Phase, PowerCuts};
use std::collections::VecDeque;
use units::{Lba, Span, Time};
use workload::{Io, IoKind, Source};

/// Blocks of a plane and pages of a block: small, so that recovery and reading everything take little.
const BLOCKS: [u32; 2] = [16, 16];

/// Tells draws that came later from those before.
const FAR: u64 = 0x5eed_0002_0000_0000;
/// The same for the moment at which hosts turn the volatile write cache off.
const TURNED_OFF: u64 = 0x5eed_0003_0000_0000;

/// The same for whether many pages are deallocated at once.
const BURIED: u64 = 0x5eed_0005_0000_0000;

/// The same for which mapping a drive has.
const HYBRID: u64 = 0x5eed_0004_0000_0000;

/// The same for how often blocks can be erased before they fail.
const WORN: u64 = 0x5eed_0007_0000_0000;

/// The same for whether flash gets worse by being read.
const WORSENS: u64 = 0x5eed_0008_0000_0000;

/// The same for which reads hosts send with force unit access.
const READ_THROUGH: u64 = 0x5eed_0006_0000_0000;

/// Erases that blocks stand, if that is more than any run of these comes to.
const ERASES_MANY: u32 = 100_000;

/// A share of all requests.
const FLUSHES: f64 = 0.03;

/// What went into a checked run that held.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Times that the power was cut while the drive served, and while it recovered.
    pub cuts: u32,
    /// The same, of those while it recovered.
    pub cuts_in_recovery: u32,
    /// Every recovery that came to its end.
    pub recoveries: Vec<Recovery>,
    /// Groups of blocks erased while the drive served, since it was last switched on.
    pub erases: u64,
    /// What was done on the energy of capacitors, at each cut of a drive that has them.
    pub drained: Vec<Drained>,
    /// Programs and erases that failed.
    pub failed_operations: u64,
    /// Pages that could not be read.
    pub given_up: u64,
    /// Cuts of a drive that took no more writes.
    pub read_only: u64,
    /// Merges of log groups, of drives with hybrid mapping.
    pub merges: u64,
    /// Groups that were moved because they wore little.
    pub levelled: u64,
    /// Times that several merges were under way when such a drive was switched off.
    pub cuts_in_merges: u64,
    /// Verifies, Writes Uncorrectable, Copies, fused pairs that were carried out and those of which nothing was, and commands that failed
    /// because blocks were unreadable.
    pub carried: [u64; 6],
}

/// Power cuts of most cases at most. A drive that stands more meets, some time, failures that follow each other too closely.
const CUTS_FEW: u32 = 3;

/// The moments of the cuts and what they tear, apart from other draws so that a smaller case is cut alike.
struct Fates(Draw);

impl Fates {
    /// Between 10 us and 40 ms: as many cuts in each doubling.
    fn moment(&mut self) -> Span {
        let picos = Span::from_micros(10).picos() << self.0.within(0..=11);
        Span::from_picos(picos + picos / 1024 * u64::from(self.0.within(0..=1023)))
    }

    fn fate(&mut self) -> Fate {
        self.0.of(&[Fate::Torn, Fate::Torn, Fate::Torn, Fate::Done, Fate::NotBegun])
    }
}

/// Runs a case.
pub(super) fn trial(case: &Case) -> Result<Report, SessionError> {
    let mut draw = Draw::new(case.seed);
    let mut fates = Fates(Draw::new(!case.seed));
    let device = device(case, &mut draw);
    let mut report = Report::default();
    let phase = |draw: &mut Draw, leg: u32| {
        let seed = case.seed ^ u64::from(leg) << 32;
        let mut phase = if case.hammers() {
            draw.hammer("hammered", &device, seed, case.ios, (FLUSHES, buries(case)))
        } else {
            draw.phase("checked", &device, seed, case.ios, further::others(case, FLUSHES))
        };
        phase = levelled::narrow(case, seed, &device, phase);
        if collides(case) {
            phase.source = Box::new(Colliding::new(phase.source, case, seed, &device));
        }
        if let Some(shares) = shares(case, &device) {
            phase.source = Box::new(Varied::new(phase.source, shares, seed, &device));
        }
        phase
    };
    let phases = vec![phase(&mut draw, 0)];
    let mut failures = 0;
    let mut session = Session::new(&device, "small", processor(), case.seed, phases, 0)?;
    for leg in 1..=case.cuts {
        let drawn = fates.moment();
        let apart = collide::moment(case, leg).or_else(|| levelled::moment(case, leg));
        let moment = if buries(case) && !levels(case) { late_moment(case, leg) } else { apart.unwrap_or(drawn) };
        session.run_before(session.now() + moment)?;
        match fates.0.within(0..=3) {
            _ if gives_out(&device) => await_moment(&mut session, 2_000, |session| session.failures().2)?,
            _ if merges_many(case, &device) => await_moment(&mut session, 400, |session| merging(session) >= 3)?,
            _ if buries(case) || erases_slowly(case, &device) => await_moment(&mut session, 400, Session::is_erasing)?,
            0 => await_moment(&mut session, 100, Session::is_erasing)?,
            1 => await_moment(&mut session, 400, Session::erases_ahead)?,
            2 if device.faults.is_some() => await_moment(&mut session, 400, Session::is_replacing)?,
            _ => {}
        }
        close(case, &session, &device, &mut report, &mut failures)?;
        report.read_only += u64::from(session.failures().2);
        let remains = session.cut(&mut || fates.fate())?;
        report.cuts += 1;
        let Remains { contents, host, spoiled, drained } = remains;
        report.drained.extend(drained);
        let recovered = bring_back(&device, contents, &mut fates, &mut report)?;
        let phases = vec![read_everything(&device, spoiled), phase(&mut draw, leg)];
        session = Session::again(&device, processor(), case.seed, recovered, host, phases)?;
        session.check_recovered()?;
        // One cut in eight comes before everything is read.
        if leg == case.cuts || fates.0.within(0..=7) > 0 {
            session.run_before(Time::NEVER)?;
            let uncertain = session.uncertain();
            if uncertain > 0 {
                return Err(SessionError::Invariant(format!("{uncertain} pages were not read after a power cut")));
            }
            session.check_maps()?;
        }
    }
    session.run_before(Time::NEVER)?;
    close(case, &session, &device, &mut report, &mut failures)?;
    report.carried = session.carried();
    Ok(report)
}

/// Checks a drive that is to be switched off, and counts what it did. `failures` are the media errors that were seen before.
fn close(
    case: &Case,
    session: &Session,
    device: &Device,
    report: &mut Report,
    failures: &mut usize,
) -> Result<(), SessionError> {
    session.check_maps()?;
    check_closed(case, session, device)?;
    *failures = session.check_media_errors(*failures)?;
    report.erases += session.reclaimed();
    let (failed, given_up, _) = session.failures();
    report.failed_operations += failed;
    report.given_up += given_up;
    report.levelled += session.levelled();
    report.cuts_in_merges += u64::from(merging(session) >= 2);
    report.merges += session.tables().mapping.merges().iter().sum::<u64>();
    Ok(())
}

/// A drive takes no more writes only where it has fewer groups than it needs. It may as well where failures came in a row and have left
/// groups that cannot be emptied for want of room: with flash that fails often, or stands few erases, or in a life of many cuts. But then
/// there is no such room, in a drive whose workers gather all that there is.
fn check_closed(case: &Case, session: &Session, device: &Device) -> Result<(), SessionError> {
    if !session.is_closed_with_spares(device) {
        return Ok(());
    }
    let (worn, is_hybrid) = (device.erase_limit < ERASES_MANY, device.settings.mapping != MappingScheme::Page);
    let often =
        device.faults.as_ref().is_some_and(|faults| faults.erase_failures > 0.02 || faults.program_failures > 0.002);
    let fails_rarely = !worn && !is_hybrid && !often && case.cuts <= CUTS_FEW;
    let gathers_room = device.architecture.retires_blocks() && !device.architecture.replaces_blocks();
    let victim = session.fitting_victim().filter(|_| gathers_room);
    if fails_rarely || victim.is_some() {
        let what = format!(
            "the drive takes no more writes, but has all groups that it needs; group {victim:?} could be emptied"
        );
        return Err(SessionError::Invariant(what));
    }
    Ok(())
}

/// Some cuts wait, for so many steps at most, until something is under way that a cut could make fatal.
fn await_moment(session: &mut Session, steps: u32, has_come: fn(&Session) -> bool) -> Result<(), SessionError> {
    for _ in 0..steps {
        if has_come(session) {
            break;
        }
        session.run_before(session.now() + Span::from_micros(50))?;
    }
    Ok(())
}

/// Whether a drive with capacitors runs out of groups: what it keeps for its buffer counts when nothing else is left. It is full, and its
/// power fails when it takes no more writes.
fn gives_out(device: &Device) -> bool {
    device.power.is_some() && device.faults.as_ref().is_some_and(|faults| faults.erase_failures >= 0.25)
}

/// Merges under way, of a drive with hybrid mapping: each has a group that retires or is to be erased.
fn merging(session: &Session) -> usize {
    let Tables { groups, mapping: Mapping::Hybrid(_), .. } = session.tables() else { return 0 };
    (0..groups.count()).filter(|&group| groups.state(group) == GroupState::Victim).count()
}

/// Whether the power of a drive with hybrid mapping is to fail while several merges are under way: that of every second such drive.
fn merges_many(case: &Case, device: &Device) -> bool {
    device.settings.mapping != MappingScheme::Page && Draw::new(!case.seed ^ HYBRID).coin()
}

/// Recovers, with a cut on the way now and then.
fn bring_back(
    device: &Device,
    mut contents: Vec<Contents>,
    fates: &mut Fates,
    report: &mut Report,
) -> Result<Prepared, SessionError> {
    loop {
        let end = if fates.0.within(0..=3) == 0 { Time::ZERO + fates.moment() } else { Time::NEVER };
        match device.rise(&processor(), contents, end, &mut || fates.fate())? {
            Risen::Up(prepared, recovery) => {
                report.recoveries.push(recovery.kept_promises()?);
                return Ok(*prepared);
            }
            Risen::Cut(left) => {
                contents = left;
                report.cuts += 1;
                report.cuts_in_recovery += 1;
            }
        }
    }
}

/// The device of a case.
fn device(case: &Case, draw: &mut Draw) -> Device {
    let mut small = Small { architecture: case.architecture, seed: case.seed, blocks: BLOCKS, ..Small::default() };
    if case.mutation.is_none() {
        // A planted bug is looked for where it was.
        small.page = Draw::page(case.seed);
    }
    further::shorten_pages(case, &mut small);
    if levels(case) {
        small.blocks = levelled::BLOCKS;
    }
    let mut device = draw.device(&small);
    if case.plain {
        device = Device { precondition: device.precondition, ..small.device() };
    }
    if device.settings.mapping != MappingScheme::Page {
        device.precondition = Precondition { fill: crate::Fill::None, ..device.precondition };
        if !keeps_hybrid(case, &device) {
            device.settings.mapping = MappingScheme::Page;
        }
    }
    if case.hammers() {
        if device.settings.mapping == MappingScheme::Page {
            device.precondition.fill = crate::Fill::Random { times: 3.0 };
        }
        // Many pages under way at a time, or there is nothing for a cut to catch.
        (device.queue_entries, device.depth) = (64, 32);
        device.settings.commands = device.settings.commands.max(64);
        device.settings.frames = device.settings.frames.max(32);
    }
    if buries(case) {
        // Tombstones are moved between checkpoints, and blocks of a group are erased one by one.
        let journal = &mut device.settings.journal;
        (journal.interval, journal.only_when_idle, journal.busy_share) = (Span::from_millis(2), false, 1.0);
        let one_by_one = Draw::new(!case.seed ^ BURIED).coin() || case.mutation == Some(Mutation::TrustHalfErased);
        device.settings.flash.multi_plane &= !one_by_one;
    }
    if case.mutation == Some(Mutation::CommitUnfenced) {
        // It takes a cut between a commit and what should have come before it: there are as many commits as there can be.
        let journal = &mut device.settings.journal;
        (journal.interval, journal.only_when_idle, journal.busy_share) = (Span::from_micros(100), false, 1.0);
    }
    device.drive.sector_words = device.drive.sector_words.max(1);
    device.check = true;
    device.settings.mutation = case.mutation;
    if case.mutation.is_some() {
        // A planted bug is looked for where it was.
        device.settings.reclaim.wear_share = 0.0;
        device.settings.flash.ahead = false;
    }
    device.drive.write_through = draw.within(0..=3) == 0 || case.hammers();
    if case.one_queue {
        (device.drive.queues, device.depth, device.vectors) = (1, 1, 1);
    }
    let through_every = draw.of(&[0, 3, 10]);
    collide::crowd(case, &mut device);
    vary(case, &mut device);
    levelled::hurry(case, &mut device);
    protect(case, &mut device);
    wear_out(case, &mut device);
    charge(case, &mut device);
    device.cuts = Some(announced(case, &device, through_every));
    device.interleaving = case.interleaved.then(|| Interleaving::of(case.seed));
    device
}

/// What hosts are told of the cuts of a case, and send because there are any.
fn announced(case: &Case, device: &Device, through_every: u32) -> PowerCuts {
    let [through_every, reads_through_every] = collide::through(case).unwrap_or([through_every, reads_through(case)]);
    let (through_from, pairs_every) = (turned_off(case), pairs(case));
    PowerCuts { through_every, through_from, reads_through_every, pairs_every, ..device.power_cuts() }
}

/// Hosts of every second drive that is written over and over deallocate many pages at once. With a planted bug of other parts the cases
/// are what they were.
fn buries(case: &Case) -> bool {
    let is_its_own = matches!(case.mutation, Some(Mutation::RenumberTombstone | Mutation::TrustHalfErased));
    case.hammers() && (is_its_own || case.mutation.is_none() && Draw::new(case.seed ^ BURIED).coin())
}

/// When the power of such a drive is cut: late enough for tombstones to be reclaimed before.
fn late_moment(case: &Case, leg: u32) -> Span {
    Span::from_millis(Draw::new(case.seed ^ BURIED ^ u64::from(leg) << 32).within(1..=120).into())
}

/// Of the drives that were drawn with hybrid mapping half keep it, if they are large enough for it. A planted bug is looked for where it
/// was.
fn keeps_hybrid(case: &Case, device: &Device) -> bool {
    let mut draw = Draw::new(case.seed ^ HYBRID);
    case.mutation.is_none() && draw.coin() && device.draw().is_ok()
}

/// Hosts of every third drive turn the volatile write cache off after so many writes. With a planted bug the cases are what they were.
fn turned_off(case: &Case) -> Option<u32> {
    let mut draw = Draw::new(case.seed ^ TURNED_OFF);
    let from = draw.within(0..=200);
    (case.mutation.is_none() && draw.within(0..=2) == 0).then_some(from)
}

/// Of how many reads hosts send one with force unit access. With a planted bug of other parts the cases are what they were.
fn reads_through(case: &Case) -> u32 {
    let other = case.mutation.is_some_and(|mutation| mutation != Mutation::ReadEarly);
    if other { 0 } else { Draw::new(case.seed ^ READ_THROUGH).of(&[0, 1, 4, 16]) }
}

/// Every second drive, of those that are protected every fourth, has flash that fails: blocks that are bad, bits that are corrected or
/// not, and programs and erases that fail where the firmware replaces blocks.
fn wear_out(case: &Case, device: &mut Device) {
    let mut draw = Draw::new(case.seed ^ FAR);
    let always = case.mutation.is_some_and(Mutation::concerns_failures);
    // A planted bug of other parts is looked for where it was.
    let other = case.mutation.is_some() && !always;
    let is_spared = device.power.is_some() && !goes_further(case);
    if is_spared || other || !(draw.coin() || always) {
        return;
    }
    // With every byte kept most of the time would go into decoding, which comes to the same as counting errors.
    device.drive.sector_words = device.drive.sector_words.min(2);
    let programs_fail = device.architecture.replaces_blocks()
        && device.settings.mapping == MappingScheme::Page
        && device.power.is_none();
    let erases_fail = device.architecture.retires_blocks();
    let chance = |fails, chance: f64| if fails { chance } else { 0.0 };
    // Few cuts of those with capacitors come when they take no more writes, which is when it matters what they keep room for.
    let erase_failures = if device.power.is_some() { [0.02, 0.25, 1.0] } else { [0.0, 0.02, 0.25] };
    // Of 9,200 bits of a word none, nine or twenty are wrong on average. Of the last some pages are lost, even if they are read again.
    let (base, correctable) = draw.of(&[(0.0, 24), (1.0e-3, 29), (2.2e-3, 24)]);
    // Some of the middle ones get worse by being read: after some hundred reads of a block its pages are weak, and are written elsewhere.
    let worsens = case.mutation.is_none() && base == 1.0e-3 && Draw::new(case.seed ^ WORSENS).coin();
    let disturb = if worsens { 0.1 * base } else { 0.0 };
    device.faults = Some(FaultSettings {
        errors: ErrorModel {
            base,
            disturb,
            disturb_wear_exponent: 0.0,
            disturb_exponent: 0.5,
            ..ErrorModel::default()
        },
        block_sigma: draw.of(&[0.0, 0.1]),
        correctable,
        decode: Span::from_micros(1),
        decode_bit: Span::from_nanos(500),
        retry: ReadRetry { levels: 2, factor: 0.8 },
        weak: draw.of(&[0.0, 0.75]),
        program_failures: chance(programs_fail, if always { 0.01 } else { draw.of(&[0.0, 0.002, 0.02]) }),
        erase_failures: chance(erases_fail, draw.of(&erase_failures)),
        factory_bad: draw.of(&[0.0, 0.01]),
        ..FaultSettings::sound()
    });
    let fill = device.precondition.fill;
    if gives_out(device) {
        device.precondition.fill = crate::Fill::Random { times: 3.0 };
    }
    let (mut worn, limit) = (Draw::new(case.seed ^ WORN), device.erase_limit);
    if case.mutation.is_none() && worn.within(0..=2) == 0 {
        device.erase_limit = device.precondition.fill.erases_max() + worn.of(&[2, 4, 6, 8, 12]);
    }
    if device.draw().is_err() {
        // Too few blocks are left.
        device.faults = None;
        (device.erase_limit, device.precondition.fill) = (limit, fill);
    }
}

/// Reads every page of every namespace once, so many sectors at a time; of those that cannot be read whole, block after block.
struct Everything {
    namespaces: Vec<u64>,
    at_a_time: u64,
    /// Those, from the first on.
    spoiled: VecDeque<(u16, u64)>,
    block: u64,
    device: usize,
    next: u64,
}

impl Source for Everything {
    fn next_io(&mut self) -> Option<Io> {
        let all = *self.namespaces.get(self.device)?;
        let here = (self.device as u16, self.next / 8);
        while self.spoiled.front().is_some_and(|page| *page < here) {
            self.spoiled.pop_front();
        }
        let next = self.spoiled.front().filter(|page| page.0 == here.0).map_or(u64::MAX, |page| page.1);
        let at_a_time =
            if next == here.1 { self.block } else { self.at_a_time.min(next.saturating_mul(8) - self.next) };
        let sectors = (all - self.next).min(at_a_time);
        let io = Io {
            device: self.device as u16,
            kind: IoKind::Read,
            lba: Lba(self.next),
            sectors: sectors as u32,
            at: None,
        };
        self.next += sectors;
        if self.next == all {
            (self.device, self.next) = (self.device + 1, 0);
        }
        Some(io)
    }
}

fn read_everything(device: &Device, spoiled: Vec<(u16, u64)>) -> Phase {
    // A page that cannot be read hides those that are read with it.
    let at_a_time = if device.damages_pages() { 8 } else { 128 };
    let (namespaces, block) = (device.drive.namespaces.clone(), device.drive.format.sectors());
    let source = Everything { namespaces, at_a_time, spoiled: spoiled.into(), block, device: 0, next: 0 };
    Phase::new("everything", Box::new(source), Pace::Closed)
}
