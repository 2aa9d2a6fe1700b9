//! The description, health and metrics of the server.

use crate::openapi::{
    operation::{Description, JSON, Tag},
    refusals::LOOPBACK,
    schema::{component, object, text},
};

pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    let server = |id, summary| Description::new(Tag::Server, id, summary);
    Some(match (method, template) {
        ("GET", "/") => {
            server("describeServer", "Describes this server").details("A refusal has that form as well.").answer(
                200,
                "The description, in the form that `Accept` names.",
                &[
                    (JSON, Some(component("ServerDescription").into())),
                    ("text/html", Some(text().into())),
                    ("text/plain", Some(text().into())),
                ],
            )
        }
        ("GET", "/healthz") => {
            server("checkHealth", "Reports that the process is alive").json(200, "Health", "The process is alive.")
        }
        ("GET", "/readyz") => server("checkReadiness", "Reports that the server accepts runs")
            .json(200, "Readiness", "The server accepts runs.")
            .json(503, "Readiness", "The server does not accept runs now."),
        ("GET", "/metrics") => server("readMetrics", "Returns the server's metrics for Prometheus")
            .answer(
                200,
                "The metrics.",
                &[("text/plain", Some(text().into())), ("application/openmetrics-text", Some(text().into()))],
            )
            .refuses(&[LOOPBACK]),
        ("GET", "/openapi.json") => server("readOpenApi", "Returns this document")
            .header("If-None-Match", text(), "The `ETag` of the client's copy.")
            .answer(200, "The document.", &[(JSON, Some(object().into()))])
            .answer_header(200, "ETag", "Names this version of the document.")
            .empty(304, "The client's copy is current."),
        _ => return None,
    })
}
