//! The commands that a person types in place of a message.

/// A line that was typed at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input<'a> {
    Message(&'a str),
    /// The text in place of the last message, if it is on the same line.
    Edit(Option<&'a str>),
    Retry,
    /// The path of a file for the next message.
    Attach(Option<&'a str>),
    Threads,
    New,
    Help,
    Quit,
    Unknown(&'a str),
    Nothing,
}

pub(super) const HELP: &str = "\
/edit TEXT    send TEXT in place of your last message
/retry        ask for another answer to your last message
/attach PATH  send a file with your next message
/threads      continue one of the server's threads
/new          begin a new thread
/help         show the commands
/quit         end, as Ctrl-D and Ctrl-C do
//TEXT        send a message that begins with /
Ctrl-C cancels the run that is being answered.";

/// Reads a line. Only lines that begin with a slash are commands; two slashes begin a message with one.
pub(super) fn read(line: &str) -> Input<'_> {
    let text = line.trim();
    if text.is_empty() {
        return Input::Nothing;
    }
    let Some(command) = text.strip_prefix('/') else { return Input::Message(line) };
    if command.starts_with('/') {
        return Input::Message(command);
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
    match (name, rest) {
        ("edit", text) => Input::Edit(text),
        ("retry", None) => Input::Retry,
        ("attach", path) => Input::Attach(path),
        ("threads", None) => Input::Threads,
        ("new", None) => Input::New,
        ("help", None) => Input::Help,
        ("quit", None) => Input::Quit,
        _ => Input::Unknown(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        for (line, input) in [
            ("hello", Input::Message("hello")),
            ("  indented", Input::Message("  indented")),
            ("//etc/hosts", Input::Message("/etc/hosts")),
            (" ", Input::Nothing),
            ("/edit", Input::Edit(None)),
            (" /edit  new text ", Input::Edit(Some("new text"))),
            ("/retry", Input::Retry),
            ("/attach my photo.png ", Input::Attach(Some("my photo.png"))),
            ("/attach", Input::Attach(None)),
            ("/threads", Input::Threads),
            ("/new", Input::New),
            ("/help", Input::Help),
            ("/quit", Input::Quit),
            ("/retry now", Input::Unknown("/retry now")),
            ("/etc/hosts", Input::Unknown("/etc/hosts")),
        ] {
            assert_eq!(read(line), input, "{line:?}");
        }
    }
}
