//! Recovery over flash that is laid out by hand, where no workload and no cut of a run would come to.

use super::*;
use crate::Fill;
use crate::build::Risen;
use crate::check::small::{Small, mixed, processor};
use crate::session::{Remains, Session};
use flash::{ErrorModel, FaultSettings, Labels, Oob, ReadRetry};
use host::PowerCuts;
use units::{BlockId, Bytes, ChannelId, Lpn, Ppn};

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

/// A drive that is switched on over these pages in the first blocks, with requests to come, and what its recovery did.
fn again(device: &Device, small: &Small, labels: Arc<dyn Labels>, blocks: u32) -> (Session, Recovery) {
    let phase = || mixed("mixed", 1, small.sectors(), 500);
    let session = Session::new(device, "small", processor(), 1, vec![phase()], 0).expect("it can be built");
    let Remains { host, .. } = session.cut(&mut || Fate::Done).expect("nothing was wrong before it began");
    let geometry = &device.drive.geometry;
    let mut contents: Vec<Contents> =
        (0..geometry.shape().channels as u16).map(|channel| device.fresh(ChannelId(channel))).collect();
    contents.iter_mut().for_each(|channel| channel.follow(labels.clone()));
    for block in (0..blocks).map(BlockId) {
        let (ChannelId(channel), _) = geometry.die_of(block);
        let pages = geometry.shape().pages_per_block;
        contents[usize::from(channel)].precondition(block, pages).expect("it is fresh");
    }
    let risen = device.rise(&processor(), contents, Time::NEVER, &mut || Fate::Done).expect("it can be recovered");
    let Risen::Up(prepared, recovery) = risen else { panic!("the power stays on") };
    let session = Session::again(device, processor(), 1, *prepared, host, vec![phase()]).expect("it can be built");
    (session, recovery)
}

/// What a power cut left has no room for the pages of any group: the drive takes no more writes, and what it holds is read.
#[test]
fn a_drive_without_any_room_is_only_read() {
    let architecture = firmware::architecture::find("tradition").expect("it is listed");
    let small = Small { architecture, fill: Fill::Sequential, ..Small::default() };
    let mut device = small.device();
    // The host is told that there will be cuts, and that a write may fail; flash itself has no errors.
    device.cuts = Some(PowerCuts {
        volatile: device.has_volatile_cache(),
        whole: device.page_sectors(),
        through_every: 0,
        through_from: None,
        reads_through_every: 0,
    });
    device.faults = Some(FaultSettings {
        errors: ErrorModel { base: 0.0, ..ErrorModel::default() },
        cycles: 0,
        days: 0.0,
        days_per_second: 0.0,
        block_sigma: 0.0,
        code_data: Bytes(1024),
        correctable: 24,
        decode: Span::from_micros(1),
        decode_bit: Span::ZERO,
        retry: ReadRetry { levels: 0, factor: 1.0 },
        weak: 0.0,
        program_failures: 0.0,
        erase_failures: 0.0,
        factory_bad: 0.0,
    });
    let geometry = &device.drive.geometry;
    let labels = Crammed { logical: small.sectors() / 8, physical: geometry.page_count().into() };
    let (mut session, recovery) = again(&device, &small, Arc::new(labels), geometry.block_count());
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
        device.cuts = Some(PowerCuts {
            volatile: device.has_volatile_cache(),
            whole: device.page_sectors(),
            through_every: 0,
            through_from: None,
            reads_through_every: 0,
        });
        let pages = device.drive.geometry.shape().pages_per_block;
        let logical = (small.sectors() / 8) as u32 / pages * pages;
        let (mut session, recovery) = again(&device, &small, Arc::new(LateInLife { logical }), logical / pages);
        assert_eq!(recovery.mapped, u64::from(logical));
        session.run_before(Time::NEVER).expect("every read is right");
        session.check_maps().expect("all is in order");
    }
}
