//! Recovery over flash that is laid out by hand, where no workload and no cut of a run would come to.

use super::*;
use crate::Fill;
use crate::build::Risen;
use crate::check::small::{Small, mixed, processor};
use crate::session::{Remains, Session};
use firmware::architecture::ARCHITECTURES;
use firmware::{BlockGroups, GroupState};
use flash::{FaultSettings, Labels, Oob};
use host::{Pace, Phase};
use std::collections::BTreeMap;
use units::{BlockId, ChannelId, Lpn, Ppn};
use workload::{Arrivals, Parameters, Pattern, Recipe};

/// Every page of the array is programmed: as many as there are logical pages hold the newest copies, evenly spread, and the others old
/// ones. So nothing is free, and no group is without pages that must be moved.
#[derive(Debug)]
struct Crammed {
    logical: u64,
    physical: u64,
}

impl Labels for Crammed {
    fn label(&self, ppn: Ppn) -> Lpn {
        self.entry(ppn).lpn
    }

    fn entry(&self, ppn: Ppn) -> Oob {
        let before = |at: u64| at * self.logical / self.physical;
        let (at, next) = (u64::from(ppn.0), u64::from(ppn.0) + 1);
        let is_newest = before(next) > before(at);
        Oob { lpn: Lpn(before(at) as u32), owner: 0, sequence: if is_newest { 2 } else { 1 } }
    }
}

/// A drive that is switched on over these pages, as many as are programmed in each block, with requests to come, and what its recovery did.
fn again(
    device: &Device,
    small: &Small,
    labels: Arc<dyn Labels>,
    programmed: impl Fn(BlockId) -> u32,
) -> (Session, Recovery) {
    again_with(device, (labels, &[]), programmed, || mixed("mixed", 1, small.sectors(), 500))
}

/// The same where some blocks are marked as bad, with these requests.
fn again_with(
    device: &Device,
    (labels, bad): (Arc<dyn Labels>, &[BlockId]),
    programmed: impl Fn(BlockId) -> u32,
    phase: impl Fn() -> Phase,
) -> (Session, Recovery) {
    let session = Session::new(device, "small", processor(), 1, vec![phase()], 0).expect("it can be built");
    let Remains { host, .. } = session.cut(&mut || Fate::Done).expect("nothing was wrong before it began");
    let geometry = &device.drive.geometry;
    let mut contents: Vec<Contents> =
        (0..geometry.shape().channels as u16).map(|channel| device.fresh(ChannelId(channel))).collect();
    contents.iter_mut().for_each(|channel| channel.follow(labels.clone()));
    for block in (0..geometry.block_count()).map(BlockId).filter(|&block| programmed(block) > 0) {
        let (ChannelId(channel), _) = geometry.die_of(block);
        contents[usize::from(channel)].precondition(block, programmed(block)).expect("it is fresh");
    }
    for &block in bad {
        let (ChannelId(channel), _) = geometry.die_of(block);
        contents[usize::from(channel)].mark_bad(block).expect("it is on its channel");
    }
    let risen = device.rise(&processor(), contents, Time::NEVER, &mut || Fate::Done).expect("it can be recovered");
    let Risen::Up(prepared, recovery) = risen else { panic!("the power stays on") };
    let session = Session::again(device, processor(), 1, *prepared, host, vec![phase()]).expect("it can be built");
    (session, recovery)
}

/// Flash whose blocks wear out, and that fails at nothing else.
fn without_errors() -> FaultSettings {
    FaultSettings { correctable: 24, decode: Span::from_micros(1), ..FaultSettings::sound() }
}

/// What a power cut left has no room for the pages of any group: the drive takes no more writes, and what it holds is read.
#[test]
fn a_drive_without_any_room_is_only_read() {
    let architecture = firmware::architecture::find("tradition").expect("it is listed");
    let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
    let mut device = small.device();
    // The host is told that there will be cuts, and that a write may fail; flash itself has no errors.
    device.cuts = Some(device.power_cuts());
    device.faults = Some(without_errors());
    let geometry = &device.drive.geometry;
    let labels = Crammed { logical: small.sectors() / 8, physical: geometry.page_count().into() };
    let pages = geometry.shape().pages_per_block;
    let (mut session, recovery) = again(&device, &small, Arc::new(labels), |_| pages);
    assert_eq!((recovery.mapped, recovery.groups_erased), (small.sectors() / 8, 0));
    session.run_before(Time::NEVER).expect("every read is right");
    let refused = session.check_media_errors(0).expect("only writes fail");
    assert!(refused > 100 && session.failures().2, "{refused} writes were refused");
    assert_eq!(session.reclaimed(), 0);
    session.check_maps().expect("nothing changed");
}

/// Every logical page once, in the order of physical pages, by the last writes that 32 bits can number.
#[derive(Debug)]
struct LateInLife {
    logical: u32,
}

impl Labels for LateInLife {
    fn label(&self, ppn: Ppn) -> Lpn {
        Lpn(ppn.0)
    }

    fn entry(&self, ppn: Ppn) -> Oob {
        Oob { lpn: self.label(ppn), owner: 0, sequence: u64::from(u32::MAX - self.logical + ppn.0) }
    }
}

#[test]
fn writes_are_numbered_for_as_long_as_a_drive_lives() {
    for architecture in ["pipessd", "tradition"] {
        let architecture = firmware::architecture::find(architecture).expect("it is listed");
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let mut device = small.device();
        device.cuts = Some(device.power_cuts());
        let pages = device.drive.geometry.shape().pages_per_block;
        let logical = (small.sectors() / 8) as u32 / pages * pages;
        let (mut session, recovery) =
            again(
                &device,
                &small,
                Arc::new(LateInLife { logical }),
                |block| {
                    if block.0 < logical / pages { pages } else { 0 }
                },
            );
        assert_eq!(recovery.mapped, u64::from(logical));
        session.run_before(Time::NEVER).expect("every read is right");
        session.check_maps().expect("all is in order");
    }
}

/// The only copies of some pages are in a block that was marked as bad: they are moved, and flash is not asked to erase it.
#[test]
fn what_a_bad_block_holds_is_moved_and_its_group_is_not_erased() {
    for architecture in ARCHITECTURES.iter().copied().filter(|architecture| architecture.retires_blocks()) {
        let name = architecture.name();
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let mut device = small.device();
        (device.cuts, device.faults) = (Some(device.power_cuts()), Some(without_errors()));
        let pages = device.drive.geometry.shape().pages_per_block;
        let logical = (small.sectors() / 8) as u32 / pages * pages;
        let programmed = |block: BlockId| if block.0 < logical / pages { pages } else { 0 };
        let rarely = Recipe {
            arrivals: Arrivals::Poisson { per_second: 200.0 },
            ..Recipe::fixed("rare", Pattern::Random, 1.0, 4096)
        };
        let rare = || {
            let source = rarely.source(&Parameters::new(small.sectors(), 2)).expect("a drawable workload");
            Phase { ios: Some(100), ..Phase::new("rare", Box::new(source), Pace::Timed) }
        };
        let labels = Arc::new(LateInLife { logical });
        let (mut session, recovery) = again_with(&device, (labels, &[BlockId(5)]), programmed, rare);
        assert_eq!(recovery.mapped, u64::from(logical), "{name}");
        session.run_before(Time::NEVER).unwrap_or_else(|error| panic!("{name}: {error}"));
        session.check_maps().expect("all is in order");
        let groups = &session.tables().groups;
        let bad = groups.group(BlockId(5));
        assert_eq!((groups.state(bad), groups.valid_count(bad)), (GroupState::Retired, 0), "{name}");
    }
}

/// Blocks that were not erased for they stand no more hold copies of what was moved from them. Nobody is told after a power cut that the
/// drive has more to write to than before.
#[test]
fn groups_that_were_worn_out_before_a_power_cut_are_lost_after_it() {
    for &architecture in ARCHITECTURES {
        let name = architecture.name();
        let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
        let mut device = small.device();
        (device.faults, device.erase_limit) = (Some(without_errors()), 3);
        let phases = (1..=6).map(|seed| mixed("mixed", seed, small.sectors(), 7_000)).collect();
        let mut session = Session::new(&device, "small", processor(), 1, phases, 0).expect("it can be built");
        while let Some(ended) = session.next_phase() {
            ended.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let lost_of = |groups: &BlockGroups| (0..groups.threads()).map(|thread| groups.lost(thread)).sum::<u32>();
        assert!(session.tables().groups.is_read_only(), "{name}");
        let before = lost_of(&session.tables().groups);
        let Remains { contents, .. } = session.cut(&mut || Fate::Torn).expect("nothing is wrong");
        let risen = device.rise(&processor(), contents, Time::NEVER, &mut || Fate::Torn).expect("it is recovered");
        let Risen::Up(prepared, _) = risen else { panic!("the power stays on") };
        let groups = &prepared.drawing.tables.groups;
        assert!(lost_of(groups) >= before, "{name}: {} of {before} are lost", lost_of(groups));
        let bad = (0..groups.count()).filter(|&group| groups.is_bad(group));
        assert_eq!(bad.map(|group| groups.valid_count(group)).sum::<u32>(), 0, "{name}");
    }
}

/// Pages as they are said to be.
#[derive(Debug)]
struct Laid(BTreeMap<Ppn, Oob>);

impl Labels for Laid {
    fn label(&self, ppn: Ppn) -> Lpn {
        self.entry(ppn).lpn
    }

    fn entry(&self, ppn: Ppn) -> Oob {
        self.0[&ppn]
    }
}

/// The last pages of several groups can be on their way when the power fails. On a drive of the least spare groups what is closed may be
/// wholly valid: all garbage is in groups that are half filled, and some of those must be there to be reclaimed.
#[test]
fn of_half_filled_groups_no_more_are_filled_than_before_the_cut() {
    for architecture in ["pipessd", "layered"] {
        let architecture = firmware::architecture::find(architecture).expect("it is listed");
        let small = Small { architecture, fill: Fill::Sequential, blocks: [16, 16], ..Small::default() };
        let mut device = small.device();
        device.settings.parts.trans = 1;
        device.cuts = Some(device.power_cuts());
        let (drawing, _) = device.draw().expect("it can be built");
        let groups = &drawing.tables.groups;
        let (pages, owned) =
            (groups.pages(), (0..groups.count()).filter(|&group| groups.owner(group) == Some(0)).collect::<Vec<_>>());
        let points = firmware::write_points_of(groups, 0);
        let logical = (owned.len() as u32 - points - 4) * pages;
        device.drive.namespaces = vec![u64::from(logical) * 8];
        // Two groups are free, and all others full and valid but for those that are half filled.
        let halves = points + 3;
        let full = owned.len() as u32 - 2 - halves;
        let each = (logical - full * pages) / halves;
        assert!(each > 0 && each < pages / 2, "{each} valid pages in each half-filled group");
        let (mut laid, mut programmed) = (BTreeMap::new(), BTreeMap::new());
        let mut lpns = (0..logical).map(Lpn);
        for (&group, place) in owned[..(full + halves) as usize].iter().zip(0..) {
            let (valid, written) = if place < full { (pages, pages) } else { (each, pages / 2) };
            let valid = if place + 1 == full + halves { valid + (logical - full * pages) % halves } else { valid };
            for position in 0..written {
                let newest = if position < valid { lpns.next() } else { None };
                let (lpn, sequence) = newest.map_or((Lpn(0), 1), |lpn| (lpn, 2));
                laid.insert(groups.page(group, position), Oob { lpn, owner: 0, sequence });
            }
            for first in groups.blocks(group) {
                programmed.insert(device.drive.geometry.block_of(first), written / groups.planes());
            }
        }
        let (mut session, recovery) =
            again(&device, &small, Arc::new(Laid(laid)), |block| programmed.get(&block).copied().unwrap_or(0));
        assert_eq!(recovery.mapped, u64::from(logical), "{}", architecture.name());
        session.run_before(Time::NEVER).expect("every read is right");
        session.check_maps().expect("all is in order");
    }
}
