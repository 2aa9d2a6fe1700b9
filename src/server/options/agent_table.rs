//! Reads the table of an agent: first `kind` and `provider`, then the structs of this kind, each its own options.

use std::ops::Range;

use indexmap::IndexSet;
use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{
    agents::{
        AgentConfig, AgentKind, ApiOptions, CommonOptions, ConnectionConfig, HostedApi, KindName, LlmConfig,
        LlmOptions, ModelSource, ProviderName, ProviderOptions, RecordingsFolder, ScriptConfig,
    },
    diagnose::{ReadError, unknown},
    option_names::{named_values, option_names},
};
use crate::{
    agent::builtin::{RemoteOptions, ReplayOptions},
    llm::{ModelOptions, OpenAiApi},
};

/// The names of options, one list for each struct.
type OptionLists = Vec<&'static [&'static str]>;

/// Returns the options of a kind of agent; for `kind = "llm"` without a provider, those of all providers.
pub(super) fn options_of(kind: KindName, provider: Option<ProviderName>) -> OptionLists {
    let own = match kind {
        KindName::Echo => vec![],
        KindName::Script => vec![option_names::<ScriptConfig>()],
        KindName::Llm => {
            let llm = vec![option_names::<ProviderOptions>(), option_names::<LlmOptions>()];
            let of_providers = match provider {
                Some(provider) => options_of_provider(provider),
                None => named_values().flat_map(|(_, provider)| options_of_provider(provider)).collect(),
            };
            [llm, of_providers].concat()
        }
        KindName::Remote => vec![option_names::<RemoteOptions>()],
        KindName::Replay => vec![option_names::<RecordingsFolder>(), option_names::<ReplayOptions>()],
    };
    [vec![option_names::<CommonOptions>()], own].concat()
}

fn options_of_provider(provider: ProviderName) -> OptionLists {
    let model = option_names::<ModelOptions>();
    let connection = option_names::<ConnectionConfig>();
    match provider {
        ProviderName::Openai => vec![model, connection, option_names::<ApiOptions>()],
        ProviderName::OpenaiResponses | ProviderName::Anthropic | ProviderName::Gemini => vec![model, connection],
        ProviderName::Rust => vec![&["model"]],
        ProviderName::Replay => vec![model, option_names::<RecordingsFolder>()],
    }
}

fn has(lists: &[&[&str]], option: &str) -> bool {
    lists.iter().any(|list| list.contains(&option))
}

/// The table of one agent.
struct AgentTable<'t, 'i> {
    name: &'t str,
    span: Range<usize>,
    options: &'t DeTable<'i>,
}

/// Reads an agent.
pub(super) fn read_agent(
    name: &Spanned<impl AsRef<str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<AgentConfig, ReadError> {
    let Some(options) = value.get_ref().as_table() else {
        return Err(ReadError::wrong(value.span(), "expected the table of an agent"));
    };
    if !options.contains_key("kind") {
        let message = format!("agents.{}: `kind` is missing: {}", name.get_ref().as_ref(), listed::<KindName>());
        return Err(ReadError::wrong(name.span(), message));
    }
    AgentTable { name: name.get_ref().as_ref(), span: value.span(), options }.read()
}

impl AgentTable<'_, '_> {
    fn read(&self) -> Result<AgentConfig, ReadError> {
        let common: CommonOptions = self.part("")?;
        let provider = match common.kind {
            KindName::Llm => self.part::<ProviderOptions>("")?.provider,
            _ => None,
        };
        self.check_names(common.kind, provider)?;
        let kind = match common.kind {
            KindName::Echo => AgentKind::Echo,
            KindName::Script => AgentKind::Script(self.part("kind = \"script\"")?),
            KindName::Llm => AgentKind::Llm(Box::new(self.llm(provider)?)),
            KindName::Remote => AgentKind::Remote(self.part("kind = \"remote\"")?),
            KindName::Replay => AgentKind::Replay(self.part("kind = \"replay\"")?, self.part("")?),
        };
        Ok(AgentConfig { common, kind })
    }

    fn llm(&self, provider: Option<ProviderName>) -> Result<LlmConfig, ReadError> {
        const KIND: &str = "kind = \"llm\"";
        let options: LlmOptions = self.part(KIND)?;
        let Some(provider) = provider else {
            return Err(self.incomplete(format!("{KIND} needs `provider`: {}", listed::<ProviderName>())));
        };
        let hosted = |api| Ok(ModelSource::Hosted(api, self.part(KIND)?));
        let source = match provider {
            ProviderName::Openai => hosted(self.part::<ApiOptions>(KIND)?.api.map(HostedApi::OpenAi)),
            ProviderName::OpenaiResponses => hosted(Some(HostedApi::OpenAi(OpenAiApi::Responses))),
            ProviderName::Anthropic => hosted(Some(HostedApi::Anthropic)),
            ProviderName::Gemini => hosted(Some(HostedApi::Gemini)),
            ProviderName::Rust => Ok(ModelSource::Rust),
            ProviderName::Replay => self.part("provider = \"replay\"").map(ModelSource::Replay),
        };
        Ok(LlmConfig { options, source: source?, model: self.part(KIND)? })
    }

    /// Reads the options of one struct. `owner` is the kind or the provider that has them, for the error about an absent one.
    fn part<T: DeserializeOwned>(&self, owner: &str) -> Result<T, ReadError> {
        let names = option_names::<T>();
        let own = self.options.iter().filter(|(name, _)| names.contains(&&**name.get_ref()));
        let own: DeTable<'_> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        let table = Spanned::new(self.span.clone(), DeValue::Table(own));
        T::deserialize(ValueDeserializer::from(table)).map_err(|error| {
            match error.message().strip_prefix("missing field `").and_then(|rest| rest.split_once('`')) {
                Some((option, _)) => self.incomplete(format!("{owner} needs `{option}`{}", meaning(option))),
                None => error.into(),
            }
        })
    }

    fn incomplete(&self, message: String) -> ReadError {
        ReadError::Incomplete { agent: self.name.to_owned(), message }
    }

    /// Refuses options that the kind or the provider does not have.
    fn check_names(&self, kind: KindName, provider: Option<ProviderName>) -> Result<(), ReadError> {
        let known = options_of(kind, provider);
        let Some(wrong) = self.options.keys().find(|name| !has(&known, name.get_ref())) else { return Ok(()) };
        let option = &**wrong.get_ref();
        let fault =
            |problem: &str| Err(ReadError::wrong(wrong.span(), format!("agents.{}.{option}: {problem}", self.name)));
        if option == "api_key" {
            return fault(
                "a key does not belong into this file: put it into an environment variable, and the name of the \
                 variable here, as `api_key_env`",
            );
        }
        let is_of_models = has(&options_of_provider(ProviderName::Openai), option);
        match (&owners(option, kind)[..], provider) {
            ([], _) => {
                let known: IndexSet<_> = known.concat().into_iter().collect();
                let message = unknown("unknown key", option, &known.into_iter().collect::<Vec<_>>());
                Err(ReadError::wrong(wrong.span(), message))
            }
            (_, Some(ProviderName::Rust)) if is_of_models => {
                fault("provider = \"rust\" has no such option: set it on the model in Rust")
            }
            (_, Some(ProviderName::Replay)) if is_of_models => {
                fault("provider = \"replay\" sends no requests, and has no such option")
            }
            ([owner], _) => fault(&format!("only {owner} has this option")),
            (owners, _) => fault(&format!("only {} have this option", owners.join(" and "))),
        }
    }
}

/// Returns the values of an enum, in quotes.
fn listed<T: DeserializeOwned>() -> String {
    named_values::<T>().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Returns who has an option that an agent of a kind does not have: other kinds, and providers.
fn owners(option: &str, of: KindName) -> Vec<String> {
    let kinds = named_values().filter(|(_, kind)| *kind != of && has(&options_of(*kind, None), option));
    let mut owners: Vec<_> = kinds.map(|(name, _)| format!("kind = {name:?}")).collect();
    if of == KindName::Llm {
        let providers = named_values().filter(|(_, provider)| has(&options_of_provider(*provider), option));
        owners.extend(providers.map(|(name, _)| format!("provider = {name:?}")));
    }
    owners
}

/// Returns the meaning of an option that an agent lacks.
fn meaning(option: &str) -> &'static str {
    match option {
        "script" => ", a file",
        "model" => ", the provider's name of the model",
        "url" => ", an AG-UI endpoint",
        "dir" => ", a folder with recordings",
        _ => "",
    }
}
