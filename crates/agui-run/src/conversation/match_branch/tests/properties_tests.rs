//! Properties of each branch with each list of a client.

use proptest::{collection::vec, prelude::*, sample::subsequence};

use super::*;

fn any_branch() -> impl Strategy<Value = Branch> {
    let origin = prop_oneof![Just(MessageOrigin::Client), Just(DELIVERED), Just(UNDELIVERED)];
    vec((0..3u8, origin), 0..8).prop_map(|kinds| {
        branch(kinds.into_iter().enumerate().map(|(at, (kind, origin))| match kind {
            0 => (user(&format!("m{at}")), origin),
            1 => (answer(&format!("m{at}")), origin),
            _ => (system(&format!("m{at}"), "text"), origin),
        }))
    })
}

fn any_client(stored: &Branch) -> impl Strategy<Value = Vec<Message>> + use<> {
    let messages = stored.messages().to_vec();
    let count = messages.len();
    (
        subsequence(messages, 0..=count),
        vec((0..=count, any::<bool>()), 0..4),
        vec(any::<bool>(), count),
    )
        .prop_map(|(mut list, new, edited)| {
            for (message, _) in list.iter_mut().zip(edited).filter(|(_, edited)| *edited) {
                if message.role() == Role::User {
                    *message = Message::user(message.id().clone(), "edited");
                }
            }
            for (number, (at, is_user)) in new.into_iter().enumerate() {
                let id = format!("new{number}");
                list.insert(
                    at.min(list.len()),
                    if is_user { user(&id) } else { system(&id, "new") },
                );
            }
            list
        })
}

proptest! {
    #[test]
    fn no_message_of_the_client_is_lost_and_ids_are_unique(
        (stored, client) in any_branch().prop_flat_map(|stored| (any_client(&stored), Just(stored)).prop_map(|(c, s)| (s, c)))
    ) {
        let matched = match_branch(&stored, &of(&client));
        let list = list(&stored, &client, &matched);
        let mut unique: HashSet<_> = ids(&list).into_iter().collect();
        prop_assert_eq!(unique.len(), list.len(), "{:?}", ids(&list));
        // Every message of the client is in the list; an instruction may have the id of the one it replaces.
        for message in &client {
            let is_there = list.iter().any(|it| it.id() == message.id());
            let replaces = message.is_instruction() && list.iter().any(|it| it.role() == message.role());
            prop_assert!(is_there || replaces, "{:?} is not in {:?}", message.id(), ids(&list));
        }
        // A client's own messages have the client's text.
        for message in &client {
            if message.role() == Role::User && let Some(it) = list.iter().find(|it| it.id() == message.id()) {
                prop_assert_eq!(it, message);
            }
        }
        // All other messages are of the branch.
        client.iter().for_each(|message| { unique.remove(message.id().as_str()); });
        let known: HashSet<_> = ids(stored.messages()).into_iter().collect();
        prop_assert!(unique.is_subset(&known), "{:?}", unique);
        // The client's order is kept, but a new instruction stands where the one was that it replaces.
        let is_new_instruction = |it: &&Message| it.is_instruction() && !known.contains(it.id().as_str());
        let ordered = client.iter().filter(|message| !is_new_instruction(message));
        let positions: Vec<_> =
            ordered.filter_map(|message| list.iter().position(|it| it.id() == message.id())).collect();
        prop_assert!(positions.is_sorted(), "{:?}: {:?}", ids(&client), ids(&list));
    }

    #[test]
    fn stored_messages_stay_reachable(
        (stored, client) in any_branch().prop_flat_map(|stored| (any_client(&stored), Just(stored)).prop_map(|(c, s)| (s, c)))
    ) {
        let matched = match_branch(&stored, &of(&client));
        // Messages are only added below kept ones; only those that the client may change are changed, in place.
        prop_assert!(matched.kept <= stored.len());
        for (position, text) in &matched.updated {
            prop_assert!(*position < matched.kept);
            prop_assert_eq!(text.id(), stored.messages()[*position].id());
            prop_assert!(takes_client_text(&stored.messages()[*position], stored.origin(*position)));
        }
        // A new branch changes only instructions of the old one.
        if matched.case == BranchCase::Branches {
            prop_assert!(matched.updated.iter().all(|(_, text)| text.is_instruction()));
        }
        if matched.case != BranchCase::Branches && matched.updated.is_empty() && matched.appended.is_empty() {
            prop_assert_eq!(matched.kept, stored.len());
        }
    }
}
