mod calls;
mod reasoning;
mod written;

use serde_json::json;

use super::*;
use crate::{
    KnownModels, ModelEvent,
    ModelEvent::{Delta, End, Start, Stop, Usage, WrittenCalls},
    ProfileOptions, WrittenCall,
};
use agui_protocol::TokenUsage;

fn decoder_with(name: &str, tools: Arc<[ToolSpec]>) -> ChatDecoder {
    let url = reqwest::Url::parse("http://host").unwrap();
    let profile = KnownModels::default().profile(Some(&ProfileOptions::named(name)), &url).unwrap();
    ChatDecoder::new("m", &profile, false, tools)
}

fn decoder(name: &str) -> ChatDecoder {
    decoder_with(name, Arc::default())
}

fn decode(events: &[String]) -> Result<(Vec<ModelEvent>, bool), DecodeFault> {
    decode_with(decoder("compatible"), events)
}

fn decode_with(
    mut decoder: ChatDecoder,
    events: &[String],
) -> Result<(Vec<ModelEvent>, bool), DecodeFault> {
    let mut output = AnswerEvents::default();
    for event in events {
        decoder.event(None, event, &mut output)?;
    }
    let whole = decoder.finish(&mut output);
    Ok((Vec::from(std::mem::take(&mut output.events)), whole))
}

/// Consecutive deltas of a block are joined.
fn deltas(deltas: &[Value]) -> Vec<ModelEvent> {
    deltas_of("compatible", deltas)
}

fn deltas_of(profile: &str, deltas: &[Value]) -> Vec<ModelEvent> {
    let chunk = |delta: &Value| {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
    };
    let events: Vec<_> = deltas.iter().map(chunk).chain(["[DONE]".to_owned()]).collect();
    let (events, whole) = decode_with(decoder(profile), &events).unwrap();
    assert!(whole);
    let mut together: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (together.last_mut(), event) {
            (Some(Delta { index, text }), Delta { index: next, text: more }) if *index == next => {
                text.push_str(&more)
            }
            (_, event) => together.push(event),
        }
    }
    together
}

fn text_block(index: usize, text: &str) -> [ModelEvent; 3] {
    let start = Start { index, block: BlockStart::Text };
    [start, Delta { index, text: text.to_owned() }, End { index, artefact: None }]
}

fn reasoning_block(index: usize, text: &str) -> [ModelEvent; 3] {
    let start = Start { index, block: BlockStart::Reasoning { redacted: false } };
    [start, Delta { index, text: text.to_owned() }, End { index, artefact: None }]
}

#[test]
fn text_and_reasoning_become_blocks_in_order() {
    let events = deltas(&[
        json!({"role": "assistant", "content": "", "refusal": null, "tool_calls": null, "reasoning_content": null}),
        json!({"reasoning_content": "th", "reasoning": "th", "content": null}),
        json!({"reasoning": "ink"}),
        json!({"content": "he"}),
        json!({"content": [{"type": "text", "text": "l"}, {"type": "image"}, {"type": "text", "text": "lo"}]}),
        json!({"reasoning_content": "more"}),
        json!({"content": "end"}),
        json!({}),
        json!(null),
    ]);
    let mut expected = Vec::from(reasoning_block(0, "think"));
    expected.extend(text_block(1, "hello"));
    expected.extend(reasoning_block(2, "more"));
    expected.extend(text_block(3, "end"));
    expected.push(Stop(StopReason::Done));
    assert_eq!(events, expected);
}

/// Returns the texts of the blocks of an answer, with `true` for reasoning.
fn blocks(events: &[ModelEvent]) -> Vec<(bool, String)> {
    let mut blocks: Vec<(bool, String)> = Vec::new();
    for event in events {
        match event {
            Start { block, .. } => {
                blocks.push((matches!(block, BlockStart::Reasoning { .. }), String::new()))
            }
            Delta { index, text } => blocks[*index].1.push_str(text),
            _ => {}
        }
    }
    blocks
}

#[test]
fn the_transcript_of_a_spoken_answer_is_its_text() {
    let audio = |audio: Value| json!({"audio": audio});
    let events = deltas(&[
        audio(json!({"id": "audio_1", "transcript": "he"})),
        audio(json!({"data": "AAAA"})),
        audio(json!({"transcript": "llo"})),
        audio(json!({"expires_at": 1})),
    ]);
    assert_eq!(blocks(&events), [(false, "hello".to_owned())]);
}

#[test]
fn an_answer_that_ends_with_an_error_has_failed() {
    for reason in ["error", "network_error", "insufficient_system_resource"] {
        let end =
            json!({"choices": [{"delta": {"content": "a"}, "finish_reason": reason}]}).to_string();
        let failure = decode(&[end]).unwrap_err();
        assert!(
            matches!(failure, DecodeFault::Failed { kind: FailureKind::Unavailable, .. }),
            "{failure:?}"
        );
    }
}

#[test]
fn an_answer_is_complete_with_a_reason_or_a_mark_only() {
    let said = json!({"choices": [{"delta": {"content": "a"}}]}).to_string();
    let reason =
        |reason: &str| json!({"choices": [{"delta": {}, "finish_reason": reason}]}).to_string();
    let stop = |events: &[String]| match decode(events).unwrap() {
        (events, true) => match events.last() {
            Some(Stop(reason)) => Some(reason.clone()),
            other => panic!("{other:?}"),
        },
        (events, false) => {
            assert!(
                !events.iter().any(|event| matches!(event, End { .. } | Stop(_))),
                "{events:?}"
            );
            None
        }
    };
    assert_eq!(stop(std::slice::from_ref(&said)), None);
    assert_eq!(stop(&[said.clone(), reason("")]), None);
    assert_eq!(stop(&[said.clone(), "[DONE]".to_owned()]), Some(StopReason::Done));
    assert_eq!(stop(&[said.clone(), " [DONE] ".to_owned()]), Some(StopReason::Done));
    for (text, expected) in [
        ("stop", StopReason::Done),
        ("tool_calls", StopReason::Done),
        ("EOS_TOKEN", StopReason::Done),
        // https://github.com/sgl-project/sglang: an aborted request.
        ("abort", StopReason::Aborted),
        ("something new", StopReason::Aborted),
        ("length", StopReason::Length),
        ("model_length", StopReason::ContextFull),
        ("content_filter", StopReason::Filtered),
        ("sensitive", StopReason::Filtered),
    ] {
        assert_eq!(stop(&[said.clone(), reason(text)]), Some(expected), "{text}");
    }
    let refusal = json!({"choices": [{"delta": {"refusal": "no"}}]}).to_string();
    assert_eq!(stop(&[refusal, reason("stop")]), Some(StopReason::Refused));
    let called =
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "f"}}]}}]})
            .to_string();
    for text in ["stop", "tool_calls", "function_call"] {
        assert_eq!(stop(&[called.clone(), reason(text)]), Some(StopReason::Calls), "{text}");
    }
    assert_eq!(stop(&[called, reason("length")]), Some(StopReason::Length));
    let nameless =
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a"}]}}]}).to_string();
    assert_eq!(stop(&[nameless, "[DONE]".to_owned()]), None);
}

#[test]
fn usage_may_come_with_any_chunk_and_is_reported_once() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 3}});
    let events = [
        json!({"choices": [], "usage": null}).to_string(),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage}).to_string(),
        json!({"choices": [], "usage": usage}).to_string(),
        json!({"usage": usage}).to_string(),
    ];
    let expected = TokenUsage {
        provider: Some("openai".to_owned()),
        model: Some("m".to_owned()),
        input_tokens: Some(9),
        output_tokens: Some(4),
        total_tokens: Some(13),
        reasoning_tokens: Some(3),
        cached_input_tokens: Some(5),
        cache_write_input_tokens: None,
    };
    assert_eq!(decode(&events).unwrap().0, [Usage(expected), Stop(StopReason::Done)]);
    for event in
        [json!({"x_groq": {"usage": usage}}), json!({"choices": [{"delta": {}, "usage": usage}]})]
    {
        let (events, _) = decode(&[event.to_string(), "[DONE]".to_owned()]).unwrap();
        assert!(matches!(events[0], Usage(_)), "{event}");
    }
}

#[test]
fn only_the_first_choice_is_read() {
    let event = json!({"choices": [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]});
    let (events, _) = decode(&[event.to_string(), "[DONE]".to_owned()]).unwrap();
    assert_eq!(events[1], Delta { index: 0, text: "a".to_owned() });
}

#[test]
fn errors_are_recognised_in_all_forms() {
    let failed = |event: Value| decode(&[event.to_string()]).unwrap_err();
    let is = |kind, message: &str| DecodeFault::Failed { kind, message: message.to_owned() };
    assert_eq!(
        failed(json!({"error": {"message": "no", "code": 400}})),
        is(FailureKind::Other, "no")
    );
    assert_eq!(
        failed(json!({"error": {"message": "no", "code": 502}})),
        is(FailureKind::Unavailable, "no")
    );
    assert_eq!(
        failed(json!({"error": {"message": "no", "code": "429"}})),
        is(FailureKind::RateLimited, "no")
    );
    assert_eq!(
        failed(json!({"error": {"message": "no", "type": "server_error", "code": null}})),
        is(FailureKind::Unavailable, "no")
    );
    let quota = json!({"error": {"message": "no", "type": "rate_limit_error", "code": "insufficient_quota"}});
    assert_eq!(failed(quota), is(FailureKind::QuotaUsedUp, "no"));
    assert_eq!(failed(json!({"error": "no"})), is(FailureKind::Other, "no"));
    for malformed in ["{", "7", "[]", "\u{0}", "{\"choices\":[}"] {
        assert!(
            matches!(decode(&[malformed.to_owned()]), Err(DecodeFault::Malformed(_))),
            "{malformed}"
        );
    }
    // Values of unknown form neither panic nor complete an answer.
    for odd in [
        "{}",
        "{\"error\":null}",
        "{\"choices\":7}",
        "{\"choices\":[7,{\"delta\":[]},{\"delta\":{\"tool_calls\":[7,{\"function\":7}]}}]}",
    ] {
        assert_eq!(decode(&[odd.to_owned()]).unwrap(), (Vec::new(), false), "{odd}");
    }
}

#[test]
fn an_endless_answer_is_an_error() {
    let (mut endless, mut output) = (decoder("compatible"), AnswerEvents::default());
    let mut failed = |piece: &dyn Fn(usize) -> Value| {
        (0..5000).find_map(|n| {
            let event = json!({"choices": [{"delta": {"tool_calls": [piece(n)]}}]}).to_string();
            endless.event(None, &event, &mut output).err()
        })
    };
    assert!(
        failed(&|n| json!({"index": n, "id": n.to_string(), "function": {"name": "f"}})).is_some()
    );
    let (mut endless, mut output) = (decoder("compatible"), AnswerEvents::default());
    let event = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x".repeat(10_000)}}]}}]});
    assert!((0..2000).any(|_| endless.event(None, &event.to_string(), &mut output).is_err()));
    // Details that are not texts count as the bytes that they have.
    let (mut endless, mut output) = (decoder("openrouter"), AnswerEvents::default());
    let detail = json!({"type": "reasoning.encrypted", "data": {"list": vec![7; 10_000]}});
    let event = json!({"choices": [{"delta": {"reasoning_details": [detail]}}]}).to_string();
    assert!((0..2000).any(|_| endless.event(None, &event, &mut output).is_err()));
    let (mut endless, mut output) = (decoder("compatible"), AnswerEvents::default());
    let event = json!({"choices": [{"delta": {"content": "a", "reasoning": "b"}}]}).to_string();
    assert!((0..2000).any(|_| endless.event(None, &event, &mut output).is_err()));
}

#[test]
fn pictures_are_media_and_those_at_urls_are_left_out() {
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let events = deltas(&[
        json!({"content": "a", "images": [image("data:image/webp;base64,AAAA"), image("https://elsewhere.example/")]}),
        json!({"content": "b", "images": null}),
    ]);
    let media =
        ModelEvent::Media { media_type: "image/webp".to_owned(), base64: "AAAA".to_owned() };
    let start = |index| Start { index, block: BlockStart::Text };
    let said = |index, text: &str| Delta { index, text: text.to_owned() };
    let end = |index| End { index, artefact: None };
    let expected = [
        start(0),
        said(0, "a"),
        end(0),
        media,
        start(1),
        said(1, "b"),
        end(1),
        Stop(StopReason::Done),
    ];
    assert_eq!(events, expected);
}
