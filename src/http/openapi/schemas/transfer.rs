//! Exports of threads.

use super::threads::RUN_STATUSES;
use crate::http::openapi::schema::{
    Describe as _, Named, SchemaMembers as _, any, boolean, component, count, integer, list_of, named, object, or_null,
    text, text_of, text_or_null, time,
};

pub(super) fn schemas() -> Vec<Named> {
    let state = || or_null(count()).says("A position in `states`.");
    vec![
        named(
            "ThreadExport",
            object()
                .has("threadId", text())
                .has("agent", text())
                .may_have("title", text_or_null())
                .may_have("archived", boolean())
                .may_have("metadata", object())
                .has("createdAt", time())
                .has("updatedAt", time())
                .has("head", integer().says("The number of the last message of the current branch."))
                .may_have("state", state())
                .may_have("interrupts", list_of(component("Interrupt")))
                .has("messages", list_of(component("ExportedMessage")).says("Numbered from 1."))
                .may_have("states", list_of(any()))
                .may_have("runs", list_of(component("ExportedRun"))),
        ),
        named(
            "ExportedMessage",
            object()
                .has("parent", integer().says("The number of the message before it; 0 for the first one."))
                .may_have("runId", text().says("The run that made it."))
                .has("message", component("Message"))
                .may_have("feedback", component("Feedback")),
        ),
        named(
            "ExportedRun",
            object()
                .has("runId", text())
                .has("agent", text())
                .has("status", text_of(RUN_STATUSES.into_iter().filter(|status| *status != "running")))
                .has("startedAt", time())
                .has("endedAt", time())
                .may_have("events", count())
                .may_have("delivered", boolean())
                .has("head", integer().says("The number of the last message of its branch."))
                .may_have("state", state())
                .may_have("interrupts", list_of(component("Interrupt")))
                .may_have("answered", list_of(text()).says("The ids of the interrupts that it answered."))
                .may_have("usage", list_of(component("TokenUsage")))
                .may_have("error", component("RunFailure")),
        ),
    ]
}
