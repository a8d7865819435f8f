//! `ucl agent`: counts streams here, and sends the counts to a collector.

use ucl_agentd::AgentdError;

use crate::fail::Usage;

pub use ucl_agentd::Args;

pub fn run(args: &Args) -> anyhow::Result<()> {
    ucl_agentd::run_and_tell(args).map_err(|error| match error {
        AgentdError::Usage(_) | AgentdError::Address(_) => Usage::because(error).into(),
        other => anyhow::Error::from(other),
    })
}
