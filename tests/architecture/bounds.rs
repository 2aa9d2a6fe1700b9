//! Every resource that a client can make grow is in one table, with its bounds and a test of one of its bounds.
//!
//! The table is `docs/operations.md#bounds`. A row without a test here, a test that does not exist, a row without a metric, a
//! metric that does not exist, and an option that `config/default.toml` lacks are errors.

use std::{collections::BTreeSet, fs, path::Path};

/// The first column of the table, the file, and the test in it that goes beyond the bound.
const TESTS: &[(&str, &str, &str)] = &[
    ("connections", "tests/http/limits.rs", "beyond_the_limit_of_connections_only_health_checks_are_answered"),
    ("head of a request", "tests/http/limits.rs", "a_head_that_is_too_large_is_refused"),
    ("body of a request", "tests/http/limits.rs", "a_body_over_the_limit_is_refused_also_while_it_is_being_sent"),
    ("time for a body", "tests/http/limits.rs", "a_body_that_takes_too_long_is_refused"),
    ("pieces of a body", "tests/http/limits.rs", "a_body_in_tiny_pieces_is_refused"),
    (
        "memory of runs: their requests, those of imports, the threads that they read, and forks",
        "tests/http/limits.rs",
        "the_values_of_running_requests_share_a_budget_and_leave_room_for_small_ones",
    ),
    (
        "bodies in flight, also of files",
        "tests/http/limits.rs",
        "large_bodies_share_a_budget_and_leave_room_for_small_ones",
    ),
    (
        "responses with messages of threads in flight",
        "tests/http/limits.rs",
        "answers_that_nobody_reads_share_a_budget_and_leave_room_for_small_ones",
    ),
    ("JSON values", "src/protocol/decode/tests.rs", "open_payloads_hold_a_bounded_number_of_values"),
    ("JSON depth", "src/protocol/decode/tests.rs", "depth_is_bounded_in_all_places"),
    ("identifiers", "tests/run/limits.rs", "an_identifier_has_at_most_1024_bytes"),
    ("concurrent runs", "tests/http/limits.rs", "runs_over_the_limit_are_refused_until_one_has_ended"),
    ("runs of a principal", "tests/run/quota.rs", "one_of_several_principals_gets_half_of_the_runs_by_default"),
    ("waiting runs of a thread", "tests/run/queue.rs", "a_queue_has_a_maximum_length_and_a_timeout"),
    ("files that an agent or an export gets", "src/files/load.rs", "the_newest_64_mib_of_files_are_loaded"),
    (
        "images that are scaled down for models",
        "src/llm/context/image_scale/tests.rs",
        "an_owner_waits_for_its_own_images_while_another_ones_are_scaled",
    ),
    (
        "scaled images that are kept for later requests",
        "src/llm/context/image_scale/tests.rs",
        "an_owner_keeps_a_quarter_of_all_scaled_images",
    ),
    ("detached runs", "tests/run/detached.rs", "detached_runs_are_limited"),
    ("duration of a run", "src/run/drive/driver/tests.rs", "the_time_limit_cancels_the_run"),
    ("silence of an agent", "src/run/drive/driver/tests.rs", "an_agent_that_is_silent_for_too_long_fails"),
    ("size of a run", "tests/run/detached.rs", "a_run_with_too_many_bytes_fails"),
    (
        "size of a thread",
        "tests/run/limits.rs",
        "a_run_that_would_make_its_thread_too_large_is_refused_and_nothing_is_lost",
    ),
    (
        "places where a list without ids may begin",
        "src/run/conversation/decide/tests/without_ids_tests.rs",
        "a_list_without_ids_begins_at_one_of_the_last_64_places_that_fit",
    ),
    (
        "texts that a client without ids has joined",
        "src/run/conversation/decide/tests/without_ids_tests.rs",
        "up_to_64_texts_of_a_run_are_known_if_a_client_has_joined_them",
    ),
    (
        "arguments of a call that are shown as an interface",
        "src/surfaces/arguments.rs",
        "arguments_over_the_bound_are_not_read_on",
    ),
    ("title and metadata of a thread", "tests/threads/edits.rs", "wrong_changes_are_refused_and_change_nothing"),
    (
        "threads kept in memory between runs",
        "src/run/conversation/branch.rs",
        "the_memory_of_a_state_counts_and_not_its_json",
    ),
    (
        "events that an agent in Rust sends without waiting for the client",
        "src/agent/agent_fn.rs",
        "an_agent_that_does_not_await_its_calls_is_refused_before_it_fills_the_memory",
    ),
    ("comments of feedback", "tests/threads/feedback.rs", "wrong_feedback_is_refused"),
    ("copies of threads", "tests/threads/copies.rs", "wrong_imports_and_forks_are_refused_and_store_nothing"),
    (
        "readers of thread events",
        "src/run/events/thread_event_hub.rs",
        "a_slow_reader_is_told_that_it_has_missed_events",
    ),
    (
        "readers of CopilotKit's inspector",
        "src/run/events/debug_events.rs",
        "the_bytes_that_wait_for_readers_are_bounded_and_given_back",
    ),
    (
        "streams without an end: thread events, CopilotKit's inspector and WebSockets",
        "tests/threads/events.rs",
        "streams_are_limited_for_one_principal_and_in_all_until_one_is_closed",
    ),
    (
        "WebSockets of CopilotKit's lists",
        "src/http/dialects/copilotkit/socket/tests.rs",
        "sockets_are_limited_for_one_principal_and_in_all_until_one_is_closed",
    ),
    (
        "tokens of these WebSockets",
        "src/http/dialects/copilotkit/join_token.rs",
        "a_token_is_that_of_its_principal_and_the_number_of_tokens_is_bounded",
    ),
    (
        "origins whose refused preflight is logged",
        "src/http/accept/cors.rs",
        "an_origin_is_logged_once_and_the_number_of_origins_is_bounded",
    ),
    ("titles by an agent", "src/run/persist/titles.rs", "a_title_is_bounded"),
    ("pages of lists and messages", "tests/threads/edits.rs", "messages_are_read_page_by_page_and_by_run"),
    (
        "reads of the store at a time",
        "tests/store/neighbours.rs",
        "reads_of_a_large_thread_keep_no_other_owner_waiting",
    ),
    ("time of a read of the store", "src/store/sqlite/reader.rs", "a_read_is_interrupted_after_its_time_limit"),
    (
        "steps of indexing and deleting in SQLite",
        "tests/store/neighbours.rs",
        "a_large_import_is_indexed_and_deleted_beside_the_runs_of_another_owner",
    ),
    ("searches", "tests/threads/search.rs", "searches_are_bounded"),
    ("threads", "tests/store/contract/remove.rs", "surplus_threads_of_an_owner_are_removed"),
    ("size of a file", "tests/http/files.rs", "files_are_limited_by_their_size_their_owner_and_in_all"),
    ("bytes of files", "tests/store/file_promises.rs", "the_bytes_of_files_are_limited"),
    ("files that no thread uses", "tests/store/file_promises.rs", "unused_files_are_removed"),
    ("bytes of threads and files", "tests/threads/owners.rs", "stored_bytes_are_limited_for_one_principal_and_in_all"),
    ("logs of detached runs", "tests/store/contract/remove.rs", "surplus_logs_are_removed"),
    ("threads that are searched for a run", "src/threads/views.rs", "a_thread_is_found_by_its_newest_run_among_200"),
    ("recordings", "src/observe/recordings/folder.rs", "the_oldest_recordings_are_removed_and_other_files_are_not"),
    ("followers of runs", "tests/run/followers.rs", "followers_are_limited_however_they_follow"),
    ("memory of a follower", "tests/run/detached.rs", "a_follower_that_does_not_read_does_not_slow_the_run"),
    ("clients that do not read", "src/http/accept/stall_timeout.rs", "a_write_that_is_not_read_fails_after_the_limit"),
    ("JSON patches", "src/protocol/patch/apply.rs", "copies_and_moves_are_bounded_by_their_memory"),
    ("open items of a run", "src/run/drive/guard/items.rs", "at_most_1024_items_of_a_kind_are_open"),
    ("schemas of tools", "src/protocol/schema/size.rs", "references_are_counted_as_what_they_refer_to"),
    (
        "schemas of interrupts",
        "tests/run/interrupts.rs",
        "a_run_cannot_ask_with_a_schema_that_multiplies_its_references",
    ),
    (
        "checks against a schema",
        "tests/run/interrupts.rs",
        "answers_that_are_hard_to_check_leave_the_server_responsive",
    ),
    ("tool calls", "tests/llm/models/options.rs", "calls_beyond_the_limit_are_not_run"),
    (
        "resources that a page of an MCP server reads",
        "tests/tools/mcp_apps.rs",
        "a_page_is_refused_what_is_not_its_own_or_too_large",
    ),
    (
        "messages of MCP servers",
        "tests/tools/mcp_sdk.rs",
        "a_result_of_many_small_values_is_refused_and_the_connection_is_kept",
    ),
    ("results of MCP servers", "src/tools/mcp/result.rs", "blocks_beyond_the_limit_add_nothing"),
    (
        "content of a span",
        "src/llm/call_content.rs",
        "the_content_of_a_span_is_bounded_and_the_newest_messages_are_kept",
    ),
    (
        "spans that wait for the collector",
        "tests/observe/telemetry/slow_collector.rs",
        "a_collector_that_never_answers_delays_neither_runs_nor_the_end",
    ),
    (
        "commands of the sandbox",
        "tests/tools/sandbox/mod.rs",
        "memory_is_limited_for_each_process_and_for_all_together",
    ),
    (
        "commands of the sandbox at a time",
        "tests/tools/sandbox/attacks.rs",
        "commands_wait_when_the_server_runs_its_maximum",
    ),
    ("sandbox folders", "tests/tools/sandbox/attacks.rs", "short_commands_cannot_fill_the_disk"),
    (
        "age of published keys (JWKS) that cannot be fetched again",
        "src/auth/jwt/jwks.rs",
        "keys_that_cannot_be_fetched_again_are_used_until_their_largest_age",
    ),
    (
        "connections of people to an MCP server (`login`)",
        "src/tools/mcp/persons.rs",
        "the_connections_that_were_not_used_the_longest_are_closed",
    ),
    (
        "logins under way",
        "src/tools/login/flow.rs",
        "a_link_ends_after_ten_minutes_and_is_for_one_browser_and_one_login",
    ),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The cells of each row of the table under the heading.
fn rows(document: &str, heading: &str) -> Vec<Vec<String>> {
    let section = document.split_once(&format!("\n{heading}\n")).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The options that a cell names: `` `[section] one`, `two` ``.
fn options(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).map(|text| text.rsplit(' ').next().unwrap())
}

#[test]
fn every_bound_has_a_test() {
    let rows = rows(&read("docs/operations.md"), "## Bounds");
    let listed: BTreeSet<_> = rows.iter().map(|row| row[0].as_str()).collect();
    let tested: BTreeSet<_> = TESTS.iter().map(|(resource, ..)| *resource).collect();
    assert_eq!(listed, tested, "the rows of docs/operations.md#bounds (left) and the tests of this file (right)");
    for (resource, file, test) in TESTS {
        let source = read(file);
        let (before, _) = source.split_once(&format!("fn {test}(")).unwrap_or_else(|| panic!("{file} lacks {test}"));
        let attributes = before.rsplit("\n\n").next().unwrap();
        // The store's promises are called by the tests of each store.
        let is_promise = file.starts_with("tests/store/contract/") || file.ends_with("_promises.rs");
        let is_test = attributes.contains("test") || is_promise;
        assert!(is_test, "{file}: {test}, of {resource}, is not a test");
        assert!(!attributes.contains("ignore"), "{file}: {test}, of {resource}, is not run");
    }
}

#[test]
fn every_bound_has_a_metric_that_shows_it() {
    let document = read("docs/operations.md");
    // `src/observe/metrics` compares its table with what the server serves.
    let metrics: BTreeSet<_> = rows(&document, "## Metrics").into_iter().map(|row| row[0].clone()).collect();
    for row in rows(&document, "## Bounds").into_iter().filter(|row| row[4] != "none") {
        let named: Vec<_> = options(&row[4]).map(|name| format!("`{name}`")).collect();
        assert!(!named.is_empty(), "{} has no metric", row[0]);
        for name in named {
            assert!(metrics.contains(&name), "{}: there is no metric {name}", row[0]);
        }
    }
}

#[test]
fn the_options_of_bounds_are_in_the_default_file() {
    let defaults = read("config/default.toml");
    for row in rows(&read("docs/operations.md"), "## Bounds") {
        for option in options(&row[2]) {
            let set = |line: &str| line.trim_start_matches(['#', ' ']).starts_with(&format!("{option} = "));
            assert!(defaults.lines().any(set), "{}: {option} is not in config/default.toml", row[0]);
        }
    }
}
