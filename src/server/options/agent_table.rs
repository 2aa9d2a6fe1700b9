//! Reads the table of an agent: first `kind` and `provider`, then the structs of this kind, each its own options. The options
//! that the table may have are those of the structs that are read; no list names them.

use std::ops::Range;

use indexmap::IndexSet;
use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{
    agents::{
        AgentConfig, AgentKind, ApiOptions, CommonOptions, KindName, LlmConfig, ModelSource,
        NamedModel, ProviderName, ProviderOptions,
    },
    diagnose::{ReadError, misplaced, unknown},
    option_names::{named_values, option_names},
    vendors::advice_about,
};
use agui_llm::{ModelOptions, host::Api};

/// The kind in errors about agents with a model.
const LLM: &str = "kind = \"llm\"";
const KEY_IN_FILE: &str = "a key does not belong into this file: put it into an environment variable, and the name of the \
                           variable here, as `api_key_env`";

/// Returns the options of a kind of agent, also those that it has with one provider only. They are those that
/// [`AgentTable::kind`] reads.
pub(super) fn options_of(kind: KindName, provider: Option<ProviderName>) -> IndexSet<&'static str> {
    let options = DeTable::new();
    let mut table = AgentTable { name: "", span: 0..0, options: &options, known: IndexSet::new() };
    let _ = (table.part::<CommonOptions>(""), table.kind(kind, provider));
    table.known
}

/// The table of one agent.
struct AgentTable<'t, 'i> {
    name: &'t str,
    span: Range<usize>,
    options: &'t DeTable<'i>,
    /// The names of the options of the structs that were read.
    known: IndexSet<&'static str>,
}

/// Reads an agent.
pub(super) fn read_agent(
    name: &Spanned<impl AsRef<str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<AgentConfig, ReadError> {
    let Some(options) = value.get_ref().as_table() else {
        let misplaced = misplaced(name.get_ref().as_ref());
        let message = misplaced.unwrap_or_else(|| "expected the table of an agent".to_owned());
        return Err(ReadError::wrong(value.span(), message));
    };
    if !options.contains_key("kind") {
        let message = format!(
            "agents.{}: `kind` is missing: {}",
            name.get_ref().as_ref(),
            listed::<KindName>()
        );
        return Err(ReadError::wrong(name.span(), message));
    }
    AgentTable {
        name: name.get_ref().as_ref(),
        span: value.span(),
        options,
        known: IndexSet::new(),
    }
    .read()
}

impl AgentTable<'_, '_> {
    fn read(mut self) -> Result<AgentConfig, ReadError> {
        let common: CommonOptions = self.part("")?;
        let provider = match common.kind {
            KindName::Llm => {
                self.part::<ProviderOptions>("")
                    .map_err(|error| self.vendor_advice().unwrap_or(error))?
                    .provider
            }
            _ => None,
        };
        let kind = self.kind(common.kind, provider);
        self.check_names(common.kind, provider)?;
        Ok(AgentConfig { common, kind: kind? })
    }

    /// Reads all structs of a kind, also if one of them is incomplete, so that all names are known.
    fn kind(
        &mut self,
        kind: KindName,
        provider: Option<ProviderName>,
    ) -> Result<AgentKind, ReadError> {
        match kind {
            KindName::Echo => Ok(AgentKind::Echo),
            KindName::Script => self.part("kind = \"script\"").map(AgentKind::Script),
            KindName::Llm => self.llm(provider).map(|llm| AgentKind::Llm(Box::new(llm))),
            KindName::Remote => self.part("kind = \"remote\"").map(AgentKind::Remote),
            KindName::Replay => {
                let (folder, options) = (self.part("kind = \"replay\""), self.part(""));
                Ok(AgentKind::Replay(folder?, options?))
            }
        }
    }

    fn llm(&mut self, provider: Option<ProviderName>) -> Result<LlmConfig, ReadError> {
        let (_, options, agent) =
            (self.part::<ProviderOptions>(LLM), self.part(LLM), self.part(LLM));
        let Some(provider) = provider else {
            let of_all =
                named_values().flat_map(|(_, provider)| options_of(KindName::Llm, Some(provider)));
            self.known.extend(of_all);
            options?;
            agent?;
            return Err(
                self.incomplete(format!("{LLM} needs `provider`: {}", listed::<ProviderName>()))
            );
        };
        let model = match provider {
            ProviderName::Rust => self.part(LLM).map(|NamedModel { model }| {
                ModelOptions::new(model, agui_llm::ProviderClient::default())
            }),
            _ => self.part(LLM),
        };
        let source = match provider {
            ProviderName::Openai => {
                let api = self.part::<ApiOptions>(LLM);
                self.hosted(api.map(|options| options.api.map(Api::OpenAi)))
            }
            ProviderName::Rust => Ok(ModelSource::Rust),
            ProviderName::Playback => self.part("provider = \"replay\"").map(ModelSource::Playback),
            hosted => self.hosted(Ok(hosted.api())),
        };
        Ok(LlmConfig { options: options?, agent: agent?, source: source?, model: model? })
    }

    fn hosted(&mut self, api: Result<Option<Api>, ReadError>) -> Result<ModelSource, ReadError> {
        let client = self.part(LLM);
        Ok(ModelSource::Hosted(api?, client?))
    }

    /// Reads the options of one struct. `owner` is the kind or the provider that has them, for the error about an absent one.
    fn part<T: DeserializeOwned>(&mut self, owner: &str) -> Result<T, ReadError> {
        let names = option_names::<T>();
        self.known.extend(names);
        let own = self.options.iter().filter(|(name, _)| names.contains(&&**name.get_ref()));
        let own: DeTable<'_> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        let table = Spanned::new(self.span.clone(), DeValue::Table(own));
        T::deserialize(ValueDeserializer::from(table)).map_err(|error| {
            match error
                .message()
                .strip_prefix("missing field `")
                .and_then(|rest| rest.split_once('`'))
            {
                Some((option, _)) => {
                    self.incomplete(format!("{owner} needs `{option}`{}", meaning(option)))
                }
                None => error.into(),
            }
        })
    }

    /// Returns the error about a provider that is the name of a vendor.
    fn vendor_advice(&self) -> Option<ReadError> {
        let provider = self.options.get("provider")?;
        let advice = advice_about(provider.get_ref().as_str()?)?;
        Some(ReadError::wrong(provider.span(), format!("agents.{}.provider: {advice}", self.name)))
    }

    fn incomplete(&self, message: String) -> ReadError {
        ReadError::Incomplete { agent: self.name.to_owned(), message }
    }

    /// Refuses options that the kind or the provider does not have.
    fn check_names(&self, kind: KindName, provider: Option<ProviderName>) -> Result<(), ReadError> {
        let is_known = |name: &str| self.known.contains(name);
        let Some(wrong) = self.options.keys().find(|name| !is_known(name.get_ref())) else {
            return Ok(());
        };
        let option = &**wrong.get_ref();
        let of_hosted = options_of(KindName::Llm, Some(ProviderName::Openai));
        let problem = match (&owners(option, kind)[..], provider) {
            _ if option == "api_key" => KEY_IN_FILE.to_owned(),
            ([], _) => {
                let known: Vec<_> = self.known.iter().copied().collect();
                return Err(ReadError::wrong(wrong.span(), unknown("unknown key", option, &known)));
            }
            (_, Some(ProviderName::Rust)) if of_hosted.contains(option) => {
                "provider = \"rust\" has no such option: set it on the model in Rust".to_owned()
            }
            (_, Some(ProviderName::Playback)) if of_hosted.contains(option) => {
                "provider = \"replay\" sends no requests, and has no such option".to_owned()
            }
            ([owner], _) => format!("only {owner} has this option"),
            (owners, _) => format!("only {} have this option", owners.join(" and ")),
        };
        Err(ReadError::wrong(wrong.span(), format!("agents.{}.{option}: {problem}", self.name)))
    }
}

/// Returns the values of an enum, in quotes.
fn listed<T: DeserializeOwned>() -> String {
    named_values::<T>().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Returns the other kinds and the providers that have an option.
fn owners(option: &str, of: KindName) -> Vec<String> {
    let kinds =
        named_values().filter(|(_, kind)| *kind != of && options_of(*kind, None).contains(option));
    let mut owners: Vec<_> = kinds.map(|(name, _)| format!("kind = {name:?}")).collect();
    if of == KindName::Llm {
        let providers =
            named_values().filter(|(_, provider)| options_of(of, Some(*provider)).contains(option));
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
