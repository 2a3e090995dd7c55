//! Huge pages for the tables of a drive. A simulated terabyte has a map of a gigabyte that is touched at random: with pages of 4 KiB
//! nearly every touch has to look its page's address up in this machine's memory first.
//!
//! The C library's allocator asks the kernel for huge pages where its tunable says so, which it reads once, before the program begins.
//! So the program begins anew with it set. Whoever has set tunables himself has decided, and nothing is changed.

use std::ffi::OsString;

/// The environment variable of the allocator's tunables (glibc 2.35 and later; earlier ones ignore what they do not know).
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Transparent huge pages for memory of the allocator, where the kernel gives them to who asks.
const HUGE: &str = "glibc.malloc.hugetlb=1";

/// The same, and what has a mebibyte or more is a piece of memory by itself, which goes back when it is freed. Else the allocator would
/// keep the tables of a drive that is gone among what stays of it, those of the next would not fit there, and every drive would take more.
const APART: &str = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576";

/// The verbs that have large drives, or one after the other.
const VERBS: [(&str, &str); 6] =
    [("run", HUGE), ("replay", HUGE), ("bench", HUGE), ("serve", HUGE), ("experiment", APART), ("sweep", APART)];

/// Begins this command line, the program's name first, anew with huge pages, if its verb has a use for them and nobody has set
/// tunables. Returns where nothing is to be changed or nothing could be.
pub fn begin_with_huge_pages(arguments: impl IntoIterator<Item = OsString>) {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(tunables) = wanted(&arguments, std::env::var_os(TUNABLES).is_some()) {
        begin_anew(&arguments, tunables);
    }
}

fn wanted(arguments: &[OsString], has_tunables: bool) -> Option<&'static str> {
    let is_possible = cfg!(all(target_os = "linux", target_env = "gnu")) && !has_tunables;
    let verb = arguments.get(1).filter(|_| is_possible)?;
    VERBS.iter().find(|(known, _)| verb == known).map(|(_, tunables)| *tunables)
}

fn begin_anew(arguments: &[OsString], tunables: &str) {
    use std::os::unix::process::CommandExt;
    let (Ok(program), Some((name, rest))) = (std::env::current_exe(), arguments.split_first()) else { return };
    // It returns only where it failed; then the program goes on as it is.
    let _ = std::process::Command::new(program).arg0(name).args(rest).env(TUNABLES, tunables).exec();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_verbs_with_drives_begin_anew_and_only_once() {
        let line = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let here = |tunables| cfg!(all(target_os = "linux", target_env = "gnu")).then_some(tunables);
        assert_eq!(wanted(&line(&["flashloom", "run", "--ios", "9"]), false), here(HUGE));
        assert_eq!(wanted(&line(&["flashloom", "sweep", "s.toml"]), false), here(APART));
        assert_eq!(wanted(&line(&["flashloom", "run"]), true), None);
        assert_eq!(wanted(&line(&["flashloom", "list", "run"]), false), None);
        assert_eq!(wanted(&line(&["flashloom"]), false), None);
    }
}
