//! What keys leave behind in this process.

use crate::SdkError;

/// Bytes of the stack that are overwritten: more than key derivation, HPKE and ciphers reach.
const STACK: usize = 128 << 10;

/// Overwrites what earlier calls left on the stack below the caller: ciphers and derivations keep
/// keys there while they work, and do not clear it.
#[inline(never)]
pub(crate) fn wash_stack() {
    let mut below = [0_u8; STACK];
    std::hint::black_box(&mut below);
}

/// Washes the stack when it is dropped: the last field of what holds keys.
pub(crate) struct Wash;

impl Drop for Wash {
    fn drop(&mut self) {
        wash_stack();
    }
}

/// Keeps other processes of the same user, debuggers and core dumps away from the memory of this
/// one, where the keys of its sessions are. A data owner's program does this first.
///
/// # Errors
/// [`SdkError::Traces`] where the system refuses; on systems other than Linux nothing is done.
pub fn undumpable() -> Result<(), SdkError> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| SdkError::Traces { reason: error.to_string() })?;
    Ok(())
}
