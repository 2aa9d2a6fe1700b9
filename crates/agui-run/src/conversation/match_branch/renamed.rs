//! Recognises messages that a client sends again under new ids: some rename the user's messages in
//! each request, others reasoning.

use super::{
    super::branch::Branch,
    without_ids::{has_text, is_same_text},
};
use agui_protocol::Message;

/// Sets the position of messages under new ids: they stand directly before a shown message, and
/// have the role and the content of the stored messages before it. Skips stored messages that such
/// a client may leave out. Takes linear time: no stored message is compared for two shown ones.
pub(super) fn show_renamed(stored: &Branch, client: &[Message], shown: &mut [Option<usize>]) {
    let (mut first_new, mut from) = (0, 0);
    for at in 0..client.len() {
        let Some(position) = shown[at] else { continue };
        let mut end = position;
        for new in (first_new..at).rev() {
            let same = (from..end).rev().map(|before| (before, &stored.messages()[before]));
            let mut same = same
                .skip_while(|(_, known)| !has_text(known) && !is_same_content(known, &client[new]));
            let Some((before, _)) =
                same.next().filter(|(_, known)| is_same_content(known, &client[new]))
            else {
                break;
            };
            shown[new] = Some(before);
            end = before;
        }
        (first_new, from) = (at + 1, from.max(position + 1));
    }
}

fn is_same_content(known: &Message, client: &Message) -> bool {
    match (known, client) {
        (Message::Reasoning(known), Message::Reasoning(client)) => known.content == client.content,
        (Message::Assistant(known), Message::Assistant(client)) => {
            known.content == client.content
                && known.tool_calls().is_empty()
                && client.tool_calls().is_empty()
        }
        _ => is_same_text(known, client),
    }
}
