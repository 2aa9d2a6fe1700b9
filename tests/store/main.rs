//! The contract of the `Store` trait, held against every store; and what only a database can do wrong.
//!
//! `contract` follows the documentation of the trait. Each of its tests runs on each backend named below.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, missing_docs, unreachable_pub)]

mod backends;
mod contract;
mod crash;
mod files;
mod outage;
#[path = "../support/postgres.rs"]
mod postgres;
mod shared;

/// Runs every test of the contract on every backend: `memory::begin::…`, `sqlite::begin::…`, and so on.
macro_rules! backends {
    ($($backend:ident),*) => { $(mod $backend { contract!($backend); })* };
}

/// The contract. A test is a function of a new, empty store.
macro_rules! contract {
    ($backend:ident) => {
        contract! { $backend
            begin: the_first_run_makes_the_thread, a_thread_has_one_running_run,
                the_same_id_of_two_owners_is_two_threads, of_many_that_begin_at_once_one_begins,
                a_begin_on_an_outdated_thread_writes_nothing, runs_are_numbered_upwards,
                an_ended_run_of_the_same_id_is_replaced_with_its_log, any_text_is_an_identifier,
                a_begin_whose_caller_leaves_happens_whole_or_not_at_all,
                what_the_client_brings_is_stored_when_the_run_begins,
                a_run_that_would_make_the_thread_too_large_writes_nothing;
            branches: messages_and_states_come_back_as_they_were, a_branch_that_is_left_stays,
                a_replaced_message_keeps_its_place, a_message_knows_its_run_and_whether_it_was_delivered,
                an_ended_run_leaves_its_branch_its_state_and_its_interrupts, an_answered_interrupt_is_not_left_open;
            finish: an_end_is_stored_whole, without_the_lease_nothing_is_written, a_repeated_end_changes_nothing,
                every_status_is_kept, an_end_may_add_nothing, operations_of_many_threads_at_once_are_done_each;
            lease: a_lost_run_is_taken_over_once, after_a_take_over_the_old_lease_writes_nothing;
            log: batches_of_many_runs_are_written_together, events_that_are_there_change_nothing,
                a_repeated_batch_may_have_grown, two_batches_of_a_run_may_come_together,
                an_empty_batch_only_checks_the_lease, a_lost_lease_is_reported_by_its_batch,
                reading_begins_anywhere, reading_takes_what_fits, a_log_that_is_read_as_ended_is_complete,
                runs_write_at_the_same_time;
            read: threads_are_listed_newest_first, pages_miss_and_repeat_nothing, runs_are_read_newest_first,
                what_does_not_exist_is_none;
            remove: a_deleted_thread_is_gone, a_thread_made_again_knows_no_old_lease, without_a_limit_nothing_is_removed,
                old_threads_are_removed, surplus_threads_of_an_owner_are_removed,
                the_owner_with_the_most_threads_loses_the_surplus_of_all, old_logs_are_removed, surplus_logs_are_removed,
                what_is_running_stays;
        }
    };
    ($backend:ident $($area:ident: $($test:ident),+;)+) => {
        $(mod $area {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(backend) = crate::backends::$backend().await {
                    crate::contract::$area::$test(backend.store()).await;
                }
            })+
        })+
    };
}

mod on {
    backends!(memory, sqlite, postgres);
}
