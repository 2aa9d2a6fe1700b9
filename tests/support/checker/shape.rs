//! Rules that hold for each event alone, checked on the JSON that a client receives.

use agui_server::protocol::Event;
use serde_json::Value;

use super::{Verdict, demand};

pub(super) fn check(event: &Event) -> Verdict {
    let json = serde_json::to_value(event).map_err(|error| error.to_string())?;
    demand(json["type"] == event.event_type().as_str(), || {
        format!("calls itself {}", json["type"])
    })?;
    no_null_for_absent(&json, "")?;
    ["delta", "patch"]
        .iter()
        .filter_map(|member| json[member].as_array())
        .flatten()
        .try_for_each(pointers)
}

/// An optional field without a value is left out. `null` is legal in required values, and as data inside the members
/// whose content the protocol leaves open.
fn no_null_for_absent(value: &Value, path: &str) -> Verdict {
    match value {
        Value::Null => Err(format!("null for the absent field {path}")),
        Value::Array(items) => items.iter().try_for_each(|item| no_null_for_absent(item, path)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            let path = format!("{path}/{name}");
            match name.as_str() {
                "snapshot" | "event" | "value" => Ok(()),
                "metadata" | "rawEvent" | "result" | "state" | "forwardedProps" | "parameters"
                | "responseSchema" | "payload" => {
                    demand(!member.is_null(), || format!("null for the absent field {path}"))
                }
                "content" if member.is_object() => Ok(()),
                _ => no_null_for_absent(member, &path),
            }
        }),
        _ => Ok(()),
    }
}

fn pointers(operation: &Value) -> Verdict {
    if let ("move", Some(from), Some(path)) = (
        operation["op"].as_str().unwrap_or_default(),
        operation["from"].as_str(),
        operation["path"].as_str(),
    ) {
        demand(!path.starts_with(&format!("{from}/")), || {
            format!("{from:?} moves into itself, to {path:?}")
        })?;
    }
    ["path", "from"].iter().filter_map(|member| operation[member].as_str()).try_for_each(
        |pointer| {
            let rooted = pointer.is_empty() || pointer.starts_with('/');
            let escaped = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
            demand(rooted && escaped, || format!("{pointer:?} is not a JSON Pointer"))
        },
    )
}
