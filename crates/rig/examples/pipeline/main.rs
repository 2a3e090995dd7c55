//! Prints PipeSSD's worked example: `cargo run --release -p rig --example pipeline`.
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

mod story;

fn main() {
    print!("{}", story::story());
}
