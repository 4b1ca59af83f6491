//! Identifies this process, detects copies made by fork, and ends children with their parent.
#![cfg(unix)]
#![expect(
    unsafe_code,
    reason = "a page that the kernel wipes in a copy of the process, and a call in a new child"
)]

use std::process::Command;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A process. A copy made by fork is a different one, even if it has the same id: in another
/// namespace, or after the original ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    number: u32,
    copy: u64,
}

impl Process {
    /// This process.
    pub fn this() -> Self {
        Self { number: std::process::id(), copy: copy() }
    }

    /// Its process id.
    pub fn number(self) -> u32 {
        self.number
    }
}

/// A number that differs from that of every process of which this one is a copy; 0 if the kernel
/// does not wipe pages.
fn copy() -> u64 {
    static MARK: OnceLock<Option<&AtomicU64>> = OnceLock::new();
    /// The last number assigned, here or in a process of which this one is a copy.
    static LAST: AtomicU64 = AtomicU64::new(0);
    let Some(mark) = *MARK.get_or_init(wiped) else { return 0 };
    match mark.load(Ordering::Acquire) {
        0 => {
            let new = LAST.fetch_add(1, Ordering::AcqRel) + 1;
            // If several threads see the zero first, one of them assigns the number.
            mark.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire)
                .map_or_else(|number| number, |_| new)
        }
        number => number,
    }
}

/// A word that is zero in a new copy of the process.
fn wiped() -> Option<&'static AtomicU64> {
    const BYTES: usize = 4096;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses the address, so no existing mapping is replaced; the result is
    // checked.
    let page =
        unsafe { libc::mmap(null_mut(), BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    // SAFETY: the page is the one just mapped, if the mapping succeeded.
    if page == libc::MAP_FAILED || unsafe { libc::madvise(page, BYTES, libc::MADV_WIPEONFORK) } != 0
    {
        return None;
    }
    // SAFETY: the word is at the start of a page that is never unmapped, and all threads access it
    // through this reference.
    Some(unsafe { AtomicU64::from_ptr(page.cast()) })
}

/// A child of this command ends when the thread that starts it ends, also by SIGKILL, on systems
/// that can do this (Linux). A program that gains rights when it starts (set-user-ID) does not.
pub fn ends_with_thread(command: &mut Command) -> &mut Command {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;
        let parent = std::process::id().cast_signed();
        let ends = move || {
            // SAFETY: this call takes numbers, and changes nothing but the signal that this process
            // gets.
            if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // SAFETY: this call has no arguments, and cannot fail.
            if unsafe { libc::getppid() } != parent {
                // The parent has exited, so no process reads an error from here. To return one would
                // make the standard library print a message and abort.
                // SAFETY: ends the copy at once, without code of the parent's.
                unsafe { libc::_exit(1) };
            }
            Ok(())
        };
        // SAFETY: between fork and exec, the closure makes at most three system calls, and none
        // allocates or locks anything.
        unsafe { command.pre_exec(ends) };
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exit status of a forked copy that keeps the process id.
    fn of_a_copy(asked: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the copy runs `asked` and exits with `_exit`.
        let copy = unsafe { libc::fork() };
        if copy == 0 {
            let answer = asked();
            // SAFETY: ends the copy without running any code of the test harness.
            unsafe { libc::_exit(answer) };
        }
        let mut status = 0;
        // SAFETY: the id is the copy's, and the status outlives the call.
        assert_eq!(unsafe { libc::waitpid(copy, &raw mut status, 0) }, copy);
        assert!(libc::WIFEXITED(status));
        libc::WEXITSTATUS(status)
    }

    #[test]
    fn a_copy_is_another_process_whatever_its_number() {
        let made = Process::this();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(Process::this)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == made));
        let named = |number| Process { number, ..Process::this() };
        let copies = of_a_copy(|| {
            let (first, same) = (named(made.number), named(made.number));
            let second = of_a_copy(|| i32::from(![made, first].contains(&named(made.number))));
            i32::from(first != made && first == same) | second << 1
        });
        assert_eq!((copies, Process::this()), (3, made));
    }
}
