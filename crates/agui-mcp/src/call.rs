//! A call of a run to an MCP server, from the request to the response: time limits, progress, and questions to a person.
//!
//! A server of a revision before 2026-07-28 asks while it works on the call. A question without a
//! reply ends the call: it is cancelled at the server, and the run ends with an interrupt. The next
//! run of the thread makes the call again from its start, so **the server repeats its work before
//! the question**. If it asks with the same text and form, it gets the person's reply. Any other
//! question is a new one, and so is one that is asked a second time within a call.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use rmcp::model::{ClientRequest, ElicitResult, ElicitationAction, ProgressNotificationParam};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::{
    client::{McpClient, PendingRequest, RequestError},
    current_session::CurrentSession,
    http_client::is_unauthorized,
    in_flight::{CallSignal, Elicitation, StartedCall},
    options::McpServerOptions,
    tokens::Tokens,
    wanted::Wanted,
};
use agui_base::{
    InvalidOption,
    deadline::deadline,
    text::{error_chain, short_line, short_paragraph},
};
use agui_protocol::own_names::MCP_SERVER;
use agui_tools::{
    Question, ToolContext, ToolError, Validator,
    host::{CallerHeaders, Secrets, digest},
    login::PersonTokens,
};

/// The shortest time between two events about the progress of a call.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// The number of questions that one call can ask.
const MAX_QUESTIONS: usize = 16;
/// The number of times that a server gets a call that it refuses until a person has visited pages.
const MAX_VISITS: usize = 3;
/// The length of the digest that tells questions apart, before base64.
const QUESTION_KEY_BYTES: usize = 12;

/// A result as JSON, and the secrets that must be removed from it.
pub(super) type McpResponse = Result<(Value, Secrets), ToolError>;

/// The way from tools to one MCP server.
pub(super) struct McpCaller {
    pub(super) server: Arc<str>,
    pub(super) options: McpServerOptions,
    pub(super) session: CurrentSession,
    pub(super) caller_headers: CallerHeaders,
    secrets: Secrets,
    /// The person's tokens, if people log in at the server.
    person: Option<Arc<PersonTokens>>,
}

impl McpCaller {
    pub(super) fn new(
        server: Arc<str>,
        options: McpServerOptions,
        secrets: Secrets,
        person: Option<Arc<PersonTokens>>,
    ) -> Result<Self, InvalidOption> {
        let caller_headers = options.caller_headers()?;
        let session = CurrentSession::new();
        Ok(Self { server, options, session, caller_headers, secrets, person })
    }

    /// Returns whether the server has refused the last request because nobody is logged in.
    pub(super) fn wants_login(&self) -> bool {
        self.person.as_ref().is_some_and(|tokens| tokens.is_refused())
    }

    /// Returns a text of the server without the secrets that it may repeat.
    pub(super) fn redacted(&self, text: String, tokens: Option<&Tokens>) -> String {
        let mut secrets = self.secrets.clone();
        tokens.iter().flat_map(|tokens| tokens.secrets()).for_each(|secret| secrets.add(&secret));
        secrets.redact(&text).unwrap_or(text)
    }

    /// Returns an error: the name of the server, and `what` it does.
    pub(super) fn error(&self, what: impl fmt::Display) -> ToolError {
        ToolError::new(format!("The MCP server `{}` {what}", self.server))
    }

    pub(super) fn unavailable(&self) -> ToolError {
        self.error("is not available at the moment. Try again later.")
    }

    /// Sends a request, and returns its result. A request that meets a server which is away waits for a session, and is
    /// then sent once more.
    pub(super) async fn send_once(&self, request: ClientRequest, cx: &ToolContext) -> McpResponse {
        // OpenTelemetry's conventions for MCP want these attributes on the tool's span, and no span of the request.
        cx.trace()
            .span()
            .record("mcp.method.name", request.method())
            .record("agui.mcp.server", &*self.server);
        let client = match self.session.client() {
            Ok(client) => client,
            Err(_) => self.opened_session(cx).await?,
        };
        match self.send_over(&client, request.clone(), cx).await? {
            (Err(RequestError::Away(_)), _) => {
                let client = self.opened_session(cx).await?;
                let (responded, secrets) = self.send_over(&client, request, cx).await?;
                responded
                    .map_err(|error| self.tool_error(error, &secrets, cx))
                    .map(|value| (value, secrets))
            }
            (Err(error), secrets) => Err(self.tool_error(error, &secrets, cx)),
            (Ok(response), secrets) => Ok((response, secrets)),
        }
    }

    /// Waits for a session while the server is away.
    async fn opened_session(&self, cx: &ToolContext) -> Result<McpClient, ToolError> {
        let opened = cx.run().wait_for_server(self.session.opened()).await;
        opened.unwrap_or_else(|| self.session.client()).map_err(|reason| match &self.person {
            Some(tokens) if tokens.is_refused() => tokens.login.question(cx),
            _ => self.unavailable().caused_by(reason),
        })
    }

    /// Sends a request over a session. Returns what has come of it, and the secrets that a text about it can have.
    ///
    /// # Errors
    /// If the call ends before its response.
    async fn send_over(
        &self,
        client: &McpClient,
        request: ClientRequest,
        cx: &ToolContext,
    ) -> Result<(Result<Value, RequestError>, Secrets), ToolError> {
        let mut headers = self.caller_headers.for_call(cx)?;
        let mut secrets = self.secrets.clone();
        secrets.extend(&Secrets::from_headers(&headers));
        cx.trace().add_to(&mut headers);
        let _slot = client.state.calls.slot().await;
        let add_tokens = |secrets: &mut Secrets| {
            client.tokens.iter().flat_map(Tokens::secrets).for_each(|word| secrets.add(&word))
        };
        let responded =
            match client.send_for_run(request, headers, cx, self.options.max_timeout).await {
                Ok((pending, open)) => {
                    add_tokens(&mut secrets);
                    let begin = Instant::now();
                    let call = OngoingCall {
                        caller: self,
                        secrets: &secrets,
                        cx,
                        begin,
                        last_sign: begin,
                        last_progress: None,
                        last_shown: None,
                        asked: HashMap::new(),
                    };
                    call.finish(pending, open, client).await?
                }
                Err(error) => Err(error),
            };
        // A token can have been renewed during the call.
        add_tokens(&mut secrets);
        match &responded {
            Err(RequestError::Away(error)) => {
                let reason = error_chain(&**error);
                self.session.lose(client, &secrets.redact(&reason).unwrap_or(reason));
            }
            // A failure of one call says nothing about the others. A ping tells whether the server still responds.
            Err(RequestError::Unknown(_)) => client.state.doubtful.notify_one(),
            _ => {}
        }
        Ok((responded, secrets))
    }

    /// Returns the server's question, without a key. Its text says who asks: a front end may show nothing else.
    pub(super) fn question(&self, message: &str, wanted: Wanted, cx: &ToolContext) -> Question {
        let message = format!("{} asks: {message}", self.server);
        let question = match wanted {
            Wanted::Form(form) => Question::new(message).response_schema(form),
            Wanted::Visit(url) => Question::visit(message, url),
        };
        question
            .metadata(MCP_SERVER, self.server.as_ref().into())
            .metadata("toolName", cx.tool_name().into())
    }

    /// Asks a person to visit the pages without which the server refuses the call. Then the call is
    /// made again, and can be refused again.
    fn ask_for_visits(&self, visits: &[Value], cx: &ToolContext) -> ToolError {
        for number in 1..=MAX_VISITS {
            let mut open = None;
            for (at, visit) in visits.iter().enumerate().take(MAX_QUESTIONS) {
                let Some((message, wanted @ Wanted::Visit(_))) =
                    self.wanted("elicitation/create", visit)
                else {
                    return self.error("asks for a visit that cannot be made here.");
                };
                let question = self
                    .question(&message, wanted, cx)
                    .needed(format_args!("mcp-visit-{number}-{at}"));
                match cx.reply_to(question) {
                    Ok(_) => {}
                    Err(question) if question.is_question() => open = Some(question),
                    Err(error) => return error,
                }
            }
            if let Some(question) = open {
                return question;
            }
        }
        self.error("refuses the call although the user has opened its pages.")
    }

    fn tool_error(&self, error: RequestError, secrets: &Secrets, cx: &ToolContext) -> ToolError {
        let cause = |error: Box<dyn std::error::Error + Send + Sync>| {
            let text = error_chain(&*error);
            secrets.redact(&text).unwrap_or(text)
        };
        match error {
            RequestError::Refused { visits, .. } if !visits.is_empty() => {
                self.ask_for_visits(&visits, cx)
            }
            RequestError::Refused { reason, .. } => {
                let reason = secrets.redact(&reason).unwrap_or(reason);
                self.error(format_args!("refuses the call: {}", short_paragraph(&reason)))
            }
            RequestError::NotTaken(error)
                if let Some(tokens) = &self.person
                    && is_unauthorized(&*error) =>
            {
                tokens.login.question(cx)
            }
            RequestError::NotTaken(error) | RequestError::Away(error) => self
                .error("did not take the call, so it was not carried out. Try again later.")
                .caused_by(cause(error)),
            RequestError::Unknown(error) => self
                .error("failed during the call; it is unknown if the call was carried out.")
                .caused_by(cause(error)),
        }
    }
}

struct OngoingCall<'c> {
    caller: &'c McpCaller,
    /// The words that progress must not show.
    secrets: &'c Secrets,
    cx: &'c ToolContext,
    begin: Instant,
    /// The time of the last progress, or of the start.
    last_sign: Instant,
    last_progress: Option<f64>,
    last_shown: Option<Instant>,
    /// The number of times that each question was asked.
    asked: HashMap<String, usize>,
}

impl OngoingCall<'_> {
    /// Returns the response to the request.
    ///
    /// # Errors
    /// If the call ends earlier: it takes too long, or waits for a person.
    async fn finish(
        mut self,
        mut pending: PendingRequest,
        mut open: StartedCall,
        client: &McpClient,
    ) -> Result<Result<Value, RequestError>, ToolError> {
        let McpServerOptions { timeout, max_timeout, .. } = self.caller.options;
        loop {
            let (idle_end, end) =
                (deadline(self.last_sign, timeout), deadline(self.begin, max_timeout));
            tokio::select! {
                biased;
                response = pending.response() => {
                    open.finish();
                    return Ok(response);
                }
                () = sleep_until(idle_end.min(end)) => {
                    // The server is told to cancel the call before it is pinged.
                    drop(pending);
                    client.state.doubtful.notify_one();
                    let limit = if idle_end <= end { timeout } else { max_timeout };
                    return Err(self.caller.error(format_args!("did not answer within {} s.", limit.as_secs_f32())));
                }
                Some(signal) = open.signals.recv() => match signal {
                    CallSignal::Progress(progress) => self.progress(progress),
                    CallSignal::Question(Elicitation { message, wanted, reply }) => {
                        match self.given_reply(message, wanted).await {
                            Ok(given) => drop(reply.send(given)),
                            Err(error) => {
                                // Before `reply` is dropped, which replies `cancel`.
                                pending.cancel().await;
                                if error.is_question() {
                                    // The next run makes the call again. The server is told twice that this one is
                                    // over: by the cancellation, and by the reply `cancel` to its question.
                                    open.finish();
                                }
                                return Err(error);
                            }
                        }
                    }
                },
            }
        }
    }

    /// Progress has to increase (<https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress>);
    /// other progress does not extend the time limit.
    fn progress(&mut self, report: ProgressNotificationParam) {
        let ProgressNotificationParam { progress, total, message, .. } = report;
        if !progress.is_finite() || self.last_progress.is_some_and(|last| progress <= last) {
            return;
        }
        let now = Instant::now();
        (self.last_progress, self.last_sign) = (Some(progress), now);
        self.cx.extend_time_limit();
        if self.last_shown.is_some_and(|shown| now < shown + PROGRESS_INTERVAL) {
            return;
        }
        self.last_shown = Some(now);
        let total = total.filter(|total| total.is_finite() && *total > 0.0);
        let text = message.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| match total {
            Some(total) => format!("{progress} of {total}"),
            None => progress.to_string(),
        });
        let text = self.secrets.redact(&text).unwrap_or(text);
        let text = short_line(&text);
        // Not awaited: a slow client must not delay the response.
        let _ = self.cx.show_progress(text, total.map(|total| progress / total));
    }

    /// Returns the person's reply to a question. Fails with the question if it has no reply yet.
    async fn given_reply(
        &mut self,
        message: String,
        wanted: Wanted,
    ) -> Result<ElicitResult, ToolError> {
        let caller = self.caller;
        if self.asked.values().sum::<usize>() == MAX_QUESTIONS {
            return Err(caller
                .error(format_args!("asked more than {MAX_QUESTIONS} questions in one call.")));
        }
        let is_form = match &wanted {
            Wanted::Form(form) => {
                Validator::new(form).map_err(|error| {
                    caller.error(format_args!("asked with an invalid form: {error}"))
                })?;
                true
            }
            Wanted::Visit(_) => false,
        };
        let key = digest(&message, &wanted.to_string(), QUESTION_KEY_BYTES);
        let times = self.asked.entry(key.clone()).or_default();
        *times += 1;
        let key = format!("mcp-{key}-{times}");
        let question = caller.question(&message, wanted, self.cx).key(key);
        let given = match self.cx.reply_to(question)? {
            None => ElicitResult::new(ElicitationAction::Decline),
            Some(content) if is_form => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            Some(_) => ElicitResult::new(ElicitationAction::Accept),
        };
        // The time that a person took belongs to the earlier run.
        self.last_sign = Instant::now();
        Ok(given)
    }
}
