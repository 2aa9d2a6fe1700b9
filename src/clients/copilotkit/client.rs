//! What requests of CopilotKit's pages have of their own.

use crate::http::client::{Client, ClientSigns, Wishes};
use agui_protocol::{
    RunAgentInput,
    encode::{ClientTraits, StreamVersion},
};

/// The only tool of a request for suggestions, which is forced.
const SUGGESTING_TOOL: &str = "copilotkitSuggest";

/// Pages with CopilotKit, at routes of their own.
pub(crate) struct CopilotKit;

impl Client for CopilotKit {
    fn traits(&self, signs: &ClientSigns<'_>) -> ClientTraits {
        let declared = ClientTraits::for_declared(signs.protocol_version);
        match signs.protocol_version {
            None => ClientTraits { version: StreamVersion::Legacy, ..declared },
            Some(_) => declared,
        }
    }

    /// A runtime with a single endpoint has no route of its own for suggestions, so each request for
    /// them would become a thread.
    fn read(&self, input: &RunAgentInput, wishes: &mut Wishes) {
        let forced =
            input.forwarded_prop("toolChoice").and_then(|choice| choice.pointer("/function/name"));
        wishes.is_beside_thread |= forced.is_some_and(|name| name == SUGGESTING_TOOL)
            && matches!(&*input.tools, [tool] if tool.name == SUGGESTING_TOOL);
    }
}
