//! `ucl methods`: what can be measured.

/// List the methods that `ucl eval` knows.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: &Args) -> anyhow::Result<()> {
    Ok(())
}
