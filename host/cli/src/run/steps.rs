//! The steps of a run, as progress.

use std::ops::ControlFlow;
use std::sync::Arc;

use shef::Progress;
use shef_console::Output;
use shef_console::output::Spinner;

/// Prints the current step on a terminal.
pub struct Steps<'o> {
    output: &'o Output,
    spinner: Arc<Spinner>,
}

impl<'o> Steps<'o> {
    /// No step yet.
    pub fn new(output: &'o Output) -> Self {
        Self { output, spinner: Arc::new(output.spinner("reading the project")) }
    }

    /// Begins a step.
    pub fn begin(&self, text: impl AsRef<str>) {
        self.spinner.message(&text);
        self.output.detail(text.as_ref());
    }

    /// Receives the messages of a card that is being opened: the first build of a design takes
    /// minutes.
    pub fn progress(&self) -> Box<dyn FnMut(&str) + Send> {
        let (spinner, note) = (Arc::clone(&self.spinner), self.output.notes());
        let mut last = String::new();
        Box::new(move |text| {
            spinner.message(text);
            // A card that works says so again and again.
            if !spinner.is_shown() && last != text {
                note(text);
                text.clone_into(&mut last);
            }
        })
    }

    /// Begins a transfer, and receives its progress.
    pub fn transfer(&self, what: &str, region: &str) -> impl FnMut(Progress) -> ControlFlow<()> {
        let (spinner, what) = (Arc::clone(&self.spinner), format!("{what} {region}"));
        self.output.detail(&what);
        move |Progress { done, total }| {
            spinner.message(format!("{what}: {done} of {total} bytes"));
            ControlFlow::Continue(())
        }
    }
}
