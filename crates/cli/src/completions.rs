//! `ucl completions`: tab completion.

use clap::CommandFactory;
use clap_complete::Shell;

/// Print a completion script for a shell.
///
/// For bash, say: ucl completions bash > ~/.local/share/bash-completion/completions/ucl
#[derive(clap::Args)]
pub struct Args {
    /// Which shell.
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "ucl", &mut script);
    crate::show::print(script)
}
