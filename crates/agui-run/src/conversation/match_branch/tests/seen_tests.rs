//! What a client has seen although its list does not show it, and what it shows although the branch does not have it.

use super::*;
use agui_protocol::{ContentPart, PartSource};

#[test]
fn activities_that_are_a_whole_answer_are_shown_by_the_message_before_them() {
    let picture =
        || Message::Activity(ActivityMessage::new("f1", "agui-server.file", JsonObject::new()));
    let painted = |origin| {
        branch([
            (user("u1"), MessageOrigin::Client),
            (reasoning("r1"), origin),
            (picture(), origin),
        ])
    };
    let mut stored = painted(DELIVERED);
    let next = [user("u1"), user("u2")];
    gives(&stored, &next, BranchCase::Continues, &["u1", "r1", "f1", "u2"]);
    gives(&stored, &[user("u1")], BranchCase::Branches, &["u1"]);
    gives(&painted(UNDELIVERED), &next, BranchCase::Unseen, &["u1", "r1", "f1", "u2"]);
    stored.push(user("u3"), MessageNumber(4), MessageOrigin::Client);
    gives(&stored, &next, BranchCase::Branches, &["u1", "r1", "f1", "u2"]);
}

#[test]
fn a_client_that_shows_the_begin_of_an_answer_has_not_seen_what_follows_it() {
    let call = |arguments: &str| {
        let tool_calls = Some(vec![ToolCall::new("c", "f", arguments)]);
        Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::new("a1") })
    };
    let text = |text: &str| Message::assistant("a1", text);
    let thinks = |text: &str| Message::Reasoning(ReasoningMessage::new("a1", text));
    for (whole, begin, is_begin) in [
        (text("Hello"), text("Hel"), true),
        (text("Hello"), text(""), true),
        (text("Hello"), text("Hello"), false),
        (text("Hello"), text("Hallo"), false),
        (thinks("Hm, well"), thinks("Hm"), true),
        (call(r#"{"a":1}"#), call(r#"{"a""#), true),
        (call(r#"{"a":1}"#), call(r#"{"b""#), false),
        (calling("a1", &["c", "d"]), calling("a1", &["c"]), true),
        (calling("a1", &["c"]), calling("a1", &["c", "d"]), false),
    ] {
        let nodes = [(user("u1"), MessageOrigin::Client), (whole.clone(), DELIVERED)];
        let client = [user("u1"), begin, user("u2")];
        let matched = match_branch(&branch(nodes.clone()), &of(&client));
        assert_eq!(
            (matched.case, matched.client_differs),
            (BranchCase::Continues, is_begin),
            "{whole:?}"
        );
        let more = branch(nodes.into_iter().chain([(answer("a2"), DELIVERED)]));
        let case = if is_begin { BranchCase::Unseen } else { BranchCase::Branches };
        assert_eq!(match_branch(&more, &of(&client)).case, case, "{whole:?}");
    }
}

#[test]
fn a_result_that_is_the_reply_to_an_interrupt_is_left_out() {
    let stored = stored(&[user("u1"), calling("a1", &["c", "d"])]);
    let reply = || result("reply", "c", "yes");
    let c = ToolCallId::from("c");
    let matched = |client: &[Message], call: &ToolCallId| {
        let matched =
            match_branch(&stored, &ClientList { answered_calls: vec![call], ..of(client) });
        (ids(&list(&stored, client, &matched)).join(" "), matched.client_differs)
    };
    let client = [user("u1"), calling("a1", &["c", "d"]), reply(), result("t", "d", "done")];
    assert_eq!(matched(&client, &c), ("u1 a1 t".to_owned(), true));
    assert_eq!(matched(&client, &"x".into()), ("u1 a1 reply t".to_owned(), false));
    let client_at = |at: &[usize]| at.iter().copied().map(AppendedMessage::Client).collect();
    let (appended, left): (Vec<_>, Vec<_>) = (client_at(&[0, 1, 2]), client_at(&[0, 2]));
    let of_branch = [user("u2"), reply(), user("u3")];
    let replied = ClientList { answered_calls: vec![&c], ..of(&of_branch) };
    let (case, updated) = (BranchCase::Branches, Vec::new());
    let mut other = BranchMatch { case, kept: 1, updated, appended, client_differs: false };
    other.leave_out_replies(&replied);
    assert_eq!((other.appended, other.client_differs), (left, true));
}

#[test]
fn words_in_place_of_parts_that_a_client_cannot_read_change_nothing() {
    let image = ContentPart::image(PartSource::Url {
        value: "https://a.test/b.png".into(),
        mime_type: None,
    });
    let parts = Message::user("u1", MessageContent::Parts(vec![ContentPart::text("Look:"), image]));
    let stored = stored(&[parts.clone(), answer("a1")]);
    let asks = |text: &str| [Message::user("u1", text), answer("a1"), user("u2")];
    let held = asks("Look:\n\n[image]");
    assert_eq!(gives(&stored, &held, BranchCase::Continues, &["u1", "a1", "u2"])[0], parts);
    let edited = asks("Look there:\n\n[image]");
    assert_eq!(gives(&stored, &edited, BranchCase::Continues, &["u1", "a1", "u2"])[0], edited[0]);
}

#[test]
fn a_client_has_not_seen_the_ends_of_runs_that_were_running_when_its_request_came() {
    let of_run = |run| MessageOrigin::Run { run: RunNumber(run), delivered: true };
    let stored = branch([
        (user("u0"), MessageOrigin::Client),
        (answer("a0"), of_run(1)),
        (user("u1"), MessageOrigin::Client),
        (answer("a1"), of_run(2)),
        (user("u2"), MessageOrigin::Client),
        (answer("a2"), of_run(3)),
    ]);
    let shows = [user("u0"), answer("a0"), user("u1")];
    let with =
        |more: &[&str]| [&shows[..], &more.iter().map(|id| user(id)).collect::<Vec<_>>()].concat();
    for (first, client, case) in [
        (Some(2), with(&["u2", "u3"]), BranchCase::Unseen),
        // Another tab, which has not seen u2 either.
        (Some(2), with(&["u3"]), BranchCase::Unseen),
        (Some(3), with(&["u3"]), BranchCase::Branches),
        (None, with(&["u3"]), BranchCase::Branches),
        // Another answer is asked for.
        (Some(2), with(&[]), BranchCase::Branches),
        // An edit: u1 came before the request.
        (Some(2), vec![user("u0"), answer("a0"), user("u3")], BranchCase::Branches),
    ] {
        let list = ClientList { came_during: first.map(RunNumber), ..of(&client) };
        let matched = match_branch(&stored, &list);
        assert_eq!(matched.case, case, "{first:?} {client:?}");
        let kept = if case == BranchCase::Unseen { 6 } else { matched.kept };
        assert_eq!(matched.kept, kept, "all messages stay");
    }
}

#[test]
fn another_answer_of_a_run_that_broke_off_keeps_the_results_of_its_calls() {
    let stored = |origin| {
        branch([
            (user("u1"), MessageOrigin::Client),
            (calling("a1", &["c"]), origin),
            (result("t1", "c", "paid"), origin),
            (answer("a2"), origin),
        ])
    };
    let matched = |origin, client: &[Message]| {
        let stored = stored(origin);
        let matched = match_branch(&stored, &of(client));
        (matched.case, ids(&list(&stored, client, &matched)).join(" "), matched.client_differs)
    };
    let branches = |ids: &str, differs| (BranchCase::Branches, ids.to_owned(), differs);
    assert_eq!(matched(UNDELIVERED, &[user("u1")]), branches("u1 a1 t1", true));
    assert_eq!(matched(DELIVERED, &[user("u1")]), branches("u1", false));
    let edited = [Message::user("u1", "Pay 5")];
    assert_eq!(matched(UNDELIVERED, &edited), branches("u1", false));
}
