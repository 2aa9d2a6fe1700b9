//! The calls of an answer, put together from pieces that every server cuts in its own way.
//!
//! By the book a piece names its call by `index`, and the first one has the id and the name. Servers also leave out
//! the index, or the id, or give each call the index 0, or repeat the name in every piece. So a piece that has a
//! name begins a new call only where it cannot go on with an old one, which is known by whether the arguments so far are
//! complete.

use serde_json::Value;

use crate::{
    llm::{
        BlockStart,
        transport::{Fault, Output},
    },
    protocol::ToolCallId,
};

/// The most that is held back of all calls: arguments until there is a name, and what belongs to the ends.
const MOST_HELD: usize = 4 << 20;
/// More calls than any answer has.
const MOST_CALLS: usize = 512;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// How many bytes are held back, or have been.
    held: usize,
}

#[derive(Debug, Default)]
struct Call {
    /// What the server counts it by.
    index: Option<u64>,
    id: String,
    name: String,
    /// The block, once it was opened.
    block: Option<usize>,
    /// Arguments that came before the name.
    held: String,
    arguments: Progress,
    artefact: Option<String>,
}

impl Calls {
    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes in a piece of `delta.tool_calls`.
    pub(super) fn piece(&mut self, piece: &Value, output: &mut Output) -> Result<(), Fault> {
        let function = piece.get("function").unwrap_or(&Value::Null);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, name) = (text(piece, "id"), text(function, "name"));
        let index = piece.get("index").and_then(Value::as_u64);
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let at = match self.position(index, &id, &name, !arguments.is_empty()) {
            Some(at) => at,
            // Some servers end a list of calls with one that is nothing.
            None if id.is_empty() && name.is_empty() && arguments.is_empty() => return Ok(()),
            None if self.calls.len() == MOST_CALLS => {
                return Err(Fault::Malformed(format!("the answer has more than {MOST_CALLS} calls")));
            }
            None => {
                self.calls.push(Call { index, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let taken = !id.is_empty() && self.calls.iter().enumerate().any(|(other, call)| other != at && call.id == id);
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if call.block.is_none() {
            self.held += id.len() + name.len() + arguments.len();
            if call.id.is_empty() && !taken {
                call.id = id;
            }
            if call.name.is_empty() {
                call.name = name;
            }
        }
        if let Some(extra) = piece.get("extra_content").filter(|extra| extra.is_object()) {
            let extra = extra.to_string();
            self.held += extra.len();
            call.artefact = Some(extra);
        }
        call.arguments.read(&arguments);
        call.held.push_str(&arguments);
        if self.held > MOST_HELD {
            return Err(Fault::Malformed("the calls hold back too much".to_owned()));
        }
        call.open(output)
    }

    /// Ends all calls.
    pub(super) fn end(&mut self, output: &mut Output) {
        for call in &mut self.calls {
            let Some(block) = call.block.take() else { continue };
            if call.arguments == Progress::default() {
                // A call without arguments is written in many ways; what follows it up reads JSON.
                output.delta(block, "{}");
            }
            output.end(block, call.artefact.take());
        }
    }

    /// Whether there is a call of which nobody knows what it calls.
    pub(super) fn nameless(&self) -> bool {
        self.calls.iter().any(|call| call.name.is_empty())
    }

    /// Which call the piece belongs to; `None` is a new one.
    fn position(&self, index: Option<u64>, id: &str, name: &str, has_arguments: bool) -> Option<usize> {
        let find = |wanted: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(wanted);
        let same_id = |call: &Call| !id.is_empty() && call.id == id;
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
            // Between two ids, a call that has no arguments yet gets none any more.
            false => another_id && call.arguments == Progress::default(),
        };
        let new = begun && !same_id(call) && (another_name || over || (index.is_none() && another_id));
        (!new).then_some(candidate)
    }
}

impl Call {
    /// Opens the block as soon as it is known what is called, and passes on what is held.
    fn open(&mut self, output: &mut Output) -> Result<(), Fault> {
        if self.name.is_empty() {
            return Ok(());
        }
        let block = match self.block {
            Some(block) => block,
            None => {
                if self.id.is_empty() {
                    self.id = ToolCallId::random().as_str().to_owned();
                }
                let block = BlockStart::Call { id: self.id.as_str().into(), name: self.name.clone() };
                *self.block.insert(output.start(block)?)
            }
        };
        output.delta(block, std::mem::take(&mut self.held));
        Ok(())
    }
}

/// How far JSON has been read, without keeping it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Progress {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Progress {
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
