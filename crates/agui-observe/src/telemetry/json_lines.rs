//! Log lines as JSON objects. A line about a request in a trace has the trace's id as its member `trace_id`.

use std::fmt;

use serde_json::Value;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::{Format, Json, Writer},
    },
    registry::LookupSpan,
};

const TRACE_ID: &str = "trace_id";

/// Needs spans whose fields are formatted as JSON.
pub(super) struct JsonLines(Format<Json>);

impl JsonLines {
    pub(super) fn new() -> Self {
        Self(tracing_subscriber::fmt::format().json().flatten_event(true).with_current_span(false))
    }
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        cx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let trace_id = cx.event_scope().and_then(|mut scope| {
            scope.find_map(|span| {
                let extensions = span.extensions();
                let fields: Value =
                    serde_json::from_str(extensions.get::<FormattedFields<N>>()?).ok()?;
                Some(fields.get(TRACE_ID)?.as_str()?.to_owned())
            })
        });
        let Some(trace_id) = trace_id else { return self.0.format_event(cx, writer, event) };
        let mut line = String::new();
        self.0.format_event(cx, Writer::new(&mut line), event)?;
        match line.trim_end().strip_suffix('}') {
            Some(members) => writeln!(writer, "{members},\"{TRACE_ID}\":\"{trace_id}\"}}"),
            None => writer.write_str(&line),
        }
    }
}
