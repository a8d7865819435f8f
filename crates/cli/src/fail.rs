//! From errors to messages and exit codes: 0 fine, 1 failed, 2 wrong usage.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// A command line that parses, but asks for something impossible.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// Blames the command line for an error.
    pub fn because(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Writes a line to standard error. `eprintln!` would panic where that cannot be written to
/// (`2>&1 | head`, a full disk), and the answer and the state would be lost with it.
pub fn tell(line: impl Display) {
    let _ = io::stderr().write_all(format!("ucl: {line}\n").as_bytes());
}

/// Reports the result of a command.
pub fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if is_closed_pipe(&error) {
        // Whoever read our output has seen enough (`ucl … | head`).
        return ExitCode::SUCCESS;
    }
    tell(harmless(&error.to_string()));
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}

/// Reports what `clap` found: help and version as they are, mistakes in the style of all other
/// errors.
pub fn wrong_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // As above: a reader that has gone is no error.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    tell(text.strip_prefix("error: ").unwrap_or(&text).trim_end_matches('\n'));
    ExitCode::from(2)
}

/// Messages quote the input, which may have anything in it: what a terminal would obey is shown
/// instead.
pub fn harmless(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, char| {
        if ucl_streams::acts_on_terminal(char) && char != '\n' {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
        shown
    })
}

/// True if the reader of our output has gone.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let csv = cause.downcast_ref::<csv::Error>().and_then(|error| match error.kind() {
            csv::ErrorKind::Io(error) => Some(error.kind()),
            _ => None,
        });
        io.or(csv) == Some(io::ErrorKind::BrokenPipe)
    })
}
