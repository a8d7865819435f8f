//! What an operator is told: one line for each thing to act on.

use std::io::Write;

use ucl_agent::Status;
use ucl_link::Name;
use ucl_sketch::Bytes;

/// Tells what changed.
pub struct Log {
    stream: Name,
    /// Whether every acknowledgement is told.
    verbose: bool,
    last: Option<Status>,
    trouble: Option<String>,
    tell: Tell,
}

/// Writes a line. A log that cannot be written must not end the counting: `eprintln!` would panic.
fn on_standard_error(line: &str) {
    let _ = std::io::stderr().write_all(format!("ucl agent: {line}\n").as_bytes());
}

/// Takes one line.
pub type Tell = Box<dyn FnMut(&str) + Send>;

impl Log {
    /// A log on standard error.
    pub fn new(stream: Name, verbose: bool) -> Self {
        Self::to(stream, verbose, Box::new(on_standard_error))
    }

    pub fn to(stream: Name, verbose: bool, tell: Tell) -> Self {
        Self { stream, verbose, last: None, trouble: None, tell }
    }

    pub fn note(&mut self, text: &str) {
        (self.tell)(&format!("{}: {}", self.stream, printable(text)));
    }

    pub fn warn(&mut self, text: &str) {
        self.note(&format!("warning: {text}"));
    }

    /// Tells what is new in the agent's state.
    pub fn status(&mut self, status: &Status) {
        let before = self.last.replace(status.clone());
        let trouble = status.trouble.as_ref().or(status.refused.as_ref());
        if trouble != self.trouble.as_ref() {
            match trouble {
                Some(why) => self.warn(&format!("{why}; counting continues, and sending is tried again")),
                None => self.note("the collector takes epochs again"),
            }
            self.trouble = trouble.cloned();
        }
        let Some(before) = before else { return };
        if status.holding && !before.holding {
            if status.waiting > 0 {
                let spool = Bytes(status.spool_bytes as usize);
                self.warn(&format!("the spool is full ({spool}): epochs become longer until the collector takes them"));
            } else {
                self.warn("--uplink has no room for a cut: the epoch becomes longer, and the sketch absorbs new keys");
            }
        }
        if status.gaps > before.gaps {
            self.warn(&format!(
                "goes on as incarnation {}: some counts were given up, and are reported",
                status.incarnation
            ));
        }
        if self.verbose && status.waiting < before.waiting {
            let (sent, items) = (counted(status.epochs, "epoch"), counted(status.items, "item"));
            self.note(&format!("{sent} sent, {} waiting, {items}", status.waiting));
        }
    }
}

/// `1 item`, `2 items`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What comes from elsewhere must not command the terminal.
fn printable(text: &str) -> String {
    let shown = |char: char| if ucl_streams::acts_on_terminal(char) { char::REPLACEMENT_CHARACTER } else { char };
    text.chars().map(shown).collect()
}
