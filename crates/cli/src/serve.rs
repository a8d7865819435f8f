//! `ucl serve`: the collector as a service.

use std::path::PathBuf;

use ucl_server::{Config, ConfigError, Options, Server};

use crate::fail::Usage;

/// Run a collector: takes the counts of agents over HTTP, keeps them and answers.
///
/// At the first start, prints a token that allows everything; more come from `ucl token add`. Stops
/// at Ctrl-C or SIGTERM, once what was begun is answered and written.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// File with any of these options; --print-config shows one.
    #[arg(long, value_name = "FILE", env = "UCL_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,

    #[command(flatten)]
    options: Options,

    /// Print the default configuration file and exit.
    #[arg(long)]
    print_config: bool,

    /// Write logs as one JSON object per line.
    #[arg(long)]
    log_json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ucl serve
  ucl serve --data /var/lib/ucl --listen 127.0.0.1:8080
  ucl serve --listen 0.0.0.0:7070 --tls-self-signed       # for other machines
  ucl serve --nats nats://broker:4222 --data /shared/ucl  # one of many (built with --features nats)";

pub fn run(args: Args) -> anyhow::Result<()> {
    let Args { config, options, print_config, log_json } = args;
    if print_config {
        return crate::show::print(ucl_server::DEFAULT_FILE);
    }
    let file = config.map_or(Ok(Options::default()), |path| Options::from_file(&path))?;
    let config = Config::new(options.or(file)).map_err(|error| match error {
        ConfigError::Invalid(_) => Usage::because(error).into(),
        ConfigError::File(_) => anyhow::Error::from(error),
    })?;
    log(log_json);
    let data = config.data.display().to_string();
    let on_nats = config.nats.is_some();
    let server = Server::start(config)?;
    let stopper = server.stopper();
    ctrlc::set_handler(move || stopper.stop())?;
    let url = server.url();
    let mut text = format!("Listening on {url}, data in {data}\n");
    if let Some(token) = server.first_token() {
        let trust = server.own_certificate().map_or(String::new(), |path| format!(" --ca {}", path.display()));
        text += &format!(
            "Token for everything, shown this once: {token}

Send and ask with:
"
        );
        text += &format!(
            "  export UCL_TOKEN={token}
"
        );
        let to = if on_nats { "nats://HOST:PORT".to_owned() } else { format!("{url}{trust}") };
        text += &format!(
            "  ucl agent --to {to} --stream NAME --follow FILE
  ucl top {url}{trust}
"
        );
    }
    // Whoever reads this may have seen enough; the service goes on.
    let _ = crate::show::print(text);
    server.run();
    Ok(())
}

fn log(json: bool) {
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
    // It would be told on standard error, with a panic if that is what cannot be written.
    let builder = builder.log_internal_errors(false);
    if json {
        builder.json().init();
    } else {
        builder.with_ansi(false).init();
    }
}
