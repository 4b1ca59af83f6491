//! Clean-up after an interrupt (Ctrl-C, Ctrl-\, SIGTERM, SIGHUP) of a command: no folder, no
//! process, and nothing at a service remains.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::CliError;

const SIGNALS: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Set by an interrupt after [`cleans_up`].
static ENDING: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Processes that end with this one.
static CHILDREN: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// From now on an interrupt sets `stop`, and a second one ends the process at once.
///
/// # Errors
/// SHEF-CLI-070 if the system refuses the handler.
pub fn stops(stop: &Arc<AtomicBool>) -> Result<(), CliError> {
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(stop))
            .map_err(|e| refused(&e))?;
        signal_hook::flag::register(signal, Arc::clone(stop)).map_err(|e| refused(&e))?;
    }
    Ok(())
}

/// As [`stops`], but only for SIGTERM: this process ignores the signals that a terminal sends to all
/// processes of a command. For a process that another one of them uses and ends.
///
/// # Errors
/// SHEF-CLI-070 if the system refuses the handler.
pub fn leaves_terminal(stop: &Arc<AtomicBool>) -> Result<(), CliError> {
    for signal in SIGNALS {
        let flag = if signal == SIGTERM { Arc::clone(stop) } else { Arc::default() };
        signal_hook::flag::register(signal, flag).map_err(|e| refused(&e))?;
    }
    Ok(())
}

type Hooks = BTreeMap<u64, Box<dyn FnOnce() + Send>>;

/// What an interrupt does first.
static HOOKS: Mutex<Hooks> = Mutex::new(BTreeMap::new());

/// Held while a [`guarded`] function runs, and from the first hook to the end of the process.
static ELSEWHERE: Mutex<()> = Mutex::new(());

/// Unfinished files, and folders of intermediate results.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a hook of [`first`]; dropping it forgets the hook.
#[derive(Debug)]
pub struct Hook(u64);

impl Drop for Hook {
    fn drop(&mut self) {
        locked(&HOOKS).remove(&self.0);
    }
}

/// After [`cleans_up`], an interrupt calls `hook` before it ends anything, as long as the returned
/// value exists. For what this process has left elsewhere, at a service.
#[must_use]
pub fn first(hook: impl FnOnce() + Send + 'static) -> Hook {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    locked(&HOOKS).insert(number, Box::new(hook));
    Hook(number)
}

/// Runs `work`, which leaves something elsewhere that a hook of [`first`] removes: before the hooks
/// or never, so that nothing is left after them.
pub fn guarded<T>(work: impl FnOnce() -> T) -> T {
    loop {
        let held = locked(&ELSEWHERE);
        if !ENDING.load(Ordering::Relaxed) {
            return work();
        }
        drop(held);
        silences();
    }
}

/// The files and folders that an interrupt removes after [`cleans_up`]. The interrupt waits while
/// this lock is held.
pub fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    locked(&PARTS)
}

/// From now on an interrupt calls the hooks of [`first`], ends every [`child`], removes what is in
/// [`parts`], and ends the process as usual. A second interrupt does not wait for the hooks, which
/// may wait for a service; children and parts are gone when the process ends.
///
/// # Errors
/// SHEF-CLI-070 if the system refuses the handler.
pub fn cleans_up() -> Result<(), CliError> {
    static BEGUN: Mutex<bool> = Mutex::new(false);
    let mut begun = locked(&BEGUN);
    if std::mem::replace(&mut *begun, true) {
        return Ok(());
    }
    for signal in SIGNALS {
        signal_hook::flag::register(signal, Arc::clone(&ENDING)).map_err(|e| refused(&e))?;
    }
    let mut signals = Signals::new(SIGNALS).map_err(|e| refused(&e))?;
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        let Some(signal) = signals.next() else { return };
        std::thread::spawn(move || {
            let _closed = locked(&ELSEWHERE);
            let hooks = std::mem::take(&mut *locked(&HOOKS));
            hooks.into_values().for_each(|hook| hook());
            end(signal);
        });
        if let Some(signal) = signals.next() {
            end(signal);
        }
    });
    Ok(())
}

/// Ends every [`child`], removes what is in [`parts`], and ends the process. Of two threads, the
/// second one waits until the first one has done so.
fn end(signal: i32) {
    let _ended = end_children();
    let parts = parts();
    for part in parts.iter() {
        remove(part);
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// Removes a file, or a folder in which other threads may still be writing: each pass removes the
/// files that they have added.
pub(crate) fn remove(part: &Path) {
    const PASSES: usize = 100;
    if std::fs::remove_file(part).is_err() {
        let gone = |_: &usize| std::fs::remove_dir_all(part).is_ok() || !part.exists();
        let _ = (0..PASSES).find(gone);
    }
}

/// Ends every [`child`]. While the returned lock is held, no thread starts another one: until the
/// process ends.
fn end_children() -> MutexGuard<'static, Vec<Pid>> {
    let children = locked(&CHILDREN);
    for child in children.iter() {
        let _ = kill_process(*child, Signal::KILL);
    }
    children
}

/// Starts a process that an interrupt also ends, until [`forgets`]. It also ends when the calling
/// thread does, however that ends ([`shef_process::ends_with_thread`]).
///
/// # Errors
/// The system's.
pub fn child(command: &mut Command) -> std::io::Result<Child> {
    let mut children = locked(&CHILDREN);
    let child = shef_process::ends_with_thread(command).spawn()?;
    children.push(Pid::from_child(&child));
    Ok(child)
}

/// An interrupt no longer ends the child with this process id.
pub fn forgets(child: u32) {
    locked(&CHILDREN).retain(|pid| pid.as_raw_nonzero().get().cast_unsigned() != child);
}

/// Ends a [`child`] that leads a process group, and all of the group; an interrupt no longer does.
pub fn ends_group(child: &mut Child) {
    let mut children = locked(&CHILDREN);
    let pid = Pid::from_child(child);
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = child.wait();
    children.retain(|other| *other != pid);
}

/// Does not return if an interrupt is ending this process: errors in its threads are then
/// consequences of that end, and are not reported.
pub fn silences() {
    while ENDING.load(Ordering::Relaxed) {
        std::thread::park();
    }
}

fn refused(error: &std::io::Error) -> CliError {
    CliError::internal(format!("cannot install an interrupt handler: {error}"))
}
