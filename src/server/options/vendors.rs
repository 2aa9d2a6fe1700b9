//! The names that people write as `provider`, and the options by which this server reaches their models.

use agui_base::text::is_in;

/// The URL of an Ollama on this machine.
pub(crate) const OLLAMA_URL: &str = "http://localhost:11434/v1";

/// The names of vendors and servers, in lower case without `-` and `_`; the protocol; the URL; further options.
const VENDORS: [(&str, &str, &str, &str); 30] = [
    ("mistral mistralai", "openai", "https://api.mistral.ai/v1", ""),
    ("groq", "openai", "https://api.groq.com/openai/v1", ""),
    ("deepseek", "openai", "https://api.deepseek.com/v1", ""),
    ("together togetherai", "openai", "https://api.together.xyz/v1", ""),
    ("openrouter", "openai", "https://openrouter.ai/api/v1", ""),
    ("xai grok", "openai", "https://api.x.ai/v1", ""),
    ("fireworks fireworksai", "openai", "https://api.fireworks.ai/inference/v1", ""),
    ("perplexity", "openai", "https://api.perplexity.ai", ""),
    ("cerebras", "openai", "https://api.cerebras.ai/v1", ""),
    ("sambanova", "openai", "https://api.sambanova.ai/v1", ""),
    ("deepinfra", "openai", "https://api.deepinfra.com/v1/openai", ""),
    ("nvidia nim", "openai", "https://integrate.api.nvidia.com/v1", ""),
    ("huggingface hf", "openai", "https://router.huggingface.co/v1", ""),
    ("cohere", "openai", "https://api.cohere.ai/compatibility/v1", ""),
    ("moonshot moonshotai kimi", "openai", "https://api.moonshot.ai/v1", ""),
    (
        "qwen dashscope alibaba",
        "openai",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "",
    ),
    ("zhipu zhipuai glm zai", "openai", "https://api.z.ai/api/paas/v4", ""),
    ("minimax", "openai", "https://api.minimax.io/v1", ""),
    ("github", "openai", "https://models.github.ai/inference", ""),
    ("ollama", "openai", OLLAMA_URL, ""),
    ("vllm", "openai", "http://localhost:8000/v1", ""),
    ("lmstudio", "openai", "http://localhost:1234/v1", ""),
    ("llamacpp llamaserver", "openai", "http://localhost:8080/v1", ""),
    ("litellm", "openai", "http://localhost:4000", ""),
    ("openaicompatible", "openai", "https://HOST/v1", ""),
    ("azure azureopenai", "openai", "https://RESOURCE.openai.azure.com/openai/v1", ""),
    (
        "bedrock aws amazon",
        "anthropic",
        "https://bedrock-runtime.REGION.amazonaws.com",
        "credentials = \"aws\"",
    ),
    (
        "vertex vertexai gcp",
        "gemini",
        "https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION",
        "credentials = \"gcp\"",
    ),
    ("claude", "anthropic", "", ""),
    ("google googleai googlegenai", "gemini", "", ""),
];

/// Returns the options to set in place of a provider that is the name of a vendor.
pub(super) fn advice_about(provider: &str) -> Option<String> {
    let name = provider.to_lowercase().replace(['-', '_', '.', ' '], "");
    let (_, protocol, url, further) = VENDORS.iter().find(|(names, ..)| is_in(names, &name))?;
    let base_url = (!url.is_empty()).then(|| format!("base_url = {url:?}"));
    let options: Vec<_> =
        base_url.into_iter().chain((!further.is_empty()).then(|| (*further).to_owned())).collect();
    let with = if options.is_empty() {
        String::new()
    } else {
        format!(", with {}", options.join(" and "))
    };
    Some(format!(
        "a provider is a protocol, and {provider:?} has that of provider = {protocol:?}{with}"
    ))
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;

    #[test]
    fn vendors_are_known_in_the_ways_in_which_their_names_are_written() {
        for (provider, expected) in [
            ("mistral", "provider = \"openai\", with base_url = \"https://api.mistral.ai/v1\""),
            ("lm-studio", "provider = \"openai\", with base_url = \"http://localhost:1234/v1\""),
            (
                "Fireworks_AI",
                "provider = \"openai\", with base_url = \"https://api.fireworks.ai/inference/v1\"",
            ),
            (
                "bedrock",
                "base_url = \"https://bedrock-runtime.REGION.amazonaws.com\" and credentials = \"aws\"",
            ),
            ("claude", "has that of provider = \"anthropic\""),
        ] {
            let advice = advice_about(provider).unwrap();
            assert!(advice.ends_with(expected), "{advice}");
        }
        assert_eq!(advice_about("opnai"), None);
    }

    #[test]
    fn each_name_has_one_vendor_and_each_url_is_one() {
        let names: Vec<_> = VENDORS.iter().flat_map(|(names, ..)| names.split(' ')).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(
                !names[..at].contains(name) && name.chars().all(|c| c.is_ascii_lowercase()),
                "{name}"
            );
        }
        assert!(VENDORS.iter().all(|(_, _, url, _)| url.is_empty() || Url::parse(url).is_ok()));
    }
}
