//! Mends the form of a server's responses, so that each reaches the request that it responds to: ids in another form,
//! `null` beside a result, errors that name no request, responses to another request.

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

use agui_base::{
    lenient_json::report,
    repairs::{Partner, Repair},
};

/// The code of the error that replaces a response to another request. A server that sends it itself gains nothing.
pub(super) const OTHER_RESPONSE: ErrorCode = ErrorCode(i32::MIN);

/// The members of a message that are read. A message with a method is no response.
#[derive(Deserialize)]
pub(super) struct MessageHead {
    #[serde(default)]
    pub(super) id: Value,
    #[serde(default)]
    pub(super) method: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Member>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Member>,
}

/// A member that is present: `None` for `null`.
type Member = Option<IgnoredAny>;

fn present<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Member>, D::Error> {
    Member::deserialize(member).map(Some)
}

impl MessageHead {
    /// Returns the head of a response; `None` for other messages.
    fn of_response(message: &[u8]) -> Option<Self> {
        serde_json::from_slice(message).ok().filter(|head: &Self| head.method.is_none())
    }
}

/// Returns a message with the number that its server has written as a text (or `7.0` for `7`) in its `id`, and without
/// `error: null` beside a result or `result: null` beside an error.
pub(super) fn mended(message: Vec<u8>) -> Vec<u8> {
    let Some(head) = MessageHead::of_response(&message) else { return message };
    let needless = match (head.result, head.error) {
        (Some(_), Some(None)) => Some("error"),
        (Some(None), Some(Some(_))) => Some("result"),
        _ => None,
    };
    let number = match &head.id {
        Value::String(id) => id.parse::<i64>().ok(),
        id if id.is_f64() => id.as_f64().unwrap_or_default().to_string().parse().ok(),
        _ => None,
    };
    if needless.is_none() && number.is_none() {
        return message;
    }
    changed(&message, |members| {
        if let Some(needless) = needless {
            members.shift_remove(needless);
            report(Repair::Null, Partner::ToolServer);
        }
        if let Some(number) = number {
            members.insert("id".to_owned(), number.into());
        }
    })
    .unwrap_or(message)
}

/// Returns a message that has come in the response to a request. A response without an id, and an error with an id that
/// no request of ours has, are of this request. A response to another request is an error of this one, and must not
/// reach the other.
pub(super) fn addressed_to(request: &RequestId, message: Vec<u8>) -> Vec<u8> {
    let Some(head) = MessageHead::of_response(&message) else { return message };
    let own = serde_json::to_value(request).unwrap_or_default();
    if head.id == own {
        return message;
    }
    if head.id.is_null() || !head.id.is_number() && matches!(head.error, Some(Some(_))) {
        let with_id = changed(&message, |members| _ = members.insert("id".to_owned(), own));
        return with_id.unwrap_or(message);
    }
    let error = ErrorData::new(OTHER_RESPONSE, "it responded to another request", None);
    let error = ServerJsonRpcMessage::error(error, Some(request.clone()));
    serde_json::to_vec(&error).unwrap_or_default()
}

fn changed(
    message: &[u8],
    change: impl FnOnce(&mut serde_json::Map<String, Value>),
) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(message).ok()?;
    change(value.as_object_mut()?);
    let mut changed = serde_json::to_vec(&value).ok()?;
    changed.extend(message.ends_with(b"\n").then_some(b'\n'));
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: Vec<u8>) -> String {
        String::from_utf8(message).unwrap()
    }

    #[test]
    fn an_id_in_another_form_is_that_of_the_request() {
        for (sent, read) in [
            ("{\"id\":\"7\",\"result\":{}}\n", "{\"id\":7,\"result\":{}}\n"),
            ("{\"id\":7.0,\"result\":{\"a\":null}}\n", "{\"id\":7,\"result\":{\"a\":null}}\n"),
            // An id of the server's own request, and one that no request of this server has.
            ("{\"id\":\"7\",\"method\":\"ping\"}", "{\"id\":\"7\",\"method\":\"ping\"}"),
            ("{\"id\":\"x\",\"result\":{}}", "{\"id\":\"x\",\"result\":{}}"),
        ] {
            assert_eq!(text(mended(sent.into())), read);
        }
    }

    #[test]
    fn null_beside_a_result_or_an_error_is_left_out() {
        for (sent, read) in [
            (r#"{"id":7,"result":{},"error":null}"#, r#"{"id":7,"result":{}}"#),
            (r#"{"id":"7","error":null,"result":{}}"#, r#"{"id":7,"result":{}}"#),
            (r#"{"id":7,"result":null,"error":{"code":1}}"#, r#"{"id":7,"error":{"code":1}}"#),
            (r#"{"id":7,"error":null}"#, r#"{"id":7,"error":null}"#),
            (r#"{"id":7,"method":"x","error":null}"#, r#"{"id":7,"method":"x","error":null}"#),
        ] {
            assert_eq!(text(mended(sent.into())), read);
        }
    }

    #[test]
    fn only_responses_to_the_request_reach_it_and_none_reaches_another() {
        let own = RequestId::Number(7);
        let addressed = |message: &str| text(addressed_to(&own, message.into()));
        for unchanged in [
            r#"{"id":7,"result":{}}"#,
            r#"{"id":8,"method":"elicitation/create"}"#,
            r#"{"method":"notifications/progress"}"#,
        ] {
            assert_eq!(addressed(unchanged), unchanged);
        }
        // The Python SDK names errors before a request is read "server-error".
        for id in ["null", "\"server-error\""] {
            let error = format!(r#"{{"id":{id},"error":{{"code":1,"message":"no"}}}}"#);
            assert_eq!(addressed(&error), r#"{"id":7,"error":{"code":1,"message":"no"}}"#);
        }
        assert_eq!(addressed(r#"{"result":{}}"#), r#"{"result":{},"id":7}"#);
        for other in [
            r#"{"id":8,"result":{}}"#,
            r#"{"id":8,"error":{"code":1}}"#,
            r#"{"id":"x","result":{}}"#,
        ] {
            let error: Value = serde_json::from_str(&addressed(other)).unwrap();
            assert_eq!(
                (&error["id"], &error["error"]["code"]),
                (&7.into(), &OTHER_RESPONSE.0.into())
            );
        }
    }
}
