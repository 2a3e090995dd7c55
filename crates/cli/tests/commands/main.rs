//! The command as a user meets it: the built binary, its two streams and its exit codes.

mod bad_input;
mod checks;
mod compares;
mod full_disk;
mod idle;
#[path = "../../../rig/tests/served/initiator.rs"]
#[expect(dead_code, reason = "the tests of what is served use more of it")]
mod initiator;
mod killed;
mod killed_namespaces;
mod lost_media;
mod misplaced;
#[path = "../../../rig/tests/served/monitor.rs"]
#[expect(dead_code, reason = "the tests of what is served use more of it")]
mod monitor;
mod months;
mod no_threads;
mod out_of_files;
mod promises;
mod real_traces;
mod refused;
mod replays;
mod results;
mod samples;
mod serves;
mod shell;
mod sweeps;
mod unread;

/// How long a host and a monitor wait for what must come, as in the tests of what is served.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
