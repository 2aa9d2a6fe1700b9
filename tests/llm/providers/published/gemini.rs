//! Requests of the Gemini API, checked against its published shape: <https://ai.google.dev/api/generate-content>, and by
//! model name against <https://ai.google.dev/gemini-api/docs/thinking>, `/thought-signatures` and `/latest-model`.
//!
//! The provider signs a part with a text that names the part, so a signature on another part is found.

use serde_json::{Map, Value};

use crate::{llm::KEY, support::provider::Recorded};

type Checked = Result<(), String>;

/// Returns the reason for which the API would refuse a request.
pub fn check(request: &Recorded) -> Option<String> {
    check_request(request).err()
}

fn refuse(reason: impl Into<String>) -> Checked {
    Err(reason.into())
}

fn check_request(request: &Recorded) -> Checked {
    let path = request.path.strip_prefix("/v1beta/models/").ok_or("unknown path")?;
    let model = path.strip_suffix(":streamGenerateContent?alt=sse").ok_or("unknown method")?;
    if request.headers.get("x-goog-api-key").is_none_or(|key| key != KEY) {
        return refuse("API key not valid");
    }
    let body = request.body.as_object().ok_or("the body is not an object")?;
    members(
        body,
        &[
            "contents",
            "systemInstruction",
            "tools",
            "toolConfig",
            "safetySettings",
            "generationConfig",
            "cachedContent",
            "serviceTier",
        ],
    )?;
    let tools = check_tools(body)?;
    if let Some(system) = body.get("systemInstruction") {
        let system = object(system)?;
        members(system, &["parts"])?;
        for part in list(system.get("parts"))? {
            members(object(part)?, &["text"])?;
            non_empty(part.get("text"))?;
        }
    }
    if let Some(tier) = body.get("serviceTier") {
        one_of(tier, &["standard", "flex", "priority"])?;
    }
    check_tool_config(body, &tools)?;
    check_config(model, body.get("generationConfig"), !tools.is_empty())?;
    check_contents(model, list(body.get("contents"))?)
}

fn members(object: &Map<String, Value>, known: &[&str]) -> Checked {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => refuse(format!(
            "Invalid JSON payload received. Unknown name \"{key}\": Cannot find field."
        )),
        None => Ok(()),
    }
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{value} is not an object"))
}

fn list(value: Option<&Value>) -> Result<&Vec<Value>, String> {
    value
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty())
        .ok_or_else(|| format!("{value:?} is no list"))
}

fn non_empty(value: Option<&Value>) -> Result<&str, String> {
    value
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| format!("{value:?} is empty"))
}

fn one_of(value: &Value, known: &[&str]) -> Checked {
    let known = value.as_str().is_some_and(|value| known.contains(&value));
    if known { Ok(()) } else { refuse(format!("Invalid value: {value}")) }
}

/// The version in a model's name.
fn version(model: &str) -> f64 {
    let number: String =
        model["gemini-".len()..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse().unwrap()
}

/// Returns the names of the functions.
fn check_tools(body: &Map<String, Value>) -> Result<Vec<&str>, String> {
    let Some(tools) = body.get("tools") else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for tool in list(Some(tools))? {
        members(object(tool)?, &["functionDeclarations"])?;
        for function in list(tool.get("functionDeclarations"))? {
            members(
                object(function)?,
                &["name", "description", "parameters", "parametersJsonSchema", "response"],
            )?;
            let name = non_empty(function.get("name"))?;
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
            if name.len() > 64
                || !name.chars().all(is_allowed)
                || name.starts_with(|c: char| c.is_ascii_digit())
            {
                return Err(format!("Invalid function name: {name}"));
            }
            if names.contains(&name) {
                return Err(format!("Duplicate function declaration found: {name}"));
            }
            names.push(name);
            non_empty(function.get("description"))?;
            let schema = function.get("parametersJsonSchema").ok_or("no schema")?;
            if function.get("parameters").is_some()
                || schema["type"] != "object"
                || !schema["properties"].is_object()
            {
                return Err(format!("the schema of {name} is not one of an object: {schema}"));
            }
        }
    }
    Ok(names)
}

fn check_tool_config(body: &Map<String, Value>, tools: &[&str]) -> Checked {
    let Some(config) = body.get("toolConfig") else { return Ok(()) };
    members(
        object(config)?,
        &["functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations"],
    )?;
    let config = object(config.get("functionCallingConfig").ok_or("no functionCallingConfig")?)?;
    members(config, &["mode", "allowedFunctionNames"])?;
    let mode = config.get("mode").ok_or("no mode")?;
    one_of(mode, &["AUTO", "ANY", "NONE", "VALIDATED"])?;
    if tools.is_empty() {
        return refuse("Function calling config is set without function_declarations.");
    }
    if let Some(allowed) = config.get("allowedFunctionNames") {
        if mode != "ANY" && mode != "VALIDATED" {
            return refuse(
                "Function calling mode must be ANY or VALIDATED when allowed_function_names is set.",
            );
        }
        for name in list(Some(allowed))? {
            one_of(name, tools)?;
        }
    }
    Ok(())
}

fn check_config(model: &str, config: Option<&Value>, has_tools: bool) -> Checked {
    let Some(config) = config else { return Ok(()) };
    let config = object(config)?;
    members(
        config,
        &[
            "maxOutputTokens",
            "temperature",
            "topP",
            "topK",
            "seed",
            "frequencyPenalty",
            "presencePenalty",
            "stopSequences",
            "mediaResolution",
            "thinkingConfig",
            "responseMimeType",
            "responseJsonSchema",
            "responseSchema",
            "candidateCount",
            "responseModalities",
        ],
    )?;
    let is_integer = |name: &str, least: i64| {
        config.get(name).is_none_or(|value| value.as_i64().is_some_and(|n| n >= least))
    };
    if !is_integer("maxOutputTokens", 1)
        || !is_integer("topK", 1)
        || !is_integer("seed", i64::from(i32::MIN))
    {
        return refuse("a number is out of range");
    }
    for (name, most) in [("temperature", 2.0), ("topP", 1.0)] {
        if config
            .get(name)
            .is_some_and(|value| !value.as_f64().is_some_and(|n| (0.0..=most).contains(&n)))
        {
            return refuse(format!("{name} is out of range"));
        }
    }
    for name in ["frequencyPenalty", "presencePenalty"] {
        if version(model) >= 2.5
            && config.get(name).is_some_and(|value| value.as_f64() != Some(0.0))
        {
            return refuse("Penalty is not enabled for this model");
        }
    }
    if version(model) >= 3.6 && config.contains_key("candidateCount") {
        return refuse("Multiple candidates is not enabled for this model");
    }
    if config
        .get("stopSequences")
        .is_some_and(|stop| stop.as_array().is_none_or(|stop| stop.len() > 5))
    {
        return refuse("The number of stop sequences must be at most 5");
    }
    if let Some(resolution) = config.get("mediaResolution") {
        one_of(
            resolution,
            &["MEDIA_RESOLUTION_LOW", "MEDIA_RESOLUTION_MEDIUM", "MEDIA_RESOLUTION_HIGH"],
        )?;
    }
    let has_schema =
        config.contains_key("responseJsonSchema") || config.contains_key("responseSchema");
    let is_json = config.get("responseMimeType").is_some_and(|kind| kind == "application/json");
    if has_schema && !is_json {
        return refuse("response_mime_type must be application/json when a schema is set");
    }
    if is_json && has_tools && version(model) < 3.0 {
        return refuse(
            "Function calling with a response mime type: 'application/json' is unsupported",
        );
    }
    config.get("thinkingConfig").map_or(Ok(()), |thinking| check_thinking(model, thinking))
}

fn check_thinking(model: &str, config: &Value) -> Checked {
    let config = object(config)?;
    members(config, &["includeThoughts", "thinkingBudget", "thinkingLevel"])?;
    if config.get("includeThoughts").is_some_and(|value| !value.is_boolean()) {
        return refuse("includeThoughts is not a boolean");
    }
    let (budget, level) = (config.get("thinkingBudget"), config.get("thinkingLevel"));
    if version(model) < 2.5 {
        return refuse("Unable to submit request because Thinking is not supported by this model.");
    }
    if budget.is_some() && level.is_some() {
        return refuse("You can only set only one of thinking budget and thinking level.");
    }
    if let Some(level) = level {
        let levels: &[&str] = match model {
            "gemini-3-pro-preview" => &["LOW", "HIGH"],
            "gemini-3-flash-preview"
            | "gemini-3.5-flash"
            | "gemini-3.5-flash-lite"
            | "gemini-3.6-flash" => &["MINIMAL", "LOW", "MEDIUM", "HIGH"],
            model if version(model) >= 3.0 => &["LOW", "MEDIUM", "HIGH"],
            _ => return refuse("Thinking level is not supported for this model."),
        };
        return one_of(level, levels)
            .map_err(|_| format!("Thinking level {level} is not supported for this model."));
    }
    let Some(budget) = budget else { return Ok(()) };
    let budget = budget.as_i64().ok_or("the thinking budget is no integer")?;
    let is_taken = match model {
        "gemini-2.5-pro" => budget == -1 || (128..=32_768).contains(&budget),
        "gemini-2.5-flash" => budget == -1 || (0..=24_576).contains(&budget),
        "gemini-2.5-flash-lite" => matches!(budget, -1 | 0) || (512..=24_576).contains(&budget),
        _ => return refuse("thinking_budget is not supported for this model"),
    };
    if is_taken { Ok(()) } else { refuse(format!("The thinking budget {budget} is invalid.")) }
}

fn check_contents(model: &str, contents: &[Value]) -> Checked {
    // The calls that wait for their responses: id and name.
    let mut open: Vec<(Value, Value)> = Vec::new();
    let mut before = "";
    for content in contents {
        members(object(content)?, &["role", "parts"])?;
        one_of(&content["role"], &["user", "model"])?;
        let is_user = content["role"] == "user";
        let parts = list(content.get("parts"))?;
        for part in parts {
            check_part(model, part, is_user)?;
        }
        let all = |name: &str| parts.iter().filter_map(|part| part.get(name)).collect::<Vec<_>>();
        let (calls, responses) = (all("functionCall"), all("functionResponse"));
        if responses.len() != open.len() {
            return refuse(
                "Please ensure that the number of function response parts is equal to the number of function \
                           call parts of the function call turn.",
            );
        }
        if !responses.is_empty() && responses.len() != parts.len() {
            return refuse("a function response is together with other parts");
        }
        for ((id, name), response) in open.drain(..).zip(&responses) {
            if response["name"] != name || response["id"] != id {
                return refuse(format!(
                    "the response {response} does not match the call {id} of {name}"
                ));
            }
        }
        if !calls.is_empty() && before != "user" {
            return refuse(
                "Please ensure that function call turn comes immediately after a user turn or after a function \
                           response turn.",
            );
        }
        if !is_user && before == "model" {
            return refuse("two turns of the model follow one another");
        }
        let first_call = parts.iter().find(|part| part.get("functionCall").is_some());
        if version(model) >= 3.0
            && first_call.is_some_and(|part| part.get("thoughtSignature").is_none())
        {
            return refuse("Function call is missing a thought_signature in functionCall parts.");
        }
        open.extend(calls.iter().map(|call| (call["id"].clone(), call["name"].clone())));
        before = if is_user { "user" } else { "model" };
    }
    if contents[0]["role"] != "user" {
        return refuse("Please ensure that the conversation begins with a user turn.");
    }
    if before == "model" {
        return refuse("Requests ending with a model turn are not supported.");
    }
    Ok(())
}

fn check_part(model: &str, part: &Value, is_user: bool) -> Checked {
    const DATA: &[&str] = &["text", "inlineData", "fileData", "functionCall", "functionResponse"];
    let part = object(part)?;
    members(part, &[DATA, &["thought", "thoughtSignature"]].concat())?;
    let data: Vec<_> = DATA.iter().copied().filter(|name| part.contains_key(*name)).collect();
    let [name] = data[..] else {
        return refuse(format!("a part has {} members of data", data.len()));
    };
    let value = &part[name];
    if is_user
        && (name == "functionCall"
            || part.contains_key("thoughtSignature")
            || part.contains_key("thought"))
        || !is_user && name != "functionCall" && name != "text"
    {
        return refuse(format!("a part {name} is not allowed in this role"));
    }
    match name {
        // A text may be empty only if it carries a signature.
        "text"
            if value
                .as_str()
                .is_some_and(|text| !text.is_empty() || part.contains_key("thoughtSignature")) => {}
        "text" => return refuse("Unable to submit request because it must have a text parameter."),
        "inlineData" => check_inline(value, MEDIA)?,
        "fileData" => {
            members(object(value)?, &["fileUri", "mimeType"])?;
            let uri = non_empty(value.get("fileUri"))?;
            let is_own = ["https://generativelanguage.googleapis.com/", "https://youtu.be/"];
            let is_own = is_own.iter().any(|start| uri.starts_with(start));
            if !is_own && (version(model) < 2.5 || !uri.starts_with("https://")) {
                return refuse(format!("Cannot fetch content from the provided URL {uri}"));
            }
        }
        "functionCall" => {
            members(object(value)?, &["id", "name", "args"])?;
            non_empty(value.get("name"))?;
            object(value.get("args").ok_or("a call has no args")?)?;
        }
        _ => {
            members(object(value)?, &["id", "name", "response", "parts"])?;
            non_empty(value.get("name"))?;
            object(value.get("response").ok_or("a function response has no response")?)?;
            if let Some(parts) = value.get("parts") {
                if version(model) < 3.0 {
                    return refuse(
                        "Multimodal function responses are not supported for this model",
                    );
                }
                for part in list(Some(parts))? {
                    members(object(part)?, &["inlineData"])?;
                    check_inline(
                        &part["inlineData"],
                        &["image/png", "image/jpeg", "image/webp", "application/pdf"],
                    )?;
                }
            }
        }
    }
    let Some(signature) = part.get("thoughtSignature") else { return Ok(()) };
    let is_thought = part.get("thought").is_some_and(|thought| *thought == true);
    let signed = match name {
        "functionCall" => format!("signed call {}", value["name"].as_str().unwrap_or_default()),
        _ if is_thought => format!("signed thought {}", value.as_str().unwrap_or_default()),
        _ => format!("signed text {}", value.as_str().unwrap_or_default()),
    };
    if *signature != signed
        && (name != "functionCall" || *signature != "skip_thought_signature_validator")
    {
        return refuse(format!(
            "Corrupted thought signature {signature} on a part that is {signed:?}."
        ));
    }
    Ok(())
}

const MEDIA: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "application/pdf",
    "audio/wav",
    "audio/mp3",
    "video/mp4",
];

fn check_inline(value: &Value, types: &[&str]) -> Checked {
    members(object(value)?, &["mimeType", "data"])?;
    one_of(&value["mimeType"], types)
        .map_err(|_| format!("Unsupported MIME type: {}", value["mimeType"]))?;
    non_empty(value.get("data")).map(|_| ())
}
