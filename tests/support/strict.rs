//! Strict fakes of the providers' four APIs. Each refuses invalid tools and histories with status
//! 400 and in the words of the real API. Each rule names its source.
//!
//! Each `provider::Provider` checks its requests by these rules, and tells the APIs apart by the
//! path. `start_checked(strict::refusal)` starts one that also refuses other paths, and parameters
//! that only some servers know.

use serde_json::{Value, json};

use super::provider::Recorded;

type Checked = Result<(), String>;

/// Returns the reason for which the API of the path refuses a request.
pub fn refusal(request: &Recorded) -> Option<String> {
    match check_of(&request.path) {
        Some(check) => {
            let checked = checked(request, check).and_then(|()| plain_tools(&request.body));
            checked.err().map(|reason| final_refusal(&reason))
        }
        None => Some(format!("no such path: {}", request.path)),
    }
}

/// Returns a refusal that names tools, so that no other form of the request is tried and hides it.
fn final_refusal(reason: &str) -> String {
    let error = json!({"type": "invalid_request_error", "message": reason, "param": "tools"});
    json!({"type": "error", "error": error}).to_string()
}

fn check_of(path: &str) -> Option<fn(&Value) -> Checked> {
    match path.split('?').next()? {
        path if path.ends_with("/chat/completions") => Some(chat),
        path if path.ends_with("/responses") => Some(responses),
        path if path.ends_with("/messages") => Some(messages),
        path if path.ends_with(":streamGenerateContent") => Some(gemini),
        path if path.ends_with(":streamRawPredict") => Some(claude_on_vertex),
        _ => None,
    }
}

/// The same for providers that have further paths, and that take `strict`.
pub fn refusal_of_known_paths(request: &Recorded) -> Option<String> {
    checked(request, check_of(&request.path)?).err().map(|reason| final_refusal(&reason))
}

fn checked(request: &Recorded, check: fn(&Value) -> Checked) -> Checked {
    vertex(request, request.path.split('?').next().unwrap_or_default())
        .and_then(|()| check(&request.body))
}

/// Refused by servers without strict tools: <https://github.com/vllm-project/vllm/issues/27447>
fn plain_tools(body: &Value) -> Checked {
    list(body, "tools").iter().try_for_each(|tool| {
        require(tool["function"].get("strict").is_none(), || {
            "strict: extra inputs are not permitted".to_owned()
        })
    })
}

/// "Member must have length greater than or equal to 1": <https://github.com/Teradata/teradata-mcp-server/issues/232>
fn description(tool: &Value, what: &str) -> Checked {
    let is_blank = tool
        .get("description")
        .is_some_and(|text| text.as_str().is_none_or(|text| text.trim().is_empty()));
    require(!is_blank, || {
        format!("{what}.description: Member must have length greater than or equal to 1")
    })
}

/// Vertex AI: <https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai>,
/// <https://docs.cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/projects.locations.publishers.models>.
fn vertex(request: &Recorded, path: &str) -> Checked {
    let Some(rest) = path.strip_prefix("/v1/projects/p/locations/l/") else { return Ok(()) };
    let key = request
        .headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    require(key.starts_with("Bearer "), || {
        "Request is missing required authentication credential.".to_owned()
    })?;
    let folders = match rest.rsplit_once(':') {
        Some((folders, "streamRawPredict")) => folders.strip_prefix("publishers/anthropic/models/"),
        Some((folders, _)) => folders.strip_prefix("publishers/google/models/"),
        None => rest.strip_prefix("endpoints/openapi/"),
    };
    require(folders.is_some_and(|model| !model.is_empty()), || format!("no such path: {path}"))?;
    // https://github.com/vercel/ai/issues/15664
    for part in list(&request.body, "contents").iter().flat_map(|content| list(content, "parts")) {
        let has_id = ["functionCall", "functionResponse"]
            .iter()
            .any(|member| part[member].get("id").is_some());
        require(!has_id, || {
            "Invalid JSON payload received. Unknown name \"id\": Cannot find field.".to_owned()
        })?;
    }
    Ok(())
}

fn claude_on_vertex(body: &Value) -> Checked {
    require(body["anthropic_version"] == "vertex-2023-10-16", || {
        "anthropic_version: Field required".to_owned()
    })?;
    require(body.get("model").is_none(), || "model: Extra inputs are not permitted".to_owned())?;
    messages(body)
}

fn list<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value[member].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, what: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| format!("{what}: expected a string, but got {value}"))
}

fn require(holds: bool, problem: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(problem()) }
}

/// `^[a-zA-Z0-9_-]{1,64}$`. OpenAI: <https://github.com/brekkylab/ailoy/pull/109>, also of the history:
/// <https://github.com/mcp-use/mcp-use/issues/90>. Anthropic: <https://github.com/apify/tester-mcp-client/issues/11>.
fn name(value: &Value, what: &str) -> Checked {
    let name = text(value, what)?;
    let is_taken = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    require(is_taken, || {
        format!(
            "Invalid '{what}': string does not match pattern '^[a-zA-Z0-9_-]{{1,64}}$': {name:?}"
        )
    })
}

/// Ids of calls. Anthropic: <https://github.com/tailcallhq/forgecode/issues/1142>; chat completions take 40 characters.
fn call_id(value: &Value, chars: usize) -> Result<String, String> {
    let id = text(value, "id")?;
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    require((1..=chars).contains(&id.len()) && id.chars().all(is_letter), || {
        format!("tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {id:?}")
    })?;
    Ok(id.to_owned())
}

/// The keywords of a tool's schema that all four refuse.
fn schema(value: &Value, what: &str, refused_at_top: &[&str]) -> Checked {
    let top =
        value.as_object().ok_or_else(|| format!("{what}: expected an object, but got {value}"))?;
    require(top.get("type").is_some_and(|kind| kind == "object"), || {
        format!(
            "Invalid schema for {what}: schema must be a JSON Schema of 'type: \"object\"', got {:?}",
            top.get("type")
        )
    })?;
    // OpenAI: https://github.com/nspady/google-calendar-mcp/issues/39.
    // Anthropic: https://github.com/anthropics/claude-code/issues/5973.
    let refused = refused_at_top.iter().find(|keyword| top.contains_key(**keyword));
    require(refused.is_none(), || {
        format!("{what}: does not support {} at the top level", refused.unwrap())
    })?;
    part(value, what)
}

fn part(value: &Value, what: &str) -> Checked {
    let Some(members) = value.as_object() else {
        return Err(format!("{what}: {value} is not a schema"));
    };
    for (keyword, value) in members {
        // "None is not of type 'array'", as Go's `null` is refused: https://github.com/openai/openai-python/issues/1797
        let is_null = value.is_null() && !matches!(keyword.as_str(), "default" | "const");
        require(!is_null, || format!("Invalid schema for {what}: {keyword}: None is not valid"))?;
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" => {
                let schemas = value
                    .as_object()
                    .ok_or_else(|| format!("{what}: {keyword} is not an object"))?;
                schemas
                    .iter()
                    .try_for_each(|(name, schema)| part(schema, &format!("{what}.{name}")))?;
            }
            "required" => {
                let is_list =
                    value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
                require(is_list, || {
                    format!("Invalid schema for {what}: {value} is not of type 'array'")
                })?;
            }
            "enum" => {
                let is_filled = value.as_array().is_some_and(|list| !list.is_empty());
                require(is_filled, || {
                    format!("Invalid schema for {what}: [] should be non-empty")
                })?;
            }
            "items" => part(value, &format!("{what}.items"))?,
            "anyOf" | "oneOf" | "allOf" => {
                list(&Value::Object(members.clone()), keyword)
                    .iter()
                    .try_for_each(|schema| part(schema, what))?;
            }
            // Draft 2020-12 alone is taken: https://github.com/anthropics/claude-code/issues/586
            "exclusiveMinimum" | "exclusiveMaximum" => {
                require(value.is_number(), || {
                    format!("{what}: JSON schema is invalid: {keyword}: {value}")
                })?;
            }
            _ => {}
        }
    }
    // "array schema missing items": https://github.com/microsoft/vscode/issues/248810
    let is_list = members.get("type").is_some_and(|kind| kind == "array");
    require(!is_list || members.contains_key("items"), || {
        format!("Invalid schema for {what}: array schema missing items")
    })
}

/// Refuses a server's sentence in the model's role: models would repeat it.
fn own_words(content: &str) -> Checked {
    require(
        !content.contains("(The answer was interrupted.)") && !content.starts_with("[Note"),
        || format!("the model never said {content:?}"),
    )
}

/// <https://platform.openai.com/docs/api-reference/chat/create>
fn chat(body: &Value) -> Checked {
    for (at, tool) in list(body, "tools").iter().enumerate() {
        name(&tool["function"]["name"], &format!("tools[{at}].function.name"))?;
        let what = format!("function {}", tool["function"]["name"]);
        description(&tool["function"], &what)?;
        schema(
            &tool["function"]["parameters"],
            &what,
            &["anyOf", "oneOf", "allOf", "enum", "not"],
        )?;
    }
    let mut open: Vec<String> = Vec::new();
    for message in list(body, "messages") {
        let role = text(&message["role"], "role")?;
        // "An assistant message with 'tool_calls' must be followed by tool messages"
        require(role == "tool" || open.is_empty(), || {
            format!("tool_calls without results: {open:?}")
        })?;
        if role == "tool" {
            let id = text(&message["tool_call_id"], "tool_call_id")?;
            let at = open.iter().position(|call| call == id);
            open.remove(
                at.ok_or("messages with role 'tool' must be a response to a preceding message with 'tool_calls'")?,
            );
        }
        if role == "assistant" {
            own_words(message["content"].as_str().unwrap_or_default())?;
            for call in list(message, "tool_calls") {
                name(&call["function"]["name"], "messages.tool_calls.function.name")?;
                let arguments = text(&call["function"]["arguments"], "arguments")?;
                let is_object =
                    serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
                // vLLM and others parse them.
                require(is_object, || format!("arguments: {arguments} is not a JSON object"))?;
                open.push(call_id(&call["id"], 40)?);
            }
        }
    }
    require(open.is_empty(), || format!("tool_calls without results: {open:?}"))
}

/// <https://platform.openai.com/docs/api-reference/responses/create>
fn responses(body: &Value) -> Checked {
    for (at, tool) in list(body, "tools").iter().enumerate() {
        // The provider's own tools have no names.
        if tool["type"] != "function" {
            continue;
        }
        name(&tool["name"], &format!("tools[{at}].name"))?;
        let what = format!("function {}", tool["name"]);
        description(tool, &what)?;
        schema(&tool["parameters"], &what, &["anyOf", "oneOf", "allOf", "enum", "not"])?;
    }
    for item in list(body, "input") {
        match item["type"].as_str().unwrap_or_default() {
            "function_call" => {
                name(&item["name"], "input.name")?;
                call_id(&item["call_id"], 64)?;
                let arguments = text(&item["arguments"], "arguments")?;
                let is_object =
                    serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
                require(is_object, || format!("arguments: {arguments} is not a JSON object"))?;
                // "No tool output found for function call"
                let is_answered = list(body, "input").iter().any(|other| {
                    other["type"] == "function_call_output" && other["call_id"] == item["call_id"]
                });
                require(is_answered, || {
                    format!("No tool output found for function call {}", item["call_id"])
                })?;
            }
            "message" if item["role"] == "assistant" => {
                own_words(item["content"].as_str().unwrap_or_default())?
            }
            _ => {}
        }
    }
    Ok(())
}

/// <https://docs.claude.com/en/api/messages>
fn messages(body: &Value) -> Checked {
    for (at, tool) in list(body, "tools").iter().enumerate() {
        name(&tool["name"], &format!("tools.{at}.custom.name"))?;
        // A tool of the provider.
        if tool.get("type").is_some_and(|kind| kind != "custom") {
            continue;
        }
        let what = format!("tools.{at}.custom.input_schema");
        description(tool, &what)?;
        schema(&tool["input_schema"], &what, &["anyOf", "oneOf", "allOf"])?;
        for key in tool["input_schema"]["properties"]
            .as_object()
            .into_iter()
            .flat_map(|members| members.keys())
        {
            // https://github.com/beautyfree/appstore-connect-mcp/issues/2
            let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            require(key.len() <= 64 && key.chars().all(is_letter), || {
                format!(
                    "{what}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$': {key}"
                )
            })?;
        }
    }
    let mut open: Vec<String> = Vec::new();
    for message in list(body, "messages") {
        let blocks = list(message, "content");
        require(!blocks.is_empty(), || "all messages must have non-empty content".to_owned())?;
        let results = blocks.iter().filter(|block| block["type"] == "tool_result");
        let results: Vec<_> = results.filter_map(|block| block["tool_use_id"].as_str()).collect();
        // "`tool_use` ids were found without `tool_result` blocks immediately after"
        require(open.iter().all(|id| results.contains(&id.as_str())), || {
            format!("no results of {open:?}")
        })?;
        require(results.iter().all(|id| open.iter().any(|call| call == id)), || {
            format!("unexpected `tool_use_id` found in `tool_result` blocks: {results:?}")
        })?;
        open.clear();
        for block in blocks {
            match block["type"].as_str().unwrap_or_default() {
                "tool_use" => {
                    name(&block["name"], "messages.content.tool_use.name")?;
                    require(block["input"].is_object(), || {
                        "tool_use.input: Input should be a valid dictionary".to_owned()
                    })?;
                    open.push(call_id(&block["id"], 64)?);
                }
                "text" => {
                    let words = text(&block["text"], "text")?;
                    require(!words.trim().is_empty(), || {
                        "text content blocks must be non-empty".to_owned()
                    })?;
                    if message["role"] == "assistant" {
                        own_words(words)?;
                    }
                }
                _ => {}
            }
        }
    }
    require(open.is_empty(), || format!("no results of {open:?}"))
}

/// <https://ai.google.dev/api/generate-content>
fn gemini(body: &Value) -> Checked {
    // "Invalid function name. Must start with a letter or an underscore".
    let function = |value: &Value, what: &str| {
        name(value, what)?;
        let first = value.as_str().and_then(|name| name.chars().next());
        require(first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_'), || {
            format!(
                "{what}: Invalid function name. Must start with a letter or an underscore: {value}"
            )
        })
    };
    for declaration in
        list(body, "tools").iter().flat_map(|tool| list(tool, "functionDeclarations"))
    {
        function(&declaration["name"], "function_declarations.name")?;
        description(declaration, "function_declarations")?;
        let parameters = &declaration["parametersJsonSchema"];
        schema(
            parameters,
            "function_declarations.parameters_json_schema",
            &["anyOf", "oneOf", "allOf"],
        )?;
        // Outside of the list of https://ai.google.dev/api/caching#FunctionDeclaration
        for refused in ["\"const\":", "\"patternProperties\":", "\"exclusiveMinimum\":", "\"if\":"]
        {
            require(!parameters.to_string().contains(refused), || {
                format!("Unknown name {refused} Cannot find field.")
            })?;
        }
    }
    let contents = list(body, "contents");
    require(contents.first().is_some_and(|first| first["role"] == "user"), || {
        "the first content is not a user's".to_owned()
    })?;
    for (at, content) in contents.iter().enumerate() {
        let parts = list(content, "parts");
        require(!parts.is_empty(), || {
            "GenerateContentRequest.contents.parts: must not be empty".to_owned()
        })?;
        let of = |content: &Value, kind: &str| {
            list(content, "parts").iter().filter(|part| part.get(kind).is_some()).count()
        };
        let calls = of(content, "functionCall");
        let answers = contents.get(at + 1).map_or(0, |next| of(next, "functionResponse"));
        // https://github.com/google-gemini/gemini-cli/issues/2127
        require(calls == answers, || {
            "the number of function response parts is equal to the number of function call parts of the function call turn"
                .to_owned()
        })?;
        for part in parts {
            if let Some(call) = part.get("functionCall") {
                function(&call["name"], "function_call.name")?;
                require(call["args"].is_object(), || {
                    "function_call.args: not a Struct".to_owned()
                })?;
            }
            if let Some(response) = part.get("functionResponse") {
                function(&response["name"], "function_response.name")?;
            }
            if content["role"] == "model" {
                own_words(part["text"].as_str().unwrap_or_default())?;
            }
        }
    }
    Ok(())
}
