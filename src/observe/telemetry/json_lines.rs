//! Log lines as JSON objects. A line about a request in a trace has the trace's id as its member `trace_id`.

use std::fmt;

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Format, Json, Writer},
    },
    layer::Context,
    registry::LookupSpan,
};

const TRACE_ID: &str = "trace_id";

/// The id of a trace, as an extension of the span that names it.
struct LoggedTraceId(String);

/// Keeps the ids of traces that spans name.
pub(super) struct TraceIds;

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for TraceIds {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        if attributes.metadata().fields().field(TRACE_ID).is_none() {
            return;
        }
        let mut found = TraceIdVisitor(None);
        attributes.record(&mut found);
        if let (Some(trace_id), Some(span)) = (found.0, cx.span(id)) {
            span.extensions_mut().insert(LoggedTraceId(trace_id));
        }
    }
}

struct TraceIdVisitor(Option<String>);

impl Visit for TraceIdVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == TRACE_ID {
            self.0 = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

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
    fn format_event(&self, cx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let trace_id = cx.event_scope().and_then(|mut scope| {
            scope.find_map(|span| span.extensions().get().map(|LoggedTraceId(trace_id)| trace_id.clone()))
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
