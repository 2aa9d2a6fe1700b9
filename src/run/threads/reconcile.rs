//! What a client sent, beside what is stored.
//!
//! Some clients send the whole conversation with every run, some only what is new. Both get the same
//! thread: messages that are known by their id stay where they are, new ones are put in, and nothing is
//! taken away because a client left it out.

use std::collections::{HashMap, HashSet};

use crate::protocol::{Message, MessageId};

/// The stored messages with those that the client sent.
///
/// A known message that a person or the application writes (user, system, developer) is as the client
/// sends it now: it is the author. A known one that a run produced stays as the run produced it: a client may
/// have kept less of it. New messages come after the known one that the client has before them; those after the last
/// known one come last. Of messages with the same id the first is taken.
pub(super) fn reconcile(stored: Vec<Message>, sent: Vec<Message>) -> Vec<Message> {
    let mut seen = HashSet::with_capacity(sent.len());
    let sent: Vec<_> = sent.into_iter().filter(|message| seen.insert(message.id().clone())).collect();
    if stored.is_empty() {
        return sent;
    }
    let places: HashMap<MessageId, usize> =
        stored.iter().enumerate().map(|(place, message)| (message.id().clone(), place)).collect();
    let mut kept: Vec<Option<Message>> = stored.into_iter().map(Some).collect();
    // The new messages that stand before each of the stored ones; those before nothing come last.
    let mut before: Vec<Vec<Message>> = vec![Vec::new(); kept.len()];
    let (mut next, mut unplaced) = (0, Vec::new());
    for message in sent {
        let Some(&place) = places.get(message.id()) else {
            unplaced.push(message);
            continue;
        };
        before[next.min(place)].append(&mut unplaced);
        next = place + 1;
        if is_authored_by_client(&message) && kept[place].as_ref().is_some_and(|known| known.role() == message.role()) {
            kept[place] = Some(message);
        }
    }
    let mut messages = Vec::with_capacity(kept.len() + unplaced.len());
    for (message, mut new) in kept.into_iter().zip(before) {
        messages.append(&mut new);
        messages.extend(message);
    }
    messages.append(&mut unplaced);
    messages
}

fn is_authored_by_client(message: &Message) -> bool {
    matches!(message, Message::User(_) | Message::System(_) | Message::Developer(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(messages: &[Message]) -> Vec<&str> {
        messages.iter().map(|message| message.id().as_str()).collect()
    }

    fn users(ids: &[&str]) -> Vec<Message> {
        ids.iter().map(|id| Message::user(*id, format!("text of {id}"))).collect()
    }

    #[test]
    fn a_full_history_and_the_newest_message_alone_come_to_the_same() {
        let stored = users(&["a", "b", "c"]);
        assert_eq!(ids(&reconcile(stored.clone(), users(&["a", "b", "c", "d"]))), ["a", "b", "c", "d"]);
        assert_eq!(ids(&reconcile(stored.clone(), users(&["d"]))), ["a", "b", "c", "d"]);
        assert_eq!(ids(&reconcile(stored.clone(), users(&["c", "d", "e"]))), ["a", "b", "c", "d", "e"]);
        assert_eq!(ids(&reconcile(stored, Vec::new())), ["a", "b", "c"]);
    }

    #[test]
    fn a_shorter_list_takes_nothing_away() {
        assert_eq!(ids(&reconcile(users(&["a", "b", "c"]), users(&["a"]))), ["a", "b", "c"]);
    }

    #[test]
    fn what_a_client_puts_between_known_messages_stays_there() {
        let merged = reconcile(users(&["a", "b", "c"]), users(&["start", "a", "between", "c", "end"]));
        assert_eq!(ids(&merged), ["start", "a", "between", "b", "c", "end"]);
        // In another order than ours: nothing is lost or doubled.
        let merged = reconcile(users(&["a", "b", "c"]), users(&["c", "x", "a", "y"]));
        assert_eq!(ids(&merged), ["x", "a", "b", "c", "y"]);
    }

    #[test]
    fn a_message_that_is_sent_twice_is_there_once() {
        let sent = vec![Message::user("a", "one"), Message::user("b", "x"), Message::user("a", "two")];
        assert_eq!(reconcile(Vec::new(), sent.clone()), sent[..2]);
        assert_eq!(reconcile(users(&["b"]), sent.clone()), sent[..2]);
    }

    #[test]
    fn a_client_may_change_its_own_messages_and_no_others() {
        let answer = Message::assistant("b", "the whole answer");
        let stored = vec![Message::user("a", "old"), answer.clone()];
        let sent = vec![Message::user("a", "new"), Message::assistant("b", "less")];
        assert_eq!(reconcile(stored.clone(), sent), [Message::user("a", "new"), answer.clone()]);
        // Not even by calling it its own.
        assert_eq!(reconcile(stored.clone(), vec![Message::user("b", "mine")]), stored);
    }
}
