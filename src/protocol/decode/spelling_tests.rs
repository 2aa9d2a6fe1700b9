//! Members in snake case, as SDKs in Python write them: all members that `input.rs`, `message.rs` and `content.rs` name.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Decoded, decode};

/// A line such as `required thread_id = "threadId",` describes a member of the object that was opened last, as
/// `RunAgentInput {` or `read_object!(members => ToolMessage {`.
const SOURCES: [&str; 3] = [include_str!("input.rs"), include_str!("message.rs"), include_str!("content.rs")];
const PRESENCES: [&str; 4] = ["required", "optional", "defaulted", "recognized"];

/// The place of each object in [`whole_input`].
const PLACES: [(&str, &str); 19] = [
    ("RunAgentInput", ""),
    ("ToolDefinition", "/tools/0"),
    ("Context", "/context/0"),
    ("ResumeEntry", "/resume/0"),
    ("DeveloperMessage", "/messages/0"),
    ("SystemMessage", "/messages/1"),
    ("AssistantMessage", "/messages/2"),
    ("ToolCall", "/messages/2/toolCalls/0"),
    ("FunctionCall", "/messages/2/toolCalls/0/function"),
    ("ToolMessage", "/messages/3"),
    ("UserMessage", "/messages/4"),
    ("TextPart", "/messages/4/content/0"),
    ("MediaPart", "/messages/4/content/1"),
    ("PartSource::Data", "/messages/4/content/1/source"),
    ("PartSource::Url", "/messages/4/content/2/source"),
    ("PartSource::File", "/messages/4/content/3/source"),
    ("BinaryPart", "/messages/4/content/4"),
    ("ActivityMessage", "/messages/5"),
    ("ReasoningMessage", "/messages/6"),
];

/// The members of each object.
fn described() -> BTreeMap<&'static str, Vec<&'static str>> {
    let (mut objects, mut object) = (BTreeMap::<_, Vec<_>>::new(), "");
    for line in SOURCES.iter().flat_map(|source| source.lines()).map(str::trim) {
        if let Some(opened) = line.strip_suffix(" {") {
            object = opened.rsplit(' ').next().unwrap_or(opened);
        }
        let presence = line.split(' ').next().unwrap_or_default();
        if PRESENCES.contains(&presence)
            && let Some((_, name)) = line.trim_end_matches("\",").split_once(" = \"")
        {
            objects.entry(object).or_default().push(name);
        }
    }
    // `read_message!` names the members of all messages. Activities have no encrypted value.
    let common = objects.remove("$object").unwrap_or_default();
    for (object, members) in objects.iter_mut().filter(|(object, _)| object.ends_with("Message")) {
        let has = |name: &&&str| *object != "ActivityMessage" || !name.starts_with("encrypted");
        members.extend(common.iter().filter(has));
    }
    objects
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
    for (object, members) in described() {
        let (_, place) =
            PLACES.iter().find(|(name, _)| *name == object).unwrap_or_else(|| panic!("no place of {object}"));
        for name in members {
            let value = if name == "metadata" { json!({}) } else { json!("x") };
            members_at(&mut input, place).entry(name).or_insert(value);
        }
    }
    input
}

fn members_at<'a>(input: &'a mut Value, place: &str) -> &'a mut Map<String, Value> {
    input.pointer_mut(place).and_then(Value::as_object_mut).unwrap_or_else(|| panic!("no object at {place:?}"))
}

fn snake_case(name: &str) -> String {
    let spelled = |c: char| if c.is_ascii_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.to_string() };
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
    for (object, place) in PLACES {
        let members = described().remove(object).unwrap_or_else(|| panic!("{object} has no members"));
        for name in members.into_iter().filter(|name| name.contains(char::is_uppercase)) {
            let mut input = whole.clone();
            let value = members_at(&mut input, place).remove(name).unwrap();
            members_at(&mut input, place).insert(snake_case(name), value.clone());
            let read = decoded(&input);
            assert_eq!(as_json(&read), as_json(&expected), "{object}.{name}");
            assert!(read.ignored.is_empty() && read.snake_case == 1, "{object}.{name}: {}", read.ignored);
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
            for body in [text((name, &value), (&snake, &other)), text((&snake, &other), (name, &value))] {
                let read = decode(body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {body}"));
                assert_eq!(as_json(&read), as_json(&expected), "{object}.{name}: {body}");
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
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (snake_case(&name), respelled(value))).collect()
            }
            Value::Array(items) => items.into_iter().map(respelled).collect(),
            other => other,
        }
    }
    let whole = whole_input();
    let read = decoded(&respelled(whole.clone()));
    assert_eq!(as_json(&read), as_json(&decoded(&whole)));
    assert!(read.ignored.is_empty() && read.snake_case >= 30, "{} {}", read.ignored, read.snake_case);
}
