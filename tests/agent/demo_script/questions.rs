//! The questions of the demo script, and the replies to them.

use serde_json::{Value, json};

use super::{
    DEMO,
    player::{Talk, results_and_text},
};

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_call_waits_for_approval_and_gets_its_result_in_the_next_run() {
    let (yes, no) = (json!({ "approved": true }), json!({ "approved": false }));
    let edited = json!({ "approved": true, "editedArgs": { "to": "bob@b.c", "subject": "Tea", "body": "" } });
    let not_edited = json!({ "approved": false, "editedArgs": { "to": "bob@b.c", "subject": "Tea", "body": "" } });
    let (sent, declined) = ("sent to ada@example.com", "declined, so it was not sent");
    for (trigger, payload, result, text) in [
        ("approve", &yes, sent, "The e-mail \"Lunch\": sent to ada@example.com."),
        ("approve", &edited, "sent to bob@b.c", "The e-mail \"Tea\": sent to bob@b.c."),
        ("Approve it", &no, declined, "The e-mail \"Lunch\": declined, so it was not sent."),
        ("approve", &not_edited, declined, "The e-mail \"Lunch\": declined, so it was not sent."),
        ("approve", &Value::Null, declined, "The e-mail \"Lunch\": declined, so it was not sent."),
        ("批准", &edited, "已发送给 bob@b.c", "邮件「Tea」已发送给 bob@b.c。"),
        ("批准", &no, "没有发送，因为被拒绝了", "邮件「午饭」没有发送，因为被拒绝了。"),
    ] {
        let mut talk = Talk::with(DEMO);
        let asked = talk.say(trigger).await;
        let started = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"];
        let called = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"];
        assert_eq!(types(&asked), [&started[..], &called, &["RUN_FINISHED"]].concat());
        let interrupt = &asked[6]["outcome"]["interrupts"][0];
        let call = asked[3]["toolCallId"].as_str().unwrap();
        assert_eq!(interrupt["id"], format!("int_{call}"));
        assert_eq!(interrupt["toolCallId"], call);
        assert_eq!(interrupt["reason"], "tool_call");
        assert!(interrupt["message"].as_str().unwrap().contains("ada@example.com"));
        assert_eq!(interrupt["responseSchema"]["required"], json!(["approved"]));
        assert_eq!(interrupt["responseSchema"]["properties"]["editedArgs"]["type"], "object");
        let answered = talk.reply(std::slice::from_ref(payload)).await;
        assert_eq!(
            results_and_text(&answered),
            (vec![(call, result)], text.to_owned()),
            "{trigger} {payload}"
        );
    }
}

#[tokio::test]
async fn two_calls_are_decided_together_and_each_gets_its_own_result() {
    let (yes, no) = (json!({ "approved": true }), json!({ "approved": false }));
    for (trigger, payloads, train, hotel) in [
        (
            "approve two",
            [&yes, &yes],
            "a train to Beijing is booked",
            "a hotel in Beijing is booked for 2 nights",
        ),
        (
            "approve two",
            [&yes, &no],
            "a train to Beijing is booked",
            "declined, so no hotel is booked",
        ),
        (
            "approve two",
            [&Value::Null, &yes],
            "declined, so no train is booked",
            "a hotel in Beijing is booked for 2 nights",
        ),
        ("批准两个", [&yes, &Value::Null], "已预订去北京的火车票", "没有预订酒店，因为被拒绝了"),
    ] {
        let mut talk = Talk::with(DEMO);
        let asked = talk.say(trigger).await;
        let interrupts = asked.last().unwrap()["outcome"]["interrupts"].as_array().unwrap();
        assert_eq!(interrupts.len(), 2);
        assert_eq!(
            interrupts[0]["responseSchema"]["properties"],
            json!({ "approved": { "type": "boolean" } })
        );
        let calls = talk.calls();
        let answered = talk.reply(&payloads.map(Clone::clone)).await;
        let (results, text) = results_and_text(&answered);
        assert_eq!(results, [(&*calls[0], train), (&*calls[1], hotel)]);
        assert!(
            text.contains(&format!("{train}; {hotel}"))
                || text.contains(&format!("{train}；{hotel}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn arguments_are_not_edited_where_the_schema_offers_no_edits() {
    let mut talk = Talk::with(DEMO);
    talk.say("approve two").await;
    let edited = json!({ "approved": true, "editedArgs": { "to": "Mars" } });
    let answered = talk.reply(&[edited, json!({ "approved": true })]).await;
    assert_eq!(results_and_text(&answered).0[0].1, "declined, so no train is booked");
}

#[tokio::test]
async fn a_form_is_sent_or_refused() {
    let form = json!({ "name": "Ada", "email": "a@b.c", "size": "M" });
    let none = "All right, no T-shirt then.";
    for (trigger, payload, expected) in [
        (
            "form",
            &form,
            "Thank you, Ada! Your T-shirt in size M is set aside, and a@b.c gets a confirmation.",
        ),
        ("form", &Value::Null, none),
        ("form", &json!({ "name": "Ada", "email": "a@b.c", "size": "XXL" }), none),
        ("form", &json!({ "name": "Ada" }), none),
        ("form", &json!("Ada"), none),
        ("表单", &form, "谢谢你，Ada！M 码的 T 恤留好了，确认信会发到 a@b.c。"),
        ("表单", &json!(false), "好的，那就不要 T 恤了。"),
    ] {
        let mut talk = Talk::with(DEMO);
        let asked = talk.say(trigger).await;
        let interrupt = &asked.last().unwrap()["outcome"]["interrupts"][0];
        assert_eq!(interrupt["reason"], "input_required");
        assert_eq!(interrupt.get("toolCallId"), None);
        assert_eq!(interrupt["responseSchema"]["required"], json!(["name", "email", "size"]));
        let answered = talk.reply(std::slice::from_ref(payload)).await;
        assert_eq!(
            results_and_text(&answered),
            (vec![], expected.to_owned()),
            "{trigger} {payload}"
        );
    }
}

#[tokio::test]
async fn expires_in_secs_becomes_a_time_in_iso_8601() {
    let mut talk = Talk::with(DEMO);
    let before = jiff::Timestamp::now().as_second();
    talk.say("form").await;
    let expires_at = talk.interrupts[0].expires_at.clone().unwrap();
    assert!(
        expires_at.len() == "2026-01-01T00:00:00Z".len() && expires_at.ends_with('Z'),
        "{expires_at}"
    );
    let expires_at: jiff::Timestamp = expires_at.parse().unwrap();
    assert!((3599..3700).contains(&(expires_at.as_second() - before)), "{expires_at}");
}
