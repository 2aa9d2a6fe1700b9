//! The memory that runs may use together, for their requests and for the threads that they read. A
//! request is decoded, and a thread read, once its permit is taken. Both permits are given back
//! when the run has ended.

use std::sync::Arc;

use parking_lot::Mutex;

use super::start_error::StartError;
use agui_agent::{Principal, host::owner_of};
use agui_base::{
    memory_budget::{MemoryBudget, Sharing},
    permits::Permit,
};
use agui_protocol::decode::{MAX_OPEN_VALUES, MAX_VALUES};
use agui_store::ThreadSize;

/// The approximate memory of a message of a thread beside its text.
pub(crate) const MESSAGE_OVERHEAD_BYTES: u64 = 256;
/// The copies of a text: one in the run, and one that is written to the store.
const TEXT_COPIES: usize = 2;
/// The memory of a value of a message beside its text: 20 runs with 19,000 messages of 54 bytes
/// took 195 MB (2026-11-26).
const VALUE_BYTES: usize = 130;
/// The memory of a value in an open member, with the copies of a state: 20 runs with 240,000 times
/// `{"a":1}` took 4.7 GB.
const OPEN_VALUE_BYTES: usize = 490;

/// The memory budget of all runs. One request, and one run with its thread, takes at most the
/// largest size, so that it fits into a share.
pub struct RunMemoryBudget(MemoryBudget);

/// The memory of one run. Clones share it.
#[derive(Clone)]
pub struct RunMemory(Arc<Shared>);

struct Shared {
    budget: Arc<RunMemoryBudget>,
    owner: Arc<str>,
    request: RequestSize,
    of_request: Mutex<Permit>,
    of_thread: Mutex<Option<Permit>>,
    of_files: Mutex<Option<Permit>>,
}

/// The size of a request: the bytes of its body and the number of its JSON values.
#[derive(Debug, Clone, Copy)]
pub struct RequestSize {
    /// The length of the body that is decoded, in bytes.
    pub body_bytes: usize,
    /// The number of JSON values in the body, including nested ones; an empty array counts as two.
    pub values: usize,
}

impl RequestSize {
    /// Returns the memory of the decoded request.
    fn decoded(self, open_values: usize) -> usize {
        let open = open_values.min(self.values);
        TEXT_COPIES * self.body_bytes + VALUE_BYTES * (self.values - open) + OPEN_VALUE_BYTES * open
    }
}

impl RunMemoryBudget {
    /// Creates a budget of `bytes`, but at least of two of the largest requests.
    pub fn new(bytes: usize, max_body_bytes: usize, sharing: Sharing) -> Self {
        let values = MAX_VALUES.min(max_body_bytes);
        let largest = RequestSize { body_bytes: max_body_bytes, values }.decoded(MAX_OPEN_VALUES);
        Self(MemoryBudget::new(bytes, largest, sharing))
    }

    /// Returns the bytes that are taken.
    pub fn used_bytes(&self) -> usize {
        self.0.used_bytes()
    }

    /// Waits for the memory of a request. Counts as many open values as it may have.
    ///
    /// # Errors
    /// [`StartError::TooManyRunBytes`].
    pub async fn request(
        self: &Arc<Self>,
        principal: Option<&Principal>,
        request: RequestSize,
    ) -> Result<RunMemory, StartError> {
        let owner = owner_of(principal);
        let of_request =
            Mutex::new(self.take(&owner, request.decoded(MAX_OPEN_VALUES) as u64).await?);
        Ok(RunMemory(Arc::new(Shared {
            budget: self.clone(),
            owner,
            request,
            of_request,
            of_thread: Mutex::default(),
            of_files: Mutex::default(),
        })))
    }

    /// Waits for the memory to copy a thread of `bytes`: as it is read, as it is written, and its
    /// columns.
    ///
    /// # Errors
    /// [`StartError::TooManyRunBytes`].
    pub async fn copy(
        &self,
        principal: Option<&Principal>,
        bytes: u64,
    ) -> Result<Permit, StartError> {
        self.take(&owner_of(principal), bytes.saturating_mul(3)).await
    }

    async fn take(&self, owner: &Arc<str>, bytes: u64) -> Result<Permit, StartError> {
        self.0.whole(owner, bytes).await.map_err(|_| StartError::TooManyRunBytes)
    }
}

impl RunMemory {
    /// Reduces the memory of the request to that of its values, of which `open_values` are open.
    pub fn decoded(&self, open_values: usize) {
        self.0.of_request.lock().shrink_to(self.0.request.decoded(open_values));
    }

    /// Waits for the memory of a thread of `bytes`, in place of the memory of an earlier version.
    ///
    /// # Errors
    /// [`StartError::TooManyRunBytes`].
    pub async fn thread(&self, bytes: u64) -> Result<(), StartError> {
        *self.0.of_thread.lock() = None;
        let most = self.0.budget.0.largest.saturating_sub(self.0.of_request.lock().amount());
        let permit = self.0.budget.take(&self.0.owner, bytes.min(most as u64)).await?;
        *self.0.of_thread.lock() = Some(permit);
        Ok(())
    }

    /// Waits for the memory of the files that the agent gets, of `bytes` as base64.
    ///
    /// # Errors
    /// [`StartError::TooManyRunBytes`].
    pub async fn files(&self, bytes: u64) -> Result<(), StartError> {
        let of_thread = self.0.of_thread.lock().as_ref().map_or(0, Permit::amount);
        let taken = self.0.of_request.lock().amount() + of_thread;
        let most = self.0.budget.0.largest.saturating_sub(taken);
        let permit = self.0.budget.take(&self.0.owner, bytes.min(most as u64)).await?;
        *self.0.of_files.lock() = Some(permit);
        Ok(())
    }

    /// Waits for the memory of a thread that is not read yet. Half of its bytes may be its state.
    pub(crate) async fn unread_thread(&self, size: ThreadSize) -> Result<(), StartError> {
        let values = (size.bytes / 2).min(MAX_OPEN_VALUES as u64);
        self.thread(
            size.bytes + MESSAGE_OVERHEAD_BYTES * size.messages + OPEN_VALUE_BYTES as u64 * values,
        )
        .await
    }

    /// Reduces the memory of the thread to that of the thread as it was read.
    pub fn read_thread(&self, bytes: u64) {
        if let Some(permit) = &mut *self.0.of_thread.lock() {
            permit.shrink_to(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_largest_request_on_the_largest_thread_fits_into_a_share() {
        const MAX_BODY_BYTES: usize = 1_000_001;
        let budget = Arc::new(RunMemoryBudget::new(0, MAX_BODY_BYTES, Sharing::PerOwner));
        let ada = Principal::new("key", "ada");
        let largest = RequestSize { body_bytes: MAX_BODY_BYTES, values: MAX_VALUES };
        let memory = budget.request(Some(&ada), largest).await.unwrap();
        memory.thread(u64::MAX).await.unwrap();
        memory.decoded(0);
        memory.thread(u64::MAX).await.unwrap();
        assert!(matches!(
            budget.request(Some(&ada), largest).await,
            Err(StartError::TooManyRunBytes)
        ));
        drop(memory);
        assert_eq!(budget.used_bytes(), 0);
    }
}
