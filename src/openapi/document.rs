//! The document of a server: its routes, with their descriptions.

use std::collections::HashSet;

use utoipa::openapi::{
    Components, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, Paths, ServerBuilder, Tag as TagObject,
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    tag::TagBuilder,
};

use super::{
    operation::{BEARER, Tag},
    operations::describe,
    refusals, schemas,
};
use crate::{
    http::{App, Route, error_code::ErrorCode},
    protocol::PROTOCOL_VERSION,
};

const ABOUT: &str = "Agents that speak AG-UI. A run is a stream of events; a request that cannot become a run is refused \
                     with a status and an `Error`. Unknown paths get 404 `not_found`, and methods that a path does not \
                     have 405 `method_not_allowed`. Every response has an `X-Request-Id`. The schema of a \
                     `text/event-stream` is that of the data of each event.";

/// Who may use a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Open,
    /// Callers send `Authorization: Bearer …`.
    Bearer,
    /// The application authenticates in a way that the server does not know.
    Application,
}

pub(super) fn document(app: &App) -> OpenApi {
    let access = match (app.is_authenticated(), app.expects_bearer()) {
        (false, _) => Access::Open,
        (true, true) => Access::Bearer,
        (true, false) => Access::Application,
    };
    document_of(app.all_routes(), access)
}

pub(super) fn document_of(routes: &[Route], access: Access) -> OpenApi {
    let mut components = Components::new();
    components.schemas.extend(schemas::components());
    let about = match access {
        Access::Application => format!("{ABOUT} The application authenticates requests."),
        _ => ABOUT.to_owned(),
    };
    let info = InfoBuilder::new().title("agui-server").version(env!("CARGO_PKG_VERSION")).description(Some(about));
    // Relative, because a proxy or an application can serve the document below a prefix.
    let server = ServerBuilder::new().url(".").description(Some(format!("AG-UI {PROTOCOL_VERSION}"))).build();
    let tags = Tag::ALL
        .map(|tag| -> TagObject { TagBuilder::new().name(tag.name()).description(Some(tag.description())).build() });
    let document = OpenApiBuilder::new().info(info.build()).servers(Some([server])).tags(Some(tags));
    let document = match access {
        Access::Bearer => {
            let key = "An API key or a JSON Web Token, as the server is configured.";
            let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(key)).build();
            components.add_security_scheme(BEARER, SecurityScheme::Http(scheme));
            document.security(Some([SecurityRequirement::new(BEARER, [] as [&str; 0])]))
        }
        Access::Open | Access::Application => document,
    };
    document.components(Some(components)).paths(paths(routes, access)).build()
}

fn paths(routes: &[Route], access: Access) -> Paths {
    let mut paths = Paths::new();
    let mut ids = HashSet::new();
    for route in routes {
        // OpenAPI has no wildcards.
        let path = route.path.replace("{*", "{");
        let parameters: Vec<_> = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        for (name, method) in methods(route) {
            let Some(mut description) = describe(name, route.template) else {
                tracing::error!(method = name, path, "the OpenAPI document does not describe a route");
                continue;
            };
            let refusals = common_refusals(route, name, access, !parameters.is_empty());
            refusals.into_iter().for_each(|group| description.refuse(group));
            let is_repeated = !ids.insert(description.id);
            let is_public = route.is_public && access == Access::Bearer;
            let operation = description.into_operation(&parameters, is_public, is_repeated);
            let item = PathItem::new(method, operation);
            match paths.paths.get_mut(&path) {
                Some(known) => known.merge_operations(item),
                None => drop(paths.paths.insert(path.clone(), item)),
            }
        }
    }
    paths
}

/// The methods of a route, by name.
fn methods(route: &Route) -> impl Iterator<Item = (&'static str, HttpMethod)> {
    route.methods.split(", ").filter_map(|name| {
        let method = match name {
            "GET" => HttpMethod::Get,
            "HEAD" => HttpMethod::Head,
            "POST" => HttpMethod::Post,
            "PATCH" => HttpMethod::Patch,
            "DELETE" => HttpMethod::Delete,
            _ => return None,
        };
        Some((name, method))
    })
}

/// The refusals of the middleware.
fn common_refusals(route: &Route, method: &str, access: Access, has_parameters: bool) -> Vec<&'static [ErrorCode]> {
    let mut groups = vec![refusals::EVERY];
    match access {
        Access::Open => groups.push(refusals::WITHOUT_AUTHENTICATION),
        Access::Bearer | Access::Application if !route.is_public => groups.push(refusals::AUTHENTICATION),
        Access::Bearer | Access::Application => {}
    }
    if !route.is_public && matches!(method, "POST" | "PATCH") {
        groups.push(refusals::MEDIA_TYPE);
    }
    if has_parameters {
        groups.push(refusals::URL);
    }
    groups
}
