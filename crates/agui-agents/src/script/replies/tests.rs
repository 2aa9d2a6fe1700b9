use serde_json::{Value, json};

use crate::script::{
    Script,
    tests::player::{Talk, results_and_text},
};
use agui_agent::Agent as _;
use agui_protocol::Message;

/// Asks for two approvals of one tool and for a date, all at once.
const MIXED: &str = r#"
[[answer]]
when.user = "go"
play = [
    { calls = [{ call = "pay", args = { to = "Ada", sum = 1 } }, { call = "pay", args = { to = "Bob" } }] },
    { call = "look", result = "seen" },
    { interrupts = [
        { name = "a-date", message = "When? {text}", metadata = { kind = "date" } },
        { call = "pay", message = "Pay {args.to}?", schema = { properties = { editedArgs = {} } } },
        { call = "pay", message = "Pay {args.to}, too?", schema = { properties = { editedArgs = {} } } },
    ] },
]

[[answer]]
when.replies = "a-date"
play = [{ text = "only the date" }]

[[answer]]
when.replies = ["pay", "a-date"]
when.approved = true
play = [
    { result_of = "*", approved = "paid {args.to} {args.sum} {reply.note}", declined = "" },
    { text = "yes: {results} on {reply.day}, first {args.to}" },
]

[[answer]]
when.replies = ["pay", "a-date"]
join = " + "
play = [
    { result_of = "pay", approved = "paid {args.to}", declined = "kept from {args.to} {reply}" },
    { text = "no: {results}" },
]

[[answer]]
when.replies = "*"
play = [{ result_of = "*", approved = "some", declined = "none" }]

[[answer]]
play = [{ text = "nothing was answered" }]
"#;

#[tokio::test]
async fn questions_about_calls_of_one_tool_follow_the_order_of_the_calls() {
    let mut talk = Talk::with(MIXED);
    talk.say("go").await;
    let calls = talk.calls();
    let [date, ada, bob] = &talk.interrupts[..] else { panic!("{:?}", talk.interrupts) };
    assert_eq!(date.message.as_deref(), Some("When? go"));
    assert_eq!(date.reason, "input_required");
    assert_eq!(date.metadata.as_ref().unwrap()["kind"], "date");
    assert_eq!(date.response_schema, None);
    assert!(date.id.starts_with("int_") && date.id.ends_with("-a-date"), "{}", date.id);
    assert_eq!(ada.message.as_deref(), Some("Pay Ada?"));
    assert_eq!(bob.message.as_deref(), Some("Pay Bob, too?"));
    assert_eq!(ada.tool_call_id.as_deref(), Some(&*calls[0]));
    assert_eq!(bob.tool_call_id.as_deref(), Some(&*calls[1]));

    // The order of the entries differs from that of the calls.
    talk.interrupts.reverse();
    let bobs = json!({ "approved": true, "note": "gladly", "editedArgs": { "to": "Bea" } });
    let answered =
        talk.reply(&[bobs, json!({ "approved": true }), json!({ "day": "Friday" })]).await;
    let (results, text) = results_and_text(&answered);
    assert_eq!(results, [(&*calls[0], "paid Ada 1 "), (&*calls[1], "paid Bea  gladly")]);
    assert_eq!(text, "yes: paid Ada 1 , paid Bea  gladly on Friday, first Ada");
}

#[tokio::test]
async fn an_unclear_reply_is_a_no() {
    let yes = json!({ "approved": true });
    for unclear in [
        json!(true),
        json!("yes"),
        json!([yes]),
        json!({}),
        json!({ "approved": "true" }),
        json!({ "approved": 1 }),
        json!({ "approved": null }),
        json!({ "approved": true, "editedArgs": "x" }),
        json!({ "approved": true, "editedArgs": [] }),
    ] {
        let mut talk = Talk::with(MIXED);
        talk.say("go").await;
        let answered = talk.reply(&[json!(true), unclear.clone(), yes.clone()]).await;
        let (results, text) = results_and_text(&answered);
        let kept = format!(
            "kept from Ada {}",
            unclear.as_str().map_or(unclear.to_string(), str::to_owned)
        );
        assert_eq!(
            results.iter().map(|(_, result)| *result).collect::<Vec<_>>(),
            [&kept, "paid Bob"]
        );
        assert_eq!(text, format!("no: {kept} + paid Bob"));
    }
    // Both calls are approved, and the form is refused.
    for no in
        [Value::Null, json!(false), json!({ "approved": false }), json!({ "approved": "maybe" })]
    {
        let mut talk = Talk::with(MIXED);
        talk.say("go").await;
        let answered =
            talk.reply(&[no, yes.clone(), json!({ "approved": true, "editedArgs": null })]).await;
        assert_eq!(results_and_text(&answered).1, "no: paid Ada + paid Bob");
    }
}

#[tokio::test]
async fn replies_to_interrupts_that_the_script_does_not_raise_are_ignored() {
    let mut talk = Talk::with(MIXED);
    talk.say("go").await;
    let (calls, before) = (talk.calls(), talk.messages.clone());
    let entry = |id: &str, payload: Value| json!({ "interruptId": id, "status": "resolved", "payload": payload });
    let pay = |call: &str| format!("int_{call}");
    let yes = json!({ "approved": true });
    let nothing = "nothing was answered";

    // Entries for unknown interrupts, unknown calls, and a call that needs no approval.
    for id in [
        "",
        "int_",
        "int_x",
        "int_x-",
        "int_x-pay",
        "int_x-look",
        "a-date",
        "interrupt-1",
        &pay(&calls[2]),
    ] {
        talk.messages.clone_from(&before);
        talk.messages.push(Message::user("user", "hello"));
        assert_eq!(
            results_and_text(&talk.run(json!([entry(id, yes.clone())])).await),
            (vec![], nothing.to_owned()),
            "{id:?}"
        );
    }
    talk.messages.clone_from(&before);
    let partly =
        talk.run(json!([entry(&pay(&calls[1]), yes.clone()), entry("junk", yes.clone())])).await;
    assert_eq!(results_and_text(&partly).0, [(&*calls[1], "some")]);
    // The same entry again, after the call has its result.
    let again = talk.run(json!([entry(&pay(&calls[1]), yes.clone())])).await;
    assert!(again.is_empty(), "{again:?}");
    // The payload of a cancelled entry is ignored.
    talk.messages.clone_from(&before);
    let cancelled =
        json!([{ "interruptId": pay(&calls[0]), "status": "cancelled", "payload": yes }]);
    assert_eq!(results_and_text(&talk.run(cancelled).await).0, [(&*calls[0], "none")]);
    let call = json!({ "id": "c", "type": "function", "function": { "name": "pay", "arguments": "{\"to\":" } });
    let message = json!({ "id": "a", "role": "assistant", "toolCalls": [call] });
    talk.messages = vec![serde_json::from_value(message).unwrap()];
    let both =
        talk.run(json!([entry("int_c", yes.clone()), entry("int_x-a-date", json!("today"))])).await;
    assert_eq!(
        results_and_text(&both),
        (vec![("c", "paid   ")], "yes: paid    on , first ".to_owned())
    );
}

#[tokio::test]
async fn a_answer_is_chosen_by_the_reply() {
    let script = r#"
        [[answer]]
        when.user = "go"
        play = [{ interrupts = [{ name = "size" }] }]
        [[answer]]
        when.replies = "size"
        when.reply.size = '^(?<kind>XX?)L$'
        play = [{ text = "very large: {kind}" }]
        [[answer]]
        when.replies = "size"
        when.reply = { size = "l", colour = "red" }
        play = [{ text = "large and red" }]
        [[answer]]
        when.replies = "size"
        when.approved = false
        play = [{ text = "no" }]
        [[answer]]
        when.replies = "size"
        play = [{ text = "something else: {reply}" }]
    "#;
    for (payload, expected) in [
        (json!({ "size": "XL" }), "very large: X"),
        (json!({ "size": "L", "colour": "dark red" }), "large and red"),
        (json!({ "size": "L" }), "something else: {\"size\":\"L\"}"),
        (json!("as you like"), "something else: as you like"),
        (Value::Null, "no"),
    ] {
        let mut talk = Talk::with(script);
        talk.say("go").await;
        assert_eq!(
            results_and_text(&talk.reply(std::slice::from_ref(&payload)).await).1,
            expected,
            "{payload}"
        );
    }
}

#[tokio::test]
async fn a_named_question_whose_schema_has_approved_needs_a_clear_yes() {
    let script = r#"
        [[answer]]
        when.user = "go"
        play = [{ interrupts = [{ name = "deploy", schema = { properties = { approved = { type = "boolean" } } } }] }]
        [[answer]]
        when.replies = "deploy"
        when.approved = true
        play = [{ text = "deployed" }]
        [[answer]]
        when.replies = "deploy"
        play = [{ text = "not deployed" }]
    "#;
    for (payload, expected) in [
        (json!({ "approved": true }), "deployed"),
        (json!({ "approved": true, "note": "now" }), "deployed"),
        (json!({ "approved": false }), "not deployed"),
        (json!({ "approved": true, "editedArgs": {} }), "not deployed"),
        (json!({}), "not deployed"),
        (json!("go ahead"), "not deployed"),
        (json!(true), "not deployed"),
        (Value::Null, "not deployed"),
    ] {
        let mut talk = Talk::with(script);
        talk.say("go").await;
        assert_eq!(
            results_and_text(&talk.reply(std::slice::from_ref(&payload)).await).1,
            expected,
            "{payload}"
        );
    }
}

#[test]
fn invalid_interrupts_and_replies_are_refused_with_their_position() {
    let asks = |play: &str| {
        format!(
            "[[answer]]\nwhen.replies = '*'\nplay = [{{ result_of = '*', approved = '', declined = '' }}]\n[[answer]]\nplay = [{play}]"
        )
    };
    let replies = |when: &str, play: &str| {
        format!(
            "[[answer]]\nplay = [{{ call = 'f' }}, {{ call = 'g' }}, {{ interrupts = [{{ call = 'f' }}, {{ name = 'n' }}] }}]\n[[answer]]\nwhen.replies = ['f', 'n']\nplay = [{{ result_of = 'f', approved = '', declined = '' }}]\n[[answer]] # here\n{when}\nplay = [{play}]"
        )
    };
    let yes = "{ result_of = 'f', approved = 'y', declined = 'n' }";
    for (script, place, expected) in [
        (asks("{ interrupts = [] }"), "{ interrupts", "`interrupts` needs at least one"),
        (
            asks("{ interrupts = [{}] }"),
            "{ interrupts",
            "an interrupt needs either `call` or `name`",
        ),
        (
            asks("{ interrupts = [{ name = 'n', call = 'f' }] }"),
            "{ interrupts",
            "an interrupt needs either",
        ),
        (
            asks("{ interrupts = [{ name = '*' }] }"),
            "{ interrupts",
            "\"*\" cannot be the name of an interrupt",
        ),
        (asks("{ interrupts = [{ nam = 'n' }] }"), "{ interrupts", "unknown field `nam`"),
        (
            asks("{ interrupts = [{ name = 'n', expires_in_secs = -1 }] }"),
            "{ interrupts",
            "invalid value: integer `-1`",
        ),
        (
            asks("{ interrupts = [{ name = 'n', message = '{arg.x}' }] }"),
            "{ interrupts",
            "the placeholder {arg.x}",
        ),
        (
            asks("{ interrupts = [{ call = 'f' }] }"),
            "{ interrupts",
            "this answer has no call of \"f\" before this",
        ),
        (
            asks("{ call = 'f', result = 'r' }, { interrupts = [{ call = 'f' }] }"),
            "{ interrupts",
            "this answer has no call",
        ),
        (
            asks("{ call = 'f' }, { interrupts = [{ call = 'f' }, { call = 'f' }] }"),
            "{ interrupts",
            "this answer has no call of \"f\" before this that waits",
        ),
        (
            asks("{ interrupts = [{ name = 'n' }] }, { text = 'a' }"),
            "{ interrupts",
            "`interrupts` end the run",
        ),
        (
            asks("{ step = 's', play = [{ interrupts = [{ name = 'n' }] }] }"),
            "{ step",
            "`interrupts` end the run",
        ),
        (
            asks("{ interrupts = [{ name = 'n' }], text = 'a' }"),
            "{ interrupts",
            "unknown field `interrupts`",
        ),
        (asks("{ text = 'a', approved = 'b' }"), "{ text", "unknown field `approved`"),
        (
            replies("when.replies = 'f'\nwhen.tool = 'f'", yes),
            "[[answer]] # here",
            "`tool` and `replies` are about",
        ),
        (
            replies("when.approved = true", ""),
            "[[answer]] # here",
            "`approved` and `reply` are about",
        ),
        (replies("when.reply.x = ''", ""), "[[answer]] # here", "`approved` and `reply` are about"),
        (replies("when.replies = 'n'\nwhen.reply.x = '('", ""), "'('", "not a regular expression"),
        (
            replies("when.replies = 'f'", "{ result_of = 'f', approved = '' }"),
            "{ result_of = 'f', approved = '' }",
            "missing field `declined`",
        ),
    ] {
        let error = Script::parse(&script).expect_err(&script);
        assert!(error.message.starts_with(expected), "{script}\n{error}");
        let span = error.span.clone().unwrap_or_else(|| panic!("{script}: no place"));
        assert!(
            script[span.start..].starts_with(place),
            "{script}\n{error}\n{}",
            &script[span.start..]
        );
    }
}

#[test]
fn a_script_declares_its_human_in_the_loop_capabilities() {
    let declared = |script: &str| {
        let capabilities =
            serde_json::to_value(Script::parse(script).unwrap().capabilities()).unwrap();
        capabilities["humanInTheLoop"].clone()
    };
    let form = "[[answer]]\nplay = [{ interrupts = [{ name = 'n' }] }]\n[[answer]]\nwhen.replies = 'n'\nplay = []";
    let some = json!({ "supported": true, "approvals": false, "interrupts": true, "approveWithEdits": false });
    assert_eq!(declared(form), some);
    let call = "[[answer]]\nplay = [{ call = 'f' }, { interrupts = [{ call = 'f' }] }]\n[[answer]]\nwhen.replies = 'f'\nplay = [{ result_of = 'f', approved = '', declined = '' }]";
    let as_it_is = json!({ "supported": true, "approvals": true, "interrupts": true, "approveWithEdits": false });
    assert_eq!(declared(call), as_it_is);
    let none = json!({ "supported": false, "approvals": false, "interrupts": false, "approveWithEdits": false });
    assert_eq!(declared("[[answer]]\nplay = []"), none);
}
