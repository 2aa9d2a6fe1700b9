//! The file that a configuration came from: relative paths start there, and errors point into it.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use super::diagnose::{ConfigError, ReadError};

/// The file that a configuration came from, if any, and the options that something else has set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    pub(super) file: Option<(PathBuf, String)>,
    /// Variables and flags, each with the option that it sets.
    pub(super) settings: Vec<(String, Vec<String>)>,
}

impl Origin {
    /// The file and its text; `None` if no file was given.
    pub(crate) fn file(&self) -> Option<(&Path, &str)> {
        self.file.as_ref().map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// Resolves a path of the configuration, relative to the folder of its file.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        match self.file().and_then(|(file, _)| file.parent()) {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        }
    }

    /// True if the file sets this option or table.
    pub(crate) fn mentions(&self, option: &[&str]) -> bool {
        self.file()
            .and_then(|(_, text)| locate(text, option))
            .is_some_and(|(_, depth)| depth == option.len())
    }

    /// An error about an option. It names the variable or flag that has set the option; otherwise it points at the option's
    /// line, or at the nearest table in the file.
    pub(crate) fn error(&self, option: &[&str], message: &str) -> ConfigError {
        let named = format!("{}: {message}", option.join("."));
        let sets_it = |path: &[String]| {
            path.iter().zip(option).all(|(set, name)| set == name) && path.len() <= option.len()
        };
        if let Some((setting, _)) = self.settings.iter().rev().find(|(_, path)| sets_it(path)) {
            return ConfigError::in_source(setting, &named);
        }
        match self.file() {
            Some((path, text)) => {
                ConfigError::at(path, text, locate(text, option).map(|(span, _)| span), &named)
            }
            None => ConfigError::new(named),
        }
    }

    /// Creates the origin of a text that is in no file.
    pub(super) fn from_text(name: &str, text: &str) -> Self {
        Self { file: Some((name.into(), text.to_owned())), ..Self::default() }
    }

    /// Returns the error of a text that cannot be read.
    pub(super) fn read_error(&self, error: ReadError) -> ConfigError {
        match (error, self.file()) {
            (ReadError::Wrong { span, message }, Some((path, text))) => {
                ConfigError::at(path, text, span, &message)
            }
            (ReadError::Wrong { message, .. }, None) => ConfigError::new(message),
            (ReadError::Incomplete { agent, message }, _) => {
                self.error(&["agents", &agent], &message)
            }
        }
    }

    pub(super) fn read(path: PathBuf) -> Result<Self, ConfigError> {
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self { file: Some((path, text)), ..Self::default() }),
            Err(error) => Err(ConfigError::in_source(
                &path.display().to_string(),
                &format!("cannot be read: {error}"),
            )),
        }
    }
}

/// Returns the span of an option's key, or of the nearest table around it, and the number of names on the way there.
fn locate(text: &str, option: &[&str]) -> Option<(Range<usize>, usize)> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut found = None;
    for (depth, key) in (1..).zip(option) {
        let Some((name, value)) = table.get_key_value(*key) else { break };
        found = Some((name.span(), depth));
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    found
}
