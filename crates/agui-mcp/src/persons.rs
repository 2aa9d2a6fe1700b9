//! A server that people log in at (`login = "person"`): each person has a session of their own, with their own tools.
//!
//! The server itself is connected without a login. If it lists tools without a login, all runs see
//! them; a run of a person who has logged in gets the tools of the person's session instead. The
//! tools of other servers are unknown before a login, so a tool `NAME_connect` asks for one.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;

use super::{McpServer, McpServerOptions, listing, server::PersonSessions};
use agui_agent::{RunContext, host::owner_of};
use agui_base::InvalidOption;
use agui_protocol::MessageContent;
use agui_tools::{
    FnTool, Repeat, Tool, ToolContext, ToolError, ToolSource as _, ToolSpec,
    login::{LoginService, PersonLogin, PersonTokens},
};

/// The largest number of open sessions of people to one server. The least recently used is closed.
const MAX_SESSIONS: usize = 200;
/// A session that no run has used for this long is closed.
const IDLE_TIME: Duration = Duration::from_secs(600);

/// The sessions of people with one server.
struct Persons {
    server: Arc<str>,
    options: McpServerOptions,
    login: PersonLogin,
    sessions: Mutex<HashMap<Arc<str>, PersonSession>>,
}

struct PersonSession {
    /// The id of the login that the session uses.
    login_id: String,
    server: Arc<McpServer>,
    used_at: Instant,
}

impl Persons {
    fn new(server: Arc<str>, options: McpServerOptions, login: PersonLogin) -> Self {
        Self { server, options, login, sessions: Mutex::default() }
    }

    /// Returns a new session of an owner; without an owner, the session without a login.
    fn open(self: &Arc<Self>, owner: Option<Arc<str>>) -> Result<McpServer, InvalidOption> {
        let tokens = Arc::new(PersonTokens::new(self.login.clone(), owner));
        let mut server = McpServer::build(self.server.clone(), self.options.clone(), Some(tokens))?;
        server.connect = Some(self.connect_tool());
        Ok(server)
    }

    /// Returns the tool by which a model asks for a login.
    fn connect_tool(self: &Arc<Self>) -> Arc<dyn Tool> {
        let server = &self.server;
        let about = format!(
            "Connects the user's account at {server}. Call it if the user wants something for which {server} is needed and \
             no other tool of {server} is available. The user is asked to log in."
        );
        let parameters =
            json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let spec = ToolSpec::new(listing::tool_name(server, "connect"), about, parameters);
        let persons = self.clone();
        let tool = FnTool::from_spec(spec, move |_, cx| persons.clone().connect(cx));
        Arc::new(tool.repeat(Repeat::Safe).with_server(server))
    }

    async fn connect(self: Arc<Self>, cx: ToolContext) -> Result<MessageContent, ToolError> {
        let server = &self.server;
        let Some(session) = self.clone().session(cx.run()).await else {
            return Err(self.login.question(&cx));
        };
        session.ready().await;
        if session.is_connected() {
            let tools = session.tools();
            let names: Vec<_> = tools.iter().map(|tool| &*tool.spec().name).collect();
            Ok(format!("The account at {server} is connected. Tools: {}.", names.join(", ")).into())
        } else if session.supervisor.caller.wants_login() {
            Err(self.login.question(&cx))
        } else {
            Err(session.supervisor.caller.unavailable())
        }
    }
}

#[async_trait]
impl PersonSessions for Persons {
    async fn session(self: Arc<Self>, cx: &RunContext) -> Option<Arc<McpServer>> {
        let owner = owner_of(cx.principal());
        let login_id = self.login.id(&owner).await;
        let mut sessions = self.sessions.lock();
        sessions.retain(|_, known| known.used_at.elapsed() < IDLE_TIME);
        let Some(login_id) = login_id else {
            sessions.remove(&owner);
            return None;
        };
        if let Some(known) = sessions.get_mut(&owner).filter(|known| known.login_id == login_id) {
            known.used_at = Instant::now();
            return Some(known.server.clone());
        }
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = sessions
                .iter()
                .min_by_key(|(_, known)| known.used_at)
                .map(|(owner, _)| owner.clone())
        {
            sessions.remove(&oldest);
        }
        let opened = self.open(Some(owner.clone()));
        let opened = opened
            .inspect_err(|error| tracing::warn!(server = &*self.server, %error, "cannot connect"));
        let server = Arc::new(opened.ok()?);
        server.start();
        sessions.insert(
            owner,
            PersonSession { login_id, server: server.clone(), used_at: Instant::now() },
        );
        Some(server)
    }

    fn close(&self) {
        // Dropped after the lock is released, because each drop closes a session.
        let closed = std::mem::take(&mut *self.sessions.lock());
        drop(closed);
    }
}

impl McpServer {
    /// A server that people log in at.
    #[doc(hidden)]
    pub fn with_logins(
        name: Arc<str>,
        options: McpServerOptions,
        logins: Arc<LoginService>,
    ) -> Result<Self, InvalidOption> {
        let login = PersonLogin::new(logins, name.clone());
        let persons = Arc::new(Persons::new(name, options, login));
        let mut server = persons.open(None)?;
        server.persons = Some(persons);
        Ok(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_agent::Principal;
    use agui_store::{MemoryStore, Store};
    use agui_tools::login::test_logins::{log_in_as, replica};

    #[tokio::test]
    async fn the_least_recently_used_sessions_are_closed() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let login = replica(&store);
        let options = McpServerOptions::url("http://127.0.0.1:9/mcp");
        let persons = Arc::new(Persons::new("notes".into(), options, login.clone()));
        let of = |name: &str| {
            let principal = Some(Principal::new("key", name));
            RunContext::new("t", "r", "a").with_caller(principal, [])
        };
        assert!(persons.clone().session(&of("0")).await.is_none());
        for number in 0..=MAX_SESSIONS {
            log_in_as(&login, &format!("key:{number}"), String::new(), 60_000).await;
            let opened = persons.clone().session(&of(&number.to_string())).await.unwrap();
            let again = persons.clone().session(&of(&number.to_string())).await.unwrap();
            assert!(Arc::ptr_eq(&opened, &again));
            // The clock may be coarse.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let owners = || persons.sessions.lock().keys().cloned().collect::<Vec<_>>();
        assert!(owners().len() == MAX_SESSIONS && !owners().contains(&"key:0".into()));
        persons.sessions.lock().values_mut().for_each(|it| it.used_at -= IDLE_TIME);
        persons.clone().session(&of("7")).await.unwrap();
        assert_eq!(owners(), ["key:7".into()]);
        // Another login opens another session.
        let before = persons.clone().session(&of("7")).await.unwrap();
        store.sealed_values().unwrap().delete_sealed("key:7", None, None).await.unwrap();
        assert!(persons.clone().session(&of("7")).await.is_none());
        log_in_as(&login, "key:7", String::new(), 60_000).await;
        assert!(!Arc::ptr_eq(&before, &persons.clone().session(&of("7")).await.unwrap()));
        persons.close();
        assert!(owners().is_empty());
    }
}
