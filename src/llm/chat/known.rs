//! The profiles of known servers with chat completions. A profile is chosen by its name, or by the server's URL.

use reqwest::Url;

use super::profile::{
    Documents, Profile, ProfileOptions, ReasoningMember, RequiredReasoning, StructuredOutputs, SwitchEfforts,
    SystemMessages, ThinkTags, ThinkingMember, TokenLimit, ToolChoiceForm,
};

/// The profiles by name. The first one is for servers that are not recognised.
const KNOWN: &[Profile] = &[
    COMPATIBLE, OPENAI, AZURE, OLLAMA, VLLM, LLAMA_CPP, LM_STUDIO, OPENROUTER, DEEPSEEK, MISTRAL, GROQ, TOGETHER,
    FIREWORKS, XAI, MOONSHOT, ZAI, QWEN,
];

/// The domains of providers, with their profiles.
const DOMAINS: &[(&str, &Profile)] = &[
    ("openai.com", &OPENAI),
    ("azure.com", &AZURE),
    ("ollama.com", &OLLAMA),
    ("openrouter.ai", &OPENROUTER),
    ("deepseek.com", &DEEPSEEK),
    ("mistral.ai", &MISTRAL),
    ("groq.com", &GROQ),
    ("together.ai", &TOGETHER),
    ("together.xyz", &TOGETHER),
    ("fireworks.ai", &FIREWORKS),
    ("x.ai", &XAI),
    ("moonshot.ai", &MOONSHOT),
    ("moonshot.cn", &MOONSHOT),
    ("z.ai", &ZAI),
    ("bigmodel.cn", &ZAI),
    ("aliyuncs.com", &QWEN),
];

/// The default ports of servers for one's own models, with their profiles.
const PORTS: &[(u16, &Profile)] = &[(11434, &OLLAMA), (8000, &VLLM), (8080, &LLAMA_CPP), (1234, &LM_STUDIO)];

/// Returns the profile of a configuration, for a server at `url`.
///
/// # Errors
/// If no profile has the configured name, with the message.
pub(super) fn profile(options: Option<&ProfileOptions>, url: &Url) -> Result<Profile, String> {
    let Some(options) = options else { return Ok(*by_url(url)) };
    let base = match &options.base {
        None => by_url(url),
        Some(name) => KNOWN.iter().find(|profile| profile.name == name).ok_or_else(|| {
            let names: Vec<_> = KNOWN.iter().map(|profile| format!("\"{}\"", profile.name)).collect();
            format!("there is no profile \"{name}\": expected {}", names.join(", "))
        })?,
    };
    Ok(base.with(options))
}

/// Returns the profile that fits a server's domain, or else its port.
fn by_url(url: &Url) -> &'static Profile {
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let is_within = |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    let of_domain = DOMAINS.iter().find(|(domain, _)| is_within(domain)).map(|(_, profile)| *profile);
    let of_port = || PORTS.iter().find(|(port, _)| url.port() == Some(*port)).map(|(_, profile)| *profile);
    of_domain.or_else(of_port).unwrap_or(&COMPATIBLE)
}

/// The JSON Schema of `profile` in a configuration.
#[cfg(test)]
pub(crate) struct ProfileNameOrTable;

#[cfg(test)]
impl schemars::JsonSchema for ProfileNameOrTable {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProfileNameOrTable".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names = serde_json::json!(KNOWN.iter().map(|profile| profile.name).collect::<Vec<_>>());
        let mut table = generator.subschema_for::<ProfileOptions>().to_value();
        table["properties"]["base"]["enum"] = names.clone();
        schemars::json_schema!({ "anyOf": [{ "type": "string", "enum": names }, table] })
    }
}

const COMPATIBLE: Profile = Profile {
    name: "compatible",
    has_openai_models: false,
    has_api_key_header: false,
    token_limit: TokenLimit::MaxTokens,
    stream_options: true,
    thinking_member: ThinkingMember::ReasoningEffort,
    reasoning_member: ReasoningMember::None,
    system_messages: SystemMessages::Anywhere,
    developer_role: false,
    alternate_roles: false,
    assistant_last: true,
    user_after_results: true,
    call_id_length: 0,
    tool_choice_form: ToolChoiceForm::Named,
    strict: true,
    structured_outputs: StructuredOutputs::JsonSchema,
    images: true,
    image_urls: true,
    audio: true,
    documents: Documents::File,
    think_tags: ThinkTags::Paired,
    switch_efforts: &[SwitchEfforts { models: "", on: Some("medium"), off: None }],
    required_reasoning: RequiredReasoning::None,
    seed_member: "seed",
    models_with_stop: None,
    lacking: &[],
};

/// The efforts of servers that switch thinking off by the effort `none`.
const NONE_IS_OFF: &[SwitchEfforts] = &[SwitchEfforts { models: "", on: Some("medium"), off: Some("none") }];

/// <https://platform.openai.com/docs/api-reference/chat/create>. `max_tokens` is deprecated there, and reasoning models
/// refuse it.
const OPENAI: Profile = Profile {
    name: "openai",
    has_openai_models: true,
    token_limit: TokenLimit::MaxCompletionTokens,
    lacking: &["top_k"],
    ..COMPATIBLE
};

/// <https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning>
const AZURE: Profile = Profile { name: "azure", has_api_key_header: true, ..OPENAI };

/// A server that writes the conversation by a model's chat template. Many templates refuse a second system message,
/// two messages of users in a row (`Conversation roles must alternate`), and the model's message at the end, as in
/// <https://github.com/ggml-org/llama.cpp/issues/19851>.
const TEMPLATE: Profile = Profile {
    system_messages: SystemMessages::One,
    alternate_roles: true,
    assistant_last: false,
    user_after_results: false,
    documents: Documents::None,
    ..COMPATIBLE
};

/// <https://docs.ollama.com/api/openai-compatibility>: no URLs of images, no `tool_choice`. Members that are not on the
/// page are ignored.
const OLLAMA: Profile = Profile {
    name: "ollama",
    switch_efforts: NONE_IS_OFF,
    reasoning_member: ReasoningMember::Reasoning,
    tool_choice_form: ToolChoiceForm::Auto,
    strict: false,
    image_urls: false,
    lacking: &["top_k", "parallel_tool_calls", "verbosity", "service_tier", "cache_key", "image_detail", "metadata"],
    ..TEMPLATE
};

/// <https://docs.vllm.ai/en/stable/serving/openai_compatible_server/>, and for thinking
/// <https://docs.vllm.ai/en/stable/features/reasoning_outputs/>.
const VLLM: Profile = Profile {
    name: "vllm",
    thinking_member: ThinkingMember::ChatTemplateKwargs,
    reasoning_member: ReasoningMember::Reasoning,
    lacking: &["verbosity", "service_tier", "cache_key", "metadata"],
    ..TEMPLATE
};

/// <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>. An object as `tool_choice` is read as
/// `auto`, and parts other than texts, images and audio are refused (`tools/server/server-common.cpp`).
const LLAMA_CPP: Profile = Profile {
    name: "llama-cpp",
    thinking_member: ThinkingMember::ChatTemplateKwargs,
    reasoning_member: ReasoningMember::ReasoningContent,
    tool_choice_form: ToolChoiceForm::Words,
    strict: false,
    lacking: &["thinking_budget", "verbosity", "service_tier", "cache_key", "metadata"],
    ..TEMPLATE
};

/// <https://lmstudio.ai/docs/developer/openai-compat/chat-completions>. An object as `tool_choice` is refused:
/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670>.
const LM_STUDIO: Profile = Profile {
    name: "lm-studio",
    tool_choice_form: ToolChoiceForm::Words,
    strict: false,
    audio: false,
    lacking: &["verbosity", "service_tier", "cache_key", "metadata"],
    ..TEMPLATE
};

/// <https://openrouter.ai/docs/use-cases/reasoning-tokens>: `reasoning_details` return unchanged.
const OPENROUTER: Profile = Profile {
    name: "openrouter",
    thinking_member: ThinkingMember::Reasoning,
    reasoning_member: ReasoningMember::ReasoningDetails,
    ..COMPATIBLE
};

/// <https://api-docs.deepseek.com/guides/thinking_mode>: `reasoning_content` returns, and no message may lack it in
/// thinking mode; texts only; JSON objects without a
/// schema (<https://api-docs.deepseek.com/guides/json_mode>).
const DEEPSEEK: Profile = Profile {
    name: "deepseek",
    required_reasoning: RequiredReasoning::All,
    thinking_member: ThinkingMember::Thinking,
    reasoning_member: ReasoningMember::ReasoningContent,
    strict: false,
    structured_outputs: StructuredOutputs::JsonObject,
    images: false,
    audio: false,
    documents: Documents::None,
    lacking: &["top_k", "seed", "parallel_tool_calls", "verbosity", "service_tier", "cache_key", "metadata"],
    ..COMPATIBLE
};

/// <https://docs.mistral.ai/api/endpoint/chat>: members that it does not know are refused, `stream_options` among them.
/// The order of roles and the ids of calls are checked as in
/// <https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py>. Only models
/// that reason take an effort: <https://docs.mistral.ai/capabilities/reasoning/>.
const MISTRAL: Profile = Profile {
    name: "mistral",
    switch_efforts: &[
        SwitchEfforts { models: "mistral-small", on: Some("high"), off: Some("none") },
        SwitchEfforts { models: "mistral-medium", on: Some("high"), off: Some("none") },
        SwitchEfforts { models: "mistral-large-4", on: Some("high"), off: Some("none") },
        SwitchEfforts { models: "", on: Some("high"), off: None },
    ],
    seed_member: "random_seed",
    stream_options: false,
    reasoning_member: ReasoningMember::Content,
    system_messages: SystemMessages::First,
    assistant_last: false,
    user_after_results: false,
    call_id_length: 9,
    documents: Documents::DocumentUrl,
    lacking: &["top_k", "verbosity", "service_tier"],
    ..COMPATIBLE
};

/// <https://console.groq.com/docs/api-reference#chat-create>, and for thinking <https://console.groq.com/docs/reasoning>.
/// Its other models either think by themselves or refuse an effort. Schemas of answers cannot be streamed:
/// <https://console.groq.com/docs/structured-outputs>.
const GROQ: Profile = Profile {
    name: "groq",
    switch_efforts: &[
        SwitchEfforts { models: "qwen", on: Some("default"), off: Some("none") },
        SwitchEfforts { models: "gpt-oss", on: Some("medium"), off: None },
    ],
    token_limit: TokenLimit::MaxCompletionTokens,
    reasoning_member: ReasoningMember::Reasoning,
    strict: false,
    structured_outputs: StructuredOutputs::None,
    audio: false,
    documents: Documents::None,
    lacking: &["top_k", "verbosity", "cache_key", "metadata"],
    ..COMPATIBLE
};

/// <https://docs.together.ai/docs/inference/chat/reasoning>
const TOGETHER: Profile = Profile {
    name: "together",
    thinking_member: ThinkingMember::ReasoningEnabled,
    strict: false,
    documents: Documents::None,
    lacking: &["verbosity", "service_tier", "cache_key", "metadata"],
    ..COMPATIBLE
};

/// <https://docs.fireworks.ai/guides/reasoning>
const FIREWORKS: Profile = Profile {
    name: "fireworks",
    reasoning_member: ReasoningMember::ReasoningContent,
    switch_efforts: NONE_IS_OFF,
    strict: false,
    documents: Documents::None,
    lacking: &["verbosity", "cache_key"],
    ..COMPATIBLE
};

/// <https://docs.x.ai/docs/guides/reasoning>: grok-4.3 can stop thinking, other models always think, or never. Models that
/// think refuse penalties and `stop`.
const XAI: Profile = Profile {
    name: "xai",
    switch_efforts: &[SwitchEfforts { models: "grok-4.3", on: None, off: Some("none") }],
    models_with_stop: Some(&["non-reasoning", "grok-3"]),
    token_limit: TokenLimit::MaxCompletionTokens,
    strict: false,
    audio: false,
    documents: Documents::None,
    lacking: &["top_k", "verbosity", "service_tier", "cache_key", "metadata"],
    ..COMPATIBLE
};

/// <https://platform.moonshot.ai/docs/api/chat>: `max_tokens` is deprecated, and `reasoning_content` returns.
const MOONSHOT: Profile = Profile {
    name: "moonshot",
    required_reasoning: RequiredReasoning::OfCalls,
    token_limit: TokenLimit::MaxCompletionTokens,
    thinking_member: ThinkingMember::Thinking,
    reasoning_member: ReasoningMember::ReasoningContent,
    strict: false,
    audio: false,
    documents: Documents::None,
    lacking: &["top_k", "seed", "parallel_tool_calls", "verbosity", "service_tier", "image_detail", "metadata"],
    ..COMPATIBLE
};

/// <https://docs.z.ai/api-reference/llm/chat-completion>: `tool_choice` is `auto`, the usage comes unasked, and JSON
/// objects have no schema. <https://docs.z.ai/guides/capabilities/thinking-mode>: `reasoning_content` returns.
const ZAI: Profile = Profile {
    name: "zai",
    stream_options: false,
    thinking_member: ThinkingMember::Thinking,
    reasoning_member: ReasoningMember::ReasoningContent,
    tool_choice_form: ToolChoiceForm::Auto,
    strict: false,
    structured_outputs: StructuredOutputs::JsonObject,
    audio: false,
    documents: Documents::None,
    lacking: &[
        "top_k",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "parallel_tool_calls",
        "verbosity",
        "service_tier",
        "cache_key",
        "image_detail",
        "metadata",
    ],
    ..COMPATIBLE
};

/// <https://www.alibabacloud.com/help/en/model-studio/deep-thinking>, in the form that is compatible with OpenAI's.
const QWEN: Profile = Profile {
    name: "qwen",
    thinking_member: ThinkingMember::EnableThinking,
    reasoning_member: ReasoningMember::ReasoningContent,
    strict: false,
    documents: Documents::None,
    lacking: &["verbosity", "service_tier", "cache_key", "metadata"],
    ..COMPATIBLE
};
