//! The same faults at every provider's API: a huge event, a slow answer, a cut one, a compressed one, too many requests,
//! and an error in the middle of the stream.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use agui_server::llm::{Gemini, Model, ModelEvent, ModelOptions, OpenAi, ProviderClient};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::{
    anthropic, ask, client, code, deltas, openai,
    provider::{Answer, Provider, Step},
    text,
};

/// A provider's API.
struct Api {
    name: &'static str,
    model: fn(ProviderClient) -> Box<dyn Model>,
    /// The events before a piece of text, that piece, and the events after it, which complete the answer.
    events: fn(&str) -> [String; 3],
    /// An error as an event of the stream.
    error: fn() -> String,
}

fn data(event: Value) -> String {
    match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    }
}

fn all(events: &[Value]) -> String {
    events.iter().cloned().map(data).collect()
}

const APIS: &[Api] = &[
    Api {
        name: "chat completions",
        model: |client| Box::new(openai(client)),
        events: |words| {
            let choice = |delta: Value, reason: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
            [
                data(choice(json!({"role": "assistant"}), Value::Null)),
                data(choice(json!({"content": words}), Value::Null)),
                data(choice(json!({}), "stop".into())) + "data: [DONE]\n\n",
            ]
        },
        error: || data(json!({"error": {"message": "the GPU is on fire", "code": 500}})),
    },
    Api {
        name: "Responses",
        model: |client| Box::new(OpenAi::responses(ModelOptions::new("m", client)).unwrap()),
        events: |words| {
            let of = |kind: &str, more: Value| {
                let mut event = json!({"type": kind, "output_index": 0, "content_index": 0});
                event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                event
            };
            let item = json!({"type": "message", "id": "msg", "role": "assistant", "content": []});
            let whole = json!({"type": "message", "id": "msg", "role": "assistant",
                "content": [{"type": "output_text", "text": words, "annotations": []}]});
            let response =
                |status: &str| json!({"response": {"id": "resp", "status": status, "output": []}});
            [
                all(&[
                    of("response.created", response("in_progress")),
                    of("response.output_item.added", json!({"item": item})),
                ]),
                data(of("response.output_text.delta", json!({"delta": words}))),
                all(&[
                    of("response.output_item.done", json!({"item": whole})),
                    of("response.completed", response("completed")),
                ]),
            ]
        },
        error: || {
            data(
                json!({"type": "error", "code": "server_error", "message": "the GPU is on fire", "param": null}),
            )
        },
    },
    Api {
        name: "Anthropic",
        model: |client| Box::new(anthropic(client)),
        events: |words| {
            let events = super::events(words);
            [all(&events[..2]), all(&events[2..3]), all(&events[3..])]
        },
        error: || {
            data(
                json!({"type": "error", "error": {"type": "api_error", "message": "the GPU is on fire"}}),
            )
        },
    },
    Api {
        name: "Gemini",
        model: |client| {
            Box::new(Gemini::new(ModelOptions::new("gemini-3.8-flash", client)).unwrap())
        },
        events: |words| {
            let response = |candidate: Value| data(json!({"candidates": [candidate]}));
            [
                response(json!({"content": {"role": "model", "parts": [{"text": ""}]}})),
                response(json!({"content": {"role": "model", "parts": [{"text": words}]}})),
                response(json!({"finishReason": "STOP"})),
            ]
        },
        error: || {
            data(
                json!({"error": {"code": 500, "status": "INTERNAL", "message": "the GPU is on fire"}}),
            )
        },
    },
];

impl Api {
    fn model(&self, provider: &Provider) -> Box<dyn Model> {
        (self.model)(client(provider.url()))
    }

    fn model_without_retries(&self, provider: &Provider) -> Box<dyn Model> {
        (self.model)(ProviderClient { max_retries: 0, ..client(provider.url()) })
    }

    fn whole(&self, words: &str) -> String {
        (self.events)(words).concat()
    }
}

#[tokio::test]
async fn an_event_above_the_limit_is_an_error_and_a_large_one_is_not() {
    let provider = Provider::start().await;
    for api in APIS {
        let model = api.model(&provider);
        provider.answer(Answer::stream([api.whole(&"x".repeat(24 << 10))]));
        assert_eq!(text(&*model).await.len(), 24 << 10, "{}", api.name);
        provider.answer(Answer::stream([api.whole(&"x".repeat(256 << 10))]));
        assert_eq!(code(&*model).await, "model_protocol", "{}", api.name);
    }
}

#[tokio::test]
async fn a_slow_answer_is_whole_and_a_silent_one_is_an_error() {
    // The whole answer takes longer than the limit on silence, which is long for a busy machine.
    let (limit, pause) = (Duration::from_secs(3), Duration::from_millis(900));
    let of_api = |api: &'static Api| async move {
        let provider = Provider::start().await;
        let model = (api.model)(ProviderClient { idle_timeout: limit, ..client(provider.url()) });
        let [before, words, after] = (api.events)("a");
        let wait = || Step::Pause(pause);
        let slow = [
            before.clone().into(),
            wait(),
            words.clone().into(),
            wait(),
            words.into(),
            wait(),
            after.into(),
        ];
        provider.answer(Answer::stream(slow).delayed(pause));
        assert_eq!(text(&*model).await, "aa", "{}", api.name);
        provider.answer(Answer::stream([Step::from(before), Step::Stall]));
        let begun = Instant::now();
        assert_eq!(code(&*model).await, "model_timeout", "{}", api.name);
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", api.name);
    };
    futures::future::join_all(APIS.iter().map(of_api)).await;
}

#[tokio::test]
async fn an_answer_that_is_cut_anywhere_is_an_error() {
    let provider = Provider::start().await;
    for api in APIS {
        let model = api.model_without_retries(&provider);
        let [before, words, _] = (api.events)("grüß");
        let begun = before.clone() + &words;
        for cut in [0, 1, before.len() / 2, before.len(), begun.len() - 8, begun.len()] {
            let bytes = begun.as_bytes()[..cut].to_vec();
            for answer in
                [Answer::stream([bytes.clone()]), Answer::stream([bytes]).then(Step::Abort)]
            {
                let shown = format!("{}, {cut}: {answer:?}", api.name);
                provider.answer(answer);
                assert_eq!(code(&*model).await, "model_interrupted", "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn a_compressed_answer_is_read() {
    let provider = Provider::start().await;
    for api in APIS {
        let model = api.model_without_retries(&provider);
        let mut zipped = GzEncoder::new(Vec::new(), Compression::default());
        zipped.write_all(api.whole("grüß").as_bytes()).unwrap();
        let zipped = zipped.finish().unwrap();
        let whole = zipped.chunks(7).map(|piece| Step::from(piece.to_vec()));
        provider.answer(Answer::stream(whole).header("content-encoding", "gzip"));
        assert_eq!(text(&*model).await, "grüß", "{}", api.name);
        let cut = Answer::stream([zipped[..zipped.len() / 2].to_vec()])
            .header("content-encoding", "gzip");
        provider.answer(cut);
        assert_eq!(code(&*model).await, "model_interrupted", "{}", api.name);
    }
}

#[tokio::test]
async fn too_many_requests_are_repeated_after_the_wait_that_the_provider_asks_for() {
    let provider = Provider::start().await;
    for api in APIS {
        let model = api.model(&provider);
        let refusal =
            json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}});
        provider.answer(Answer::new(429, [refusal.to_string()]).header("retry-after", "1"));
        provider.answer(Answer::stream([api.whole("a")]));
        let before = provider.requests().len();
        assert_eq!(text(&*model).await, "a", "{}", api.name);
        let requests = provider.requests().split_off(before);
        assert_eq!(requests.len(), 2, "{}", api.name);
        let waited = requests[1].at - requests[0].at;
        assert!(
            waited >= Duration::from_secs(1) && waited < Duration::from_secs(20),
            "{}: {waited:?}",
            api.name
        );
        provider.answer(Answer::new(429, [refusal.to_string()]).header("retry-after", "3600"));
        assert_eq!(code(&*model).await, "model_rate_limited", "{}", api.name);
    }
}

#[tokio::test]
async fn an_error_in_the_stream_is_repeated_before_the_answer_and_reported_within_it() {
    let provider = Provider::start().await;
    for api in APIS {
        let model = api.model(&provider);
        provider.answer(Answer::stream([(api.error)()]));
        provider.answer(Answer::stream([api.whole("a")]));
        assert_eq!(text(&*model).await, "a", "{}", api.name);
        let before = provider.requests().len();
        let [start, words, _] = (api.events)("a");
        provider.answer(Answer::stream([start, words, (api.error)()]));
        let (events, error) = ask(&*model).await;
        let error = error.expect("an error");
        assert_eq!((deltas(&events).as_str(), error.code()), ("a", "model_failed"), "{}", api.name);
        assert!(error.message().contains("the GPU is on fire"), "{}: {error:?}", api.name);
        assert!(!events.iter().any(|event| matches!(event, ModelEvent::Stop(_))), "{}", api.name);
        assert_eq!(provider.requests().len(), before + 1, "{}", api.name);
    }
}

#[tokio::test]
async fn an_error_that_is_no_event_is_found_in_the_stream() {
    // Google's servers and some gateways write an error into the stream as it would be a response of its own.
    let provider = Provider::start().await;
    for api in APIS {
        let model = api.model(&provider);
        let error = json!({"error": {"code": 503, "status": "UNAVAILABLE", "type": "api_error", "message": "overloaded"}});
        let bare = format!("{error:#}");
        let [start, words, _] = (api.events)("a");
        for tail in ["", "\n", "\r\n\r\n"] {
            provider.answer(Answer::stream([start.clone(), words.clone(), bare.clone() + tail]));
            let (events, error) = ask(&*model).await;
            let error = error.expect("an error");
            assert_eq!(
                (deltas(&events).as_str(), error.code()),
                ("a", "model_failed"),
                "{} {tail:?}: {error:?}",
                api.name
            );
            assert!(error.message().contains("overloaded"), "{}: {error:?}", api.name);
        }
    }
}
