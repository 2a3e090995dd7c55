//! Huge pages for the tables of a drive. A simulated terabyte has a map of a gigabyte that is touched at random: with pages of 4 KiB
//! nearly every touch has to look its page's address up in this machine's memory first.
//!
//! The C library's allocator asks the kernel for huge pages where its tunable says so, which it reads once, before the program begins.
//! So the program begins anew with it set. Whoever has set tunables himself has decided, and nothing is changed.

use std::ffi::OsString;

/// The environment variable of the allocator's tunables (glibc 2.35 and later; earlier ones ignore what they do not know).
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Transparent huge pages for memory of the allocator, where the kernel gives them to who asks; and what has a mebibyte or more is a piece
/// of memory by itself, which goes back when it is freed. Else the allocator would keep the tables of a drive that is gone among what
/// stays of it, and those of the next may not fit there: each of the runs of a sweep would take more.
const SET: &str = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576";

/// The verbs that have large drives.
const VERBS: [&str; 6] = ["run", "replay", "experiment", "sweep", "bench", "serve"];

/// Begins this command line, the program's name first, anew with huge pages, if its verb has a use for them and nobody has set
/// tunables. Returns where nothing is to be changed or nothing could be.
pub fn begin_with_huge_pages(arguments: impl IntoIterator<Item = OsString>) {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if wants_huge_pages(&arguments, std::env::var_os(TUNABLES).is_some()) {
        begin_anew(&arguments);
    }
}

fn wants_huge_pages(arguments: &[OsString], has_tunables: bool) -> bool {
    let has_use = arguments.get(1).is_some_and(|verb| VERBS.iter().any(|known| verb == known));
    cfg!(all(target_os = "linux", target_env = "gnu")) && has_use && !has_tunables
}

#[cfg(unix)]
fn begin_anew(arguments: &[OsString]) {
    use std::os::unix::process::CommandExt;
    let (Ok(program), Some((name, rest))) = (std::env::current_exe(), arguments.split_first()) else { return };
    // It returns only where it failed; then the program goes on as it is.
    let _ = std::process::Command::new(program).arg0(name).args(rest).env(TUNABLES, SET).exec();
}

#[cfg(not(unix))]
fn begin_anew(_arguments: &[OsString]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_verbs_with_drives_begin_anew_and_only_once() {
        let line = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let here = cfg!(all(target_os = "linux", target_env = "gnu"));
        assert_eq!(wants_huge_pages(&line(&["flashloom", "run", "--ios", "9"]), false), here);
        assert!(!wants_huge_pages(&line(&["flashloom", "run"]), true));
        assert!(!wants_huge_pages(&line(&["flashloom", "list", "run"]), false));
        assert_eq!(wants_huge_pages(&line(&["flashloom", "serve"]), false), here);
        assert!(!wants_huge_pages(&line(&["flashloom"]), false));
    }
}
