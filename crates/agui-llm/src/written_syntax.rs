//! The syntax of calls that models write as text, and the search for such calls in other texts.
//!
//! A model may quote a call from a text that it did not write, and not want to make it. So a
//! written call is compared with those texts after parsing: white space, the order of members, the
//! form of numbers, escape sequences and the written syntax do not count.

use std::borrow::Cow;

use serde_json::{Deserializer, Map, Value};

use super::known_models::{WrittenForm, WrittenSyntax};
use agui_protocol::FunctionCall;
use agui_tools::host::CallArguments;

const INVOKE: &str = "invoke name=\"";
const PARAMETER: &str = "parameter name=\"";

/// Reads a text that consists of calls of a form. Returns `None` if it has other content.
pub(super) fn read_calls(form: &WrittenForm, text: &str) -> Option<Vec<FunctionCall>> {
    match form.syntax {
        WrittenSyntax::Json => json_calls(form, text),
        WrittenSyntax::Invoke => invoke_calls(text),
        WrittenSyntax::Python => python_calls(text),
    }
}

/// Reads objects with `name` and `arguments`, lists of them, and names before an object of arguments.
fn json_calls(form: &WrittenForm, text: &str) -> Option<Vec<FunctionCall>> {
    let mut calls = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let mut between = [form.opening.as_str(), form.closing.as_str(), ";"]
            .into_iter()
            .filter(|mark| !mark.is_empty());
        if let Some(after) = between.find_map(|mark| rest.strip_prefix(mark)) {
            rest = after.trim_start();
            continue;
        }
        let name = rest.split(['{', '[']).next().unwrap_or_default();
        rest = &rest[name.len()..];
        rest = rest.strip_prefix("[ARGS]").unwrap_or(rest).trim_start();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = values.next()?.ok()?;
        rest = rest[values.byte_offset()..].trim_start();
        match value {
            Value::Object(_) if !name.is_empty() => {
                calls.push(FunctionCall::new(name.trim(), value.to_string()));
            }
            Value::Array(list) if name.is_empty() => {
                calls.extend(list.iter().map(call_of).collect::<Option<Vec<_>>>()?);
            }
            value if name.is_empty() => calls.push(call_of(&value)?),
            _ => return None,
        }
    }
    Some(calls)
}

fn call_of(value: &Value) -> Option<FunctionCall> {
    let function = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let name = function.get("name")?.as_str()?;
    let arguments = match function.get("arguments").or(function.get("parameters")) {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    Some(FunctionCall::new(name, arguments))
}

fn invoke_calls(text: &str) -> Option<Vec<FunctionCall>> {
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(INVOKE) {
        let (call, after) = invoke_call(rest, at)?;
        calls.push(call);
        rest = after;
    }
    // The tag around the calls is optional.
    let rest = rest.trim();
    (rest.is_empty() || rest.starts_with("</") && rest.find('>') == Some(rest.len() - 1))
        .then_some(calls)
}

/// Reads the call whose [`INVOKE`] is at a place of a text. Returns the call and the text after it.
fn invoke_call(text: &str, at: usize) -> Option<(FunctionCall, &str)> {
    let mark = &text[text[..at].rfind('<')? + 1..at];
    let (name, after) = text[at + INVOKE.len()..].split_once('"')?;
    let (mut parameters, after) = after.split_once(&format!("</{mark}invoke>"))?;
    let mut arguments = Map::new();
    while let Some((_, parameter)) = parameters.split_once(PARAMETER) {
        let (name, parameter) = parameter.split_once('"')?;
        let (attributes, parameter) = parameter.split_once('>')?;
        let (value, after) = parameter.split_once(&format!("</{mark}parameter>"))?;
        let json =
            serde_json::from_str(value).ok().filter(|_| !attributes.contains("string=\"true\""));
        arguments.insert(name.to_owned(), json.unwrap_or_else(|| value.into()));
        parameters = after;
    }
    Some((FunctionCall::new(name, Value::Object(arguments).to_string()), after))
}

/// Reads `[f(a=1, b="x"), g()]`.
fn python_calls(text: &str) -> Option<Vec<FunctionCall>> {
    let calls = split(text.strip_prefix('[')?.strip_suffix(']')?)?;
    let call = |call: &str| {
        let (name, arguments) = call.trim().strip_suffix(')')?.split_once('(')?;
        let members = split(arguments)?.into_iter().map(|argument| {
            let (name, value) = argument.split_once('=')?;
            Some(format!("{}: {value}", Value::from(name.trim())))
        });
        let object = format!("{{{}}}", members.collect::<Option<Vec<_>>>()?.join(", "));
        let arguments = Value::Object(CallArguments::read(&object).ok()?.object).to_string();
        Some(FunctionCall::new(name, arguments))
    };
    calls.into_iter().map(call).collect()
}

/// Splits a text at the commas outside of quotes and brackets. Returns `None` if one of these is
/// open.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut begin, mut depth, mut quote, mut is_escaped) =
        (Vec::new(), 0, 0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            _ if is_escaped => is_escaped = false,
            ('\\', Some(_)) => is_escaped = true,
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(' | '[' | '{', None) => depth += 1,
            (')' | ']' | '}', None) => depth = depth.checked_sub(1)?,
            (',', None) if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if !text[begin..].trim().is_empty() {
        parts.push(&text[begin..]);
    }
    (depth == 0 && quote.is_none()).then_some(parts)
}

/// The depth of encodings within each other: JSON in a string of JSON, or in HTML.
const MAX_ENCODINGS: usize = 3;
/// The work of a search, as a multiple of the text. Only a maliciously made text needs more.
const MAX_WORK: usize = 32;
const MIN_WORK: usize = 128 << 10;

/// Calls that are looked for in texts.
pub(super) struct SoughtCalls(Vec<(String, Value)>);

impl SoughtCalls {
    /// Takes the calls by all their names, with their arguments.
    pub(super) fn new<'c>(calls: impl IntoIterator<Item = (&'c str, &'c str)>) -> Self {
        Self(
            calls
                .into_iter()
                .map(|(name, arguments)| (name.to_owned(), parsed_arguments(arguments)))
                .collect(),
        )
    }

    /// Returns whether a text contains one of the calls, in any syntax. True also if the search
    /// would exceed [`MAX_WORK`]: in doubt, a call does not run.
    pub(super) fn stand_in(&self, text: &str) -> bool {
        let mut work = MIN_WORK + MAX_WORK * text.len();
        self.stand_in_encoded(text, MAX_ENCODINGS, &mut work).unwrap_or(true)
    }

    /// All decodings share the work.
    fn stand_in_encoded(&self, text: &str, encodings: usize, work: &mut usize) -> Option<bool> {
        *work = work.checked_sub(text.len())?;
        if self.object(text, work)? || self.python(text, work)? || self.invoke(text, work)? {
            return Some(true);
        }
        for decode in [without_escapes, without_entities].into_iter().filter(|_| encodings > 0) {
            if let Cow::Owned(decoded) = decode(text)
                && self.stand_in_encoded(&decoded, encodings - 1, work)?
            {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Looks for objects with a name and arguments, and for names before an object. Returns `None`
    /// if the work is spent.
    fn object(&self, text: &str, work: &mut usize) -> Option<bool> {
        let mut at = 0;
        while let Some(place) = text[at..].find('{').map(|next| at + next) {
            at = place + 1;
            if !text[at..].trim_start().starts_with(['"', '}']) {
                continue;
            }
            let mut values = Deserializer::from_str(&text[place..]).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => {
                    let before = text[..place].trim_end();
                    let before = before.strip_suffix("[ARGS]").unwrap_or(before).trim_end();
                    if self.0.iter().any(|(name, arguments)| {
                        before.ends_with(name) && is_same(&value, arguments)
                    }) || self.within(&value, work)?
                    {
                        return Some(true);
                    }
                    at = place + values.byte_offset();
                }
                Some(Err(error)) => *work = work.checked_sub(place_of(&error, &text[place..]))?,
                None => break,
            }
        }
        Some(false)
    }

    /// Looks for calls in a value and in its texts.
    fn within(&self, value: &Value, work: &mut usize) -> Option<bool> {
        let mut is_found = false;
        match value {
            Value::String(text) => {
                *work = work.checked_sub(text.len())?;
                is_found = self.object(text, work)?;
            }
            Value::Array(items) => {
                for item in items {
                    is_found = is_found || self.within(item, work)?;
                }
            }
            Value::Object(members) => {
                is_found = self.is_call(members);
                for member in members.values() {
                    is_found = is_found || self.within(member, work)?;
                }
            }
            _ => {}
        }
        Some(is_found)
    }

    /// Returns whether an object is a call. Syntaxes differ in the name of the member with the
    /// arguments.
    fn is_call(&self, members: &Map<String, Value>) -> bool {
        let Some(Value::String(name)) = members.get("name") else { return false };
        self.0.iter().filter(|(sought, _)| sought == name).any(|(_, arguments)| {
            let is_written = match members.get("arguments").or(members.get("parameters")) {
                None | Some(Value::Null) => is_same(&Value::Object(Map::new()), arguments),
                // Compared below.
                Some(Value::Object(_)) => false,
                Some(Value::String(text)) => is_same(&parsed_arguments(text), arguments),
                Some(other) => is_same(&parsed_arguments(&other.to_string()), arguments),
            };
            is_written || members.values().any(|member| is_same(member, arguments))
        })
    }

    /// Looks for lists of calls in brackets.
    fn python(&self, text: &str, work: &mut usize) -> Option<bool> {
        let Some(last) =
            self.0.iter().filter_map(|(name, _)| text.rfind(&format!("{name}("))).max()
        else {
            return Some(false);
        };
        for (place, _) in text[..last].match_indices('[') {
            let first = text[place + 1..].trim_start();
            // A call that is sought may come after others.
            let after_name = first
                .trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
            if after_name.len() == first.len() || !after_name.starts_with('(') {
                continue;
            }
            let length = bracketed(&text[place..]);
            *work = work.checked_sub(length.unwrap_or(text.len() - place))?;
            let calls = length
                .and_then(|length| python_calls(&text[place..place + length]))
                .unwrap_or_default();
            if calls.iter().any(|call| self.is_sought(call)) {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Looks for tags with names and arguments.
    fn invoke(&self, text: &str, work: &mut usize) -> Option<bool> {
        let mut begin = 0;
        for (at, _) in text.match_indices(INVOKE) {
            let rest = &text[begin..];
            let call = invoke_call(rest, at - begin);
            *work = work.checked_sub(
                call.as_ref().map_or(rest.len(), |(_, after)| rest.len() - after.len()),
            )?;
            if call.is_some_and(|(call, _)| self.is_sought(&call)) {
                return Some(true);
            }
            begin = at;
        }
        Some(false)
    }

    fn is_sought(&self, call: &FunctionCall) -> bool {
        let read = parsed_arguments(&call.arguments);
        self.0.iter().any(|(name, arguments)| *name == call.name && is_same(&read, arguments))
    }
}

/// Returns arguments in the compared form: an object, or the text if it is not an object.
fn parsed_arguments(text: &str) -> Value {
    CallArguments::read(text).map_or_else(|_| text.into(), |read| plain(Value::Object(read.object)))
}

/// Removes members that are `null`, and decodes objects and lists that are texts: tools accept
/// both.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(members.map(|(name, member)| (name, plain(member))).collect())
        }
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::String(text) => container(&text).map_or(Value::String(text), plain),
        other => other,
    }
}

fn container(text: &str) -> Option<Value> {
    let is_container = text.trim_start().starts_with(['{', '[']);
    is_container.then(|| serde_json::from_str(text).ok()).flatten()
}

/// Compares a value with a [`plain`] one. Stops at the first difference.
fn is_same(value: &Value, sought: &Value) -> bool {
    match (value, sought) {
        (Value::Object(members), Value::Object(sought)) => {
            let mut members = members.iter().filter(|(_, member)| !member.is_null());
            members.clone().take(sought.len() + 1).count() == sought.len()
                && members.all(|(name, member)| {
                    sought.get(name).is_some_and(|other| is_same(member, other))
                })
        }
        (Value::Array(items), Value::Array(sought)) => {
            items.len() == sought.len()
                && items.iter().zip(sought).all(|(item, other)| is_same(item, other))
        }
        (Value::Number(number), Value::Number(sought)) => {
            number == sought || number.as_f64() == sought.as_f64()
        }
        (Value::String(text), Value::Object(_) | Value::Array(_)) => {
            container(text).is_some_and(|value| is_same(&value, sought))
        }
        _ => value == sought,
    }
}

/// Returns the number of bytes that the parser has read up to an error.
fn place_of(error: &serde_json::Error, text: &str) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    (lines.map(str::len).sum::<usize>() + error.column()).max(1)
}

/// Returns the length of the list at the beginning of a text, with its brackets.
fn bracketed(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            _ if is_escaped => is_escaped = false,
            ('\\', Some(_)) => is_escaped = true,
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(' | '[' | '{', None) => depth += 1,
            (')' | ']' | '}', None) => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Decodes the escape sequences of JSON, wherever they are.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let (mut decoded, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        let escape = &rest[at..];
        let (c, length) = match escape.as_bytes().get(1) {
            Some(b'n') => (Some('\n'), 2),
            Some(b'r') => (Some('\r'), 2),
            Some(b't') => (Some('\t'), 2),
            Some(b'b') => (Some('\u{8}'), 2),
            Some(b'f') => (Some('\u{c}'), 2),
            Some(b'u') => match code_unit(escape) {
                // A pair becomes one character.
                Some(high @ 0xD800..=0xDBFF) => {
                    let low = escape.get(6..).and_then(code_unit).unwrap_or_default();
                    let pair = char::decode_utf16([high, low]).next().and_then(Result::ok);
                    (
                        pair.or(Some(char::REPLACEMENT_CHARACTER)),
                        if pair.is_some() { 12 } else { 6 },
                    )
                }
                Some(unit) => (char::from_u32(unit.into()), 6),
                None => (None, 1),
            },
            Some(b'"' | b'\'' | b'\\' | b'/') => (None, 1),
            _ => (Some('\\'), 1),
        };
        decoded.extend(c);
        rest = &escape[length..];
        // A decoded character does not begin another escape.
        if c.is_none()
            && length == 1
            && let Some(escaped) = rest.chars().next()
        {
            decoded.push(escaped);
            rest = &rest[escaped.len_utf8()..];
        }
    }
    decoded.push_str(rest);
    decoded.into()
}

fn code_unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

/// Decodes the entities of HTML that quotes, brackets and code points have.
fn without_entities(text: &str) -> Cow<'_, str> {
    const NAMED: &[(&str, char)] = &[
        ("quot", '"'),
        ("apos", '\''),
        ("lt", '<'),
        ("gt", '>'),
        ("amp", '&'),
        ("lbrace", '{'),
        ("rbrace", '}'),
    ];
    const MAX_NAME: usize = 10;
    let mut decoded = String::new();
    let mut rest = text;
    let mut is_changed = false;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        decoded.push_str(before);
        let end = entity.bytes().take(MAX_NAME).position(|byte| byte == b';');
        let c = end.and_then(|end| {
            let name = &entity[1..end];
            match name.strip_prefix('#') {
                Some(hex) if hex.starts_with(['x', 'X']) => {
                    u32::from_str_radix(&hex[1..], 16).ok().and_then(char::from_u32)
                }
                Some(number) => number.parse().ok().and_then(char::from_u32),
                None => NAMED.iter().find(|(of, _)| *of == name).map(|(_, c)| *c),
            }
        });
        let length = if c.is_some() { end.map_or(1, |end| end + 1) } else { 1 };
        is_changed |= c.is_some();
        decoded.push(c.unwrap_or('&'));
        rest = &entity[length..];
    }
    if !is_changed {
        return text.into();
    }
    decoded.push_str(rest);
    decoded.into()
}

#[cfg(test)]
mod tests;
