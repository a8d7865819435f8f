//! `ucl completions`: prints scripts for tab completion.

use clap::CommandFactory;
use clap_complete::Shell;

/// Print a completion script for a shell.
///
/// For bash: ucl completions bash > ~/.local/share/bash-completion/completions/ucl
#[derive(clap::Args)]
pub struct Args {
    /// Shell to print the script for.
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "ucl", &mut script);
    crate::show::print(script)
}
