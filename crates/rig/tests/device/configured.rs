//! Runs as flags and keys of the command line describe them.

use report::Summary;
use rig::SessionError;
use rig::config::{Layers, Resolved};

/// Such a run, not begun.
pub(crate) fn resolved(flags: &[(&str, &str)], sets: &[&str]) -> Resolved {
    let layers = flags.iter().try_fold(Layers::new(), |layers, (flag, value)| layers.flag(flag, value));
    let layers = sets.iter().try_fold(layers.expect("flags of the command line"), |layers, set| layers.set(set));
    layers.and_then(Layers::resolve).expect("a configuration")
}

/// What the first phase of such a run comes to.
pub(crate) fn run(flags: &[(&str, &str)], sets: &[&str]) -> Result<Summary, SessionError> {
    let resolved = resolved(flags, sets);
    let mut session = resolved.session(&resolved.plan(), resolved.phases(), 0).expect("it can be built");
    session.next_phase().expect("one phase")
}
