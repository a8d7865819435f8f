//! A progress bar on standard error, if that is a terminal; otherwise nothing at all.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ucl_streams::{Progress, Source};

/// Progress bar of reading.
pub struct Bar {
    bar: ProgressBar,
    progress: Arc<Progress>,
    /// The bar counts bytes of files, or items where their number is known.
    by_items: bool,
}

impl Bar {
    /// A bar for these inputs.
    pub fn new(sources: &[Source], limit: Option<u64>, progress: Arc<Progress>) -> Self {
        let generated = sources.iter().try_fold(0u64, |sum, source| match source {
            Source::Generator(generator) => Some(sum.saturating_add(generator.items())),
            Source::Path(_) | Source::Stdin => None,
        });
        let items = match (generated, limit) {
            (Some(items), Some(limit)) => Some(items.min(limit)),
            (items, limit) => items.or(limit),
        };
        let bar = if std::io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        bar.set_style(style(if items.is_some() {
            "{wide_bar:.dim} {percent:>3}%  {human_pos} items  {per_sec}  {eta} left"
        } else {
            "{spinner} {msg}"
        }));
        // After the style: a new length is drawn at once.
        if let Some(items) = items {
            bar.set_length(items);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, progress, by_items: items.is_some() }
    }

    /// Shows where reading is. Cheap: the bar draws itself a few times a second at most.
    pub fn update(&self) {
        if self.bar.is_hidden() {
            return;
        }
        if self.by_items {
            self.bar.set_position(self.progress.items());
        } else if let Some(total) = self.progress.total_bytes() {
            if self.bar.length() != Some(total) {
                self.bar.set_length(total);
                self.bar.set_style(style("{wide_bar:.dim} {percent:>3}%  {msg}  {binary_bytes_per_sec}  {eta} left"));
            }
            self.bar.set_position(self.progress.bytes());
            self.bar.set_message(format!("{} items", crate::show::count(self.progress.items())));
        } else {
            let items = self.progress.items();
            let seconds = self.bar.elapsed().as_secs_f64();
            let rate = crate::show::rate(items as f64 / seconds.max(1e-3));
            self.bar.set_message(format!("{} items  {rate}/s", crate::show::count(items)));
        }
    }

    /// Says what happens after the input has ended.
    pub fn say(&self, what: &'static str) {
        self.bar.set_style(style("{spinner} {msg}"));
        self.bar.set_message(what);
    }

    /// Runs `f` with the bar out of the way.
    pub fn aside<T>(&self, f: impl FnOnce() -> T) -> T {
        self.bar.suspend(f)
    }

    /// Removes the bar from the screen.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a valid template")
}
