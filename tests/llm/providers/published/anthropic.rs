//! Refuses what Anthropic's Messages API refuses, as far as it is published: by member, by combination, by model.
//!
//! The pages below <https://platform.claude.com/docs/en> are `api/messages/create`,
//! `build-with-claude/thinking-troubleshooting`, `build-with-claude/effort`, `build-with-claude/extended-thinking`,
//! `build-with-claude/structured-outputs`, `build-with-claude/prompt-caching`,
//! `build-with-claude/mid-conversation-system-messages`, `build-with-claude/preserved-thinking`,
//! `agents-and-tools/tool-use/server-tools`, `models/overview`, and "What's new" of Opus 5.5, Sonnet 5.5 and Haiku 5.5.

use std::collections::HashSet;

use serde_json::Value;

use crate::support::provider::Recorded;

type Checked = Result<(), String>;

/// A row of the published tables.
struct Row {
    name: &'static str,
    /// The accepted types of `thinking`.
    types: &'static [&'static str],
    thinks_by_default: bool,
    /// Thinking can only be switched off up to the effort `high`.
    off_up_to_high: bool,
    efforts: &'static [&'static str],
    max_tokens: u64,
    samples: bool,
    forced_tools: bool,
    structured: bool,
    system_role: bool,
    continues_assistant: bool,
}

const ALL_EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const NEWEST: Row = Row {
    name: "",
    types: &["adaptive"],
    thinks_by_default: true,
    off_up_to_high: true,
    efforts: ALL_EFFORTS,
    max_tokens: 128_000,
    samples: false,
    forced_tools: true,
    structured: true,
    system_role: true,
    continues_assistant: false,
};
const BUDGET: Row = Row {
    types: &["enabled", "disabled"],
    thinks_by_default: false,
    off_up_to_high: false,
    efforts: &[],
    max_tokens: 64_000,
    samples: true,
    system_role: false,
    continues_assistant: true,
    ..NEWEST
};
const ROWS: &[Row] = &[
    Row { name: "claude-3-7-sonnet-20250219", structured: false, ..BUDGET },
    Row { name: "claude-opus-4-1-20250805", structured: false, max_tokens: 32_000, ..BUDGET },
    Row { name: "claude-sonnet-4-5", ..BUDGET },
    Row { name: "claude-haiku-4-5", ..BUDGET },
    Row { name: "claude-opus-4-5", efforts: &["low", "medium", "high"], ..BUDGET },
    Row { name: "claude-opus-4-6", ..BOTH },
    Row { name: "claude-sonnet-4-6", ..BOTH },
    Row { name: "claude-opus-4-7", system_role: false, ..OFF_BY_DEFAULT },
    Row { name: "claude-opus-4-8", ..OFF_BY_DEFAULT },
    Row {
        name: "claude-sonnet-5",
        types: &["adaptive", "disabled"],
        off_up_to_high: false,
        system_role: false,
        ..NEWEST
    },
    Row { name: "claude-opus-5", types: &["adaptive", "disabled"], ..NEWEST },
    Row { name: "claude-fable-5", ..NEWEST },
    Row { name: "claude-fable-5-1", forced_tools: false, ..NEWEST },
    Row { name: "claude-opus-5-5", forced_tools: false, ..NEWEST },
    Row {
        name: "claude-sonnet-5-5",
        types: &["adaptive", "between_tools"],
        forced_tools: false,
        ..NEWEST
    },
    Row {
        name: "claude-haiku-5-5",
        types: &["adaptive", "disabled"],
        system_role: false,
        ..NEWEST
    },
];
const BOTH: Row = Row {
    types: &["enabled", "disabled", "adaptive"],
    efforts: &["low", "medium", "high", "max"],
    max_tokens: 128_000,
    continues_assistant: false,
    ..BUDGET
};
const OFF_BY_DEFAULT: Row = Row {
    types: &["adaptive", "disabled"],
    thinks_by_default: false,
    off_up_to_high: false,
    ..NEWEST
};

/// The names of all models that the check knows.
pub fn models() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

pub fn check(request: &Recorded) -> Option<String> {
    let betas = request
        .headers
        .get("anthropic-beta")
        .map(|value| value.to_str().unwrap())
        .unwrap_or_default();
    let betas: Vec<&str> = betas.split(',').collect();
    if request.path != "/v1/messages" || !request.headers.contains_key("anthropic-version") {
        return Some("the path or the version is wrong".to_owned());
    }
    check_body(&request.body, &betas).err()
}

fn check_body(body: &Value, betas: &[&str]) -> Checked {
    members(
        body,
        &[
            "model",
            "max_tokens",
            "messages",
            "stream",
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "temperature",
            "top_p",
            "top_k",
            "stop_sequences",
            "service_tier",
            "metadata",
            "container",
            "inference_geo",
        ],
    )?;
    let model = body["model"].as_str().unwrap_or_default();
    let row = ROWS.iter().find(|row| row.name == model).ok_or(format!("model: {model}"))?;
    let max_tokens = body["max_tokens"].as_u64().ok_or("max_tokens: Field required")?;
    require((1..=row.max_tokens).contains(&max_tokens), "max_tokens: too large for this model")?;
    require(body["stream"] == true, "stream")?;
    let effort = body["output_config"]["effort"].as_str();
    let thinks = thinking(body, row, max_tokens, effort, betas)?;
    sampling(body, row, thinks)?;
    output_config(body, row)?;
    tools(body, row)?;
    tool_choice(body, row)?;
    if let Some(metadata) = body.get("metadata") {
        members(metadata, &["user_id"])?;
    }
    if let Some(tier) = body.get("service_tier") {
        require(tier == "auto" || tier == "standard_only", "service_tier")?;
    }
    if let Some(stop) = body.get("stop_sequences") {
        let is_blank = |text: &Value| text.as_str().is_none_or(|text| text.trim().is_empty());
        require(
            !stop.as_array().ok_or("stop_sequences")?.iter().any(is_blank),
            "stop_sequences: whitespace",
        )?;
    }
    for block in body
        .get("system")
        .map(|system| system.as_array().ok_or("system"))
        .transpose()?
        .into_iter()
        .flatten()
    {
        text_block(block)?;
    }
    messages(body, row, betas)?;
    let marks = body.to_string().matches("\"cache_control\"").count();
    require(marks <= 4, "A maximum of 4 blocks with cache_control may be provided")
}

/// Returns `true` if the model thinks.
fn thinking(
    body: &Value,
    row: &Row,
    max_tokens: u64,
    effort: Option<&str>,
    betas: &[&str],
) -> Result<bool, String> {
    let Some(thinking) = body.get("thinking") else { return Ok(row.thinks_by_default) };
    let kind = thinking["type"].as_str().unwrap_or_default();
    require(
        row.types.contains(&kind),
        &format!("\"thinking.type.{kind}\" is not supported for this model"),
    )?;
    match kind {
        "enabled" => {
            members(thinking, &["type", "budget_tokens", "display", "block_binding"])?;
            let budget =
                thinking["budget_tokens"].as_u64().ok_or("budget_tokens: Field required")?;
            require(
                (1024..max_tokens).contains(&budget),
                "max_tokens must be greater than budget_tokens",
            )?;
            let forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
            require(!forced, "Thinking may not be enabled when tool_choice forces tool use")?;
        }
        "adaptive" => members(thinking, &["type", "display", "block_binding"])?,
        _ => {
            members(thinking, &["type"])?;
            let is_high = matches!(effort, Some("xhigh" | "max"));
            require(
                !(row.off_up_to_high && is_high),
                "thinking cannot be disabled at this effort",
            )?;
        }
    }
    if let Some(display) = thinking.get("display") {
        require(display == "summarized" || display == "omitted", "thinking.display")?;
    }
    if let Some(binding) = thinking.get("block_binding") {
        members(binding, &["prefix_mismatch_behavior"])?;
        let behavior = &binding["prefix_mismatch_behavior"];
        require(behavior == "error" || behavior == "drop_block", "prefix_mismatch_behavior")?;
        let has_beta = betas.contains(&"thinking-binding-controls-2026-08-01");
        require(has_beta, "block_binding: Extra inputs are not permitted")?;
    }
    Ok(matches!(kind, "enabled" | "adaptive"))
}

fn sampling(body: &Value, row: &Row, thinks: bool) -> Checked {
    let number = |name: &str| {
        body.get(name)
            .map(|value| value.as_f64().ok_or(format!("{name}: not a number")))
            .transpose()
    };
    let (temperature, top_p, top_k) = (number("temperature")?, number("top_p")?, number("top_k")?);
    require(
        temperature.is_none_or(|value| (0.0..=1.0).contains(&value)),
        "temperature: range: 0..1",
    )?;
    if !row.samples {
        let is_default =
            temperature.is_none_or(|value| value == 1.0) && top_p.is_none() && top_k.is_none();
        return require(is_default, "sampling parameters are not supported for this model");
    }
    let is_old = row.name.starts_with("claude-3");
    require(
        is_old || temperature.is_none() || top_p.is_none(),
        "`temperature` and `top_p` cannot both be specified",
    )?;
    if thinks {
        require(
            temperature.is_none_or(|value| value == 1.0) && top_k.is_none(),
            "temperature with thinking",
        )?;
        require(top_p.is_none_or(|value| (0.95..=1.0).contains(&value)), "top_p with thinking")?;
    }
    Ok(())
}

fn output_config(body: &Value, row: &Row) -> Checked {
    let Some(config) = body.get("output_config") else { return Ok(()) };
    members(config, &["effort", "format"])?;
    if let Some(effort) = config.get("effort") {
        let is_taken = effort.as_str().is_some_and(|effort| row.efforts.contains(&effort));
        require(is_taken, "This model does not support this effort level")?;
    }
    if let Some(format) = config.get("format") {
        members(format, &["type", "schema"])?;
        require(
            row.structured && format["type"] == "json_schema",
            "output_config.format is not supported",
        )?;
        grammar(&format["schema"])?;
    }
    Ok(())
}

fn tools(body: &Value, row: &Row) -> Checked {
    let tools = body.get("tools").map(|tools| tools.as_array().ok_or("tools")).transpose()?;
    let (mut names, mut strict) = (HashSet::new(), 0);
    for tool in tools.into_iter().flatten() {
        let name = tool["name"].as_str().unwrap_or_default();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        require((1..=128).contains(&name.len()) && name.chars().all(is_allowed), "tools: name")?;
        require(names.insert(name), "tools: Tool names must be unique")?;
        if tool.get("type").is_some_and(|kind| kind != "custom") {
            require(tool["type"] == "web_search_20250305", "tools: unknown type")?;
            continue;
        }
        members(tool, &["name", "description", "input_schema", "cache_control", "strict", "type"])?;
        require(tool["input_schema"]["type"] == "object", "input_schema.type: Field required")?;
        if tool.get("strict") == Some(&Value::Bool(true)) {
            require(row.structured, "strict tools are not supported")?;
            grammar(&tool["input_schema"])?;
            strict += 1;
        }
    }
    require(strict <= 20, "too many strict tools")
}

fn tool_choice(body: &Value, row: &Row) -> Checked {
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    let offered = body["tools"]
        .as_array()
        .ok_or("tool_choice may only be specified while providing tools")?;
    match choice["type"].as_str() {
        Some("none") => members(choice, &["type"]),
        Some("auto") => members(choice, &["type", "disable_parallel_tool_use"]),
        Some("any") if row.forced_tools => members(choice, &["type", "disable_parallel_tool_use"]),
        Some("tool") if row.forced_tools => {
            members(choice, &["type", "name", "disable_parallel_tool_use"])?;
            require(
                offered.iter().any(|tool| tool["name"] == choice["name"]),
                "tool_choice: unknown tool",
            )
        }
        _ => {
            Err("tool_choice: type \"tool\" and \"any\" are not supported for this model"
                .to_owned())
        }
    }
}

/// Refuses keywords that a grammar does not take, and open objects.
fn grammar(schema: &Value) -> Checked {
    let members = schema.as_object().ok_or("schema: not an object")?;
    for (name, value) in members {
        match name.as_str() {
            "properties" | "$defs" => {
                value.as_object().ok_or("properties")?.values().try_for_each(grammar)?
            }
            "items" => grammar(value)?,
            "anyOf" | "allOf" => value.as_array().ok_or("anyOf")?.iter().try_for_each(grammar)?,
            "type" | "enum" | "const" | "default" | "description" | "title" | "required"
            | "$ref" | "format" => {}
            "minItems" if value == 0 || value == 1 => {}
            "additionalProperties" if *value == Value::Bool(false) => {}
            _ => return Err(format!("schema: `{name}` is not supported")),
        }
    }
    let is_closed = members.contains_key("additionalProperties") || schema["type"] != "object";
    require(is_closed, "For 'object' type, 'additionalProperties' must be explicitly set to false")
}

fn messages(body: &Value, row: &Row, betas: &[&str]) -> Checked {
    let list = body["messages"]
        .as_array()
        .filter(|list| !list.is_empty())
        .ok_or("messages: Field required")?;
    let (mut calls, mut server_calls, mut server_results) =
        (Vec::new(), HashSet::new(), HashSet::new());
    let mut before = "";
    for (at, message) in list.iter().enumerate() {
        members(message, &["role", "content"])?;
        let role = message["role"].as_str().unwrap_or_default();
        let content = message["content"]
            .as_array()
            .filter(|list| !list.is_empty())
            .ok_or("messages: content is empty")?;
        match (role, before) {
            ("user", "" | "assistant") => user(content, &std::mem::take(&mut calls), betas)?,
            ("assistant", "user" | "system") => {
                calls = assistant(content, &mut server_calls, &mut server_results)?
            }
            ("system", "user") if row.system_role => content.iter().try_for_each(text_block)?,
            _ => return Err(format!("messages.{at}: the role {role} may not follow {before:?}")),
        }
        before = role;
    }
    require(calls.is_empty(), "tool_use ids were found without tool_result blocks")?;
    let paused =
        server_calls.iter().any(|id| !server_results.contains(id)) || !server_results.is_empty();
    let ends_with_user = before != "assistant" || row.continues_assistant || paused;
    require(ends_with_user, "This model does not support assistant message prefill")?;
    let last = &list[list.len() - 1];
    let is_result = |block: &Value| block["type"] == "tool_result";
    let waits_alone =
        last["role"] == "user" && last["content"].as_array().unwrap().iter().all(is_result);
    let has_open = server_calls.iter().any(|id| !server_results.contains(id));
    require(
        !has_open || waits_alone || before == "assistant",
        "server tool use was found without a result block",
    )?;
    if body["thinking"]["type"] == "enabled" && waits_alone {
        let last_turn = list
            .iter()
            .rposition(|message| message["role"] == "user" && !is_result(&message["content"][0]));
        let first_kind = &list[last_turn.map_or(0, |at| at + 1)]["content"][0]["type"];
        let begins = first_kind == "thinking" || first_kind == "redacted_thinking";
        require(begins, "a final assistant message must start with a thinking block")?;
    }
    Ok(())
}

fn user(content: &[Value], calls: &[String], betas: &[&str]) -> Checked {
    let results = content.iter().take_while(|block| block["type"] == "tool_result");
    let answered: Vec<_> =
        results.map(|block| block["tool_use_id"].as_str().unwrap_or_default()).collect();
    let is_complete =
        answered.len() == calls.len() && calls.iter().all(|id| answered.contains(&id.as_str()));
    require(
        is_complete,
        "each tool_use must have a single tool_result at the beginning of the next message",
    )?;
    for block in content {
        match block["type"].as_str().unwrap_or_default() {
            "text" => text_block(block)?,
            "image" | "document" => media(block, betas)?,
            "tool_result" => {
                members(block, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
                for inner in block["content"].as_array().into_iter().flatten() {
                    if inner["type"] == "text" { text_block(inner)? } else { media(inner, betas)? }
                }
                require(block["content"].as_str() != Some(""), "tool_result: empty text")?;
            }
            kind => return Err(format!("messages: a user's {kind}")),
        }
    }
    let after = content.iter().skip(answered.len());
    require(
        !after.into_iter().any(|block| block["type"] == "tool_result"),
        "tool_result blocks come first",
    )
}

fn assistant(
    content: &[Value],
    server_calls: &mut HashSet<String>,
    server_results: &mut HashSet<String>,
) -> Result<Vec<String>, String> {
    let mut calls = Vec::new();
    let id = |block: &Value, key: &str| block[key].as_str().unwrap_or_default().to_owned();
    for block in content {
        match block["type"].as_str().unwrap_or_default() {
            "text" => {
                members(block, &["type", "text", "cache_control", "citations"])?;
                require(
                    !id(block, "text").trim().is_empty(),
                    "text content blocks must contain non-whitespace text",
                )?;
            }
            "thinking" => {
                members(block, &["type", "thinking", "signature"])?;
                require(
                    block["thinking"].is_string() && !id(block, "signature").is_empty(),
                    "signature: Field required",
                )?;
            }
            "redacted_thinking" => {
                members(block, &["type", "data"])?;
                require(!id(block, "data").is_empty(), "data: Field required")?;
            }
            "tool_use" => {
                members(block, &["type", "id", "name", "input", "cache_control"])?;
                require(block["input"].is_object(), "input: Input should be a valid dictionary")?;
                let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let new = id(block, "id");
                require(
                    !new.is_empty() && new.chars().all(is_allowed) && !calls.contains(&new),
                    "tool_use.id",
                )?;
                calls.push(new);
            }
            "server_tool_use" => {
                members(block, &["type", "id", "name", "input", "cache_control", "caller"])?;
                server_calls.insert(id(block, "id"));
            }
            "web_search_tool_result" => {
                members(block, &["type", "tool_use_id", "content", "cache_control", "caller"])?;
                let call = id(block, "tool_use_id");
                require(server_calls.contains(&call), "a result without its server_tool_use")?;
                server_results.insert(call);
            }
            kind => return Err(format!("messages: an assistant's {kind}")),
        }
    }
    let last = content.last().map(|block| id(block, "type")).unwrap_or_default();
    require(
        !last.contains("thinking"),
        "the final block in an assistant message cannot be thinking",
    )?;
    Ok(calls)
}

fn text_block(block: &Value) -> Checked {
    members(block, &["type", "text", "cache_control"])?;
    let is_blank = block["text"].as_str().is_none_or(|text| text.trim().is_empty());
    require(
        block["type"] == "text" && !is_blank,
        "text content blocks must contain non-whitespace text",
    )
}

fn media(block: &Value, betas: &[&str]) -> Checked {
    let is_image = block["type"] == "image";
    members(
        block,
        if is_image {
            &["type", "source", "cache_control"]
        } else {
            &["type", "source", "title", "cache_control"]
        },
    )?;
    let source = &block["source"];
    match source["type"].as_str().unwrap_or_default() {
        "base64" => {
            members(source, &["type", "media_type", "data"])?;
            let types: &[&str] = match is_image {
                true => &["image/jpeg", "image/png", "image/gif", "image/webp"],
                false => &["application/pdf"],
            };
            require(types.iter().any(|kind| source["media_type"] == *kind), "source.media_type")
        }
        "url" => members(source, &["type", "url"]),
        "text" if !is_image => {
            members(source, &["type", "media_type", "data"])?;
            let is_blank = source["data"].as_str().is_none_or(|text| text.trim().is_empty());
            require(source["media_type"] == "text/plain" && !is_blank, "source.media_type")
        }
        "file" => {
            members(source, &["type", "file_id"])?;
            require(betas.contains(&"files-api-2025-04-14"), "file_id: needs the beta header")
        }
        kind => Err(format!("source.type: {kind}")),
    }
}

fn members(value: &Value, known: &[&str]) -> Checked {
    let members = value.as_object().ok_or(format!("{value} is not an object"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{name}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

fn require(is_met: bool, message: &str) -> Checked {
    if is_met { Ok(()) } else { Err(message.to_owned()) }
}
