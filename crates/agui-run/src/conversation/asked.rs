//! What a request asks: a digest by which a repeated request is known.
//!
//! A proxy, a library or a phone can send a request twice. Its run id alone does not tell: pages send a constant one, and
//! some answer questions under the id of the run that asked. So the digest has what the client asks for, and leaves out where honest
//! repetitions differ: tools, context, state, forwarded properties, and the history before.

use std::{io, ops::Range, sync::Arc};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use agui_agent::host::Forwarded;
use agui_base::text::hex;
use agui_protocol::{Message, RunAgentInput, ToolCallId};

/// The bytes of the digest that are kept.
const DIGEST_BYTES: usize = 16;
/// Never a part of the digest: a token is renewed between two requests.
const AUTHORIZATION: &str = "authorization";

/// The digest of what a request asks, before the server has changed the request.
#[derive(Debug, Clone)]
pub(crate) struct RequestDigest {
    digest: Arc<str>,
    /// True if all asking messages have ids, so that the same digest under another run id is the same request.
    pub(crate) has_ids: bool,
}

impl RequestDigest {
    /// Returns `None` for a request without a message and a reply: it equals no other one.
    pub(crate) fn of(agent: &str, input: &RunAgentInput, headers: &Forwarded) -> Option<Self> {
        let asking = &input.messages[asking_messages(input)];
        if asking.is_empty() && input.resume.is_empty() {
            return None;
        }
        let mut digest = DigestWriter(Sha256::new());
        digest.part(agent);
        digest.part(&input.parent_run_id);
        let has_ids = asking.iter().all(|message| !message.id().is_empty());
        if !has_ids {
            // Otherwise a second "yes" would equal the first one.
            digest.part(&input.messages.iter().filter(|message| is_users(message)).count());
        }
        asking.iter().rev().for_each(|message| digest.part(message));
        let mut replies: Vec<_> = input.resume.iter().collect();
        replies.sort_by(|one, other| one.interrupt_id.cmp(&other.interrupt_id));
        replies.iter().for_each(|reply| digest.part(reply));
        let passed = headers.all().iter().filter(|(name, _)| name != AUTHORIZATION);
        passed.for_each(|header| digest.part(header));
        let digest = hex(&digest.0.finalize()[..DIGEST_BYTES]).into();
        Some(Self { digest, has_ids })
    }

    /// Returns a stored digest. A run that another server began is joined under its own id only.
    pub(crate) fn stored(digest: &str) -> Self {
        Self { digest: digest.into(), has_ids: false }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.digest
    }
}

impl PartialEq for RequestDigest {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// Returns the positions of the messages that ask: those of the user and the results of the page's tools at the end of the list.
/// Messages of agents after them are left out: a client repeats a request with the part of the answer that it has.
pub(crate) fn asking_messages(input: &RunAgentInput) -> Range<usize> {
    let messages = &input.messages;
    let is_of_page = |call: &ToolCallId| {
        let calls = messages.iter().flat_map(Message::tool_calls);
        let name = calls.filter(|other| other.id == *call).map(|call| &call.function.name).next();
        name.is_none_or(|name| input.tools.iter().any(|tool| tool.name == *name))
    };
    let asks = |message: &&Message| match message {
        Message::User(_) => true,
        Message::Tool(result) => is_of_page(&result.tool_call_id),
        _ => false,
    };
    let trails = |message: &&Message| {
        matches!(
            message,
            Message::Assistant(_) | Message::Reasoning(_) | Message::Activity(_) | Message::Tool(_)
        ) && !asks(message)
    };
    let end = messages.len() - messages.iter().rev().take_while(trails).count();
    end - messages[..end].iter().rev().take_while(asks).count()..end
}

fn is_users(message: &Message) -> bool {
    matches!(message, Message::User(_))
}

/// Digests values as JSON, each with an end that JSON does not have.
struct DigestWriter(Sha256);

impl DigestWriter {
    fn part(&mut self, value: &(impl Serialize + ?Sized)) {
        // The digest takes every write, and all parts of an input have a JSON form.
        let _ = serde_json::to_writer(&mut *self, value);
        self.0.update([0]);
    }
}

impl io::Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(input: Value) -> Option<RequestDigest> {
        asked_with(input, [])
    }

    fn asked_with<const N: usize>(
        mut input: Value,
        headers: [(&str, &str); N],
    ) -> Option<RequestDigest> {
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        input["threadId"] = "t".into();
        input["runId"] = "r".into();
        let input: RunAgentInput = serde_json::from_value(input).unwrap();
        RequestDigest::of("agent", &input, &Forwarded::new(headers))
    }

    fn user(id: &str, text: &str) -> Value {
        json!({ "role": "user", "id": id, "content": text })
    }

    #[test]
    fn a_repetition_with_more_of_the_answer_another_state_and_another_token_asks_the_same() {
        let first = asked_with(
            json!({ "messages": [user("1", "Pay")] }),
            [("authorization", "Bearer a"), ("x-tenant", "7")],
        );
        let again = json!({
            "messages": [
                user("0", "Hello"),
                { "role": "assistant", "id": "a0", "content": "Hi" },
                user("1", "Pay"),
                { "role": "reasoning", "id": "a1", "content": "Hm" },
                { "role": "assistant", "id": "a2", "toolCalls": [
                    { "id": "c", "type": "function", "function": { "name": "pay", "arguments": "{}" } }
                ] },
                { "role": "tool", "id": "a3", "toolCallId": "c", "content": "paid" },
                { "role": "assistant", "id": "a4", "content": "I have" },
            ],
            "state": { "a": 1 },
            "tools": [{ "name": "other", "description": "" }],
            "context": [{ "description": "time", "value": "12:01" }],
        });
        assert_eq!(
            asked_with(again.clone(), [("authorization", "Bearer b"), ("x-tenant", "7")]),
            first
        );
        assert_ne!(asked_with(again, [("x-tenant", "8")]), first);
    }

    #[test]
    fn another_message_reply_parent_or_result_of_the_page_asks_something_else() {
        let call = json!({ "role": "assistant", "id": "a", "toolCalls": [
            { "id": "c", "type": "function", "function": { "name": "pick", "arguments": "{}" } }
        ] });
        let result =
            |text: &str| json!({ "role": "tool", "id": "x", "toolCallId": "c", "content": text });
        let tools = json!([{ "name": "pick", "description": "" }]);
        let reply = |payload: Value| json!([{ "interruptId": "i", "status": "resolved", "payload": payload }]);
        let requests = [
            json!({ "messages": [user("1", "Pay")] }),
            json!({ "messages": [user("2", "Pay")] }),
            json!({ "messages": [user("1", "Pay 5")] }),
            json!({ "messages": [user("1", "Pay"), user("2", "now")] }),
            json!({ "messages": [user("1", "Pay")], "parentRunId": "p" }),
            json!({ "messages": [user("1", "Pay")], "resume": reply(json!(true)) }),
            json!({ "messages": [user("1", "Pay")], "resume": reply(json!(false)) }),
            json!({ "messages": [user("1", "Pay"), call, result("red")], "tools": tools }),
            json!({ "messages": [user("1", "Pay"), call, result("blue")], "tools": tools }),
        ];
        let asked: Vec<_> = requests.map(|request| asked(request).unwrap()).to_vec();
        for (at, one) in asked.iter().enumerate() {
            assert!(!asked[..at].contains(one), "{at}");
        }
    }

    #[test]
    fn without_ids_the_number_of_the_users_messages_counts() {
        let yes = || json!({ "role": "user", "id": "", "content": "yes" });
        let answer = json!({ "role": "assistant", "id": "", "content": "More?" });
        let once = asked(json!({ "messages": [yes()] })).unwrap();
        let twice = asked(json!({ "messages": [yes(), answer, yes()] })).unwrap();
        assert_ne!(once, twice);
        assert_eq!(Some(once), asked(json!({ "messages": [yes(), answer] })));
    }

    #[test]
    fn replies_in_another_order_ask_the_same_and_a_request_without_content_nothing() {
        let reply = |id: &str| json!({ "interruptId": id, "status": "cancelled" });
        let one = asked(json!({ "messages": [], "resume": [reply("a"), reply("b")] }));
        assert!(one.is_some());
        assert_eq!(one, asked(json!({ "messages": [], "resume": [reply("b"), reply("a")] })));
        assert_eq!(asked(json!({ "messages": [] })), None);
        let answer = json!({ "role": "assistant", "id": "a", "content": "Hi" });
        assert_eq!(asked(json!({ "messages": [answer] })), None);
    }
}
