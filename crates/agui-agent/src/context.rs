//! [`RunContext`]: ids, principal, forwarded headers and token usage of a run.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::{
    a2ui::RunSurfaces,
    journal::{Continuation, RunJournal},
    upstream_ids::{Conversation, ReplacedRun, ThreadIds, UpstreamKey},
};
use crate::{Principal, files::RunFiles, principal::owner_of};
use agui_base::trace::{TraceContext, TraceScope};
use agui_observe::RunObserver;
use agui_protocol::{MessageId, RunAgentInput, RunId, SubagentRunId, ThreadId, TokenUsage};
use agui_store::{ThreadKey, host::StoreResult};

/// The time that a run waits in all for servers of tools that are away.
const MAX_SERVER_WAIT: Duration = Duration::from_secs(5);

/// The request headers passed to agents (`pass_headers`), in the order of the request, and other
/// data of a run's request. It has no `Debug`, because headers can be secret.
#[derive(Clone)]
pub struct Forwarded {
    headers: Option<Arc<[(String, String)]>>,
    trace: Option<Arc<TraceContext>>,
    /// A random value of the run, the same on each server that continues it. Keys of its calls are
    /// made from this seed, because a client may use the run's id again.
    pub seed: Uuid,
}

impl Forwarded {
    /// Headers with lower-case names.
    pub fn new(headers: impl IntoIterator<Item = (String, String)>) -> Self {
        let headers: Arc<[_]> = headers.into_iter().collect();
        Self {
            headers: (!headers.is_empty()).then_some(headers),
            trace: None,
            seed: Uuid::new_v4(),
        }
    }

    /// Adds the place of the request in a trace, which the run and its requests to other servers continue.
    pub fn with_trace(self, trace: Option<Arc<TraceContext>>) -> Self {
        Self { trace, ..self }
    }

    /// The place of the request in a trace, if it has one.
    pub fn trace(&self) -> Option<&Arc<TraceContext>> {
        self.trace.as_ref()
    }

    /// Returns the forwarded headers as names and values, in the order of the request.
    pub fn all(&self) -> &[(String, String)] {
        self.headers.as_deref().unwrap_or_default()
    }
}

/// The ids and names of a run, as logged.
#[derive(Debug, Clone)]
pub struct RunIdentity {
    /// The id of the thread, unique within its owner.
    pub thread_id: ThreadId,
    /// The id that the client gave the run, which it may use again for another run.
    pub run_id: RunId,
    /// The name that the agent is served under.
    pub agent: Arc<str>,
    /// The authenticated caller; `None` on a server without authentication, and for a title's run.
    pub principal: Option<Principal>,
}

/// The run that an agent answers. Cheap to clone.
#[derive(Clone)]
pub struct RunContext {
    parts: Arc<ContextParts>,
    trace: TraceScope,
    /// The number of the subagent's task, from 1 on; 0 for the agent of the run.
    task: u32,
    /// The subagent's task, which is a conversation of its own. It stays the same when the task
    /// continues after a question.
    subagent: Option<SubagentRunId>,
    /// `None` for runs that are not detached, and for subagents, because a run does not continue
    /// from a subagent's answers.
    journal: Option<Arc<RunJournal>>,
    /// A2UI in this run; `None` if it renders no surfaces.
    #[doc(hidden)]
    pub surfaces: Option<Arc<RunSurfaces>>,
}

/// The parts of a run's context at its start.
pub struct ContextParts {
    /// The ids and names of the run.
    pub identity: RunIdentity,
    /// The thread for which models are called: the run's own, or the thread whose title the run
    /// makes.
    pub asked_for: ThreadKey,
    /// The request headers that agents may see, with the request's trace and the run's seed.
    pub forwarded: Forwarded,
    /// True if the client may give the model instructions, also by its context and state.
    pub accepts_instructions: bool,
    /// The assistant, tool and activity messages that a client wrote.
    pub client_messages: HashSet<MessageId>,
    /// `None` without a server.
    pub observer: Option<RunObserver>,
    /// `None` without stored files.
    pub files: Option<RunFiles>,
    /// The conversation from which the ids for other servers are made.
    pub conversation: Conversation,
    /// `None` without a store.
    pub upstream_key: Option<Arc<UpstreamKey>>,
    usage: Mutex<Vec<TokenUsage>>,
    model_calls: Mutex<ModelCalls>,
    ids: Mutex<RunIds>,
    /// The rest of `MAX_SERVER_WAIT`.
    server_wait: Mutex<Duration>,
}

/// The ids of messages and calls in a run with subagents, each with the task that used it first.
#[derive(Default)]
struct RunIds {
    tasks: u32,
    owners: HashMap<String, u32>,
}

/// The model calls of a run, for its last log line.
#[derive(Debug, Clone, Default)]
pub struct ModelCalls {
    /// The configured names of the models, each once.
    pub models: Vec<String>,
    /// `None` if no model has a price.
    pub cost: Option<f64>,
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunContext").field(&self.parts.identity).finish()
    }
}

impl ContextParts {
    /// The parts of a run without a server.
    pub fn new(identity: RunIdentity) -> Self {
        let asked_for = ThreadKey {
            owner: owner_of(identity.principal.as_ref()),
            id: identity.thread_id.clone(),
        };
        Self {
            identity,
            asked_for,
            forwarded: Forwarded::new([]),
            accepts_instructions: true,
            client_messages: HashSet::new(),
            observer: None,
            files: None,
            conversation: Conversation::Once,
            upstream_key: None,
            usage: Mutex::default(),
            model_calls: Mutex::default(),
            ids: Mutex::default(),
            server_wait: Mutex::new(MAX_SERVER_WAIT),
        }
    }
}

impl From<ContextParts> for RunContext {
    fn from(parts: ContextParts) -> Self {
        let trace = TraceScope::new(parts.forwarded.trace().cloned(), false);
        Self {
            parts: Arc::new(parts),
            trace,
            task: 0,
            subagent: None,
            journal: None,
            surfaces: None,
        }
    }
}

impl RunContext {
    /// A context without a server, a principal and forwarded headers, for tests.
    pub fn new(thread_id: impl Into<ThreadId>, run_id: impl Into<RunId>, agent: &str) -> Self {
        let (thread_id, run_id) = (thread_id.into(), run_id.into());
        let identity = RunIdentity { thread_id, run_id, agent: agent.into(), principal: None };
        ContextParts::new(identity).into()
    }

    /// The context of the same run for this principal, with these headers. Their names are in lower case.
    #[must_use]
    pub fn with_caller(
        self,
        principal: Option<Principal>,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let identity = RunIdentity { principal, ..self.parts.identity.clone() };
        ContextParts { forwarded: Forwarded::new(headers), ..ContextParts::new(identity) }.into()
    }

    /// The context of a detached run.
    #[doc(hidden)]
    pub fn with_journal(self, journal: Option<RunJournal>) -> Self {
        Self { journal: journal.map(Arc::new), ..self }
    }

    /// The same run for a task of a subagent.
    #[doc(hidden)]
    pub fn for_task(self, id: SubagentRunId) -> Self {
        let task = {
            let mut ids = self.parts.ids.lock();
            ids.tasks += 1;
            ids.tasks
        };
        Self { journal: None, task, subagent: Some(id), ..self }
    }

    /// Takes the id of a message or a call for this task, or for the agent of the run. Returns
    /// `false` if another task has taken it.
    #[doc(hidden)]
    pub fn claim_id(&self, id: &str) -> bool {
        let mut ids = self.parts.ids.lock();
        match ids.owners.get(id) {
            Some(owner) => *owner == self.task,
            None => ids.owners.insert(id.to_owned(), self.task).is_none(),
        }
    }

    /// The context of the same run within its span, or within the span of a tool call or a
    /// subagent.
    #[doc(hidden)]
    pub fn within(&self, trace: TraceScope) -> Self {
        Self { trace, ..self.clone() }
    }

    /// Waits until a server that is away can be used. A run waits 5 s in all; afterwards this returns `None`.
    #[doc(hidden)]
    pub async fn wait_for_server<T>(&self, server: impl Future<Output = T>) -> Option<T> {
        let (begin, left) = (Instant::now(), *self.parts.server_wait.lock());
        let found = timeout(left, server).await.ok();
        let mut left = self.parts.server_wait.lock();
        *left = left.saturating_sub(begin.elapsed());
        found
    }

    /// The store of the run's files; `None` without stored files.
    #[doc(hidden)]
    pub fn files(&self) -> Option<&RunFiles> {
        self.parts.files.as_ref()
    }

    /// Replaces the ids of the thread and its runs in an input for another server.
    ///
    /// The ids are derived from stored values, so the server that continues a run has the same ids.
    /// A lost key gives new ids, and an endpoint then gets the whole conversation.
    #[doc(hidden)]
    pub async fn replace_ids(&self, input: &mut RunAgentInput, ids: ThreadIds) -> StoreResult<()> {
        let place =
            json!([owner_of(self.principal()), self.agent(), self.thread_id(), self.subagent]);
        let (key, conversation) = (self.parts.upstream_key.as_deref(), self.parts.conversation);
        ReplacedRun { key, conversation, place, seed: self.seed() }.replace_in(input, ids).await
    }

    /// The observer that counts and records the run and its calls. `None` without a server.
    #[doc(hidden)]
    pub fn observer(&self) -> Option<&RunObserver> {
        self.parts.observer.as_ref()
    }

    /// The place of the run in a trace.
    #[doc(hidden)]
    pub fn trace(&self) -> &TraceScope {
        &self.trace
    }

    /// The headers `traceparent` and `tracestate` for a request to another server. Empty outside of a trace.
    pub fn trace_headers(&self) -> HeaderMap {
        self.trace.headers()
    }

    #[doc(hidden)]
    pub fn model_calls(&self) -> MutexGuard<'_, ModelCalls> {
        self.parts.model_calls.lock()
    }

    /// The thread's id.
    pub fn thread_id(&self) -> &ThreadId {
        &self.parts.identity.thread_id
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.parts.identity.run_id
    }

    /// The name that the agent is served under.
    pub fn agent(&self) -> &str {
        &self.parts.identity.agent
    }

    /// The authenticated caller; `None` on a server without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.parts.identity.principal.as_ref()
    }

    /// Returns the owner of the run's threads, files and permits.
    #[doc(hidden)]
    pub fn owner(&self) -> Arc<str> {
        owner_of(self.principal())
    }

    /// The values of a request header that is passed to agents (`pass_headers`). `name` is in lower case.
    pub fn header_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let headers = self.parts.forwarded.all().iter();
        headers.filter(move |(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether the client's context and state may become instructions of the model.
    pub fn accepts_instructions(&self) -> bool {
        self.parts.accepts_instructions
    }

    /// Returns whether a client, and no run of this server, wrote an assistant, tool or activity
    /// message of the input. Calls of such messages must have no effect.
    pub fn is_from_client(&self, message: &MessageId) -> bool {
        self.parts.client_messages.contains(message)
    }

    /// Returns whether the input has messages for which [`is_from_client`](Self::is_from_client) is `true`.
    pub fn has_client_messages(&self) -> bool {
        !self.parts.client_messages.is_empty()
    }

    /// The journal of the earlier servers, if the run continues after its server was stopped or
    /// lost. Only agents that [can continue](super::Agent::can_continue) get one.
    pub fn continuation(&self) -> Option<&Continuation> {
        self.journal.as_ref()?.continuation.as_ref()
    }

    /// Removes a mark that is not the agent's own. Returns whether an earlier server has made it.
    pub(crate) fn take_mark(&mut self, mark: &Value) -> bool {
        let Some(RunJournal { log, continuation: Some(earlier) }) = self.journal.as_deref() else {
            return false;
        };
        let others = |marks: &[Value]| -> Vec<Value> {
            marks.iter().filter(|other| *other != mark).cloned().collect()
        };
        let marks = others(&earlier.marks);
        let earlier_marks = others(&earlier.marks[..earlier.earlier_marks]).len();
        let is_made = marks.len() < earlier.marks.len();
        let continuation = Some(Continuation { marks, earlier_marks, ..earlier.clone() });
        self.journal = Some(Arc::new(RunJournal { log: log.clone(), continuation }));
        is_made
    }

    /// Returns whether marks have an effect.
    #[doc(hidden)]
    pub fn is_journaled(&self) -> bool {
        self.journal.is_some()
    }

    /// Returns whether another server continues the run if this one is stopped.
    #[doc(hidden)]
    pub fn is_kept(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.log.is_kept())
    }

    /// Marks the progress of the run. If its server is lost, the run continues
    /// from the last mark, and events after the mark are replaced. Clients do not see marks. Has no
    /// effect if the agent cannot continue.
    pub fn mark(&self, mark: impl Into<Value>) {
        if let Some(journal) = &self.journal {
            journal.log.mark(mark.into());
        }
    }

    /// Completes when the events and marks so far are stored. Await it before an effect that must
    /// not be repeated: a request that comes twice then does not bring it twice.
    pub async fn written(&self) {
        if let Some(journal) = &self.journal {
            journal.log.written().await;
        }
    }

    /// Returns whether another server continues the run, so that the agent's work elsewhere need
    /// not be stopped.
    #[doc(hidden)]
    pub fn is_left_to_another_server(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.log.is_left())
    }

    /// A random value of the run, which stays the same when another server continues it.
    #[doc(hidden)]
    pub fn seed(&self) -> Uuid {
        self.parts.forwarded.seed
    }

    /// The thread for which models are called, with its owner.
    #[doc(hidden)]
    pub fn asked_for(&self) -> &ThreadKey {
        &self.parts.asked_for
    }

    /// All names of the run.
    #[doc(hidden)]
    pub fn identity(&self) -> &RunIdentity {
        &self.parts.identity
    }

    /// Adds the tokens of a model call. The terminal event has the sums, also when the run fails or is cancelled.
    pub fn add_usage(&self, usage: TokenUsage) {
        let mut entries = self.parts.usage.lock();
        match entries.iter_mut().find(|e| e.provider == usage.provider && e.model == usage.model) {
            Some(entry) => entry.add(&usage),
            None => entries.push(usage),
        }
    }

    /// The tokens so far, summed for each provider and model.
    pub fn usage(&self) -> Vec<TokenUsage> {
        self.parts.usage.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_by_its_name() {
        let cx = RunContext::new("t", "r", "a")
            .with_caller(None, [("x-tenant".to_owned(), "acme".to_owned())]);
        assert_eq!(cx.header_values("x-tenant").collect::<Vec<_>>(), ["acme"]);
        assert_eq!(cx.header_values("x-other").count(), 0);
    }
}
