//! OpenAI's models with its two APIs, and the common warnings.

pub(crate) mod api;
pub(super) mod warnings;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use serde_json::Value;

use self::api::OpenAiApi;
use super::{
    api_entry::{ApiEntry, KnownProvider},
    chat::{self, decoder::ChatDecoder},
    portable_tools::PortableTools,
    responses::{self, decoder::ResponsesDecoder},
    wire::{OPENAI, media_input},
};
use crate::{
    MediaLimits, Model, ModelOptions, ModelRequest, ModelStream, ProviderClient, SetupError,
    Thinking, ToolChoice,
    known_models::{Documents, Profile},
    transport::Transport,
};
use agui_protocol::capabilities::MultimodalInputCapabilities;

const BASE_URL: &str = "https://api.openai.com/v1";
const CHAT_ENDPOINT: &str = "/chat/completions";
const RESPONSES_ENDPOINT: &str = "/responses";
const KEY_ENV: &str = "OPENAI_API_KEY";
/// The header in which Azure takes a key.
const AZURE_KEY: HeaderName = HeaderName::from_static("api-key");
/// Options that the Responses API lacks.
const RESPONSES_LACKS: &[&str] = &[
    "top_k",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "stop",
    "thinking_budget",
    "profile",
];

pub(super) static CHAT: ApiEntry = ApiEntry {
    create: |options| Ok(Arc::new(OpenAi::chat(options)?)),
    // Its configuration leaves the API open.
    service: Some(KnownProvider {
        name: OPENAI,
        key_env: Some(KEY_ENV),
        base_url: None,
        model_prefixes: &["gpt-", "chatgpt-", "codex-", "o1", "o3", "o4"],
        usual_model: "gpt-4o",
    }),
    endpoints: &[CHAT_ENDPOINT],
    model_endpoints: &[],
    tool_limits: OPENAI,
    body: |options, request, server| chat::request::body(options, &server.profile, request),
    decoder: |server| Box::new(ChatDecoder::new("m", &server.profile, false, Arc::default())),
};
pub(super) static RESPONSES: ApiEntry = ApiEntry {
    create: |options| Ok(Arc::new(OpenAi::responses(options)?)),
    service: None,
    endpoints: &[RESPONSES_ENDPOINT],
    model_endpoints: &[],
    tool_limits: OPENAI,
    body: |options, request, _| responses::request::body(options, request),
    decoder: |_| Box::new(ResponsesDecoder::new("m")),
};

/// A model of OpenAI, or of a server with OpenAI's API.
///
/// ```no_run
/// use agui_llm::{LlmAgent, OpenAi};
///
/// let agent = LlmAgent::new(OpenAi::from_env("gpt-5-mini")?).system_prompt("You are brief.");
/// # Ok::<(), agui_llm::SetupError>(())
/// ```
#[derive(Debug)]
pub struct OpenAi {
    options: ModelOptions,
    api: OpenAiApi,
    profile: Arc<Profile>,
    tools: PortableTools,
    transport: Arc<Transport>,
}

impl OpenAi {
    /// Creates a model of OpenAI, with the key in the environment variable `OPENAI_API_KEY`.
    ///
    /// # Errors
    /// If the variable is not set, or its value is not a valid key.
    pub fn from_env(model: impl Into<String>) -> Result<Self, SetupError> {
        Self::new(ModelOptions::new(model, ProviderClient::from_env(KEY_ENV)?))
    }

    /// Creates a model of another server with OpenAI's API, without a key:
    /// `OpenAi::at("http://localhost:11434/v1", "llama3.2")` is a model of Ollama. [`OpenAi::new`]
    /// takes a key, too.
    ///
    /// # Errors
    /// If the URL is invalid.
    pub fn at(url: impl Into<String>, model: impl Into<String>) -> Result<Self, SetupError> {
        Self::new(ModelOptions::new(
            model,
            ProviderClient { base_url: Some(url.into()), ..ProviderClient::default() },
        ))
    }

    /// Creates a model with these options. At OpenAI, models that reason and all models since gpt-5
    /// get the Responses API; older models, and models of other servers, get chat completions.
    ///
    /// # Errors
    /// If the base URL, the key, a header or an option is invalid, or if the API lacks an option.
    pub fn new(options: ModelOptions) -> Result<Self, SetupError> {
        let base_url = options.client.base_url.as_deref();
        let api = OpenAiApi::for_model(&options.known_models, &options.model, base_url);
        Self::with_api(api, options)
    }

    /// Creates a model with chat completions, at OpenAI or at a compatible provider.
    ///
    /// # Errors
    /// If the base URL, the key, a header or an option is invalid, or if the server lacks an option.
    pub fn chat(options: ModelOptions) -> Result<Self, SetupError> {
        Self::with_api(OpenAiApi::Chat, options)
    }

    /// Creates a model with the Responses API, at OpenAI or at a compatible provider.
    ///
    /// # Errors
    /// If the base URL, the key, a header or an option is invalid.
    pub fn responses(options: ModelOptions) -> Result<Self, SetupError> {
        Self::with_api(OpenAiApi::Responses, options)
    }

    fn with_api(api: OpenAiApi, options: ModelOptions) -> Result<Self, SetupError> {
        if api == OpenAiApi::Responses {
            options.refuse(RESPONSES_LACKS)?;
        }
        let mut url = options.url(BASE_URL)?;
        let profile = options.known_models.profile(options.profile.as_ref(), &url)?;
        let endpoint = match api {
            OpenAiApi::Chat => {
                options.refuse(&profile.lacking_options())?;
                CHAT_ENDPOINT
            }
            OpenAiApi::Responses => RESPONSES_ENDPOINT,
        };
        let path = url.path().trim_end_matches('/');
        let path = path
            .strip_suffix(CHAT_ENDPOINT)
            .or(path.strip_suffix(RESPONSES_ENDPOINT))
            .unwrap_or(path);
        url.set_path(&format!("{path}{endpoint}"));
        let mut places = vec![(AUTHORIZATION, "Bearer ")];
        // The output of a command is a token and not an account's key.
        let has_key_header =
            profile.has_api_key_header && options.client.api_key_command.is_empty();
        places.extend(has_key_header.then_some((AZURE_KEY, "")));
        let transport = Transport::new(&options, url, HeaderMap::new(), places)?;
        let tools = PortableTools::new(options.known_models.tool_limits(OPENAI));
        Ok(Self { options, api, profile, tools, transport })
    }
}

impl Model for OpenAi {
    fn provider(&self) -> &str {
        match self.api {
            OpenAiApi::Chat => chat::vendor(&self.profile),
            OpenAiApi::Responses => OPENAI,
        }
    }

    fn name(&self) -> &str {
        &self.options.model
    }

    fn media_limits(&self) -> MediaLimits {
        self.options.known_models.media_limits(self.provider())
    }

    fn media_input(&self) -> MultimodalInputCapabilities {
        let Profile { images, audio, documents, .. } = *self.profile;
        match self.api {
            OpenAiApi::Chat => media_input([images, audio, false, documents != Documents::None]),
            OpenAiApi::Responses => media_input([true, false, false, true]),
        }
    }

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        let Self { profile, transport, .. } = self;
        let options = &*self.options.for_request(&request.sampling);
        let model = request.model.clone().unwrap_or_else(|| options.model.clone());
        let names = self.tools.prepare(&mut request);
        names.restore(match self.api {
            OpenAiApi::Chat => {
                let body = chat::request::body(options, profile, &request);
                let is_thinking_off = options.thinking_of(request.thinking) == Some(Thinking::Off);
                let profile = profile.clone();
                let may_call = request.tool_choice != ToolChoice::None;
                let tools = if may_call { request.tools.clone() } else { Arc::default() };
                transport.stream(&body, request.trace, move || {
                    ChatDecoder::new(&model, &profile, is_thinking_off, tools.clone())
                })
            }
            OpenAiApi::Responses => {
                let body = responses::request::body(options, &request);
                let max_tokens = body.json.get("max_output_tokens").and_then(Value::as_u64);
                transport.stream(&body, request.trace, move || {
                    ResponsesDecoder::new(&model).with_max_tokens(max_tokens)
                })
            }
        })
    }

    fn warnings(&self) -> Vec<String> {
        match self.api {
            OpenAiApi::Chat if !self.profile.has_openai_models => {
                chat::warnings::warnings(&self.profile, &self.options)
            }
            api => warnings::openai_warnings(&self.options, api),
        }
    }
}

#[cfg(test)]
mod tests;
