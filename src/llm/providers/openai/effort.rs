//! The effort of reasoning of a request to one of OpenAI's models.

use crate::llm::known_models::OpenAiRules;

/// Returns the effort of a request. `thinks` is the wish of the request, or of the configuration.
pub(in crate::llm) fn effort<'o>(
    rules: Option<&'o OpenAiRules>,
    configured: Option<&'o str>,
    thinks: Option<bool>,
) -> Option<&'o str> {
    match thinks {
        None => configured,
        Some(true) => match (configured, rules) {
            (Some(effort), _) if !matches!(effort, "none" | "minimal") => Some(effort),
            (_, Some(rules)) if !rules.reasons => None,
            (_, rules) => {
                rules.map(|rules| rules.default_effort.as_str()).filter(|effort| *effort != "none").or(Some("medium"))
            }
        },
        Some(false) => match (configured, rules) {
            (Some("none"), _) => Some("none"),
            (_, Some(rules)) if !rules.reasons => None,
            (_, Some(rules)) => Some(rules.efforts.first().map_or("low", String::as_str)),
            // A model with an effort takes `low`; one without may not reason at all.
            (configured, None) => configured.map(|_| "low"),
        },
    }
}

#[cfg(test)]
mod tests;
