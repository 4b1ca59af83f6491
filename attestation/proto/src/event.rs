//! Events of a verifier service: who changed what, or was refused. The digest of each covers the
//! digest of the event before it, and each receipt names the newest event, so that events before a
//! release can be neither changed nor left out.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use crate::receipt::Head;

crate::coded! {
    /// Why an event or its place in the chain is rejected.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum EventError {
        /// Not the next number: a gap or reordering.
        #[error("event {expected} of tenant {tenant}: missing, or in another order: found number {found}")]
        Sequence {
            /// The tenant.
            tenant: String,
            /// The next number.
            expected: u64,
            /// The number found.
            found: u64,
        } = "SHEF-PRO-094": "events are not in one chain",
            "An event was changed, is missing, or stands elsewhere: it does not follow the one before it. The text names the first that does \
             not fit.",
        /// Its digest is not that of its content after the event before it.
        #[error("event {seq} of tenant {tenant}: changed, or does not follow the one before it")]
        Changed {
            /// The tenant.
            tenant: String,
            /// Its number.
            seq: u64,
        } = "SHEF-PRO-094",
        /// A receipt names another event of this number.
        #[error("event {seq} of tenant {tenant}: a receipt names another event of this number")]
        Named {
            /// The tenant.
            tenant: String,
            /// Its number.
            seq: u64,
        } = "SHEF-PRO-095": "events are not those that receipts name",
            "Events that existed when a key was released were changed, replaced or left out: the signed receipt of that release names their \
             digest. With older receipts than events, or the reverse, fetch both again: events after the receipts.",
        /// A receipt names an event behind the last one.
        #[error("the events of tenant {tenant} end at number {found}, and a receipt names number {named}")]
        End {
            /// The tenant.
            tenant: String,
            /// The event that a receipt names.
            named: u64,
            /// The last event.
            found: u64,
        } = "SHEF-PRO-095",
    }
}

/// The content of an event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Number, from 1, without gaps within a tenant.
    pub seq: u64,
    /// Seconds since 1970.
    pub time: i64,
    /// Name of the identity.
    pub who: &'a str,
    /// Its role.
    pub role: &'a str,
    /// The action, or `refused`.
    pub action: &'a str,
    /// Its subject.
    pub what: &'a str,
}

impl Event<'_> {
    /// Its digest after an event with digest `previous` (empty before the first): SHA-256 over
    /// `shef-event/1`, `previous`, tenant, number, time, who, role, action and what. A length in four
    /// bytes precedes each; numbers have eight bytes; all are big-endian.
    #[must_use]
    pub fn digest(&self, tenant: &str, previous: &[u8]) -> [u8; 32] {
        let (seq, time) = (self.seq.to_be_bytes(), self.time.to_be_bytes());
        let parts: [&[u8]; 9] = [
            b"shef-event/1",
            previous,
            tenant.as_bytes(),
            &seq,
            &time,
            self.who.as_bytes(),
            self.role.as_bytes(),
            self.action.as_bytes(),
            self.what.as_bytes(),
        ];
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u32).to_be_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}

/// What a receipt names if there is no event yet.
pub const NONE: Head = Head { seq: 0, digest: [0; 32] };

/// Verifies the events of one tenant in order, and against the receipts that name them.
#[derive(Clone, Debug)]
pub struct EventAudit<'a> {
    tenant: &'a str,
    named: BTreeMap<u64, [u8; 32]>,
    seq: u64,
    digest: Vec<u8>,
}

impl<'a> EventAudit<'a> {
    /// Begins before a tenant's first event.
    #[must_use]
    pub fn new(tenant: &'a str) -> Self {
        Self { tenant, named: BTreeMap::new(), seq: 0, digest: Vec::new() }
    }

    /// Expects the event that the next receipt names.
    ///
    /// # Errors
    /// It is another one than an earlier receipt names, or older.
    pub fn expect(&mut self, named: Head) -> Result<(), EventError> {
        let newest = self.named();
        let known = self.named.entry(named.seq).or_insert(named.digest);
        if *known != named.digest || named.seq < newest || (named.seq == 0 && named != NONE) {
            return Err(EventError::Named { tenant: self.tenant.to_string(), seq: named.seq });
        }
        Ok(())
    }

    /// Verifies the next event and its digest, which is empty for events of versions before 0.2.
    ///
    /// # Errors
    /// It is out of sequence, was altered, or is not the one that a receipt names.
    pub fn push(&mut self, event: &Event<'_>, digest: &[u8]) -> Result<(), EventError> {
        let (tenant, seq) = (self.tenant.to_string(), self.seq + 1);
        if event.seq != seq {
            return Err(EventError::Sequence { tenant, expected: seq, found: event.seq });
        }
        // All events without a digest precede the first with one.
        let from_before = digest.is_empty() && self.digest.is_empty();
        if !from_before && digest != event.digest(self.tenant, &self.digest) {
            return Err(EventError::Changed { tenant, seq });
        }
        if self.named.get(&seq).is_some_and(|named| named[..] != *digest) {
            return Err(EventError::Named { tenant, seq });
        }
        (self.seq, self.digest) = (seq, digest.to_vec());
        Ok(())
    }

    /// Number of the newest event that a receipt names; 0 without one.
    #[must_use]
    pub fn named(&self) -> u64 {
        self.named.last_key_value().map_or(0, |(seq, _)| *seq)
    }

    /// Number and digest of the last event.
    #[must_use]
    pub fn head(&self) -> (u64, &[u8]) {
        (self.seq, &self.digest)
    }

    /// Requires that no receipt names an event behind the last one.
    ///
    /// # Errors
    /// One does: the events were truncated.
    pub fn finish(&self) -> Result<(), EventError> {
        match self.named.last_key_value() {
            Some((named, _)) if *named > self.seq => Err(EventError::End {
                tenant: self.tenant.to_string(),
                named: *named,
                found: self.seq,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;

    /// Events as they are stored: what, and the digest.
    type Stored = Vec<(u64, String, Vec<u8>)>;

    fn event<'a>(seq: u64, what: &'a str) -> Event<'a> {
        Event { seq, time: 7, who: "a", role: "operator", action: "revoke", what }
    }

    /// The first is from a version without digests.
    fn stored(len: u64) -> Stored {
        let mut rows: Stored = Vec::new();
        for seq in 1..=len {
            let what = format!("device {seq}");
            let previous = rows.last().map_or(Vec::new(), |row| row.2.clone());
            let digest = event(seq, &what).digest("t", &previous).to_vec();
            rows.push((seq, what, if seq == 1 { Vec::new() } else { digest }));
        }
        rows
    }

    fn head(rows: &Stored, at: usize) -> Head {
        Head { seq: rows[at].0, digest: rows[at].2[..].try_into().unwrap() }
    }

    fn audit(tenant: &str, rows: &Stored, named: &[Head]) -> Result<(), EventError> {
        let mut audit = EventAudit::new(tenant);
        named.iter().try_for_each(|head| audit.expect(*head))?;
        rows.iter().try_for_each(|(seq, what, digest)| audit.push(&event(*seq, what), digest))?;
        audit.finish()
    }

    #[test]
    fn an_edit_a_gap_and_another_order_show() {
        let rows = stored(4);
        assert_eq!(audit("t", &rows, &[]), Ok(()));
        let code = |rows: &Stored| audit("t", rows, &[]).unwrap_err().code();
        assert_eq!(audit("u", &rows, &[]).unwrap_err().code(), "SHEF-PRO-094");
        let changed = |change: fn(&mut Stored)| {
            let mut rows = rows.clone();
            change(&mut rows);
            code(&rows)
        };
        assert_eq!(changed(|rows| rows[2].1 = "device 9".into()), "SHEF-PRO-094");
        assert_eq!(changed(|rows| rows.swap(1, 2)), "SHEF-PRO-094");
        assert_eq!(changed(|rows| drop(rows.remove(1))), "SHEF-PRO-094");
        assert_eq!(changed(|rows| rows[3].2.clear()), "SHEF-PRO-094");
    }

    #[test]
    fn a_chain_that_was_made_anew_is_not_the_one_that_receipts_name() {
        let rows = stored(4);
        let named = vec![NONE, head(&rows, 2), head(&rows, 2), head(&rows, 3)];
        assert_eq!(audit("t", &rows, &named), Ok(()));
        let code = |rows: &Stored, named: &[Head]| audit("t", rows, named).unwrap_err().code();
        // Truncated, and made anew with valid digests and another content.
        assert_eq!(code(&rows[..3].to_vec(), &named), "SHEF-PRO-095");
        let mut other = rows.clone();
        for at in 1..4 {
            let what = format!("nothing {at}");
            let digest = event(at as u64 + 1, &what).digest("t", &other[at - 1].2).to_vec();
            other[at] = (at as u64 + 1, what, digest);
        }
        assert_eq!(audit("t", &other, &[]), Ok(()));
        assert_eq!(code(&other, &named), "SHEF-PRO-095");
        // Receipts that contradict each other, or go back.
        let with = |at: usize, head: Head| {
            let mut named = named.clone();
            named[at] = head;
            code(&rows, &named)
        };
        assert_eq!(with(2, Head { seq: 3, digest: [9; 32] }), "SHEF-PRO-095");
        assert_eq!(with(3, head(&rows, 1)), "SHEF-PRO-095");
        assert_eq!(with(0, Head { seq: 0, digest: [9; 32] }), "SHEF-PRO-095");
    }
}
