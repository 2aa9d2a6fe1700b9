//! Accepts the new events: writes them into the recording, with the recorded identifiers.

use std::path::Path;

use super::{ids::IdPairs, play::Played, steps::without_needless_snapshots};
use agui_observe::recording::{Recording, RecordingEnd, line};

/// Replaces the events of a recording. The request stays, exchanges with model providers are left out.
pub(super) fn accept(
    dir: &Path,
    recording: &Recording,
    played: &Played,
    ids: &IdPairs,
) -> Result<(), String> {
    let path = dir.join(format!("{}.jsonl", recording.name));
    let fault = |problem: String| format!("{} cannot be updated: {problem}", path.display());
    let mut lines = recording.head.to_line();
    let mut end_ms = 0;
    for recorded in without_needless_snapshots(&played.events, &played.request) {
        let event =
            serde_json::to_value(&recorded.event).map_err(|error| fault(error.to_string()))?;
        lines.extend(line(recorded.ms, "event", &ids.to_recorded(event)));
        end_ms = recorded.ms;
    }
    let end =
        RecordingEnd { outcome: "finished".to_owned(), cut: false, usage: played.usage.clone() };
    lines.extend(line(end_ms, "end", &end));
    // The file keeps its mode and its owner.
    std::fs::write(&path, lines).map_err(|error| fault(error.to_string()))
}
