//! Power cuts: whatever a drive promised is there when it is switched on again, for every architecture.

use firmware::architecture::ARCHITECTURES;
use rig::check::Case;

/// Cases of each architecture that every run of the tests tries.
const CASES: u64 = 28;

#[test]
fn what_was_promised_survives_power_cuts() {
    let (mut cuts, mut in_recovery) = (0, 0);
    let mut failures = Vec::new();
    for &architecture in ARCHITECTURES {
        for seed in 0..CASES {
            let case = Case::of(seed * ARCHITECTURES.len() as u64, architecture);
            match case.run() {
                Ok(report) => {
                    cuts += report.cuts;
                    in_recovery += report.cuts_in_recovery;
                }
                Err(failure) => failures.push(failure.to_string()),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(cuts >= 300, "{cuts} cuts");
    assert!(in_recovery >= 20, "{in_recovery} cuts in recovery");
}
