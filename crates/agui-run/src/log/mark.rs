//! Marks: lines of a log that no client sees, and from which another server continues the run.
//!
//! Marks stand between the events, so they are stored in the same write and in the same order. They
//! count in the numbers of a log, so the numbers of its events have gaps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

const PREFIX: &str = r#"{"mark":"#;

#[derive(Debug, Serialize, Deserialize)]
struct MarkLine {
    mark: LogMark,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogMark {
    /// A place that the agent has chosen.
    Agent(Value),
    /// The server was stopped, and handed the run over.
    HandedOver,
    /// A call starts that must not be repeated. Noted once.
    UnsafeCall,
    /// Another server sent the events from here on. `lost` counts the servers that were lost.
    Continued { attempt: u32, lost: u32 },
    /// The first line of a run that continues an earlier attempt, which had started a call: the agent's marks until then.
    Earlier { attempt: u32, lost: u32, marks: Vec<Value> },
}

impl LogMark {
    pub fn to_line(&self) -> String {
        // Marks always have a JSON form.
        let mark = serde_json::to_string(self).unwrap_or_default();
        format!("{PREFIX}{mark}}}")
    }

    /// Returns `None` for an event.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        if !is_mark(line) {
            return None;
        }
        serde_json::from_str::<MarkLine>(line).ok().map(|line| line.mark)
    }
}

/// Events are written with their type first.
pub(crate) fn is_mark(line: &str) -> bool {
    line.starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_an_event_is_not_a_mark() {
        for mark in [
            LogMark::Agent(json!({ "step": 1 })),
            LogMark::HandedOver,
            LogMark::UnsafeCall,
            LogMark::Continued { attempt: 2, lost: 1 },
            LogMark::Earlier { attempt: 2, lost: 1, marks: vec![json!({ "step": 1 })] },
        ] {
            assert_eq!(LogMark::from_line(&mark.to_line()), Some(mark));
        }
        assert_eq!(LogMark::from_line(r#"{"type":"CUSTOM","name":"mark","value":1}"#), None);
    }
}
