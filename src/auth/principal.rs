//! The identity that a request was authenticated as.

use std::sync::Arc;

/// The longest name, in bytes: threads are stored under it, and log lines quote it.
const MAX_NAME_BYTES: usize = 256;

/// The identity that a request was authenticated as. It owns the threads that its runs create.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    id: Arc<str>,
    name_at: usize,
}

impl Principal {
    /// `source` says where the name comes from, such as `key` or `jwt:ISSUER`, and keeps equal names of different
    /// origin apart. The server chooses it, never the caller; escape `:` in a part that varies. Principals whose name
    /// is empty, longer than 256 bytes, or has control characters are refused.
    pub fn new(source: &str, name: &str) -> Self {
        Self { id: format!("{source}:{name}").into(), name_at: source.len() + 1 }
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

pub(super) fn is_valid_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && !name.trim().is_empty() && !name.chars().any(char::is_control)
}
