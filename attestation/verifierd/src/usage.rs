//! Processor time, memory and files of the process, under the names of Prometheus' client libraries.

use std::sync::LazyLock;
use std::time::SystemTime;

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::metrics::Family;

/// Seconds since 1970. The kernel's own figure needs /proc/stat, which units with `ProcSubset=pid`
/// hide.
static START: LazyLock<Option<f64>> = LazyLock::new(|| {
    let passed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    passed.ok().map(|passed| passed.as_secs_f64())
});

/// Remembers the time of the start.
pub fn started() {
    LazyLock::force(&START);
}

/// Resident memory in bytes, from the text of /proc/self/status.
fn resident(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib as f64 * 1024.0)
}

/// Metrics of this process. A family has no sample if the kernel does not give its value.
#[must_use]
pub fn families() -> Vec<Family> {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    // The folder that is read is one of them.
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|all| all.count().saturating_sub(1));
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
    vec![
        Family::gauge("process_start_time_seconds", "Start, in seconds since 1970.", *START),
        Family::counter(
            "process_cpu_seconds_total",
            "Processor time, without the processes that run policies.",
            seconds,
        ),
        Family::gauge(
            "process_resident_memory_bytes",
            "Resident memory, without the processes that run policies.",
            status.as_deref().and_then(resident),
        ),
        Family::gauge("process_open_fds", "Open file descriptors.", open.map(|open| open as f64)),
        Family::gauge(
            "process_max_fds",
            "Limit of open file descriptors.",
            getrlimit(Resource::Nofile).current.map(|limit| limit as f64),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_likely_value() {
        started();
        let value = |name: &str| {
            let all = families();
            let family = all.iter().find(|family| family.name == name);
            family.unwrap_or_else(|| panic!("{name} is missing")).values[0].2
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((now - 3600.0..=now).contains(&value("process_start_time_seconds")));
        assert!(value("process_resident_memory_bytes") > 1_000_000.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
        let before = (value("process_open_fds"), value("process_cpu_seconds_total"));
        let files: Vec<_> =
            (0..20).map(|_| std::fs::File::open("/proc/self/status").unwrap()).collect();
        // Other tests of this program open and close files, too.
        assert!(value("process_open_fds") > before.0 + 10.0);
        drop(files);
        while value("process_cpu_seconds_total") <= before.1 {}
    }

    #[test]
    fn resident_memory_is_in_kibibytes() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t    12 kB\nThreads:\t1\n"), Some(12_288.0));
        assert_eq!(resident("Name:\tx\n"), None);
    }
}
