//! Reading, changing, copying and deleting threads.

use crate::openapi::{
    operation::{Description, Tag},
    refusals::{BODY, COPY, EDIT, LIMITS, MESSAGE, PARAMETER, RUN, STORE, THREAD, URL},
    schema::{integer, text, text_of},
};

pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    let thread = |id, summary| Description::new(Tag::Threads, id, summary);
    Some(match (method, template) {
        ("GET", "/threads") => paged(thread("listThreads", "Lists the caller's threads, the newest activity first"))
            .query("cursor", text(), "The `next` of the page before.")
            .query("archived", text_of(["true", "false", "all"]), "`false` by default.")
            .query("agent", text(), "Only threads of this agent.")
            .query("q", text().max_length(Some(200)), "Only threads with these words in title or messages.")
            .json(200, "ThreadList", "A page of threads.")
            .refuses(&[PARAMETER, STORE, URL]),
        ("GET", "/threads/events") => thread("followThreads", "Streams the changes of the caller's threads")
            .details("A client reads the list when it has connected, and again after `missed`.")
            .stream("ThreadEvent", "The changes from now on."),
        ("POST", "/threads/import") => thread("importThread", "Creates a thread from an export")
            .query("threadId", text(), "The id of the thread. That of the export by default.")
            .body("ThreadExport")
            .json(201, "ThreadSummary", "The new thread.")
            .refuses(&[BODY, COPY, LIMITS, STORE, URL]),
        ("GET", "/threads/{thread}") => thread("readThread", "Returns a thread with its newest messages and runs")
            .json(200, "Thread", "The thread.")
            .refuses(&[STORE, THREAD]),
        ("PATCH", "/threads/{thread}") => {
            thread("editThread", "Changes title, archive, metadata or the current branch")
                .body("ThreadEdit")
                .json(200, "ThreadSummary", "The changed thread.")
                .refuses(&[BODY, EDIT, MESSAGE, STORE, THREAD])
        }
        ("DELETE", "/threads/{thread}") => {
            thread("deleteThread", "Deletes a thread with its runs. A running run is cancelled")
                .empty(204, "The thread is deleted.")
                .refuses(&[STORE, THREAD])
        }
        ("GET", "/threads/{thread}/messages") => {
            paged(thread("listMessages", "Returns the messages of the current branch or of a run, page by page"))
                .query("before", text(), "The `before` of the page that follows.")
                .query("run", text(), "A run. Its messages and those before it are returned.")
                .json(200, "MessagePage", "A page of messages.")
                .refuses(&[PARAMETER, RUN, STORE, THREAD])
        }
        ("POST", "/threads/{thread}/messages/{message}/feedback") => {
            thread("giveFeedback", "Stores feedback on a message, in place of earlier feedback")
                .body("FeedbackInput")
                .empty(204, "The feedback is stored.")
                .refuses(&[BODY, MESSAGE, STORE, THREAD])
        }
        ("POST", "/threads/{thread}/fork") => thread("forkThread", "Copies a branch to a new thread")
            .optional_body("ForkInput")
            .json(201, "ThreadSummary", "The new thread.")
            .refuses(&[BODY, COPY, LIMITS, MESSAGE, STORE, THREAD]),
        ("GET", "/threads/{thread}/export") => thread("exportThread", "Returns everything that is stored of a thread")
            .json(200, "ThreadExport", "The thread.")
            .refuses(&[STORE, THREAD]),
        _ => return None,
    })
}

/// Adds the size of a page.
pub(super) fn paged(description: Description) -> Description {
    let limit = integer().minimum(Some(1)).maximum(Some(200));
    description.query("limit", limit, "The size of the page. 50 by default.")
}
