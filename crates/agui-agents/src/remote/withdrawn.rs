//! The messages that an endpoint has withdrawn from its conversation: its snapshot shows the newest message that it got, and
//! not these. The thread keeps them, marked in their metadata, and the endpoint does not get them again.
//!
//! A mark holds for one conversation of one endpoint. Another branch, agent or endpoint gets the messages.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use agui_protocol::{Message, Messages, ThreadId, own_names::WITHDRAWN};

/// The marks of one message: each branch can add one. Beyond this number the oldest goes, and that branch's endpoint gets
/// the message again.
const MAX_MARKS: usize = 8;

/// Returns the mark of a conversation. `thread` is the id that the endpoint gets.
pub(super) fn mark_of(url: &str, thread: &ThreadId) -> String {
    let digest = Sha256::digest(json!([url, thread]).to_string());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn withdraw(message: &mut Message, mark: &str) {
    if has_mark(message, mark) {
        return;
    }
    let marks = message.metadata_mut().get_or_insert_default();
    let marks = marks.entry(WITHDRAWN).or_insert_with(|| json!([]));
    match marks {
        Value::Array(marks) => {
            marks.push(mark.into());
            marks.drain(..marks.len().saturating_sub(MAX_MARKS));
        }
        // A client has written it.
        other => *other = json!([mark]),
    }
}

/// Leaves out the messages that the endpoint has withdrawn, and the marks of all others.
pub(super) fn leave_out(messages: &mut Messages, mark: &str) {
    let is_marked = |message: &Message| marks(message).is_some();
    if !messages.iter().any(is_marked) {
        return;
    }
    let messages = messages.to_mut();
    messages.retain(|message| !has_mark(message, mark));
    for message in messages {
        let metadata = message.metadata_mut();
        if let Some(members) = metadata {
            members.remove(WITHDRAWN);
            if members.is_empty() {
                *metadata = None;
            }
        }
    }
}

fn has_mark(message: &Message, mark: &str) -> bool {
    let marks = marks(message).and_then(Value::as_array);
    marks.is_some_and(|marks| marks.iter().any(|known| known == mark))
}

fn marks(message: &Message) -> Option<&Value> {
    message.metadata()?.get(WITHDRAWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_left_out_where_it_was_withdrawn_and_goes_without_marks_elsewhere() {
        let (one, other) = (mark_of("http://h/", &"t1".into()), mark_of("http://h/", &"t2".into()));
        assert_ne!(one, mark_of("http://g/", &"t1".into()));
        let mut withdrawn = Message::user("a", "1");
        withdraw(&mut withdrawn, &one);
        withdraw(&mut withdrawn, &one);
        assert_eq!(withdrawn.metadata().unwrap()[WITHDRAWN], json!([one]));
        let thread = Messages::from(vec![withdrawn.clone(), Message::user("b", "2")]);
        let sent = |mark: &str| {
            let mut sent = thread.clone();
            leave_out(&mut sent, mark);
            sent.into_vec()
        };
        assert_eq!(sent(&one), [Message::user("b", "2")]);
        assert_eq!(sent(&other), [Message::user("a", "1"), Message::user("b", "2")]);
        for number in 0..20 {
            withdraw(&mut withdrawn, &number.to_string());
        }
        assert_eq!(withdrawn.metadata().unwrap()[WITHDRAWN].as_array().unwrap().len(), MAX_MARKS);
        withdrawn.metadata_mut().as_mut().unwrap()[WITHDRAWN] = json!("forged");
        withdraw(&mut withdrawn, &one);
        assert_eq!(withdrawn.metadata().unwrap()[WITHDRAWN], json!([one]));
    }
}
