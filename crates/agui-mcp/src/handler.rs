//! Receives a server's notifications and questions, and passes them on to the session and to the calls in flight.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CustomNotification, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationCapability, ExtensionCapabilities, FormElicitationCapability,
        Implementation, ProgressNotificationParam, ProtocolVersion, TASKS_EXTENSION_ID,
        UrlElicitationCapability,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext},
};
use serde_json::json;
use tokio::sync::{Notify, oneshot};

use super::{
    flood::FloodGauge,
    in_flight::{CallsInFlight, Elicitation},
    tool_ui,
    wanted::Wanted,
};
use agui_protocol::JsonObject;

#[derive(Default)]
pub(super) struct ServerHandler {
    pub(super) server: Arc<str>,
    pub(super) allows_questions: bool,
    pub(super) shows_apps: bool,
    /// The revision that `initialize` offers. Default: the newest.
    pub(super) revision: ProtocolVersion,
    pub(super) state: Arc<SessionState>,
}

/// The state that the parts of a session share.
#[derive(Default)]
pub(super) struct SessionState {
    pub(super) calls: CallsInFlight,
    pub(super) gauge: FloodGauge,
    pub(super) tools_changed: Notify,
    /// Notified when messages need another session.
    pub(super) lost: Notify,
    /// Notified when a call has failed or timed out: the server may no longer respond.
    pub(super) doubtful: Notify,
    /// The time for which the last list of tools is valid, as its server says.
    pub(super) list_age: Mutex<Duration>,
}

impl ServerHandler {
    /// Returns the reply of a person; `None` if no person can be asked.
    async fn ask(
        &self,
        params: ElicitRequestParams,
        context: &RequestContext<RoleClient>,
    ) -> Option<ElicitResult> {
        let (message, wanted) = Wanted::read(&serde_json::to_value(params).ok()?)?;
        if !self.allows_questions || !wanted.is_short(&message) {
            tracing::debug!(
                server = &*self.server,
                "a question of the MCP server is not asked: it is too long, or off"
            );
            return None;
        }
        let call = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(call)) => Some(call.clone()),
            _ => None,
        };
        let (reply, replied) = oneshot::channel();
        if self
            .state
            .calls
            .ask(call.as_ref(), Elicitation { message, wanted, reply })
            .await
            .is_none()
        {
            tracing::debug!(
                server = &*self.server,
                "a question of the MCP server is not asked: it may be of any call"
            );
            return None;
        }
        replied.await.ok()
    }
}

impl ClientHandler for ServerHandler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.state.gauge.count();
        self.state.tools_changed.notify_one();
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.state.gauge.count();
        self.state.calls.progress(params).await;
    }

    #[allow(deprecated, reason = "servers of earlier versions of the protocol send logs")]
    async fn on_logging_message(
        &self,
        _: rmcp::model::LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.state.gauge.count();
    }

    async fn on_custom_notification(
        &self,
        _: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        self.state.gauge.count();
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        self.state.gauge.count();
        // The library logs each error, so a server that asks in a loop gets no error.
        let reply = self.ask(params, &context).await;
        Ok(reply.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel)))
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.allows_questions {
            let elicitation =
                ElicitationCapability::new().with_form(FormElicitationCapability::default());
            capabilities.elicitation =
                Some(elicitation.with_url(UrlElicitationCapability::default()));
        }
        let mut extensions =
            ExtensionCapabilities::from([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())]);
        if self.shows_apps {
            let settings =
                JsonObject::from_iter([("mimeTypes".to_owned(), json!([tool_ui::MIME_TYPE]))]);
            extensions.insert(tool_ui::EXTENSION.to_owned(), settings);
        }
        capabilities.extensions = Some(extensions);
        ClientConfig::new(
            capabilities,
            Implementation::new(agui_base::SERVER_NAME, env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(self.revision.clone())
    }
}
