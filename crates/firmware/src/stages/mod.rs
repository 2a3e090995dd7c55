//! The thread groups of DeepFlash, one file or folder each.

pub(crate) mod bgc;
pub(crate) mod cache;
pub(crate) mod fcmd;
pub(crate) mod ilock;
pub(crate) mod log;
pub(crate) mod nvmq;
pub(crate) mod trans;

use crate::Turn;
use crate::message::{Asker, PageDone, Requester};
use stage::Address;

/// Where the answers to page requests go: one address for each thread that asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) nvmq: Vec<Address<PageDone>>,
    pub(crate) cache: Vec<Address<PageDone>>,
    pub(crate) bgc: Vec<Address<PageDone>>,
    pub(crate) log: Vec<Address<PageDone>>,
}

impl Answers {
    /// Tells a requester.
    pub(crate) fn tell(&self, turn: &mut Turn<'_>, requester: Requester, done: PageDone) {
        let group = match requester.group {
            Asker::Nvmq => &self.nvmq,
            Asker::Cache => &self.cache,
            Asker::Bgc => &self.bgc,
            Asker::Log => &self.log,
        };
        turn.send(group[usize::from(requester.index)], done);
    }
}
