//! Errors, health, and the description of the server.

use crate::{
    http::error_code::ErrorCode,
    http::openapi::schema::{
        Describe as _, Named, SchemaMembers as _, component, list_of, named, object, text, text_of,
    },
};

pub(super) fn schemas() -> Vec<Named> {
    let mut codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    codes.sort_unstable();
    codes.dedup();
    let error = object()
        .has("code", component("ErrorCode"))
        .has("message", text())
        .may_have("path", text().says("The member or the parameter that is wrong, such as `messages[0].id`."));
    let route = object().has("methods", text()).has("path", text()).has("purpose", text());
    vec![
        named("Error", object().has("error", error).says("The request was refused.")),
        named("ErrorCode", text_of(codes)),
        named("Health", object().has("status", text_of(["ok"]))),
        named(
            "Readiness",
            object()
                .has("status", text_of(["ready", "shutting_down", "store_unavailable", "dependency_unavailable"]))
                .may_have("unavailable", list_of(text()).says("The dependencies that do not respond.")),
        ),
        named(
            "ServerDescription",
            object()
                .has("name", text())
                .has("version", text())
                .has("protocol", text())
                .has("documentation", text().says("Its address."))
                .has("authentication", text_of(["none", "bearer", "application"]))
                .has("agents", list_of(component("AgentSummary")))
                .has("routes", list_of(route))
                .has("example", text().says("A command to try.")),
        ),
    ]
}
