//! The logins of all servers, and their store.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    seal::{MIN_KEY_BYTES, Sealer},
    server::LoginServer,
};
use crate::{Question, ToolContext, ToolError};
use agui_agent::host::{LoginError, owner_of};
use agui_base::InvalidOption;
use agui_protocol::own_names::MCP_SERVER;
use agui_store::{
    Millis, Store, StoreError,
    host::now,
    sealed::{ExpectedValue, SealedStore, SealedValue},
};

/// The number of times that one call asks for a login.
const MAX_QUESTIONS: usize = 3;

/// The values that are known once this server has started.
pub struct LoginPlace {
    pub store: Arc<dyn Store>,
    /// The URL of this server for browsers, without a slash at its end.
    pub base_url: String,
}

/// The logins of all servers.
pub struct LoginService {
    pub(super) sealer: Sealer,
    pub(super) servers: IndexMap<String, LoginServer>,
    place: OnceLock<LoginPlace>,
}

impl LoginService {
    /// # Errors
    /// If the key is too short.
    pub fn new(key: &str, servers: IndexMap<String, LoginServer>) -> Result<Self, InvalidOption> {
        let too_short = || {
            InvalidOption::new("key_env", format!("the key needs at least {MIN_KEY_BYTES} bytes"))
        };
        Ok(Self {
            sealer: Sealer::new(key).ok_or_else(too_short)?,
            servers,
            place: OnceLock::new(),
        })
    }

    /// Sets the place. Has no effect if there is one.
    pub fn set_place(&self, place: LoginPlace) {
        let _ = self.place.set(place);
    }

    /// Returns advice about the redirect addresses of configured clients, for `base` as the URL of
    /// this server. If `is_online`, MCP servers are asked for their issuers.
    pub async fn redirect_advice(&self, base: &str, is_online: bool) -> Vec<String> {
        let mut advice = Vec::new();
        for (name, server) in &self.servers {
            let text = server.redirect_advice(base, is_online).await;
            advice.extend(text.map(|text| format!("login at {name}: {text}")));
        }
        advice
    }

    pub(super) fn base(&self) -> Option<&str> {
        self.place.get().map(|place| &*place.base_url)
    }

    pub(super) fn server(&self, name: &str) -> Result<&LoginServer, LoginError> {
        self.servers
            .get(name)
            .ok_or(LoginError::Refused("This server no longer knows the server of the login."))
    }

    pub(super) fn stored(&self) -> Result<&dyn SealedStore, LoginError> {
        let values = self.place.get().and_then(|place| place.store.sealed_values());
        values.ok_or_else(|| StoreError::Unavailable("the store keeps no logins".into()).into())
    }

    /// Reads a value with its version. A value that was sealed with another key is ignored.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        owner: &str,
        name: &str,
    ) -> Result<Option<(T, i64)>, LoginError> {
        let values = self.stored()?.sealed(owner).await?;
        let now = now();
        let found = values
            .into_iter()
            .find(|value| value.name == name && value.until.is_none_or(|until| until >= now));
        Ok(found.and_then(|found| {
            Some((self.sealer.open(&place(owner, name), &found.value)?, found.version))
        }))
    }

    /// Writes a value. Returns its version; `None` if the stored one is not as expected.
    pub(super) async fn write(
        &self,
        owner: &str,
        name: &str,
        value: &impl Serialize,
        until: Option<Millis>,
        expected: ExpectedValue,
    ) -> Result<Option<i64>, LoginError> {
        let sealed = self.sealer.seal(&place(owner, name), value);
        let sealed =
            sealed.ok_or_else(|| LoginError::Failed("a value cannot be sealed".to_owned()))?;
        let value = SealedValue::new(name.to_owned(), sealed, until);
        Ok(self.stored()?.put_sealed(owner, &value, expected).await?.then_some(value.version))
    }
}

/// Returns the place of a value: sealed for one owner and name, it cannot be opened for another.
pub(super) fn place(owner: &str, name: &str) -> String {
    format!("{}:{owner}{name}", owner.len())
}

/// The logins at one server.
#[derive(Clone)]
pub struct PersonLogin {
    pub(super) service: Arc<LoginService>,
    pub(super) server: Arc<str>,
}

impl PersonLogin {
    pub fn new(service: Arc<LoginService>, server: Arc<str>) -> Self {
        Self { service, server }
    }

    /// Returns the question to log in, as the error of the call; another error if the person was
    /// asked often enough. A call whose person declines is not made again.
    pub fn question(&self, cx: &ToolContext) -> ToolError {
        let server = &self.server;
        let is_mcp = self.service.server(server).is_ok_and(LoginServer::is_mcp);
        for number in 1..=MAX_QUESTIONS {
            let Some(url) = self.service.link(&owner_of(cx.principal()), server) else {
                return ToolError::new(format!(
                    "nobody can log in at `{server}`: a login needs [server] public_url"
                ));
            };
            let message = format!(
                "Connect your account at `{server}`: open the page, log in there, and come back."
            );
            let question = Question::visit(message, url).needed(format_args!("login-{number}"));
            let mut question = question.metadata("toolName", cx.tool_name().into());
            if is_mcp {
                question = question.metadata(MCP_SERVER, server.as_ref().into());
            }
            // A question that is answered did not help: the server still wants a login.
            if let Err(question) = cx.reply_to(question) {
                return question;
            }
        }
        ToolError::new(format!("The user has not connected an account at `{server}`."))
    }
}
