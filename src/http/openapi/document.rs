//! The document of a server: its routes, with their descriptions.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    mem,
};

use indexmap::IndexMap;
use utoipa::{
    IntoResponses as _, OpenApi as _,
    openapi::{
        Content, Header, InfoBuilder, OpenApi, OpenApiBuilder, Paths, RefOr, Required, Response,
        ResponseBuilder, ServerBuilder,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem},
        schema::{AllOfBuilder, ObjectBuilder, Type},
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
        tag::TagBuilder,
    },
};

use super::{
    plain::pascal_case,
    schema::{component, text_of, typed},
    shared_schemas::SharedSchemas,
};
use crate::http::{
    Credential, refuse,
    route_list::{RouteAccess, Tag, operations_mut, purpose},
};
use agui_protocol::host::PROTOCOL_VERSION;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// The name of the security scheme.
const BEARER: &str = "bearer";
/// The description of a body that a request may leave out.
const OPTIONAL_BODY: &str = "May be absent.";

const ABOUT: &str = "Agents that speak AG-UI. A run is a stream of events; a request that cannot become a run is refused \
                     with a status and an `Error`. Unknown paths get 404 `not_found`, and methods that a path does not \
                     have 405 `method_not_allowed`. Every response has an `X-Request-Id`. The schema of a \
                     `text/event-stream` is that of the data of each event.";

/// The schema of the server's own refusals.
pub(crate) const OWN_REFUSALS: &str = "Error";

/// Routes of one tag.
pub(crate) struct DeclaredRoutes {
    pub(crate) tag: Tag,
    pub(crate) access: RouteAccess,
    /// The name of the schema of their refusals. `None` for texts.
    pub(crate) error: Option<&'static str>,
    pub(crate) openapi: OpenApi,
}

/// Makes one document of the declared routes.
pub(crate) fn document(declared: Vec<DeclaredRoutes>, credential: Credential) -> OpenApi {
    let mut components = SharedSchemas::openapi().components.unwrap_or_default();
    let (mut paths, mut ids, mut tags) = (Paths::new(), HashSet::new(), IndexMap::new());
    for DeclaredRoutes { tag: (tag, about), access, error, openapi } in declared {
        tags.insert(tag, about);
        components.schemas.extend(openapi.components.unwrap_or_default().schemas);
        for (path, mut item) in openapi.paths.paths {
            // OpenAPI has no wildcards.
            let path = path.replace("{*", "{");
            for (_, operation) in operations_mut(&mut item) {
                operation.tags.get_or_insert_with(|| vec![tag.to_owned()]);
                operation.operation_id = operation.operation_id.as_deref().map(camel_case);
            }
            complete(&path, &mut item, access, error, credential, &mut ids);
            paths.paths.insert(path, item);
        }
    }
    let about = match credential {
        Credential::Application => format!("{ABOUT} The application authenticates requests."),
        _ => ABOUT.to_owned(),
    };
    let info = InfoBuilder::new()
        .title("agui-server")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(about));
    // Relative, because a proxy or an application can serve the document below a prefix.
    let server = ServerBuilder::new()
        .url(".")
        .description(Some(format!("AG-UI {PROTOCOL_VERSION}")))
        .build();
    let tags = tags.into_iter();
    let tags = tags
        .map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build())
        .collect::<Vec<_>>();
    let mut document =
        OpenApiBuilder::new().info(info.build()).servers(Some([server])).tags(Some(tags));
    if credential == Credential::Bearer {
        let key = "An API key or a JSON Web Token, as the server is configured.";
        let scheme =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(key)).build();
        components.add_security_scheme(BEARER, SecurityScheme::Http(scheme));
        document = document.security(Some([SecurityRequirement::new(BEARER, [] as [&str; 0])]));
    }
    document.components(Some(components)).paths(paths).build()
}

/// Adds the responses of the middleware, and the parameters of the path. `error` is the schema of
/// refusals, `ids` are the ids of earlier operations.
fn complete(
    path: &str,
    item: &mut PathItem,
    access: RouteAccess,
    error: Option<&str>,
    credential: Credential,
    ids: &mut HashSet<String>,
) {
    let parameters: Vec<_> =
        path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
    let is_public = access == RouteAccess::Public;
    for (method, operation) in operations_mut(item) {
        operation.summary = Some(purpose(operation).to_owned());
        let declared = operation.parameters.get_or_insert_default();
        declared.splice(..0, parameters.iter().map(|name| path_parameter(name).into()));
        operation.operation_id.take_if(|id| !ids.insert(id.clone()));
        operation.security = (is_public && credential == Credential::Bearer)
            .then(|| vec![SecurityRequirement::default()]);
        let responses = &mut operation.responses.responses;
        responses.extend(refuse::Every::responses());
        if credential == Credential::None {
            responses.extend(refuse::WithoutAuthentication::responses());
        } else if !is_public {
            responses.extend(refuse::Authentication::responses());
        }
        if !is_public && matches!(method, "POST" | "PATCH") {
            responses.extend(refuse::MediaType::responses());
        }
        if !parameters.is_empty() {
            responses.extend(refuse::Url::responses());
        }
        join_refusals(operation, error);
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            let is_optional = body.description.as_deref() == Some(OPTIONAL_BODY);
            body.required = Some(if is_optional { Required::False } else { Required::True });
        }
    }
}

/// Makes one response of the refusals with the same status.
fn join_refusals(operation: &mut Operation, error: Option<&str>) {
    let mut by_status: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let responses = &mut operation.responses.responses;
    for (key, response) in mem::take(responses) {
        match refuse::parse_key(&key) {
            Some((status, code)) => {
                by_status.entry(status.to_owned()).or_default().insert(code.to_owned());
            }
            None => {
                responses.insert(key, response);
            }
        }
    }
    for (status, codes) in by_status {
        // `/readyz` responds 503 with a body of its own.
        let refusal = refusal(&status, &codes, error);
        responses.entry(status).or_insert_with(|| refusal.into());
    }
}

/// The id of an operation is the name of its handler.
fn camel_case(handler: &str) -> String {
    let mut words = handler.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |id, word| id + &pascal_case(word))
}

fn path_parameter(name: &str) -> Parameter {
    let description = match name {
        "agent" => "The name of an agent.",
        "thread" => "The id of a thread.",
        "message" => "The id of a message.",
        "run" => "The id of a run.",
        "file" => "The id of a file.",
        "model" => "The name of an agent.",
        _ => "A part of the path that the application has chosen.",
    };
    let parameter =
        ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
    parameter.schema(Some(typed(Type::String))).description(Some(description)).build()
}

/// The response with an error of one of these codes, which have the same status.
fn refusal(status: &str, names: &BTreeSet<String>, error: Option<&str>) -> Response {
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let description = format!("The request was refused: `{}`.", names.join("`, `"));
    let code = ObjectBuilder::new()
        .property("error", ObjectBuilder::new().property("code", text_of(names)));
    let response = ResponseBuilder::new().description(description);
    let response = match error {
        Some(error) => {
            let schema = AllOfBuilder::new().item(component(error)).item(code);
            response.content(JSON, Content::new(Some(schema)))
        }
        None => response.content(TEXT, Content::new(Some(typed(Type::String)))),
    };
    let response = match status {
        "401" => response
            .header("WWW-Authenticate", header(Type::String, "The credential that is needed.")),
        "429" | "503" => response.header("Retry-After", header(Type::Integer, "In seconds.")),
        _ => response,
    };
    response.build()
}

fn header(schema_type: Type, description: &str) -> Header {
    let mut header = Header::new(typed(schema_type));
    header.description = Some(description.to_owned());
    header
}
