//! Where a guest lends its memory to the drive: data of a plain read or write then go straight between its pages and the drive, as on
//! a bus, and not by way of a slot's buffer.
//!
//! The drive knows a page of the guest by an address of its own, `| 1 | tenure of its piece | address in the guest |`. Whoever ends a
//! tenure, by a reset or as memory is taken away, has the word of this module that the drive touches nothing by it afterwards, also
//! where other memory has come to that address.

use crate::guest::{GuestMemory, TENURES, Tenure};
use nvme::HostMemory;
use nvme::spec::PAGE_BYTES;
use std::sync::{Arc, PoisonError, RwLock};
use units::HostAddress;

/// Bits of an address in the guest: memory of 64 TiB. What lies higher goes by a slot's buffer.
const ADDRESS_BITS: u32 = 46;
/// Addresses from here on are a guest's.
const LENT: u64 = 1 << 63;
const _: () = assert!(TENURES as u64 == 1 << (63 - ADDRESS_BITS), "addresses tell all tenures apart");

/// A guest's memory as the drive may reach it now.
#[derive(Default)]
pub(crate) struct Window(RwLock<GuestMemory>);

impl Window {
    /// From now on the drive reaches this memory, and what it was doing in any other it does not go on with.
    pub(crate) fn lend(&self, memory: &GuestMemory) {
        // A thread that died while it read has changed nothing here.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = memory.clone();
    }
}

/// What tells addresses of a tenure from others.
fn tag(tenure: &Tenure) -> u64 {
    LENT | u64::from(tenure.number()) << ADDRESS_BITS
}

/// What the drive calls a page at an address of the guest in a tenure, if it has a name for it. Whoever gives the name away keeps the
/// tenure until the drive is done with it.
pub(crate) fn name(at: HostAddress, tenure: &Tenure) -> Option<HostAddress> {
    (at.0 <= (1 << ADDRESS_BITS) - PAGE_BYTES).then_some(HostAddress(tag(tenure) | at.0))
}

/// All that a drive reaches: its slots, rings and lists, and behind the window a guest's memory.
pub(crate) struct Reach {
    own: Arc<dyn HostMemory>,
    window: Arc<Window>,
}

impl Reach {
    pub(crate) fn new(own: Arc<dyn HostMemory>, window: Arc<Window>) -> Self {
        Reach { own, window }
    }

    /// Does something to the guest's memory, if it is lent by this address; none where it is the drive's own.
    #[inline]
    fn guest<R>(&self, at: HostAddress, lost: R, act: impl FnOnce(&GuestMemory, HostAddress) -> R) -> Option<R> {
        if at.0 & LENT == 0 {
            return None;
        }
        let guest = self.window.0.read().unwrap_or_else(PoisonError::into_inner);
        let place = HostAddress(at.0 & ((1 << ADDRESS_BITS) - 1));
        let is_there = guest.tenure(place).is_some_and(|tenure| tag(tenure) | place.0 == at.0);
        Some(if is_there { act(&guest, place) } else { lost })
    }
}

impl HostMemory for Reach {
    #[inline]
    fn read_words(&self, at: HostAddress, words: &mut [u64]) {
        self.own.read_words(at, words);
    }

    #[inline]
    fn write_words(&self, at: HostAddress, words: &[u64]) {
        self.own.write_words(at, words);
    }

    fn read_sectors(&self, at: HostAddress, payload: &mut [u64]) -> bool {
        let is_there = self.guest(at, false, |guest, at| guest.read_sectors(at, payload));
        is_there.unwrap_or_else(|| self.own.read_sectors(at, payload))
    }

    fn write_sectors(&self, at: HostAddress, payload: &[u64]) {
        if self.guest(at, (), |guest, at| guest.write_sectors(at, payload)).is_none() {
            self.own.write_sectors(at, payload);
        }
    }

    fn write_data(&self, at: HostAddress, bytes: &[u8]) {
        if self.guest(at, (), |guest, at| guest.write_data(at, bytes)).is_none() {
            self.own.write_data(at, bytes);
        }
    }

    fn read_tags(&self, at: HostAddress, tags: &mut [u64]) {
        self.own.read_tags(at, tags);
    }

    fn write_tags(&self, at: HostAddress, tags: &[u64]) {
        self.own.write_tags(at, tags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::Access;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::os::fd::OwnedFd;
    use std::sync::Mutex;

    /// A memory of one sector, whatever the address.
    struct Sector(Mutex<[u64; 64]>);

    impl HostMemory for Sector {
        fn read_words(&self, _: HostAddress, words: &mut [u64]) {
            words.copy_from_slice(&self.0.lock().unwrap()[..words.len()]);
        }
        fn write_words(&self, _: HostAddress, words: &[u64]) {
            self.0.lock().unwrap()[..words.len()].copy_from_slice(words);
        }
        fn read_sectors(&self, at: HostAddress, payload: &mut [u64]) -> bool {
            self.read_words(at, payload);
            true
        }
        fn write_sectors(&self, at: HostAddress, payload: &[u64]) {
            self.write_words(at, payload);
        }
    }

    fn file() -> OwnedFd {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, 8192).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        file
    }

    #[test]
    fn a_piece_without_a_number_of_its_own_is_not_lent() {
        const ALL: Access = Access { read: true, write: true };
        let mut guest = GuestMemory::default();
        guest.map(0, 8192, ALL, Some((file(), 0))).unwrap();
        let mut tenures = Vec::new();
        while let Some(tenure) = guest.holds(&[0], ALL) {
            tenures.push(tenure);
            guest.renew();
        }
        assert_eq!(tenures.len(), TENURES as usize);
        let given_back = tenures.swap_remove(1000).number();
        guest.renew();
        assert_eq!(guest.holds(&[0], ALL).map(|tenure| tenure.number()), Some(given_back));
    }

    /// A command may be under way while the guest ends one tenure after another.
    #[test]
    fn a_tenure_that_a_command_has_a_name_of_never_comes_again() {
        const ALL: Access = Access { read: true, write: true };
        let (window, mut guest) = (Arc::new(Window::default()), GuestMemory::default());
        let reach = Reach::new(Arc::new(Sector(Mutex::new([3; 64]))), window.clone());
        guest.map(0, 8192, ALL, Some((file(), 0))).unwrap();
        let tenure = guest.tenure(HostAddress(0)).expect("it is mapped").clone();
        let place = name(HostAddress(0), &tenure).expect("a low address");
        for _ in 0..2 * TENURES {
            guest.renew();
            window.lend(&guest);
            assert!(!reach.read_sectors(place, &mut [0; 64]), "another tenure has its name");
        }
    }

    #[test]
    fn the_drive_reaches_a_piece_of_a_guest_in_its_tenure_and_while_it_is_lent() {
        const ALL: Access = Access { read: true, write: true };
        let (window, mut guest) = (Arc::new(Window::default()), GuestMemory::default());
        let reach = Reach::new(Arc::new(Sector(Mutex::new([3; 64]))), window.clone());
        guest.map(4096, 8192, ALL, Some((file(), 0))).unwrap();
        let at = HostAddress(8192);
        let of_guest = |guest: &GuestMemory| {
            let mut sector = [0; 64];
            assert!(guest.read_sectors(at, &mut sector));
            sector
        };
        let place = |guest: &GuestMemory| name(at, guest.tenure(at).expect("it is mapped")).expect("a low address");
        let first = place(&guest);
        let held = |at| {
            let mut sector = [0; 64];
            reach.read_sectors(at, &mut sector).then_some(sector)
        };
        reach.write_sectors(first, &[9; 64]);
        assert_eq!(held(first), None, "nothing is lent yet");
        window.lend(&guest);
        reach.write_sectors(first, &[5; 64]);
        assert_eq!(held(first), Some([5; 64]));
        assert_eq!(held(at), Some([3; 64]), "its own memory is as it was");
        guest.renew();
        window.lend(&guest);
        reach.write_sectors(first, &[6; 64]);
        assert_eq!(held(first), None, "the tenure is over");
        assert_eq!(of_guest(&guest), [5; 64]);
        // Other memory at the same address is not what the drive was given, and what lies beside it is as it was.
        let (second, beside) =
            (place(&guest), name(HostAddress(4096), guest.tenure(HostAddress(4096)).unwrap()).unwrap());
        guest.map(12288, 4096, ALL, Some((file(), 0))).unwrap();
        let next = name(HostAddress(12288), guest.tenure(HostAddress(12288)).unwrap()).unwrap();
        guest.unmap(4096, 8192).unwrap();
        guest.map(4096, 8192, ALL, Some((file(), 0))).unwrap();
        window.lend(&guest);
        for gone in [second, beside] {
            reach.write_sectors(gone, &[7; 64]);
            assert_eq!(held(gone), None);
        }
        assert_eq!(of_guest(&guest), [0; 64]);
        reach.write_sectors(next, &[8; 64]);
        assert_eq!(held(next), Some([8; 64]));
        let tenure = guest.tenure(HostAddress(12288)).unwrap().clone();
        assert_eq!(name(HostAddress(1 << ADDRESS_BITS), &tenure), None);
        guest.clear();
        window.lend(&guest);
        assert_eq!(held(next), None, "its memory is gone");
    }
}
