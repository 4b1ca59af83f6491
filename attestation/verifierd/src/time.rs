//! The time, and human-readable dates: UTC, proleptic Gregorian.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Source of the time.
#[derive(Debug, Default)]
pub enum Clock {
    /// The system.
    #[default]
    System,
    /// A test.
    Set(AtomicI64),
}

impl Clock {
    /// Seconds since 1970.
    #[must_use]
    pub fn now(&self) -> i64 {
        match self {
            Self::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |passed| passed.as_secs() as i64),
            Self::Set(now) => now.load(Ordering::Relaxed),
        }
    }
}

/// Seconds of a day.
pub const DAY: i64 = 24 * 3600;

/// Year, month and day of a time.
fn ymd(seconds: i64) -> (i32, u8, u8) {
    let (year, month, day) = shef_proto::calendar::civil(seconds.div_euclid(DAY));
    (year as i32, month as u8, day as u8)
}

/// `2026-11-21 15:04:05 UTC`.
#[must_use]
pub fn text(seconds: i64) -> String {
    let (year, month, day) = ymd(seconds);
    let rest = seconds.rem_euclid(DAY);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// `2026-11-21T15:04:05Z` (RFC 3339).
#[must_use]
pub fn rfc3339(seconds: i64) -> String {
    text(seconds).replacen(' ', "T", 1).replace(" UTC", "Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates() {
        for (seconds, date) in [
            (0, (1970, 1, 1)),
            (951_782_400, (2000, 2, 29)),
            (1_795_219_200, (2026, 11, 21)),
            (4_102_444_799, (2099, 12, 31)),
        ] {
            assert_eq!(ymd(seconds), date);
        }
        assert_eq!(text(1_795_273_445), "2026-11-21 15:04:05 UTC");
        assert_eq!(rfc3339(1_795_273_445), "2026-11-21T15:04:05Z");
    }
}
