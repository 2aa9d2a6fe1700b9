//! Plans a run on a stored thread: its branch, its state, and its open interrupts. Reads more than
//! the current branch only if the request needs it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    branch::{Branch, LoadedThread},
    match_branch::{
        AppendedMessage, BranchCase, BranchMatch, ClientList, find_existing_branch, match_branch,
    },
    resume::{ResumeRefusal, check_resume},
};
use crate::measured_store::MeasuredStore;
use agui_base::RunErrorCode;
use agui_protocol::{Interrupt, Message, MessageId, Messages, ResumeEntry, RunAgentInput};
use agui_store::{
    BranchWrite, EndState, EndedRun, MessageNode, MessageNumber, MessageOrigin, RunNumber,
    StateNumber, StoreError, ThreadKey, ThreadParts, ThreadVersion, host::branch_of,
};

/// A client's input for a run on a stored thread.
#[derive(Clone, Copy)]
pub(crate) struct ClientInput<'a> {
    pub owner: &'a Arc<str>,
    pub input: &'a RunAgentInput,
    /// The positions of the messages that came without an id, ascending. They have random ids now.
    pub(crate) anonymous: &'a [usize],
    /// The first run whose end the client cannot have seen.
    pub(crate) came_during: Option<RunNumber>,
    /// True if retracted messages were left out.
    pub(crate) shows_retracted: bool,
    /// True for a reply to an interrupt, even one that resolves nothing.
    pub is_reply: bool,
}

impl<'a> ClientInput<'a> {
    fn list(self, open_interrupts: &'a [Interrupt]) -> ClientList<'a> {
        let Self {
            input: RunAgentInput { messages, resume, .. },
            anonymous,
            shows_retracted,
            came_during,
            ..
        } = self;
        let is_open = |entry: &ResumeEntry| {
            open_interrupts.iter().any(|interrupt| interrupt.id == entry.interrupt_id)
        };
        let replies_to_interrupt = if resume.is_empty() {
            self.is_reply && !open_interrupts.is_empty()
        } else {
            resume.iter().any(is_open)
        };
        let is_answered =
            |open: &&Interrupt| resume.iter().any(|entry| entry.interrupt_id == open.id);
        let answered = open_interrupts.iter().filter(is_answered);
        let answered_calls = answered.filter_map(|open| open.tool_call_id.as_ref()).collect();
        ClientList {
            messages,
            anonymous,
            shows_retracted,
            came_during,
            replies_to_interrupt,
            answered_calls,
        }
    }

    fn is_reply(self) -> bool {
        self.is_reply || !self.input.resume.is_empty()
    }
}

/// Gives the messages without an id random ones. Returns their positions.
pub(crate) fn name_messages(messages: &mut Messages) -> Vec<usize> {
    let is_anonymous = |at: &usize| messages[*at].id().is_empty();
    let anonymous: Vec<_> = (0..messages.len()).filter(is_anonymous).collect();
    if !anonymous.is_empty() {
        let messages = messages.to_mut();
        anonymous.iter().for_each(|at| messages[*at].set_id(MessageId::random()));
    }
    anonymous
}

/// What a request leads to.
pub(crate) enum Planned {
    /// A run begins.
    Begin(Box<Plan>),
    /// No run begins, because the request resolves no open interrupt: the client gets the stored
    /// thread, and these replies, which were given before. They are empty if the request repeats
    /// them.
    Restate(Vec<ResumeEntry>),
}

pub(crate) struct Plan {
    /// The branch that `matched` refers to; `None` is the thread's current branch.
    pub branch: Option<Branch>,
    pub matched: BranchMatch,
    /// The client's list.
    client: Messages,
    /// Stored messages of another branch that the client returns to. They stand between the kept
    /// and the appended messages.
    pub(super) rejoined: Vec<MessageNode>,
    pub state: Option<Value>,
    /// The number of the state in the store; `None` if it has to be stored.
    pub state_number: Option<StateNumber>,
    pub open_interrupts: Vec<Interrupt>,
    /// The first run of the branch that the run continues; `None` if it begins one.
    pub first_run: Option<RunNumber>,
    /// The agent runs with these replies, one for each open interrupt, or does not run.
    pub resume: Result<Vec<ResumeEntry>, ResumeRefusal>,
}

impl Plan {
    /// Returns the plan of a run that continues an ended one on the current branch.
    pub(crate) fn continuing(
        matched: BranchMatch,
        (state_number, state): (Option<StateNumber>, Value),
        first_run: Option<RunNumber>,
        replies: Vec<ResumeEntry>,
    ) -> Self {
        Self {
            branch: None,
            matched,
            client: Messages::default(),
            rejoined: Vec::new(),
            state: Some(state),
            state_number,
            open_interrupts: Vec::new(),
            first_run,
            resume: Ok(replies),
        }
    }

    /// Lets the run end with a failure in place of its agent, if there is one.
    pub(crate) fn failing(
        mut self: Box<Self>,
        failure: Option<(RunErrorCode, String)>,
    ) -> Box<Self> {
        if let Some((code, message)) = failure {
            self.resume = Err(ResumeRefusal::Invalid(code, message));
        }
        self
    }

    /// Returns whether the client shows no state, but the run starts from one.
    pub(crate) fn lacks_state(&self, input: &RunAgentInput) -> bool {
        // A client that sends no state has an empty one.
        let is_empty = |state: &Value| *state == json!({});
        input.state.as_ref().is_none_or(is_empty)
            && self.state.as_ref().is_some_and(|state| !is_empty(state))
    }

    /// Returns whether the client shows other messages than the run starts from. `stored` is the branch before the run.
    pub(crate) fn lacks_messages(&self, stored: Option<&Branch>) -> bool {
        let BranchMatch { case, appended, client_differs, .. } = &self.matched;
        let differs =
            matches!(case, BranchCase::NothingKnown | BranchCase::Unseen) || *client_differs;
        // The result of a call that a person decided on.
        let is_known = |new: &AppendedMessage| matches!(new, AppendedMessage::Known(..));
        (differs && stored.is_some_and(|branch| branch.len() > 0)) || appended.iter().any(is_known)
    }

    /// Returns the messages of the run's branch, each with its origin.
    pub(super) fn messages<'a>(
        &'a self,
        stored: &'a Branch,
    ) -> impl Iterator<Item = (&'a Message, MessageOrigin)> {
        let kept = stored.messages().iter().take(self.matched.kept).enumerate();
        let kept = kept.map(|(position, message)| (message, stored.origin(position)));
        let rejoined = self.rejoined.iter().map(|node| (&node.message, node.origin));
        kept.chain(rejoined).chain(self.new_messages(Some(stored)))
    }

    /// Returns the messages that are not stored yet.
    fn new_messages<'a>(
        &'a self,
        stored: Option<&'a Branch>,
    ) -> impl Iterator<Item = (&'a Message, MessageOrigin)> {
        self.matched.appended.iter().filter_map(move |new| new.read(stored, &self.client))
    }

    pub(crate) fn branch_write<'a>(&'a self, loaded: Option<&'a LoadedThread>) -> BranchWrite<'a> {
        let stored = self.stored(loaded);
        let base = self.rejoined.last().map(|node| node.number);
        let number = |position: usize| {
            stored.map_or(MessageNumber::ROOT, |branch| branch.number_before(position))
        };
        let new = self.new_messages(stored);
        let updated = self.matched.updated.iter();
        BranchWrite {
            base: base.unwrap_or_else(|| number(self.matched.kept)),
            new: new.map(|(message, origin)| (message, origin.run())).collect(),
            updated: updated.map(|(position, text)| (number(position + 1), text)).collect(),
        }
    }

    /// Returns the branch after the begin of the run. The number of its last new message is `last_message`.
    pub(crate) fn into_branch(
        mut self,
        loaded: Option<Branch>,
        last_message: MessageNumber,
    ) -> Branch {
        let mut branch = self.branch.take().or(loaded).unwrap_or_default();
        if branch.len() == 0 && self.matched.appended.len() == self.client.len() {
            // A new thread. The messages are moved, not copied.
            return Branch::from_client(self.client, last_message);
        }
        let new = self.new_messages(Some(&branch));
        let new: Vec<_> = new.map(|(message, origin)| (message.clone(), origin)).collect();
        let Self { rejoined, matched: BranchMatch { kept, updated, .. }, .. } = self;
        branch.truncate(kept);
        updated.into_iter().for_each(|(position, text)| branch.replace(position, text));
        rejoined.into_iter().for_each(|node| branch.push(node.message, node.number, node.origin));
        let numbers = last_message.newest(new.len());
        for ((message, origin), number) in new.into_iter().zip(numbers) {
            branch.push(message, number, origin);
        }
        branch
    }

    pub(super) fn stored<'a>(&'a self, loaded: Option<&'a LoadedThread>) -> Option<&'a Branch> {
        self.branch.as_ref().or(loaded.map(|loaded| &loaded.branch))
    }

    /// Plans the run on the loaded thread; `None` is a new thread. Returns `None` if the thread has
    /// changed since it was loaded.
    pub(crate) async fn make(
        store: &MeasuredStore,
        key: &ThreadKey,
        loaded: Option<&LoadedThread>,
        client: ClientInput<'_>,
    ) -> Result<Option<Planned>, StoreError> {
        let Some(loaded) = loaded else {
            let matched = match_branch(&Branch::default(), &client.list(&[]));
            return Ok(Some(Self::plan(matched, StartingPoint::default(), client).await));
        };
        let mut reader = PlanReader { store, key, loaded, nodes: None };
        let Some(mut before) = reader.starting_point(client.input).await? else { return Ok(None) };
        if let Some(replies) = reader.already_answered(client, &before.open_interrupts).await? {
            return Ok(Some(Planned::Restate(replies)));
        }
        let stored = before.branch.as_ref().unwrap_or(&loaded.branch);
        let mut matched = match_branch(stored, &client.list(&before.open_interrupts));
        if matched.case == BranchCase::Branches {
            let rejoined = reader.rejoined(stored, &matched, &client.input.messages).await?;
            let Some(rejoined) = rejoined else { return Ok(None) };
            matched.appended.drain(..rejoined.len());
            let (open_interrupts, first_run) =
                reader.branching_point(stored, &matched, &rejoined).await?;
            matched.leave_out_replies(&client.list(&open_interrupts));
            before = StartingPoint { rejoined, open_interrupts, first_run, ..before };
        }
        match Self::plan(matched, before, client).await {
            Planned::Begin(plan) => plan.with_known_results(&mut reader).await,
            restate => Ok(Some(restate)),
        }
    }

    async fn plan(matched: BranchMatch, before: StartingPoint, client: ClientInput<'_>) -> Planned {
        let StartingPoint { branch, rejoined, state, open_interrupts, first_run } = before;
        let (number, stored_state) = state.unzip();
        let is_new_state = |state: &&Value| match &stored_state {
            // A client that shows no message of the thread does not have its state either. SDKs
            // then send an empty one.
            Some(stored) => {
                stored != *state
                    && !(matched.case == BranchCase::NothingKnown && **state == json!({}))
            }
            // A client without a state sends an empty one.
            None => **state != json!({}),
        };
        let new_state = client.input.state.as_ref().filter(is_new_state).cloned();
        let state_number = number.filter(|_| new_state.is_none());
        let (replies, now) = (client.input.resume.clone(), jiff::Timestamp::now());
        let resume = check_resume(client.owner, &open_interrupts, replies, now).await;
        let has_replies_only = client.is_reply() && matched.appended.is_empty();
        if has_replies_only && resume.as_ref().is_ok_and(Vec::is_empty) {
            return Planned::Restate(Vec::new());
        }
        let state = new_state.or(stored_state);
        Planned::Begin(Box::new(Self {
            branch,
            matched,
            client: client.input.messages.clone(),
            rejoined,
            state,
            state_number,
            open_interrupts,
            first_run,
            resume,
        }))
    }
}

#[derive(Default)]
struct StartingPoint {
    branch: Option<Branch>,
    rejoined: Vec<MessageNode>,
    state: Option<(StateNumber, Value)>,
    open_interrupts: Vec<Interrupt>,
    first_run: Option<RunNumber>,
}

/// Reads parts of a thread beside its current branch, at the version that was loaded.
pub(super) struct PlanReader<'a> {
    store: &'a MeasuredStore,
    key: &'a ThreadKey,
    pub(super) loaded: &'a LoadedThread,
    nodes: Option<Vec<MessageNode>>,
}

impl PlanReader<'_> {
    /// Returns the end of the request's parent run, or the current state of the thread without one.
    async fn starting_point(
        &mut self,
        input: &RunAgentInput,
    ) -> Result<Option<StartingPoint>, StoreError> {
        let loaded = self.loaded;
        let left = match &input.parent_run_id {
            Some(parent) => self.end_state(EndedRun::Id(parent)).await?,
            None => None,
        };
        let Some(EndState { head, first_run, state, interrupts, .. }) = left else {
            let first_run = match loaded.first_run {
                None => self.end_with(loaded.branch.head()).await?.and_then(|end| end.first_run),
                known => known,
            };
            let (state, open_interrupts) = (loaded.state.clone(), loaded.interrupts.clone());
            return Ok(Some(StartingPoint {
                state,
                open_interrupts,
                first_run,
                ..StartingPoint::default()
            }));
        };
        let mut start = StartingPoint {
            state,
            open_interrupts: interrupts,
            first_run,
            ..StartingPoint::default()
        };
        if head != loaded.branch.head() {
            let Some(nodes) = self.nodes().await? else { return Ok(None) };
            start.branch = Some(branch_of(nodes, head).into_iter().collect());
        }
        Ok(Some(start))
    }

    async fn rejoined(
        &mut self,
        stored: &Branch,
        matched: &BranchMatch,
        client: &[Message],
    ) -> Result<Option<Vec<MessageNode>>, StoreError> {
        if matched.appended.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let parent = stored.number_before(matched.kept);
        let next = matched.appended.iter().filter_map(|new| new.read(Some(stored), client));
        let next: Vec<_> = next.map(|(message, _)| message).collect();
        let Some(nodes) = self.nodes().await? else { return Ok(None) };
        let found = find_existing_branch(nodes, parent, &next);
        Ok(Some(found.into_iter().cloned().collect()))
    }

    /// Returns the open interrupts and the first run at the message where a new branch begins:
    /// those of the run that ended there.
    async fn branching_point(
        &self,
        stored: &Branch,
        matched: &BranchMatch,
        rejoined: &[MessageNode],
    ) -> Result<(Vec<Interrupt>, Option<RunNumber>), StoreError> {
        let (number, origin) = match (rejoined.last(), matched.kept) {
            (Some(node), _) => (node.number, node.origin),
            (None, kept) => (stored.number_before(kept), stored.origin(kept.saturating_sub(1))),
        };
        let Some(end) = self.end_with(number).await? else { return Ok((Vec::new(), None)) };
        let interrupts = if origin == MessageOrigin::Client { Vec::new() } else { end.interrupts };
        Ok((interrupts, end.first_run))
    }

    /// Returns the end of the newest run that ended with a message.
    async fn end_with(&self, message: MessageNumber) -> Result<Option<EndState>, StoreError> {
        if message == MessageNumber::ROOT {
            return Ok(None);
        }
        let end = self.end_state(EndedRun::Branch(message)).await?;
        Ok(end.filter(|end| end.head == message))
    }

    /// Returns the replies that the runs of the thread have brought.
    pub(super) async fn answered(&self) -> Result<Vec<ResumeEntry>, StoreError> {
        self.store.answered(&self.key.owner, self.loaded.version.number).await
    }

    async fn end_state(&self, of: EndedRun<'_>) -> Result<Option<EndState>, StoreError> {
        self.store.end_state(&self.key.owner, self.loaded.version.number, of).await
    }

    /// Returns the messages of all branches; `None` if the thread has changed.
    pub(super) async fn nodes(&mut self) -> Result<Option<&[MessageNode]>, StoreError> {
        if self.nodes.is_none() {
            let include = ThreadParts { messages: true, ..ThreadParts::default() };
            let view = self.store.thread(self.key, include).await?;
            let ThreadVersion { number, version } = self.loaded.version;
            let view =
                view.filter(|view| (view.thread.number, view.thread.version) == (number, version));
            self.nodes = view.map(|view| view.nodes);
        }
        Ok(self.nodes.as_deref())
    }
}
