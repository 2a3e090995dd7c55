//! The thread groups of DeepFlash, one file or folder each, and the thread that runs several of them.

pub(crate) mod bgc;
pub(crate) mod cache;
pub(crate) mod copy;
pub(crate) mod dies;
pub(crate) mod entry;
pub(crate) mod fcmd;
pub(crate) mod fence;
mod free;
mod held;
pub(crate) mod ilock;
mod keyed;
pub(crate) mod layer;
mod lines;
pub(crate) mod log;
mod marks;
mod numbered;
pub(crate) mod nvmq;
pub(crate) mod pipessd;
pub(crate) mod ranges;
pub(crate) mod request;
pub(crate) mod rest;
pub(crate) mod sectors;
pub(crate) mod tradition;
pub(crate) mod trans;
mod waiting;

use crate::message::{Asker, PageDone, Requester};
use crate::policies::trans_of;
use crate::{AddressSplit, Settings, Turn, Work};
use stage::Address;
use units::Lpn;

/// The TRANS thread that a page goes to, for a thread that sends it there. Where pages are split plainly nothing is folded: the division
/// that is left is within the price of what asks.
#[inline]
pub(crate) fn choose_trans(turn: &mut Turn<'_>, settings: &Settings, lpn: Lpn) -> usize {
    if settings.split == AddressSplit::Xor {
        turn.spend(Work::FoldAddress);
    }
    trans_of(settings.split, lpn, settings.parts.trans).into()
}

/// Where the answers to page requests go: one address for each thread that asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) nvmq: Vec<Address<PageDone>>,
    pub(crate) cache: Vec<Address<PageDone>>,
    /// CACHE parts; where several threads share them, all stand in `cache` once for each thread, and pages are dealt to the threads.
    pub(crate) caches: usize,
    pub(crate) bgc: Vec<Address<PageDone>>,
    pub(crate) log: Vec<Address<PageDone>>,
    pub(crate) worker: Vec<Address<PageDone>>,
    /// What watches the power, where the buffer is to be kept when it fails.
    pub(crate) power: Option<Address<PageDone>>,
}

impl Answers {
    /// Tells a requester.
    #[inline]
    pub(crate) fn tell(&self, turn: &mut Turn<'_>, requester: Requester, done: PageDone) {
        let index = usize::from(requester.index);
        let to = match requester.group {
            Asker::Nvmq => self.nvmq[index],
            Asker::Cache => {
                let threads = self.cache.len() / self.caches;
                self.cache[requester.tag as usize % threads * self.caches + index]
            }
            Asker::Bgc => self.bgc[index],
            Asker::Log => self.log[index],
            Asker::Worker => self.worker[index],
            Asker::Power => self.power.expect("what asks has an address"),
            Asker::Fil => unreachable!("FIL tells itself"),
        };
        turn.send(to, done);
    }
}
