//! What continuous integration runs, the same on a laptop: `cargo xtask ci`, or one of its steps.
#![allow(clippy::print_stdout, clippy::print_stderr)] // A command line talks to its user.

mod profiled;
mod step;
mod tidy;
mod totals;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use step::{STEPS, Step};
use totals::Totals;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let chosen = |name: &str| STEPS.iter().find(|step| step.name == name);
    match words[..] {
        [] | ["help" | "--help" | "-h"] => print!("{}", help()),
        ["ci"] => return run(STEPS),
        ["ci", "--help" | "-h"] => print!("{}", help()),
        ["tables"] => return told(tidy::fill(&root())),
        ["pictures"] => return told(step::pictures(&root())),
        ["profiled"] => return told(profiled::build(&root()).map(|program| println!("==> {}", program.display()))),
        [name] if chosen(name).is_some() => return run(chosen(name).as_slice()),
        [name, "--help" | "-h"] if chosen(name).is_some() => {
            chosen(name).into_iter().for_each(|step| print!("{}", step.help()));
        }
        _ => {
            eprint!("xtask: '{}' is not a command\n\n{}", words.join(" "), help());
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn help() -> String {
    let mut text = String::from("Usage: cargo xtask <command> [--help]\n\n  ci      all of these, in this order, ");
    text.push_str("stopping at the first that fails\n");
    STEPS.iter().for_each(|step| text.push_str(&format!("  {:<7} {}\n", step.name, step.summary)));
    text.push_str("\n  tables  writes the tables of docs/ that show results/ anew; `tidy` finds those that differ\n");
    text.push_str(
        "  pictures  draws the pictures of results/ anew from the rows beside them; `test` finds those that differ\n",
    );
    text.push_str(
        "  profiled  builds a program that is arranged by what its own benchmarks count: minutes, and faster\n",
    );
    text
}

fn told(outcome: Result<(), String>) -> ExitCode {
    if let Err(reason) = outcome {
        eprintln!("xtask: {reason}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs steps in order until one fails. The last line counts the tests, where tests ran: a machine may read it.
fn run<S: std::borrow::Borrow<Step>>(steps: &[S]) -> ExitCode {
    let (root, start) = (root(), Instant::now());
    let mut totals = Totals::default();
    for step in steps {
        let (step, began): (&Step, _) = (step.borrow(), Instant::now());
        println!("==> {}: {}", step.name, step.summary);
        let outcome = (step.run)(&root, &mut totals);
        let seconds = began.elapsed().as_secs_f64();
        if let Err(reason) = outcome {
            println!("==> {} FAILED after {seconds:.1} s: {reason}", step.name);
            println!("    again, alone: cargo xtask {}", step.name);
            totals.any().then(|| println!("{totals}"));
            return ExitCode::FAILURE;
        }
        println!("==> {} ok, {seconds:.1} s", step.name);
    }
    if totals.skipped > 0 {
        println!("==> {} tests did nothing: `skipped:` above says what they need", totals.skipped);
    }
    println!("==> all ok, {:.1} s", start.elapsed().as_secs_f64());
    totals.any().then(|| println!("{totals}"));
    ExitCode::SUCCESS
}

/// The repository: the parent of this package, wherever the checkout lies now.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("xtask is started by `cargo xtask`");
    Path::new(&package).parent().expect("a package of the workspace has a parent").to_path_buf()
}
