//! The known models and servers of vendors: `models.toml`, and a user's file over it.
//!
//! This folder has the types of the data. The providers apply them to requests.

#[cfg(feature = "schema")]
mod profile_schema;
mod rule_table;
mod server_profile;
mod tool_limits;
mod vendor_rules;

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use indexmap::IndexMap;
use reqwest::Url;
use serde::Deserialize;

#[cfg(feature = "schema")]
pub(crate) use self::profile_schema::ProfileNameOrTable;
use self::rule_table::RuleTable;
pub use self::server_profile::ProfileOptions;
pub(crate) use self::server_profile::{
    Documents, ReasoningMember, StructuredOutputs, SystemMessages, ThinkTags, ThinkingMember,
    TokenLimit, ToolChoiceForm,
};
pub(crate) use self::{
    server_profile::{
        MessagesServer, Profile, RequiredReasoning, ThoughtBrackets, WrittenForm, WrittenSyntax,
    },
    tool_limits::ToolLimits,
    vendor_rules::{
        ClaudeRules, GeminiRules, OpenAiRules, Sampling, ThinkingControl, ThinkingOff,
        ThinkingTypes,
    },
};
use super::transport::{SetupError, is_in_domain};
use agui_protocol::JsonObject;

const EMBEDDED: &str = include_str!("../models.toml");

/// The rules of models, their context windows, and the profiles of servers with chat completions. The default is what
/// this version of the server knows. Clones share it.
///
/// ```
/// use agui_llm::{ProviderClient, KnownModels, ModelOptions};
///
/// let known = KnownModels::with(r#"
/// [windows]
/// "claude-opus-9" = 3_000_000
///
/// [[anthropic]]
/// names = ["our-deployment"]
/// like = "claude-opus-5"
/// "#)?;
/// let mut options = ModelOptions::new("our-deployment", ProviderClient::default());
/// options.known_models = known;
/// # Ok::<(), agui_llm::SetupError>(())
/// ```
#[derive(Clone)]
pub struct KnownModels(Arc<Known>);

struct Known {
    tables: KnownTables,
    /// The profiles by the names of servers.
    profiles: IndexMap<String, Arc<Profile>>,
    /// The limits by the names of providers.
    tool_limits: IndexMap<String, Arc<ToolLimits>>,
}

/// The form of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct KnownTables {
    openai: RuleTable,
    anthropic: RuleTable,
    gemini: RuleTable,
    windows: IndexMap<String, KnownWindow>,
    servers: IndexMap<String, JsonObject>,
    messages_servers: IndexMap<String, MessagesServer>,
    thoughts: Vec<ThoughtBrackets>,
    written_calls: Vec<WrittenForm>,
    tools: IndexMap<String, JsonObject>,
    media: IndexMap<String, MediaLimits>,
}

/// The limits of one provider for the media of a request; `None` is no limit that is known. Larger images are scaled down,
/// and the oldest media leave a request that has too many, before [`Model::stream`](crate::Model::stream) gets it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct MediaLimits {
    /// The characters of an image in base64.
    pub image_chars: Option<usize>,
    /// The pixels of an image's longer side.
    pub image_side: Option<u32>,
    /// The number of images above which `max_side_if_many` counts.
    pub many_images_above: Option<usize>,
    /// The pixels of the longer side of each image, if there are many.
    pub max_side_if_many: Option<u32>,
    /// The number of media of all kinds.
    pub media: Option<usize>,
    /// The characters of all media together in base64.
    pub media_chars: Option<usize>,
}

/// The tokens that a model can read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "ConfiguredWindow")]
pub(crate) struct KnownWindow {
    /// Input and output together.
    pub(crate) total: u64,
    /// The input alone.
    pub(crate) input: u64,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a number of tokens, or a table with `total` and `input`"
)]
enum ConfiguredWindow {
    Shared(u64),
    Apart { total: u64, input: u64 },
}

impl From<ConfiguredWindow> for KnownWindow {
    fn from(configured: ConfiguredWindow) -> Self {
        match configured {
            ConfiguredWindow::Shared(total) => Self { total, input: total },
            ConfiguredWindow::Apart { total, input } => Self { total, input },
        }
    }
}

impl KnownModels {
    /// Adds the tables of a text in TOML to the embedded ones, whose form they have:
    /// [`models.toml`](https://github.com/agui-server/agui-server/blob/main/crates/agui-llm/src/models.toml).
    ///
    /// # Errors
    /// If the text is not TOML of this form.
    pub fn with(text: &str) -> Result<Self, SetupError> {
        let tables = KnownTables::read(EMBEDDED)
            .and_then(|embedded| embedded.extended(KnownTables::read(text)?));
        let known =
            tables.and_then(Known::new).map_err(|problem| SetupError::KnownModels { problem })?;
        Ok(Self(Arc::new(known)))
    }

    /// Returns `None` if the name is not one of OpenAI's: another server's model may take less, or more.
    pub(crate) fn openai(&self, model: &str) -> Option<OpenAiRules> {
        self.0.tables.openai.rules(model, vendor_rules::parse_openai)
    }

    /// Returns `None` if the name is not one of Anthropic's.
    pub(crate) fn anthropic(&self, model: &str) -> Option<ClaudeRules> {
        self.0.tables.anthropic.rules(model, vendor_rules::parse_claude)
    }

    pub(crate) fn gemini(&self, model: &str) -> GeminiRules {
        self.0.tables.gemini.rules(model, vendor_rules::parse_gemini).unwrap_or_default()
    }

    pub(crate) fn window(&self, model: &str) -> Option<KnownWindow> {
        // Bedrock puts a region and the vendor before the name.
        let model = model.split_once("anthropic.").map_or(model, |(_, name)| name);
        let fits = self
            .0
            .tables
            .windows
            .iter()
            .filter(|(name, _)| rule_table::begins_with_name(model, name));
        fits.max_by_key(|(name, _)| name.len()).map(|(_, window)| *window)
    }

    /// Returns the limits of an API, by their name, which is one of the embedded file.
    pub(crate) fn tool_limits(&self, name: &str) -> Arc<ToolLimits> {
        self.0.tool_limits[name].clone()
    }

    /// Returns the limits of a provider for media.
    pub(crate) fn media_limits(&self, provider: &str) -> MediaLimits {
        self.0.tables.media.get(provider).copied().unwrap_or_default()
    }

    /// Returns the rules of the server with the Messages API at `url`.
    pub(crate) fn messages_server(&self, url: &Url) -> MessagesServer {
        let mut latest = self.0.tables.messages_servers.iter().rev();
        let found = latest
            .find(|(_, server)| server.domains.iter().any(|domain| is_in_domain(url, domain)));
        found
            .map(|(name, server)| MessagesServer { name: name.clone(), ..server.clone() })
            .unwrap_or_default()
    }

    /// Returns the profile of a configuration, for a server at `url`.
    ///
    /// # Errors
    /// If no profile has the configured name.
    pub(crate) fn profile(
        &self,
        options: Option<&ProfileOptions>,
        url: &Url,
    ) -> Result<Arc<Profile>, SetupError> {
        let profiles = &self.0.profiles;
        let name = options.and_then(|options| options.base.as_deref());
        let profile = match name {
            Some(name) => profiles.get(name),
            // Searched from the end: a user's servers come last and take precedence.
            None => {
                let mut latest = profiles.values().rev();
                let of_domain = latest
                    .clone()
                    .find(|server| server.domains.iter().any(|domain| is_in_domain(url, domain)));
                let of_port =
                    || latest.find(|it| url.port().is_some_and(|port| it.ports.contains(&port)));
                of_domain.or_else(of_port).or(profiles.get(server_profile::COMPATIBLE))
            }
        };
        let Some(profile) = profile else {
            let names: Vec<_> = profiles.keys().map(|name| format!("\"{name}\"")).collect();
            let name = name.unwrap_or(server_profile::COMPATIBLE);
            let problem = format!("there is no profile \"{name}\": expected {}", names.join(", "));
            return Err(SetupError::Option { option: "profile", problem });
        };
        Ok(match options {
            Some(options) => Arc::new(Profile::clone(profile).with(options)),
            None => profile.clone(),
        })
    }
}

/// The embedded models.
impl Default for KnownModels {
    fn default() -> Self {
        static DEFAULT: LazyLock<KnownModels> = LazyLock::new(|| {
            let known = KnownTables::read(EMBEDDED).and_then(Known::new);
            #[expect(clippy::expect_used, reason = "the text is a constant that a test reads")]
            KnownModels(Arc::new(known.expect("the embedded models are valid")))
        });
        DEFAULT.clone()
    }
}

impl fmt::Debug for KnownModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownModels").finish_non_exhaustive()
    }
}

impl KnownTables {
    /// Reads a text, and checks the members of its rules.
    fn read(text: &str) -> Result<Self, String> {
        let tables: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        tables.openai.check::<OpenAiRules>("openai")?;
        tables.anthropic.check::<ClaudeRules>("anthropic")?;
        tables.gemini.check::<GeminiRules>("gemini")?;
        // An empty bracket would be found everywhere.
        let of_thoughts = tables
            .thoughts
            .iter()
            .flat_map(|pair| [&pair.opening, &pair.closing].into_iter().chain(&pair.then));
        let of_calls = tables.written_calls.iter().map(|form| &form.opening);
        if of_thoughts.chain(of_calls).any(String::is_empty) {
            return Err(
                "the brackets of `thoughts` and the openings of `written_calls` cannot be empty"
                    .to_owned(),
            );
        }
        Ok(tables)
    }

    /// Adds the tables of a user. Fails if one has the limits of an unknown provider.
    fn extended(mut self, user: Self) -> Result<Self, String> {
        self.openai.extend(user.openai);
        self.anthropic.extend(user.anthropic);
        self.gemini.extend(user.gemini);
        self.windows.extend(user.windows);
        for (name, members) in user.servers {
            self.servers.entry(name).or_default().extend(members);
        }
        self.thoughts.extend(user.thoughts);
        self.written_calls.extend(user.written_calls);
        self.messages_servers.extend(user.messages_servers);
        for (name, members) in user.tools {
            let unknown =
                format!("[tools.{name}]: unknown provider, expected {:?}", self.tools.keys());
            self.tools.get_mut(&name).ok_or(unknown)?.extend(members);
        }
        self.media.extend(user.media);
        Ok(self)
    }
}

impl Known {
    /// Fails if a member of a server, or of the limits of tools, is unknown.
    fn new(tables: KnownTables) -> Result<Self, String> {
        let servers = &tables.servers;
        let profiles = servers.keys().map(|name| {
            let mut profile = Profile::read(name, servers)?;
            let thoughts =
                tables.thoughts.iter().filter(|pair| pair.everywhere || !profile.parses_output);
            profile.thoughts = thoughts.cloned().collect();
            profile.written_calls =
                tables.written_calls.iter().filter(|_| !profile.parses_output).cloned().collect();
            Ok((name.clone(), Arc::new(profile)))
        });
        let profiles = profiles.collect::<Result<_, String>>()?;
        let limits = |(name, members): (&String, &JsonObject)| {
            Ok((name.clone(), Arc::new(ToolLimits::read(name, members)?)))
        };
        let tool_limits = tables.tools.iter().map(limits).collect::<Result<_, String>>()?;
        Ok(Self { tables, profiles, tool_limits })
    }
}

#[cfg(test)]
mod tests;
