//! The published rules of the providers of chat completions.

mod members;
mod messages;

use serde_json::Value;

use self::{
    members::{Kind, list, members, object, text},
    messages::{Roles, check_messages},
};
use crate::support::provider::Recorded;

type Checked = Result<(), String>;

/// The requests that one provider takes.
pub struct Published {
    pub name: &'static str,
    members: &'static [&'static [&'static [(&'static str, Kind)]]],
    roles: Roles,
    more: fn(&Value) -> Checked,
}

const BASE: &[(&str, Kind)] =
    &[("model", Kind::Text), ("messages", Kind::List), ("stream", Kind::Bool)];
const STREAM_OPTIONS: &[(&str, Kind)] = &[("stream_options", Kind::Object)];
const SAMPLING: &[(&str, Kind)] =
    &[("temperature", Kind::Number), ("top_p", Kind::Number), ("stop", Kind::Texts)];
const PENALTIES: &[(&str, Kind)] =
    &[("frequency_penalty", Kind::Number), ("presence_penalty", Kind::Number)];
const TOOLS: &[(&str, Kind)] = &[("tools", Kind::List), ("tool_choice", Kind::Any)];
const FORMAT: &[(&str, Kind)] = &[("response_format", Kind::Object)];
/// The members that nearly all take.
const COMMON: &[&[(&str, Kind)]] = &[BASE, STREAM_OPTIONS, SAMPLING, PENALTIES, TOOLS, FORMAT];
const SEED: &[(&str, Kind)] = &[("seed", Kind::Integer)];
const TOP_K: &[(&str, Kind)] = &[("top_k", Kind::Integer)];
const PARALLEL: &[(&str, Kind)] = &[("parallel_tool_calls", Kind::Bool)];
const MAX_TOKENS: &[(&str, Kind)] = &[("max_tokens", Kind::Integer)];
const MAX_COMPLETION_TOKENS: &[(&str, Kind)] = &[("max_completion_tokens", Kind::Integer)];
const EFFORT: &[(&str, Kind)] = &[("reasoning_effort", Kind::Text)];
const THINKING: &[(&str, Kind)] = &[("thinking", Kind::Object)];
/// The members that only OpenAI takes.
const SERVICE: &[(&str, Kind)] = &[
    ("verbosity", Kind::Word(&["low", "medium", "high"])),
    ("service_tier", Kind::Word(&["auto", "default", "flex", "scale", "priority", "fast"])),
    ("prompt_cache_key", Kind::Text),
    ("metadata", Kind::Object),
    ("store", Kind::Bool),
];

const TEXT_AND_MEDIA: &[&str] = &["text", "image_url", "input_audio"];

pub const PUBLISHED: &[Published] = &[
    // https://platform.openai.com/docs/api-reference/chat/create
    Published {
        name: "openai",
        members: &[COMMON, &[SEED, PARALLEL, MAX_TOKENS, MAX_COMPLETION_TOKENS, EFFORT, SERVICE]],
        roles: Roles::OPENAI,
        more: openai,
    },
    Published {
        name: "azure",
        members: &[COMMON, &[SEED, PARALLEL, MAX_COMPLETION_TOKENS, EFFORT, SERVICE]],
        roles: Roles::OPENAI,
        more: |_| Ok(()),
    },
    // https://docs.ollama.com/api/openai-compatibility
    Published {
        name: "ollama",
        members: &[&[
            BASE,
            STREAM_OPTIONS,
            SAMPLING,
            PENALTIES,
            SEED,
            &[("tools", Kind::List)],
            FORMAT,
            MAX_TOKENS,
            EFFORT,
        ]],
        roles: Roles { parts: TEXT_AND_MEDIA, reasoning: &["reasoning"], ..Roles::TEMPLATE },
        more: ollama,
    },
    // `chat_completion/protocol.py` of https://github.com/vllm-project/vllm
    Published {
        name: "vllm",
        members: &[
            COMMON,
            &[
                SEED,
                TOP_K,
                PARALLEL,
                MAX_TOKENS,
                EFFORT,
                &[("chat_template_kwargs", Kind::Object), ("thinking_token_budget", Kind::Integer)],
            ],
        ],
        roles: Roles { parts: TEXT_AND_MEDIA, reasoning: &["reasoning"], ..Roles::TEMPLATE },
        more: |_| Ok(()),
    },
    // `tools/server/server-common.cpp` of https://github.com/ggml-org/llama.cpp
    Published {
        name: "llama-cpp",
        members: &[
            COMMON,
            &[SEED, TOP_K, PARALLEL, MAX_TOKENS, EFFORT, &[("chat_template_kwargs", Kind::Object)]],
        ],
        roles: Roles {
            parts: TEXT_AND_MEDIA,
            reasoning: &["reasoning_content"],
            ..Roles::TEMPLATE
        },
        more: |body| {
            let switch = body.pointer("/chat_template_kwargs/enable_thinking");
            if switch.is_some_and(|switch| !switch.is_boolean()) {
                return Err("invalid type for \"enable_thinking\" (expected boolean, got string)"
                    .to_owned());
            }
            tool_choice_is_a_word(body)
        },
    },
    // https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670
    Published {
        name: "lm-studio",
        members: &[COMMON, &[SEED, TOP_K, PARALLEL, MAX_TOKENS, EFFORT]],
        roles: Roles { parts: &["text", "image_url"], ..Roles::TEMPLATE },
        more: tool_choice_is_a_word,
    },
    // https://openrouter.ai/docs/use-cases/reasoning-tokens
    Published {
        name: "openrouter",
        members: &[
            COMMON,
            &[SEED, TOP_K, PARALLEL, MAX_TOKENS, SERVICE, &[("reasoning", Kind::Object)]],
        ],
        roles: Roles { reasoning: &["reasoning", "reasoning_details"], ..Roles::OPENAI },
        more: |body| {
            let Some(reasoning) = body.get("reasoning") else { return Ok(()) };
            let reasoning = object(reasoning, "reasoning")?;
            let known: &[(&str, Kind)] = &[
                ("effort", Kind::Word(&["xhigh", "high", "medium", "low", "minimal", "none"])),
                ("max_tokens", Kind::Integer),
                ("exclude", Kind::Bool),
                ("enabled", Kind::Bool),
            ];
            members(reasoning, &[known], "reasoning")?;
            match reasoning.contains_key("effort") && reasoning.contains_key("max_tokens") {
                true => Err("only one of effort and max_tokens".to_owned()),
                false => Ok(()),
            }
        },
    },
    // https://api-docs.deepseek.com/guides/thinking_mode
    Published {
        name: "deepseek",
        members: &[COMMON, &[MAX_TOKENS, EFFORT, THINKING]],
        roles: Roles { parts: &["text"], reasoning: &["reasoning_content"], ..Roles::OPENAI },
        more: deepseek,
    },
    // https://docs.mistral.ai/api/endpoint/chat
    Published {
        name: "mistral",
        members: &[&[
            BASE,
            SAMPLING,
            PENALTIES,
            TOOLS,
            PARALLEL,
            FORMAT,
            MAX_TOKENS,
            &[
                ("random_seed", Kind::Integer),
                ("metadata", Kind::Object),
                ("prompt_cache_key", Kind::Text),
                (
                    "reasoning_effort",
                    Kind::Word(&["none", "minimal", "low", "medium", "high", "xhigh"]),
                ),
            ],
        ]],
        roles: Roles::MISTRAL,
        more: |_| Ok(()),
    },
    // https://console.groq.com/docs/api-reference#chat-create
    Published {
        name: "groq",
        members: &[
            COMMON,
            &[
                SEED,
                PARALLEL,
                MAX_COMPLETION_TOKENS,
                &[
                    ("reasoning_effort", Kind::Word(&["none", "default", "low", "medium", "high"])),
                    ("service_tier", Kind::Word(&["auto", "on_demand", "flex", "performance"])),
                ],
            ],
        ],
        roles: Roles { parts: &["text", "image_url"], reasoning: &["reasoning"], ..Roles::OPENAI },
        more: |body| {
            let is_schema =
                body.pointer("/response_format/type").is_some_and(|kind| kind == "json_schema");
            if is_schema { Err("structured outputs cannot be streamed".to_owned()) } else { Ok(()) }
        },
    },
    // https://docs.together.ai/docs/inference/chat/reasoning
    Published {
        name: "together",
        members: &[
            COMMON,
            &[SEED, TOP_K, PARALLEL, MAX_TOKENS, EFFORT, &[("reasoning", Kind::Object)]],
        ],
        roles: Roles { parts: TEXT_AND_MEDIA, ..Roles::OPENAI },
        more: |body| match body.pointer("/reasoning/enabled") {
            Some(enabled) if !enabled.is_boolean() => {
                Err("reasoning.enabled is not a boolean".to_owned())
            }
            _ => Ok(()),
        },
    },
    // https://docs.fireworks.ai/guides/reasoning
    Published {
        name: "fireworks",
        members: &[
            COMMON,
            &[
                SEED,
                TOP_K,
                PARALLEL,
                MAX_TOKENS,
                EFFORT,
                &[("service_tier", Kind::Text), ("metadata", Kind::Object)],
            ],
        ],
        roles: Roles { parts: TEXT_AND_MEDIA, reasoning: &["reasoning_content"], ..Roles::OPENAI },
        more: |_| Ok(()),
    },
    // https://docs.x.ai/docs/guides/reasoning
    Published {
        name: "xai",
        members: &[COMMON, &[SEED, PARALLEL, MAX_COMPLETION_TOKENS, EFFORT]],
        roles: Roles { parts: &["text", "image_url"], ..Roles::OPENAI },
        more: xai,
    },
    // https://platform.moonshot.ai/docs/api/chat
    Published {
        name: "moonshot",
        members: &[
            COMMON,
            &[MAX_COMPLETION_TOKENS, EFFORT, THINKING, &[("prompt_cache_key", Kind::Text)]],
        ],
        roles: Roles {
            parts: &["text", "image_url"],
            reasoning: &["reasoning_content"],
            ..Roles::OPENAI
        },
        more: moonshot,
    },
    // https://docs.z.ai/api-reference/llm/chat-completion
    Published {
        name: "zai",
        members: &[&[BASE, SAMPLING, TOOLS, FORMAT, MAX_TOKENS, EFFORT, THINKING]],
        roles: Roles {
            parts: &["text", "image_url"],
            reasoning: &["reasoning_content"],
            ..Roles::OPENAI
        },
        more: |body| match body.get("tool_choice") {
            Some(choice) if choice != "auto" => {
                Err(format!("tool_choice {choice} is not supported"))
            }
            _ => only_json_objects(body),
        },
    },
    // https://www.alibabacloud.com/help/en/model-studio/deep-thinking
    Published {
        name: "qwen",
        members: &[
            COMMON,
            &[
                SEED,
                TOP_K,
                PARALLEL,
                MAX_TOKENS,
                &[("enable_thinking", Kind::Bool), ("thinking_budget", Kind::Integer)],
            ],
        ],
        roles: Roles { parts: TEXT_AND_MEDIA, reasoning: &["reasoning_content"], ..Roles::OPENAI },
        more: |_| Ok(()),
    },
];

/// Returns the reason for which the provider of this name refuses a request.
pub fn refusal(name: &str, request: &Recorded) -> Option<String> {
    let published =
        PUBLISHED.iter().find(|published| published.name == name).expect("a published shape");
    check(published, request).err()
}

fn check(published: &Published, request: &Recorded) -> Checked {
    if request.path.split('?').next() != Some("/chat/completions") {
        return Err(format!("no endpoint {}", request.path));
    }
    let body = object(&request.body, "body")?;
    members(body, &published.members.concat(), "body")?;
    for required in ["model", "messages"] {
        body.get(required).ok_or_else(|| format!("{required} is missing"))?;
    }
    if let Some(options) = body.get("stream_options") {
        members(
            object(options, "stream_options")?,
            &[&[("include_usage", Kind::Bool)]],
            "stream_options",
        )?;
    }
    check_tools(body)?;
    check_format(body)?;
    check_messages(list(&body["messages"], "messages")?, &published.roles)?;
    (published.more)(&request.body)
}

fn check_tools(body: &serde_json::Map<String, Value>) -> Checked {
    let Some(tools) = body.get("tools") else {
        // https://community.openai.com/t/error-using-tool-choice-none/746829
        return match ["tool_choice", "parallel_tool_calls"]
            .iter()
            .find(|member| body.contains_key(**member))
        {
            Some(member) => Err(format!("{member} is only allowed when tools are specified")),
            None => Ok(()),
        };
    };
    let tools = list(tools, "tools")?;
    if tools.is_empty() {
        return Err("tools is empty".to_owned());
    }
    for tool in tools {
        members(
            object(tool, "tool")?,
            &[&[("type", Kind::Word(&["function"])), ("function", Kind::Object)]],
            "tool",
        )?;
        let known: &[(&str, Kind)] = &[
            ("name", Kind::Text),
            ("description", Kind::Text),
            ("parameters", Kind::Object),
            ("strict", Kind::Bool),
        ];
        members(object(&tool["function"], "function")?, &[known], "function")?;
        if tool["function"]["strict"] == true {
            is_strict(&tool["function"]["parameters"])?;
        }
    }
    match body.get("tool_choice") {
        None => Ok(()),
        Some(Value::String(word)) if ["none", "auto", "required"].contains(&word.as_str()) => {
            Ok(())
        }
        Some(choice) => {
            let name = text(&choice["function"]["name"], "tool_choice.function.name")?;
            match tools.iter().any(|tool| tool["function"]["name"] == name)
                && choice["type"] == "function"
            {
                true => Ok(()),
                false => Err(format!("tool_choice names no tool: {choice}")),
            }
        }
    }
}

fn check_format(body: &serde_json::Map<String, Value>) -> Checked {
    let Some(format) = body.get("response_format") else { return Ok(()) };
    match text(&format["type"], "response_format.type")? {
        "json_object" => {
            // OpenAI and DeepSeek refuse it if no message mentions JSON.
            let mentions = body["messages"].to_string().contains("JSON");
            if mentions {
                Ok(())
            } else {
                Err("'messages' must contain the word 'json'".to_owned())
            }
        }
        "json_schema" => {
            let known: &[(&str, Kind)] =
                &[("name", Kind::Text), ("schema", Kind::Object), ("strict", Kind::Bool)];
            let schema = &format["json_schema"];
            members(object(schema, "json_schema")?, &[known], "json_schema")?;
            if schema["strict"] == true { is_strict(&schema["schema"]) } else { Ok(()) }
        }
        other => Err(format!("unknown response_format {other}")),
    }
}

/// <https://developers.openai.com/api/docs/guides/structured-outputs>
fn is_strict(schema: &Value) -> Checked {
    if schema["type"] != "object" {
        return Ok(());
    }
    if schema["additionalProperties"] != false {
        return Err("'additionalProperties' is required to be supplied and to be false".to_owned());
    }
    let properties = object(&schema["properties"], "properties")?;
    let required = list(&schema["required"], "required")?;
    properties.iter().try_for_each(|(name, schema)| {
        match required.iter().any(|known| known == name) {
            true => is_strict(schema),
            false => Err(format!("'required' is missing {name}")),
        }
    })
}

fn tool_choice_is_a_word(body: &Value) -> Checked {
    match body.get("tool_choice") {
        Some(choice) if !choice.is_string() => {
            Err("Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
                .to_owned())
        }
        _ => Ok(()),
    }
}

fn only_json_objects(body: &Value) -> Checked {
    match body.pointer("/response_format/type") {
        Some(kind) if kind != "json_object" => {
            Err(format!("response_format {kind} is unavailable now"))
        }
        _ => Ok(()),
    }
}

/// Refuses parameters by the model's name:
/// <https://developers.openai.com/api/docs/guides/reasoning>. The messages are from
/// <https://github.com/openai/openai-openapi/issues/541> and
/// <https://github.com/BerriAI/litellm/pull/34569>.
fn openai(body: &Value) -> Checked {
    let model = text(&body["model"], "model")?;
    let effort = body.get("reasoning_effort").and_then(Value::as_str);
    let has_tools = body.get("tools").is_some();
    let unsupported = |member: &str| {
        Err(format!("Unsupported parameter: '{member}' is not supported with this model."))
    };
    if body.get("metadata").is_some() && body["store"] != true {
        return Err("The 'metadata' parameter is only allowed when 'store' is enabled.".to_owned());
    }
    let thinks = match model {
        "gpt-4o" | "gpt-4.1-mini" => {
            if effort.is_some() {
                return Err("Unrecognized request argument supplied: reasoning_effort".to_owned());
            }
            if body.get("verbosity").is_some_and(|verbosity| verbosity != "medium") {
                return unsupported("verbosity");
            }
            false
        }
        "o3" | "o4-mini" => {
            if effort.is_some_and(|effort| !["low", "medium", "high"].contains(&effort)) {
                return Err(format!(
                    "Unsupported value: 'reasoning_effort' does not support {effort:?} with this model."
                ));
            }
            if body.get("parallel_tool_calls").is_some() {
                return unsupported("parallel_tool_calls");
            }
            if body.get("verbosity").is_some() {
                return unsupported("verbosity");
            }
            true
        }
        "gpt-5" | "gpt-5-mini" => {
            if effort == Some("none") {
                return Err("Unsupported value: 'reasoning_effort' does not support 'none' with this model.".to_owned());
            }
            true
        }
        "gpt-5.2" | "gpt-5.4" | "gpt-5.6" => {
            if effort == Some("minimal") {
                return Err(
                    "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.".to_owned()
                );
            }
            let default = if model == "gpt-5.6" { "medium" } else { "none" };
            let thinks = effort.unwrap_or(default) != "none";
            if has_tools && thinks && model != "gpt-5.2" {
                return Err(format!(
                    "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use \
                     function tools, use /v1/responses or set reasoning_effort to 'none'."
                ));
            }
            thinks
        }
        _ => return Err(format!("The model `{model}` does not exist")),
    };
    let refused =
        ["temperature", "top_p", "frequency_penalty", "presence_penalty", "stop", "max_tokens"];
    match refused.iter().find(|member| thinks && body.get(**member).is_some()) {
        Some(member) => unsupported(member),
        None => Ok(()),
    }
}

fn ollama(body: &Value) -> Checked {
    let known = ["minimal", "low", "medium", "high", "xhigh", "max", "none"];
    if body.get("reasoning_effort").is_some_and(|effort| !known.iter().any(|known| effort == known))
    {
        return Err("invalid reasoning value".to_owned());
    }
    // `decodeImageURL` of `openai/openai.go` takes data only.
    match body["messages"].to_string().contains("\"url\":\"http") {
        true => Err("invalid image input".to_owned()),
        false => Ok(()),
    }
}

fn deepseek(body: &Value) -> Checked {
    only_json_objects(body)?;
    if body["thinking"]["type"] == "disabled" {
        return Ok(());
    }
    let answers = list(&body["messages"], "messages")?
        .iter()
        .filter(|message| message["role"] == "assistant");
    match answers.into_iter().any(|message| !message["reasoning_content"].is_string()) {
        true => Err("The `reasoning_content` in the thinking mode must be passed back to the API."
            .to_owned()),
        false => Ok(()),
    }
}

fn moonshot(body: &Value) -> Checked {
    if body["thinking"]["type"] == "disabled" {
        return Ok(());
    }
    let messages = list(&body["messages"], "messages")?;
    let is_incomplete = |message: &&Value| {
        message.get("tool_calls").is_some() && !message["reasoning_content"].is_string()
    };
    match messages.iter().find(is_incomplete) {
        Some(_) => Err(
            "thinking is enabled but reasoning_content is missing in assistant tool call message"
                .to_owned(),
        ),
        None => Ok(()),
    }
}

fn xai(body: &Value) -> Checked {
    let thinks = !text(&body["model"], "model")?.contains("non-reasoning");
    let refused = ["frequency_penalty", "presence_penalty", "stop"];
    match refused.iter().find(|member| thinks && body.get(**member).is_some()) {
        Some(member) => Err(format!("Argument not supported on this model: {member}")),
        None => Ok(()),
    }
}
