//! What a run on a stored thread starts from: reads what [`conversation`](super::conversation) needs beside the current
//! branch, and decides about state and interrupts.

use serde_json::{Value, json};

use super::{
    branch::{Branch, LoadedThread},
    conversation::{Appended, Case, ClientList, Decision, decide, find_branch},
    resume::{ResumeDecision, check_resume},
    threads::Threads,
};
use crate::{
    protocol::{Interrupt, Message, MessageId, ResumeEntry, RunAgentInput},
    store::{
        BranchWrite, EndState, EndedRun, MessageNode, MessageOrigin, StoreError, ThreadKey, ThreadParts, ThreadVersion,
        branch_of,
    },
};

/// The client's part of a run, apart from the rest of its input.
pub(super) struct ClientInput {
    pub(super) messages: Vec<Message>,
    /// The positions of the messages that came without an id, ascending. They have got one since.
    pub(super) anonymous: Vec<usize>,
    /// The rest; its list of messages is empty.
    pub(super) rest: RunAgentInput,
}

impl ClientInput {
    fn list(&self, open: &[Interrupt]) -> ClientList<'_> {
        let is_open = |entry: &ResumeEntry| open.iter().any(|interrupt| interrupt.id == entry.interrupt_id);
        let answers_interrupt = self.rest.resume.iter().any(is_open);
        ClientList { messages: &self.messages, anonymous: &self.anonymous, answers_interrupt }
    }
}

impl From<RunAgentInput> for ClientInput {
    fn from(mut input: RunAgentInput) -> Self {
        let mut messages = std::mem::take(&mut input.messages).into_vec();
        let mut anonymous = Vec::new();
        for (at, message) in messages.iter_mut().enumerate().filter(|(_, message)| message.id().is_empty()) {
            message.set_id(MessageId::random());
            anonymous.push(at);
        }
        Self { messages, anonymous, rest: input }
    }
}

/// What a run starts from.
pub(super) struct Plan {
    /// The branch that `decision` is about, if that is not the thread's current one.
    pub(super) branch: Option<Branch>,
    pub(super) decision: Decision,
    /// Messages of another branch that the client goes back to. They follow those that stay.
    pub(super) found: Vec<MessageNode>,
    /// The state.
    pub(super) state: Option<Value>,
    /// The number of the stored state; `None` when `state` is to be stored.
    pub(super) state_number: Option<i64>,
    /// The interrupts that are open, and what the request says to them.
    pub(super) open: Vec<Interrupt>,
    pub(super) resume: ResumeDecision,
}

/// The thread has changed since it was loaded.
pub(super) enum PlanError {
    Changed,
    Store(StoreError),
}

impl From<StoreError> for PlanError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Plan {
    /// Returns whether the request adds messages to the thread.
    pub(super) fn adds_messages(&self) -> bool {
        self.decision.appended.len() > self.found.len()
    }

    /// The number of the message that the new ones follow.
    pub(super) fn base(&self, loaded: Option<&LoadedThread>) -> i64 {
        let stored = self.stored(loaded);
        self.found
            .last()
            .map_or_else(|| stored.map_or(0, |it| it.number_before(self.decision.kept)), |node| node.number)
    }

    /// What the request changes about the stored thread.
    pub(super) fn write<'a>(&'a self, loaded: Option<&'a LoadedThread>, client: &'a [Message]) -> BranchWrite<'a> {
        let stored = self.stored(loaded);
        let new = self.decision.appended.iter().skip(self.found.len()).filter_map(|appended| match *appended {
            Appended::Client(at) => Some((&client[at], None)),
            Appended::Stored(position) => stored.map(|it| (&it.messages()[position], it.origin(position).run())),
        });
        let number = |position: usize| stored.map_or(0, |stored| stored.number(position));
        let updated = self.decision.updated.iter().map(|(position, text)| (number(*position), text));
        BranchWrite { base: self.base(loaded), new: new.collect(), updated: updated.collect() }
    }

    /// The branch that the run goes on with, as it is stored now. New messages are numbered up to `last_message`.
    pub(super) fn into_branch(self, loaded: Option<Branch>, client: Vec<Message>, last_message: i64) -> Branch {
        let Self { branch, decision, found, .. } = self;
        let mut branch = branch.or(loaded).unwrap_or_default();
        let added = &decision.appended[found.len()..];
        let first = last_message - added.len() as i64 + 1;
        if branch.len() == 0 && added.len() == client.len() {
            // A new thread: nothing is copied.
            return client
                .into_iter()
                .zip(first..)
                .map(|(message, number)| (message, number, MessageOrigin::Client))
                .collect();
        }
        let copy = |appended: &Appended| match *appended {
            Appended::Client(at) => (client[at].clone(), MessageOrigin::Client),
            Appended::Stored(position) => (branch.messages()[position].clone(), branch.origin(position)),
        };
        let added: Vec<_> = added.iter().map(copy).collect();
        branch.truncate(decision.kept);
        decision.updated.into_iter().for_each(|(position, text)| branch.replace(position, text));
        found.into_iter().for_each(|node| branch.push(node.message, node.number, node.origin));
        added.into_iter().zip(first..).for_each(|((message, origin), number)| branch.push(message, number, origin));
        branch
    }

    fn stored<'a>(&'a self, loaded: Option<&'a LoadedThread>) -> Option<&'a Branch> {
        self.branch.as_ref().or(loaded.map(|loaded| &loaded.branch))
    }
}

impl Threads {
    /// Plans a run on a thread as it was loaded; `None` is a new thread.
    pub(super) async fn plan(
        &self,
        key: &ThreadKey,
        loaded: Option<&LoadedThread>,
        client: &ClientInput,
    ) -> Result<Plan, PlanError> {
        let Some(loaded) = loaded else {
            let decision = decide(&Branch::default(), client.list(&[]));
            return Ok(Plan::new(decision, Before::default(), client));
        };
        let mut source = Source { threads: self, key, loaded, nodes: None };
        let before = source.before(client).await?;
        let stored = before.branch.as_ref().unwrap_or(&loaded.branch);
        let decision = decide(stored, client.list(&before.open));
        if decision.case != Case::Branches {
            return Ok(Plan::new(decision, before, client));
        }
        let found = source.found(stored, &decision, client).await?;
        let open = source.open_after(stored, &decision, &found).await?;
        let plan = Plan::new(decision, Before { found, open, ..before }, client);
        if plan.resume != ResumeDecision::Repeated {
            return Ok(plan);
        }
        // The answers are not for the branch that the client shows: the thread stays where it is.
        let decision = Decision { case: Case::Unseen, kept: loaded.branch.len(), updated: vec![], appended: vec![] };
        Ok(Plan::new(decision, Before::current(loaded), client))
    }
}

/// What there is before the client's new messages.
#[derive(Default)]
struct Before {
    branch: Option<Branch>,
    found: Vec<MessageNode>,
    state: Option<(i64, Value)>,
    open: Vec<Interrupt>,
}

impl Before {
    fn current(loaded: &LoadedThread) -> Self {
        Self { state: loaded.state.clone(), open: loaded.interrupts.clone(), ..Self::default() }
    }
}

impl Plan {
    fn new(decision: Decision, before: Before, client: &ClientInput) -> Self {
        let Before { branch, found, state, open } = before;
        let (number, stored_state) = state.unzip();
        let is_news = |state: &&Value| match &stored_state {
            Some(stored) => stored != *state,
            // The empty state of a client without one is no news to a thread without one.
            None => **state != json!({}),
        };
        let news = client.rest.state.as_ref().filter(is_news).cloned();
        let state_number = number.filter(|_| news.is_none());
        let brings_answers_alone = !client.rest.resume.is_empty() && decision.appended.len() == found.len();
        let resume = match check_resume(&open, client.rest.resume.clone(), jiff::Timestamp::now()) {
            ResumeDecision::Proceed(answers) if answers.is_empty() && brings_answers_alone => ResumeDecision::Repeated,
            resume => resume,
        };
        Self { branch, decision, found, state: news.or(stored_state), state_number, open, resume }
    }
}

/// What is read of a thread beside its current branch, at the version that was loaded.
struct Source<'a> {
    threads: &'a Threads,
    key: &'a ThreadKey,
    loaded: &'a LoadedThread,
    nodes: Option<Vec<MessageNode>>,
}

impl Source<'_> {
    /// What the run that the request names as its parent left, or else the thread as it is.
    async fn before(&mut self, client: &ClientInput) -> Result<Before, PlanError> {
        let loaded = self.loaded;
        // The thread is as its newest run left it.
        let parent = client.rest.parent_run_id.as_ref().filter(|parent| **parent != loaded.run_id);
        let Some(parent) = parent else { return Ok(Before::current(loaded)) };
        let left = self.threads.store.end_state(loaded.version.number, EndedRun::Id(parent)).await?;
        let Some(EndState { head, state, interrupts }) = left else { return Ok(Before::current(loaded)) };
        let branch = if head == loaded.branch.head() {
            None
        } else {
            Some(branch_of(self.nodes().await?, head).into_iter().collect())
        };
        Ok(Before { branch, found: Vec::new(), state, open: interrupts })
    }

    /// The messages of a branch that the client goes back to.
    async fn found(
        &mut self,
        stored: &Branch,
        decision: &Decision,
        client: &ClientInput,
    ) -> Result<Vec<MessageNode>, PlanError> {
        if decision.appended.is_empty() {
            return Ok(Vec::new());
        }
        let parent = stored.number_before(decision.kept);
        let next = decision.appended.iter().map(|appended| match *appended {
            Appended::Client(at) => &client.messages[at],
            Appended::Stored(position) => &stored.messages()[position],
        });
        let next: Vec<_> = next.collect();
        Ok(find_branch(self.nodes().await?, parent, &next).into_iter().cloned().collect())
    }

    /// The interrupts that are open where a new branch begins: those that the run whose messages end there has raised.
    async fn open_after(
        &self,
        stored: &Branch,
        decision: &Decision,
        found: &[MessageNode],
    ) -> Result<Vec<Interrupt>, StoreError> {
        let (number, origin) = match (found.last(), decision.kept) {
            (Some(node), _) => (node.number, node.origin),
            (None, 0) => return Ok(Vec::new()),
            (None, kept) => (stored.number_before(kept), stored.origin(kept - 1)),
        };
        if origin == MessageOrigin::Client {
            return Ok(Vec::new());
        }
        let left = self.threads.store.end_state(self.loaded.version.number, EndedRun::Head(number)).await?;
        Ok(left.map(|left| left.interrupts).unwrap_or_default())
    }

    async fn nodes(&mut self) -> Result<&[MessageNode], PlanError> {
        if self.nodes.is_none() {
            let include = ThreadParts { messages: true, runs: 0 };
            let view = self.threads.store.thread(self.key, include).await?;
            let ThreadVersion { number, version } = self.loaded.version;
            let view = view.filter(|view| (view.thread.number, view.thread.version) == (number, version));
            self.nodes = Some(view.ok_or(PlanError::Changed)?.nodes);
        }
        Ok(self.nodes.as_deref().unwrap_or_default())
    }
}
