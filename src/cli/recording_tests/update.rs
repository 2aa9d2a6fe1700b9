//! Accepts what came: writes it into the recording, with the recorded identifiers.

use std::{io, path::Path};

use serde_json::Value;

use super::{ids::IdPairs, play::Played, steps::without_needless_snapshots};
use crate::{
    protocol::Event,
    recording::{RecordedEvent, Recording, RecordingEnd},
};

/// Replaces the events of a recording. The request stays, exchanges with model providers are left out.
pub(super) fn accept(dir: &Path, recording: &Recording, played: &Played, ids: &IdPairs) -> Result<(), String> {
    let path = dir.join(format!("{}.jsonl", recording.name));
    let fault = |problem: String| format!("{} cannot be updated: {problem}", path.display());
    let recorded = |played: &RecordedEvent| {
        let value = serde_json::to_value(&played.event)?;
        let event: Event = serde_json::from_value::<Event>(ids.to_recorded(&value))?;
        Ok(RecordedEvent { ms: played.ms, event })
    };
    let events = without_needless_snapshots(&played.events, &played.request);
    let events: Result<Vec<_>, serde_json::Error> = events.iter().map(recorded).collect();
    let events = events.map_err(|error| fault(error.to_string()))?;
    let end = RecordingEnd { outcome: "finished".to_owned(), cut: false, usage: played.usage.clone() };
    let updated = Recording { events, end: Some(end), ..recording.clone() };
    write(&path, &updated).map_err(|error| fault(error.to_string()))
}

fn write(path: &Path, recording: &Recording) -> io::Result<()> {
    let mut lines = vec![serde_json::to_string(&recording.head)?];
    for event in &recording.events {
        lines.push(serde_json::to_string(event)?);
    }
    let ms = recording.events.last().map_or(0, |event| event.ms);
    let end: Value = serde_json::json!({ "ms": ms, "end": recording.end });
    lines.push(end.to_string());
    // The file keeps its mode and its owner.
    std::fs::write(path, lines.join("\n") + "\n")
}
