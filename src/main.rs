//! The `muxgate` command: arguments in, an exit code out.

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    muxgate::cli::run(muxgate::cli::Cli::parse())
}
