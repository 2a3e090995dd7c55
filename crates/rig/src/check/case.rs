//! A case: everything that a checked run follows from, and the command that repeats it.

use super::draw::Draw;
use super::trial::{Report, trial};
use firmware::Mutation;
use firmware::architecture::{ARCHITECTURES, Architecture};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Power cuts of a case that has many.
const CUTS_MANY: u32 = 12;

/// Which cases have many is drawn apart from all else.
const OFTEN: u64 = 0x5eed_000f_0000_0000;

/// What a run is drawn from. Two equal cases are the same run.
#[derive(Clone, Copy)]
pub struct Case {
    /// Of every draw.
    pub seed: u64,
    /// The firmware.
    pub architecture: &'static dyn Architecture,
    /// Requests of the host between two cuts.
    pub ios: u64,
    /// Power cuts.
    pub cuts: u32,
    /// Whether the host has one queue and one command outstanding.
    pub one_queue: bool,
    /// Whether the firmware's settings are the usual ones, and not drawn.
    pub plain: bool,
    /// Whether turns come amid turns, as on threads, and not in the order of virtual time.
    pub interleaved: bool,
    /// A bug that is planted.
    pub mutation: Option<Mutation>,
}

/// A case that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case.
    pub case: Case,
    /// What went wrong.
    pub error: String,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\nto repeat it: {}", self.case.architecture.name(), self.error, self.case.command())
    }
}

impl Case {
    /// The case of a seed: seeds that follow each other go through the architectures.
    pub fn of_seed(seed: u64) -> Self {
        let architecture = ARCHITECTURES[(seed % ARCHITECTURES.len() as u64) as usize];
        Case::of(seed, architecture)
    }

    /// The case of a seed on an architecture.
    pub fn of(seed: u64, architecture: &'static dyn Architecture) -> Self {
        let mix = seed / ARCHITECTURES.len() as u64;
        let ios = [100, 300, 1_000, 2_000][(mix % 4) as usize];
        let cuts = 1 + (mix / 4 % 3) as u32;
        let case =
            Case { seed, architecture, ios, cuts, one_queue: false, plain: false, interleaved: false, mutation: None };
        // What cuts leave behind meets further ones: after many of them a drive is in states that few do not bring about.
        let is_cut_often = case.hammers() && Draw::new(seed ^ OFTEN).within(0..=7) == 0;
        Case { cuts: if is_cut_often { CUTS_MANY } else { cuts }, ..case }
    }

    /// Whether it writes pages over and over on a drive that is full.
    pub(super) fn hammers(&self) -> bool {
        self.seed / ARCHITECTURES.len() as u64 % 4 == 3
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        let usual = Case::of(self.seed, self.architecture);
        let mut command = format!("flashloom check --seed {} --architecture {}", self.seed, self.architecture.name());
        if self.ios != usual.ios {
            command += &format!(" --ios {}", self.ios);
        }
        if self.cuts != usual.cuts {
            command += &format!(" --cuts {}", self.cuts);
        }
        for (flag, set) in [("--one-queue", self.one_queue), ("--plain", self.plain)] {
            if set {
                command += " ";
                command += flag;
            }
        }
        if let Some(mutation) = self.mutation {
            command += &format!(" --mutation {}", mutation.name());
        }
        if self.interleaved {
            command += " --interleaved";
        }
        command
    }

    /// Runs it. An assertion that does not hold is a failure like any other.
    ///
    /// # Errors
    /// What went wrong.
    pub fn run(&self) -> Result<Report, Failure> {
        let outcome = catch_unwind(AssertUnwindSafe(|| trial(self)));
        let error = match outcome {
            Ok(Ok(report)) => return Ok(report),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                format!("an assertion failed: {}", text.unwrap_or("without a message"))
            }
        };
        Err(Failure { case: *self, error })
    }
}
