//! Members in snake case, as SDKs in Python write them: all members of an input, as serde's derive knows them.

use serde::{
    de::{DeserializeOwned, Deserializer, Error, Visitor, value},
    forward_to_deserialize_any,
};
use serde_json::{Map, Value, json};

use super::{Decoded, decode};
use crate::{
    ActivityMessage, AssistantMessage, Context, DeveloperMessage, FunctionCall, MediaPart,
    ReasoningMessage, ResumeEntry, RunAgentInput, SystemMessage, TextPart, ToolCall,
    ToolDefinition, ToolMessage, UserMessage,
};

type Members = &'static [&'static str];

/// The place of each object in [`whole_input`], and its members.
fn objects() -> Vec<(&'static str, Members)> {
    vec![
        ("", members_of::<RunAgentInput>()),
        ("/tools/0", members_of::<ToolDefinition>()),
        ("/context/0", members_of::<Context>()),
        ("/resume/0", members_of::<ResumeEntry>()),
        ("/messages/0", members_of::<DeveloperMessage>()),
        ("/messages/1", members_of::<SystemMessage>()),
        ("/messages/2", members_of::<AssistantMessage>()),
        ("/messages/2/toolCalls/0", members_of::<ToolCall>()),
        ("/messages/2/toolCalls/0/function", members_of::<FunctionCall>()),
        ("/messages/3", members_of::<ToolMessage>()),
        ("/messages/4", members_of::<UserMessage>()),
        ("/messages/4/content/0", members_of::<TextPart>()),
        ("/messages/4/content/1", members_of::<MediaPart>()),
        ("/messages/4/content/1/source", &["value", "mimeType"]),
        ("/messages/4/content/2/source", &["value", "mimeType"]),
        ("/messages/4/content/3/source", &["value", "provider", "mimeType"]),
        ("/messages/4/content/4", &["mimeType", "data", "url", "id", "filename"]),
        ("/messages/5", members_of::<ActivityMessage>()),
        ("/messages/6", members_of::<ReasoningMessage>()),
    ]
}

fn members_of<T: DeserializeOwned>() -> Members {
    struct Asked<'a>(&'a mut Members);

    impl<'de> Deserializer<'de> for Asked<'_> {
        type Error = value::Error;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(Error::custom("not a struct"))
        }
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &str,
            members: Members,
            _: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = members;
            Err(Error::custom("there is no value"))
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
            seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut members: Members = &[];
    assert!(T::deserialize(Asked(&mut members)).is_err() && !members.is_empty());
    members
}

/// Members whose value is not a text. [`whole_input`] adds the others.
fn skeleton() -> Value {
    let call = json!({ "type": "function", "function": {} });
    let image = |source: Value| json!({ "type": "image", "source": source });
    let content = json!([
        { "type": "text" },
        image(json!({ "type": "data" })),
        image(json!({ "type": "url" })),
        image(json!({ "type": "file" })),
        { "type": "binary", "mimeType": "image/png" },
    ]);
    let messages = json!([
        { "role": "developer" },
        { "role": "system" },
        { "role": "assistant", "toolCalls": [call] },
        { "role": "tool" },
        { "role": "user", "content": content },
        { "role": "activity", "content": {} },
        { "role": "reasoning" },
    ]);
    let resume = json!([{ "status": "resolved" }]);
    json!({ "messages": messages, "tools": [{}], "context": [{}], "resume": resume, "protocolVersion": "1.0" })
}

/// An input in which each object has all of its members.
fn whole_input() -> Value {
    let mut input = skeleton();
    for (place, members) in objects() {
        for name in members {
            let value = if *name == "metadata" { json!({}) } else { json!("x") };
            members_at(&mut input, place).entry(*name).or_insert(value);
        }
    }
    input
}

fn members_at<'a>(input: &'a mut Value, place: &str) -> &'a mut Map<String, Value> {
    input
        .pointer_mut(place)
        .and_then(Value::as_object_mut)
        .unwrap_or_else(|| panic!("no object at {place:?}"))
}

fn snake_case(name: &str) -> String {
    let spelled = |c: char| {
        if c.is_ascii_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.to_string() }
    };
    name.chars().map(spelled).collect()
}

fn decoded(input: &Value) -> Decoded {
    decode(input.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}: {input}"))
}

fn as_json(decoded: &Decoded) -> Value {
    serde_json::to_value(&decoded.input).unwrap()
}

#[test]
fn every_member_is_read_in_snake_case_and_the_protocols_spelling_wins() {
    let whole = whole_input();
    let expected = decoded(&whole);
    assert!(expected.ignored.is_empty() && expected.snake_case == 0, "{}", expected.ignored);
    let mut tested = 0;
    for (place, members) in objects() {
        for name in members.iter().copied().filter(|name| name.contains(char::is_uppercase)) {
            let mut input = whole.clone();
            let value = members_at(&mut input, place).remove(name).unwrap();
            members_at(&mut input, place).insert(snake_case(name), value.clone());
            let read = decoded(&input);
            assert_eq!(as_json(&read), as_json(&expected), "{place}/{name}");
            assert!(
                read.ignored.is_empty() && read.snake_case == 1,
                "{place}/{name}: {}",
                read.ignored
            );
            // Both spellings, in both orders.
            let other = if value.is_string() { json!("other") } else { value.clone() };
            let text = |first: (&str, &Value), second: (&str, &Value)| {
                let mut input = whole.clone();
                members_at(&mut input, place).remove(name);
                let rest = serde_json::to_string(&input.pointer(place)).unwrap();
                let pair = format!("{{\"{}\":{},\"{}\":{},", first.0, first.1, second.0, second.1);
                let object = format!("{pair}{}", &rest[1..]);
                *input.pointer_mut(place).unwrap() = json!("<here>");
                input.to_string().replace("\"<here>\"", &object)
            };
            let snake = snake_case(name);
            for body in
                [text((name, &value), (&snake, &other)), text((&snake, &other), (name, &value))]
            {
                let read =
                    decode(body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {body}"));
                assert_eq!(as_json(&read), as_json(&expected), "{place}/{name}: {body}");
            }
            tested += 1;
        }
    }
    assert!(tested >= 30, "{tested} members were tested");
}

#[test]
fn an_input_in_snake_case_alone_is_read_whole() {
    fn respelled(value: Value) -> Value {
        match value {
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (snake_case(&name), respelled(value)))
                .collect(),
            Value::Array(items) => items.into_iter().map(respelled).collect(),
            other => other,
        }
    }
    let whole = whole_input();
    let read = decoded(&respelled(whole.clone()));
    assert_eq!(as_json(&read), as_json(&decoded(&whole)));
    assert!(
        read.ignored.is_empty() && read.snake_case >= 30,
        "{} {}",
        read.ignored,
        read.snake_case
    );
}
