//! How many files the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Has the system allow this process so many open files, or as many as it may; an error is how many those are, where they are fewer.
pub(crate) fn allow(needed: u64) -> Result<(), u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let most = maximum.map_or(needed, |most| most.min(needed));
    let is_set = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }).is_ok();
    if is_set && most == needed { Ok(()) } else { Err(if is_set { most } else { current.unwrap_or(0) }) }
}
