//! The client of an MCP server's current connection, or the reason for its absence.

use std::sync::{Mutex, PoisonError};

use super::client::McpClient;

pub(super) struct ClientSlot(Mutex<Result<McpClient, String>>);

impl ClientSlot {
    pub(super) fn empty(reason: &str) -> Self {
        Self(Mutex::new(Err(reason.to_owned())))
    }

    pub(super) fn set(&self, client: Result<McpClient, String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    pub(super) fn get(&self) -> Result<McpClient, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
