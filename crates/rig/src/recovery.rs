//! A drive switched on after a power cut: recovery runs as firmware in virtual time over what the flash holds.

#[cfg(test)]
mod tests;

use crate::build::Device;
use crate::hardware::{ChannelStage, ChannelWays, Fate, Ledger, MediaTally, Upsets};
use crate::power::Drained;
use crate::session::SessionError;
use firmware::boot::{self, Boot, BootDrawing};
use firmware::{Drive, Tables};
use flash::{Channel, Contents};
use sim::{Processor, Sim};
use stage::NoProbe;
use std::sync::{Arc, Mutex};
use units::{Span, StageId, Time};

/// What a recovery did.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// What the drive had done before that, where energy of its own protects its buffer.
    pub drained: Option<Drained>,
    /// From power on until the drive could take commands.
    pub took: Span,
    /// The same for each step, in order.
    pub steps: Vec<(&'static str, Span)>,
    /// Pages read.
    pub pages_read: u64,
    /// Pages that could not be read: what the cut had torn.
    pub torn_pages: u64,
    /// Groups of blocks erased.
    pub groups_erased: u64,
    /// Logical pages found.
    pub mapped: u64,
    /// The number of the checkpoint that it began with; none if it read every page.
    pub checkpoint: Option<u64>,
    /// Logical pages that were written after that.
    pub replayed: u64,
    /// Map entries of the checkpoint that point to what is not there any more: none, unless the firmware is wrong.
    pub dropped: u64,
}

impl Recovery {
    /// A fault where the checkpoint promised pages that are not there.
    pub(crate) fn kept_promises(self) -> Result<Recovery, SessionError> {
        if self.dropped == 0 {
            return Ok(self);
        }
        let what =
            format!("{} map entries of checkpoint {} point to nothing", self.dropped, self.checkpoint.unwrap_or(0));
        Err(SessionError::Invariant(what))
    }
}

/// What came of a recovery.
pub(crate) enum Outcome {
    /// The drive can take commands.
    Up(Vec<Contents>, Recovery),
    /// The power was cut again.
    Cut(Vec<Contents>),
}

/// Runs recovery, until `end` at most: then the power is cut again. What it finds is in the tables, which were fresh.
pub(crate) fn recover(
    device: &Device,
    (drive, tables): (&Arc<Drive>, &mut Tables),
    processor: Processor,
    contents: Vec<Contents>,
    end: Time,
    fate: &mut dyn FnMut() -> Fate,
) -> Result<Outcome, SessionError> {
    let drawing = boot::draw(drive, &device.settings, tables);
    let BootDrawing { mut blueprint, boot, channels, finished, frames } = drawing;
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let frames = Arc::new(frames);
    let timing = device.flash_timing();
    for (index, (channel, contents)) in Channel::all(&device.drive.geometry, &timing).zip(contents).enumerate() {
        let tally = Arc::new(MediaTally::new(device.drive.geometry.shape().channels));
        let ways = ChannelWays {
            frames: frames.clone(),
            done: finished[index],
            ledger: ledger.clone(),
            tally,
            depth: device.settings.flash.depth(),
            sealed: None,
            upsets: Upsets::default(),
            standstill: None,
        };
        // Flash fails while it is recovered as it does at other times.
        let stage = ChannelStage::new(index as u16, channel, device.media(contents, tables), ways, false);
        blueprint.install_boxed(channels[index], Box::new(stage.for_recovery()));
    }
    blueprint.check().map_err(crate::BuildError::from)?;
    let ids: Vec<StageId> = channels.iter().map(|slot| slot.id()).collect();
    let sim = if device.audits() { Sim::counting } else { Sim::with_probe };
    let mut sim = sim(blueprint, processor, NoProbe);
    let ended = sim.run_before(end);
    if let Some(fault) = ledger.lock().expect("nobody panics with the ledger").fault {
        return Err(SessionError::Media(fault));
    }
    let now = sim.now();
    if !ended && now < end {
        return Err(SessionError::Stuck { at: now, unanswered: Vec::new() });
    }
    let stage: &Boot =
        sim.stage(boot.id()).inspect().and_then(|stage| stage.downcast_ref()).expect("it was drawn there");
    let up = stage.is_over().then(|| {
        let (found, steps) = (stage.found(), stage.took().collect());
        found.hand_over(tables);
        Recovery {
            drained: None,
            took: now - Time::ZERO,
            steps,
            pages_read: found.pages_read,
            torn_pages: found.torn_pages,
            groups_erased: found.erased,
            mapped: found.mapped,
            checkpoint: found.checkpoint,
            replayed: found.replayed,
            dropped: found.dropped,
        }
    });
    let cut = |&id: &StageId| {
        let stage = sim.stage_mut(id).inspect_mut().and_then(|stage| stage.downcast_mut::<ChannelStage>());
        stage.expect("it was installed there").cut(now, fate)
    };
    let contents = ids.iter().map(cut).collect();
    Ok(match up {
        Some(recovery) => Outcome::Up(contents, recovery),
        None => Outcome::Cut(contents),
    })
}
