//! Compares the steps of two runs by rules.

use serde_json::Value;

use super::{
    play::Played,
    rules::{Equality, Rules, TextRule},
};
use crate::server::cli::printable::excerpt;
use agui_base::text::PARAGRAPH_CHARS;
use agui_protocol::TokenUsage;

/// Returns the differences, for people; none if the rules hold.
pub(super) fn differences(
    rules: &Rules,
    recorded: &[Value],
    live: &[Value],
    played: &Played,
) -> Vec<String> {
    let mut found = step_differences(&compared(rules, recorded), &compared(rules, live));
    found.extend(text_difference(&rules.text, live));
    let mut usage = TokenUsage::default();
    played.usage.iter().for_each(|used| usage.add(used));
    let millis = u64::try_from(played.duration.as_millis()).unwrap_or(u64::MAX);
    for (name, value, most) in [
        ("milliseconds", millis, rules.max_ms),
        ("input tokens", usage.input_tokens.unwrap_or(0), rules.max_input_tokens),
        ("output tokens", usage.output_tokens.unwrap_or(0), rules.max_output_tokens),
    ] {
        if let Some(most) = most.filter(|most| value > *most) {
            found.push(format!("{value} {name}; at most {most} are allowed"));
        }
    }
    found
}

/// Returns the steps that have to be equal. Steps that a rule excludes are left out.
fn compared(rules: &Rules, steps: &[Value]) -> Vec<Value> {
    let mut values = Vec::new();
    for step in steps {
        let kind = kind_of(step);
        if rules.ignore.iter().any(|ignored| ignored == kind) {
            continue;
        }
        let excluded = match kind {
            "TEXT_MESSAGE" if !matches!(rules.text, TextRule::Exact) => continue,
            "TOOL_CALL" if rules.arguments == Equality::Any => Some("arguments"),
            "TOOL_CALL_RESULT" if rules.results == Equality::Any => Some("content"),
            "REASONING" | "REASONING_START" if rules.reasoning == Equality::Any => continue,
            _ => None,
        };
        let mut value = step.clone();
        if let (Some(excluded), Value::Object(object)) = (excluded, &mut value) {
            object.remove(excluded);
        }
        values.push(value);
    }
    values
}

fn kind_of(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the lines between the equal beginning and the equal end of two lists.
fn step_differences(recorded: &[Value], live: &[Value]) -> Vec<String> {
    let same = recorded.iter().zip(live).take_while(|(recorded, live)| recorded == live).count();
    let (recorded, live) =
        (recorded.get(same..).unwrap_or_default(), live.get(same..).unwrap_or_default());
    let same = recorded
        .iter()
        .rev()
        .zip(live.iter().rev())
        .take_while(|(recorded, live)| recorded == live)
        .count();
    let missing = recorded.iter().take(recorded.len() - same).map(|step| shown('-', step));
    let unexpected = live.iter().take(live.len() - same).map(|step| shown('+', step));
    missing.chain(unexpected).collect()
}

fn shown(sign: char, step: &Value) -> String {
    format!("{sign} {}", excerpt(&step.to_string(), PARAGRAPH_CHARS))
}

fn text_difference(rule: &TextRule, live: &[Value]) -> Vec<String> {
    let texts = live.iter().filter(|step| kind_of(step) == "TEXT_MESSAGE");
    let texts: Vec<_> = texts.filter_map(|step| step.get("text")?.as_str()).collect();
    let text = texts.join("\n");
    let problem = match rule {
        TextRule::Exact | TextRule::Any => None,
        TextRule::Contains(parts) => {
            let missing = parts.iter().find(|part| !text.contains(part.as_str()));
            missing.map(|part| format!("does not contain {part:?}"))
        }
        TextRule::Matches(regex) => {
            (!regex.is_match(&text)).then(|| format!("does not match {:?}", regex.as_str()))
        }
        TextRule::Schema(schema) => match serde_json::from_str(&text) {
            Err(error) => Some(format!("is not JSON: {error}")),
            Ok(value) => schema
                .validate(&value)
                .err()
                .map(|error| format!("does not fit the schema: {error}")),
        },
    };
    problem.map_or_else(Vec::new, |problem| {
        vec![format!("the text {problem}"), shown('+', &text.into())]
    })
}
