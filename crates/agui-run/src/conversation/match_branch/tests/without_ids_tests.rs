//! Lists of clients that send no ids.

use super::*;

/// Returns the case, and the ids of the messages that the agent gets, for a list without ids.
fn match_without_ids(stored: &Branch, client: &[Message]) -> (BranchCase, Vec<String>) {
    let anonymous: Vec<usize> = (0..client.len()).collect();
    let matched = match_branch(stored, &ClientList { anonymous: &anonymous, ..of(client) });
    let list = list(stored, client, &matched);
    (matched.case, list.iter().map(|message| message.id().to_string()).collect())
}

#[test]
fn messages_without_ids_are_known_by_role_and_text_in_the_same_place() {
    let stored = stored(&[user("u1"), calling("a0", &["c"]), result("t", "c", "x"), answer("a1")]);
    let text = |at: usize| {
        let mut message = stored.messages()[at].clone();
        message.set_id(MessageId::random());
        message
    };
    let matched_case = |client: &[Message]| {
        let anonymous: Vec<usize> = (0..client.len()).collect();
        let matched = match_branch(&stored, &ClientList { anonymous: &anonymous, ..of(client) });
        (matched.case, list(&stored, client, &matched).len())
    };
    let new = Message::user("random", "another question");
    // The whole list, without messages that such clients do not send.
    assert_eq!(matched_case(&[text(0), text(3), new.clone()]), (BranchCase::Continues, 5));
    assert_eq!(matched_case(&[text(0), text(3)]), (BranchCase::Continues, 4));
    // The end of the list, after the client has trimmed it.
    assert_eq!(matched_case(&[text(3), new.clone()]), (BranchCase::Continues, 5));
    assert_eq!(matched_case(std::slice::from_ref(&new)), (BranchCase::NothingKnown, 5));
    // The text of the first message, repeated by a client that sends only new messages.
    assert_eq!(matched_case(&[text(0)]), (BranchCase::NothingKnown, 5));
    assert_eq!(
        matched_case(&[text(0), Message::assistant("r", "else"), new]),
        (BranchCase::NothingKnown, 7)
    );
}

#[test]
fn texts_of_a_run_that_a_client_has_joined_are_known() {
    let says = |id: &str, text: &str, run| {
        (Message::assistant(id, text), MessageOrigin::Run { run, delivered: true })
    };
    let stored = branch([
        (user("u1"), MessageOrigin::Client),
        says("a1", "Let me check", 1),
        (calling("c", &["c1"]), DELIVERED),
        (result("t", "c1", "x"), DELIVERED),
        says("a2", "It is sunny", 1),
        (user("u2"), MessageOrigin::Client),
        says("a3", "Bye", 2),
    ]);
    let texts = |texts: &[&str]| -> Vec<Message> {
        let role = |(at, text): (usize, &&str)| match at % 2 {
            0 => Message::user(format!("r{at}"), *text),
            _ => Message::assistant(format!("r{at}"), *text),
        };
        texts.iter().enumerate().map(role).collect()
    };
    let all = ["u1", "a1", "c", "t", "a2", "u2", "a3"];
    for joined in
        ["Let me checkIt is sunny", "Let me check\n\nIt is sunny", " Let me check It is sunny\n"]
    {
        let list = texts(&["text of u1", joined, "text of u2", "Bye", "More"]);
        let expected: Vec<_> =
            all.iter().map(ToString::to_string).chain(["r4".to_owned()]).collect();
        assert_eq!(
            match_without_ids(&stored, &list),
            (BranchCase::Continues, expected.clone()),
            "{joined}"
        );
        // The list was trimmed at the begin.
        assert_eq!(match_without_ids(&stored, &list[1..]).0, BranchCase::Continues, "{joined}");
        // A step back.
        let (case, ids) = match_without_ids(&stored, &texts(&["text of u1", joined, "Else"]));
        assert_eq!((case, ids.len()), (BranchCase::Branches, 6), "{joined} {ids:?}");
    }
    // Texts of two runs are not one message.
    let list = texts(&["text of u2", "ByeAnd", "More"]);
    assert_eq!(match_without_ids(&stored, &list).0, BranchCase::NothingKnown);
}

#[test]
fn answers_to_interrupts_in_a_list_without_ids_are_no_new_messages() {
    let run = |run| MessageOrigin::Run { run, delivered: true };
    let stored = branch([
        (user("u1"), MessageOrigin::Client),
        (Message::assistant("a1", "May I?"), run(1)),
        (Message::assistant("a2", "Done"), run(2)),
        (user("u2"), MessageOrigin::Client),
        (Message::assistant("a3", "Gone"), run(4)),
    ]);
    let (says, answers) =
        (|text: &str| Message::user("r", text), |text: &str| Message::assistant("r", text));
    let list = [
        says("text of u1"),
        answers("May I?"),
        says("hm"),
        says("approve"),
        answers("Done"),
        says("text of u2"),
        // The run that asked said nothing.
        says("yes"),
        answers("Gone"),
        Message::user("new", "More"),
    ];
    let expected: Vec<_> = ["u1", "a1", "a2", "u2", "a3", "new"].map(str::to_owned).into();
    assert_eq!(match_without_ids(&stored, &list), (BranchCase::Continues, expected));
    // Another question in place of the answer leaves the branch.
    let (case, ids) = match_without_ids(
        &stored,
        &[says("text of u1"), answers("May I?"), Message::user("new", "No")],
    );
    assert_eq!((case, ids), (BranchCase::Branches, ["u1", "a1", "new"].map(str::to_owned).into()));
}

#[test]
fn a_list_without_ids_begins_at_one_of_the_last_64_places_that_fit() {
    let turns = (0..100).flat_map(|turn| {
        [
            (Message::user(format!("u{turn}"), "go on"), MessageOrigin::Client),
            (
                Message::assistant(format!("a{turn}"), turn.to_string()),
                MessageOrigin::Run { run: turn, delivered: true },
            ),
        ]
    });
    let stored = branch(turns);
    let trimmed =
        |turn: u32| [Message::user("r1", "go on"), Message::assistant("r2", turn.to_string())];
    for (turn, case) in
        [(99, BranchCase::Continues), (36, BranchCase::Branches), (35, BranchCase::NothingKnown)]
    {
        let list = [&trimmed(turn)[..], &[Message::user("new", "More")]].concat();
        assert_eq!(match_without_ids(&stored, &list).0, case, "{turn}");
    }
}

#[test]
fn up_to_64_texts_of_a_run_are_known_if_a_client_has_joined_them() {
    for (count, case) in [(64, BranchCase::Continues), (65, BranchCase::NothingKnown)] {
        let says = |at| (Message::assistant(format!("a{at}"), "So. "), DELIVERED);
        let stored = branch((0..count).map(says));
        let list = [Message::assistant("r", "So. ".repeat(count)), Message::user("new", "More")];
        assert_eq!(match_without_ids(&stored, &list).0, case, "{count}");
    }
}
