//! Standard input and output: answers go to standard output, everything else to standard error. So a pipe gets answers
//! only, and a terminal shows both.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    thread,
};

use futures::FutureExt as _;
#[cfg(unix)]
use tokio::signal::unix::{Signal as CtrlC, SignalKind, signal};
#[cfg(not(unix))]
use tokio::signal::windows::{CtrlC, ctrl_c};
use tokio::{sync::mpsc, task::block_in_place};

use super::line_editor::LineEditor;
use crate::server::cli::printable::printable;

/// Lines of a terminal without an editor that are read before they are asked for: those typed before a question are not
/// its answer.
const MAX_TYPED_LINES: usize = 1024;

/// The look of a line, with the number that terminals know it by.
#[derive(Clone, Copy)]
pub(super) enum Style {
    Plain = 0,
    Bold = 1,
    Dim = 2,
    Failure = 31,
}

pub(super) struct Console {
    /// In a terminal that moves its cursor.
    editor: Option<LineEditor>,
    /// Without an editor.
    lines: mpsc::Receiver<io::Result<String>>,
    /// The editor, which takes Ctrl-C while it reads, gives it back to this listener.
    interrupts: CtrlC,
    /// True if a person types the lines.
    pub(super) is_interactive: bool,
    has_colours: bool,
    /// True if answers and notes are on the same screen.
    shares_screen: bool,
    is_in_answer_line: bool,
    is_in_note_line: bool,
}

impl Console {
    /// Begins to read standard input, unless an editor does it, on a thread of its own that ends with the process: such a
    /// read cannot be cancelled.
    ///
    /// # Errors
    /// The system has no thread left, or reports no Ctrl-C.
    pub(super) fn open() -> io::Result<Self> {
        let is_interactive = io::stdin().is_terminal();
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_screen = io::stderr().is_terminal();
        let editor = (is_interactive && !is_dumb).then(LineEditor::new).transpose()?;
        let (sender, lines) = mpsc::channel(if is_interactive { MAX_TYPED_LINES } else { 1 });
        if editor.is_none() {
            thread::Builder::new().spawn(move || {
                for line in io::stdin().lock().lines() {
                    if sender.blocking_send(line).is_err() {
                        break;
                    }
                }
            })?;
        }
        Ok(Self {
            editor,
            lines,
            interrupts: ctrl_c()?,
            is_interactive,
            has_colours: is_interactive && is_screen && !is_dumb && !is_set("NO_COLOR"),
            shares_screen: is_screen && io::stdout().is_terminal(),
            is_in_answer_line: false,
            is_in_note_line: false,
        })
    }

    /// Returns the next line of a pipe; `None` at its end, and after Ctrl-C.
    pub(super) async fn next_line(&mut self) -> io::Result<Option<String>> {
        tokio::select! {
            line = self.lines.recv() => line.transpose().map_err(|error| named("standard input", error)),
            () = wait_for(&mut self.interrupts) => Ok(None),
        }
    }

    /// Waits for Ctrl-C, or returns at once if it was pressed after the last prompt and has not been waited for.
    pub(super) async fn interrupted(&mut self) {
        wait_for(&mut self.interrupts).await;
    }

    /// Asks for a line. Returns `None` at the end of the input, and after Ctrl-C.
    pub(super) async fn ask(&mut self, prompt: &str) -> io::Result<Option<String>> {
        self.ask_to_edit(prompt, "").await
    }

    /// Asks for a line, which begins as `text` if there is an editor.
    pub(super) async fn ask_to_edit(
        &mut self,
        prompt: &str,
        text: &str,
    ) -> io::Result<Option<String>> {
        self.end_lines();
        // Ctrl-C that came after the end of a run was meant for the run.
        while self.interrupts.recv().now_or_never().flatten().is_some() {}
        let styled = self.styled(Style::Bold, prompt);
        if let Some(editor) = &mut self.editor {
            let line = block_in_place(|| editor.read(&printable(prompt), &styled, text));
            return line.map_err(|error| named("the terminal", error));
        }
        self.write_note(Style::Bold, prompt);
        let line = self.next_line().await?;
        if line.is_none() {
            self.write_note(Style::Plain, "\n");
        }
        Ok(line)
    }

    /// Lets the arrow keys bring a message back.
    pub(super) fn remember(&mut self, message: &str) -> io::Result<()> {
        self.editor.as_mut().map_or(Ok(()), |editor| editor.remember(message))
    }

    /// Drops the lines that were typed before a question was shown: they cannot be its answer.
    pub(super) fn drop_typed_lines(&mut self) -> io::Result<()> {
        let mut is_typed = self.editor.as_mut().map_or(Ok(false), LineEditor::drop_typed_lines)?;
        while self.lines.try_recv().is_ok() {
            is_typed = true;
        }
        if is_typed {
            self.note(Style::Dim, "What was typed before the question is not used.");
        }
        Ok(())
    }

    /// Appends to the answer.
    ///
    /// # Errors
    /// Standard output cannot be written to, for example because the other end of a pipe was closed.
    pub(super) fn answer(&mut self, text: &str) -> io::Result<()> {
        let text = printable(text);
        if text.is_empty() {
            return Ok(());
        }
        self.end_note();
        write_out(&text)?;
        self.is_in_answer_line = !text.ends_with('\n');
        Ok(())
    }

    /// Ends the line of the answer, if one is open.
    pub(super) fn end_answer(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_in_answer_line) {
            write_out("\n")?;
        }
        Ok(())
    }

    /// Writes a line that is no part of the answer.
    pub(super) fn note(&mut self, style: Style, line: &str) {
        self.end_lines();
        self.write_note(style, line);
        self.write_note(Style::Plain, "\n");
    }

    /// Appends to a text that is no part of the answer. The next note or answer ends its line.
    pub(super) fn append_note(&mut self, text: &str) {
        if !self.is_in_note_line {
            self.end_lines();
        }
        self.write_note(Style::Dim, text);
        self.is_in_note_line = true;
    }

    /// Ends the line of an appended note.
    pub(super) fn end_note(&mut self) {
        if std::mem::take(&mut self.is_in_note_line) {
            self.write_note(Style::Plain, "\n");
        }
    }

    /// Moves to a new line of the screen. In a pipe, notes do not interrupt the answer.
    fn end_lines(&mut self) {
        let is_in_line = std::mem::take(&mut self.is_in_note_line)
            || (self.shares_screen && self.is_in_answer_line);
        if is_in_line {
            self.write_note(Style::Plain, "\n");
        }
        if self.shares_screen {
            self.is_in_answer_line = false;
        }
    }

    fn write_note(&self, style: Style, text: &str) {
        let text = self.styled(style, text);
        let mut out = io::stderr().lock();
        // Without standard error, answers can still be read.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn styled(&self, style: Style, text: &str) -> String {
        let text = printable(text);
        let is_plain = !self.has_colours || matches!(style, Style::Plain);
        if is_plain { text.into_owned() } else { format!("\x1b[{}m{text}\x1b[0m", style as u8) }
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| named("standard output", error))
}

fn named(stream: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{stream}: {error}"))
}

#[cfg(unix)]
fn ctrl_c() -> io::Result<CtrlC> {
    signal(SignalKind::interrupt())
}

async fn wait_for(interrupts: &mut CtrlC) {
    if interrupts.recv().await.is_none() {
        // The system reports no signals.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
impl Console {
    /// A terminal in which these lines have been typed already, and nothing follows.
    pub(super) fn with_typed_lines(typed: &[&str]) -> Self {
        let (sender, lines) = mpsc::channel(MAX_TYPED_LINES);
        for line in typed {
            sender.try_send(Ok((*line).to_owned())).unwrap();
        }
        Self {
            editor: None,
            lines,
            interrupts: ctrl_c().unwrap(),
            is_interactive: true,
            has_colours: false,
            shares_screen: false,
            is_in_answer_line: false,
            is_in_note_line: false,
        }
    }
}
