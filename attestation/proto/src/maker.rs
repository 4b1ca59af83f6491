//! The process that made a sealing key or counter.
//!
//! A fork of a process has the same keys and counters: it would seal other data under the same IV.
//! So every message counter under a key remembers its [`Maker`], and works in no other process.
//! Systems without fork have one process and need no check.

/// The process that made a key or a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    #[cfg(unix)]
    process: shef_process::Process,
}

/// Ids of two processes: the maker, and the fork that uses its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The maker.
    pub made: u32,
    /// This process.
    pub found: u32,
}

impl Maker {
    /// This process.
    #[must_use]
    pub fn this() -> Self {
        Self {
            #[cfg(unix)]
            process: shef_process::Process::this(),
        }
    }

    /// Checks that this process is the maker.
    ///
    /// # Errors
    /// It is a fork.
    #[cfg_attr(
        not(unix),
        expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "there is one process")
    )]
    pub fn check(self) -> Result<(), Copied> {
        #[cfg(unix)]
        {
            let found = shef_process::Process::this();
            if found != self.process {
                return Err(Copied { made: self.process.number(), found: found.number() });
            }
        }
        Ok(())
    }
}
