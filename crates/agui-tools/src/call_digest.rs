//! Binds a person's reply to the call that the person was shown, by a digest of the call and the
//! name of the MCP server that carries it out.
//!
//! The id of each interrupt ends with both. A call with the same id and another name or other
//! arguments, such as one that a client added to the conversation, has another digest and does not
//! get the reply. Two servers can have tools of one name: a call does not run if its tool has
//! moved to another server since the question.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::arguments::CallArguments;
use agui_protocol::{JsonObject, ToolCall};

/// The length of a digest before base64, in bytes: enough to resist collisions.
const DIGEST_BYTES: usize = 24;

/// Returns the end of the ids of a call's interrupts: `DIGEST:CALL`, or `DIGEST@SERVER:CALL`.
pub fn bound_call(call: &ToolCall, server: Option<&str>) -> String {
    let server = server.map(|server| format!("@{}", utf8_percent_encode(server, NON_ALPHANUMERIC)));
    format!("{}{}:{}", call_digest(call), server.unwrap_or_default(), call.id)
}

/// Returns whether the end of an interrupt's id belongs to a call, on any server.
pub fn is_bound_to(call: &ToolCall, bound: &str) -> bool {
    let server = bound
        .strip_prefix(&*call_digest(call))
        .and_then(|rest| rest.strip_suffix(call.id.as_str()));
    server
        .and_then(|server| server.strip_suffix(':'))
        .is_some_and(|server| server.is_empty() || server.starts_with('@') && !server.contains(':'))
}

/// Returns the digest of a call's tool and arguments. White space and the order of an object's members do not count,
/// because a client may write the arguments anew.
fn call_digest(call: &ToolCall) -> String {
    let function = &call.function;
    let written = &function.arguments;
    let arguments = match serde_json::from_str(written) {
        Ok(value) => sorted(value).to_string(),
        Err(_) => CallArguments::read(written).map_or_else(
            |_| written.clone(),
            |read| sorted(Value::Object(read.object)).to_string(),
        ),
    };
    digest(&function.name, &arguments, DIGEST_BYTES)
}

/// Returns the digest of a tool and the arguments that it gets.
pub(crate) fn arguments_digest(tool: &str, arguments: &JsonObject) -> String {
    digest(tool, &sorted(Value::Object(arguments.clone())).to_string(), DIGEST_BYTES)
}

/// Returns the first `bytes` of the digest of a name and a text, in base64.
pub fn digest(name: &str, text: &str, bytes: usize) -> String {
    // The length of the name keeps name and text apart.
    let all = format!("{}:{name}{text}", name.len());
    BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(all.as_bytes())[..bytes])
}

/// The parser refuses more than 128 levels, so the recursion is bounded.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect::<JsonObject>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(name: &str, arguments: &str) -> String {
        call_digest(&ToolCall::new("c", name, arguments))
    }

    #[test]
    fn the_end_of_an_id_is_of_one_call_and_names_its_server() {
        let call = ToolCall::new("c:1", "pay", "{}");
        for server in [None, Some("bank"), Some("a:b@c")] {
            assert!(is_bound_to(&call, &bound_call(&call, server)), "{server:?}");
        }
        assert_ne!(bound_call(&call, Some("bank")), bound_call(&call, Some("shop")));
        let digest = call_digest(&call);
        for other in ["", ":1", "@:c:1", "c:1"].map(str::to_owned).into_iter().chain([
            format!("{digest}@a:b:c:1"),
            format!("{digest}c:1"),
            format!("{digest}@bank:c:2"),
            format!("{digest}x:c:1"),
        ]) {
            assert!(!is_bound_to(&call, &other), "{other}");
        }
        assert!(!is_bound_to(&ToolCall::new("1", "pay", "{}"), &bound_call(&call, None)));
    }

    #[test]
    fn name_and_arguments_decide_the_digest_and_their_form_does_not() {
        let digest_of_pay = digest_of("pay", r#"{"to":"ada","cents":[1,{"b":2,"a":1}]}"#);
        assert_eq!(digest_of_pay.len(), 32);
        assert_eq!(
            digest_of_pay,
            digest_of("pay", r#"{ "cents": [1, {"a":1,"b":2}], "to": "ada" }"#)
        );
        for (name, arguments) in [
            ("pay", r#"{"to":"bob","cents":[1,{"b":2,"a":1}]}"#),
            ("pay", r#"{"to":"ada","cents":[{"b":2,"a":1},1]}"#),
            ("pay_all", r#"{"to":"ada","cents":[1,{"b":2,"a":1}]}"#),
            ("pay", ""),
            ("pay", "{"),
        ] {
            assert_ne!(digest_of_pay, digest_of(name, arguments), "{name} {arguments}");
        }
        assert_ne!(digest_of("pay", "all{"), digest_of("payall", "{"));
    }
}
