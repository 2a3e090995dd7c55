//! The `flashloom` command.

use signal_hook::consts::SIGXFSZ;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    cli::begin_with_huge_pages(std::env::args_os());
    // A write beyond the longest file that this process may have is then an error, as on a full disk, and not its end.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    let mut shell = cli::Shell::of_terminal(&mut out, &mut err);
    ExitCode::from(cli::run(std::env::args_os(), &mut shell))
}
