//! What can go wrong with a run.

use crate::build::BuildError;
use crate::hardware::Unanswered;
use thiserror::Error;
use threads::NoThread;
use units::{LIFETIME, Time};

/// A run that went wrong.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The device cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Nothing is left to happen, or the deadline is over, but commands are outstanding: a fault of the firmware.
    #[error("the drive stands still at {at}; without an answer: {}", list(.unanswered))]
    Stuck {
        /// When.
        at: Time,
        /// The first of the commands that wait.
        unanswered: Vec<Unanswered>,
    },
    /// The host saw an answer that no correct drive gives.
    #[error("{}; the first: {first}", report::of(*.problems, "wrong answer"))]
    Wrong {
        /// How many.
        problems: u64,
        /// The first of them.
        first: String,
    },
    /// A workload asks for nothing that the drive takes.
    #[error("workload {0}: {1}")]
    Unsendable(String, host::Unsendable),
    /// This machine lends not so many threads as the run is to have.
    #[error(transparent)]
    NoThread(#[from] NoThread),
    /// The media refused a command of the firmware.
    #[error("the flash refused a command: {0}")]
    Media(flash::MediaFault),
    /// Requests go on arriving after the end of virtual time.
    #[error(
        "virtual time is over, after {} days, and phases are not; expected fewer requests, or more a second",
        LIFETIME.secs_f64() / 86_400.0
    )]
    TimeIsOver,
    /// Tables contradict each other.
    #[error("{0}")]
    Invariant(String),
}

impl SessionError {
    /// Whether what was asked for, or this machine, is to blame, and not the firmware, the model or the flash.
    pub fn is_input(&self) -> bool {
        use SessionError::{Build, NoThread, TimeIsOver, Unsendable};
        matches!(self, Build(_) | Unsendable(..) | NoThread(_) | TimeIsOver)
    }
}

fn list(unanswered: &[Unanswered]) -> String {
    unanswered.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
