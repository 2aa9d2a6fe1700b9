//! Reads the configuration: defaults, then a file, then the environment, then flags.
//!
//! Each source is first read alone, against the same structs, so that an error can say where it is;
//! then they are laid over each other. The `config` crate would lay them over each other, too, but it
//! forgets positions, and takes every `AGUI_…` variable for an option, the keys among them.

use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::{Table, Value};

use super::{Config, ConfigError, Origin};

/// What environment variables for options begin with.
const PREFIX: &str = "AGUI_";
/// What stands between the parts of an option's name there.
const SEPARATOR: &str = "__";

/// Where options come from, weakest first.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// A file.
    pub file: Option<PathBuf>,
    /// The environment. `AGUI_SERVER__LISTEN` is `[server] listen`, `AGUI_DEFAULT_AGENT` is `default_agent`.
    pub environment: Vec<(String, String)>,
    /// Flags: what they are called, the option they set, and its value.
    pub flags: Vec<(&'static str, &'static str, String)>,
}

/// A configuration that was read.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The options.
    pub config: Config,
    /// Where they came from.
    pub origin: Origin,
}

impl Sources {
    /// Reads all sources and checks the result.
    ///
    /// # Errors
    /// A [`ConfigError`] for the first thing that is wrong.
    pub fn load(self) -> Result<Loaded, ConfigError> {
        let origin = match self.file {
            Some(path) => Origin::read(path)?,
            None => Origin::built_in(),
        };
        let mut table = match origin.file() {
            Some((path, text)) => read_file(path, text)?,
            None => Table::new(),
        };
        let mut environment: Vec<_> = self
            .environment
            .into_iter()
            .filter_map(|(name, value)| {
                let option = option_of(&name)?;
                Some((name, option, value))
            })
            .collect();
        // In an order that does not depend on the machine, and in which an agent's kind comes first.
        environment.sort();
        let flags = self
            .flags
            .into_iter()
            .map(|(flag, option, value)| (flag.to_owned(), option.split('.').map(str::to_owned).collect(), value));
        for (name, option, value) in environment.into_iter().chain(flags) {
            table = with_setting(&table, &name, &option, &value)?;
        }
        let config = Config::deserialize(Value::Table(table)).map_err(|error| ConfigError::new(error.message()))?;
        config.check(&origin)?;
        Ok(Loaded { config, origin })
    }
}

fn read_file(path: &Path, text: &str) -> Result<Table, ConfigError> {
    toml::from_str::<Config>(text)
        .and_then(|_| toml::from_str(text))
        .map_err(|error| ConfigError::at(path, text, error.span(), error.message()))
}

/// The option that an environment variable sets. A variable without a separator is something else, such
/// as a key that the file refers to.
fn option_of(name: &str) -> Option<Vec<String>> {
    let rest = name.strip_prefix(PREFIX)?.to_lowercase();
    (rest.contains(SEPARATOR) || rest == "default_agent").then(|| rest.split(SEPARATOR).map(str::to_owned).collect())
}

/// A configuration with one option set. Its value is TOML where that fits, and otherwise a text, or a list
/// of texts between commas.
fn with_setting(table: &Table, name: &str, option: &[String], value: &str) -> Result<Table, ConfigError> {
    let mut readings = Vec::new();
    if let Ok(mut parsed) = toml::from_str::<Table>(&format!("value = {value}")) {
        readings.extend(parsed.remove("value"));
    }
    readings.push(Value::String(value.to_owned()));
    readings.push(value.split(',').map(|item| Value::String(item.trim().to_owned())).collect::<Vec<_>>().into());
    let mut first_error = None;
    for reading in readings {
        let upper = option.iter().rev().fold(reading, |inner, key| Table::from_iter([(key.clone(), inner)]).into());
        let mut merged = Value::Table(table.clone());
        lay_over(&mut merged, upper);
        match (Config::deserialize(merged.clone()), merged) {
            (Ok(_), Value::Table(merged)) => return Ok(merged),
            (Err(error), _) => drop(first_error.get_or_insert(error)),
            (Ok(_), _) => {}
        }
    }
    let message = first_error.map_or_else(String::new, |error| error.message().to_owned());
    Err(ConfigError::of_setting(name, &message))
}

/// Lays one table over another; what both have is the upper one's.
fn lay_over(lower: &mut Value, upper: Value) {
    match (lower, upper) {
        (Value::Table(lower), Value::Table(upper)) => {
            for (key, value) in upper {
                match lower.get_mut(&key) {
                    Some(lower) => lay_over(lower, value),
                    None => drop(lower.insert(key, value)),
                }
            }
        }
        (lower, upper) => *lower = upper,
    }
}
