//! Compares every refusal of the servers of the test program with the OpenAPI document: the attribute
//! of a handler names its groups of codes, which are in `src/http/openapi/refuse.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, Once},
};

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::ApiKey,
    options::{MetricsOptions, PlaygroundOptions},
};
use axum::{body::Body, http::Request};
use serde_json::Value;
use tokio::sync::OnceCell;
use tower::ServiceExt as _;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Method, route and code.
type Refusal = (String, String, String);

static SEEN: Mutex<BTreeSet<Refusal>> = Mutex::new(BTreeSet::new());
static DOCUMENTED: OnceCell<BTreeMap<(String, String), BTreeSet<String>>> = OnceCell::const_new();

/// Panics when it is dropped if a server of this process has refused a request with a code that the document does not have at
/// its route.
#[derive(Debug)]
pub struct RefusalCheck(());

impl RefusalCheck {
    pub async fn start() -> Self {
        static INSTALL: Once = Once::new();
        INSTALL.call_once(|| {
            tracing::subscriber::set_global_default(RefusalLog).expect("no test sets another one")
        });
        DOCUMENTED.get_or_init(documented).await;
        Self(())
    }

    /// Returns the refusals so far.
    pub fn seen() -> BTreeSet<Refusal> {
        SEEN.lock().unwrap().clone()
    }
}

impl Drop for RefusalCheck {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // Removed, so that one test fails and not each one after it.
            let wrong: Vec<_> = SEEN.lock().unwrap().extract_if(.., is_undocumented).collect();
            assert!(
                wrong.is_empty(),
                "the codes of a route are in the attribute of its handler, and these are missing: {wrong:?}"
            );
        }
    }
}

/// Routes at paths that a test has chosen are not in the document, and 405 is described once for all routes.
fn is_undocumented((method, route, code): &Refusal) -> bool {
    let codes = DOCUMENTED.get().and_then(|codes| {
        let of = |method: &str| codes.get(&(method.to_owned(), route.clone()));
        // axum serves HEAD wherever it serves GET.
        of(method).or_else(|| of("GET").filter(|_| method == "HEAD"))
    });
    code != "method_not_allowed" && codes.is_some_and(|codes| !codes.contains(code))
}

/// Returns the codes of each method and path, on servers with authentication and without it.
async fn documented() -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut documented: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    let mut metrics = MetricsOptions::default();
    metrics.main_listener = true;
    let all_routes = || {
        let server = Server::new().agent("echo", Echo).metrics(metrics.clone());
        server.playground(PlaygroundOptions::enabled())
    };
    for server in [all_routes(), all_routes().api_keys([ApiKey::from_secret("web", "open sesame")])]
    {
        let (router, _handle) = server.into_router().unwrap();
        let request = Request::get("/openapi.json").header("host", "localhost");
        let request =
            request.header("authorization", "Bearer open sesame").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let document: Value = serde_json::from_slice(&body).unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let codes = documented.entry((method.to_uppercase(), path.clone())).or_default();
                for answer in operation["responses"].as_object().unwrap().values() {
                    let error = &answer["content"]["application/json"]["schema"]["allOf"][1]["properties"]
                        ["error"];
                    let of_status =
                        error["properties"]["code"]["enum"].as_array().into_iter().flatten();
                    codes.extend(of_status.map(|code| code.as_str().unwrap().to_owned()));
                    // A refusal that is a text has its codes in the description.
                    if answer["content"].get("text/plain").is_some() {
                        let about = answer["description"].as_str().unwrap();
                        codes.extend(about.split('`').skip(1).step_by(2).map(str::to_owned));
                    }
                }
            }
        }
    }
    documented
}

/// Keeps the events about refusals.
struct RefusalLog;

impl Subscriber for RefusalLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == "agui_server::http::accept::request_id"
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut take = |name| fields.0.remove(name);
        if let (Some(method), Some(route), Some(code)) =
            (take("method"), take("route"), take("code"))
        {
            SEEN.lock().unwrap().insert((method, route.replace("{*", "{"), code));
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
