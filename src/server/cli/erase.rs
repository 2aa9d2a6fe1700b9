//! `agui-server erase`: deletes all threads of a principal from the store, for operators.

use std::error::Error;

use super::{arguments::EraseArguments, output::print_line};
use crate::server::configured::store::open_store;
use agui_agent::{Principal, host::owner_of};
use agui_run::{
    ThreadOptions,
    host::{Runs, RunsBuilder},
    threads::Threads,
};
use agui_store::{Retention, ThreadKey, ThreadNumber, host::now};

pub(super) async fn erase(
    EraseArguments { owner, thread, options }: EraseArguments,
) -> Result<(), Box<dyn Error>> {
    let owner = owner.unwrap_or_default();
    let principal = match owner.split_once(':') {
        Some((source, name)) => Some(Principal::new(source, name)),
        None if owner == ThreadKey::ANONYMOUS || thread.is_some() => None,
        None => {
            return Err(format!(
                "{owner:?} is not an owner of threads: write key:{owner}, or jwt:ISSUER:{owner}"
            )
            .into());
        }
    };
    let (loaded, _) = options.load()?;
    let (store, _) = open_store(&loaded.config).await?;
    let erased = match thread {
        // The thread can be so damaged that no request can name it.
        Some(number) if store.delete(ThreadNumber(number)).await? => format!("thread {number}"),
        Some(number) => {
            return Err(
                format!("there is no thread {number}: see agui-server check --store").into()
            );
        }
        None => {
            let mut threads = ThreadOptions::default();
            threads.files = loaded.config.files.clone();
            let runs = RunsBuilder { store: store.clone(), threads, ..Runs::builder() }.build();
            let threads = Threads::of(&runs);
            let key = owner_of(principal.as_ref());
            let erased = threads.delete_all(key.clone()).await?;
            if let Some(sealed) = store.sealed_values() {
                sealed.delete_sealed(&key, None, None).await?;
            }
            format!("{erased} threads of {owner}")
        }
    };
    // Without limits, a sweep completes deletions and removes nothing else.
    store.sweep(&Retention::default(), now()).await?;
    print_line(&format!("erased {erased}"));
    Ok(())
}
