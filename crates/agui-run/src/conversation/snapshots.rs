//! The snapshots that give a client the messages that it does not show.

use agui_protocol::{
    ActivityMessage, JsonObject, Message, MessageId, Messages, ReasoningMessage, Role,
    event::MessagesSnapshot, own_names::PLACEHOLDER,
};

/// Returns the snapshots after which a client has exactly these messages, in this order.
///
/// A client leaves its messages in their places and appends the others of a snapshot. So a client
/// that has messages first gets a snapshot without any of them. But it keeps its reasoning if a
/// snapshot has no reasoning, and its activities if it has no activities: if the thread has some,
/// the first snapshot has a placeholder, which the second one removes.
pub(crate) fn snapshots(messages: &Messages, client_has_messages: bool) -> Vec<MessagesSnapshot> {
    let mut snapshots = Vec::new();
    if client_has_messages {
        let roles = [Role::Reasoning, Role::Activity];
        let kept =
            roles.into_iter().filter(|role| messages.iter().any(|message| message.role() == *role));
        snapshots.push(MessagesSnapshot::new(kept.map(placeholder).collect::<Messages>()));
    }
    snapshots.push(MessagesSnapshot::new(messages.clone()));
    snapshots
}

/// Removes the placeholders that a client has kept: some keep all activities, and a response may
/// end between the snapshots.
pub(crate) fn remove_placeholders(messages: &mut Messages) {
    if messages.iter().any(is_placeholder) {
        messages.to_mut().retain(|message| !is_placeholder(message));
    }
}

fn placeholder(role: Role) -> Message {
    let id = MessageId::from(format!("{PLACEHOLDER}.{}", role.as_str()));
    match role {
        Role::Activity => {
            Message::Activity(ActivityMessage::new(id, PLACEHOLDER, JsonObject::new()))
        }
        _ => Message::Reasoning(ReasoningMessage::new(id, "")),
    }
}

fn is_placeholder(message: &Message) -> bool {
    matches!(message, Message::Activity(_) | Message::Reasoning(_))
        && message.id().starts_with(PLACEHOLDER)
}
