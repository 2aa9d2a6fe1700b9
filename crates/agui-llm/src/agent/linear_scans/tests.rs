//! Every scan of what others send takes time in proportion to it: a larger text of the same kind takes the time of
//! as many smaller ones.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use serde_json::json;

use super::super::{partial_json, prediction::StatePredictor};
use crate::{
    agent::StatePrediction,
    known_models::ThinkTags,
    providers::chat::tags::TagReader,
    testing::{Api, OpenAiApi, answer, profile, stands_in, written_calls},
};
use agui_agent::{RunContext, surfaces::arguments::ArgumentsReader};
use agui_base::{lenient_json, repairs::Partner, upstream::events::StreamLimits};
use agui_protocol::{
    Event,
    approval::shown_arguments,
    encode::Sse,
    event::{TextMessageContent, TextMessageStart, ToolCallArgs, ToolCallStart},
};
use agui_run::Transcript;
use agui_tools::host::{CallArguments, ToolSession};

/// The bytes of the smaller text; the larger one has `GROWTH` times as many.
const BYTES: usize = 4 << 10;
const GROWTH: usize = 16;
/// The most time of the larger text, in times of `GROWTH` smaller ones. Quadratic time has `GROWTH`.
const MAX_RATIO: u32 = 5;
/// Shorter times are noise.
const NOISE: Duration = Duration::from_millis(10);
const ATTEMPTS: usize = 10;

/// A scan of pieces of text, and the texts that are hard for it: a beginning, and a part that is repeated after it.
struct Scan {
    name: &'static str,
    run: fn(&[&str]),
    /// True if the scan follows a stream, so that the text also comes character by character.
    is_stream: bool,
    texts: &'static [(&'static str, &'static str)],
}

const SCANS: &[Scan] = &[
    Scan {
        name: "calls written as text",
        run: |pieces| drop(black_box(written_calls(pieces.iter().copied()))),
        is_stream: true,
        texts: &[
            ("", "<tool_call>"),
            ("", "</tool_call>"),
            ("", "<tool_call>{"),
            ("", "<tool_call>{\"name\":\"now\"}</tool_call>"),
            ("", "[TOOL_CALLS]"),
            ("", "[TOOL_CALLS]now{}"),
            ("", "<|python_tag|><tool_call>"),
            ("", " "),
            ("<tool_call>", " "),
            ("a", "<tool_cal"),
            ("[now(", "a=[1,"),
            ("[now(", "'"),
            ("", "<｜DSML｜invoke name=\"now\">"),
            ("<｜DSML｜", "invoke name=\""),
            ("<｜DSML｜invoke name=\"now\">", "parameter name=\"a\">"),
        ],
    },
    Scan {
        name: "tags around thoughts",
        run: |pieces| _ = black_box(tagged_pieces(pieces.iter().copied())),
        is_stream: true,
        texts: &[
            ("", "<think>"),
            ("<think>", "</think"),
            ("<think>", "\n"),
            ("", " "),
            ("", "<|channel|>analysis<|message|>a<|end|><|start|>assistant"),
            ("<|channel|>analysis<|message|>a<|end|>", "<|start|>assistant"),
        ],
    },
    Scan {
        name: "calls in texts of others",
        run: |pieces| {
            let call = ("now".to_owned(), "{\"a\":1}".to_owned());
            pieces.iter().for_each(|text| _ = black_box(stands_in(text, &call)));
        },
        is_stream: false,
        texts: &[
            ("", "{\"a\":"),
            ("", "{\"a\":["),
            ("{\"a\":[", "{},"),
            ("", "{\"name\":\"now\",\"arguments\":"),
            ("", "{\"name\":\"now\",\"arguments\":{\"a\":2}}"),
            ("", "now{\"a\":2}"),
            ("", "[now("),
            ("", "invoke name=\"now\">"),
            ("<", "invoke name=\"now\">"),
            ("", "\\u007b\\\""),
            ("", "&#123;&quot;"),
            ("", "{ "),
        ],
    },
    Scan {
        name: "arguments of a call, as they stream in",
        run: |pieces| {
            let mut reader = ArgumentsReader::default();
            pieces.iter().for_each(|piece| reader.push(piece, &mut |_, part| _ = black_box(part)));
        },
        is_stream: true,
        texts: ARGUMENTS,
    },
    Scan { name: "a predicted state", run: predict, is_stream: true, texts: ARGUMENTS },
    Scan {
        name: "the beginning of JSON",
        run: |pieces| pieces.iter().for_each(|text| drop(black_box(partial_json::completed(text)))),
        is_stream: false,
        texts: ARGUMENTS,
    },
    Scan {
        name: "whole arguments, and their text in a question",
        run: |pieces| {
            for text in pieces {
                let read = black_box(CallArguments::read(text))
                    .map(|read| read.object)
                    .unwrap_or_default();
                black_box(shown_arguments(&read));
            }
        },
        is_stream: false,
        texts: ARGUMENTS,
    },
    Scan {
        name: "JSON that is not valid",
        run: |pieces| {
            pieces
                .iter()
                .for_each(|text| drop(black_box(lenient_json::parse(text, Partner::Model))))
        },
        is_stream: false,
        texts: &[("[", "\"\\ud83d\","), ("[", "NaN,"), ("", "\\"), ("", "\""), ("", "-Infinity")],
    },
    Scan {
        name: "events of a server",
        run: |pieces| events(Api::OpenAi(OpenAiApi::Chat), Some("vllm"), pieces),
        is_stream: true,
        texts: &[
            ("", "data: x\n"),
            ("", "\n"),
            ("", "\r"),
            ("", ":"),
            ("", "{"),
            ("{", "\n{"),
            ("data: ", "x"),
            ("", "data: {\"choices\":[{\"delta\":{\"content\":\"<tool_call>\"}}]}\n\n"),
            (
                "",
                "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\"}}]}}]}\n\n",
            ),
        ],
    },
    Scan {
        name: "events of Anthropic",
        run: |pieces| events(Api::Anthropic, None, pieces),
        is_stream: false,
        texts: &[(
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"[\"}}\n\n",
        )],
    },
    Scan {
        name: "events of Gemini",
        run: |pieces| events(Api::Gemini, None, pieces),
        is_stream: false,
        texts: &[(
            "",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"<\",\"thoughtSignature\":\"s\"}]}}]}\n\n",
        )],
    },
    Scan {
        name: "the transcript of a text, and its encoding",
        run: |pieces| {
            let (mut transcript, mut sse, mut out) =
                (Transcript::new(Vec::new(), json!({})), Sse::default(), Vec::new());
            transcript.apply(&TextMessageStart::new("m").into());
            for piece in pieces {
                let event = TextMessageContent::new("m", *piece).into();
                transcript.apply(&event);
                sse.event(&event, &mut out);
            }
            black_box((transcript, out));
        },
        is_stream: true,
        texts: &[("", "x"), ("", "\n"), ("", "\"")],
    },
];

/// Beginnings of arguments.
const ARGUMENTS: &[(&str, &str)] = &[
    ("{\"a\":", "["),
    ("{\"a\":", "[{\"b\":"),
    ("{\"a\":[", "1,"),
    ("{\"a\":[", "\"b\","),
    ("{\"a\":[", "[],"),
    ("{\"a\":\"", "b"),
    ("{\"a\":\"", "\\\\"),
    ("{\"a\":\"", "\\ud83d"),
    ("{\"a\":", "1"),
    ("{\"a\":", " "),
    ("{", "\"a\":1,"),
    ("{\"", "a"),
    ("", "{\"a\":"),
    ("{'a':[", "'b' , "),
];

fn predict(pieces: &[&str]) {
    let predictions: [StatePrediction; 1] =
        [serde_json::from_value(json!({ "key": "k", "tool": "t", "argument": "a" })).unwrap()];
    let session = ToolSession::new(RunContext::new("t", "r", "a"), json!({}));
    let mut predictor = StatePredictor::new(&predictions, &session);
    let mut follow = |event: Event| {
        let mut events = vec![event];
        predictor.follow(&mut events);
        black_box(events);
    };
    follow(ToolCallStart::new("c", "t").into());
    pieces.iter().for_each(|piece| follow(ToolCallArgs::new("c", *piece).into()));
}

fn events(api: Api, server: Option<&str>, pieces: &[&str]) {
    let pieces: Vec<_> =
        pieces.iter().map(|piece| Ok::<_, std::io::Error>((*piece).to_owned())).collect();
    let body = reqwest::Body::wrap_stream(futures::stream::iter(pieces));
    let limits = StreamLimits { max_event_bytes: 16 << 20, idle_timeout: Duration::from_secs(60) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    black_box(runtime.block_on(answer(api, server, http::Response::new(body).into(), limits)));
}

/// Returns the number of the texts and thoughts of an answer that begins with tags.
fn tagged_pieces<'p>(pieces: impl IntoIterator<Item = &'p str>) -> usize {
    let mut reader = TagReader::new(ThinkTags::Paired, profile("vllm").thoughts.clone());
    pieces.into_iter().map(|piece| reader.read(piece).len()).sum()
}

fn time(run: fn(&[&str]), pieces: &[&str], times: usize) -> Duration {
    let begun = Instant::now();
    (0..times).for_each(|_| run(pieces));
    begun.elapsed()
}

fn text((begin, part): (&str, &str), bytes: usize) -> String {
    format!("{begin}{}", part.repeat(bytes / part.len()))
}

#[test]
fn the_time_of_every_scan_grows_as_its_text() {
    let mut faults = Vec::new();
    for Scan { name, run, is_stream, texts } in SCANS {
        for of in *texts {
            let (small, large) = (text(*of, BYTES), text(*of, BYTES * GROWTH));
            for is_cut in if *is_stream { &[false, true][..] } else { &[false] } {
                let pieces = |text: &'_ str| -> Vec<String> {
                    if *is_cut {
                        text.chars().map(String::from).collect()
                    } else {
                        vec![text.to_owned()]
                    }
                };
                let (small, large) = (pieces(&small), pieces(&large));
                let small: Vec<&str> = small.iter().map(String::as_str).collect();
                let large: Vec<&str> = large.iter().map(String::as_str).collect();
                let mut least = (Duration::MAX, Duration::MAX);
                // Other processes make single times longer, so the shortest ones count, of about the same work.
                let is_linear = (0..ATTEMPTS).any(|_| {
                    least = (
                        least.0.min(time(*run, &small, GROWTH)),
                        least.1.min(time(*run, &large, 1)),
                    );
                    least.1 < least.0 * MAX_RATIO + NOISE
                });
                if !is_linear {
                    faults.push(format!("{name}: {of:?}, cut: {is_cut}: {least:?}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "not linear:\n{}", faults.join("\n"));
}
