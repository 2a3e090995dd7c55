//! How flash fails, and what corrects it.

use super::draw::{Lot, share};
use super::errors::ErrorModel;
use crate::{Bch, BchError, Geometry};
use thiserror::Error;
use units::{BlockId, Bytes, Span};

/// Reads repeated with shifted thresholds, because a page could not be corrected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadRetry {
    /// How often.
    pub levels: u32,
    /// What each level multiplies the error rate by: above 0, at most 1.
    pub factor: f64,
}

/// How flash fails. Chances are of one operation, and the same for all blocks and ages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultSettings {
    /// Bit errors.
    pub errors: ErrorModel,
    /// Cycles that every block had before the run.
    pub cycles: u32,
    /// Days for which what was preconditioned has lain there.
    pub days: f64,
    /// Days that count as passed for each second of the run: a run is too short for anything to decay in it.
    pub days_per_second: f64,
    /// Spread of the blocks: standard deviation of the logarithm of their error rates.
    pub block_sigma: f64,
    /// Data of a code word; whole words make a page.
    pub code_data: Bytes,
    /// Bit errors in a code word that are corrected.
    pub correctable: u32,
    /// Decoding a page without an error.
    pub decode: Span,
    /// Added for each bit corrected in the page's worst code word.
    pub decode_bit: Span,
    /// Read retry.
    pub retry: ReadRetry,
    /// Share of the correctable errors from which a page that got worse counts as weak, so that its block is rewritten, as for one that
    /// cannot be read; 0 is never.
    pub weak: f64,
    /// Chance that a program fails.
    pub program_failures: f64,
    /// Chance that an erase fails.
    pub erase_failures: f64,
    /// Share of the blocks that are bad from the factory.
    pub factory_bad: f64,
}

/// A setting that cannot be.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{field} is {value}; expected {expected}")]
pub struct FaultSettingsError {
    /// The field.
    pub field: &'static str,
    /// What it was.
    pub value: String,
    /// What it may be.
    pub expected: String,
}

impl FaultSettings {
    /// Flash that gets nothing wrong, and a code that takes no time to correct eight bits of 1 KiB.
    pub fn sound() -> Self {
        FaultSettings {
            errors: ErrorModel::default(),
            cycles: 0,
            days: 0.0,
            days_per_second: 0.0,
            block_sigma: 0.0,
            code_data: Bytes(1024),
            correctable: 8,
            decode: Span::ZERO,
            decode_bit: Span::ZERO,
            retry: ReadRetry { levels: 0, factor: 1.0 },
            weak: 0.0,
            program_failures: 0.0,
            erase_failures: 0.0,
            factory_bad: 0.0,
        }
    }

    /// Checks what holds of any flash: ranges.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn check_ranges(&self) -> Result<(), FaultSettingsError> {
        let errors = &self.errors;
        let positive = [
            ("rber_base", errors.base),
            ("rber_wear", errors.wear),
            ("rber_wear_exponent", errors.wear_exponent),
            ("rber_retention", errors.retention),
            ("rber_retention_wear_exponent", errors.retention_wear_exponent),
            ("rber_retention_exponent", errors.retention_exponent),
            ("rber_disturb", errors.disturb),
            ("rber_disturb_wear_exponent", errors.disturb_wear_exponent),
            ("rber_disturb_exponent", errors.disturb_exponent),
            ("days", self.days),
            ("days_per_second", self.days_per_second),
            ("block_sigma", self.block_sigma),
        ];
        if let Some((field, value)) = positive.into_iter().find(|(_, value)| !value.is_finite() || *value < 0.0) {
            return refuse(field, value.to_string(), "a number from 0 on");
        }
        let most = [("rber_base", errors.base, 0.5), ("days", self.days, 1e5), ("block_sigma", self.block_sigma, 10.0)];
        if let Some((field, value, most)) = most.into_iter().find(|(_, value, most)| value > most) {
            return refuse(field, value.to_string(), &format!("a number from 0 to {most}"));
        }
        let shares = [
            ("weak", self.weak),
            ("program_failures", self.program_failures),
            ("erase_failures", self.erase_failures),
            ("factory_bad", self.factory_bad),
        ];
        if let Some((field, value)) = shares.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return refuse(field, value.to_string(), "0 to 1");
        }
        if !(self.retry.factor > 0.0 && self.retry.factor <= 1.0) {
            return refuse("retry_factor", self.retry.factor.to_string(), "above 0, at most 1");
        }
        if self.retry.levels > 64 {
            return refuse("retry_levels", self.retry.levels.to_string(), "0 to 64");
        }
        Ok(())
    }

    /// Checks ranges, and that the code fits the pages, `tags` bytes of whose out-of-band area are taken by tags and seals.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn validate(&self, geometry: &Geometry, tags: Bytes) -> Result<(), FaultSettingsError> {
        self.check_ranges()?;
        let page = geometry.shape().page.0;
        if self.code_data.0 == 0 || !page.is_multiple_of(self.code_data.0) {
            let expected = format!("a divisor of the page of {page} bytes");
            return refuse("code_data_bytes", self.code_data.0.to_string(), &expected);
        }
        let code = match Bch::new(self.code_data, self.correctable) {
            Ok(code) => code,
            Err(BchError::Empty { .. }) => return refuse("code_correctable", "0".into(), "at least 1"),
            Err(error) => {
                let expected = format!("fewer, or a smaller code_data_bytes: {error}");
                return refuse("code_correctable", self.correctable.to_string(), &expected);
            }
        };
        let parity = code.parity_bytes() as u64 * (page / self.code_data.0);
        let room = geometry.shape().oob.0.saturating_sub((OOB_ENTRY + tags).0);
        if parity > room {
            let expected = format!("parity of at most {room} bytes a page (the out-of-band area); this has {parity}");
            return refuse("code_correctable", self.correctable.to_string(), &expected);
        }
        Ok(())
    }

    /// Whether a block is bad from the factory.
    pub fn is_bad_from_factory(&self, seed: u64, block: BlockId) -> bool {
        self.factory_bad > 0.0 && share(seed, block.0, 0, Lot::Factory) < self.factory_bad
    }

    /// Whether operations fail, or blocks are bad, and not only bits.
    pub fn retires_blocks(&self) -> bool {
        self.program_failures > 0.0 || self.erase_failures > 0.0 || self.factory_bad > 0.0
    }
}

fn refuse(field: &'static str, value: String, expected: &str) -> Result<(), FaultSettingsError> {
    Err(FaultSettingsError { field, value, expected: expected.into() })
}

/// What the entry for recovery takes of the out-of-band area: the page 4 bytes, number and owner 6 each, the check value 4.
pub const OOB_ENTRY: Bytes = Bytes(20);
