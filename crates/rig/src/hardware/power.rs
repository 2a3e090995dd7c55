//! What watches the power: when it fails, firmware is told to bring its buffer to flash, and the run ends when it has.

use firmware::architecture::PowerWatch;
use firmware::{
    Asker, Backup, CacheOperation, CacheRequest, CommandKey, Firmware, Media, Message, PowerPort, Requester,
    TransOperation, TransRequest, Turn,
};
use stage::{Address, Stage};
use std::any::Any;
use units::Lpn;

/// The watch.
pub(crate) struct PowerStage {
    backup: Backup,
    caches: Vec<Address<CacheRequest>>,
    trans: Vec<Address<TransRequest>>,
    fences: u32,
    /// Answers that are still to come, once the power fails.
    left: Option<u32>,
    /// Whether one of them said that something found no place.
    has_failed: bool,
}

impl PowerStage {
    pub(crate) fn new(watch: &PowerWatch, backup: Backup) -> Self {
        let PowerWatch { caches, trans, fences, .. } = watch;
        PowerStage {
            backup,
            caches: caches.clone(),
            trans: trans.clone(),
            fences: *fences,
            left: None,
            has_failed: false,
        }
    }

    /// Whether all is on flash, or what can be.
    pub(crate) fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether something found no place there.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }
}

impl Stage<Firmware> for PowerStage {
    fn on_message(&mut self, turn: &mut Turn<'_>, message: &Message) {
        let Message::PageDone(done) = *message else { unreachable!("the power watch was sent {message:?}") };
        self.has_failed |= done.media != Media::Good;
        let left = self.left.as_mut().expect("it has asked");
        *left -= 1;
        if *left == 0 {
            turn.halt();
        }
    }

    /// Every stage is woken when a run begins, and this one again when the power fails.
    fn on_wake(&mut self, turn: &mut Turn<'_>) {
        if !self.backup.fails() || self.left.is_some() {
            return;
        }
        self.left = Some(self.caches.len() as u32 + self.fences);
        let (requester, key) = (Requester { group: Asker::Power, index: 0, tag: 0 }, CommandKey::NONE);
        for (thread, &trans) in (0..).map(Lpn).zip(&self.trans) {
            turn.send(
                trans,
                TransRequest { operation: TransOperation::Fence, lpn: thread, frame: 0, pieces: 0, requester, key },
            );
        }
        for (thread, &cache) in (0..).map(Lpn).zip(&self.caches) {
            let operation = CacheOperation::Flush;
            let request = CacheRequest { operation, lpn: thread, frame: 0, pieces: 0, counts: false, requester, key };
            turn.send(cache, request);
        }
    }

    fn inspect(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl PowerPort for PowerStage {}
