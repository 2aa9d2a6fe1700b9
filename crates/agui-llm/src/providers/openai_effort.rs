//! The effort of reasoning of a request to one of OpenAI's models.

use crate::{ModelOptions, Thinking, known_models::OpenAiRules};

/// Returns an effort that the model takes. `requested` is the request's own switch of thinking.
pub(crate) fn effort<'o>(
    rules: Option<&'o OpenAiRules>,
    options: &'o ModelOptions,
    requested: Option<bool>,
) -> Option<&'o str> {
    let configured = options.reasoning_effort.as_deref();
    let wanted = match (options.thinking_of(requested), configured, rules) {
        (None, ..) => configured?,
        (Some(Thinking::Off), Some("none"), _) => "none",
        (Some(Thinking::Off), _, Some(rules)) => {
            rules.efforts.first().map_or("low", String::as_str)
        }
        // A model with a configured effort takes `low`; a model without one may not reason at all.
        (Some(Thinking::Off), configured, None) => configured.map(|_| "low")?,
        (Some(_), Some(effort), _) if !matches!(effort, "none" | "minimal") => effort,
        (Some(_), _, Some(rules)) if rules.default_effort != "none" => &rules.default_effort,
        (Some(_), ..) => "medium",
    };
    rules.map_or(Some(wanted), |rules| rules.nearest_effort(wanted))
}

#[cfg(test)]
mod tests;
