//! Parallel work on many chunks.

use shef_proto::config::TAG_LEN;

/// Bytes of the largest chunk, and the unit of work when data is copied immediately afterwards: it
/// stays in the L1 cache.
pub(crate) const BLOCK: usize = 4096;
/// Bytes of the smallest chunk.
pub(crate) const MIN_CHUNK: usize = 64;

/// Number of CPUs available to this process. Queried once: the query reads kernel files and takes
/// as long as sealing several hundred kilobytes.
#[cfg(feature = "parallel")]
pub fn processors() -> usize {
    static PROCESSORS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

type PerChunk<'a> = dyn Fn(u64, &[u8], &mut [u8], &mut [u8]) -> bool + Sync + 'a;

/// Runs `f` on every chunk, its output chunk and its tag. Returns the first chunk for which `f`
/// returned false.
pub(crate) fn for_each_chunk(
    chunk: usize,
    from: &[u8],
    to: &mut [u8],
    tags: &mut [u8],
    f: &PerChunk<'_>,
) -> Option<u64> {
    let serial = |first: u64, from: &[u8], to: &mut [u8], tags: &mut [u8]| {
        let mut bad = None;
        let parts = from
            .chunks_exact(chunk)
            .zip(to.chunks_exact_mut(chunk))
            .zip(tags.chunks_exact_mut(TAG_LEN as usize));
        for (i, ((from, to), tag)) in (first..).zip(parts) {
            if !f(i, from, to, tag) && bad.is_none() {
                bad = Some(i);
            }
        }
        bad
    };
    #[cfg(feature = "parallel")]
    {
        // Below this size a thread costs more than it saves.
        let threads = processors().min(from.len() / (256 * 1024));
        if threads > 1 {
            // Each thread takes the next share: one that starts late, or is delayed, does less.
            let share = (64 * 1024 / chunk).max(1);
            let bytes = share * chunk;
            let shares = from
                .chunks(bytes)
                .zip(to.chunks_mut(bytes))
                .zip(tags.chunks_mut(share * TAG_LEN as usize));
            let shares = std::sync::Mutex::new((0u64..).step_by(share).zip(shares));
            let next = || shares.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
            let work = || {
                let mut bad: Option<u64> = None;
                while let Some((first, ((from, to), tags))) = next() {
                    bad = bad.or(serial(first, from, to, tags));
                }
                bad
            };
            return std::thread::scope(|scope| {
                let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
                let own = work();
                let all = others
                    .into_iter()
                    .map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                all.chain([own]).flatten().min()
            });
        }
    }
    serial(0, from, to, tags)
}
