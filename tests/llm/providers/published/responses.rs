//! OpenAI's Responses API: <https://developers.openai.com/api/reference/resources/responses/methods/create>.

use serde_json::{Value, json};

use super::shape::{
    Checked, any_object, boolean, integer, list, number, object, one_of, refuse, text,
};
use crate::{llm::KEY, support::provider::Recorded};

/// Returns the reason for which the service would answer 400.
pub fn refusal(request: &Recorded) -> Option<String> {
    check(request).err()
}

fn check(request: &Recorded) -> Checked {
    if request.path != "/v1/responses"
        || request.headers["authorization"] != format!("Bearer {KEY}")
    {
        return refuse(format!("the path is {}", request.path));
    }
    check_body(&request.body)
}

pub fn check_body(body: &Value) -> Checked {
    object(
        body,
        &[
            ("model", true, &text),
            ("input", true, &|value| list(value, item)),
            ("instructions", false, &text),
            ("stream", false, &boolean),
            ("store", false, &boolean),
            ("include", false, &|value| list(value, one_of(INCLUDES))),
            ("tools", false, &|value| list(value, tool)),
            ("tool_choice", false, &tool_choice),
            ("parallel_tool_calls", false, &boolean),
            ("max_output_tokens", false, &integer(16)),
            ("temperature", false, &number(0.0, 2.0)),
            ("top_p", false, &number(0.0, 1.0)),
            ("reasoning", false, &reasoning),
            ("text", false, &text_config),
            (
                "service_tier",
                false,
                &one_of(&["auto", "default", "flex", "fast", "priority", "ultrafast"]),
            ),
            ("prompt_cache_key", false, &text),
            ("metadata", false, &metadata),
            ("truncation", false, &one_of(&["auto", "disabled"])),
        ],
    )?;
    if body["input"].as_array().is_none_or(Vec::is_empty) {
        return refuse(
            "one of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided",
        );
    }
    conversation(&body["input"])?;
    choice_among_tools(body)?;
    check_model(body)
}

const INCLUDES: &[&str] = &["reasoning.encrypted_content", "web_search_call.action.sources"];

fn item(value: &Value) -> Checked {
    let kind: &dyn Fn(&Value) -> Checked = &text;
    match (value["type"].as_str().unwrap_or("message"), value["role"].as_str()) {
        // `phase` is for the model's own messages.
        ("message", Some("assistant")) => object(
            value,
            &[
                ("type", false, kind),
                ("role", true, kind),
                ("content", true, kind),
                ("phase", false, &one_of(&["commentary", "final_answer"])),
            ],
        ),
        ("message", Some("user" | "developer" | "system")) => object(
            value,
            &[
                ("type", false, kind),
                ("role", true, kind),
                ("content", true, &|value| list(value, content)),
            ],
        ),
        ("reasoning", _) => object(
            value,
            &[
                ("type", true, kind),
                ("id", true, kind),
                ("summary", true, &|value| {
                    list(value, |part| {
                        object(
                            part,
                            &[("type", true, &one_of(&["summary_text"])), ("text", true, kind)],
                        )
                    })
                }),
                // Without this member, the service looks for the item, which it has not stored.
                ("encrypted_content", true, kind),
            ],
        ),
        ("function_call", _) => object(
            value,
            &[
                ("type", true, kind),
                ("call_id", true, &call_id),
                ("name", true, kind),
                ("arguments", true, &|value| match serde_json::from_str::<Value>(
                    value.as_str().unwrap_or(""),
                ) {
                    Ok(Value::Object(_)) => Ok(()),
                    _ => refuse("not a JSON object"),
                }),
            ],
        ),
        ("function_call_output", _) => object(
            value,
            &[
                ("type", true, kind),
                ("call_id", true, &call_id),
                ("output", true, &|value| {
                    if value.is_string() { Ok(()) } else { list(value, content) }
                }),
            ],
        ),
        (other, role) => refuse(format!("invalid item {other} {role:?}")),
    }
}

fn call_id(value: &Value) -> Checked {
    match value.as_str() {
        Some(id) if (1..=64).contains(&id.len()) => Ok(()),
        _ => refuse("expected 1 to 64 characters"),
    }
}

fn content(value: &Value) -> Checked {
    let kind: &dyn Fn(&Value) -> Checked = &text;
    let one_source =
        |names: &[&str]| match names.iter().filter(|name| value.get(**name).is_some()).count() {
            1 => Ok(()),
            _ => refuse(format!("exactly one of {names:?} is needed")),
        };
    match value["type"].as_str().unwrap_or_default() {
        "input_text" => object(value, &[("type", true, kind), ("text", true, kind)]),
        "input_image" => {
            one_source(&["image_url", "file_id"])?;
            object(
                value,
                &[
                    ("type", true, kind),
                    ("detail", true, &one_of(&["low", "high", "auto", "original"])),
                    ("file_id", false, kind),
                    ("image_url", false, &|value| match value.as_str().unwrap_or_default() {
                        url if url.starts_with("https://") || url.starts_with("data:image/") => {
                            Ok(())
                        }
                        url => refuse(format!("invalid URL {url}")),
                    }),
                ],
            )
        }
        "input_file" => {
            one_source(&["file_data", "file_id", "file_url"])?;
            if value.get("file_data").is_some() && value.get("filename").is_none() {
                return refuse("missing required parameter: 'filename'");
            }
            object(
                value,
                &[
                    ("type", true, kind),
                    ("filename", false, kind),
                    ("file_data", false, kind),
                    ("file_id", false, kind),
                    ("file_url", false, kind),
                ],
            )
        }
        other => refuse(format!("invalid content {other}")),
    }
}

fn tool(value: &Value) -> Checked {
    if value["type"] == "web_search" {
        return object(value, &[("type", true, &text)]);
    }
    object(
        value,
        &[
            ("type", true, &one_of(&["function"])),
            ("name", true, &text),
            ("description", false, &text),
            ("parameters", true, &any_object),
            ("strict", true, &boolean),
        ],
    )?;
    if value["strict"] == true { closed(&value["parameters"]) } else { Ok(()) }
}

/// See <https://developers.openai.com/api/docs/guides/structured-outputs>, "Supported schemas".
fn closed(schema: &Value) -> Checked {
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    if schema["additionalProperties"] != false {
        return refuse("'additionalProperties' is required to be supplied and to be false");
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    if let Some(name) =
        properties.keys().find(|name| !required.contains(&Value::from(name.as_str())))
    {
        return refuse(format!(
            "'required' is required to include every key in properties, but lacks {name}"
        ));
    }
    properties.values().try_for_each(closed)
}

fn tool_choice(value: &Value) -> Checked {
    if value.is_string() {
        return one_of(&["none", "auto", "required"])(value);
    }
    object(value, &[("type", true, &one_of(&["function"])), ("name", true, &text)])
}

fn reasoning(value: &Value) -> Checked {
    object(
        value,
        &[("effort", false, &text), ("summary", false, &one_of(&["auto", "concise", "detailed"]))],
    )
}

fn text_config(value: &Value) -> Checked {
    object(
        value,
        &[
            ("verbosity", false, &one_of(&["low", "medium", "high"])),
            ("format", false, &|value| {
                object(
                    value,
                    &[
                        ("type", true, &one_of(&["json_schema"])),
                        ("name", true, &text),
                        ("schema", true, &any_object),
                        ("strict", false, &boolean),
                    ],
                )?;
                if value["strict"] == true { closed(&value["schema"]) } else { Ok(()) }
            }),
        ],
    )
}

fn metadata(value: &Value) -> Checked {
    let Some(pairs) = value.as_object() else { return refuse("expected an object") };
    if pairs.len() > 16 { refuse("more than 16 pairs") } else { pairs.values().try_for_each(text) }
}

/// Calls and their outputs belong together, and so do reasoning and the item after it.
fn conversation(input: &Value) -> Checked {
    let items = input.as_array().map(Vec::as_slice).unwrap_or_default();
    let with = |kind: &'static str, id: &Value| {
        items.iter().position(|item| item["type"] == kind && item["call_id"] == *id)
    };
    for (at, item) in items.iter().enumerate() {
        let id = &item["call_id"];
        match item["type"].as_str().unwrap_or_default() {
            "function_call"
                if with("function_call_output", id).is_none_or(|output| output < at) =>
            {
                return refuse(format!("no tool output found for function call {id}"));
            }
            "function_call_output" if with("function_call", id).is_none_or(|call| call > at) => {
                return refuse(format!(
                    "no tool call found for function call output with call_id {id}"
                ));
            }
            "reasoning" => {
                let next = items.get(at + 1).unwrap_or(&Value::Null);
                let follows = next["role"] == "assistant"
                    || next["type"] == "function_call"
                    || next["type"] == "reasoning";
                if !follows {
                    return refuse(
                        "a reasoning item was provided without its required following item",
                    );
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn choice_among_tools(body: &Value) -> Checked {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    match &body["tool_choice"] {
        Value::Null => Ok(()),
        Value::String(_) if !tools.is_empty() => Ok(()),
        choice if tools.iter().any(|tool| tool["name"] == choice["name"]) => Ok(()),
        choice => refuse(format!("tool choice {choice} not found in 'tools'")),
    }
}

/// The efforts of models, the default first. See <https://developers.openai.com/api/docs/models>.
pub const MODELS: &[(&str, &[&str])] = &[
    ("gpt-4o", &[]),
    ("gpt-4.1-mini", &[]),
    ("o3", &["medium", "low", "high"]),
    ("gpt-5", &["medium", "minimal", "low", "high"]),
    ("gpt-5-pro", &["high"]),
    ("gpt-5.1", &["none", "low", "medium", "high"]),
    ("gpt-5.3-codex", &["medium", "low", "high", "xhigh"]),
    ("gpt-5.4", &["none", "low", "medium", "high", "xhigh"]),
    ("gpt-5.5", &["medium", "none", "low", "high", "xhigh"]),
    ("gpt-6-astra", &["medium", "low", "high", "xhigh", "max"]),
    ("gpt-6-luna", &["medium", "none", "low", "high", "xhigh", "max"]),
    ("gpt-6.2-sol", &["medium", "low", "high", "xhigh", "max"]),
];

fn check_model(body: &Value) -> Checked {
    let Some((model, efforts)) = MODELS.iter().find(|(name, _)| body["model"] == *name) else {
        return refuse(format!("the model {} does not exist", body["model"]));
    };
    let effort = body["reasoning"]["effort"].as_str();
    if let Some(effort) = effort
        && !efforts.contains(&effort)
    {
        return refuse(format!(
            "unsupported value: '{effort}' is not supported with the '{model}' model"
        ));
    }
    let reasons = !efforts.is_empty();
    if !reasons && body.get("reasoning").is_some() {
        return refuse("unsupported parameter: 'reasoning'");
    }
    let includes = body["include"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !reasons && includes.iter().any(|include| include == "reasoning.encrypted_content") {
        return refuse("encrypted content is not supported with this model");
    }
    let is_off = effort.or(efforts.first().copied()) == Some("none");
    let samples = body.get("temperature").is_some() || body.get("top_p").is_some();
    if reasons && !is_off && samples {
        return refuse("unsupported parameter: 'temperature' is not supported with this model");
    }
    let verbosity = body["text"]["verbosity"].as_str().unwrap_or("medium");
    if !model.starts_with("gpt-5") && !model.starts_with("gpt-6") && verbosity != "medium" {
        return refuse(format!(
            "unsupported value: '{verbosity}' is not supported with the '{model}' model"
        ));
    }
    Ok(())
}

#[test]
fn the_check_refuses_what_the_service_refuses() {
    let valid = json!({"model": "gpt-5.5", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]});
    assert_eq!(check_body(&valid), Ok(()));
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": ""});
    let thought = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"});
    let tool = |strict: bool| json!([{"type": "function", "name": "f", "strict": strict, "parameters": {"properties": {"a": {}}}}]);
    for (member, value) in [
        ("stop", json!(["x"])),
        ("seed", json!(1)),
        ("model", json!("gpt-9")),
        ("input", json!([])),
        ("input", json!([call])),
        ("input", json!([output, call])),
        ("input", json!([thought])),
        ("input", json!([{"type": "reasoning", "id": "rs", "summary": []}, call, output])),
        ("input", json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])),
        ("input", json!([{"role": "user", "content": [{"type": "input_file", "file_data": "x"}]}])),
        ("temperature", json!(0.5)),
        ("max_output_tokens", json!(15)),
        ("reasoning", json!({"effort": "minimal"})),
        ("tool_choice", json!("required")),
        ("tools", tool(true)),
        ("text", json!({"format": {"type": "json_object"}})),
    ] {
        let mut body = valid.clone();
        body[member] = value;
        assert!(check_body(&body).is_err(), "{body}");
    }
    for (member, value) in [("input", json!([thought, call, output])), ("tools", tool(false))] {
        let mut body = valid.clone();
        body[member] = value;
        assert_eq!(check_body(&body), Ok(()));
    }
    let mut body = valid;
    body["model"] = "gpt-4o".into();
    body["include"] = json!(["reasoning.encrypted_content"]);
    assert!(check_body(&body).is_err());
}
