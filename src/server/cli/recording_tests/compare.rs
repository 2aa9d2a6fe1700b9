//! Compares the steps of two runs by rules.

use regex::Regex;
use serde_json::Value;

use super::{
    play::Played,
    rules::{Equality, Rules, TextRule},
    steps::Steps,
};
use crate::{protocol::TokenUsage, server::cli::printable::excerpt};

const MAX_SHOWN_CHARS: usize = 400;

/// Returns the differences, for people; none if the rules hold. A rule that is invalid is an error.
pub(super) fn differences(
    rules: &Rules,
    recorded: &Steps,
    live: &Steps,
    played: &Played,
) -> Result<Vec<String>, String> {
    let mut found = step_differences(&compared(rules, recorded), &compared(rules, live));
    found.extend(text_difference(&rules.text, live)?);
    let sum = |count: fn(&TokenUsage) -> Option<u64>| played.usage.iter().filter_map(count).sum::<u64>();
    let millis = u64::try_from(played.duration.as_millis()).unwrap_or(u64::MAX);
    for (name, value, most) in [
        ("milliseconds", millis, rules.max_ms),
        ("input tokens", sum(|usage| usage.input_tokens), rules.max_input_tokens),
        ("output tokens", sum(|usage| usage.output_tokens), rules.max_output_tokens),
    ] {
        if let Some(most) = most.filter(|most| value > *most) {
            found.push(format!("{value} {name}; at most {most} are allowed"));
        }
    }
    Ok(found)
}

/// Returns the steps that have to be equal, without what a rule excludes.
fn compared(rules: &Rules, steps: &Steps) -> Vec<Value> {
    let mut values = Vec::new();
    for value in &steps.values {
        let mut value = value.clone();
        let kind = kind_of(&value).to_owned();
        if rules.ignore.contains(&kind) || (kind == "TEXT_MESSAGE" && rules.text != TextRule::Exact) {
            continue;
        }
        let excluded = match kind.as_str() {
            "TOOL_CALL" if rules.arguments == Equality::Any => Some("arguments"),
            "TOOL_CALL_RESULT" if rules.results == Equality::Any => Some("content"),
            "REASONING" | "REASONING_START" if rules.reasoning == Equality::Any => continue,
            _ => None,
        };
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
    let (recorded, live) = (recorded.get(same..).unwrap_or_default(), live.get(same..).unwrap_or_default());
    let same = recorded.iter().rev().zip(live.iter().rev()).take_while(|(recorded, live)| recorded == live).count();
    let missing = recorded.iter().take(recorded.len() - same).map(|step| shown('-', step));
    let unexpected = live.iter().take(live.len() - same).map(|step| shown('+', step));
    missing.chain(unexpected).collect()
}

fn shown(sign: char, step: &Value) -> String {
    format!("{sign} {}", excerpt(&step.to_string(), MAX_SHOWN_CHARS))
}

fn text_difference(rule: &TextRule, live: &Steps) -> Result<Vec<String>, String> {
    let texts = live.values.iter().filter(|step| kind_of(step) == "TEXT_MESSAGE");
    let texts: Vec<_> = texts.filter_map(|step| step.get("text")?.as_str()).collect();
    let text = texts.join("\n");
    let problem = |what: String| vec![format!("the text {what}"), shown('+', &text.as_str().into())];
    Ok(match rule {
        TextRule::Exact | TextRule::Any => Vec::new(),
        TextRule::Contains(parts) => match parts.iter().find(|part| !text.contains(part.as_str())) {
            Some(part) => problem(format!("does not contain {part:?}")),
            None => Vec::new(),
        },
        TextRule::Matches(expression) => {
            let regex = Regex::new(expression).map_err(|error| error.to_string())?;
            if regex.is_match(&text) { Vec::new() } else { problem(format!("does not match {expression:?}")) }
        }
        TextRule::Schema(schema) => {
            let validator = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
            match serde_json::from_str::<Value>(&text) {
                Err(error) => problem(format!("is not JSON: {error}")),
                Ok(value) => match validator.validate(&value) {
                    Err(error) => problem(format!("does not fit the schema: {error}")),
                    Ok(()) => Vec::new(),
                },
            }
        }
    })
}
