//! The session through which an MCP server is called now, and the calls that wait for one.
//!
//! MCP servers are restarted, and start at the same time as this one. So a call that meets a server
//! which is away wakes the supervisor and waits: the supervisor connects for all calls that wait.

use std::sync::Arc;

use tokio::sync::{Notify, Semaphore, watch};

use super::client::McpClient;

/// The largest number of calls that wait for one server. Further calls fail at once.
const MAX_WAITING: usize = 100;

#[derive(Clone)]
pub(super) enum SessionStatus {
    Open(McpClient),
    /// The reason why there is no session. The supervisor opens one.
    Away(String),
    /// The reason why no session will be opened: the server is stopped, or wants a login.
    Closed(String),
}

pub(super) struct CurrentSession {
    status: watch::Sender<SessionStatus>,
    waiting: Semaphore,
    /// Notified when a call begins to wait.
    begins: Notify,
}

impl CurrentSession {
    pub(super) fn new() -> Self {
        let status = SessionStatus::Away("it is not started".to_owned());
        let waiting = Semaphore::new(MAX_WAITING);
        Self { status: watch::Sender::new(status), waiting, begins: Notify::new() }
    }

    /// Returns the client of the session, or the reason for its absence.
    pub(super) fn client(&self) -> Result<McpClient, String> {
        self.status.borrow().client()
    }

    pub(super) fn set(&self, status: SessionStatus) {
        self.status.send_replace(status);
    }

    /// Notes that messages need another session than a client's, and tells the supervisor.
    pub(super) fn lose(&self, lost: &McpClient, reason: &str) {
        self.status.send_if_modified(|status| {
            let is_lost = matches!(status, SessionStatus::Open(client) if Arc::ptr_eq(&client.state, &lost.state));
            if is_lost {
                *status = SessionStatus::Away(reason.to_owned());
            }
            is_lost
        });
        lost.state.lost.notify_one();
    }

    /// Waits while the server is away, unless too many others wait. Returns the client, or the reason for its absence.
    pub(super) async fn opened(&self) -> Result<McpClient, String> {
        let (Ok(_place), mut status) = (self.waiting.try_acquire(), self.status.subscribe()) else {
            return self.client();
        };
        self.begins.notify_one();
        // `self` holds the sender, so this cannot fail.
        let _ = status.wait_for(|status| !matches!(status, SessionStatus::Away(_))).await;
        self.client()
    }

    /// Waits until a call waits.
    pub(super) async fn awaited(&self) {
        while self.waiting.available_permits() == MAX_WAITING {
            self.begins.notified().await;
        }
    }
}

impl SessionStatus {
    fn client(&self) -> Result<McpClient, String> {
        match self {
            Self::Open(client) => Ok(client.clone()),
            Self::Away(reason) | Self::Closed(reason) => Err(reason.clone()),
        }
    }
}

#[cfg(test)]
impl CurrentSession {
    /// Returns the changes of the status. Each attempt to connect that fails is one.
    pub(super) fn statuses(&self) -> watch::Receiver<SessionStatus> {
        self.status.subscribe()
    }

    /// Waits until so many calls wait.
    pub(super) async fn has_waiting(&self, calls: usize) {
        let has_waiting = async {
            while self.waiting.available_permits() != MAX_WAITING - calls {
                tokio::task::yield_now().await;
            }
        };
        let limit = std::time::Duration::from_secs(30);
        tokio::time::timeout(limit, has_waiting).await.expect("the calls do not wait");
    }
}
