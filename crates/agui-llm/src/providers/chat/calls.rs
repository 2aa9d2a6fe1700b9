//! Assembles the tool calls of an answer from their pieces.
//!
//! In OpenAI's own stream, a piece names its call by `index`, and the first piece has the id and the name. Other
//! servers leave these out, give each call the index 0, or repeat the name. So a piece with a name begins a new call
//! only if it cannot continue an open one, which depends on whether the arguments so far are complete JSON.

use serde_json::{Value, json};

use crate::{
    Artefact, BlockStart,
    transport::{AnswerEvents, DecodeFault, json::text},
};
use agui_protocol::ToolCallId;

/// The largest number of calls of an answer. It bounds the memory.
pub(super) const MAX_CALLS: usize = 512;

const NO_ARGUMENTS: &str = "{}";

#[derive(Debug, Default)]
pub(super) struct ChatCalls {
    calls: Vec<ChatCall>,
}

#[derive(Debug, Default)]
struct ChatCall {
    index: Option<u64>,
    id: String,
    name: String,
    block: Option<usize>,
    /// Arguments that came before the name, or no arguments, which some servers send before the arguments.
    held: String,
    /// True if a part of the arguments was passed on.
    has_arguments: bool,
    /// The text that a tool of the type `custom` takes in place of arguments.
    input: Option<String>,
    arguments: JsonProgress,
    artefact: Option<String>,
}

impl ChatCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn add_piece(
        &mut self,
        piece: &Value,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        let custom = piece.get("custom");
        let function = piece.get("function").or(custom).unwrap_or(&Value::Null);
        let (id, name) = (text(piece, "id").to_owned(), text(function, "name").to_owned());
        let index = piece.get("index").and_then(Value::as_u64);
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let at = match self.position(index, &id, &name, !arguments.is_empty()) {
            Some(at) => at,
            // Some servers end a list of calls with an empty one.
            None if id.is_empty() && name.is_empty() && arguments.is_empty() => return Ok(()),
            None if self.calls.len() == MAX_CALLS => {
                return Err(DecodeFault::Malformed(format!(
                    "the answer has more than {MAX_CALLS} calls"
                )));
            }
            None => {
                self.calls.push(ChatCall { index, ..ChatCall::default() });
                self.calls.len() - 1
            }
        };
        let taken = !id.is_empty()
            && self.calls.iter().enumerate().any(|(other, call)| other != at && call.id == id);
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if call.block.is_none() {
            output.hold(id.len() + name.len() + arguments.len())?;
            if call.id.is_empty() && !taken {
                call.id = id;
            }
            if call.name.is_empty() {
                call.name = name;
            }
        }
        if let Some(input) = custom.and_then(|custom| custom.get("input")?.as_str()) {
            output.hold(input.len())?;
            call.input.get_or_insert_default().push_str(input);
        }
        if let Some(extra) = piece.get("extra_content").filter(|extra| extra.is_object()) {
            let extra = extra.to_string();
            output.hold(extra.len())?;
            call.artefact = Some(extra);
        }
        call.arguments.read(&arguments);
        if call.held.trim() == NO_ARGUMENTS && arguments.trim_start().starts_with('{') {
            call.held.clear();
        }
        call.held.push_str(&arguments);
        call.open(output)
    }

    pub(super) fn end(&mut self, output: &mut AnswerEvents) {
        for call in &mut self.calls {
            let Some(block) = call.block.take() else { continue };
            if let Some(input) = call.input.take() {
                output.delta(block, json!({"input": input}).to_string());
            } else if call.arguments == JsonProgress::default() {
                // Servers write missing arguments in many ways. The agent expects JSON.
                output.delta(block, NO_ARGUMENTS);
            }
            output.delta(block, std::mem::take(&mut call.held));
            output.end(
                block,
                call.artefact.take().map(|extra| Artefact::new("openai.extra_content", extra)),
            );
        }
    }

    pub(super) fn has_nameless(&self) -> bool {
        self.calls.iter().any(|call| call.name.is_empty())
    }

    fn position(
        &self,
        index: Option<u64>,
        id: &str,
        name: &str,
        has_arguments: bool,
    ) -> Option<usize> {
        let find = |wanted: &dyn Fn(&ChatCall) -> bool| self.calls.iter().rposition(wanted);
        let same_id = |call: &ChatCall| !id.is_empty() && call.id == id;
        let last = self.calls.len().checked_sub(1)?;
        let candidate = match index {
            Some(_) => find(&|call| call.index == index)?,
            None => match find(&same_id) {
                Some(at) => return Some(at),
                None => last,
            },
        };
        let call = &self.calls[candidate];
        let another_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
        let another_name = !name.is_empty() && !call.name.is_empty() && call.name != name;
        let begun = !name.is_empty() && !call.name.is_empty();
        let over = match call.arguments.is_complete() {
            true => has_arguments || another_id,
            // A piece with the id of another call does not continue a call without arguments.
            false => another_id && call.arguments == JsonProgress::default(),
        };
        let new =
            begun && !same_id(call) && (another_name || over || (index.is_none() && another_id));
        (!new).then_some(candidate)
    }
}

impl ChatCall {
    fn open(&mut self, output: &mut AnswerEvents) -> Result<(), DecodeFault> {
        if self.name.is_empty() {
            return Ok(());
        }
        let block = match self.block {
            Some(block) => block,
            None => {
                if self.id.is_empty() {
                    self.id = ToolCallId::random().as_str().to_owned();
                }
                let block =
                    BlockStart::Call { id: self.id.as_str().into(), name: self.name.clone() };
                *self.block.insert(output.start(block)?)
            }
        };
        if self.has_arguments || self.held.trim() != NO_ARGUMENTS {
            self.has_arguments |= !self.held.is_empty();
            output.delta(block, std::mem::take(&mut self.held));
        }
        Ok(())
    }
}

/// Tells whether a JSON text is complete without keeping it.
#[derive(Debug, Default, PartialEq, Eq)]
struct JsonProgress {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl JsonProgress {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            self.begun |= !byte.is_ascii_whitespace();
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.begun && self.depth == 0 && !self.in_string
    }
}
