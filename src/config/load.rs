//! Reads the configuration: defaults, then a file, then environment variables, then flags.
//!
//! Each source is deserialized by itself first, so that an error can name its place. The crate `config` loses
//! positions, and reads every variable `AGUI_…` as an option, also keys.

use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::{Table, Value};

use super::{Config, diagnose::ConfigError, origin::Origin};

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
    pub config: Config,
    /// The file they came from.
    pub origin: Origin,
}

impl Sources {
    /// Reads all sources and checks the result.
    ///
    /// # Errors
    /// The first error that is found.
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
        // A fixed order, in which an agent's KIND, without which it is invalid, comes before its other options.
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

/// A variable without a separator is not an option, but for example a key that the file refers to.
fn option_of(name: &str) -> Option<Vec<String>> {
    let rest = name.strip_prefix(PREFIX)?.to_lowercase();
    (rest.contains(SEPARATOR) || rest == "default_agent").then(|| rest.split(SEPARATOR).map(str::to_owned).collect())
}

/// Takes the first of these that is valid for the option: TOML, a text, a list of texts separated by commas.
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
        merge(&mut merged, upper);
        match (Config::deserialize(merged.clone()), merged) {
            (Ok(_), Value::Table(merged)) => return Ok(merged),
            (Err(error), _) => drop(first_error.get_or_insert(error)),
            (Ok(_), _) => {}
        }
    }
    let message = first_error.map_or_else(String::new, |error| error.message().to_owned());
    Err(ConfigError::of_setting(name, &message))
}

/// The upper table wins.
fn merge(lower: &mut Value, upper: Value) {
    match (lower, upper) {
        (Value::Table(lower), Value::Table(upper)) => {
            for (key, value) in upper {
                match lower.get_mut(&key) {
                    Some(lower) => merge(lower, value),
                    None => drop(lower.insert(key, value)),
                }
            }
        }
        (lower, upper) => *lower = upper,
    }
}
