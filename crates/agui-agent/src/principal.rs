//! The identity that a request was authenticated as.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, LazyLock},
    time::SystemTime,
};

use serde_json::{Map, Value};

use agui_base::permits::ANONYMOUS;

/// The longest name, in bytes: threads are stored under it, and log lines quote it.
const MAX_NAME_BYTES: usize = 256;

/// The identity that a request was authenticated as. It owns the threads that its runs create.
///
/// Two principals are equal if their ids are, even with different claims or expiry. `Debug` shows
/// the names of claims, and not their values.
#[derive(Clone)]
pub struct Principal {
    id: Arc<str>,
    name_at: usize,
    claims: Option<Arc<Map<String, Value>>>,
    expires_at: Option<SystemTime>,
}

impl Principal {
    /// `source` is the origin of the name, such as `key` or `jwt:ISSUER`. It distinguishes equal
    /// names of different origin. The server chooses it, never the caller; escape `:` in a part
    /// that varies. Principals whose name is empty, longer than 256 bytes, or has control
    /// characters are refused.
    pub fn new(source: &str, name: &str) -> Self {
        Self {
            id: format!("{source}:{name}").into(),
            name_at: source.len() + 1,
            claims: None,
            expires_at: None,
        }
    }

    /// Adds facts that the credential states, such as a tenant, for tools.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        self.claims = (!claims.is_empty()).then(|| Arc::new(claims));
        self
    }

    /// Sets the time from which the credential is no longer accepted. Streams without an end of their own, such as
    /// `GET /threads/events`, then end.
    #[must_use]
    pub fn with_expiry(mut self, time: SystemTime) -> Self {
        self.expires_at = Some(time);
        self
    }

    /// The time from which the credential is no longer accepted; `None` if there is no such time.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.expires_at
    }

    /// A claim of the credential. From a token, only the claims in `JwtOptions::claims` are kept.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims.as_ref()?.get(name)
    }

    #[doc(hidden)]
    #[doc(hidden)]
    pub fn claims(&self) -> Option<&Map<String, Value>> {
        self.claims.as_deref()
    }

    /// The name, for logs and tools: an API key's name, or a token's subject.
    pub fn name(&self) -> &str {
        &self.id[self.name_at..]
    }

    /// Source and name, `SOURCE:NAME`: the key that threads are stored under.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id, which clones share.
    pub fn shared_id(&self) -> &Arc<str> {
        &self.id
    }
}

/// Returns the owner of a principal's threads and permits. `None` gives the owner of everything on
/// a server without authentication.
pub fn owner_of(principal: Option<&Principal>) -> Arc<str> {
    static NONE: LazyLock<Arc<str>> = LazyLock::new(|| ANONYMOUS.into());
    principal.map_or_else(|| &*NONE, Principal::shared_id).clone()
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, self.name_at) == (&other.id, other.name_at)
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.id, self.name_at).hash(state);
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claims: Vec<_> = self.claims.iter().flat_map(|claims| claims.keys()).collect();
        f.debug_struct("Principal").field("id", &self.id).field("claims", &claims).finish()
    }
}

/// Returns whether threads can be stored under a name, and log lines can quote it.
pub fn is_valid_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && !name.trim().is_empty() && !name.chars().any(char::is_control)
}
