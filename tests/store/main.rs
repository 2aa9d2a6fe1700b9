//! What a store promises, held against every store there is; and what only a database can do wrong.
//!
//! `contract` follows the prose of the `Store` trait; each of its tests runs on each backend named below.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, missing_docs, unreachable_pub)]

mod backends;
mod contract;
mod crash;
mod files;
mod foreground;
mod fresh;
mod migrations;
#[path = "../support/postgres.rs"]
mod postgres;
mod shared;

/// Runs every test of the contract on every backend: `memory::begin::…`, `sqlite::begin::…`, and so on. Its runs
/// outlive their connection; on a backend called `…_foreground` they do not.
macro_rules! backends {
    ($($backend:ident),*) => { $(mod $backend { contract!($backend); })* };
}

/// The contract. A test is a function of a new, empty store.
macro_rules! contract {
    ($backend:ident) => {
        contract! { $backend
            begin: a_first_run_makes_the_thread, a_thread_has_one_running_run, a_thread_is_only_its_owners,
                of_many_that_begin_at_once_one_does, leases_and_runs_are_numbered_upwards,
                an_ended_run_of_the_same_id_is_replaced_with_its_log, any_text_is_an_identifier,
                a_caller_who_leaves_leaves_nothing_behind;
            content: it_comes_back_as_it_was, a_save_is_not_a_change_of_the_thread, only_the_lease_may_save;
            finish: it_ends_everything_at_once, without_the_lease_nothing_happens, it_may_be_repeated,
                every_way_to_end_is_kept, it_needs_no_content, what_many_ask_for_at_once_is_done_for_each;
            lease: those_of_a_holder_are_renewed, a_cancel_reaches_the_holder, a_run_that_ended_is_not_cancelled,
                a_lost_one_is_taken_over_once, the_longest_lost_come_first, a_renewed_one_is_not_lost,
                after_a_take_over_the_old_one_writes_nothing;
            log: batches_of_many_runs_go_in_together, what_is_there_already_changes_nothing,
                a_repeated_batch_may_have_grown, two_batches_of_a_run_may_come_together,
                an_empty_batch_only_asks_for_the_lease, a_lost_lease_is_told_by_its_batch,
                reading_begins_anywhere, reading_takes_what_fits, what_is_read_as_ended_is_complete,
                runs_write_at_the_same_time;
            read: threads_are_listed_newest_first, pages_miss_and_repeat_nothing, runs_are_listed_newest_first,
                what_is_not_there_is_none;
            remove: a_deleted_thread_is_gone, a_thread_begun_anew_knows_no_old_lease, nothing_goes_without_a_limit,
                old_threads_go, surplus_threads_go, old_logs_go, surplus_logs_go, what_is_running_stays;
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
    backends!(memory, sqlite, postgres, sqlite_foreground, postgres_foreground);
}

mod with_both_kinds_of_runs {
    macro_rules! both {
        ($($backend:ident),*) => { $(mod $backend { contract! { $backend
            begin: a_run_outlives_its_connection_or_not;
            finish: a_run_is_recorded_once;
        } })* };
    }
    both!(memory, sqlite, postgres);
}
