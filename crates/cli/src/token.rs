//! `ucl token`: who may use a collector.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use ucl_server::{NewToken, Scope, Tokens};

use crate::show::{print, table};

/// Add, list or revoke the tokens of a collector.
///
/// Changes the collector's data folder. The collector may be running; changes take effect at once.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,

    /// The collector's data folder.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "UCL_DATA",
        hide_env_values = true,
        default_value = "ucl-data"
    )]
    data: PathBuf,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add a token and print it. It is not shown again: only its hash is stored.
    Add {
        /// What it allows: write (send counts), read (ask), admin (delete).
        #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = "write")]
        scope: Vec<Scope>,

        /// Tenant whose streams it is for.
        #[arg(long, value_name = "NAME", default_value = ucl_server::DEFAULT_TENANT)]
        tenant: String,

        /// Only streams whose names start so.
        #[arg(long, value_name = "PREFIX", default_value = "")]
        streams: String,

        /// Name to list and revoke it by.
        #[arg(long)]
        name: Option<String>,
    },
    /// List all tokens by name; the tokens themselves are not stored.
    List,
    /// Revoke a token.
    Revoke {
        /// Its name.
        name: String,
    },
}

pub fn run(args: Args) -> anyhow::Result<()> {
    // Opening makes the folder, so that a token can be added before the first start.
    if !matches!(args.command, Command::Add { .. }) && !args.data.is_dir() {
        anyhow::bail!("there is no folder {}", args.data.display());
    }
    let tokens = Tokens::open(&args.data)?;
    match args.command {
        Command::Add { scope, tenant, streams, name } => {
            let tenant = tenant.parse().map_err(crate::fail::Usage::because)?;
            let new = NewToken { name, tenant, scopes: BTreeSet::from_iter(scope), stream_prefix: streams };
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
            print(tokens.add(new, now)? + "\n")
        }
        Command::List => {
            let rows = tokens.list()?.into_iter().map(|grant| {
                let scopes: Vec<&str> = grant.scopes.iter().map(|scope| scope.name()).collect();
                let streams = format!("{}*", grant.stream_prefix);
                vec![grant.name.clone(), grant.tenant.to_string(), streams, scopes.join(", ")]
            });
            print(table(&["name", "tenant", "streams", "scopes"], &[false; 4], rows))
        }
        Command::Revoke { name } => Ok(tokens.revoke(&name)?),
    }
}
