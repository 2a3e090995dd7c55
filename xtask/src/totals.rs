//! Adds up what the test binaries of one `cargo test` report.

use std::fmt;

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Totals {
    /// Takes in one line of output; lines that are not a binary's closing line change nothing.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        // "ok. 12 passed; 0 failed; 0 ignored; ..."
        let count = |label: &str| {
            let before = counts.split_once(label)?.0;
            before.split_whitespace().next_back()?.parse::<u64>().ok()
        };
        self.passed += count(" passed;").unwrap_or(0);
        self.failed += count(" failed;").unwrap_or(0);
    }

    pub(crate) fn any(&self) -> bool {
        self.passed + self.failed > 0
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up_and_other_lines_do_not_count() {
        let mut totals = Totals::default();
        for line in [
            "running 12 tests",
            "test a::b ... ok",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
            "5 passed; 5 failed;",
        ] {
            totals.read(line);
        }
        assert_eq!(totals, Totals { passed: 15, failed: 2 });
        assert_eq!(totals.to_string(), "15 passed, 2 failed");
    }
}
