//! The differences between servers with chat completions. A configuration can replace most members of a [`Profile`].

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A profile in a configuration: a known one, with some members replaced.
///
/// ```
/// use agui_server::llm::ProfileOptions;
///
/// let mut profile = ProfileOptions::named("vllm");
/// profile.stream_options = Some(false);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
// Makes a function for the table alone, which the implementation for a name or a table calls.
#[serde(remote = "Self", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// The name of the known profile. Default: the one that fits `base_url`.
    pub base: Option<String>,
    /// The member that limits the tokens of an answer.
    pub token_limit: Option<TokenLimit>,
    /// `true` if the request asks for the usage by `stream_options`.
    pub stream_options: Option<bool>,
    /// The member that asks for thinking.
    pub thinking_member: Option<ThinkingMember>,
    /// The member in which the model gets its earlier reasoning.
    pub reasoning_member: Option<ReasoningMember>,
    /// The places of system messages.
    pub system_messages: Option<SystemMessages>,
    /// `true` if instructions have the role `developer` instead of `system`.
    pub developer_role: Option<bool>,
    /// `true` if messages of users and of the model have to alternate.
    pub alternate_roles: Option<bool>,
    /// `true` if the last message may be the model's.
    pub assistant_last: Option<bool>,
    /// `true` if a user's message may follow results of tools.
    pub user_after_results: Option<bool>,
    /// The number of letters and digits of a call's id. 0: up to 40 characters are taken, `_` and `-` included.
    pub call_id_length: Option<usize>,
    /// The forms of `tool_choice`.
    pub tool_choice_form: Option<ToolChoiceForm>,
    /// `true` if tools and schemas may be marked as strict.
    pub strict: Option<bool>,
    /// The form in which the schema of an answer is given.
    pub structured_outputs: Option<StructuredOutputs>,
    /// `true` if messages may contain images.
    pub images: Option<bool>,
    /// `true` if images may be URLs, and not only data.
    pub image_urls: Option<bool>,
    /// `true` if messages may contain audio.
    pub audio: Option<bool>,
    /// The part in which PDFs are given.
    pub documents: Option<Documents>,
    /// The tags around reasoning at the beginning of a text.
    pub think_tags: Option<ThinkTags>,
}

/// The member that limits the tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenLimit {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// The member that asks for thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingMember {
    /// Thinking cannot be asked for.
    None,
    /// `reasoning_effort = "high"`.
    ReasoningEffort,
    /// `reasoning = { effort = "high" }` or `{ max_tokens = 1000 }`.
    Reasoning,
    /// `reasoning = { enabled = true }`, and `reasoning_effort` beside it.
    ReasoningEnabled,
    /// `thinking = { type = "enabled" }`, and `reasoning_effort` beside it.
    Thinking,
    /// `enable_thinking = true`, and `thinking_budget` beside it.
    EnableThinking,
    /// `chat_template_kwargs = { enable_thinking = true }`, and `reasoning_effort` beside it.
    ChatTemplateKwargs,
    /// `think = true`, or an effort.
    Think,
}

/// The member of the model's own messages in which it gets its earlier reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningMember {
    /// Reasoning is not sent back.
    None,
    /// `reasoning_content`, a text.
    ReasoningContent,
    /// `reasoning`, a text.
    Reasoning,
    /// `reasoning_details`, a list that returns unchanged.
    ReasoningDetails,
    /// Parts of `content` of the type `thinking`.
    Content,
}

/// The places of system messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemMessages {
    /// Several, anywhere.
    Anywhere,
    /// Several, before all other messages.
    First,
    /// One, before all other messages.
    One,
}

/// The forms of `tool_choice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoiceForm {
    /// A word, or an object that names a tool.
    Named,
    /// `none`, `auto` or `required`.
    Words,
    /// `auto` only.
    Auto,
}

/// The form in which the schema of an answer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StructuredOutputs {
    /// In `response_format`.
    JsonSchema,
    /// In the instructions; `response_format` asks for any JSON object.
    JsonObject,
    /// In the instructions.
    None,
}

/// The part in which PDFs are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Documents {
    /// PDFs cannot be given.
    None,
    /// `file`, with data.
    File,
    /// `document_url`, with a URL or data.
    DocumentUrl,
}

/// The tags `<think>` and `<thinking>` around reasoning at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkTags {
    /// Reasoning is between the tags.
    Paired,
    /// The text begins with reasoning, because the opening tag is a part of the prompt.
    Closing,
    /// Tags are a part of the text.
    None,
}

/// The request format of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Profile {
    pub(super) name: &'static str,
    /// `true` if the models are OpenAI's, whose names say what they take.
    pub(super) has_openai_models: bool,
    /// `true` if the key is sent in the header `api-key`, too.
    pub(super) has_api_key_header: bool,
    pub(super) token_limit: TokenLimit,
    pub(super) stream_options: bool,
    pub(super) thinking_member: ThinkingMember,
    pub(super) reasoning_member: ReasoningMember,
    pub(super) system_messages: SystemMessages,
    pub(super) developer_role: bool,
    pub(super) alternate_roles: bool,
    pub(super) assistant_last: bool,
    pub(super) user_after_results: bool,
    pub(super) call_id_length: usize,
    pub(super) tool_choice_form: ToolChoiceForm,
    pub(super) strict: bool,
    pub(super) structured_outputs: StructuredOutputs,
    pub(super) images: bool,
    pub(super) image_urls: bool,
    pub(super) audio: bool,
    pub(super) documents: Documents,
    pub(super) think_tags: ThinkTags,
    /// The efforts that switch thinking, the more specific models first.
    pub(super) switch_efforts: &'static [SwitchEfforts],
    pub(super) required_reasoning: RequiredReasoning,
    /// The member for the seed of sampling.
    pub(super) seed_member: &'static str,
    /// Parts of the names of the models that take `stop` and penalties; `None` if all models do.
    pub(super) models_with_stop: Option<&'static [&'static str]>,
    /// The options that the server lacks, in addition to those that follow from other members.
    pub(super) lacking: &'static [&'static str],
}

/// The efforts of requests that switch thinking on and off, for servers with [`ThinkingMember::ReasoningEffort`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SwitchEfforts {
    /// A part of the names of the models; empty for all models.
    pub(super) models: &'static str,
    /// The effort if none is configured. `None` if the models think by themselves, or cannot.
    pub(super) on: Option<&'static str>,
    /// `None` if thinking cannot be switched off.
    pub(super) off: Option<&'static str>,
}

/// The messages of the model that a server refuses without their reasoning, while the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequiredReasoning {
    None,
    OfCalls,
    All,
}

impl Profile {
    /// Returns the options that the server lacks.
    pub(super) fn lacking_options(&self) -> Vec<&'static str> {
        let has_budget = matches!(
            self.thinking_member,
            ThinkingMember::Reasoning | ThinkingMember::EnableThinking | ThinkingMember::ChatTemplateKwargs
        );
        let derived = [("thinking_budget", has_budget), ("strict_tools", self.strict), ("image_detail", self.images)];
        let derived = derived.into_iter().filter(|(_, is_taken)| !is_taken).map(|(option, _)| option);
        self.lacking.iter().copied().chain(derived).collect()
    }

    pub(super) fn switch_efforts_of(&self, model: &str) -> Option<&'static SwitchEfforts> {
        self.switch_efforts.iter().find(|efforts| model.contains(efforts.models))
    }

    pub(super) fn takes_stop(&self, model: &str) -> bool {
        self.models_with_stop.is_none_or(|names| names.iter().any(|name| model.contains(name)))
    }

    /// Replaces the members that `options` sets.
    pub(super) fn with(mut self, options: &ProfileOptions) -> Self {
        macro_rules! replace {
            ($($member:ident)*) => { $(if let Some(value) = options.$member { self.$member = value; })* };
        }
        replace! {
            token_limit stream_options thinking_member reasoning_member system_messages developer_role alternate_roles
            assistant_last user_after_results call_id_length tool_choice_form strict structured_outputs images image_urls audio documents
            think_tags
        }
        self
    }
}

impl ProfileOptions {
    /// The profile of this name, such as `vllm`.
    pub fn named(name: impl Into<String>) -> Self {
        Self { base: Some(name.into()), ..Self::default() }
    }
}

/// A name, or a table.
impl<'de> Deserialize<'de> for ProfileOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;
        impl<'de> de::Visitor<'de> for NameOrTable {
            type Value = ProfileOptions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a profile or a table")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(ProfileOptions::named(name))
            }

            fn visit_map<M: de::MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                ProfileOptions::deserialize(de::value::MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}
