//! Models with Google's Gemini API.

mod citations;
pub(crate) mod decoder;
mod parts;
pub(crate) mod request;
mod signature;
mod thinking;

use std::sync::Arc;

use http::{HeaderMap, HeaderName};

use self::decoder::GeminiDecoder;
use crate::{
    MediaLimits, Model, ModelOptions, ModelRequest, ModelStream, ProviderClient,
    providers::{
        api_entry::{ApiEntry, KnownProvider},
        api_host::ApiHost,
        portable_tools::PortableTools,
        warning_list::WarningList,
        wire::{GEMINI, media_input},
    },
    transport::{SetupError, Transport},
};
use agui_protocol::capabilities::MultimodalInputCapabilities;

/// Options that the Gemini API lacks.
const UNSUPPORTED_OPTIONS: &[&str] =
    &["parallel_tool_calls", "verbosity", "cache_key", "metadata", "profile"];
const BASE_URL: &str = "https://generativelanguage.googleapis.com";
const DEFAULT_VERSION: &str = "v1beta";
const API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
const KEY_ENV: &str = "GEMINI_API_KEY";

pub(super) static GENERATE_CONTENT: ApiEntry = ApiEntry {
    create: |options| Ok(Arc::new(Gemini::new(options)?)),
    service: Some(KnownProvider {
        name: GEMINI,
        key_env: Some(KEY_ENV),
        base_url: None,
        model_prefixes: &["gemini-"],
        usual_model: "gemini-3.8-flash",
    }),
    endpoints: &[],
    model_endpoints: &[":streamGenerateContent"],
    tool_limits: GEMINI,
    body: |options, request, _| request::body(options, request),
    decoder: |_| Box::new(GeminiDecoder::new("m")),
};

/// A model with the Gemini API, at Google or at a compatible provider.
#[derive(Debug)]
pub struct Gemini {
    options: ModelOptions,
    host: ApiHost,
    tools: PortableTools,
    /// The transport. Its URL is without the model.
    transport: Arc<Transport>,
}

impl Gemini {
    /// Creates a model of Google, with the key in the environment variable `GEMINI_API_KEY`.
    ///
    /// # Errors
    /// If the variable is not set, or its value is not a valid key.
    pub fn from_env(model: impl Into<String>) -> Result<Self, SetupError> {
        Self::new(ModelOptions::new(model, ProviderClient::from_env(KEY_ENV)?))
    }

    /// Creates a model with these options. A base URL without a version, such as `v1beta`, gets
    /// one. The base URL of Vertex AI has a location:
    /// `https://us-central1-aiplatform.googleapis.com/v1/projects/PROJECT/locations/us-central1`.
    ///
    /// # Errors
    /// If the base URL, the key, a header or an option is invalid.
    pub fn new(options: ModelOptions) -> Result<Self, SetupError> {
        options.refuse(UNSUPPORTED_OPTIONS)?;
        let (host, mut url) = ApiHost::detect(&options, BASE_URL)?;
        if host == ApiHost::Bedrock {
            return Err(SetupError::Option {
                option: "credentials",
                problem: "AWS has no Gemini API".to_owned(),
            });
        }
        let path = url.path().trim_end_matches('/').trim_end_matches("/models").to_owned();
        if path.split('/').any(is_version) {
            url.set_path(&path)
        } else {
            url.set_path(&format!("{path}/{DEFAULT_VERSION}"))
        }
        let transport =
            Transport::new(&options, url, HeaderMap::new(), vec![host.key_place((API_KEY, ""))])?;
        let tools = PortableTools::new(options.known_models.tool_limits(GEMINI));
        Ok(Self { options, host, tools, transport })
    }
}

impl Model for Gemini {
    fn provider(&self) -> &str {
        GEMINI
    }

    fn name(&self) -> &str {
        &self.options.model
    }

    fn media_limits(&self) -> MediaLimits {
        self.options.known_models.media_limits(self.provider())
    }

    fn media_input(&self) -> MultimodalInputCapabilities {
        media_input([true; 4])
    }

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        let names = self.tools.prepare(&mut request);
        let options = self.options.for_request(&request.sampling);
        let mut body = request::body(&options, &request);
        let model = request.model.unwrap_or_else(|| self.options.model.clone());
        self.host.address_gemini(&self.transport.url, &model, &mut body);
        names.restore(
            self.transport.stream(&body, request.trace, move || GeminiDecoder::new(&model)),
        )
    }

    fn warnings(&self) -> Vec<String> {
        let options = &self.options;
        let rules = options.known_models.gemini(&options.model);
        let mut warnings = WarningList::new(options, rules.warning.as_deref());
        thinking::add_warnings(&mut warnings, options, &rules);
        if !rules.penalties {
            let penalties = [
                ("frequency_penalty", options.frequency_penalty),
                ("presence_penalty", options.presence_penalty),
            ];
            for (option, penalty) in penalties {
                if penalty.is_some_and(|penalty| penalty != 0.0) {
                    warnings.not_sent(&[option], "refuses penalties");
                }
            }
        }
        if !rules.sampling {
            warnings.not_sent(&["temperature", "top_p", "top_k"], "ignores sampling parameters");
        }
        warnings.list
    }
}

/// Returns true for `v1`, `v1beta`, `v1alpha`.
fn is_version(segment: &str) -> bool {
    let rest =
        segment.strip_prefix('v').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.is_some_and(|rest| {
        rest.len() + 1 < segment.len()
            && rest.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    })
}
