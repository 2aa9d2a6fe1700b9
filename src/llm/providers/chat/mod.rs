//! Models with OpenAI's chat completions, which nearly all other providers also offer.

mod assistant;
mod calls;
mod content;
pub(in crate::llm) mod decoder;
mod messages;
mod reasoning;
mod request;
mod tags;
mod text_chunk;
mod thinking;
mod warnings;

use std::{fmt, sync::Arc};

use self::decoder::ChatDecoder;
use crate::llm::{
    Model, ModelOptions, ModelRequest, ModelStream, Thinking,
    known_models::Profile,
    providers::openai::{
        api::{self, AZURE_KEY, BASE_URL, OpenAiApi},
        warnings::openai_warnings,
    },
    providers::wire::OPENAI,
    transport::{SetupError, Transport},
};

/// A model with chat completions, at OpenAI or at a compatible provider.
pub struct OpenAiChat {
    options: ModelOptions,
    profile: Arc<Profile>,
    transport: Arc<Transport>,
}

impl OpenAiChat {
    /// A model with these options.
    ///
    /// # Errors
    /// If the base URL, the key, a header or an option is invalid, or if the server lacks an option.
    pub fn new(options: ModelOptions) -> Result<Self, SetupError> {
        let url = options.connection.url(BASE_URL)?;
        let profile = options.known_models.profile(options.profile.as_ref(), &url)?;
        options.refuse(&profile.lacking_options())?;
        let key_header = profile.has_api_key_header.then_some(AZURE_KEY);
        let transport = api::transport(
            options.connection.clone(),
            options.exchanges.clone(),
            url,
            "/chat/completions",
            key_header,
        )?;
        Ok(Self { options, profile, transport })
    }
}

impl fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChat").field("options", &self.options).field("profile", &self.profile.name).finish()
    }
}

impl Model for OpenAiChat {
    fn provider(&self) -> &str {
        OPENAI
    }

    fn name(&self) -> &str {
        &self.options.model
    }

    fn warnings(&self) -> Vec<String> {
        if self.profile.has_openai_models {
            openai_warnings(&self.options, OpenAiApi::Chat)
        } else {
            warnings::warnings(&self.profile, &self.options)
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let body = request::body(&self.options, &self.profile, &request);
        let is_thinking_off = self.options.thinking_of(request.thinking) == Some(Thinking::Off);
        let model = request.model.unwrap_or_else(|| self.options.model.clone());
        let profile = self.profile.clone();
        self.transport.stream(&body, request.trace, move || ChatDecoder::new(&model, &profile, is_thinking_off))
    }
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;
    use crate::llm::{
        ProfileOptions,
        known_models::{ThinkingMember, TokenLimit},
        transport::Connection,
    };

    fn at(base_url: Option<&str>, profile: Option<ProfileOptions>) -> Result<OpenAiChat, SetupError> {
        let connection = Connection {
            base_url: base_url.map(str::to_owned),
            api_key: Some("a-key".into()),
            ..Connection::default()
        };
        OpenAiChat::new(ModelOptions { connection, profile, ..ModelOptions::default() })
    }

    #[test]
    fn the_profile_is_that_of_the_domain_or_of_the_port() {
        for (url, name) in [
            (None, "openai"),
            (Some("https://mine.openai.azure.com/openai/v1?api-version=preview"), "azure"),
            (Some("https://mine.azure.com.example.org"), "compatible"),
            (Some("https://API.Moonshot.ai/v1"), "moonshot"),
            (Some("https://api.x.ai/v1"), "xai"),
            (Some("https://notdeepseek.com"), "compatible"),
            (Some("http://localhost:11434/v1"), "ollama"),
            (Some("http://10.0.0.1:8000/v1"), "vllm"),
            (Some("http://gpu:8080"), "llama-cpp"),
            (Some("http://gpu:1234/v1"), "lm-studio"),
            (Some("http://gpu:4000/v1"), "compatible"),
            (Some("https://api.mistral.ai:8000/v1"), "mistral"),
        ] {
            let model = at(url, None).unwrap();
            assert_eq!(model.profile.name, name, "{url:?}");
            let api_key = (name == "azure").then_some("a-key");
            assert_eq!(model.transport.header(&AZURE_KEY), api_key, "{url:?}");
            assert_eq!(model.transport.header(&AUTHORIZATION), Some("Bearer a-key"), "{url:?}");
        }
    }

    #[test]
    fn a_configuration_replaces_members_of_a_profile() {
        let read = |text: &str| serde_json::from_str::<ProfileOptions>(text);
        let named = read("\"groq\"").unwrap();
        assert_eq!(at(Some("http://localhost:11434"), Some(named)).unwrap().profile.name, "groq");
        let table = read(r#"{"token_limit": "max_completion_tokens", "call_id_length": 9}"#).unwrap();
        let profile = at(Some("http://localhost:11434"), Some(table)).unwrap().profile;
        assert_eq!((profile.name.as_str(), profile.call_id_length, profile.image_urls), ("ollama", 9, false));
        assert_eq!(profile.token_limit, TokenLimit::MaxCompletionTokens);
        let unknown = at(None, Some(ProfileOptions::named("bard"))).unwrap_err().to_string();
        assert!(
            unknown.starts_with("`profile`: there is no profile \"bard\": expected \"compatible\", \"openai\""),
            "{unknown}"
        );
        for (text, problem) in [("{\"limit\": 1}", "unknown field `limit`"), ("7", "the name of a profile or a table")]
        {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_table_changes_the_options_that_are_refused() {
        let build = |profile: ProfileOptions, change: &dyn Fn(&mut ModelOptions)| {
            let mut options = ModelOptions { profile: Some(profile), ..ModelOptions::default() };
            change(&mut options);
            OpenAiChat::new(options).is_ok()
        };
        let strict = |options: &mut ModelOptions| options.strict_tools = Some(true);
        let budget = |options: &mut ModelOptions| options.thinking_budget = Some(1);
        let detail = |options: &mut ModelOptions| options.image_detail = Some("low".to_owned());
        let named = ProfileOptions::named;
        assert!(!build(named("groq"), &strict) && !build(named("compatible"), &budget));
        assert!(!build(named("deepseek"), &detail) && build(named("compatible"), &detail));
        assert!(build(ProfileOptions { strict: Some(true), ..named("groq") }, &strict));
        let member = Some(ThinkingMember::Reasoning);
        assert!(build(ProfileOptions { thinking_member: member, ..named("compatible") }, &budget));
        let member = Some(ThinkingMember::None);
        assert!(!build(ProfileOptions { thinking_member: member, ..named("openrouter") }, &budget));
        assert!(!build(ProfileOptions { images: Some(false), ..named("compatible") }, &detail));
    }

    #[test]
    fn an_option_that_the_server_lacks_is_refused() {
        let with = |base: &str| ModelOptions {
            top_k: Some(1),
            profile: Some(ProfileOptions::named(base)),
            ..ModelOptions::default()
        };
        assert!(OpenAiChat::new(with("vllm")).is_ok());
        assert!(OpenAiChat::new(with("openai")).unwrap_err().to_string().contains("top_k"));
    }
}
