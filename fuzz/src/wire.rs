//! A decoder of AG-UI's protobuf frames, driven by a table of the reference's messages, to compare frames with JSON.
//!
//! It shares no code with the server's encoder. [`decode`] is strict: a field that the table lacks, a wrong wire type
//! or a repeated singular field is an error. [`expected`] brings an event's JSON into the same form.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// The messages of `@ag-ui/proto` 1.0: the field's number, its name and its type. `?` marks fields with presence, `*`
/// lists; other fields are left out if they are empty.
static SCHEMA: LazyLock<HashMap<&str, Vec<Field>>> = LazyLock::new(|| {
    let mut messages: HashMap<&str, Vec<Field>> = HashMap::new();
    let mut fields = None;
    for line in include_str!("wire.txt").lines().filter(|line| !line.is_empty()) {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        match words[..] {
            [message] => fields = Some(messages.entry(message).or_default()),
            [number, name, kind] => {
                let field = Field {
                    number: number.parse().expect("a number"),
                    name,
                    kind: kind.trim_end_matches(['?', '*']),
                    presence: kind.chars().last().filter(|c| "?*".contains(*c)),
                };
                fields.as_mut().expect("a message").push(field);
            }
            _ => panic!("{line}"),
        }
    }
    messages
});

struct Field {
    number: u64,
    name: &'static str,
    kind: &'static str,
    presence: Option<char>,
}

/// Splits frames, each with its length before it.
pub fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (frame, behind) = rest.split_at(u32::from_be_bytes(*length) as usize);
        frames.push(frame);
        bytes = behind;
    }
    assert!(bytes.is_empty(), "{} bytes are no frame", bytes.len());
    frames
}

/// Decodes one frame's event. Absent fields are absent, enumerations are numbers, and the outer name is the event's.
pub fn decode(frame: &[u8]) -> Result<Value, String> {
    message("Event", frame)
}

fn message(kind: &str, bytes: &[u8]) -> Result<Value, String> {
    let fields = SCHEMA.get(kind).ok_or_else(|| format!("no message {kind} in the table"))?;
    let mut object = Object::new();
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        let key = reader.varint()?;
        let field = fields.iter().find(|field| field.number == key >> 3);
        let field = field.ok_or_else(|| format!("{kind} has no field {}", key >> 3))?;
        let at = |error: String| format!("{kind}.{}: {error}", field.name);
        let wire_type = match field.kind {
            "enum" | "int" | "bool" => 0,
            "double" => 1,
            _ => 2,
        };
        if key & 7 != wire_type {
            return Err(at(format!("wire type {}", key & 7)));
        }
        let value = match field.kind {
            "enum" | "int" => (reader.varint()? as i64).into(),
            "bool" => (reader.varint()? != 0).into(),
            "double" => json!(f64::from_le_bytes(reader.take(8)?.try_into().expect("8 bytes"))),
            kind => {
                let bytes = reader.delimited().map_err(at)?;
                match kind {
                    "text" => std::str::from_utf8(bytes).map_err(|error| at(error.to_string()))?.into(),
                    "Value" => any(bytes).map_err(at)?,
                    "Struct" => structure(bytes).map_err(at)?,
                    kind => message(kind, bytes).map_err(at)?,
                }
            }
        };
        if field.presence == Some('*') {
            let list = object.entry(field.name).or_insert_with(|| json!([]));
            list.as_array_mut().expect("a list").push(value);
        } else if object.insert(field.name.to_owned(), value).is_some() {
            return Err(at("given twice".to_owned()));
        }
    }
    Ok(object.into())
}

/// Decodes a `google.protobuf.Value`.
fn any(bytes: &[u8]) -> Result<Value, String> {
    let mut reader = Reader(bytes);
    let value = match reader.varint()? {
        0x08 => {
            reader.varint()?;
            Value::Null
        }
        0x11 => json!(f64::from_le_bytes(reader.take(8)?.try_into().expect("8 bytes"))),
        0x1a => std::str::from_utf8(reader.delimited()?).map_err(|error| error.to_string())?.into(),
        0x20 => (reader.varint()? != 0).into(),
        0x2a => structure(reader.delimited()?)?,
        0x32 => {
            let mut items = Reader(reader.delimited()?);
            let mut list = Vec::new();
            while !items.0.is_empty() {
                items.key(0x0a)?;
                list.push(any(items.delimited()?)?);
            }
            list.into()
        }
        key => return Err(format!("a value of the unknown kind {key:#x}")),
    };
    if reader.0.is_empty() { Ok(value) } else { Err("a value with two kinds".to_owned()) }
}

/// Decodes a `google.protobuf.Struct`.
fn structure(bytes: &[u8]) -> Result<Value, String> {
    let mut reader = Reader(bytes);
    let mut object = Object::new();
    while !reader.0.is_empty() {
        reader.key(0x0a)?;
        let mut entry = Reader(reader.delimited()?);
        // An empty name is left out.
        let name = if entry.0.first() == Some(&0x0a) {
            entry.key(0x0a)?;
            std::str::from_utf8(entry.delimited()?).map_err(|error| error.to_string())?
        } else {
            ""
        };
        entry.key(0x12)?;
        let value = any(entry.delimited()?)?;
        if object.insert(name.to_owned(), value).is_some() {
            return Err(format!("the name {name:?} twice"));
        }
    }
    Ok(object.into())
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = u64::from(self.take(1)?[0]);
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number of more than 10 bytes".to_owned())
    }

    fn delimited(&mut self) -> Result<&'a [u8], String> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|error| error.to_string())?)
    }

    fn key(&mut self, expected: u64) -> Result<(), String> {
        let key = self.varint()?;
        if key == expected { Ok(()) } else { Err(format!("the key {key:#x} in place of {expected:#x}")) }
    }
}

/// Returns what [`decode`] should return for the event that has this JSON.
pub fn expected(event: &Value) -> Value {
    let Value::Object(mut event) = event.clone() else { panic!("an event is an object") };
    let name = event.remove("type").expect("a type");
    let name = name.as_str().expect("a name");
    let mut base = Object::from_iter([("type".to_owned(), number_of(name).into())]);
    for member in ["timestamp", "rawEvent", "metadata"] {
        base.extend(event.remove(member).map(|value| (member.to_owned(), value)));
    }
    event.insert("baseEvent".to_owned(), base.into());
    match name {
        "RUN_FINISHED" | "SUBAGENT_FINISHED" => {
            if let Some(Value::Object(mut outcome)) = event.remove("outcome") {
                event.insert("outcome".to_owned(), outcome.remove("type").expect("a type"));
                event.append(&mut outcome);
            }
        }
        "STATE_DELTA" => operations(&mut event, "delta"),
        "ACTIVITY_DELTA" => operations(&mut event, "patch"),
        "TOOL_CALL_RESULT" => content(&mut event),
        "MESSAGES_SNAPSHOT" => messages(&mut event),
        "RUN_STARTED" => {
            if let Some(Value::Object(input)) = event.get_mut("input") {
                messages(input);
            }
        }
        _ => {}
    }
    let entry = camel_case(name);
    let kind = format!("{}{}Event", entry[..1].to_uppercase(), &entry[1..]);
    let event = present(&kind, event.into());
    json!({ entry: event })
}

/// The numbers of the reference's enumeration.
fn number_of(name: &str) -> usize {
    const NAMES: &str = "TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TOOL_CALL_START TOOL_CALL_ARGS \
        TOOL_CALL_END STATE_SNAPSHOT STATE_DELTA MESSAGES_SNAPSHOT RAW CUSTOM RUN_STARTED RUN_FINISHED RUN_ERROR \
        STEP_STARTED STEP_FINISHED SUBAGENT_STARTED SUBAGENT_FINISHED SUBAGENT_ERROR TEXT_MESSAGE_CHUNK \
        TOOL_CALL_CHUNK TOOL_CALL_RESULT ACTIVITY_SNAPSHOT ACTIVITY_DELTA REASONING_START REASONING_MESSAGE_START \
        REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_MESSAGE_CHUNK REASONING_END \
        REASONING_ENCRYPTED_VALUE";
    NAMES.split(' ').position(|known| known == name).expect("a known type")
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_').map(str::to_lowercase);
    let first = words.next().unwrap_or_default();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

fn operations(event: &mut Object, member: &str) {
    for operation in event.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten() {
        let names = ["add", "remove", "replace", "move", "copy", "test"];
        let name = operation["op"].as_str().expect("a name");
        operation["op"] = names.iter().position(|known| *known == name).expect("a known operation").into();
    }
}

fn messages(object: &mut Object) {
    for message in object.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        content(message.as_object_mut().expect("a message"));
    }
}

/// Texts, parts and the content of an activity are fields of their own.
fn content(message: &mut Object) {
    match message.remove("content") {
        Some(Value::Array(parts)) => {
            let parts = parts.into_iter().map(|part| {
                let part = by_type(part);
                part.into_iter().map(|(kind, mut part)| {
                    if let Some(source) = part.get_mut("source") {
                        *source = by_type(source.take()).into();
                    }
                    (kind, part)
                })
            });
            let parts = parts.map(|part| Value::Object(part.collect())).collect();
            message.insert("contentParts".to_owned(), parts);
        }
        Some(Value::Object(activity)) => drop(message.insert("activityContent".to_owned(), activity.into())),
        Some(text) => drop(message.insert("content".to_owned(), text)),
        None => {}
    }
}

/// Turns `{"type": "url", …}` into `{"url": {…}}`.
fn by_type(value: Value) -> Object {
    let Value::Object(mut object) = value else { panic!("an object has a type") };
    let kind = object.remove("type").expect("a type");
    Object::from_iter([(kind.as_str().expect("a name").to_owned(), object.into())])
}

/// Leaves out what protobuf leaves out: absent fields, empty lists, empty texts and zeros without presence. Panics if
/// the table has no field for a member.
fn present(kind: &str, value: Value) -> Value {
    let Value::Object(object) = value else { panic!("{kind} is an object") };
    let fields = SCHEMA.get(kind).unwrap_or_else(|| panic!("no message {kind} in the table"));
    let members = object.into_iter().filter_map(|(name, value)| {
        let field = match fields.iter().find(|field| field.name == name) {
            Some(field) => field,
            // RFC 6902 has further members of an operation ignored.
            None if kind == "JsonPatchOperation" => return None,
            None => panic!("{kind} has no field for {name}"),
        };
        let value = match (field.presence, value) {
            (Some('*'), Value::Array(items)) if items.is_empty() => return None,
            (Some('*'), Value::Array(items)) => items.into_iter().map(|item| one(field.kind, item)).collect(),
            // A required value is written, also if it is `null`.
            (Some('?'), Value::Null) if !matches!(name.as_str(), "snapshot" | "event" | "value") => return None,
            (None, value) if value == "" || value == 0 => return None,
            (_, value) => one(field.kind, value),
        };
        Some((name, value))
    });
    Value::Object(members.collect())
}

fn one(kind: &str, value: Value) -> Value {
    match kind {
        "text" | "bool" | "enum" => value,
        "int" => value.as_i64().unwrap_or(i64::MAX).into(),
        "Value" | "Struct" => doubles(value),
        kind => present(kind, value),
    }
}

/// All numbers of open values are doubles.
fn doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(doubles).collect(),
        Value::Object(object) => object.into_iter().map(|(name, value)| (name, doubles(value))).collect(),
        other => other,
    }
}
