//! [`RunContext`]: ids, principal, forwarded headers and token usage of a run.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    auth::Principal,
    protocol::{RunId, ThreadId, TokenUsage},
};

/// The request headers passed to agents (`pass_headers`), in the order of the request. `Debug` shows the names only.
#[derive(Clone, Default)]
pub struct Forwarded(Option<Arc<[(String, String)]>>);

impl Forwarded {
    /// Headers with lower-case names.
    pub fn new(headers: impl IntoIterator<Item = (String, String)>) -> Self {
        let headers: Arc<[_]> = headers.into_iter().collect();
        Self((!headers.is_empty()).then_some(headers))
    }

    /// The values of a header. `name` is in lower case.
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

/// The names of a run, as they are logged.
#[derive(Debug, Clone)]
pub struct RunIdentity {
    /// The thread's id.
    pub thread_id: ThreadId,
    /// The run's id.
    pub run_id: RunId,
    /// The name that the agent is served under.
    pub agent: Arc<str>,
    /// The authenticated caller; `None` on a server without authentication.
    pub principal: Option<Principal>,
}

/// The run that an agent answers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunContext(Arc<ContextParts>);

#[derive(Debug)]
struct ContextParts {
    identity: RunIdentity,
    forwarded: Forwarded,
    usage: Mutex<Vec<TokenUsage>>,
}

impl RunContext {
    /// A context without forwarded headers.
    pub fn new(identity: RunIdentity) -> Self {
        Self::with_forwarded(identity, Forwarded::default())
    }

    /// A context with forwarded headers.
    pub fn with_forwarded(identity: RunIdentity, forwarded: Forwarded) -> Self {
        Self(Arc::new(ContextParts { identity, forwarded, usage: Mutex::default() }))
    }

    /// The thread's id.
    pub fn thread_id(&self) -> &ThreadId {
        &self.0.identity.thread_id
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.0.identity.run_id
    }

    /// The name that the agent is served under.
    pub fn agent(&self) -> &str {
        &self.0.identity.agent
    }

    /// The authenticated caller; `None` on a server without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.identity.principal.as_ref()
    }

    /// The request headers that are passed to agents.
    pub fn forwarded(&self) -> &Forwarded {
        &self.0.forwarded
    }

    /// All names of the run.
    pub fn identity(&self) -> &RunIdentity {
        &self.0.identity
    }

    /// Adds the tokens of a model call. The terminal event has the sums, also when the run fails or is cancelled.
    pub fn add_usage(&self, usage: TokenUsage) {
        let mut entries = self.0.usage.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.iter_mut().find(|e| e.provider == usage.provider && e.model == usage.model) {
            Some(entry) => entry.add(&usage),
            None => entries.push(usage),
        }
    }

    /// The tokens so far, summed for each provider and model.
    pub fn usage(&self) -> Vec<TokenUsage> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_forwarded_headers_shows_no_values() {
        let forwarded = Forwarded::new([("x-tenant".to_owned(), "acme".to_owned())]);
        assert_eq!(forwarded.values("x-tenant").collect::<Vec<_>>(), ["acme"]);
        assert_eq!(format!("{forwarded:?}"), r#"{"x-tenant"}"#);
    }
}
