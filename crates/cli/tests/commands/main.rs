//! The command as a user meets it: the built binary, its two streams and its exit codes.

mod bad_input;
mod real_traces;
mod replays;
mod results;
mod serves;
mod shell;
mod sweeps;
