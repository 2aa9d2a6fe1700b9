//! The promises of [`Store`] as tests: `agui-store` with the feature `contract`, as a dev-dependency
//! of a crate with a store of its own.
//!
//! ```no_run
//! # use agui_store::{MemoryStore as MyStore, contract};
//! # #[allow(clippy::test_attr_in_doctest, reason = "it is how a caller writes it")]
//! #[tokio::test(flavor = "multi_thread")]
//! async fn my_store_keeps_the_contract() {
//!     contract::check(async || MyStore::new()).await;
//! }
//! ```
//!
//! Several promises are about concurrent operations, so the runtime needs several threads. [`check`] cannot test that a
//! write survives the end of the process (promise 6), or an unreachable database: test these yourself.
//!
//! A new promise is a function of a new, empty store in one of the files beside this one, and a line in `promises!`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "tests"
)]

mod attempts;
mod begin;
mod branches;
mod copies;
mod finish;
mod lease;
mod log;
mod messages;
mod prelude;
mod promote;
mod queue;
mod read;
mod remove;
mod search;
mod shared;
#[doc(hidden)]
pub mod steps;
mod update;

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt as _, future::LocalBoxFuture};

use crate::Store;

/// Checks every promise, each on a new store that `new_store` makes. A new store must be empty.
///
/// # Panics
/// If the store breaks a promise. The message names all broken promises and what was seen.
pub async fn check<S: Store>(new_store: impl AsyncFn() -> S) {
    check_all(PROMISES, new_store).await;
}

#[doc(hidden)]
pub async fn check_all<S: Store>(promises: &[(&str, Promise)], new_store: impl AsyncFn() -> S) {
    let mut broken = Vec::new();
    for (name, promise) in promises {
        let store = Arc::new(new_store().await);
        if let Err(panic) = AssertUnwindSafe(promise(store)).catch_unwind().await {
            broken.push(format!("\n- {name}: {}", panic_text(&*panic)));
        }
    }
    assert!(
        broken.is_empty(),
        "the store breaks {} of {} promises:{}",
        broken.len(),
        promises.len(),
        broken.concat()
    );
}

#[doc(hidden)]
pub type Promise = fn(steps::DynStore) -> LocalBoxFuture<'static, ()>;

macro_rules! promises {
    ($($area:ident: $($name:ident),+;)+) => {
        const PROMISES: &[(&str, Promise)] =
            &[$($((concat!(stringify!($area), "::", stringify!($name)), |store| Box::pin($area::$name(store)))),+),+];
    };
}

promises! {
    attempts: the_attempts_of_a_run_are_kept, the_newest_attempt_is_the_run, an_answered_request_begins_no_run, an_alias_finds_its_run_and_answers_its_request,
        a_known_run_is_searched_after_the_other_checks, one_of_many_begins_of_a_request_succeeds;
    begin: the_first_run_creates_the_thread, a_thread_has_at_most_one_running_run,
        the_same_id_of_two_owners_is_two_threads, one_of_many_concurrent_begins_succeeds,
        a_begin_with_an_outdated_version_writes_nothing, every_string_is_a_valid_identifier, a_begin_with_a_dropped_future_happens_whole_or_not_at_all,
        the_clients_messages_and_state_are_stored_when_the_run_begins,
        a_run_that_would_make_the_thread_too_large_writes_nothing;
    branches: messages_and_states_are_read_back_unchanged, a_branch_that_was_left_can_still_be_read,
        an_updated_message_keeps_its_position, messages_carry_their_run_and_its_delivery,
        the_end_state_has_branch_state_and_interrupts, a_branch_is_known_by_its_first_run, an_answered_interrupt_is_not_in_the_end_state;
    copies: a_thread_is_read_with_all_its_content, a_thread_is_created_with_its_content,
        the_attempts_of_a_run_are_copied,
        feedback_is_replaced_and_removed;
    finish: an_end_is_stored_whole, a_finish_without_the_lease_writes_nothing, a_repeated_finish_changes_nothing,
        every_status_is_stored, the_reason_of_an_end_is_stored, concurrent_operations_on_many_threads_do_not_interfere;
    lease: a_lost_run_is_taken_over_once, after_a_take_over_the_old_lease_writes_nothing;
    log: batches_of_many_runs_are_appended_in_one_call, a_log_has_each_event_once_with_its_time,
        a_log_begins_with_the_line_of_its_begin, one_call_may_append_two_batches_of_a_run,
        an_empty_batch_only_checks_the_lease,
        a_lost_lease_fails_only_its_own_batch, a_page_of_a_log_respects_max_bytes,
        a_log_that_is_read_as_ended_is_complete, the_logs_of_several_runs_are_read_at_once, concurrent_runs_append_to_their_own_logs,
        what_a_run_was_given_is_read_after_its_end, what_a_run_was_given_is_removed_with_its_log;
    messages: a_branch_is_read_backwards_page_by_page, a_page_has_the_siblings_of_its_messages,
        the_messages_of_a_run_are_read_on_all_branches;
    promote: a_promoted_run_is_a_detached_one, a_promotion_is_repeated_without_effect,
        a_promotion_without_the_lease_writes_nothing;
    queue: queued_runs_are_kept_in_order_up_to_a_limit, a_queued_run_begins_once_and_in_its_order,
        a_queued_run_begins_on_no_new_thread, a_lost_queued_run_is_taken_once,
        who_takes_a_lost_run_may_take_the_queued_runs_of_its_holder;
    read: threads_are_listed_newest_first, archived_threads_and_agents_are_selected, paging_skips_and_repeats_no_thread,
        runs_are_read_newest_first, the_states_of_the_newest_runs_are_read_once_each, unknown_threads_and_runs_are_none;
    remove: a_deleted_thread_is_not_found, a_recreated_thread_rejects_old_leases,
        retention_without_limits_removes_nothing, old_threads_are_removed, surplus_threads_of_an_owner_are_removed,
        the_owner_with_the_most_threads_loses_threads_first, old_logs_are_removed, surplus_logs_are_removed,
        running_runs_are_not_removed;
    search: threads_are_found_by_what_was_said_in_any_script, a_text_is_found_in_each_form_that_unicode_has_for_it, a_search_finds_what_is_stored_now,
        long_words_are_found_by_their_beginning, found_threads_are_paged_and_filtered_like_all_others,
        many_matches_in_one_thread_hide_no_other_thread;
    shared: the_leases_of_a_holder_are_renewed, a_released_lease_is_lost_at_once_and_is_not_renewed,
        the_runs_lost_the_longest_are_listed_first, a_cancel_request_is_listed_for_the_holder;
    update: a_title_is_set_unless_the_thread_has_one, an_update_changes_only_what_it_names,
        an_update_with_an_outdated_version_writes_nothing, the_head_moves_to_another_branch_but_not_during_a_run;
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}
