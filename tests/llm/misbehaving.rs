//! Models, pages and gateways that misbehave, at each of the four APIs. The fakes refuse what the real providers refuse.

use std::sync::{Arc, Mutex};

use agui_server::{
    Server,
    llm::{Anthropic, Gemini, LlmAgent, ModelOptions, OpenAi, ProviderClient},
    tools::{ApprovalRule, FnTool, tool_fn},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{
    provider::{Answer, Check, Provider},
    running::{Running, events, input},
    strict,
};

/// A provider's API.
pub(super) struct Api {
    pub(super) name: &'static str,
    agent: fn(ProviderClient) -> LlmAgent,
    /// The events of an answer with these pieces of text, as JSON texts.
    text: fn(&[&str]) -> Vec<String>,
    /// The events of an answer that calls a tool with these arguments.
    call: fn(&str, &Value) -> Vec<Value>,
    /// The events of answers that end with success and nothing in them.
    empty: fn() -> Vec<Vec<Value>>,
    /// A whole answer in place of a stream.
    whole: fn(&str) -> Value,
}

fn piece(text: &str) -> String {
    format!("\"{text}\"")
}

fn chat_chunk(delta: Value, reason: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

fn claude_end(reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]
}

fn claude(blocks: Vec<Value>, reason: &str) -> Vec<Value> {
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 0}}});
    [vec![start], blocks, claude_end(reason)].concat()
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"object": "response", "status": "completed", "output": output, "error": null}})
}

pub(super) const APIS: &[Api] = &[
    Api {
        name: "chat completions",
        agent: |client| LlmAgent::new(OpenAi::chat(ModelOptions::new("m", client)).unwrap()),
        text: |pieces| {
            let chunk = |text: &&str| {
                format!(
                    r#"{{"choices":[{{"index":0,"delta":{{"content":{}}},"finish_reason":null}}]}}"#,
                    piece(text)
                )
            };
            let end = chat_chunk(json!({}), json!("stop")).to_string();
            pieces.iter().map(chunk).chain([end]).collect()
        },
        call: |name, arguments| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            let call = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]});
            vec![chat_chunk(call, Value::Null), chat_chunk(json!({}), json!("tool_calls"))]
        },
        empty: || {
            vec![
                vec![
                    chat_chunk(json!({"role": "assistant", "content": ""}), Value::Null),
                    chat_chunk(json!({}), json!("stop")),
                ],
                vec![chat_chunk(json!({"content": null}), json!("tool_calls"))],
                Vec::new(),
            ]
        },
        whole: |text| {
            json!({"object": "chat.completion", "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text, "tool_calls": null}, "finish_reason": "stop"}
            ], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
        },
    },
    Api {
        name: "Responses",
        agent: |client| LlmAgent::new(OpenAi::responses(ModelOptions::new("m", client)).unwrap()),
        text: |pieces| {
            let added = json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}});
            let delta = |text: &&str| {
                format!(
                    r#"{{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":{}}}"#,
                    piece(text)
                )
            };
            [added.to_string()]
                .into_iter()
                .chain(pieces.iter().map(delta))
                .chain([completed(json!([])).to_string()])
                .collect()
        },
        call: |name, arguments| {
            let item = json!({"type": "function_call", "call_id": "c1", "name": name, "arguments": arguments.to_string()});
            vec![
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                completed(json!([])),
            ]
        },
        empty: || vec![vec![completed(json!([]))], Vec::new()],
        whole: |text| {
            json!({"object": "response", "status": "completed", "error": null, "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}
            ], "usage": {"input_tokens": 1, "output_tokens": 1}})
        },
    },
    Api {
        name: "Anthropic",
        agent: |client| LlmAgent::new(Anthropic::new(ModelOptions::new("m", client)).unwrap()),
        text: |pieces| {
            let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
            let delta = |text: &&str| {
                format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{}}}}}"#,
                    piece(text)
                )
            };
            let end = json!({"type": "content_block_stop", "index": 0});
            let all = [start.to_string()]
                .into_iter()
                .chain(pieces.iter().map(delta))
                .chain([end.to_string()]);
            all.chain(claude_end("end_turn").iter().map(Value::to_string)).collect()
        },
        call: |name, arguments| {
            let block = json!({"type": "tool_use", "id": "c1", "name": name, "input": {}});
            let json = arguments.to_string();
            let blocks = vec![
                json!({"type": "content_block_start", "index": 0, "content_block": block}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json}}),
                json!({"type": "content_block_stop", "index": 0}),
            ];
            claude(blocks, "tool_use")
        },
        empty: || vec![claude(Vec::new(), "end_turn"), claude(Vec::new(), "tool_use"), Vec::new()],
        whole: |text| {
            json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}})
        },
    },
    Api {
        name: "Gemini",
        agent: |client| {
            LlmAgent::new(Gemini::new(ModelOptions::new("gemini-2.5-flash", client)).unwrap())
        },
        text: |pieces| {
            let response = |text: &&str| {
                format!(
                    r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":{}}}]}}}}]}}"#,
                    piece(text)
                )
            };
            let end = json!({"candidates": [{"finishReason": "STOP"}]}).to_string();
            pieces.iter().map(response).chain([end]).collect()
        },
        call: |name, arguments| {
            let call = json!({"functionCall": {"id": "c1", "name": name, "args": arguments}});
            vec![
                json!({"candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP"}]}),
            ]
        },
        empty: || {
            vec![
                vec![
                    json!({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}),
                ],
                vec![
                    json!({"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}]}, "finishReason": "STOP"}]}),
                ],
                Vec::new(),
            ]
        },
        whole: |text| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}),
    },
];

/// An answer of events, which ends with `[DONE]` as those of gateways do.
pub(super) fn stream(events: impl IntoIterator<Item = impl ToString>) -> Answer {
    let events = events.into_iter().map(|event| format!("data: {}\n\n", event.to_string()));
    Answer::stream(events.chain(["data: [DONE]\n\n".to_owned()]))
}

impl Api {
    /// Returns an agent's server and its strict provider.
    async fn serve(&self, change: impl FnOnce(LlmAgent) -> LlmAgent) -> (Running, Provider) {
        self.serve_checked(strict::refusal, change).await
    }

    pub(super) async fn serve_checked(
        &self,
        check: Check,
        change: impl FnOnce(LlmAgent) -> LlmAgent,
    ) -> (Running, Provider) {
        let provider = Provider::start_checked(check).await;
        let client = ProviderClient {
            base_url: Some(format!("{}/v1", provider.url())),
            max_retries: 1,
            ..ProviderClient::default()
        };
        let agent = change((self.agent)(client));
        (Running::start(Server::new().agent("a", agent)).await, provider)
    }

    pub(super) fn says(&self, text: &str) -> Answer {
        stream((self.text)(&[text]))
    }
}

pub(super) async fn play(server: &Running, input: &Value) -> Vec<Value> {
    events(&server.run(input).await.text().await.unwrap())
}

pub(super) fn text(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    deltas.map(|event| event["delta"].as_str().unwrap()).collect()
}

/// Returns the code of the error that ended a run.
pub(super) fn code(events: &[Value]) -> Option<&str> {
    events.last().unwrap()["code"].as_str()
}

/// Returns the next request on the thread of an earlier one.
pub(super) fn next(earlier: &Value, run: &str, text: &str) -> Value {
    let message = json!({"id": run, "role": "user", "content": text});
    json!({"threadId": earlier["threadId"], "runId": run, "messages": [message]})
}

#[tokio::test]
async fn an_answer_with_nothing_in_it_is_asked_for_again_once() {
    for api in APIS {
        let (server, provider) = api.serve(|agent| agent).await;
        for (at, empty) in (api.empty)().into_iter().enumerate() {
            let shown = format!("{} {at}", api.name);
            provider.answer(stream(empty.clone()));
            provider.answer(api.says("fine"));
            let run = play(&server, &input("?")).await;
            assert_eq!((text(&run).as_str(), code(&run)), ("fine", None), "{shown}: {run:?}");
            provider.answer(stream(empty.clone()));
            provider.answer(stream(empty));
            assert_eq!(code(&play(&server, &input("?")).await), Some("model_empty"), "{shown}");
        }
        assert_eq!(provider.requests().len(), 4 * (api.empty)().len(), "{}", api.name);
    }
}

#[tokio::test]
async fn a_page_s_names_and_schemas_do_not_end_a_run() {
    let tools = json!([
        {"name": "shop.search", "description": "Searches.", "parameters": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"limit": {"type": "integer", "exclusiveMinimum": true, "minimum": 0}, "tags": {"type": "array"}},
            "oneOf": [{"required": ["word"], "properties": {"word": {"const": "x"}}}, {"required": ["id"], "properties": {"id": {"type": "string"}}}],
            "required": null
        }},
        {"name": "shop search", "description": "", "parameters": null},
        {"name": "bare"},
        {"name": "nameless", "description": null, "parameters": {"title": "Titled.", "required": null, "properties": {"a": null}}},
        {"name": "查询天气", "description": "Weather.", "parameters": {"type": "object", "properties": null}},
        {"name": "w".repeat(80), "description": "Long.", "parameters": {"allOf": [{"properties": {"a": {"enum": []}}}]}},
        {"name": "none", "description": "No form.", "parameters": {"anyOf": [{"type": "string"}]}},
    ]);
    for api in APIS {
        let (server, provider) = api.serve(|agent| agent).await;
        let mut first = input("find");
        first["tools"] = tools.clone();
        provider.answer(api.says("Which?"));
        let run = play(&server, &first).await;
        assert_eq!(code(&run), None, "{}: {run:?}", api.name);
        let sent = provider.requests()[0].body["tools"].to_string();
        assert!(
            !sent.contains("shop.search") && !sent.contains("\"none\""),
            "{}: {sent}",
            api.name
        );
        assert!(sent.contains("\"bare\"") && sent.contains("\"Titled.\""), "{}: {sent}", api.name);
        // The only tools whose names begin with these letters.
        let name = |start: &str| {
            let from = sent.find(start).unwrap();
            sent[from..].split('"').next().unwrap().to_owned()
        };
        for (start, original) in [("t__", "查询天气"), ("www", "w".repeat(80).as_str())] {
            let mut input = next(&first, &format!("r-{start}"), "again");
            input["tools"] = tools.clone();
            provider.answer(stream((api.call)(&name(start), &json!({}))));
            let run = play(&server, &input).await;
            let call = run.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap();
            assert_eq!(call["toolCallName"], original, "{}", api.name);
            let result = json!({"id": format!("t-{start}"), "role": "tool", "toolCallId": call["toolCallId"], "content": "done"});
            let mut answered = next(&first, &format!("a-{start}"), "and?");
            answered["messages"] = json!([result]);
            answered["tools"] = tools.clone();
            provider.answer(api.says("ok"));
            let run = play(&server, &answered).await;
            assert_eq!((text(&run).as_str(), code(&run)), ("ok", None), "{}: {run:?}", api.name);
        }
    }
}

#[tokio::test]
async fn a_page_s_result_with_an_error_and_no_content_reaches_the_model() {
    for api in APIS {
        let (server, provider) = api.serve(|agent| agent).await;
        let mut first = input("find");
        first["tools"] = json!([{"name": "find"}]);
        for (at, result) in
            [json!({"error": "no such shop"}), json!({"content": null, "error": "no such shop"})]
                .into_iter()
                .enumerate()
        {
            let mut asked = next(&first, &format!("q{at}"), "find");
            asked["tools"] = first["tools"].clone();
            provider.answer(stream((api.call)("find", &json!({}))));
            let run = play(&server, &asked).await;
            let call = run.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap();
            let mut answered = next(&first, &format!("a{at}"), "and?");
            answered["tools"] = first["tools"].clone();
            answered["messages"] =
                json!([{"id": format!("t{at}"), "role": "tool", "toolCallId": call["toolCallId"]}]);
            answered["messages"][0]
                .as_object_mut()
                .unwrap()
                .extend(result.as_object().unwrap().clone());
            provider.answer(api.says("ok"));
            let run = play(&server, &answered).await;
            assert_eq!((text(&run).as_str(), code(&run)), ("ok", None), "{}: {run:?}", api.name);
            let sent = provider.requests().last().unwrap().body.to_string();
            assert_eq!(sent.matches("Error: no such shop").count(), at + 1, "{}: {sent}", api.name);
        }
    }
}

#[tokio::test]
async fn a_name_that_a_model_made_up_does_not_poison_its_thread() {
    for api in APIS {
        let (server, provider) = api.serve(|agent| agent.tool(adder(Arc::default()))).await;
        let first = input("find");
        provider.answer(stream((api.call)("functions.search", &json!({"q": 1}))));
        provider.answer(api.says("I cannot."));
        let run = play(&server, &first).await;
        assert_eq!((text(&run).as_str(), code(&run)), ("I cannot.", None), "{}: {run:?}", api.name);
        provider.answer(api.says("Still here."));
        let run = play(&server, &next(&first, "r2", "really?")).await;
        assert_eq!(
            (text(&run).as_str(), code(&run)),
            ("Still here.", None),
            "{}: {run:?}",
            api.name
        );
    }
}

#[tokio::test]
async fn half_an_emoji_is_joined_over_the_pieces_of_a_text() {
    for api in APIS {
        let (server, provider) = api.serve(|agent| agent).await;
        provider.answer(stream((api.text)(&[r"Hi \ud83d", r"\ude00!", r" cut \ud83d"])));
        let run = play(&server, &input("?")).await;
        assert_eq!(
            (text(&run).as_str(), code(&run)),
            ("Hi 😀! cut \u{fffd}", None),
            "{}: {run:?}",
            api.name
        );
    }
}

#[tokio::test]
async fn a_whole_answer_or_an_error_in_place_of_a_stream_is_read() {
    for api in APIS {
        let (server, provider) = api.serve(|agent| agent).await;
        let json =
            |body: String| Answer::new(200, [body]).header("content-type", "application/json");
        provider.answer(json(format!("\u{feff}{}", (api.whole)("All at once."))));
        let run = play(&server, &input("?")).await;
        assert_eq!(
            (text(&run).as_str(), code(&run)),
            ("All at once.", None),
            "{}: {run:?}",
            api.name
        );
        let error = json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "{\"code\":503}"}}});
        provider.answer(json(error.to_string()));
        provider.answer(api.says("again"));
        assert_eq!(text(&play(&server, &input("?")).await), "again", "{}", api.name);
    }
}

#[tokio::test]
async fn a_large_event_is_within_the_bound_of_an_answer() {
    for api in APIS {
        let (server, provider) = api.serve(|agent| agent).await;
        let long = "x".repeat(1_500_000);
        provider.answer(api.says(&long));
        assert_eq!(text(&play(&server, &input("?")).await).len(), long.len(), "{}", api.name);
    }
}

#[tokio::test]
async fn what_a_filter_refuses_has_one_code_at_every_api() {
    let refusal = json!({"error": {"message": "The response was filtered", "code": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation"}}});
    for api in APIS {
        let (server, provider) = api.serve(|agent| agent).await;
        provider.answer(
            Answer::new(400, [refusal.to_string()]).header("content-type", "application/json"),
        );
        assert_eq!(code(&play(&server, &input("?")).await), Some("model_filtered"), "{}", api.name);
        provider.answer(Answer::new(413, ["<html>413 Request Entity Too Large</html>"]));
        assert_eq!(
            code(&play(&server, &input("?")).await),
            Some("context_too_long"),
            "{}",
            api.name
        );
    }
}

#[tokio::test]
async fn a_call_that_the_provider_could_not_read_is_asked_for_again_with_a_hint() {
    let api = &APIS[0];
    let (server, provider) = api.serve(|agent| agent).await;
    let failed = json!({"error": {"message": "Failed to call a function.", "type": "invalid_request_error",
        "code": "tool_use_failed", "failed_generation": "<function=f>"}});
    for refusal in [Answer::new(400, [failed.to_string()]), stream([failed.clone()])] {
        provider.answer(refusal);
        provider.answer(api.says("in words"));
        let run = play(&server, &input("?")).await;
        assert_eq!((text(&run).as_str(), code(&run)), ("in words", None), "{run:?}");
        let asked = provider.requests().pop().unwrap().body["messages"].to_string();
        assert!(asked.contains("could not be read"), "{asked}");
    }
}

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
struct Sum {
    n: Vec<i64>,
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    note: Option<String>,
}

type Calls = Arc<Mutex<Vec<Value>>>;

fn adder(calls: Calls) -> FnTool {
    tool_fn("add", "Adds.", move |sum: Sum, _| {
        let calls = calls.clone();
        async move {
            calls.lock().unwrap().push(json!(sum));
            sum.n.iter().sum::<i64>().to_string()
        }
    })
}

/// An answer of chat completions that calls `add` with this text as arguments.
fn adds(arguments: &str) -> Answer {
    let function = json!({"name": "add", "arguments": arguments});
    let call =
        json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]});
    stream([chat_chunk(call, Value::Null), chat_chunk(json!({}), json!("tool_calls"))])
}

const WRITTEN: &[&str] = &[
    "{\"n\":[9],\"n\":[1,2]}",
    "{}{\"n\":[1,2]}",
    "\"{\\\"n\\\":[1,2]}\"",
    "{\"n\":\"[1, 2]\",\"note\":null}",
    "{'n': [1, 2,], 'note': None}",
    "```json\n{\"n\":[1,2]}\n```",
];

#[tokio::test]
async fn arguments_are_repaired_for_the_tool_and_stay_as_written_in_the_stream() {
    let api = &APIS[0];
    for written in WRITTEN {
        let calls = Calls::default();
        let (server, provider) = api.serve(|agent| agent.tool(adder(calls.clone()))).await;
        provider.answer(adds(written));
        provider.answer(api.says("Three."));
        let run = play(&server, &input("1+2?")).await;
        assert_eq!((text(&run).as_str(), code(&run)), ("Three.", None), "{written}: {run:?}");
        assert_eq!(*calls.lock().unwrap(), [json!({"n": [1, 2]})], "{written}");
        let streamed = run.iter().filter(|event| event["type"] == "TOOL_CALL_ARGS");
        let streamed: String = streamed.map(|event| event["delta"].as_str().unwrap()).collect();
        assert_eq!(streamed, *written);
    }
}

#[tokio::test]
async fn a_person_approves_the_repaired_arguments_and_those_run() {
    let api = &APIS[0];
    for written in WRITTEN {
        let calls = Calls::default();
        let tool = adder(calls.clone()).needs_approval(ApprovalRule::Always);
        let (server, provider) = api.serve(|agent| agent.tool(tool)).await;
        let first = input("1+2?");
        provider.answer(adds(written));
        let run = play(&server, &first).await;
        let interrupt = run.last().unwrap()["outcome"]["interrupts"][0].clone();
        let message = interrupt["message"].as_str().unwrap();
        assert!(message.contains("{\"n\":[1,2]}"), "{written}: {message}");
        assert_eq!(interrupt["metadata"]["arguments"], json!({"n": [1, 2]}), "{written}");
        provider.answer(api.says("Three."));
        let mut resumed = next(&first, "r2", "");
        resumed["messages"] = json!([]);
        resumed["resume"] = json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true}}]);
        let run = play(&server, &resumed).await;
        assert_eq!((text(&run).as_str(), code(&run)), ("Three.", None), "{written}: {run:?}");
        assert_eq!(*calls.lock().unwrap(), [json!({"n": [1, 2]})], "{written}");
    }
}
