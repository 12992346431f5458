//! The `muxgate` command.
fn main() {}
