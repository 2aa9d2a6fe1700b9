//! Subagents: each is started before its first event, and ends once. Its id is not used again.

use super::{Guard, entries::StartedSubagent, violation::Violation};
use crate::drive::progress::EventSink;
use agui_protocol::{EventType, SubagentRunId, event::SubagentStarted};

impl Guard {
    pub(crate) fn subagent_started(&mut self, event: &SubagentStarted) -> Result<bool, Violation> {
        let refuse = |problem: String| Err(Violation::new(EventType::SubagentStarted, problem));
        let id = &event.subagent_run_id;
        match self.subagents.get(id) {
            Some(StartedSubagent { is_active: true, .. }) => {
                return refuse(format!("subagent {id:?} is already active"));
            }
            Some(_) => {
                return refuse(format!("subagent {id:?} has ended; its id cannot be used again"));
            }
            None if self.unannounced.contains(id) => {
                return refuse(format!("events named subagent {id:?} before it started"));
            }
            None => {}
        }
        if let Some(parent) = &event.parent_subagent_run_id
            && !self.subagents.contains_key(parent)
        {
            return refuse(format!("its parent, subagent {parent:?}, has not started"));
        }
        let subagent = StartedSubagent { started: event.clone(), is_active: true };
        self.subagents.insert(id.clone(), subagent);
        Ok(true)
    }

    pub(crate) fn end_subagent(&mut self, id: &SubagentRunId, out: &mut impl EventSink) -> bool {
        if !self.subagents.get(id).is_some_and(|subagent| subagent.is_active) {
            tracing::debug!(
                subagent = id.as_str(),
                "skipped the end of a subagent that is not active"
            );
            return false;
        }
        self.close_items(Some(&Some(id.clone())), out);
        if let Some(subagent) = self.subagents.get_mut(id) {
            subagent.is_active = false;
        }
        true
    }
}
