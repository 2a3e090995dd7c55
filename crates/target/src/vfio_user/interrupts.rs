//! The function's MSI-X vectors: events that the client gave, which are signalled for completions.

use super::message::SetInterrupts;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};

/// `VFIO_PCI_MSIX_IRQ_INDEX`, and the indices there are.
pub(crate) const MSIX_INDEX: u32 = 2;
pub(crate) const INDICES: u32 = 5;

// Flags of VFIO_DEVICE_SET_IRQS.
const NO_DATA: u32 = 1;
const BOOLS: u32 = 1 << 1;
const EVENTS: u32 = 1 << 2;
const MASK: u32 = 1 << 3;
const UNMASK: u32 = 1 << 4;
const TRIGGER: u32 = 1 << 5;

/// The vectors.
pub(crate) struct Interrupts(Vec<Vector>);

#[derive(Default)]
struct Vector {
    event: Option<OwnedFd>,
    masked: bool,
    /// Raised while it was masked or had no event.
    pending: bool,
}

impl Interrupts {
    /// So many vectors without events.
    pub(crate) fn new(vectors: u16) -> Self {
        Interrupts((0..vectors).map(|_| Vector::default()).collect())
    }

    /// Vectors there are.
    pub(crate) fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Which of eight vectors are pending, a bit each.
    pub(crate) fn pending(&self, octet: usize) -> u8 {
        let vectors = self.0.iter().skip(8 * octet).take(8);
        (0..).zip(vectors).map(|(bit, vector)| u8::from(vector.pending) << bit).sum()
    }

    /// The client is gone: forgets every event, and what was raised.
    pub(crate) fn clear(&mut self) {
        self.0.fill_with(Vector::default);
    }

    /// Takes every event away. What was raised, or is before there are others, waits for these: QEMU does so when its guest takes one
    /// vector more.
    fn disable(&mut self) {
        self.0.iter_mut().for_each(|vector| (vector.event, vector.masked) = (None, false));
    }

    /// The function is reset: what was raised before is not told after, and nothing is masked. The events are the client's, which need not
    /// know of a reset that its guest has asked for.
    pub(crate) fn reset(&mut self) {
        self.0.iter_mut().for_each(|vector| (vector.masked, vector.pending) = (false, false));
    }

    /// Does what the client asks.
    ///
    /// # Errors
    /// Vectors that there are not, flags that contradict each other, a file that is no event.
    pub(crate) fn set(&mut self, asked: SetInterrupts<'_>, files: Vec<OwnedFd>) -> Result<(), Errno> {
        let SetInterrupts { flags, index, start, count, data } = asked;
        let (kind, action) = (flags & (NO_DATA | BOOLS | EVENTS), flags & (MASK | UNMASK | TRIGGER));
        let unknown = flags & !(NO_DATA | BOOLS | EVENTS | MASK | UNMASK | TRIGGER) != 0;
        if unknown || kind.count_ones() != 1 || action.count_ones() != 1 {
            return Err(Errno::INVAL);
        }
        if index != MSIX_INDEX {
            // The function has no other interrupts; ending them all is no mistake.
            return if count == 0 && index < INDICES { Ok(()) } else { Err(Errno::INVAL) };
        }
        let range = start as usize..(start as usize).checked_add(count as usize).ok_or(Errno::INVAL)?;
        let vectors = self.0.get_mut(range).ok_or(Errno::INVAL)?;
        if (kind, action, count) == (NO_DATA, TRIGGER, 0) {
            self.disable();
            return Ok(());
        }
        if kind == EVENTS {
            return if action == TRIGGER { give(vectors, files) } else { Err(Errno::NOTSUP) };
        }
        if kind == BOOLS && data.len() < vectors.len() {
            return Err(Errno::INVAL);
        }
        for (place, vector) in vectors.iter_mut().enumerate() {
            if kind == NO_DATA || data[place] != 0 {
                match action {
                    MASK => vector.masked = true,
                    UNMASK => vector.unmask(),
                    _ => vector.raise(),
                }
            }
        }
        Ok(())
    }

    /// Signals a vector.
    pub(crate) fn raise(&mut self, vector: u16) {
        if let Some(vector) = self.0.get_mut(usize::from(vector)) {
            vector.raise();
        }
    }
}

/// Each vector its event, or none of them one.
fn give(vectors: &mut [Vector], files: Vec<OwnedFd>) -> Result<(), Errno> {
    if !files.is_empty() && files.len() != vectors.len() {
        return Err(Errno::INVAL);
    }
    files.iter().try_for_each(check)?;
    let mut files = files.into_iter();
    for vector in vectors {
        vector.event = files.next();
        vector.signal();
    }
    Ok(())
}

/// Only an event counter may be written to: anything else could hold the writer up, or be somebody's file.
fn check(file: &OwnedFd) -> Result<(), Errno> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|_| Errno::BADF)?;
    if link.as_os_str() != "anon_inode:[eventfd]" {
        return Err(Errno::INVAL);
    }
    // A counter that is full has been raised already; nobody waits for it to be read.
    fcntl_setfl(file, fcntl_getfl(file)? | OFlags::NONBLOCK)
}

impl Vector {
    fn raise(&mut self) {
        self.pending = true;
        self.signal();
    }

    fn unmask(&mut self) {
        self.masked = false;
        self.signal();
    }

    /// Tells what is pending, where it may and somebody listens.
    fn signal(&mut self) {
        if let Some(event) = self.event.as_ref().filter(|_| self.pending && !self.masked) {
            self.pending = false;
            // It fails only where it is raised already.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn event() -> OwnedFd {
        eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap()
    }

    fn raised(event: &OwnedFd) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(event, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    fn ask(flags: u32, start: u32, count: u32) -> SetInterrupts<'static> {
        SetInterrupts { flags, index: MSIX_INDEX, start, count, data: &[] }
    }

    #[test]
    fn a_vector_signals_its_event_and_a_masked_one_waits() {
        let (mut interrupts, mine) = (Interrupts::new(3), event());
        interrupts.set(ask(EVENTS | TRIGGER, 1, 1), vec![mine.try_clone().unwrap()]).unwrap();
        interrupts.raise(0);
        interrupts.raise(9);
        assert_eq!(raised(&mine), 0);
        interrupts.raise(1);
        interrupts.raise(1);
        assert_eq!(raised(&mine), 2);
        interrupts.set(ask(NO_DATA | MASK, 0, 3), Vec::new()).unwrap();
        interrupts.raise(1);
        assert_eq!(raised(&mine), 0);
        interrupts.set(ask(NO_DATA | UNMASK, 1, 1), Vec::new()).unwrap();
        assert_eq!(raised(&mine), 1);
        interrupts.set(ask(NO_DATA | MASK, 1, 1), Vec::new()).unwrap();
        interrupts.raise(1);
        interrupts.reset();
        interrupts.set(ask(NO_DATA | UNMASK, 1, 1), Vec::new()).unwrap();
        assert_eq!(raised(&mine), 0, "of before the reset");
        interrupts.raise(1);
        assert_eq!(raised(&mine), 1, "its event has stayed");
        interrupts.set(ask(NO_DATA | TRIGGER, 0, 0), Vec::new()).unwrap();
        interrupts.raise(1);
        assert_eq!(raised(&mine), 0);
    }

    /// As a pending bit does (PCI Express Base 4.0 section 7.7.2.9): it is told when somebody listens.
    #[test]
    fn what_is_raised_while_a_vector_has_no_event_waits_for_one() {
        let (mut interrupts, mine) = (Interrupts::new(3), event());
        let give = |interrupts: &mut Interrupts, files| interrupts.set(ask(EVENTS | TRIGGER, 1, 1), files).unwrap();
        let mine_again = || vec![mine.try_clone().unwrap()];
        interrupts.raise(1);
        interrupts.raise(1);
        assert_eq!(interrupts.pending(0), 1 << 1);
        give(&mut interrupts, mine_again());
        assert_eq!((raised(&mine), interrupts.pending(0)), (1, 0));
        give(&mut interrupts, Vec::new());
        interrupts.raise(1);
        interrupts.set(ask(NO_DATA | MASK, 1, 1), Vec::new()).unwrap();
        give(&mut interrupts, mine_again());
        assert_eq!(raised(&mine), 0, "it is masked");
        // All are taken away, and given anew.
        interrupts.set(ask(NO_DATA | TRIGGER, 0, 0), Vec::new()).unwrap();
        interrupts.raise(0);
        assert_eq!(interrupts.pending(0), 0b11);
        give(&mut interrupts, mine_again());
        assert_eq!((raised(&mine), interrupts.pending(0)), (1, 1));
        interrupts.clear();
        assert_eq!(interrupts.pending(0), 0, "of another client's");
    }

    #[test]
    fn nothing_but_events_and_vectors_that_exist_is_taken() {
        let mut interrupts = Interrupts::new(3);
        let mut set = |asked, files| interrupts.set(asked, files);
        assert_eq!(set(ask(EVENTS | TRIGGER, 2, 2), vec![event(), event()]), Err(Errno::INVAL));
        assert_eq!(set(ask(EVENTS | TRIGGER, u32::MAX, u32::MAX), Vec::new()), Err(Errno::INVAL));
        assert_eq!(set(ask(EVENTS | TRIGGER, 0, 2), vec![event()]), Err(Errno::INVAL));
        assert_eq!(set(ask(EVENTS | BOOLS | TRIGGER, 0, 1), Vec::new()), Err(Errno::INVAL));
        assert_eq!(set(ask(BOOLS | TRIGGER, 0, 1), Vec::new()), Err(Errno::INVAL), "without its data");
        assert_eq!(set(ask(EVENTS, 0, 1), vec![event()]), Err(Errno::INVAL), "no action");
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        assert_eq!(set(ask(EVENTS | TRIGGER, 0, 1), vec![writer]), Err(Errno::INVAL), "a pipe could be full");
        assert_eq!(set(SetInterrupts { index: 0, ..ask(EVENTS | TRIGGER, 0, 1) }, vec![event()]), Err(Errno::INVAL));
        assert_eq!(set(SetInterrupts { index: 0, ..ask(NO_DATA | TRIGGER, 0, 0) }, Vec::new()), Ok(()));
    }

    #[test]
    fn a_counter_that_is_full_holds_nobody_up() {
        let (mut interrupts, full) = (Interrupts::new(1), eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        rustix::io::write(&full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        interrupts.set(ask(EVENTS | TRIGGER, 0, 1), vec![full]).unwrap();
        interrupts.raise(0);
    }
}
