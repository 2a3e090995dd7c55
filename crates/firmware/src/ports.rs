//! Hardware as the firmware knows it: what can be sent there. The rig installs what answers.

use crate::Firmware;
use crate::message::{ChannelRequest, DoorbellsWritten, Interrupt, PageDone, Posted, QueueDealt, Transfer};
use stage::{Accepts, Stage};

/// The host link: doorbells, arbitration, DMA, completions and interrupts.
pub trait HostLink: Stage<Firmware> {}
impl Accepts<Transfer> for dyn HostLink {}
impl Accepts<Posted> for dyn HostLink {}
impl Accepts<QueueDealt> for dyn HostLink {}
impl Accepts<DoorbellsWritten> for dyn HostLink {}

/// The host at the other end of the link.
pub trait HostPort: Stage<Firmware> {}
impl Accepts<Interrupt> for dyn HostPort {}

/// A flash channel with its dies.
pub trait FlashChannel: Stage<Firmware> {}
impl Accepts<ChannelRequest> for dyn FlashChannel {}

/// What watches the power and keeps the drive alive for a moment when it fails.
pub trait PowerPort: Stage<Firmware> {}
impl Accepts<PageDone> for dyn PowerPort {}
