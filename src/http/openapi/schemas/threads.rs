//! Threads, their runs, their lists, and changes of them.

use utoipa::openapi::schema::ObjectBuilder;

use crate::http::openapi::schema::{
    Describe as _, Named, SchemaMembers as _, any, boolean, component, count, integer, list_of, map_of, named, number,
    object, one_of, or_null, text, text_of, text_or_null, time,
};

/// What a run can be.
pub(super) const RUN_STATUSES: [&str; 5] = ["running", "finished", "interrupted", "cancelled", "failed"];

pub(super) fn schemas() -> Vec<Named> {
    vec![
        named(
            "ThreadList",
            object()
                .has("threads", list_of(component("ThreadSummary")))
                .may_have("next", text().says("The `cursor` of the next page. Absent on the last page.")),
        ),
        named("ThreadSummary", head().may_have("metadata", object()).has("openInterrupts", count())),
        named("Thread", thread()),
        named("MessagePage", messages(object())),
        named("Run", run()),
        named("RunFailure", object().has("message", text()).may_have("code", component("RunErrorCode"))),
        named(
            "Cancellation",
            object()
                .has("runId", text())
                .has("status", text_of(["cancelling"].into_iter().chain(RUN_STATUSES)))
                .has("message", text()),
        ),
        named("ThreadEvent", thread_event()),
        named(
            "ThreadEdit",
            object()
                .may_have("title", text_or_null().says("`null` removes it."))
                .may_have("archived", boolean())
                .may_have("metadata", or_null(object()).says("Replaces the metadata. `null` removes them."))
                .may_have("head", text().says("The id of the message that becomes the last of the current branch.")),
        ),
        named(
            "ForkInput",
            object().may_have("threadId", text().says("The id of the new thread. A random one by default.")).may_have(
                "messageId",
                text().says("The last message of the copy. That of the current branch by default."),
            ),
        ),
        named(
            "FeedbackInput",
            object()
                .may_have("score", number())
                .may_have("comment", text())
                .says("Without members, feedback is removed."),
        ),
        named("Feedback", object().may_have("score", number()).may_have("comment", text()).has("at", time())),
        named("JoinedThread", joined_thread()),
        named("UiMessage", ui_message()),
    ]
}

/// The members that a thread and its summary share.
fn head() -> ObjectBuilder {
    object()
        .has("threadId", text())
        .has("agent", text().says("The agent of the newest run."))
        .has("title", text_or_null())
        .has("archived", boolean())
        .may_have("activeRunId", text().says("The running run."))
        .has("createdAt", time())
        .has("updatedAt", time())
}

fn thread() -> ObjectBuilder {
    messages(head())
        .has("metadata", object())
        .has("state", any())
        .has("interrupts", list_of(component("Interrupt")).says("The open interrupts."))
        .has("version", integer())
        .has("runs", list_of(component("Run")).says("The newest runs, the newest first."))
}

/// Adds a page of messages.
fn messages(object: ObjectBuilder) -> ObjectBuilder {
    object
        .has("messages", list_of(component("Message")).says("The oldest first."))
        .has("before", text_or_null().says("The `before` of the page with the earlier messages."))
        .has("alternatives", map_of(list_of(text())).says("By message id: the ids of all messages in its place."))
        .may_have("feedback", map_of(component("Feedback")).says("By message id."))
}

fn run() -> ObjectBuilder {
    object()
        .has("runId", text())
        .has("agent", text())
        .has("status", text_of(RUN_STATUSES))
        .has("detached", boolean().says("True if the run goes on without its client, and can be followed."))
        .has("startedAt", time())
        .may_have("endedAt", time())
        .has("events", count())
        .may_have("usage", list_of(component("TokenUsage")))
        .may_have("error", component("RunFailure"))
}

fn thread_event() -> impl Into<crate::http::openapi::schema::AnySchema> {
    let changes = ["created", "begun", "ended", "renamed", "archived", "unarchived", "changed"];
    let change = |kinds: &[&str]| object().has("type", text_of(kinds.iter().copied())).has("threadId", text());
    one_of([
        change(&changes).has("thread", component("ThreadSummary")).into(),
        change(&["deleted"]).into(),
        object().has("type", text_of(["missed"])).says("Changes are missing: read the list again.").into(),
    ])
}

fn joined_thread() -> ObjectBuilder {
    let page = object()
        .has("truncated", boolean().says("True if the thread has earlier messages."))
        .may_have("cursor", text().says("The `before` of the page with the earlier messages."));
    let interrupts = object().has("runId", text()).has("pending", list_of(component("Interrupt")));
    object()
        .has("messages", list_of(component("UiMessage")))
        .has("activeRun", or_null(object().has("runId", text())).says("The running run, if it can be joined."))
        .has("interrupts", or_null(interrupts))
        .has("page", page)
}

fn ui_message() -> ObjectBuilder {
    let part = |kind| object().has("type", text_of([kind]));
    let signed = part("thinking").has("content", text()).may_have("signature", text());
    let call = part("tool-call")
        .has("id", text())
        .has("name", text())
        .has("arguments", text())
        .may_have("input", any())
        .has("state", text_of(["input-complete", "complete", "error"]))
        .may_have("output", any());
    let result = part("tool-result")
        .has("id", text())
        .has("toolCallId", text())
        .has("content", component("MessageContent"))
        .has("state", text_of(["complete", "error"]))
        .may_have("error", text());
    let media = ["ImagePart", "AudioPart", "VideoPart", "DocumentPart"].map(|name| component(name).into());
    let parts = [part("text").has("content", text()).into(), signed.into(), call.into(), result.into()];
    object()
        .has("id", text())
        .has("role", text_of(["user", "assistant", "system"]))
        .has("parts", list_of(one_of(parts.into_iter().chain(media))))
        .may_have("name", text())
        .may_have("metadata", object())
        .says("A message as TanStack AI's pages hold it.")
}
