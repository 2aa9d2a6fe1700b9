//! Calls that a model wrote as text at the end of its answer, because the server does not read them. They are held back
//! while they stream. If all of them are calls of tools on offer, they run; otherwise they are text.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::tags::longest_start_of_tag;
use crate::{
    llm::known_models::{WrittenForm, WrittenSyntax},
    protocol::FunctionCall,
    tools::{CallArguments, ToolSpec},
};

/// What was held back at the end of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WrittenEnd {
    Calls(Vec<FunctionCall>),
    Text(String),
}

#[derive(Debug, Default)]
pub(super) struct WrittenCallReader {
    /// Empty if no calls are read.
    forms: Arc<[WrittenForm]>,
    tools: Arc<[ToolSpec]>,
    held: String,
    /// The number of the form whose opening is at the beginning of what is held.
    open: Option<usize>,
    has_text: bool,
}

impl WrittenCallReader {
    pub(super) fn new(forms: Arc<[WrittenForm]>, tools: Arc<[ToolSpec]>) -> Self {
        let forms = if tools.is_empty() { Arc::default() } else { forms };
        Self { forms, tools, ..Self::default() }
    }

    /// Returns `true` if no text is a call.
    pub(super) fn is_off(&self) -> bool {
        self.forms.is_empty()
    }

    /// Returns the text that is no part of a call.
    pub(super) fn read(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let mut shown = String::new();
        loop {
            if let Some(open) = self.open {
                if self.may_be_calls(open) {
                    break;
                }
                self.open = None;
                let white_space = self.held.len() - self.held.trim_start().len();
                shown.extend(self.held.drain(..white_space + self.forms[open].opening.len()));
                self.has_text = true;
            }
            let found = self.forms.iter().enumerate().filter_map(|(form, it)| Some((self.opening(it)?, form))).min();
            let end = match found {
                Some((at, form)) => {
                    self.open = Some(form);
                    at
                }
                None => self.held.len() - self.start_of_opening(),
            };
            // White space alone is a part of what comes after it.
            if self.has_text || !self.held[..end].trim().is_empty() {
                self.has_text = true;
                shown.extend(self.held.drain(..end));
            }
            if self.open.is_none() {
                break;
            }
        }
        shown
    }

    pub(super) fn end(&mut self) -> WrittenEnd {
        let held = std::mem::take(&mut self.held);
        let calls = self.open.take().and_then(|form| self.calls(&self.forms[form], held.trim()));
        calls.filter(|calls| !calls.is_empty()).map_or(WrittenEnd::Text(held), WrittenEnd::Calls)
    }

    /// Returns the place of a form's opening in the text that is held.
    fn opening(&self, form: &WrittenForm) -> Option<usize> {
        match form.syntax {
            // A list in brackets is common in texts, so it has to begin the answer and the name of a tool.
            WrittenSyntax::Python if self.has_text => None,
            WrittenSyntax::Python => {
                let text = self.held.trim_start();
                let is_call = self.python_starts(form).any(|start| text.starts_with(&start));
                is_call.then(|| self.held.len() - text.len())
            }
            WrittenSyntax::Json | WrittenSyntax::Invoke => self.held.find(&form.opening),
        }
    }

    /// Returns the bytes at the end of what is held that an opening may begin with.
    fn start_of_opening(&self) -> usize {
        let text = self.held.trim_start();
        let mut python = self.forms.iter().filter(|it| it.syntax == WrittenSyntax::Python);
        let may_be_python = |form: &WrittenForm| self.python_starts(form).any(|start| start.starts_with(text));
        if !self.has_text && python.any(may_be_python) {
            return self.held.len();
        }
        let others = self.forms.iter().filter(|it| it.syntax != WrittenSyntax::Python);
        longest_start_of_tag(&self.held, others.map(|it| it.opening.as_str()))
    }

    fn python_starts(&self, form: &WrittenForm) -> impl Iterator<Item = String> {
        self.tools.iter().map(|tool| format!("{}{}(", form.opening, tool.name))
    }

    /// Returns `false` if what follows the opening is text.
    fn may_be_calls(&self, form: usize) -> bool {
        let form = &self.forms[form];
        let Some(rest) = self.held.trim_start().strip_prefix(&form.opening) else { return false };
        match (form.syntax, rest.trim_start().chars().next()) {
            (_, None) | (WrittenSyntax::Python | WrittenSyntax::Invoke, _) => true,
            (WrittenSyntax::Json, Some(first)) => {
                let rest = rest.trim_start();
                let may_be_name = |tool: &ToolSpec| rest.starts_with(&tool.name) || tool.name.starts_with(rest);
                matches!(first, '{' | '[') || self.tools.iter().any(may_be_name)
            }
        }
    }

    /// Returns `None` unless the text has nothing but calls of tools on offer.
    fn calls(&self, form: &WrittenForm, text: &str) -> Option<Vec<FunctionCall>> {
        let calls = match form.syntax {
            WrittenSyntax::Json => json_calls(form, text),
            WrittenSyntax::Invoke => invoke_calls(text),
            WrittenSyntax::Python => python_calls(text),
        };
        calls.filter(|calls| calls.iter().all(|call| self.tools.iter().any(|tool| tool.name == call.name)))
    }
}

/// Reads objects with `name` and `arguments`, lists of them, and names before an object of arguments.
fn json_calls(form: &WrittenForm, text: &str) -> Option<Vec<FunctionCall>> {
    let mut calls = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let mut between = [form.opening.as_str(), form.closing.as_str(), ";"].into_iter().filter(|it| !it.is_empty());
        if let Some(after) = between.find_map(|it| rest.strip_prefix(it)) {
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

/// Reads `<｜DSML｜invoke name="f">` with a `<｜DSML｜parameter name="a" string="true">` for each argument.
fn invoke_calls(text: &str) -> Option<Vec<FunctionCall>> {
    const INVOKE: &str = "invoke name=\"";
    const PARAMETER: &str = "parameter name=\"";
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(INVOKE) {
        let mark = &rest[rest[..at].rfind('<')? + 1..at];
        let (name, after) = rest[at + INVOKE.len()..].split_once('"')?;
        let (body, after) = after.split_once(&format!("</{mark}invoke>"))?;
        let mut arguments = Map::new();
        let mut parameters = body;
        while let Some((_, parameter)) = parameters.split_once(PARAMETER) {
            let (name, parameter) = parameter.split_once('"')?;
            let (attributes, parameter) = parameter.split_once('>')?;
            let (value, after) = parameter.split_once(&format!("</{mark}parameter>"))?;
            let json = serde_json::from_str(value).ok().filter(|_| !attributes.contains("string=\"true\""));
            arguments.insert(name.to_owned(), json.unwrap_or_else(|| value.into()));
            parameters = after;
        }
        calls.push(FunctionCall::new(name, Value::Object(arguments).to_string()));
        rest = after;
    }
    // The tag around the calls, if it is there.
    let rest = rest.trim();
    (rest.is_empty() || rest.starts_with("</") && rest.find('>') == Some(rest.len() - 1)).then_some(calls)
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

/// Splits a text at the commas outside of quotes and brackets. `None` if these are not closed.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut begin, mut depth, mut quote, mut is_escaped) = (Vec::new(), 0, 0_usize, None, false);
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

#[cfg(test)]
mod tests;
