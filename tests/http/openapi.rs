//! `GET /openapi.json`: the server does what the document says.

use std::collections::BTreeSet;

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::ApiKey,
    options::{HttpOptions, MetricsOptions, PlaygroundOptions},
    protocol::EventType,
};
use reqwest::{Method, Response, header};
use serde_json::{Value, json};

use crate::{
    protocol::corpus::catalogue,
    support::{
        refusals::RefusalCheck,
        running::{Running, events, input},
    },
};

/// The methods that a document can describe. HEAD is left out: axum serves it wherever it serves
/// GET.
const METHODS: [Method; 5] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

async fn document(server: &Running) -> Value {
    let response = server.client.get(server.url("/openapi.json")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    response.json().await.unwrap()
}

fn with_all_routes() -> Server {
    let mut metrics = MetricsOptions::default();
    metrics.main_listener = true;
    Server::new()
        .agent("echo", Echo)
        .agent_at("/api/{shop}/{*rest}", "clerk", Echo)
        .metrics(metrics)
        .playground(PlaygroundOptions::enabled())
}

/// Returns the methods and paths of the document.
fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().keys().map(move |method| (method.to_uppercase(), path.clone()))
    });
    operations.collect()
}

/// Returns a validator for the schema at a JSON pointer of the document.
fn validator(document: &Value, pointer: &str) -> jsonschema::Validator {
    let schema =
        document.pointer(pointer).unwrap_or_else(|| panic!("the document has no {pointer}"));
    // The schema's references lead to the components.
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    jsonschema::draft202012::new(&schema).unwrap()
}

fn escaped(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

fn assert_fits(document: &Value, pointer: &str, value: &Value) {
    let problems: Vec<_> =
        validator(document, pointer).iter_errors(value).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{value} does not fit {pointer}: {problems:?}");
}

/// Checks a response against the description of its route, also each event of a stream. Returns the body.
async fn checked(document: &Value, method: &str, template: &str, response: Response) -> String {
    let status = response.status().as_u16();
    let media_type = response
        .headers()
        .get(header::CONTENT_TYPE)
        .map(|value| value.to_str().unwrap().to_owned());
    let body = response.text().await.unwrap();
    let pointer = format!("/paths/{}/{method}/responses/{status}", escaped(template));
    assert!(
        document.pointer(&pointer).is_some(),
        "{method} {template} has no answer {status}: {body}"
    );
    let Some(media_type) = media_type else {
        assert_eq!(body, "", "{method} {template}");
        return body;
    };
    let essence = media_type.split(';').next().unwrap();
    let schema = format!("{pointer}/content/{}/schema", escaped(essence));
    match essence {
        "application/json" => assert_fits(document, &schema, &serde_json::from_str(&body).unwrap()),
        "text/event-stream" => {
            let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
            data.for_each(|data| {
                assert_fits(document, &schema, &serde_json::from_str(data).unwrap())
            });
        }
        _ => assert_fits(document, &schema, &json!(body)),
    }
    body
}

#[tokio::test]
async fn every_listed_route_is_described_and_no_other() {
    let mut prefixed = HttpOptions::default();
    prefixed.copilotkit.prefix = "/x/pages".to_owned();
    let mut without = HttpOptions::default();
    without.copilotkit.enabled = false;
    without.named_events.enabled = false;
    for server in [
        with_all_routes(),
        with_all_routes().http_options(prefixed),
        Server::new().agent("echo", Echo).playground(PlaygroundOptions::disabled()),
        Server::new().agent("echo", Echo).http_options(without),
    ] {
        let server = Running::start(server).await;
        let document = document(&server).await;
        let described = operations(&document);
        let index = server.client.get(server.url("/")).header(header::ACCEPT, "application/json");
        let index: Value = index.send().await.unwrap().json().await.unwrap();
        for route in index["routes"].as_array().unwrap() {
            let path = route["path"].as_str().unwrap().replace("{*", "{");
            for method in route["methods"].as_str().unwrap().split(", ") {
                assert!(
                    described.contains(&(method.to_owned(), path.clone())),
                    "{method} {path} is not described"
                );
            }
        }
        let paths: BTreeSet<_> = described.iter().map(|(_, path)| path).collect();
        for path in paths {
            let url = server.url(&path.replace(['{', '}'], ""));
            for method in METHODS {
                // A request that no handler accepts, so that nothing changes and no stream begins.
                let request = server
                    .client
                    .request(method.clone(), &url)
                    .header("origin", "http://foreign.example");
                let refused = request.send().await.unwrap().status();
                assert_eq!(refused, 403, "{method} {path}");
                let is_described = described.contains(&(method.to_string(), path.clone()));
                assert_eq!(
                    is_served(&server, &method, &url).await,
                    is_described,
                    "{method} {path}"
                );
            }
        }
    }
}

async fn is_served(server: &Running, method: &Method, url: &str) -> bool {
    let response = server.client.request(method.clone(), url).send().await.unwrap();
    let status = response.status();
    // Streams without an end are not read.
    if status.is_success() {
        return true;
    }
    let body = response.text().await.unwrap();
    status != 405 && !body.contains("\"not_found\"")
}

#[tokio::test]
async fn every_event_of_the_corpus_fits_the_schema_of_events() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let mut document = document(&server).await;
    // The document allows further members, as AG-UI does. They are forbidden here, so that a member
    // that it lacks does not fit.
    close(&mut document["components"]["schemas"]);
    let schema = validator(&document, "/components/schemas/Event");
    let mut seen = BTreeSet::new();
    for (name, event) in catalogue::events() {
        let problems: Vec<_> = schema.iter_errors(&event).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{name}: {event}: {problems:?}");
        seen.insert(event["type"].as_str().unwrap().to_owned());
        let mut wrong =
            vec![with(&event, "type", json!("NO_EVENT")), with(&event, "surplus", json!(1))];
        wrong.push(with(&event, "timestamp", json!("today")));
        for member in required(&document, event["type"].as_str().unwrap()) {
            let mut without = event.clone();
            without.as_object_mut().unwrap().remove(&member);
            wrong.push(without);
        }
        for wrong in wrong {
            assert!(!schema.is_valid(&wrong), "{name}: {wrong} fits");
        }
    }
    assert_eq!(seen, EventType::ALL.iter().map(|event| event.as_str().to_owned()).collect());
}

/// A member of the schema that no event of the corpus has would be an invention.
#[tokio::test]
async fn every_member_of_an_events_schema_is_in_the_corpus() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let document = document(&server).await;
    let corpus = catalogue::events();
    for event in EventType::ALL {
        let schema = &document["components"]["schemas"][format!("{event:?}Event")];
        for member in schema["properties"].as_object().unwrap().keys() {
            let mut of_type = corpus.iter().filter(|(_, json)| json["type"] == event.as_str());
            let is_known = of_type.any(|(_, json)| json.get(member).is_some())
                || member == "encryptedValueType";
            assert!(is_known, "{} has no {member}", event.as_str());
        }
    }
}

/// Returns the members that the schema of an event requires.
fn required(document: &Value, event: &str) -> Vec<String> {
    let schemas = &document["components"]["schemas"];
    let schema = schemas["Event"]["discriminator"]["mapping"][event].as_str().unwrap();
    let schema = &schemas[schema.rsplit('/').next().unwrap()];
    schema["required"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

fn with(event: &Value, member: &str, value: Value) -> Value {
    let mut event = event.clone();
    event[member] = value;
    event
}

/// Forbids members that a schema does not name, in all objects that name some.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("properties").is_some_and(Value::is_object)
                && members.get("type") == Some(&json!("object"))
            {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[tokio::test]
async fn answers_of_the_server_fit_the_document() {
    let server = Running::start(with_all_routes()).await;
    let document = document(&server).await;
    let get = async |path: &str, template: &str| {
        let response =
            server.client.get(server.url(path)).header(header::ACCEPT, "application/json");
        checked(&document, "get", template, response.send().await.unwrap()).await
    };
    let send = async |method: Method, path: &str, template: &str, body: Value| {
        let response = server
            .client
            .request(method.clone(), server.url(path))
            .json(&body)
            .send()
            .await
            .unwrap();
        checked(&document, &method.as_str().to_lowercase(), template, response).await
    };
    let mut run = input("hello");
    run["threadId"] = json!("t");
    run["runId"] = json!("r1");
    run["forwardedProps"] = json!({ "onDisconnect": "continue" });
    let body = send(Method::POST, "/send-message", "/send-message", run.clone()).await;
    assert_eq!(events(&body).last().unwrap()["type"], "RUN_FINISHED");
    let again = json!({ "threadId": "t2", "runId": "r2", "messages": [{ "id": "m", "role": "user", "content": "hi" }] });
    send(Method::POST, "/agents/echo/send-message", "/agents/{agent}/send-message", again.clone())
        .await;
    send(Method::POST, "/api/a/b/c", "/api/{shop}/{rest}", again.clone()).await;
    let named = json!({ "thread_id": "n", "messages": [{ "role": "user", "content": "hi" }] });
    let body = send(Method::POST, "/agent/chat/stream", "/agent/chat/stream", named).await;
    assert!(body.contains("run_finished"), "{body}");

    send(Method::POST, "/files", "/files", json!({ "a": "file" })).await;
    for (path, template) in [
        ("/files", "/files"),
        ("/", "/"),
        ("/healthz", "/healthz"),
        ("/readyz", "/readyz"),
        ("/metrics", "/metrics"),
        ("/agents", "/agents"),
        ("/agents/echo/capabilities", "/agents/{agent}/capabilities"),
        ("/send-message?threadId=t", "/send-message"),
        ("/send-message?threadId=t&runId=r1&offset=-1", "/send-message"),
        ("/threads", "/threads"),
        ("/threads/t", "/threads/{thread}"),
        ("/threads/t/messages", "/threads/{thread}/messages"),
        ("/threads/t/export", "/threads/{thread}/export"),
        ("/threads/t/runs/r1/events", "/threads/{thread}/runs/{run}/events"),
        ("/threads/t/runs/r1/events?after=999", "/threads/{thread}/runs/{run}/events"),
        ("/openapi.json", "/openapi.json"),
        ("/playground", "/playground"),
        ("/playground/main.js", "/playground/main.js"),
        ("/playground/main.css", "/playground/main.css"),
        ("/playground/icon.svg", "/playground/icon.svg"),
        ("/copilotkit/info", "/copilotkit/info"),
        ("/copilotkit/threads", "/copilotkit/threads"),
        ("/copilotkit/threads/t/messages", "/copilotkit/threads/{thread}/messages"),
        ("/copilotkit/threads/t/state", "/copilotkit/threads/{thread}/state"),
        ("/copilotkit/threads/t/events", "/copilotkit/threads/{thread}/events"),
        ("/ai-sdk/echo/t", "/ai-sdk/{agent}/{thread}"),
        ("/ai-sdk/echo/t/stream", "/ai-sdk/{agent}/{thread}/stream"),
    ] {
        get(path, template).await;
    }
    let message: Value =
        serde_json::from_str(&get("/threads/t", "/threads/{thread}").await).unwrap();
    let message = message["messages"][1]["id"].as_str().unwrap().to_owned();
    let feedback = format!("/threads/t/messages/{message}/feedback");
    let template = "/threads/{thread}/messages/{message}/feedback";
    send(Method::POST, &feedback, template, json!({ "score": 1, "comment": "good" })).await;
    send(
        Method::PATCH,
        "/threads/t",
        "/threads/{thread}",
        json!({ "title": "T", "metadata": { "a": 1 } }),
    )
    .await;
    send(Method::POST, "/threads/t/fork", "/threads/{thread}/fork", json!({ "threadId": "copy" }))
        .await;
    send(Method::POST, "/threads/t/connect", "/threads/{thread}/connect", json!({})).await;
    let cancel = "/threads/{thread}/runs/{run}/cancel";
    send(Method::POST, "/threads/t/runs/r1/cancel", cancel, json!({})).await;
    let export: Value =
        serde_json::from_str(&get("/threads/t/export", "/threads/{thread}/export").await).unwrap();
    assert_fits(&document, "/components/schemas/ThreadExport", &export);
    send(Method::POST, "/threads/import?threadId=imported", "/threads/import", export).await;
    for (path, template, body) in [
        ("/copilotkit", "/copilotkit", json!({ "method": "info" })),
        ("/copilotkit/agent/echo/run", "/copilotkit/agent/{agent}/run", again),
        (
            "/copilotkit/agent/echo/connect",
            "/copilotkit/agent/{agent}/connect",
            json!({ "threadId": "t" }),
        ),
        ("/copilotkit/agent/echo/suggest", "/copilotkit/agent/{agent}/suggest", input("hi")),
        ("/copilotkit/agent/echo/stop/t", "/copilotkit/agent/{agent}/stop/{thread}", json!({})),
        ("/copilotkit/threads/subscribe", "/copilotkit/threads/subscribe", json!({})),
        ("/copilotkit/threads/t/archive", "/copilotkit/threads/{thread}/archive", json!({})),
        ("/ai-sdk/echo/t/stop", "/ai-sdk/{agent}/{thread}/stop", json!({})),
    ] {
        send(Method::POST, path, template, body).await;
    }
    let copilot = "/copilotkit/threads/{thread}";
    send(
        Method::PATCH,
        "/copilotkit/threads/t",
        copilot,
        json!({ "name": "New", "archived": false }),
    )
    .await;
    send(Method::DELETE, "/copilotkit/threads/copy", copilot, json!({})).await;
    send(Method::DELETE, "/threads/t2", "/threads/{thread}", json!({})).await;
    for (path, template) in [
        ("/agents/nobody/capabilities", "/agents/{agent}/capabilities"),
        ("/threads?limit=0", "/threads"),
        ("/threads/unknown", "/threads/{thread}"),
        ("/threads/%ff", "/threads/{thread}"),
        ("/threads/t2/runs/x/events", "/threads/{thread}/runs/{run}/events"),
        ("/threads/imported/runs/r1/events", "/threads/{thread}/runs/{run}/events"),
        ("/threads/imported/runs/r1/events?after=x", "/threads/{thread}/runs/{run}/events"),
        ("/send-message", "/send-message"),
        ("/copilotkit/threads/unknown/state", "/copilotkit/threads/{thread}/state"),
        ("/copilotkit/socket/websocket", "/copilotkit/socket/websocket"),
    ] {
        let body = get(path, template).await;
        assert!(body.contains("\"error\""), "{path}: {body}");
    }
    for (method, path, template, body) in [
        (Method::POST, "/send-message", "/send-message", json!({ "threadId": 1 })),
        (Method::POST, "/agents/x/send-message", "/agents/{agent}/send-message", input("hi")),
        (Method::POST, "/agent/chat/stream", "/agent/chat/stream", json!({ "messages": [] })),
        (Method::PATCH, "/threads/t", "/threads/{thread}", json!({ "title": 1 })),
        (
            Method::POST,
            "/threads/t/fork",
            "/threads/{thread}/fork",
            json!({ "threadId": "imported" }),
        ),
        (Method::POST, "/threads/import", "/threads/import", json!({})),
        (Method::DELETE, "/threads/unknown", "/threads/{thread}", json!({})),
        (Method::POST, "/threads/t/runs/x/cancel", cancel, json!({})),
        (Method::POST, "/copilotkit", "/copilotkit", json!({ "method": "dance" })),
    ] {
        let body = send(method.clone(), path, template, body).await;
        assert!(body.contains("\"error\""), "{method} {path}: {body}");
    }
    let text = server.post("/send-message").body("hello").send().await.unwrap();
    assert_eq!(text.status(), 415);
    checked(&document, "post", "/send-message", text).await;
}

#[tokio::test]
async fn with_authentication_the_document_needs_the_key_and_names_its_scheme() {
    let keys = [ApiKey::from_secret("web", "open sesame")];
    let server = Running::start(with_all_routes().api_keys(keys)).await;
    let request = || server.client.get(server.url("/openapi.json"));
    assert_eq!(request().send().await.unwrap().status(), 401);
    let response = request().bearer_auth("open sesame").send().await.unwrap();
    let etag = response.headers()[header::ETAG].clone();
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    assert_eq!(document["security"], json!([{ "bearer": [] }]));
    for (path, is_public) in
        [("/healthz", true), ("/playground", true), ("/", false), ("/threads", false)]
    {
        let security = document["paths"][path]["get"].get("security");
        assert_eq!(security == Some(&json!([{}])), is_public, "{path}: {security:?}");
        let request =
            server.client.get(server.url(path)).header(header::ACCEPT, "application/json");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status() == 401, !is_public, "{path}");
        if !is_public {
            checked(&document, "get", path, answer).await;
        }
    }
    let copy = request().bearer_auth("open sesame").header(header::IF_NONE_MATCH, etag);
    let copy = copy.send().await.unwrap();
    assert_eq!(copy.status(), 304);
    assert_eq!(copy.bytes().await.unwrap().len(), 0);
}

#[tokio::test]
async fn every_code_of_a_refusal_is_at_a_route() {
    let mut described = BTreeSet::new();
    let keys = [ApiKey::from_secret("web", "open sesame")];
    for server in [with_all_routes(), with_all_routes().api_keys(keys)] {
        let server = Running::start(server).await;
        let response = server
            .client
            .get(server.url("/openapi.json"))
            .bearer_auth("open sesame")
            .send()
            .await
            .unwrap();
        let document: Value = response.json().await.unwrap();
        let paths = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|item| item.as_object().unwrap().values());
        for (status, answer) in
            paths.flat_map(|operation| operation["responses"].as_object().unwrap())
        {
            let codes =
                &answer["content"]["application/json"]["schema"]["allOf"][1]["properties"]["error"];
            let codes = codes["properties"]["code"]["enum"].as_array().into_iter().flatten();
            described.extend(codes.map(|code| (status.clone(), code.as_str().unwrap().to_owned())));
        }
    }
    // The table of the documentation must have no further codes either.
    let path = format!("{}/docs/protocol.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let section =
        text.split("\n## Refused requests\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let (mut documented, mut wrong) = (BTreeSet::new(), Vec::new());
    for row in section.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        for code in cells[2].split('`').skip(1).step_by(2) {
            documented.insert(code.to_owned());
            let mut statuses =
                cells[1].split(", ").map(|status| (status.to_owned(), code.to_owned()));
            wrong.extend(
                (!statuses.any(|documented| described.contains(&documented)))
                    .then_some((cells[1], code.to_owned())),
            );
        }
    }
    let codes: BTreeSet<_> = described.iter().map(|(_, code)| code.clone()).collect();
    assert_eq!(codes, documented);
    assert!(wrong.is_empty(), "the table has other statuses: {wrong:?}");
}

/// [`RefusalCheck`] compares the refusals that it has seen, so it must see one.
#[tokio::test]
async fn a_refusal_is_compared_with_the_document() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    assert_eq!(
        server.client.get(server.url("/threads/unknown")).send().await.unwrap().status(),
        404
    );
    let seen = RefusalCheck::seen();
    assert!(
        seen.contains(&(
            "GET".to_owned(),
            "/threads/{thread}".to_owned(),
            "unknown_thread".to_owned()
        )),
        "{seen:?}"
    );
}
