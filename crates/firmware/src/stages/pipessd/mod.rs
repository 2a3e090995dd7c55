//! The four stages of PipeSSD (DAC'24 §3): NVMe Fetch with the pilot, FTL, FIL with the waitlist, NVMe Post with the data cache.

pub(crate) mod event;
pub(crate) mod fetch;
pub(crate) mod fil;
mod flash_order;
pub(crate) mod ftl;
mod owners;
mod pilot;
mod poll;
pub(crate) mod post;
mod waitlist;

use crate::message::SubRequest;
use crate::{Note, PipelineStep};

/// What is told of a sub-request.
fn note_of(sub: &SubRequest, step: PipelineStep) -> Note {
    Note::Pipeline { id: sub.id, lpn: sub.lpn, line: sub.line, step }
}
