//! The columns of a thread that is created with its content.

use std::sync::Arc;

use super::{
    CopiedMessage, Millis, NewThread,
    text::{list_to_json, name_to_text, to_json},
};

/// The columns of a [`NewThread`].
#[derive(Debug)]
pub(super) struct ContentColumns {
    pub(super) owner: Arc<str>,
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) title: Option<String>,
    pub(super) archived: bool,
    pub(super) metadata: Option<String>,
    pub(super) head: i64,
    pub(super) state: Option<i64>,
    pub(super) interrupts: Option<String>,
    pub(super) bytes: i64,
    pub(super) created_at: Millis,
    pub(super) updated_at: Millis,
    pub(super) messages: Vec<MessageColumns>,
    pub(super) states: Vec<String>,
    pub(super) runs: Vec<RunColumns>,
}

#[derive(Debug)]
pub(super) struct MessageColumns {
    pub(super) parent: i64,
    pub(super) id: String,
    pub(super) role: &'static str,
    pub(super) run: Option<usize>,
    pub(super) body: String,
    pub(super) feedback: Option<String>,
}

#[derive(Debug)]
pub(super) struct RunColumns {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) status: &'static str,
    pub(super) delivered: bool,
    pub(super) head: i64,
    pub(super) state: Option<i64>,
    pub(super) interrupts: Option<String>,
    pub(super) answered: Option<String>,
    pub(super) started_at: Millis,
    pub(super) ended_at: Option<Millis>,
    pub(super) events: i64,
    pub(super) usage: Option<String>,
    pub(super) failure: Option<String>,
}

impl ContentColumns {
    pub(super) fn new(new: NewThread<'_>) -> Self {
        let NewThread { key, content } = new;
        let position = |position: Option<usize>| position.map(|position| position as i64);
        let messages: Vec<_> = content.messages.iter().map(MessageColumns::new).collect();
        let states: Vec<_> = content.states.iter().map(to_json).collect();
        let runs = content.runs.iter().map(|run| RunColumns {
            id: name_to_text(&run.record.id).into_owned(),
            agent: name_to_text(&run.record.agent).into_owned(),
            status: run.record.status.as_str(),
            delivered: run.record.delivered,
            head: run.head,
            state: position(run.state),
            interrupts: list_to_json(&run.interrupts),
            answered: list_to_json(&run.answered),
            started_at: run.record.started_at,
            ended_at: run.record.ended_at,
            events: run.record.events.cast_signed(),
            usage: list_to_json(&run.record.usage),
            failure: run.record.failure.as_ref().map(to_json),
        });
        Self {
            owner: key.owner.clone(),
            id: name_to_text(&key.id).into_owned(),
            agent: name_to_text(&content.agent).into_owned(),
            title: content.title.as_deref().map(|title| name_to_text(title).into_owned()),
            archived: content.archived,
            metadata: Some(&content.metadata).filter(|metadata| !metadata.is_empty()).map(to_json),
            head: content.head,
            state: position(content.state),
            interrupts: list_to_json(&content.interrupts),
            bytes: messages
                .iter()
                .map(|message| message.body.len())
                .chain(states.iter().map(String::len))
                .sum::<usize>() as i64,
            created_at: content.created_at,
            updated_at: content.updated_at,
            runs: runs.collect(),
            messages,
            states,
        }
    }
}

impl MessageColumns {
    fn new(copied: &CopiedMessage) -> Self {
        Self {
            parent: copied.parent,
            id: name_to_text(copied.message.id()).into_owned(),
            role: copied.message.role().as_str(),
            run: copied.run,
            body: to_json(&copied.message),
            feedback: copied.feedback.as_ref().map(to_json),
        }
    }
}
