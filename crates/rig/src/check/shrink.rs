//! Makes a case that fails smaller, as long as it still fails: fewer requests and cuts, one queue, plain settings.

use super::case::{Case, Failure};

/// Runs that shrinking takes at most.
const RUNS_MAX: u32 = 60;

/// The smallest case found that fails, and how it does.
pub fn shrink(failure: Failure) -> Failure {
    let mut smallest = failure;
    let mut runs = 0;
    loop {
        let Some(smaller) = candidates(&smallest.case).into_iter().find_map(|case| {
            runs += 1;
            if runs > RUNS_MAX { None } else { case.run().err() }
        }) else {
            return smallest;
        };
        smallest = smaller;
    }
}

/// Simpler cases, the simplest first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut simpler = Vec::new();
    if case.interleaved {
        simpler.push(Case { interleaved: false, ..*case });
    }
    if case.cuts > 1 {
        simpler.push(Case { cuts: 1, ..*case });
        simpler.push(Case { cuts: case.cuts - 1, ..*case });
    }
    if !case.plain {
        simpler.push(Case { plain: true, ..*case });
    }
    if !case.one_queue {
        simpler.push(Case { one_queue: true, ..*case });
    }
    for fewer in [case.ios / 4, case.ios / 2, case.ios - case.ios / 8] {
        if fewer > 0 && fewer < case.ios {
            simpler.push(Case { ios: fewer, ..*case });
        }
    }
    simpler
}
