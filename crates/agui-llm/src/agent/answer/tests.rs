use serde_json::json;

use super::super::tests::{Scripted, ask, call, done, increment, play, text};
use super::*;
use crate::LlmAgent;
use agui_tools::Approval;

fn builder<'r>(
    provider: &'r str,
    cx: &'r RunContext,
    call_ids: &'r mut CallIds,
) -> AnswerBuilder<'r> {
    AnswerBuilder::new(provider, call_ids, ForeignTexts { cx, messages: &[], current: Vec::new() })
}

fn skipped(name: &str) -> Vec<ModelEvent> {
    let attachment = SkippedAttachment {
        kind: "document",
        name: Some(name.to_owned()),
        mime_type: Some("text/csv".to_owned()),
        reason: "unreadable".to_owned(),
    };
    vec![ModelEvent::Skipped(attachment)]
}

#[test]
fn a_skipped_attachment_is_told_once_in_a_run() {
    let model = Scripted::new([
        done([skipped("a"), skipped("a"), skipped("b"), call(0, "c", "increment", r#"{"n":1}"#)]),
        done([skipped("b"), skipped("a"), skipped("a"), text(0, "2")]),
    ]);
    let played = play(LlmAgent::new(model).tools(increment(Approval::NotNeeded)), ask("?"));
    let told: Vec<_> = played
        .events
        .iter()
        .map(|event| event.starts_with("CUSTOM \"agui-server.attachment_skipped\""))
        .collect();
    assert_eq!(told[..4], [true, true, true, false]);
    assert_eq!(told.iter().filter(|is_told| **is_told).count(), 3);
}

#[test]
fn citations_are_in_the_metadata_of_their_message() {
    let cited = vec![
        ModelEvent::Start { index: 0, block: BlockStart::Text },
        ModelEvent::Delta { index: 0, text: "It is sunny.".to_owned() },
        ModelEvent::Citation { index: 0, citation: json!({ "url": "https://a.example" }) },
        ModelEvent::Citation { index: 0, citation: json!("x".repeat(MAX_CITATION_BYTES)) },
        ModelEvent::End { index: 0, artefact: None },
        ModelEvent::Stop(StopReason::Done),
    ];
    let cx = RunContext::new("t", "r", "a");
    let mut call_ids = CallIds::new(cx.clone(), HashSet::new());
    let mut builder = builder("p", &cx, &mut call_ids);
    let mut events = Vec::new();
    for event in cited.clone() {
        builder.apply(event, &mut events);
    }
    let expected = json!({ "agui-server.citations": [{ "url": "https://a.example" }] });
    assert_eq!(serde_json::to_value(events.last().unwrap()).unwrap()["metadata"], expected);
    let answer = builder.finish().unwrap();
    assert_eq!(serde_json::to_value(&answer.messages[0]).unwrap()["metadata"], expected);
    let played = play(LlmAgent::new(Scripted::new([cited])), ask("?"));
    assert_eq!(serde_json::to_value(&played.messages[1]).unwrap()["metadata"], expected);
}

#[test]
fn reasoning_keeps_the_name_of_its_vendor_also_without_an_artefact() {
    let thought = [
        ModelEvent::Start { index: 0, block: BlockStart::Reasoning { redacted: false } },
        ModelEvent::Delta { index: 0, text: "hm".to_owned() },
        ModelEvent::End { index: 0, artefact: None },
        ModelEvent::Stop(StopReason::Done),
    ];
    let cx = RunContext::new("t", "r", "a");
    let mut call_ids = CallIds::new(cx.clone(), HashSet::new());
    let mut builder = builder("deepseek", &cx, &mut call_ids);
    let mut events = Vec::new();
    for event in thought {
        builder.apply(event, &mut events);
    }
    let expected = json!({"agui-server.provider": "deepseek"});
    let told: Vec<_> = events.iter().filter_map(|event| event.base().metadata()).collect();
    assert_eq!(serde_json::to_value(told).unwrap(), json!([expected]));
    let answer = builder.finish().unwrap();
    assert_eq!(serde_json::to_value(&answer.messages[0]).unwrap()["metadata"], expected);
}
