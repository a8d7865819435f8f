//! The command line of UCL-sketch. Thin: all work is in the crates below; one file a command.

use std::process::ExitCode;

use clap::Parser;

mod eval;
mod methods;

/// How often did each key occur? Near-exact counts per key, in kilobytes.
#[derive(Parser)]
#[command(name = "ucl", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Eval(eval::Args),
    Methods(methods::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Eval(args) => eval::run(&args),
        Command::Methods(args) => methods::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ucl: {error:#}");
            ExitCode::FAILURE
        }
    }
}
