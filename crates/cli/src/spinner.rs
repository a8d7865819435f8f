//! A line on standard error that says what a long command does, if that is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::ProgressBar;

/// A line that says what is going on, on standard error, if that is a terminal.
pub struct Spinner(ProgressBar);

impl Spinner {
    pub fn new() -> Self {
        let bar = if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    pub fn say(&self, what: impl Into<std::borrow::Cow<'static, str>>) {
        self.0.set_message(what);
    }

    /// Runs `f` with the line out of the way.
    pub fn aside<T>(&self, f: impl FnOnce() -> T) -> T {
        self.0.suspend(f)
    }

    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
