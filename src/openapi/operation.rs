//! The description of one method of a route.

use std::collections::BTreeMap;

use utoipa::openapi::{
    Content, Header, Required, Response, ResponseBuilder,
    path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
    request_body::{RequestBody, RequestBodyBuilder},
    schema::AllOfBuilder,
    security::SecurityRequirement,
};

use super::{
    refusals::Groups,
    schema::{AnySchema, component, integer, object, text, text_of},
};
use crate::{
    encode::{PROTO_MEDIA_TYPE, SSE_MEDIA_TYPE},
    http::error_code::ErrorCode,
};

pub(super) const JSON: &str = "application/json";
/// The name of the security scheme.
pub(super) const BEARER: &str = "bearer";

/// A group of operations.
#[derive(Clone, Copy)]
pub(super) enum Tag {
    Runs,
    Threads,
    Agents,
    Server,
    NamedEvents,
    CopilotKit,
    Playground,
}

impl Tag {
    pub(super) const ALL: [Self; 7] =
        [Self::Runs, Self::Threads, Self::Agents, Self::Server, Self::NamedEvents, Self::CopilotKit, Self::Playground];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Threads => "threads",
            Self::Agents => "agents",
            Self::Server => "server",
            Self::NamedEvents => "named events",
            Self::CopilotKit => "CopilotKit",
            Self::Playground => "playground",
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Runs => "Runs of agents, and detached runs, which go on without their client.",
            Self::Threads => "The caller's conversations.",
            Self::Agents => "The agents of the server.",
            Self::Server => "The server itself.",
            Self::NamedEvents => "A second format for the same agents, runs and threads.",
            Self::CopilotKit => "The runtime for pages with CopilotKit.",
            Self::Playground => "A page to try the agents.",
        }
    }
}

/// What an operation says about itself. The rest follows from its route and the server.
pub(super) struct Description {
    pub(super) id: &'static str,
    tag: Tag,
    summary: &'static str,
    details: Option<&'static str>,
    parameters: Vec<Parameter>,
    body: Option<RequestBody>,
    answers: BTreeMap<u16, Response>,
    refusals: Vec<ErrorCode>,
}

impl Description {
    pub(super) fn new(tag: Tag, id: &'static str, summary: &'static str) -> Self {
        let (parameters, answers, refusals) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { id, tag, summary, details: None, parameters, body: None, answers, refusals }
    }

    pub(super) fn details(self, details: &'static str) -> Self {
        Self { details: Some(details), ..self }
    }

    pub(super) fn query(self, name: &str, schema: impl Into<AnySchema>, description: &str) -> Self {
        self.parameter(ParameterIn::Query, name, schema, description)
    }

    pub(super) fn header(self, name: &str, schema: impl Into<AnySchema>, description: &str) -> Self {
        self.parameter(ParameterIn::Header, name, schema, description)
    }

    fn parameter(mut self, place: ParameterIn, name: &str, schema: impl Into<AnySchema>, description: &str) -> Self {
        let parameter = ParameterBuilder::new().name(name).parameter_in(place).required(Required::False);
        self.parameters.push(parameter.schema(Some(schema)).description(Some(description)).build());
        self
    }

    pub(super) fn body(self, component_name: &str) -> Self {
        self.with_body(component_name, Required::True)
    }

    pub(super) fn optional_body(self, component_name: &str) -> Self {
        self.with_body(component_name, Required::False)
    }

    fn with_body(self, component_name: &str, required: Required) -> Self {
        let content = Content::new(Some(component(component_name)));
        let body = RequestBodyBuilder::new().content(JSON, content).required(Some(required)).build();
        Self { body: Some(body), ..self }
    }

    /// An answer in JSON.
    pub(super) fn json(self, status: u16, component_name: &str, description: &str) -> Self {
        self.answer(status, description, &[(JSON, Some(component(component_name).into()))])
    }

    /// AG-UI events, in both encodings.
    pub(super) fn events(self, description: &str) -> Self {
        let text_stream = (SSE_MEDIA_TYPE, Some(component("Event").into()));
        let binary = (PROTO_MEDIA_TYPE, None);
        self.answer(200, description, &[text_stream, binary])
    }

    /// Server-Sent Events, of which the data fit a component.
    pub(super) fn stream(self, component_name: &str, description: &str) -> Self {
        self.answer(200, description, &[(SSE_MEDIA_TYPE, Some(component(component_name).into()))])
    }

    pub(super) fn empty(self, status: u16, description: &str) -> Self {
        self.answer(status, description, &[])
    }

    pub(super) fn answer(mut self, status: u16, description: &str, contents: &[(&str, Option<AnySchema>)]) -> Self {
        let response = ResponseBuilder::new().description(description);
        let response = contents.iter().fold(response, |response, (media_type, schema)| {
            response.content(*media_type, Content::new(schema.clone()))
        });
        self.answers.insert(status, response.build());
        self
    }

    /// Adds a header to an answer.
    pub(super) fn answer_header(mut self, status: u16, name: &str, description: &str) -> Self {
        if let Some(answer) = self.answers.get_mut(&status) {
            answer.headers.insert(name.to_owned(), header(text(), description).into());
        }
        self
    }

    pub(super) fn refuses(mut self, groups: Groups) -> Self {
        groups.iter().for_each(|group| self.refuse(group));
        self
    }

    pub(super) fn refuse(&mut self, group: &[ErrorCode]) {
        self.refusals.extend(group);
    }

    /// Returns the operation of a path. `is_repeated`: another path has the same operation, with its id.
    pub(super) fn into_operation(self, path_parameters: &[&str], is_public: bool, is_repeated: bool) -> Operation {
        let path_parameters = path_parameters.iter().map(|name| path_parameter(name));
        let operation = OperationBuilder::new()
            .tag(self.tag.name())
            .summary(Some(self.summary))
            .description(self.details)
            .operation_id(Some(self.id).filter(|_| !is_repeated))
            .request_body(self.body)
            .securities(is_public.then(|| [SecurityRequirement::default()]));
        let operation = path_parameters.chain(self.parameters).fold(operation, OperationBuilder::parameter);
        let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
        for code in self.refusals {
            let codes = by_status.entry(code.status().as_u16()).or_default();
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        let refusals = by_status.into_iter().map(|(status, codes)| (status, refusal(status, &codes)));
        let answers = self.answers.into_iter().chain(refusals);
        answers.fold(operation, |operation, (status, answer)| operation.response(status.to_string(), answer)).build()
    }
}

fn path_parameter(name: &str) -> Parameter {
    let description = match name {
        "agent" => "The name of an agent.",
        "thread" => "The id of a thread.",
        "message" => "The id of a message.",
        "run" => "The id of a run.",
        _ => "A part of the path that the application has chosen.",
    };
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
    parameter.schema(Some(text())).description(Some(description)).build()
}

/// The response with an error of one of these codes, which have the same status.
fn refusal(status: u16, codes: &[ErrorCode]) -> Response {
    let mut names: Vec<_> = codes.iter().map(|code| code.name()).collect();
    names.sort_unstable();
    let description = format!("The request was refused: `{}`.", names.join("`, `"));
    let code = object().property("error", object().property("code", text_of(names)));
    let schema = AllOfBuilder::new().item(component("Error")).item(code);
    let response = ResponseBuilder::new().description(description).content(JSON, Content::new(Some(schema)));
    let response = match status {
        401 => response.header("WWW-Authenticate", header(text(), "The credential that is needed.")),
        429 | 503 => response.header("Retry-After", header(integer(), "In seconds.")),
        _ => response,
    };
    response.build()
}

fn header(schema: impl Into<AnySchema>, description: &str) -> Header {
    let mut header = Header::new(schema);
    header.description = Some(description.to_owned());
    header
}
