//! The section `[models]`: the properties of models.

use std::path::PathBuf;

use serde::Deserialize;

/// The properties of models and of servers with chat completions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelsConfig {
    /// A file with models and servers that the server does not know, or knows otherwise
    /// (docs/models.md). A relative path starts in the folder of the configuration.
    pub(crate) file: Option<PathBuf>,
}
