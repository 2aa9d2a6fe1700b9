//! Reads lines from a terminal, with cursor keys and a history.

use std::{io, mem};

use rustyline::{Behavior, Config, Editor, error::ReadlineError, history::MemHistory};

pub(super) struct LineEditor(Editor<(), MemHistory>);

impl LineEditor {
    pub(super) fn new() -> io::Result<Self> {
        editor(MemHistory::new()).map(Self)
    }

    /// Waits for a line. Returns `None` after Ctrl-C, and after Ctrl-D on an empty line. `styled` is the prompt with styles,
    /// which take no space. The line begins as `text`.
    ///
    /// The calling thread should be the main one: it gets the signals of Ctrl-C and of a window's new size.
    pub(super) fn read(
        &mut self,
        prompt: &str,
        styled: &str,
        text: &str,
    ) -> io::Result<Option<String>> {
        match self.0.readline_with_initial(&(prompt, styled), (text, "")) {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Eof | ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                Ok(None)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Lets the arrow keys bring a line back.
    pub(super) fn remember(&mut self, line: &str) -> io::Result<()> {
        self.0.add_history_entry(line).map(drop).map_err(io::Error::other)
    }

    /// Drops the lines that were typed and not asked for. Returns whether the terminal had any.
    pub(super) fn drop_typed_lines(&mut self) -> io::Result<bool> {
        // The editor has lines that came together with one that it returned.
        self.0 = editor(mem::take(self.0.history_mut()))?;
        drop_waiting_lines()
    }
}

fn editor(history: MemHistory) -> io::Result<Editor<(), MemHistory>> {
    // The prompt is for the terminal, also if standard output is a pipe.
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    Editor::with_history(config, history).map_err(io::Error::other)
}

#[cfg(unix)]
fn drop_waiting_lines() -> io::Result<bool> {
    let terminal = io::stdin();
    let is_typed = rustix::io::ioctl_fionread(&terminal)? > 0;
    rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush)?;
    Ok(is_typed)
}

#[cfg(not(unix))]
fn drop_waiting_lines() -> io::Result<bool> {
    Ok(false)
}
