//! Plans a run on a stored thread: its branch, its state, and its open interrupts. Reads more than the current branch
//! only if the request needs it.

use serde_json::{Value, json};

use super::{
    branch::{Branch, LoadedThread},
    decide::{AppendedMessage, BranchCase, BranchDecision, ClientList, decide_branch, find_existing_branch},
    resume::{ResumeDecision, check_resume},
};
use crate::run::turn::thread_runs::ThreadRuns;
use crate::{
    protocol::{Interrupt, Message, MessageId, ResumeEntry, RunAgentInput},
    store::{
        BranchWrite, EndState, EndedRun, MessageNode, MessageOrigin, StoreError, ThreadKey, ThreadParts, ThreadVersion,
        branch_of,
    },
};

pub(crate) struct ClientInput {
    pub(crate) messages: Vec<Message>,
    /// The positions of the messages that came without an id, ascending. They have been given random ids.
    pub(crate) anonymous: Vec<usize>,
    /// The input without messages.
    pub(crate) rest: RunAgentInput,
    /// True if the request answers interrupts, also if it decides none of them.
    is_answer: bool,
}

impl ClientInput {
    fn list(&self, open_interrupts: &[Interrupt]) -> ClientList<'_> {
        let is_open = |entry: &ResumeEntry| open_interrupts.iter().any(|interrupt| interrupt.id == entry.interrupt_id);
        let answers_interrupt = match self.rest.resume.is_empty() {
            true => self.is_answer && !open_interrupts.is_empty(),
            false => self.rest.resume.iter().any(is_open),
        };
        ClientList { messages: &self.messages, anonymous: &self.anonymous, answers_interrupt }
    }

    pub(crate) fn new(mut input: RunAgentInput, is_answer: bool) -> Self {
        let mut messages = std::mem::take(&mut input.messages).into_vec();
        let mut anonymous = Vec::new();
        for (at, message) in messages.iter_mut().enumerate().filter(|(_, message)| message.id().is_empty()) {
            message.set_id(MessageId::random());
            anonymous.push(at);
        }
        Self { messages, anonymous, is_answer: is_answer || !input.resume.is_empty(), rest: input }
    }
}

pub(crate) struct Plan {
    /// The branch that `decision` refers to; `None` is the thread's current branch.
    pub(crate) branch: Option<Branch>,
    pub(crate) decision: BranchDecision,
    /// Stored messages of another branch that the client returns to. They follow the kept messages.
    pub(crate) rejoined: Vec<MessageNode>,
    pub(crate) state: Option<Value>,
    /// The number of the state in the store; `None` if it has to be stored.
    pub(crate) state_number: Option<i64>,
    pub(crate) open_interrupts: Vec<Interrupt>,
    pub(crate) resume: ResumeDecision,
}

pub(crate) enum PlanError {
    Changed,
    Store(StoreError),
}

impl From<StoreError> for PlanError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Plan {
    /// Returns whether the client shows no state, but the run starts from one.
    pub(crate) fn lacks_state(&self, client: &ClientInput) -> bool {
        // A client that sends no state has an empty one.
        let is_empty = |state: &Value| *state == json!({});
        client.rest.state.as_ref().is_none_or(is_empty) && self.state.as_ref().is_some_and(|state| !is_empty(state))
    }

    pub(crate) fn adds_messages(&self) -> bool {
        self.decision.appended.len() > self.rejoined.len()
    }

    /// Returns the number of the message that the new ones follow.
    pub(crate) fn base(&self, loaded: Option<&LoadedThread>) -> i64 {
        let stored = self.stored(loaded);
        self.rejoined
            .last()
            .map_or_else(|| stored.map_or(0, |it| it.number_before(self.decision.kept)), |node| node.number)
    }

    pub(crate) fn branch_write<'a>(
        &'a self,
        loaded: Option<&'a LoadedThread>,
        client: &'a [Message],
    ) -> BranchWrite<'a> {
        let stored = self.stored(loaded);
        let new = self.decision.appended.iter().skip(self.rejoined.len()).filter_map(|appended| match *appended {
            AppendedMessage::Client(at) => Some((&client[at], None)),
            AppendedMessage::Stored(position) => stored.map(|it| (&it.messages()[position], it.origin(position).run())),
        });
        let number = |position: usize| stored.map_or(0, |stored| stored.number(position));
        let updated = self.decision.updated.iter().map(|(position, text)| (number(*position), text));
        BranchWrite { base: self.base(loaded), new: new.collect(), updated: updated.collect() }
    }

    /// Returns the branch after the begin of the run. The number of its last new message is `last_message`.
    pub(crate) fn into_branch(self, loaded: Option<Branch>, client: Vec<Message>, last_message: i64) -> Branch {
        let Self { branch, decision, rejoined, .. } = self;
        let mut branch = branch.or(loaded).unwrap_or_default();
        let added = &decision.appended[rejoined.len()..];
        let first = last_message - added.len() as i64 + 1;
        if branch.len() == 0 && added.len() == client.len() {
            // A new thread. The messages are moved, not copied.
            return client
                .into_iter()
                .zip(first..)
                .map(|(message, number)| (message, number, MessageOrigin::Client))
                .collect();
        }
        let copy = |appended: &AppendedMessage| match *appended {
            AppendedMessage::Client(at) => (client[at].clone(), MessageOrigin::Client),
            AppendedMessage::Stored(position) => (branch.messages()[position].clone(), branch.origin(position)),
        };
        let added: Vec<_> = added.iter().map(copy).collect();
        branch.truncate(decision.kept);
        decision.updated.into_iter().for_each(|(position, text)| branch.replace(position, text));
        rejoined.into_iter().for_each(|node| branch.push(node.message, node.number, node.origin));
        added.into_iter().zip(first..).for_each(|((message, origin), number)| branch.push(message, number, origin));
        branch
    }

    fn stored<'a>(&'a self, loaded: Option<&'a LoadedThread>) -> Option<&'a Branch> {
        self.branch.as_ref().or(loaded.map(|loaded| &loaded.branch))
    }
}

impl ThreadRuns {
    pub(crate) async fn plan(
        &self,
        key: &ThreadKey,
        loaded: Option<&LoadedThread>,
        client: &ClientInput,
    ) -> Result<Plan, PlanError> {
        let Some(loaded) = loaded else {
            let decision = decide_branch(&Branch::default(), client.list(&[]));
            return Ok(Plan::new(decision, StartingPoint::default(), client).await);
        };
        let mut reader = PlanReader { threads: self, key, loaded, nodes: None };
        let before = reader.starting_point(client).await?;
        let stored = before.branch.as_ref().unwrap_or(&loaded.branch);
        let decision = decide_branch(stored, client.list(&before.open_interrupts));
        if decision.case != BranchCase::Branches {
            return Ok(Plan::new(decision, before, client).await);
        }
        let rejoined = reader.rejoined(stored, &decision, client).await?;
        let open_interrupts = reader.open_interrupts_after(stored, &decision, &rejoined).await?;
        let plan = Plan::new(decision, StartingPoint { rejoined, open_interrupts, ..before }, client).await;
        if plan.resume != ResumeDecision::Repeated {
            return Ok(plan);
        }
        // The answers are for interrupts of another branch than the one the client shows, so the head does not move.
        let decision =
            BranchDecision { case: BranchCase::Unseen, kept: loaded.branch.len(), updated: vec![], appended: vec![] };
        Ok(Plan::new(decision, StartingPoint::current(loaded), client).await)
    }
}

#[derive(Default)]
struct StartingPoint {
    branch: Option<Branch>,
    rejoined: Vec<MessageNode>,
    state: Option<(i64, Value)>,
    open_interrupts: Vec<Interrupt>,
}

impl StartingPoint {
    fn current(loaded: &LoadedThread) -> Self {
        Self { state: loaded.state.clone(), open_interrupts: loaded.interrupts.clone(), ..Self::default() }
    }
}

impl Plan {
    async fn new(decision: BranchDecision, before: StartingPoint, client: &ClientInput) -> Self {
        let StartingPoint { branch, rejoined, state, open_interrupts } = before;
        let (number, stored_state) = state.unzip();
        let is_new_state = |state: &&Value| match &stored_state {
            // A client that shows nothing of the thread has nothing of its state either. SDKs then send an empty one.
            Some(stored) => stored != *state && !(decision.case == BranchCase::NothingKnown && **state == json!({})),
            // A client without a state sends an empty one.
            None => **state != json!({}),
        };
        let new_state = client.rest.state.as_ref().filter(is_new_state).cloned();
        let state_number = number.filter(|_| new_state.is_none());
        let has_answers_only = client.is_answer && decision.appended.len() == rejoined.len();
        let resume = match check_resume(&open_interrupts, client.rest.resume.clone(), jiff::Timestamp::now()).await {
            ResumeDecision::Proceed(answers) if answers.is_empty() && has_answers_only => ResumeDecision::Repeated,
            resume => resume,
        };
        Self { branch, decision, rejoined, state: new_state.or(stored_state), state_number, open_interrupts, resume }
    }
}

/// Reads parts of a thread beside its current branch, at the version that was loaded.
struct PlanReader<'a> {
    threads: &'a ThreadRuns,
    key: &'a ThreadKey,
    loaded: &'a LoadedThread,
    nodes: Option<Vec<MessageNode>>,
}

impl PlanReader<'_> {
    /// Returns the end of the run that the request names as its parent, or else the current state of the thread.
    async fn starting_point(&mut self, client: &ClientInput) -> Result<StartingPoint, PlanError> {
        let loaded = self.loaded;
        let Some(parent) = &client.rest.parent_run_id else { return Ok(StartingPoint::current(loaded)) };
        let left = self.end_state(EndedRun::Id(parent)).await?;
        let Some(EndState { head, state, interrupts, .. }) = left else { return Ok(StartingPoint::current(loaded)) };
        let branch = if head == loaded.branch.head() {
            None
        } else {
            Some(branch_of(self.nodes().await?, head).into_iter().collect())
        };
        Ok(StartingPoint { branch, rejoined: Vec::new(), state, open_interrupts: interrupts })
    }

    async fn rejoined(
        &mut self,
        stored: &Branch,
        decision: &BranchDecision,
        client: &ClientInput,
    ) -> Result<Vec<MessageNode>, PlanError> {
        if decision.appended.is_empty() {
            return Ok(Vec::new());
        }
        let parent = stored.number_before(decision.kept);
        let next = decision.appended.iter().map(|appended| match *appended {
            AppendedMessage::Client(at) => &client.messages[at],
            AppendedMessage::Stored(position) => &stored.messages()[position],
        });
        let next: Vec<_> = next.collect();
        Ok(find_existing_branch(self.nodes().await?, parent, &next).into_iter().cloned().collect())
    }

    /// Returns the open interrupts of the message where a new branch begins: those of the run that ended there.
    async fn open_interrupts_after(
        &self,
        stored: &Branch,
        decision: &BranchDecision,
        rejoined: &[MessageNode],
    ) -> Result<Vec<Interrupt>, StoreError> {
        let (number, origin) = match (rejoined.last(), decision.kept) {
            (Some(node), _) => (node.number, node.origin),
            (None, 0) => return Ok(Vec::new()),
            (None, kept) => (stored.number_before(kept), stored.origin(kept - 1)),
        };
        if origin == MessageOrigin::Client {
            return Ok(Vec::new());
        }
        let left = self.end_state(EndedRun::Branch(number)).await?;
        Ok(left.filter(|left| left.head == number).map(|left| left.interrupts).unwrap_or_default())
    }

    async fn end_state(&self, of: EndedRun<'_>) -> Result<Option<EndState>, StoreError> {
        let (owner, thread) = (&self.key.owner, self.loaded.version.number);
        self.threads.store.call("end_state", |store| store.end_state(owner, thread, of)).await
    }

    async fn nodes(&mut self) -> Result<&[MessageNode], PlanError> {
        if self.nodes.is_none() {
            let include = ThreadParts { messages: true, ..ThreadParts::default() };
            let view = self.threads.store.call("thread", |store| store.thread(self.key, include)).await?;
            let ThreadVersion { number, version } = self.loaded.version;
            let view = view.filter(|view| (view.thread.number, view.thread.version) == (number, version));
            self.nodes = Some(view.ok_or(PlanError::Changed)?.nodes);
        }
        Ok(self.nodes.as_deref().unwrap_or_default())
    }
}
