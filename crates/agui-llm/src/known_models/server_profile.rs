//! The differences between servers with chat completions, and between those with Anthropic's Messages API. A configuration can
//! replace most members of a [`Profile`].

use std::{fmt, sync::Arc};

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use agui_protocol::JsonObject;

/// A server with the Messages API that is not Anthropic's.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessagesServer {
    /// Its name, which marks the reasoning that it signed; empty for servers that are not recognised.
    #[serde(skip)]
    pub(crate) name: String,
    pub(super) domains: Vec<String>,
    /// `true` if thinking returns also without a signature.
    pub(crate) unsigned_thinking: bool,
}

/// The member that limits the tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum TokenLimit {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// The member that asks for thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThinkingMember {
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningMember {
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum SystemMessages {
    /// Several, anywhere.
    Anywhere,
    /// Several, before all other messages.
    First,
    /// One, before all other messages. Context and state are at the end, in a user's message.
    One,
    /// One, before all other messages, with context and state.
    Joined,
    /// None: instructions are in the first message of the user.
    None,
}

/// The forms of `tool_choice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolChoiceForm {
    /// A word, or an object that names a tool.
    Named,
    /// `none`, `auto` or `required`.
    Words,
    /// `auto` only.
    Auto,
}

/// The form in which the schema of an answer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum StructuredOutputs {
    /// In `response_format`.
    JsonSchema,
    /// In the instructions; `response_format` asks for any JSON object.
    JsonObject,
    /// In the instructions.
    None,
}

/// The part in which PDFs are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Documents {
    /// PDFs cannot be given.
    None,
    /// `file`, with data.
    File,
    /// `document_url`, with a URL or data.
    DocumentUrl,
}

/// The tags `<think>` and `<thinking>` around reasoning at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThinkTags {
    /// Reasoning is between the tags.
    Paired,
    /// The text begins with reasoning, because the opening tag is a part of the prompt.
    Closing,
    /// Tags are a part of the text.
    None,
}

/// The name of the profile for servers that are not recognised, whose members others have unless they set their own.
pub(super) const COMPATIBLE: &str = "compatible";
/// The member that names the server from which another one takes its members.
const BASE: &str = "base";

/// Declares the members that a configuration can replace, for [`ProfileOptions`] and for [`Profile`].
macro_rules! replaceable_members {
    ($($(#[$doc:meta])* $vis:vis $member:ident: $type:ty,)*) => {
        /// A profile in a configuration: a known one, with some members replaced.
        #[derive(Debug, Clone, PartialEq, Default, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        // Makes a function for the table alone, which the implementation for a name or a table calls.
        #[serde(remote = "Self", default, deny_unknown_fields)]
        #[non_exhaustive]
        pub struct ProfileOptions {
            /// The name of the known profile. Default: the one that fits `base_url`.
            pub base: Option<String>,
            $($(#[$doc])* $vis $member: Option<$type>,)*
        }

        /// The request format of a server.
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(in crate) struct Profile {
            #[serde(skip)]
            pub(in crate) name: String,
            #[serde(default)]
            pub(super) domains: Vec<String>,
            #[serde(default)]
            pub(super) ports: Vec<u16>,
            /// `true` if the models are OpenAI's, whose names say what they take.
            pub(in crate) has_openai_models: bool,
            /// `true` if the key is sent in the header `api-key`, too.
            pub(in crate) has_api_key_header: bool,
            $(pub(in crate) $member: $type,)*
            /// The efforts that switch thinking, the more specific models first.
            switch_efforts: Vec<SwitchEfforts>,
            pub(in crate) required_reasoning: RequiredReasoning,
            /// `true` after a refusal that wants the reasoning of all messages.
            #[serde(skip)]
            pub(in crate) adds_reasoning: bool,
            /// The member for the seed of sampling.
            pub(in crate) seed_member: String,
            /// Parts of the names of the models that take `stop` and penalties; `None` if all models do.
            models_with_stop: Option<Vec<String>>,
            /// The options that the server lacks, in addition to those that follow from other members.
            lacking: Vec<String>,
            /// `true` if the server itself reads the thoughts and the calls that its models write as text.
            pub(super) parses_output: bool,
            /// The brackets around thoughts that may come in a text.
            #[serde(skip)]
            pub(in crate) thoughts: Arc<[ThoughtBrackets]>,
            /// The forms of calls that may come in a text.
            #[serde(skip)]
            pub(in crate) written_calls: Arc<[WrittenForm]>,
        }

        impl Profile {
            /// Replaces the members that `options` sets.
            pub(super) fn with(mut self, options: &ProfileOptions) -> Self {
                $(if let Some(value) = options.$member {
                    self.$member = value;
                })*
                self
            }
        }
    };
}

replaceable_members! {
    /// The member that limits the tokens of an answer.
    pub(in crate) token_limit: TokenLimit,
    /// `true` if the request asks for the usage by `stream_options`.
    pub stream_options: bool,
    /// The member that asks for thinking.
    pub(in crate) thinking_member: ThinkingMember,
    /// The member in which the model gets its earlier reasoning.
    pub(in crate) reasoning_member: ReasoningMember,
    /// The places of system messages.
    pub(in crate) system_messages: SystemMessages,
    /// `true` if instructions have the role `developer` instead of `system`.
    pub developer_role: bool,
    /// `true` if messages of users and of the model have to alternate.
    pub alternate_roles: bool,
    /// `true` if the last message may be the model's.
    pub assistant_last: bool,
    /// `true` if a user's message may follow results of tools.
    pub user_after_results: bool,
    /// `true` if the content of a message of calls alone is `null`, and not an empty text.
    pub null_content: bool,
    /// The number of letters and digits of a call's id. 0: up to 40 characters are taken, `_` and `-` included.
    pub call_id_length: usize,
    /// The forms of `tool_choice`.
    pub(in crate) tool_choice_form: ToolChoiceForm,
    /// `true` if tools and schemas may be marked as strict.
    pub strict: bool,
    /// The form in which the schema of an answer is given.
    pub(in crate) structured_outputs: StructuredOutputs,
    /// `true` if messages may contain images.
    pub images: bool,
    /// `true` if images may be URLs, and not only data.
    pub image_urls: bool,
    /// `true` if messages may contain audio.
    pub audio: bool,
    /// The part in which PDFs are given.
    pub(in crate) documents: Documents,
    /// The tags around reasoning at the beginning of a text.
    pub(in crate) think_tags: ThinkTags,
}

/// Brackets around thoughts at the beginning of a text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThoughtBrackets {
    pub(crate) opening: String,
    pub(crate) closing: String,
    /// The text that may stand between the closing bracket and the answer, or another thought.
    #[serde(default)]
    pub(crate) then: Vec<String>,
    /// `true` if they are read from all servers.
    #[serde(default)]
    pub(super) everywhere: bool,
}

/// A form in which models write calls as text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenForm {
    pub(crate) opening: String,
    #[serde(default)]
    pub(crate) closing: String,
    pub(crate) syntax: WrittenSyntax,
}

/// The syntax of calls that are written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WrittenSyntax {
    /// Objects with a name and arguments, lists of them, or names before an object of arguments.
    Json,
    /// Tags with the names and the arguments.
    Invoke,
    /// Calls of functions.
    Python,
}

/// The efforts of requests that switch thinking on and off, for servers with [`ThinkingMember::ReasoningEffort`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchEfforts {
    /// A part of the names of the models; empty for all models.
    models: String,
    /// The effort if none is configured. `None` if the models think by themselves, or cannot.
    pub(crate) on: Option<String>,
    /// `None` if thinking cannot be switched off.
    pub(crate) off: Option<String>,
}

/// The messages of the model that a server refuses without their reasoning, while the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequiredReasoning {
    None,
    OfCalls,
    All,
}

impl Profile {
    /// Reads the profile of a server.
    ///
    /// # Errors
    /// If a member is unknown or missing, or if the bases of servers form a circle.
    pub(super) fn read(name: &str, servers: &IndexMap<String, JsonObject>) -> Result<Self, String> {
        let read = |members| {
            serde_json::from_value::<Self>(Value::Object(members))
                .map_err(|error| error.to_string())
        };
        let profile = members(name, servers, servers.len()).and_then(read);
        let profile = profile.map_err(|problem| format!("[servers.{name}]: {problem}"))?;
        Ok(Self { name: name.to_owned(), ..profile })
    }

    /// Returns the options that the server lacks.
    pub(crate) fn lacking_options(&self) -> Vec<&str> {
        let has_budget = matches!(
            self.thinking_member,
            ThinkingMember::Reasoning
                | ThinkingMember::EnableThinking
                | ThinkingMember::ChatTemplateKwargs
        );
        let derived = [
            ("thinking_budget", has_budget),
            ("strict_tools", self.strict),
            ("image_detail", self.images),
        ];
        let derived =
            derived.into_iter().filter(|(_, is_taken)| !is_taken).map(|(option, _)| option);
        self.lacking.iter().map(String::as_str).chain(derived).collect()
    }

    pub(crate) fn switch_efforts_of(&self, model: &str) -> Option<&SwitchEfforts> {
        self.switch_efforts.iter().find(|efforts| model.contains(&efforts.models))
    }

    pub(crate) fn takes_stop(&self, model: &str) -> bool {
        self.models_with_stop
            .as_ref()
            .is_none_or(|names| names.iter().any(|name| model.contains(name)))
    }
}

/// Returns the members of a server: its own, and those of its base, which may have a base, too.
fn members(
    name: &str,
    servers: &IndexMap<String, JsonObject>,
    most_bases: usize,
) -> Result<JsonObject, String> {
    let mut own =
        servers.get(name).ok_or_else(|| format!("there is no server \"{name}\""))?.clone();
    let base = own.remove(BASE);
    let base = base.as_ref().map(|base| base.as_str().unwrap_or_default());
    let Some(base) = base.or((name != COMPATIBLE).then_some(COMPATIBLE)) else { return Ok(own) };
    if most_bases == 0 {
        return Err(format!("\"{name}\" is its own `{BASE}`"));
    }
    let mut members = members(base, servers, most_bases - 1)?;
    members.shift_remove("domains");
    members.shift_remove("ports");
    members.extend(own);
    Ok(members)
}

impl ProfileOptions {
    /// The profile of this name, such as `vllm`.
    ///
    /// ```
    /// use agui_llm::ProfileOptions;
    ///
    /// let mut profile = ProfileOptions::named("vllm");
    /// profile.stream_options = Some(false);
    /// ```
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
