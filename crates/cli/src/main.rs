//! The `flashloom` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::begin_with_huge_pages(std::env::args_os());
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    let mut shell = cli::Shell::of_terminal(&mut out, &mut err);
    ExitCode::from(cli::run(std::env::args_os(), &mut shell))
}
