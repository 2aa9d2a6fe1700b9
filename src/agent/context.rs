//! What an agent knows about its run besides the input.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    auth::Principal,
    protocol::{RunId, ThreadId, TokenUsage},
};

/// What the client's request carried in headers that the configuration lets through to agents: names in lower case, in
/// the order they came. No others are ever in here, and logs see the names alone.
///
/// ```
/// use agui_server::agent::Forwarded;
///
/// let forwarded = Forwarded::new([("x-tenant".to_owned(), "acme".to_owned())]);
/// assert_eq!(forwarded.values("x-tenant").collect::<Vec<_>>(), ["acme"]);
/// assert_eq!(format!("{forwarded:?}"), r#"{"x-tenant"}"#);
/// ```
#[derive(Clone, Default)]
pub struct Forwarded(Option<Arc<[(String, String)]>>);

impl Forwarded {
    /// These headers, by lower-case name.
    pub fn new(headers: impl IntoIterator<Item = (String, String)>) -> Self {
        let headers: Arc<[_]> = headers.into_iter().collect();
        Self((!headers.is_empty()).then_some(headers))
    }

    /// The values of a header, named in lower case.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let headers = self.0.as_deref().unwrap_or_default().iter();
        headers.filter(move |(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.as_deref().unwrap_or_default().iter().map(|(name, _)| name)).finish()
    }
}

/// Which run this is: what logs name it by.
#[derive(Debug, Clone)]
pub struct RunIdentity {
    /// The conversation.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// The agent that answers it, by the name it is served under.
    pub agent: Arc<str>,
    /// Who asked; `None` when the server authenticates nobody.
    pub principal: Option<Principal>,
}

/// A run's surroundings, for the agent that answers it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    identity: RunIdentity,
    forwarded: Forwarded,
    usage: Mutex<Vec<TokenUsage>>,
}

impl RunContext {
    /// The surroundings of a run. The server makes them; tests of an agent may, too.
    pub fn new(identity: RunIdentity) -> Self {
        Self::with_forwarded(identity, Forwarded::default())
    }

    /// The surroundings of a run whose request carried headers for agents.
    pub fn with_forwarded(identity: RunIdentity, forwarded: Forwarded) -> Self {
        Self(Arc::new(Inner { identity, forwarded, usage: Mutex::default() }))
    }

    /// The conversation the run belongs to.
    pub fn thread_id(&self) -> &ThreadId {
        &self.0.identity.thread_id
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.0.identity.run_id
    }

    /// The name the agent is served under.
    pub fn agent(&self) -> &str {
        &self.0.identity.agent
    }

    /// Who asked for the run; `None` when the server authenticates nobody.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.identity.principal.as_ref()
    }

    /// The request's headers that are meant for agents.
    pub fn forwarded(&self) -> &Forwarded {
        &self.0.forwarded
    }

    /// Everything that identifies the run.
    pub fn identity(&self) -> &RunIdentity {
        &self.0.identity
    }

    /// Reports what a model call cost. The run's last event carries the sums, one entry a provider and
    /// model, also when the run fails or is stopped.
    pub fn add_usage(&self, usage: TokenUsage) {
        let mut entries = self.0.usage.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.iter_mut().find(|e| e.provider == usage.provider && e.model == usage.model) {
            Some(entry) => entry.add(&usage),
            None => entries.push(usage),
        }
    }

    /// What the run's model calls have cost so far.
    pub fn usage(&self) -> Vec<TokenUsage> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
