//! `ucl-agent`: `ucl agent` alone, for devices.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use ucl_agentd::AgentdError;

#[derive(Parser)]
#[command(name = "ucl-agent", version, max_term_width = 100)]
struct Command {
    #[command(flatten)]
    args: ucl_agentd::Args,
}

fn main() -> ExitCode {
    match ucl_agentd::run_and_tell(&Command::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "ucl-agent: {error}");
            ExitCode::from(if matches!(error, AgentdError::Usage(_) | AgentdError::Address(_)) { 2 } else { 1 })
        }
    }
}
