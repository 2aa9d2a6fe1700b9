//! Servers that are opened by another revision or transport, and those that want a login.

use std::{
    io,
    sync::{Arc, Mutex},
};

use serde_json::json;
use tracing::subscriber::DefaultGuard;

use super::{
    call, connect,
    fake_server::{FakeServer, Kind},
};
use crate::{McpRevision, McpServer};
use agui_store::{MemoryStore, Store};
use agui_tools::{
    ToolSource as _,
    login::{PersonTokens, test_logins::replica},
};

/// The log of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Captures what this thread logs.
    fn capture(&self) -> DefaultGuard {
        let written = self.clone();
        let format = tracing_subscriber::fmt().with_ansi(false);
        tracing::subscriber::set_default(format.with_writer(move || written.clone()).finish())
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn count(&self, word: &str) -> usize {
        self.text().lines().filter(|line| line.contains(word)).count()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_transport_http_sse_is_named() {
    let fake = FakeServer::start(Kind::HttpSse).await;
    let error = McpServer::new("test", fake.options()).unwrap().probe().await.unwrap_err();
    assert!(error.contains("HTTP+SSE of 2024-11-05"), "{error}");
    let mut options = fake.options();
    options.url = Some(format!("http://{}/elsewhere", fake.address));
    let error = McpServer::new("test", options).unwrap().probe().await.unwrap_err();
    assert!(error.contains("correct the path") && !error.contains("2024"), "{error}");
}

#[tokio::test]
async fn a_configured_revision_is_offered_at_once() {
    let fake = FakeServer::start(Kind::Sessions).await;
    let mut options = fake.options();
    options.revision = Some(McpRevision::V2025_11_25);
    let server = connect(options).await;
    assert_eq!(call(&server, "done").await.as_deref(), Ok("done"));
    let first = fake.shared.first_message.lock().unwrap().clone();
    assert_eq!(
        (&first["method"], &first["params"]["protocolVersion"]),
        (&json!("initialize"), &json!("2025-11-25"))
    );
    assert_eq!(fake.count("server/discover"), 0);
}

#[tokio::test]
async fn a_tool_that_asks_during_its_call_names_the_option_and_is_called_once() {
    let fake = FakeServer::start(Kind::Modern).await;
    let server = connect(fake.options()).await;
    let error = call(&server, "elicit").await.unwrap_err();
    assert!(
        error.starts_with("elicitation via server-initiated requests is unavailable"),
        "{error}"
    );
    assert!(
        error.contains("`revision = \"2025-11-25\"` of [mcp.test]")
            && error.contains("do not call it again"),
        "{error}"
    );
    assert_eq!(fake.count("elicit"), 1);
}

#[tokio::test]
async fn a_login_that_is_wanted_is_no_error_in_the_log() {
    let log = Log::default();
    let _logged = log.capture();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let tokens = Arc::new(PersonTokens::new(replica(&store), None));
    let fake = FakeServer::start(Kind::Login).await;
    let server = McpServer::build("notes".into(), fake.options(), Some(tokens)).unwrap();
    server.ready().await;
    assert!(server.supervisor.caller.wants_login());
    let fake = FakeServer::start(Kind::LoginForStream).await;
    let server = connect(fake.options()).await;
    fake.until("GET").await;
    assert_eq!(call(&server, "done").await.as_deref(), Ok("done"));
    server.stop().await;
    fake.until("DELETE").await;
    // `agui-observe` hides this one unless a filter names the library.
    let text = log.text();
    let errors = text
        .lines()
        .filter(|line| line.contains(" ERROR ") && !line.contains("rmcp::transport::worker"));
    assert_eq!(errors.collect::<Vec<_>>(), Vec::<&str>::new());
    assert_eq!(log.count("the MCP server wants a login"), 1);
}
