//! The members of a request that ask for thinking.

use serde_json::{Value, json};

use crate::{
    ModelOptions, Thinking,
    known_models::{OpenAiRules, Profile, ThinkingMember},
    providers::{openai_effort::effort as openai_effort, wire::SetMember as _},
};
use agui_protocol::JsonObject;

/// The thinking that a request asks for.
#[derive(Debug, Clone, Copy)]
struct WantedThinking<'o> {
    /// `None`: the server decides.
    is_on: Option<bool>,
    /// The configured effort of a model that thinks. A request for thinking overrides a configured
    /// `none`.
    effort: Option<&'o str>,
    budget: Option<u32>,
}

impl<'o> WantedThinking<'o> {
    fn new(options: &'o ModelOptions, requested: Option<bool>) -> Self {
        let configured = options.reasoning_effort.as_deref();
        let is_on = match (options.thinking_of(requested), configured) {
            (Some(Thinking::Off), _) | (None, Some("none")) => Some(false),
            (Some(_), _) | (None, Some(_)) => Some(true),
            (None, None) => None,
        };
        let effort = configured.filter(|effort| *effort != "none" && is_on == Some(true));
        Self { is_on, effort, budget: options.thinking_budget }
    }
}

/// Returns the members for a model. `requested` is the request's own switch. `rules` are the rules
/// of a model of OpenAI. On Azure, the name of a deployment may have no rules.
pub(super) fn members(
    profile: &Profile,
    options: &ModelOptions,
    requested: Option<bool>,
    model: &str,
    rules: Option<&OpenAiRules>,
) -> JsonObject {
    let wanted = WantedThinking::new(options, requested);
    let WantedThinking { is_on, effort, budget } = wanted;
    let mut members = JsonObject::new();
    match profile.thinking_member {
        ThinkingMember::None => {}
        ThinkingMember::ReasoningEffort => {
            let effort = if profile.has_openai_models {
                openai_effort(rules, options, requested)
            } else {
                switched_effort(wanted, options, profile, model)
            };
            members.set("reasoning_effort", effort);
        }
        ThinkingMember::Reasoning => members.set("reasoning", reasoning(wanted)),
        ThinkingMember::ReasoningEnabled => {
            members.set("reasoning", is_on.map(|is_on| json!({"enabled": is_on})));
            members.set("reasoning_effort", effort);
        }
        ThinkingMember::Thinking => {
            members.set(
                "thinking",
                is_on.map(|is_on| json!({"type": if is_on { "enabled" } else { "disabled" }})),
            );
            members.set("reasoning_effort", effort);
        }
        ThinkingMember::EnableThinking => {
            // A budget alone asks for thinking.
            let is_on = is_on.or(budget.map(|_| true));
            members.set("enable_thinking", is_on);
            members.set("thinking_budget", budget.filter(|_| is_on == Some(true)));
        }
        ThinkingMember::ChatTemplateKwargs => {
            // Templates call the switch by one of these names, and ignore others.
            let switch = is_on.map(|is_on| json!({"enable_thinking": is_on, "thinking": is_on}));
            members.set("chat_template_kwargs", switch);
            members.set("reasoning_effort", effort);
            members.set("thinking_token_budget", budget.filter(|_| is_on != Some(false)));
        }
        ThinkingMember::Think => {
            members.set("think", effort.map(Value::from).or(is_on.map(Value::from)))
        }
    }
    members
}

fn switched_effort<'o>(
    wanted: WantedThinking<'o>,
    options: &'o ModelOptions,
    profile: &'o Profile,
    model: &str,
) -> Option<&'o str> {
    let efforts = profile.switch_efforts_of(model);
    if wanted.is_on? {
        wanted.effort.or(efforts.and_then(|efforts| efforts.on.as_deref()))
    } else {
        let off = efforts.and_then(|efforts| efforts.off.as_deref());
        off.or(options.reasoning_effort.as_deref().filter(|effort| *effort == "none"))
    }
}

/// Returns OpenRouter's `reasoning`. It has an effort or a budget, not both:
/// <https://openrouter.ai/docs/use-cases/reasoning-tokens>.
fn reasoning(wanted: WantedThinking<'_>) -> Option<Value> {
    match (wanted.is_on, wanted.budget, wanted.effort) {
        (Some(false), ..) => Some(json!({"effort": "none"})),
        (_, Some(budget), _) => Some(json!({"max_tokens": budget})),
        (_, None, Some(effort)) => Some(json!({"effort": effort})),
        (Some(true), None, None) => Some(json!({"enabled": true})),
        (None, None, None) => None,
    }
}
