//! The command line of UCL-sketch: options in, answers out; one file or folder a command. Counting,
//! decoding and measuring are in the crates below.

// They panic where nobody reads any more: `fail::tell` and `show::print` do not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

use std::process::ExitCode;

use clap::Parser;

mod agent;
mod completions;
mod count;
#[cfg(feature = "lab")]
mod demo;
#[cfg(feature = "lab")]
mod eval;
mod fail;
mod infer;
mod input;
mod inspect;
mod key;
mod merge;
#[cfg(feature = "lab")]
mod methods;
#[cfg(feature = "lab")]
mod plan;
mod present;
mod progress;
mod query;
mod reference;
mod remote;
mod replace;
#[cfg(feature = "lab")]
mod reproduce;
#[cfg(feature = "server")]
mod serve;
mod show;
#[cfg(feature = "lab")]
mod spinner;
mod stored;
#[cfg(feature = "server")]
mod token;
mod top;
mod version;

const EXIT_CODES: &str = "\
Exit codes:
  0  success; also after Ctrl-C, and when the program that reads the output has ended
  1  failure; records before a bad one are still counted, answered for and saved
  2  wrong command line";

/// How often did each key occur? Near-exact counts per key, in kilobytes.
#[derive(Parser)]
#[command(name = "ucl", version, long_version = version::long(), max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Count(Box<count::Args>),
    Query(query::Args),
    Top(top::Args),
    Inspect(inspect::Args),
    Merge(merge::Args),
    Streams(remote::Args),
    Agent(Box<agent::Args>),
    #[cfg(feature = "server")]
    Serve(serve::Args),
    #[cfg(feature = "server")]
    Token(token::Args),
    #[cfg(feature = "lab")]
    Eval(eval::Args),
    #[cfg(feature = "lab")]
    Plan(plan::Args),
    #[cfg(feature = "lab")]
    Methods(methods::Args),
    #[cfg(feature = "lab")]
    Demo(demo::Args),
    #[cfg(feature = "lab")]
    Reproduce(reproduce::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    GenerateDocs(reference::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return fail::wrong_usage(&error),
    };
    let result = match cli.command {
        Command::Count(args) => count::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Streams(args) => remote::run(&args),
        Command::Agent(args) => agent::run(&args),
        #[cfg(feature = "server")]
        Command::Serve(args) => serve::run(args),
        #[cfg(feature = "server")]
        Command::Token(args) => token::run(args),
        #[cfg(feature = "lab")]
        Command::Eval(args) => eval::run(&args),
        #[cfg(feature = "lab")]
        Command::Plan(args) => plan::run(&args),
        #[cfg(feature = "lab")]
        Command::Methods(args) => methods::run(&args),
        #[cfg(feature = "lab")]
        Command::Demo(args) => demo::run(&args),
        #[cfg(feature = "lab")]
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::GenerateDocs(args) => reference::run(&args),
    };
    fail::exit_code(result)
}
