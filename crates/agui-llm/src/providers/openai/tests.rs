use http::header::AUTHORIZATION;

use super::*;
use crate::{
    ProfileOptions,
    known_models::{ThinkingMember, TokenLimit},
    transport::ProviderClient,
};

fn at(base_url: Option<&str>, profile: Option<ProfileOptions>) -> Result<OpenAi, SetupError> {
    let client = ProviderClient {
        base_url: base_url.map(str::to_owned),
        api_key: Some("a-key".into()),
        ..ProviderClient::default()
    };
    OpenAi::chat(ModelOptions { client, profile, ..ModelOptions::default() })
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
    assert_eq!(
        (profile.name.as_str(), profile.call_id_length, profile.image_urls),
        ("ollama", 9, false)
    );
    assert_eq!(profile.token_limit, TokenLimit::MaxCompletionTokens);
    let unknown = at(None, Some(ProfileOptions::named("bard"))).unwrap_err().to_string();
    assert!(
        unknown.starts_with(
            "`profile`: there is no profile \"bard\": expected \"compatible\", \"openai\""
        ),
        "{unknown}"
    );
    for (text, problem) in
        [("{\"limit\": 1}", "unknown field `limit`"), ("7", "the name of a profile or a table")]
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
        OpenAi::chat(options).is_ok()
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
    assert!(OpenAi::chat(with("vllm")).is_ok());
    assert!(OpenAi::chat(with("openai")).unwrap_err().to_string().contains("top_k"));
}

#[test]
fn the_responses_api_of_azure_gets_the_key_in_its_own_header_too() {
    for (url, expected) in [
        ("https://mine.openai.azure.com/openai/v1", Some("a-key")),
        ("https://azure.com.example.org", None),
        ("https://api.openai.com/v1", None),
    ] {
        let client = ProviderClient {
            base_url: Some(url.to_owned()),
            api_key: Some("a-key".into()),
            ..ProviderClient::default()
        };
        let model = OpenAi::responses(ModelOptions::new("m", client)).unwrap();
        assert_eq!(model.transport.header(&AZURE_KEY), expected, "{url}");
    }
}
