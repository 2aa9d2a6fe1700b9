//! `agui-server erase`: deletes all threads of a principal from the store, for operators.

use std::error::Error;

use super::{arguments::EraseArguments, load::load, output::print_line};
use crate::{
    server::configured::store::open_store,
    store::{Retention, ThreadKey, ThreadPage, ThreadParts, now},
};

/// The threads of one page.
const THREADS_PER_PAGE: usize = 100;

pub(super) async fn erase(EraseArguments { owner, options }: EraseArguments) -> Result<(), Box<dyn Error>> {
    if owner != ThreadKey::ANONYMOUS && !owner.contains(':') {
        return Err(format!("{owner:?} is not an owner of threads: write key:{owner}, or jwt:ISSUER:{owner}").into());
    }
    let (loaded, _) = load(options)?;
    let (store, _) = open_store(&loaded.config).await?;
    let mut erased = 0;
    loop {
        let threads = store.threads(&owner, &ThreadPage::first(THREADS_PER_PAGE)).await?;
        for summary in &threads {
            let key = ThreadKey { owner: owner.as_str().into(), id: summary.id.clone() };
            if let Some(view) = store.thread(&key, ThreadParts::default()).await? {
                erased += usize::from(store.delete(view.thread.number).await?);
            }
        }
        if threads.is_empty() {
            break;
        }
    }
    // Without limits, a sweep completes deletions and removes nothing else.
    store.sweep(&Retention::default(), now()).await?;
    print_line(&format!("erased {erased} threads of {owner}"));
    Ok(())
}
