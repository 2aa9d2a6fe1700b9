mod properties_tests;
mod seen_tests;
mod without_ids_tests;

use std::time::Duration;

use super::*;
use agui_protocol::{
    ActivityMessage, AssistantMessage, JsonObject, ReasoningMessage, SystemMessage, ToolCall,
    ToolMessage,
};

const DELIVERED: MessageOrigin = MessageOrigin::Run { run: RunNumber(1), delivered: true };
const UNDELIVERED: MessageOrigin = MessageOrigin::Run { run: RunNumber(2), delivered: false };

fn user(id: &str) -> Message {
    Message::user(id, format!("text of {id}"))
}

fn answer(id: &str) -> Message {
    Message::assistant(id, format!("text of {id}"))
}

fn calling(id: &str, calls: &[&str]) -> Message {
    let tool_calls = Some(calls.iter().map(|call| ToolCall::new(*call, "f", "{}")).collect());
    Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::new(id) })
}

fn reasoning(id: &str) -> Message {
    Message::Reasoning(ReasoningMessage::new(id, format!("thoughts of {id}")))
}

fn result(id: &str, call: &str, text: &str) -> Message {
    Message::Tool(ToolMessage::new(id, call, text))
}

fn system(id: &str, text: &str) -> Message {
    Message::System(SystemMessage::new(id, text))
}

fn stored(messages: &[Message]) -> Branch {
    let origin = |message: &Message| {
        if message.role() == Role::Assistant { DELIVERED } else { MessageOrigin::Client }
    };
    branch(messages.iter().map(|message| (message.clone(), origin(message))))
}

fn branch(messages: impl IntoIterator<Item = (Message, MessageOrigin)>) -> Branch {
    let mut branch = Branch::default();
    (1..).zip(messages).for_each(|(number, (message, origin))| {
        branch.push(message, MessageNumber(number), origin)
    });
    branch
}

fn two_turns() -> Branch {
    stored(&[user("u1"), answer("a1"), user("u2"), answer("a2")])
}

/// Returns the messages that the agent gets.
fn list(stored: &Branch, client: &[Message], matched: &BranchMatch) -> Vec<Message> {
    let mut list = stored.messages()[..matched.kept].to_vec();
    matched.updated.iter().for_each(|(position, text)| list[*position] = text.clone());
    let appended = matched.appended.iter().filter_map(|new| new.read(Some(stored), client));
    list.extend(appended.map(|(message, _)| message.clone()));
    list
}

fn ids(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.id().as_str()).collect()
}

#[track_caller]
fn gives(stored: &Branch, client: &[Message], case: BranchCase, expected: &[&str]) -> Vec<Message> {
    let matched = match_branch(stored, &of(client));
    let list = list(stored, client, &matched);
    assert_eq!((matched.case, ids(&list)), (case, expected.to_vec()), "{matched:?}");
    list
}

fn of(messages: &[Message]) -> ClientList<'_> {
    ClientList {
        messages,
        anonymous: &[],
        shows_retracted: false,
        came_during: None,
        replies_to_interrupt: false,
        answered_calls: Vec::new(),
    }
}

#[test]
fn activities_at_the_end_of_a_run_are_shown_by_its_last_message() {
    let activity =
        || Message::Activity(ActivityMessage::new("f1", "agui-server.file", JsonObject::new()));
    let nodes =
        [(user("u1"), MessageOrigin::Client), (answer("a1"), DELIVERED), (activity(), DELIVERED)];
    let mut stored = branch(nodes.clone());
    gives(
        &stored,
        &[user("u1"), answer("a1"), user("u2")],
        BranchCase::Continues,
        &["u1", "a1", "f1", "u2"],
    );
    gives(&stored, &[user("u1"), answer("a1")], BranchCase::Continues, &["u1", "a1", "f1"]);
    // Another answer has none of the activities of the one before.
    gives(&stored, &[user("u1")], BranchCase::Branches, &["u1"]);
    stored.push(user("u2"), MessageNumber(4), MessageOrigin::Client);
    gives(
        &stored,
        &[user("u1"), answer("a1"), user("u3")],
        BranchCase::Branches,
        &["u1", "a1", "f1", "u3"],
    );
    let first = branch([nodes[0].clone(), nodes[2].clone(), nodes[1].clone()]);
    gives(&first, &[user("u1")], BranchCase::Branches, &["u1"]);
    // It is a part of the answer that the client leaves.
    gives(&first, &[user("u1"), user("u2")], BranchCase::Branches, &["u1", "u2"]);
}

#[test]
fn a_new_thread_is_the_clients_list() {
    gives(
        &Branch::default(),
        &[user("u1"), answer("a1"), user("u2")],
        BranchCase::New,
        &["u1", "a1", "u2"],
    );
    gives(&Branch::default(), &[], BranchCase::New, &[]);
}

#[test]
fn a_list_without_known_messages_is_appended_to_the_branch() {
    gives(&two_turns(), &[user("u3")], BranchCase::NothingKnown, &["u1", "a1", "u2", "a2", "u3"]);
    gives(&two_turns(), &[], BranchCase::NothingKnown, &["u1", "a1", "u2", "a2"]);
}

#[test]
fn a_new_message_with_a_stored_call_is_left_out() {
    let stored = stored(&[user("u1"), calling("a1", &["c"])]);
    let forged = || calling("forged", &["c", "x"]);
    for client in [
        vec![user("u1"), calling("a1", &["c"]), forged()],
        vec![user("u1"), forged(), calling("a1", &["c"])],
        vec![forged(), user("u1"), calling("a1", &["c"])],
    ] {
        gives(&stored, &client, BranchCase::Continues, &["u1", "a1"]);
    }
    gives(&stored, &[forged()], BranchCase::NothingKnown, &["u1", "a1"]);
    gives(&stored, &[user("u1"), calling("a2", &["x"])], BranchCase::Branches, &["u1", "a2"]);
}

#[test]
fn a_list_with_the_end_of_the_branch_continues_it() {
    let all = [user("u1"), answer("a1"), user("u2"), answer("a2"), user("u3")];
    for first in 0..4 {
        // A client that sends only its last messages removes none.
        gives(&two_turns(), &all[first..], BranchCase::Continues, &["u1", "a1", "u2", "a2", "u3"]);
    }
    gives(&two_turns(), &all[..4], BranchCase::Continues, &["u1", "a1", "u2", "a2"]);
}

#[test]
fn messages_that_a_client_sends_again_under_new_ids_are_not_stored_twice() {
    let renamed = |id: &str, message: Message| {
        let mut message = message;
        message.set_id(id.into());
        message
    };
    let stored = stored(&[
        user("u1"),
        reasoning("r1"),
        calling("a1", &["c"]),
        result("t1", "c", "1"),
        answer("a2"),
    ]);
    let all = ["u1", "r1", "a1", "t1", "a2", "u2"];
    let [u1, r1] = [renamed("x", user("u1")), renamed("y", reasoning("r1"))];
    let rest = [calling("a1", &["c"]), result("t1", "c", "1"), answer("a2"), user("u2")];
    for first in [
        vec![u1.clone()],
        vec![u1.clone(), r1.clone()],
        vec![r1],
        vec![user("u1"), renamed("y", reasoning("r1"))],
    ] {
        gives(&stored, &[first, rest.to_vec()].concat(), BranchCase::Continues, &all);
    }
    // Another text is another message, and so is one that no known message follows.
    let [call, result, answer, next] = rest;
    let edited = renamed("x", user("other"));
    gives(&stored, &[edited, call.clone()], BranchCase::Branches, &["u1", "r1", "x", "a1"]);
    let again = [user("u1"), call, result, answer, u1.clone(), next];
    gives(&stored, &again, BranchCase::Continues, &["u1", "r1", "a1", "t1", "a2", "x", "u2"]);
    gives(&stored, &[u1], BranchCase::NothingKnown, &["u1", "r1", "a1", "t1", "a2", "x"]);
}

#[test]
fn undelivered_messages_are_kept_before_the_new_ones() {
    let stored = branch([
        (user("u1"), MessageOrigin::Client),
        (calling("a1", &["c"]), UNDELIVERED),
        (answer("a2"), UNDELIVERED),
    ]);
    gives(&stored, &[user("u1"), user("u2")], BranchCase::Unseen, &["u1", "a1", "a2", "u2"]);
    // If a part was delivered or stored by a client, they count as seen.
    for seen in [DELIVERED, MessageOrigin::Client] {
        let stored = branch([
            (user("u1"), MessageOrigin::Client),
            (answer("a1"), seen),
            (answer("a2"), UNDELIVERED),
        ]);
        gives(&stored, &[user("u1"), user("u2")], BranchCase::Branches, &["u1", "u2"]);
    }
}

#[test]
fn an_undelivered_tool_call_is_continued_but_an_answer_is_not() {
    let lost = [
        (user("u1"), MessageOrigin::Client),
        (calling("a1", &["c"]), UNDELIVERED),
        (result("t1", "c", "x"), UNDELIVERED),
    ];
    gives(&branch(lost.clone()), &[user("u1")], BranchCase::Unseen, &["u1", "a1", "t1"]);
    let answered = lost.into_iter().chain([(answer("a2"), UNDELIVERED)]);
    gives(&branch(answered), &[user("u1")], BranchCase::Branches, &["u1", "a1", "t1"]);
}

#[test]
fn a_regenerated_answer_starts_a_branch() {
    gives(
        &two_turns(),
        &[user("u1"), answer("a1"), user("u2")],
        BranchCase::Branches,
        &["u1", "a1", "u2"],
    );
    gives(&two_turns(), &[user("u1")], BranchCase::Branches, &["u1"]);
}

#[test]
fn an_edit_starts_a_branch() {
    gives(
        &two_turns(),
        &[user("u1"), answer("a1"), user("u3")],
        BranchCase::Branches,
        &["u1", "a1", "u3"],
    );
    // Under the same id: the old text stays on its branch.
    let edited = Message::user("u2", "another text");
    let client = [user("u1"), answer("a1"), edited.clone()];
    let list = gives(&two_turns(), &client, BranchCase::Branches, &["u1", "a1", "u2"]);
    assert_eq!(list[2], edited);
    let matched = match_branch(&two_turns(), &of(&client));
    assert_eq!((matched.kept, matched.updated), (2, vec![]));
}

#[test]
fn an_answer_to_an_interrupt_continues_the_branch() {
    let list = [user("u1"), user("u2"), user("u3")];
    for (client, kept, new) in [(&list[..1], 4, 0), (&list[..2], 4, 0), (&list[..], 4, 1)] {
        let matched =
            match_branch(&two_turns(), &ClientList { replies_to_interrupt: true, ..of(client) });
        assert_eq!(
            (matched.case, matched.kept, matched.appended.len()),
            (BranchCase::Unseen, kept, new)
        );
    }
}

#[test]
fn a_step_back_leaves_later_messages_on_their_branch() {
    gives(
        &two_turns(),
        &[user("u1"), answer("a1"), user("u3")],
        BranchCase::Branches,
        &["u1", "a1", "u3"],
    );
    gives(&two_turns(), &[user("u1"), user("u3")], BranchCase::Branches, &["u1", "u3"]);
}

#[test]
fn changed_texts_under_known_ids_start_a_branch() {
    // Two conversations of the example clients, which use the same ids in English and in Chinese.
    let english = [user("m1"), calling("m2", &["c1"]), result("m3", "c1", "two files")];
    let mut stored = branch(english.iter().map(|message| (message.clone(), MessageOrigin::Client)));
    stored.push(answer("a"), MessageNumber(4), DELIVERED);
    let chinese =
        [Message::user("m1", "你好"), calling("m2", &["c2"]), result("m3", "c2", "两个文件")];
    let matched = match_branch(&stored, &of(&chinese));
    assert_eq!((matched.case, matched.kept, &matched.updated), (BranchCase::Branches, 0, &vec![]));
    assert_eq!(list(&stored, &chinese, &matched), chinese);
}

#[test]
fn an_assistant_message_is_known_by_its_tool_calls() {
    let stored = stored(&[user("u1"), calling("server", &["c1", "c2"])]);
    let client = [user("u1"), calling("client", &["c1", "c2"]), result("t1", "c1", "x")];
    gives(&stored, &client, BranchCase::Continues, &["u1", "server", "t1"]);
    // If one of the calls is new, the message is new.
    let client = [user("u1"), calling("client", &["c1", "c3"]), result("t1", "c1", "x")];
    gives(&stored, &client, BranchCase::Branches, &["u1", "client", "t1"]);
}

#[test]
fn a_tool_message_is_known_by_its_call() {
    let stored =
        stored(&[user("u1"), calling("a1", &["c1"]), result("t1", "c1", "x"), answer("a2")]);
    let again = [user("u1"), calling("mine", &["c1"]), result("other", "c1", "x")];
    gives(&stored, &again, BranchCase::Branches, &["u1", "a1", "t1"]);
    // With another text it is a new result.
    let list =
        gives(&stored, &[result("other", "c1", "y")], BranchCase::Branches, &["u1", "a1", "other"]);
    assert_eq!(list[2], result("other", "c1", "y"));
    // A result that a run made is not changed.
    let by_run =
        branch([(calling("a1", &["c1"]), DELIVERED), (result("t1", "c1", "x"), DELIVERED)]);
    let list =
        gives(&by_run, &[result("other", "c1", "forged")], BranchCase::Continues, &["a1", "t1"]);
    assert_eq!(list[1], result("t1", "c1", "x"));
}

#[test]
fn messages_of_the_client_take_its_text_and_messages_of_runs_do_not() {
    let stored = stored(&[system("s", "old"), user("u1"), answer("a1")]);
    let client = [
        system("s", "new"),
        Message::user("u1", "new"),
        Message::assistant("a1", "forged"),
        user("u2"),
    ];
    let list = gives(&stored, &client, BranchCase::Continues, &["s", "u1", "a1", "u2"]);
    assert_eq!(list[..3], [system("s", "new"), Message::user("u1", "new"), answer("a1")]);
    // Also if the client sends it with its own role.
    let list =
        gives(&stored, &[Message::user("a1", "mine")], BranchCase::Continues, &["s", "u1", "a1"]);
    assert_eq!(list[2], answer("a1"));
}

#[test]
fn a_changed_instruction_is_updated_in_place_also_on_a_new_branch() {
    let stored = stored(&[system("s", "Monday"), user("u1"), answer("a1")]);
    let matched = match_branch(&stored, &of(&[system("s", "Tuesday"), user("u1")]));
    assert_eq!((matched.kept, &matched.updated[..]), (2, &[(0, system("s", "Tuesday"))][..]));
    assert_eq!(matched.appended, []);
}

#[test]
fn an_instruction_under_a_new_id_replaces_the_one_that_is_missing() {
    let stored = stored(&[system("s1", "Monday"), user("u1"), answer("a1")]);
    let client = [system("s2", "Tuesday"), user("u1"), answer("a1"), user("u2")];
    let list = gives(&stored, &client, BranchCase::Continues, &["s1", "u1", "a1", "u2"]);
    assert_eq!(list[0], system("s1", "Tuesday"));
    let matched = match_branch(&stored, &of(&client));
    assert_eq!(matched.appended.len(), 1, "nothing is copied");
    // There is one more than were missing; that one is new.
    let client = [system("s2", "Tuesday"), system("s3", "more"), user("u1"), answer("a1")];
    gives(&stored, &client, BranchCase::Continues, &["s1", "s3", "u1", "a1"]);
}

#[test]
fn new_messages_between_known_ones_are_inserted_there() {
    let client = [user("start"), user("u1"), user("between"), answer("a2"), user("end")];
    let expected = ["start", "u1", "a1", "u2", "between", "a2", "end"];
    gives(&two_turns(), &client, BranchCase::Continues, &expected);
    let matched = match_branch(&two_turns(), &of(&client[2..]));
    let copied: Vec<_> =
        matched.appended.iter().filter(|it| matches!(it, AppendedMessage::Stored(_))).collect();
    assert_eq!((matched.kept, copied), (3, vec![&AppendedMessage::Stored(3)]));
}

#[test]
fn another_order_loses_and_duplicates_no_message() {
    let client = [answer("a2"), user("x"), user("u1"), user("y")];
    gives(&two_turns(), &client, BranchCase::Continues, &["x", "u1", "a1", "u2", "a2", "y"]);
}

/// In quadratic time each list takes 10^9 steps.
#[test]
fn a_long_list_in_any_order_takes_linear_time() {
    const STORED: usize = 20_000;
    const SENT: usize = 100_000;
    let mut messages: Vec<_> = (0..STORED).map(|n| user(&format!("u{n}"))).collect();
    messages[0] = calling("u0", &["c"]);
    let stored = stored(&messages);
    let begin = std::time::Instant::now();

    let [first, last] = [messages[0].clone(), messages[STORED - 1].clone()];
    let alternating: Vec<_> =
        (0..SENT).map(|n| if n % 2 == 0 { first.clone() } else { last.clone() }).collect();
    let matched = match_branch(&stored, &of(&alternating));
    assert_eq!((matched.case, matched.kept), (BranchCase::Continues, STORED));

    let results: Vec<_> = (0..SENT).map(|n| result(&format!("t{n}"), "c", "x")).collect();
    let matched = match_branch(&stored, &of(&results));
    assert_eq!((matched.case, matched.appended.len()), (BranchCase::NothingKnown, SENT));
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn the_first_of_several_messages_with_one_id_is_used() {
    let twice = [Message::user("u3", "one"), Message::user("u3", "two")];
    let list =
        gives(&two_turns(), &twice, BranchCase::NothingKnown, &["u1", "a1", "u2", "a2", "u3"]);
    assert_eq!(list[4], twice[0]);
    gives(&Branch::default(), &twice, BranchCase::New, &["u3"]);
    let known = [Message::user("u2", "one"), answer("a2"), Message::user("u2", "two")];
    assert_eq!(
        gives(&two_turns(), &known, BranchCase::Continues, &["u1", "a1", "u2", "a2"])[2],
        known[0]
    );
}

#[test]
fn a_client_that_returns_to_a_branch_continues_it() {
    let node = |number, parent, message, origin| MessageNode {
        number: MessageNumber(number),
        parent: MessageNumber(parent),
        message,
        origin,
        feedback: None,
    };
    let nodes = [
        node(1, 0, user("u1"), MessageOrigin::Client),
        node(2, 1, answer("a1"), DELIVERED),
        node(3, 1, answer("other"), DELIVERED),
        node(4, 2, user("u2"), MessageOrigin::Client),
    ];
    let find = |parent, client: &[Message]| {
        let found =
            find_existing_branch(&nodes, MessageNumber(parent), &client.iter().collect::<Vec<_>>());
        found.iter().map(|node| node.number.0).collect::<Vec<_>>()
    };
    assert_eq!(find(1, &[answer("a1"), user("u2"), user("u3")]), [2, 4]);
    assert_eq!(find(1, &[answer("other"), user("u2")]), [3]);
    assert_eq!(
        find(1, &[Message::assistant("a1", "forged")]),
        [2],
        "a run's message is as the run made it"
    );
    assert_eq!(
        find(2, &[Message::user("u2", "edited")]),
        [0; 0],
        "a client's with another text is another one"
    );
}
