//! Requests of an MCP app, which a page shows, to the app's MCP server. A page sends a request as a
//! run, whose result is the response. No model is called, and nothing is stored.

use futures::{FutureExt as _, Stream};
use serde_json::{Value, json};

use super::{AgentError, RunContext, emit};
use agui_protocol::{Event, JsonObject, RunAgentInput};

/// The member of `forwardedProps` with the request.
const PROXIED_REQUEST: &str = "__proxiedMCPRequest";

/// A request of an MCP app.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AppRequest {
    /// The name of the MCP server.
    pub server: String,
    /// The method of MCP.
    pub method: String,
    /// The parameters of the method.
    pub params: JsonObject,
}

impl AppRequest {
    /// Returns whether the run is a request of an app, also if the request is malformed.
    #[doc(hidden)]
    pub fn is_in(input: &RunAgentInput) -> bool {
        input.forwarded_prop(PROXIED_REQUEST).is_some_and(|request| !request.is_null())
    }

    /// Returns the request of a run, or `None` if the run has no request or a malformed one.
    pub fn from_input(input: &RunAgentInput) -> Option<Self> {
        let request = input.forwarded_prop(PROXIED_REQUEST)?;
        let text = |name: &str| request.get(name)?.as_str().map(str::to_owned);
        let params = match request.get("params") {
            None | Some(Value::Null) => JsonObject::new(),
            Some(params) => params.as_object()?.clone(),
        };
        // This server gives both members the same value.
        Some(Self {
            server: text("serverId").or_else(|| text("serverHash"))?,
            method: text("method")?,
            params,
        })
    }
}

/// Returns the events of a run that responds to a request. The reason of a failure is logged and
/// not sent, because an app can be hostile.
pub fn respond(
    cx: RunContext,
    responding: impl Future<Output = Result<Value, String>> + Send + 'static,
) -> impl Stream<Item = Result<Event, AgentError>> + Send {
    let finish = move |response: Result<Value, String>| {
        let result = response.unwrap_or_else(|reason| {
            tracing::warn!(agent = cx.agent(), reason, "refused the request of an MCP app");
            json!({ "error": "MCP request failed" })
        });
        Ok(emit::finish(&cx, result))
    };
    responding.map(finish).into_stream()
}
