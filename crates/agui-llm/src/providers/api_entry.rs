//! The entry of a provider's API: all that the configuration, the command line, the playback of
//! recordings and the fuzz targets know of it.

use std::sync::Arc;

use crate::{
    Model, ModelOptions, ModelRequest, SetupError,
    known_models::Profile,
    transport::{Decoder, ProviderRequest},
};

/// An API of a provider. The last three fields are for tests.
#[derive(Debug)]
#[cfg_attr(
    not(any(test, feature = "testing")),
    expect(dead_code, reason = "`testing` reads the last three fields")
)]
pub struct ApiEntry {
    /// Creates a model.
    pub create: fn(ModelOptions) -> Result<Arc<dyn Model>, SetupError>,
    /// The vendor's own service, if the command line offers it with this API.
    pub service: Option<KnownProvider>,
    /// The ends of its URLs that follow a base URL, the longest first.
    pub endpoints: &'static [&'static str],
    /// The ends of its URLs that follow the name of a model.
    pub(crate) model_endpoints: &'static [&'static str],
    /// The name of the limits of tools in `models.toml`.
    pub(crate) tool_limits: &'static str,
    pub(crate) body: fn(&ModelOptions, &ModelRequest, &SampleServer) -> ProviderRequest,
    pub(crate) decoder: fn(&SampleServer) -> Box<dyn Decoder>,
}

/// A provider that the command line knows by name, and the options that its agents need.
#[derive(Debug)]
pub struct KnownProvider {
    /// The name that may stand before a model's, as in `ollama/qwen3`. Without a URL, also the value of `provider`.
    pub name: &'static str,
    /// The environment variable with the key.
    pub key_env: Option<&'static str>,
    /// The URL of a server with OpenAI's protocol.
    pub base_url: Option<&'static str>,
    /// Prefixes of model names that only this provider has.
    pub model_prefixes: &'static [&'static str],
    /// The model that `init` proposes.
    pub usual_model: &'static str,
}

/// The server of a request or an answer that is tried without a server.
pub(crate) struct SampleServer {
    /// The profile, for chat completions.
    pub(crate) profile: Arc<Profile>,
    /// True for the vendor's own service.
    pub(crate) is_official: bool,
}

impl ApiEntry {
    /// Returns true if the path of a URL is that of a request with this API.
    pub fn has_path(&self, path: &str) -> bool {
        self.endpoints.iter().chain(self.model_endpoints).any(|end| path.ends_with(end))
    }
}
