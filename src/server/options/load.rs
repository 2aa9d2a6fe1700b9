//! Reads the configuration: defaults, then a file, then environment variables, then flags.
//!
//! Each source is read by itself first, so that an error can name its place. The crate `config` loses positions, and
//! reads every variable `AGUI_…` as an option, also keys.

use std::{borrow::Cow, net::SocketAddr, ops::Range, path::PathBuf};

use serde::Deserialize as _;
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer},
};

use super::{
    Config,
    agent_table::read_agent,
    diagnose::{ConfigError, ReadError, misplaced},
    option_names::option_names,
    origin::Origin,
};

const PREFIX: &str = "AGUI_";
const SEPARATOR: &str = "__";

/// The sources of options, the weakest first.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// Environment variables. `AGUI_SERVER__LISTEN` sets `[server] listen`, `AGUI_DEFAULT_AGENT` sets `default_agent`;
    /// variables without such a name are ignored.
    pub environment: Vec<(String, String)>,
    /// Flags: name, option, value.
    pub flags: Vec<(&'static str, &'static str, String)>,
}

/// A configuration that was read and checked.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The options.
    pub(crate) config: Config,
    /// The file they came from.
    pub(crate) origin: Origin,
}

/// A variable or a flag: its name, the path of the option, and the value.
type OptionSetting = (String, Vec<String>, String);

/// A part of a document that cannot be read: a section, an option of one, or an agent.
struct Unreadable {
    section: String,
    /// The option or the agent; `None` for the whole section.
    name: Option<String>,
    error: ReadError,
}

impl Sources {
    /// Reads all sources and checks the result.
    ///
    /// # Errors
    /// The errors that are found, as one.
    pub fn load(self) -> Result<Loaded, ConfigError> {
        let origin = match &self.file {
            Some(path) => Origin::read(path.clone())?,
            None => Origin::default(),
        };
        self.load_above(origin)
    }

    /// Reads a text in place of the file. Errors call it by the name.
    pub(crate) fn load_text(self, name: &str, text: &str) -> Result<Loaded, ConfigError> {
        self.load_above(Origin::from_text(name, text))
    }

    /// Reads the environment and the flags above a file.
    fn load_above(self, origin: Origin) -> Result<Loaded, ConfigError> {
        let misspelled = self.environment.iter().filter_map(|(name, _)| {
            let problem = format!("unknown variable; did you mean `{}`?", meant_variable(name)?);
            Some(ConfigError::in_source(name, &problem))
        });
        ConfigError::join(misspelled)?;
        let variables = self.environment.into_iter();
        let mut settings: Vec<OptionSetting> = variables
            .filter_map(|(name, value)| option_of(&name).map(|option| (name, option, value)))
            .collect();
        // In a fixed order: an option that decides on other options of its agent comes first.
        settings.sort_by_cached_key(|(name, option, _)| {
            let deciding = ["kind", "provider"]
                .iter()
                .position(|decides| option.last().is_some_and(|name| name == decides));
            (deciding.unwrap_or(usize::MAX), name.clone())
        });
        settings.extend(self.flags.into_iter().map(|(flag, option, value)| {
            (flag.to_owned(), option.split('.').map(str::to_owned).collect(), value)
        }));
        Loaded::read(origin, &settings)
    }
}

impl Loaded {
    /// The address and port of `[server] listen`.
    pub fn listen(&self) -> SocketAddr {
        self.config.server.listen
    }

    /// Reads the text of a configuration. Its relative paths start in the working directory.
    ///
    /// # Errors
    /// The errors that are found, as one.
    pub(crate) fn from_toml_str(text: &str) -> Result<Self, ConfigError> {
        Sources::default().load_text("configuration", text)
    }

    fn read(origin: Origin, settings: &[OptionSetting]) -> Result<Self, ConfigError> {
        let text = origin.file().map_or("", |(_, text)| text);
        let mut document = DeTable::parse(text).map_err(|error| origin.read_error(error.into()))?;
        let mut parts = unreadable_parts(&document);
        // Environment variables and flags may set an option that an agent lacks.
        parts.retain(|part| settings.is_empty() || matches!(part.error, ReadError::Wrong { .. }));
        // They may also change the options that the checks read.
        let rest =
            settings.is_empty().then(|| check_without(&parts, &document, &origin).err()).flatten();
        ConfigError::join(parts.into_iter().map(|part| origin.read_error(part.error)).chain(rest))?;
        for (name, option, value) in settings {
            document = with_setting(&document, name, option, value)?;
        }
        let parts = unreadable_parts(&document);
        ConfigError::join(parts.into_iter().map(|part| origin.read_error(part.error)))?;
        let config = Config::read(&document).map_err(|error| origin.read_error(error))?;
        let settings =
            settings.iter().map(|(name, option, _)| (name.clone(), option.clone())).collect();
        let origin = Origin { settings, ..origin.clone() };
        config.check(&origin)?;
        Ok(Self { config, origin })
    }
}

impl Config {
    fn read(document: &Spanned<DeTable<'_>>) -> Result<Self, ReadError> {
        let mut config = deserialize(document.clone())?;
        let agents =
            document.get_ref().get("agents").and_then(|agents| agents.get_ref().as_table());
        for (name, agent) in agents.into_iter().flatten() {
            config.agents.insert(name.get_ref().to_string(), read_agent(name, agent)?);
        }
        Ok(config)
    }
}

/// Reads every document: each further deserializer would compile all options again.
fn deserialize(document: Spanned<DeTable<'_>>) -> Result<Config, toml::de::Error> {
    Config::deserialize(Deserializer::from(document))
}

/// Returns the options of sections and the agents that cannot be read, agents last. Of an agent, this is the first error.
fn unreadable_parts(document: &Spanned<DeTable<'_>>) -> Vec<Unreadable> {
    let (mut parts, mut agents) = (Vec::<Unreadable>::new(), Vec::new());
    for (name, value) in document.get_ref() {
        let (section, table) = (name.get_ref().to_string(), value.get_ref().as_table());
        if let Some(table) = table.filter(|_| section == "agents") {
            agents.extend(table.iter().filter_map(|(agent, options)| {
                let (section, name) = (section.clone(), Some(agent.get_ref().to_string()));
                read_agent(agent, options).err().map(|error| Unreadable { section, name, error })
            }));
            continue;
        }
        let Some(whole) = section_error(name, value.clone()) else { continue };
        let found = parts.len();
        for (option, setting) in table.into_iter().flatten() {
            let alone = DeValue::Table(DeTable::from_iter([(option.clone(), setting.clone())]));
            let error = section_error(name, Spanned::new(value.span(), alone));
            // Each option of an unknown section has the same error.
            if let Some(error) =
                error.filter(|error| parts[found..].iter().all(|part| part.error != *error))
            {
                let name = Some(option.get_ref().to_string());
                parts.push(Unreadable { section: section.clone(), name, error });
            }
        }
        if parts.len() == found {
            parts.push(Unreadable { section, name: None, error: whole });
        }
    }
    parts.extend(agents);
    parts
}

/// Returns the first error of a section.
fn section_error<'i>(
    name: &Spanned<Cow<'i, str>>,
    value: Spanned<DeValue<'i>>,
) -> Option<ReadError> {
    let section = DeTable::from_iter([(name.clone(), value)]);
    let error = deserialize(without_place(section.clone())).err()?;
    let path = error.span().and_then(|span| path_in(&section, &span)).unwrap_or_default();
    let misplaced = path.rsplit_once('.').and_then(|(_, option)| misplaced(option));
    // A missing option has the place of its whole table.
    let missing = error
        .message()
        .strip_prefix("missing field ")
        .map(|field| format!("{path}: {field} is missing"));
    Some(match misplaced.or(missing) {
        Some(message) => ReadError::Wrong { span: error.span(), message },
        None => error.into(),
    })
}

/// Returns the path of the innermost value with this span.
fn path_in(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    table
        .iter()
        .find_map(|(name, value)| Some(format!("{}{}", name.get_ref(), path_at(value, span)?)))
}

fn path_at(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    let inner = match value.get_ref() {
        DeValue::Table(table) => path_in(table, span).map(|path| format!(".{path}")),
        DeValue::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(number, item)| path_at(item, span).map(|path| format!("[{number}]{path}"))),
        _ => None,
    };
    inner.or_else(|| (value.span() == *span).then(String::new))
}

/// Checks the readable part of a document. Without a readable `[auth]`, only tables are checked
/// that do not depend on it.
fn check_without(
    parts: &[Unreadable],
    document: &Spanned<DeTable<'_>>,
    origin: &Origin,
) -> Result<(), ConfigError> {
    let (mut rest, is_about_auth) = (document.clone(), |part: &Unreadable| part.section == "auth");
    for Unreadable { section, name, .. } in parts {
        match (name, rest.get_mut().get_mut(&**section).map(Spanned::get_mut)) {
            (None, _) => drop(rest.get_mut().remove(&**section)),
            (Some(name), Some(DeValue::Table(table))) => drop(table.remove(&**name)),
            (Some(_), _) => {}
        }
    }
    match Config::read(&rest) {
        _ if parts.is_empty() => Ok(()),
        Ok(config) if parts.iter().any(is_about_auth) => config.check_tables(origin),
        Ok(config) => config.check(origin),
        Err(_) => Ok(()),
    }
}

/// Returns the variable of an option, if a name has one underscore where the option needs two.
fn meant_variable(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?.to_lowercase();
    let (section, option) = option_names::<Config>().iter().find_map(|section| {
        let option = rest
            .strip_prefix(section)?
            .strip_prefix('_')
            .filter(|option| !option.contains(SEPARATOR))?;
        Some((section, option.to_owned()))
    })?;
    let is_unknown = |option: &str| {
        let text = format!("{section}.{option:?} = 0");
        let refused = DeTable::parse(&text).ok().and_then(|document| deserialize(document).err());
        refused.is_some_and(|error| error.message().starts_with("unknown field"))
    };
    // Any name is known in a table such as `tools`.
    (is_unknown("?") && !is_unknown(&option))
        .then(|| format!("{PREFIX}{}{SEPARATOR}{}", section.to_uppercase(), option.to_uppercase()))
}

/// A variable without a separator is not an option, but for example a key that the file refers to.
fn option_of(name: &str) -> Option<Vec<String>> {
    let rest = name.strip_prefix(PREFIX)?.to_lowercase();
    (rest.contains(SEPARATOR) || rest == "default_agent")
        .then(|| rest.split(SEPARATOR).map(str::to_owned).collect())
}

/// Takes the first of these that is valid for the option: TOML, a text, a list of texts separated by commas.
fn with_setting<'i>(
    document: &Spanned<DeTable<'i>>,
    name: &str,
    option: &'i [String],
    value: &'i str,
) -> Result<Spanned<DeTable<'i>>, ConfigError> {
    let items = value.split(',').map(|item| without_place(text(item.trim()))).collect();
    let readings = DeValue::parse(value.trim()).ok().map(Spanned::into_inner).into_iter();
    let mut first_error = None;
    for reading in readings.chain([text(value), DeValue::Array(items)]) {
        let upper = option.iter().rev().fold(reading, |inner, key| {
            DeValue::Table(DeTable::from_iter([(without_place(key.into()), without_place(inner))]))
        });
        let mut merged = document.clone();
        if let DeValue::Table(upper) = upper {
            merge(merged.get_mut(), upper);
        }
        match Config::read(&merged) {
            Ok(_) | Err(ReadError::Incomplete { .. }) => return Ok(merged),
            Err(ReadError::Wrong { message, .. }) => drop(first_error.get_or_insert(message)),
        }
    }
    Err(ConfigError::in_source(name, &first_error.unwrap_or_default()))
}

fn text(value: &str) -> DeValue<'_> {
    DeValue::String(Cow::Borrowed(value))
}

fn without_place<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// The upper table wins.
fn merge<'i>(lower: &mut DeTable<'i>, upper: DeTable<'i>) {
    for (key, value) in upper {
        match (lower.get_mut(&**key.get_ref()).map(Spanned::get_mut), value.into_inner()) {
            (Some(DeValue::Table(lower)), DeValue::Table(upper)) => merge(lower, upper),
            (_, value) => drop(lower.insert(key, without_place(value))),
        }
    }
}
