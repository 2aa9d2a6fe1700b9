//! What a single option cannot show: that options fit together.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use super::{AuthMode, Config, ConfigError, Jwt, diagnose::nearest};

/// Where a configuration came from: what relative paths are relative to, and what errors point at.
#[derive(Debug, Clone)]
pub struct Origin {
    file: Option<(PathBuf, String)>,
}

impl Origin {
    pub(super) fn built_in() -> Self {
        Self { file: None }
    }

    pub(super) fn read(path: PathBuf) -> Result<Self, ConfigError> {
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self { file: Some((path, text)) }),
            Err(error) => Err(ConfigError::in_file(&path, format!("cannot be read: {error}"))),
        }
    }

    /// The file and its text; `None` when the defaults are used.
    pub fn file(&self) -> Option<(&Path, &str)> {
        self.file.as_ref().map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// A path that the configuration names, relative to the file that names it.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        match self.file().and_then(|(file, _)| file.parent()) {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        }
    }

    /// Whether the file sets an option, or a table of options.
    pub fn mentions(&self, option: &[&str]) -> bool {
        self.file().and_then(|(_, text)| locate(text, option)).is_some_and(|(_, depth)| depth == option.len())
    }

    /// An error about an option, pointing at it if it is in the file.
    pub fn error(&self, option: &[&str], message: &str) -> ConfigError {
        let named = format!("{}: {message}", option.join("."));
        match self.file() {
            Some((path, text)) => ConfigError::at(path, text, locate(text, option).map(|(span, _)| span), &named),
            None => ConfigError::new(named),
        }
    }
}

/// Where an option's key stands in a text, or else the nearest table around it; and how much of the
/// option's name that is.
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

impl Config {
    pub(super) fn check(&self, origin: &Origin) -> Result<(), ConfigError> {
        self.check_agents(origin)?;
        self.check_auth(origin)?;
        self.check_tools(origin)?;
        if self.copilotkit.enabled
            && let Err(problem) = self.copilotkit.check_prefix()
        {
            return Err(origin.error(&["copilotkit", "prefix"], problem));
        }
        for allowed in &self.cors.allow_origins {
            if allowed != "*" && !is_origin(allowed) {
                let message = format!("{allowed:?} is not an origin such as \"https://app.example.com\"");
                return Err(origin.error(&["cors", "allow_origins"], &message));
            }
        }
        if let Err(problem) = self.store.read(&self.server.data_dir) {
            return Err(origin.error(&["store", "url"], problem));
        }
        if self.threads.lease_secs < 2 {
            return Err(origin.error(&["threads", "lease_secs"], "at least 2 are needed"));
        }
        if self.runs.max_concurrent == 0 {
            return Err(origin.error(&["runs", "max_concurrent"], "at least 1 is needed"));
        }
        Ok(())
    }

    pub(super) fn check_named_events(&self, origin: &Origin, rust_agents: &[&str]) -> Result<(), ConfigError> {
        let known = || self.agents.keys().map(String::as_str).chain(rust_agents.iter().copied());
        for (option, name) in [("chat", &self.named_events.chat), ("agent", &self.named_events.agent)] {
            let Some(name) = name.as_ref().filter(|name| !known().any(|known| known == *name)) else { continue };
            let near = nearest(name, known());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(origin.error(&["named_events", option], &format!("there is no agent `{name}`{near}")));
        }
        Ok(())
    }

    fn check_auth(&self, origin: &Origin) -> Result<(), ConfigError> {
        let keys = ["auth", "api_keys"];
        for key in &self.auth.api_keys {
            if key.env.is_some() == key.sha256.is_some() {
                let message = format!("the key {:?} needs either `env` or `sha256`", key.name);
                return Err(origin.error(&keys, &message));
            }
            if self.auth.api_keys.iter().filter(|other| other.name == key.name).count() > 1 {
                return Err(origin.error(&keys, &format!("there are two keys named {:?}", key.name)));
            }
        }
        match self.auth.mode {
            Some(AuthMode::ApiKey) if self.auth.api_keys.is_empty() => {
                Err(origin.error(&["auth", "mode"], "\"api_key\" needs at least one of `api_keys`"))
            }
            Some(AuthMode::ApiKey) => Ok(()),
            Some(AuthMode::Jwt) => self.auth.jwt.check(origin),
            None if !self.auth.api_keys.is_empty() => {
                Err(origin.error(&keys, "there are keys, but no `mode`: \"api_key\" asks for them, \"none\" does not"))
            }
            None if self.auth.jwt != Jwt::default() => {
                let message = "it is set, but no `mode`: \"jwt\" asks for tokens, \"none\" does not";
                Err(origin.error(&["auth", "jwt"], message))
            }
            _ if !self.server.listen.ip().to_canonical().is_loopback() && !self.auth.allow_unauthenticated => {
                let message = format!(
                    "{} can be reached from other machines, and without authentication anybody there could use \
                     the server. Configure keys or tokens ([auth] mode = \"api_key\" or \"jwt\"), listen on 127.0.0.1, or, if that is \
                     what you want, set [auth] allow_unauthenticated = true",
                    self.server.listen
                );
                Err(origin.error(&["server", "listen"], &message))
            }
            _ => Ok(()),
        }
    }
}

/// `scheme://host`, perhaps with a port, and nothing behind it: as browsers write an `Origin`.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    plain(scheme, "+-.") && plain(host, "-.:[]_")
}
