//! What continuous integration runs, the same on a laptop.
fn main() {}
