//! The clients of the server as its routes know them: what is particular to one stands behind
//! [`Client`], and every way in and out asks [`Clients`] which one it has.

use std::collections::HashSet;

use axum::http::HeaderMap;
use serde::Deserialize as _;
use serde_json::Value;

use super::{accept::media_type::accepted, error::ApiError};
use agui_protocol::{
    RunAgentInput, RunId,
    encode::{ClientTraits, Encoder},
};
use agui_run::OnDisconnect;

/// A family of clients.
pub(crate) trait Client: Send + Sync {
    /// Returns whether a request that any client can send comes from this one.
    fn recognises(&self, _: &ClientSigns<'_>) -> bool {
        false
    }

    /// Returns what the client cannot read.
    fn traits(&self, signs: &ClientSigns<'_>) -> ClientTraits {
        ClientTraits::for_declared(signs.protocol_version)
    }

    /// Returns the encoder of one run.
    fn encoder(&self, signs: &ClientSigns<'_>, traits: ClientTraits) -> Encoder {
        Encoder::negotiate(accepted(signs.headers)).for_client(traits)
    }

    /// Reads what the client asks for in a form of its own.
    fn read(&self, _: &RunAgentInput, _: &mut Wishes) {}
}

/// What a request shows of its client.
#[derive(Clone, Copy)]
pub(crate) struct ClientSigns<'a> {
    /// The client that a route is for.
    pub(crate) of_route: Option<&'a dyn Client>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) protocol_version: Option<&'a str>,
    pub(crate) run_id: Option<&'a RunId>,
    /// True for a body with `forwardedProps`, even without members.
    pub(crate) has_forwarded_props: bool,
    /// The agent that answers.
    pub(crate) agent: Option<&'a str>,
    /// The client's wish for events of subagents.
    pub(crate) subagent_events: Option<bool>,
}

/// What a client asks for beside its messages, in `forwardedProps`.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// What becomes of the run when the client leaves.
    pub(crate) on_disconnect: Option<OnDisconnect>,
    /// True for another answer to the same messages, as `regenerate-message` says.
    pub(crate) regenerates: bool,
    /// True for a run that leaves the thread as it is.
    pub(crate) is_beside_thread: bool,
    subagent_events: Option<bool>,
}

/// The clients that a server knows.
pub(crate) struct Clients(pub(crate) Vec<Box<dyn Client>>);

/// A client of no known family.
struct AnyClient;

impl Client for AnyClient {}

impl<'a> ClientSigns<'a> {
    /// The signs of a request without a body.
    pub(crate) fn of_headers(headers: &'a HeaderMap) -> Self {
        Self {
            of_route: None,
            headers,
            protocol_version: None,
            run_id: None,
            has_forwarded_props: false,
            agent: None,
            subagent_events: None,
        }
    }

    pub(crate) fn of_run(
        headers: &'a HeaderMap,
        input: &'a RunAgentInput,
        wishes: &Wishes,
        agent: &'a str,
    ) -> Self {
        Self {
            protocol_version: input.protocol_version.as_deref(),
            run_id: Some(&input.run_id),
            has_forwarded_props: input.forwarded_props.is_some(),
            agent: Some(agent),
            subagent_events: wishes.subagent_events,
            ..Self::of_headers(headers)
        }
    }
}

impl Clients {
    /// Returns the encoder for the client of a request. Of the agents in `without_subagents`, a
    /// client that declares no version gets no events of subagents: old ones end a run at an event
    /// that they do not know, and nothing in their requests tells them from newer ones.
    pub(crate) fn encoder(
        &self,
        signs: &ClientSigns<'_>,
        without_subagents: &HashSet<String>,
    ) -> Encoder {
        let recognised = || self.0.iter().map(|client| &**client).find(|it| it.recognises(signs));
        let client = signs.of_route.or_else(recognised).unwrap_or(&AnyClient);
        let mut traits = client.traits(signs);
        traits.lacks_subagents |= match signs.subagent_events {
            Some(wanted) => !wanted,
            None => {
                signs.protocol_version.is_none()
                    && signs.agent.is_some_and(|agent| without_subagents.contains(agent))
            }
        };
        client.encoder(signs, traits)
    }

    /// Reads what a client asks for.
    pub(crate) fn read(&self, input: &RunAgentInput) -> Result<Wishes, ApiError> {
        let on_disconnect = input.forwarded_prop("onDisconnect").map(Option::deserialize);
        let on_disconnect = on_disconnect.transpose().map(Option::flatten).map_err(|_| {
            ApiError::invalid_input("forwardedProps.onDisconnect", "\"cancel\" or \"continue\"")
        })?;
        let subagent_events = match input.forwarded_prop("subagentEvents") {
            Some(Value::Bool(wanted)) => Some(*wanted),
            None | Some(Value::Null) => None,
            Some(_) => {
                return Err(ApiError::InvalidParameter {
                    name: "forwardedProps.subagentEvents",
                    expected: "true or false",
                });
            }
        };
        let trigger = input.forwarded_prop("trigger").and_then(Value::as_str);
        let mut wishes = Wishes {
            on_disconnect,
            regenerates: trigger.is_some_and(|trigger| trigger.starts_with("regenerate")),
            is_beside_thread: false,
            subagent_events,
        };
        self.0.iter().for_each(|client| client.read(input, &mut wishes));
        Ok(wishes)
    }
}
