//! Adds up what the test binaries of one `cargo test` report.

use std::fmt;

/// How many tests passed and failed, and how many of those that passed found nothing to test with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// What a test says, past the harness that keeps what passing tests print, when what it needs is not on this machine.
const SKIPPED: &str = "skipped: ";

impl Totals {
    /// Takes in one line of output; lines that are neither a binary's closing line nor a skipped test's change nothing.
    pub(crate) fn read(&mut self, line: &str) {
        // With one thread the harness has named the test in the same line.
        let said = line.split_once(" ... ").map_or(line, |(_, said)| said);
        self.skipped += u64::from(said.starts_with(SKIPPED));
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
            "skipped: no kernel",
            "test a::c ... skipped: no traces",
            "nothing was skipped: all is there",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
            "5 passed; 5 failed;",
        ] {
            totals.read(line);
        }
        assert_eq!(totals, Totals { passed: 15, failed: 2, skipped: 2 });
        assert_eq!(totals.to_string(), "15 passed, 2 failed");
    }
}
