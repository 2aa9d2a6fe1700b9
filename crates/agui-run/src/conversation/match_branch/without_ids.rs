//! Recognises the messages of a client that sends none with an id, by role and text.
//!
//! Such a client sends its whole list, or the end of it, as it has shown it to the person: texts
//! alone, and the texts of one run as one message. It also shows replies to interrupts as messages
//! of the user, which the stored branch does not have. Its texts are compared without white space,
//! because clients join and trim them.

use super::super::branch::Branch;
use agui_protocol::{Message, Role};
use agui_store::RunNumber;

/// Places of the branch that are tried as the begin of a trimmed list, the last ones first.
const MAX_STARTS: usize = 64;
/// Texts of a run that a client may have joined.
const MAX_PARTS: usize = 64;

/// Returns the position in the branch of each message without an id at the start of the client's
/// list. The messages agree with consecutive messages of the branch, from its start, or from a
/// later message if the client has trimmed the list. Skips messages of the branch that such clients
/// never send.
///
/// If only user messages agree, and the branch has more messages, the list shows nothing: more
/// likely, a client that sends only new messages repeats the text of an earlier one.
pub(super) fn shown_without_ids(
    stored: &Branch,
    client: &[Message],
    anonymous: &[usize],
) -> Vec<Option<usize>> {
    let without_ids = anonymous.iter().enumerate().take_while(|(n, at)| n == *at).count();
    let list = &client[..without_ids];
    let mut shown = vec![None; client.len()];
    // Returning early avoids reading the branch, which may be long.
    let Some(first) = list.first() else { return shown };
    let texts: Vec<StoredText<'_>> =
        (0..stored.len()).filter_map(|position| StoredText::of(stored, position)).collect();

    let mut found = align(&texts, list);
    if !found.has_answer && found.texts < texts.len() {
        let begins = |start: &usize| match first {
            Message::Assistant(text) => parts(&texts[*start..], text.content.as_deref()) > 0,
            _ => is_same_text(texts[*start].message, first),
        };
        for start in (1..texts.len()).rev().filter(begins).take(MAX_STARTS) {
            let later = align(&texts[start..], list);
            if later.has_answer && (!found.has_answer || later.texts > found.texts) {
                found = later;
            }
        }
        if !found.has_answer {
            return shown;
        }
    }
    shown.iter_mut().zip(found.positions).for_each(|(shown, position)| *shown = Some(position));
    shown
}

struct StoredText<'a> {
    position: usize,
    message: &'a Message,
    run: Option<RunNumber>,
}

impl<'a> StoredText<'a> {
    /// Returns `None` for a message that clients without ids do not send.
    fn of(stored: &'a Branch, position: usize) -> Option<Self> {
        let message = &stored.messages()[position];
        has_text(message).then(|| Self { position, message, run: stored.origin(position).run() })
    }
}

/// The start of a list that agrees with consecutive texts.
struct Alignment {
    /// The positions in the branch of the first messages of the list.
    positions: Vec<usize>,
    /// The number of texts that the list shows.
    texts: usize,
    has_answer: bool,
}

fn align(texts: &[StoredText<'_>], list: &[Message]) -> Alignment {
    let mut found = Alignment { positions: Vec::new(), texts: 0, has_answer: false };
    while let (Some(message), Some(text)) =
        (list.get(found.positions.len()), texts.get(found.texts))
    {
        if message.role() != Role::Assistant && is_same_text(text.message, message) {
            found.positions.push(text.position);
            found.texts += 1;
            continue;
        }
        // User messages that are not stored, before a known answer, were replies to an interrupt.
        let rest = &list[found.positions.len()..];
        let answers = rest.iter().take_while(|message| message.role() == Role::User).count();
        let Some(Message::Assistant(answer)) = rest.get(answers) else { break };
        let parts = parts(&texts[found.texts..], answer.content.as_deref());
        let Some(last) = parts.checked_sub(1).map(|last| &texts[found.texts + last]) else { break };
        found.positions.extend(std::iter::repeat_n(last.position, answers + 1));
        found.texts += parts;
        found.has_answer = true;
    }
    found
}

/// Returns the number of texts of one run, from the first on, that give a client's text when
/// joined; 0 if they do not.
fn parts(texts: &[StoredText<'_>], text: Option<&str>) -> usize {
    let is_text = |char: &char| !char.is_whitespace();
    let mut rest = text.unwrap_or_default().chars().filter(is_text).peekable();
    let run = texts.first().and_then(|first| first.run);
    for (index, part) in texts.iter().take(MAX_PARTS).enumerate() {
        let Message::Assistant(message) = part.message else { return 0 };
        if index > 0 && (run.is_none() || part.run != run) {
            return 0;
        }
        let content = message.content.as_deref().unwrap_or_default();
        if !content.chars().filter(is_text).all(|char| rest.next() == Some(char)) {
            return 0;
        }
        if rest.peek().is_none() {
            return index + 1;
        }
    }
    0
}

/// Returns whether clients without ids send such a message.
pub(super) fn has_text(message: &Message) -> bool {
    match message {
        Message::Assistant(assistant) => {
            assistant.content.as_deref().is_some_and(|text| !text.is_empty())
        }
        Message::User(_) | Message::System(_) | Message::Developer(_) => true,
        Message::Tool(_) | Message::Activity(_) | Message::Reasoning(_) => false,
    }
}

pub(super) fn is_same_text(known: &Message, client: &Message) -> bool {
    match (known, client) {
        (Message::User(known), Message::User(client)) => known.content == client.content,
        (Message::System(known), Message::System(client)) => known.content == client.content,
        (Message::Developer(known), Message::Developer(client)) => known.content == client.content,
        _ => false,
    }
}
