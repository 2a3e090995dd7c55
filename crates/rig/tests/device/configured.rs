//! Runs as flags and keys of the command line describe them.

use report::Summary;
use rig::SessionError;
use rig::config::Layers;

/// What the first phase of such a run comes to.
pub(crate) fn run(flags: &[(&str, &str)], sets: &[&str]) -> Result<Summary, SessionError> {
    let layers = flags.iter().try_fold(Layers::new(), |layers, (flag, value)| layers.flag(flag, value));
    let layers = sets.iter().try_fold(layers.expect("flags of the command line"), |layers, set| layers.set(set));
    let resolved = layers.and_then(Layers::resolve).expect("a configuration");
    let mut session = resolved.session(&resolved.plan(), resolved.phases(), 0).expect("it can be built");
    session.next_phase().expect("one phase")
}
