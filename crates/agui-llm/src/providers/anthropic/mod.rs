//! Models with Anthropic's Messages API.
//!
//! To change a model's requests: `models.toml` has the rules by name, `thinking` and `request`
//! apply them, `messages` and `content_blocks` turn the conversation into blocks. `decoder` reads
//! the answer, `paused` continues one that the provider paused. Servers with the same API and
//! models of other names get requests without the members that only Anthropic's models take.

mod content_blocks;
pub(crate) mod decoder;
mod messages;
mod paused;
mod raw_block;
pub(crate) mod request;
mod schema;
mod server_blocks;
mod thinking;
mod usage;
mod warnings;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use self::{decoder::MessageDecoder, request::ClaudeRequestBody};
use crate::{
    MediaLimits, Model, ModelOptions, ModelRequest, ModelStream, ProviderClient,
    known_models::MessagesServer,
    providers::{
        api_entry::{ApiEntry, KnownProvider},
        api_host::ApiHost,
        portable_tools::PortableTools,
        wire::{ANTHROPIC, media_input},
    },
    transport::{SetupError, Transport, is_in_domain},
};
use agui_protocol::capabilities::MultimodalInputCapabilities;

/// Options that the Messages API lacks.
const UNSUPPORTED_OPTIONS: &[&str] = &[
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "verbosity",
    "cache_key",
    "image_detail",
    "profile",
];
const BASE_URL: &str = "https://api.anthropic.com";
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const KEY_ENV: &str = "ANTHROPIC_API_KEY";

pub(super) static MESSAGES: ApiEntry = ApiEntry {
    create: |options| Ok(Arc::new(Anthropic::new(options)?)),
    service: Some(KnownProvider {
        name: ANTHROPIC,
        key_env: Some(KEY_ENV),
        base_url: None,
        model_prefixes: &["claude-"],
        usual_model: "claude-sonnet-5-5",
    }),
    endpoints: &["/v1/messages", "/messages"],
    model_endpoints: &[":streamRawPredict", "/invoke-with-response-stream"],
    tool_limits: ANTHROPIC,
    body: |options, request, server| {
        request::body(options, request, &MessagesServer::default(), server.is_official).sent
    },
    // The vendor's own service can pause an answer, whose content is kept then.
    decoder: |server| {
        let decoder = MessageDecoder::new("m");
        Box::new(if server.is_official { decoder.recording(Arc::default()) } else { decoder })
    },
};

/// A model with the Messages API, at Anthropic or at a compatible provider.
#[derive(Debug)]
pub struct Anthropic {
    options: ModelOptions,
    host: ApiHost,
    /// Beta features that the client's headers enable.
    betas: Vec<String>,
    server: MessagesServer,
    /// True at Anthropic, and at a server whose headers name the beta feature for bound thinking.
    /// Other servers may lack the newest features.
    is_official: bool,
    tools: PortableTools,
    transport: Arc<Transport>,
}

impl Anthropic {
    /// Creates a model of Anthropic, with the key in the environment variable `ANTHROPIC_API_KEY`.
    ///
    /// # Errors
    /// If the variable is not set, or its value is not a valid key.
    pub fn from_env(model: impl Into<String>) -> Result<Self, SetupError> {
        Self::new(ModelOptions::new(model, ProviderClient::from_env(KEY_ENV)?))
    }

    /// Creates a model with these options. The base URL of Amazon Bedrock is
    /// `https://bedrock-runtime.REGION.amazonaws.com`. The base URL of Vertex AI has a location:
    /// `https://us-east5-aiplatform.googleapis.com/v1/projects/PROJECT/locations/us-east5`.
    ///
    /// # Errors
    /// If the base URL, the key, a header or an option is invalid.
    pub fn new(options: ModelOptions) -> Result<Self, SetupError> {
        options.refuse(UNSUPPORTED_OPTIONS)?;
        if let Some(name) = options.metadata.keys().find(|name| *name != "user_id") {
            let problem = format!("this provider takes `user_id` only, not `{name}`");
            return Err(SetupError::Option { option: "metadata", problem });
        }
        let (host, mut url) = ApiHost::detect(&options, BASE_URL)?;
        let is_own = is_in_domain(&url, "anthropic.com");
        if host == ApiHost::Vendor {
            let path = url
                .path()
                .trim_end_matches('/')
                .trim_end_matches("/messages")
                .trim_end_matches("/v1");
            url.set_path(&format!("{path}/v1/messages"));
        }
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        let key = host.key_place((HeaderName::from_static("x-api-key"), ""));
        let transport = Transport::new(&options, url, headers, vec![key])?;
        let betas = transport
            .header(&BETA)
            .unwrap_or_default()
            .split(',')
            .map(|beta| beta.trim().to_owned());
        let betas: Vec<String> = betas.filter(|beta| !beta.is_empty()).collect();
        let is_official = is_own || betas.iter().any(|beta| beta == request::BINDING_BETA);
        let tools = PortableTools::new(options.known_models.tool_limits(ANTHROPIC));
        let server = options.known_models.messages_server(&transport.url);
        Ok(Self { options, host, betas, server, is_official, tools, transport })
    }
}

impl Model for Anthropic {
    fn provider(&self) -> &str {
        messages::vendor(&self.server)
    }

    fn name(&self) -> &str {
        &self.options.model
    }

    fn media_limits(&self) -> MediaLimits {
        self.options.known_models.media_limits(self.provider())
    }

    fn media_input(&self) -> MultimodalInputCapabilities {
        media_input([true, false, false, true])
    }

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        let names = self.tools.prepare(&mut request);
        let options = self.options.for_request(&request.sampling);
        let ClaudeRequestBody { mut sent, betas, has_server_tools } =
            request::body(&options, &request, &self.server, self.is_official);
        let needed = betas
            .into_iter()
            .filter(|beta| !self.betas.iter().any(|configured| configured == beta));
        let betas: Vec<_> = self.betas.iter().map(String::as_str).chain(needed).collect();
        // The configured betas are in a header of all requests.
        let header =
            (betas.len() > self.betas.len()).then(|| HeaderValue::try_from(betas.join(",")).ok());
        sent.headers.extend(header.flatten().map(|value| (BETA, value)));
        let model = request.model.unwrap_or_else(|| self.options.model.clone());
        self.host.address_claude(&self.transport.url, &model, &betas, &mut sent);
        names.restore(if has_server_tools {
            paused::stream(self.transport.clone(), model, sent, request.trace)
        } else {
            self.transport.stream(&sent, request.trace, move || MessageDecoder::new(&model))
        })
    }

    fn warnings(&self) -> Vec<String> {
        warnings::warnings(&self.options)
    }
}
