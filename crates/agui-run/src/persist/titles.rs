//! Titles by an agent: after the first run of a thread, an agent makes its title in the background.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use tokio::time::timeout;

use crate::{
    conversation::title::{cut_at_word, title_of},
    drive::run_report::context_in_span,
    events::thread_event_hub::ThreadChange,
    turn::thread_core::ThreadCore,
};
use agui_agent::host::{AgentEntry, ContextParts, RunIdentity};
use agui_base::trace::TraceScope;
use agui_observe::{
    RunObserver,
    metrics::{GaugeCount, Metrics},
};
use agui_protocol::{Event, Message, MessageId, Messages, RunAgentInput, RunId, ThreadId};
use agui_store::{StoreError, ThreadKey, ThreadParts, ThreadUpdate, ThreadVersion};

const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest part of each message that the agent gets, in characters.
const MAX_SHOWN_CHARS: usize = 2000;
const MAX_AGENT_TITLE_CHARS: usize = 80;
/// A longer answer is not a title.
const MAX_ANSWER_BYTES: usize = 4096;
const MAX_ATTEMPTS: usize = 5;
const TASK: &str = "Write a title for the following conversation: at most six words, in the language of the \
    conversation, without quotation marks. Answer with the title only.";

impl ThreadCore {
    /// Lets an agent make the title of a thread after the thread's first run. While too many titles
    /// are made, the thread keeps the title of its first message.
    pub(super) fn make_title(
        self: &Arc<Self>,
        agent: AgentEntry,
        key: &ThreadKey,
        messages: &Messages,
    ) {
        let made = messages.iter().find_map(title_of);
        let (Some(made), Some(task)) = (made, task(messages)) else { return };
        let Ok(permit) = self.titles.try_take(&key.owner, 1) else { return };
        let threads = self.clone();
        let key = key.clone();
        let metrics = self.metrics.clone();
        let active = GaugeCount::new(&metrics.runs.titles);
        tokio::spawn(async move {
            let _held = (permit, active);
            let title = timeout(TIMEOUT, ask(agent, task, &key, metrics)).await.unwrap_or_default();
            let Some(title) = title.as_deref().and_then(clean) else {
                tracing::info!(
                    thread = key.id.as_str(),
                    "the agent of [threads] title_agent made no title"
                );
                return;
            };
            if let Err(error) = threads.replace_title(&key, &made, &title).await {
                tracing::warn!(?error, "the title of a thread could not be stored");
            }
        });
    }

    /// Replaces the title that was made from the first message. A title that the owner has set meanwhile stays.
    async fn replace_title(
        &self,
        key: &ThreadKey,
        made: &str,
        title: &str,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let view = self.store.thread(key, ThreadParts::default()).await?;
            let thread =
                view.map(|view| view.thread).filter(|thread| thread.title.as_deref() == Some(made));
            let Some(thread) = thread else { return Ok(()) };
            let version = ThreadVersion::of(&thread);
            let update = ThreadUpdate { title: Some(Some(title)), ..ThreadUpdate::default() };
            if self.store.update(version, &update).await? {
                self.cache.raise_version(key, version);
                self.publish(key, ThreadChange::Renamed);
                return Ok(());
            }
        }
        Ok(())
    }
}

fn task(messages: &Messages) -> Option<String> {
    let mut task = TASK.to_owned();
    for message in messages.iter().filter(|message| !message.is_instruction()) {
        let (role, text) = match message {
            Message::User(message) => ("User", message.content.text()),
            Message::Assistant(message) => {
                ("Assistant", message.content.as_deref().unwrap_or_default().into())
            }
            _ => continue,
        };
        // An answer may begin with a call and no text.
        if text.trim().is_empty() {
            continue;
        }
        task.push_str("\n\n");
        task.push_str(role);
        task.push_str(": ");
        task.extend(text.chars().take(MAX_SHOWN_CHARS));
        if role == "Assistant" {
            break;
        }
    }
    (task.len() > TASK.len()).then_some(task)
}

/// Returns the text of the agent's last message. The run has a thread of its own, so that an agent
/// that stores threads does not mix it with the conversation.
async fn ask(
    agent: AgentEntry,
    task: String,
    asked_for: &ThreadKey,
    metrics: Metrics,
) -> Option<String> {
    let (thread_id, run_id) = (ThreadId::from(RunId::random().as_str()), RunId::random());
    let message = Message::user(MessageId::random(), task);
    let input = RunAgentInput::new(thread_id.clone(), run_id.clone(), vec![message]);
    let identity = RunIdentity { thread_id, run_id, agent: agent.name.clone(), principal: None };
    let mut parts = ContextParts::new(identity);
    parts.asked_for.clone_from(asked_for);
    parts.observer = Some(RunObserver { metrics, recording: None });
    let cx = context_in_span(parts, &TraceScope::default());
    let mut events = agent.agent.run(input, cx);
    let mut answer = String::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::TextMessageStart(_)) => answer.clear(),
            Ok(Event::TextMessageContent(content)) => answer.push_str(&content.delta),
            Ok(Event::TextMessageChunk(chunk)) => answer.extend(chunk.delta),
            Ok(Event::RunFinished(_)) => break,
            Ok(Event::RunError(_)) => return None,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(
                    ?error,
                    agent = &*agent.name,
                    "the agent of [threads] title_agent failed"
                );
                return None;
            }
        }
        if answer.len() > MAX_ANSWER_BYTES {
            return None;
        }
    }
    Some(answer)
}

/// Removes the quotation marks and the final period that models add, although the task forbids
/// them.
fn clean(answer: &str) -> Option<String> {
    let line = answer.lines().find(|line| !line.trim().is_empty())?;
    let is_wrapping = |c: char| c.is_whitespace() || "\"'“”„‘’«»「」『』《》*#`".contains(c);
    let is_end = |c: char| is_wrapping(c) || ".。".contains(c);
    cut_at_word(
        line.trim_start_matches(is_wrapping).trim_end_matches(is_end),
        MAX_AGENT_TITLE_CHARS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_agent::{RunContext, emit::TextMessage};

    #[tokio::test]
    async fn a_title_is_bounded() {
        let agent = |_: RunAgentInput, _: RunContext| {
            agui_agent::events(TextMessage::whole("word ".repeat(2000)))
        };
        let agent = AgentEntry { name: "talker".into(), agent: Arc::new(agent) };
        assert_eq!(
            ask(agent, "task".to_owned(), &ThreadKey::default(), Metrics::default()).await,
            None
        );
        assert_eq!(clean(&"word ".repeat(100)).unwrap().chars().count(), 80);
    }

    #[tokio::test]
    async fn a_model_that_makes_a_title_is_asked_for_the_owner_of_the_thread() {
        let key = ThreadKey { owner: "key:ann".into(), id: "t".into() };
        let agent = |_: RunAgentInput, cx: RunContext| {
            let ThreadKey { owner, id } = cx.asked_for();
            agui_agent::events(TextMessage::whole(format!("{owner} {id} {:?}", cx.principal())))
        };
        let agent = AgentEntry { name: "writer".into(), agent: Arc::new(agent) };
        let title = ask(agent, "task".to_owned(), &key, Metrics::default()).await;
        assert_eq!(title.as_deref(), Some("key:ann t None"), "and has none of the owner's rights");
    }

    #[test]
    fn a_title_loses_quotation_marks_and_formatting() {
        assert_eq!(
            clean("\n\"Weather in Beijing.\"\n\nmore").as_deref(),
            Some("Weather in Beijing")
        );
        assert_eq!(clean("## **Weather**").as_deref(), Some("Weather"));
        assert_eq!(clean("《北京天气》。").as_deref(), Some("北京天气"));
        assert_eq!((clean(" \n"), clean("\"\"")), (None, None));
    }
}
