//! The `flashloom` command.
fn main() {}
