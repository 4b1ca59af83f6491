//! The data owner: a session with an attested Shield, its buffers, transfers, batches and waits.

pub mod buffer;
mod judge;
pub mod ring;
pub mod session;
pub mod transfer;
pub mod wait;
pub mod worker;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ignores poisoning: the data is consistent whenever the lock is free.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
