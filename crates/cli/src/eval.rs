//! `ucl eval`: methods side by side on one stream, against exact counts.

/// Compare methods on one stream against exact counts.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: &Args) -> anyhow::Result<()> {
    Ok(())
}
