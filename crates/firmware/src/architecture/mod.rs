//! The firmware architectures: each draws a blueprint from the same parts. One file each, and a line in the list.

mod deepflash;
mod layout;

pub use layout::{Hardware, Placement, PlacementError};

use crate::{Blueprint, Drive, Settings, Tables};
use std::sync::Arc;
use thiserror::Error;

/// What an architecture is given to draw with.
pub struct Materials {
    /// The drive.
    pub drive: Arc<Drive>,
    /// Every choice.
    pub settings: Settings,
    /// Which core each thread lives on.
    pub placement: Placement,
}

/// A drawn device: the plan with the firmware installed, and slots for the hardware that the rig installs.
pub struct Drawing {
    /// The plan.
    pub blueprint: Blueprint,
    /// Where hardware goes.
    pub hardware: Hardware,
    /// The tables its stages share.
    pub tables: Tables,
}

/// Why a device cannot be drawn.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum DrawError {
    /// A TRANS thread's share of the array cannot hold its share of the logical pages and what reclaim needs.
    #[error(
        "trans{trans} owns {owned} pages of flash but must hold {needed}: {pages} logical ones and {spare} to work with"
    )]
    NoRoom {
        /// The thread.
        trans: u16,
        /// Physical pages of its groups.
        owned: u64,
        /// What it needs.
        needed: u64,
        /// Its logical pages.
        pages: u64,
        /// Pages for open groups and reclaim.
        spare: u64,
    },
    /// The placement does not fit.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

/// A firmware architecture.
pub trait Architecture: Sync {
    /// Its published name.
    fn name(&self) -> &'static str;
    /// One line for help.
    fn summary(&self) -> &'static str;
    /// The settings that make it what it is, from those of DeepFlash.
    fn settle(&self, settings: Settings) -> Settings {
        settings
    }
    /// Draws the device. `prepare` is called once the tables are laid out and before any stage reads them: preconditioning.
    fn draw(&self, materials: Materials, prepare: &mut dyn FnMut(&Tables)) -> Result<Drawing, DrawError>;
}

/// All of them.
pub const ARCHITECTURES: &[&dyn Architecture] = &[&deepflash::DeepFlash, &deepflash::BaseDeepFlash];

/// The one of a name; dashes and underscores are the same.
pub fn find(name: &str) -> Option<&'static dyn Architecture> {
    let wanted = name.replace('-', "_");
    ARCHITECTURES.iter().copied().find(|architecture| architecture.name() == wanted)
}
