use serde_json::json;

use super::*;
use crate::{
    ModelEvent,
    ModelEvent::{Citation, Delta, End, Start, Stop, Usage},
    providers::gemini::signature::{call_signature, text_parts, thought_parts},
};

fn decode(events: &[Value]) -> Result<(Vec<ModelEvent>, bool), DecodeFault> {
    let (mut decoder, mut output) = (GeminiDecoder::new("m"), AnswerEvents::default());
    for event in events {
        decoder.event(None, &event.to_string(), &mut output)?;
    }
    let whole = decoder.finish(&mut output);
    Ok((Vec::from(std::mem::take(&mut output.events)), whole))
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "m"})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason, "index": 0}]})
}

fn said(index: usize, text: &str) -> ModelEvent {
    Delta { index, text: text.to_owned() }
}

fn end(index: usize) -> ModelEvent {
    End { index, artefact: None }
}

/// Returns the artefact of the end of a block.
fn artefact(events: &[ModelEvent], block: usize) -> &str {
    let artefact = events.iter().rev().find_map(|event| match event {
        End { index, artefact } if *index == block => {
            artefact.as_ref().map(|artefact| &*artefact.value)
        }
        _ => None,
    });
    artefact.unwrap_or_default()
}

fn stop(events: &[Value]) -> ModelEvent {
    decode(events).unwrap().0.pop().unwrap()
}

#[test]
fn an_answer_of_thoughts_text_and_calls() {
    let (events, whole) = decode(&[
        parts(json!([{"text": "hm", "thought": true}])),
        parts(json!([{"text": " so", "thought": true}])),
        parts(json!([{"text": "well"}])),
        parts(json!([{"text": ""}, {"text": " then"}])),
        parts(json!([{"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}}, {"functionCall": {"name": "g"}}])),
        finish("STOP"),
    ])
    .unwrap();
    assert!(whole);
    let Start { block: BlockStart::Call { id, .. }, .. } = &events[10] else {
        panic!("{events:?}")
    };
    assert!(id.len() > 8, "a call without an id gets one: {id:?}");
    let expected = [
        Start { index: 0, block: BlockStart::Reasoning { redacted: false } },
        said(0, "hm"),
        said(0, " so"),
        end(0),
        Start { index: 1, block: BlockStart::Text },
        said(1, "well"),
        said(1, " then"),
        Start { index: 2, block: BlockStart::Call { id: "a".into(), name: "f".to_owned() } },
        said(2, "{\"x\":1}"),
        end(2),
        Start { index: 3, block: BlockStart::Call { id: id.clone(), name: "g".to_owned() } },
        said(3, "{}"),
        end(3),
        end(1),
        Stop(StopReason::Calls),
    ];
    assert_eq!(events, expected);
}

#[test]
fn signatures_are_the_artefacts_of_their_blocks() {
    let (events, _) = decode(&[
        parts(json!([{"text": "hm", "thought": true, "thoughtSignature": "s0"}])),
        parts(json!([{"text": "one"}])),
        parts(json!([{"text": " two", "thoughtSignature": "s1"}])),
        parts(json!([{"text": "", "thoughtSignature": "s2"}])),
        parts(json!([{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s3"}])),
        parts(json!([{"functionCall": {"name": "g", "args": {}}}])),
        parts(json!([{"thoughtSignature": "s4"}])),
        finish("STOP"),
    ])
    .unwrap();
    let thought = json!({"text": "hm", "thought": true, "thoughtSignature": "s0"});
    assert_eq!(thought_parts("hm", artefact(&events, 0)), [thought]);
    let text = [
        json!({"text": "one"}),
        json!({"text": " two", "thoughtSignature": "s1"}),
        json!({"text": "", "thoughtSignature": "s2"}),
    ];
    assert_eq!(text_parts("one two", Some(artefact(&events, 1))), text);
    assert_eq!(call_signature(artefact(&events, 2)), Some("s3"));
    assert_eq!(artefact(&events, 3), "");
    // A signature without a text is hidden reasoning.
    assert!(events.contains(&Start { index: 4, block: BlockStart::Reasoning { redacted: true } }));
    assert_eq!(
        text_parts("", Some(artefact(&events, 4))),
        [json!({"text": "", "thoughtSignature": "s4"})]
    );
}

#[test]
fn each_finish_reason_has_a_meaning() {
    let text = parts(json!([{"text": "a"}]));
    for (reason, expected) in [
        ("STOP", StopReason::Done),
        ("FUNCTION_CALL", StopReason::Done),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Filtered),
        ("RECITATION", StopReason::Filtered),
        ("LANGUAGE", StopReason::Filtered),
        ("PROHIBITED_CONTENT", StopReason::Filtered),
        ("SPII", StopReason::Filtered),
        ("BLOCKLIST", StopReason::Filtered),
    ] {
        assert_eq!(stop(&[text.clone(), finish(reason)]), Stop(expected), "{reason}");
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        assert_eq!(stop(&[finish(reason)]), Stop(StopReason::MalformedCall), "{reason}");
    }
    for reason in ["OTHER", "SOMETHING_NEW"] {
        let last = json!({"candidates": [{"finishReason": reason, "finishMessage": "why"}]});
        let Err(DecodeFault::Failed { kind, message }) = decode(&[last]) else {
            panic!("{reason}")
        };
        assert_eq!(kind, FailureKind::Unavailable, "{reason}");
        assert_eq!(message, format!("the model stopped with {reason}. why"));
    }
    let repeated = decode(&[finish("MISSING_THOUGHT_SIGNATURE")]);
    assert!(
        matches!(repeated, Err(DecodeFault::Failed { kind: FailureKind::Other, .. })),
        "{repeated:?}"
    );
    let call = parts(json!([{"functionCall": {"name": "f"}}]));
    assert_eq!(stop(&[call.clone(), finish("MAX_TOKENS")]), Stop(StopReason::Length));
    assert_eq!(stop(&[call, finish("FUNCTION_CALL")]), Stop(StopReason::Calls));
}

#[test]
fn an_answer_without_a_finish_reason_is_not_complete() {
    assert!(!decode(&[]).unwrap().1);
    assert!(!decode(&[parts(json!([{"text": "a"}]))]).unwrap().1);
    assert!(!decode(&[finish("FINISH_REASON_UNSPECIFIED")]).unwrap().1);
    assert!(!decode(&[json!({"usageMetadata": {"promptTokenCount": 1}})]).unwrap().1);
}

#[test]
fn a_blocked_prompt_is_filtered() {
    let (events, whole) =
        decode(&[json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})]).unwrap();
    assert!(whole);
    assert_eq!(events, [Stop(StopReason::Filtered)]);
    let unspecified = json!({"promptFeedback": {"blockReason": "BLOCKED_REASON_UNSPECIFIED"}});
    assert!(!decode(&[unspecified]).unwrap().1);
}

#[test]
fn usage_is_reported_when_it_changes() {
    let count = |candidates: u64| json!({"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": candidates}});
    let (events, _) =
        decode(&[count(1), count(1), json!({"usageMetadata": {}}), count(2), finish("STOP")])
            .unwrap();
    let outputs: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Usage(usage) => usage.output_tokens,
            _ => None,
        })
        .collect();
    assert_eq!(outputs, [1, 2]);
}

#[test]
fn sources_are_citations_of_the_last_text_before_its_end() {
    let grounding = json!({"groundingChunks": [{"web": {"uri": "a"}}], "groundingSupports": []});
    let last = json!({"candidates": [{"finishReason": "STOP", "groundingMetadata": grounding}]});
    let (events, _) = decode(&[parts(json!([{"text": "a"}])), last.clone()]).unwrap();
    let citation = json!({"sources": [{"web": {"uri": "a"}}]});
    let expected = [
        Start { index: 0, block: BlockStart::Text },
        said(0, "a"),
        Citation { index: 0, citation },
        end(0),
        Stop(StopReason::Done),
    ];
    assert_eq!(events, expected);
    assert_eq!(decode(&[last]).unwrap().0, [Stop(StopReason::Done)], "no text, no citation");
}

#[test]
fn sources_that_come_after_a_call_or_a_thought_belong_to_the_text_before_it() {
    let grounding = json!({"groundingChunks": [{"web": {"uri": "a"}}]});
    let last = json!({"candidates": [{"finishReason": "STOP", "groundingMetadata": grounding}]});
    for between in
        [json!({"functionCall": {"id": "c", "name": "f"}}), json!({"text": "hm", "thought": true})]
    {
        let (events, _) =
            decode(&[parts(json!([{"text": "a"}])), parts(json!([between])), last.clone()])
                .unwrap();
        let at = |wanted: &dyn Fn(&ModelEvent) -> bool| events.iter().position(wanted).unwrap();
        let cited = at(&|event| matches!(event, Citation { index: 0, .. }));
        let ended = at(&|event| matches!(event, End { index: 0, .. }));
        assert_eq!(ended, cited + 1, "{events:?}");
        assert_eq!(events.len(), ended + 2, "{events:?}");
    }
    // A text ends when another one starts.
    let texts =
        [parts(json!([{"text": "a"}, {"text": "hm", "thought": true}, {"text": "b"}])), last];
    let (events, _) = decode(&texts).unwrap();
    let text = |index| Start { index, block: BlockStart::Text };
    assert_eq!(events[5..7], [end(0), text(2)], "{events:?}");
    assert!(matches!(events[8], Citation { index: 2, .. }), "{events:?}");
}

#[test]
fn errors_come_as_objects_and_as_lists() {
    let error = |code: u64, status: &str| json!({"error": {"code": code, "message": "no", "status": status}});
    for (event, kind) in [
        (error(429, "RESOURCE_EXHAUSTED"), FailureKind::RateLimited),
        (error(503, "UNAVAILABLE"), FailureKind::Unavailable),
        (json!([error(500, "INTERNAL")]), FailureKind::Unavailable),
        (error(504, ""), FailureKind::Unavailable),
        (error(400, "INVALID_ARGUMENT"), FailureKind::Other),
        (json!({"error": {"message": "no"}}), FailureKind::Other),
    ] {
        let failed = decode(&[parts(json!([{"text": "a"}])), event.clone()]);
        assert_eq!(failed, Err(DecodeFault::Failed { kind, message: "no".to_owned() }), "{event}");
    }
}

#[test]
fn events_that_are_no_responses_are_errors_and_unknown_parts_are_ignored() {
    for event in [json!(7), json!("a"), json!([[]])] {
        assert!(
            matches!(decode(std::slice::from_ref(&event)), Err(DecodeFault::Malformed(_))),
            "{event}"
        );
    }
    let (mut decoder, mut output) = (GeminiDecoder::new("m"), AnswerEvents::default());
    for data in ["", " ", "[DONE]"] {
        assert_eq!(decoder.event(None, data, &mut output), Ok(DecodeStep::More));
    }
    assert!(matches!(
        decoder.event(None, "{\"candidates\": [", &mut output),
        Err(DecodeFault::Malformed(_))
    ));
    let nameless = parts(json!([{"functionCall": {"args": {}}}]));
    assert!(matches!(decode(&[nameless]), Err(DecodeFault::Malformed(_))));
    let strange = [
        parts(
            json!([{"executableCode": {"code": "1"}}, {"inlineData": {"data": "AA=="}}, 7, null]),
        ),
        json!({"candidates": null}),
        json!({"candidates": [{"content": {}}, {"content": {"parts": [{"text": "b"}]}, "index": 1}]}),
        finish("STOP"),
    ];
    assert_eq!(decode(&strange).unwrap().0, [Stop(StopReason::Done)]);
}

#[test]
fn signatures_are_kept_within_a_limit() {
    let signature = "x".repeat(1 << 20);
    let part = parts(json!([{"text": "a", "thoughtSignature": signature}]));
    assert!(decode(&vec![part.clone(); 8]).is_ok());
    assert!(matches!(decode(&vec![part; 9]), Err(DecodeFault::Malformed(_))));
}

#[test]
fn a_picture_stands_between_texts_and_drafts_are_left_out() {
    let image = |data: &str| json!({"inlineData": {"mimeType": "image/png", "data": data}});
    let mut draft = image("AAAA");
    draft["thought"] = true.into();
    let (events, _) = decode(&[
        parts(json!([draft, {"text": "a"}])),
        parts(json!([image("BBBB"), {"text": "b"}])),
        finish("STOP"),
    ])
    .unwrap();
    let media = ModelEvent::Media { media_type: "image/png".to_owned(), base64: "BBBB".to_owned() };
    let start = |index| Start { index, block: BlockStart::Text };
    let expected = [
        start(0),
        said(0, "a"),
        media,
        end(0),
        start(1),
        said(1, "b"),
        end(1),
        Stop(StopReason::Done),
    ];
    assert_eq!(events, expected);
}
