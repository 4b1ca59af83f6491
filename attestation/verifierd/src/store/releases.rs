//! Releases of keys: nonce, count, box, receipt and the new end of the chain in one transaction.

use shef_proto::event;
use shef_proto::receipt::{self, Head};

use super::erased::{gone, same_erasures};
use super::events::last_event;
use super::keys::named;
use super::receipts::head_of;
use super::records::{AppraisalRecord, USE, record, used_up};
use super::{Store, on, row};
use crate::problem::{Because, Kind, Result};
use crate::session::Challenge;
use crate::time::Clock;

/// A release to commit.
pub struct NewRelease<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Key.
    pub name: &'a str,
    /// Its version.
    pub version: i64,
    /// Digest of the evidence.
    pub evidence: [u8; 32],
    /// Public key that the box is sealed to.
    pub recipient: &'a [u8],
    /// The challenge.
    pub challenge: &'a Challenge,
    /// Whether an earlier attestation, on which this release relies, used the challenge up.
    pub used: bool,
    /// Expiry of the box.
    pub expires: i64,
    /// The time.
    pub clock: &'a Clock,
    /// Generation of the collateral in the appraisal.
    pub generation: i64,
    /// The appraisal.
    pub record: &'a AppraisalRecord,
}

impl NewRelease<'_> {
    /// Checks that the service still remembers the session.
    fn check_session(&self, now: i64) -> Result<()> {
        if now >= self.challenge.remembered {
            let ago = now - self.challenge.remembered;
            return Err(
                Kind::SessionExpired.because(format!("the session ended {ago} seconds ago"))
            );
        }
        Ok(())
    }
}

/// What limits the releases of a key version.
struct LimitsRow {
    disabled: i64,
    key_disabled: i64,
    released: i64,
    max_releases: i64,
    not_before: i64,
    not_after: i64,
}

row!(LimitsRow { disabled, key_disabled, released, max_releases, not_before, not_after });

/// Selects a [`LimitsRow`].
const LIMITS: &str = "SELECT v.disabled, n.disabled AS key_disabled, v.released, v.max_releases, v.not_before, v.not_after \
     FROM key_version v JOIN key_name n ON n.tenant = v.tenant AND n.name = v.name \
     WHERE v.tenant = $1 AND v.name = $2 AND v.version = $3";

impl LimitsRow {
    /// Checks that neither the key nor the version is disabled.
    fn check_enabled(&self, new: &NewRelease<'_>) -> Result<()> {
        if self.disabled != 0 || self.key_disabled != 0 {
            return Err(
                Kind::KeyDisabled.because(format!("key {}", named(new.name, Some(new.version))))
            );
        }
        Ok(())
    }

    /// Checks the validity window and the number of releases.
    fn check_release(&self, now: i64) -> Result<()> {
        let (from, to) = (self.not_before, self.not_after);
        if now < from || (to != 0 && now >= to) {
            return Err(
                Kind::KeyWindow.because(format!("now is {now}, the window is {from} to {to}"))
            );
        }
        let (released, most) = (self.released, self.max_releases);
        if most != 0 && released >= most {
            return Err(Kind::KeyExhausted.because(format!("released {released} times of {most}")));
        }
        Ok(())
    }
}

/// A committed release.
#[derive(Clone, Debug)]
pub struct Released {
    /// The box.
    pub bytes: Vec<u8>,
    /// Its receipt.
    pub receipt: Vec<u8>,
    /// Head of the tenant's chain at the release: its own receipt.
    pub head: Head,
    /// Expiry of the box.
    pub expires: i64,
    /// False if it was committed earlier and is returned again.
    pub fresh: bool,
}

/// The ends of a tenant's two chains, which its next receipt names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The newest receipt.
    pub receipts: Head,
    /// The newest event; `None` if it is of a version without digests.
    pub events: Option<Head>,
}

/// A box and its receipt.
pub struct Signed {
    /// The ends that the receipt names.
    pub ends: Ends,
    /// The time that it names.
    pub time: i64,
    /// The box.
    pub bytes: Vec<u8>,
    /// The receipt.
    pub receipt: Vec<u8>,
}

/// How a release ended.
pub enum Outcome {
    /// It was committed, now or earlier.
    Released(Released),
    /// The collateral has changed since the appraisal.
    Changed,
    /// The caller may have lost the right to it.
    Doubted,
}

/// How an attempt to commit a release ended.
enum Attempt {
    Done(Outcome),
    /// A receipt is to be signed first, for these ends; nothing was committed.
    Unsigned(Ends),
}

/// How often a release is signed outside of its transaction, before other replicas wait for it.
const OUTSIDE: u32 = 3;

/// Lets a transaction wait for a signature longer than for anything else: a token has four seconds for
/// it. For SQLite, which has no such limit, and PostgreSQL.
const AWAIT_SIGNATURE: [&str; 2] =
    ["SELECT 1", "SET LOCAL idle_in_transaction_session_timeout = '5s'"];

/// The earlier release of the same key version for the same evidence, if there is one.
macro_rules! released_before {
    ($tx:expr, $new:expr, $now:expr) => {{
        let new: &NewRelease<'_> = $new;
        let before: Option<(Vec<u8>, Vec<u8>, i64, i64)> = sqlx::query_as(
            "SELECT recipient, box, seq, expires FROM released WHERE tenant = $1 AND name = $2 AND version = $3 AND evidence = $4",
        )
        .bind(new.tenant)
        .bind(new.name)
        .bind(new.version)
        .bind(new.evidence.to_vec())
        .fetch_optional(&mut *$tx)
        .await?;
        match before {
            None => None,
            Some((recipient, bytes, seq, expires)) => {
                if recipient != new.recipient {
                    return Err(Kind::NonceUsed
                        .because("this evidence had the key released to another recipient"));
                }
                if $now >= expires {
                    return Err(Kind::SessionExpired.because("the box has ended; attest again"));
                }
                let (receipt,): (Vec<u8>,) =
                    sqlx::query_as("SELECT content FROM receipt WHERE tenant = $1 AND seq = $2")
                        .bind(new.tenant)
                        .bind(seq)
                        .fetch_one(&mut *$tx)
                        .await?;
                let head = head_of(seq, &receipt::digest(&receipt))?;
                Some(Released { bytes, receipt, head, expires, fresh: false })
            }
        }
    }};
}

/// Uses the nonce of a release's challenge.
macro_rules! use_nonce {
    ($tx:expr, $new:expr) => {{
        let new: &NewRelease<'_> = $new;
        let used = sqlx::query(USE)
            .bind(new.tenant)
            .bind(&new.challenge.token)
            .bind(new.challenge.expires.max(new.expires))
            .bind(None::<String>)
            .bind(new.challenge.expires)
            .bind(None::<i64>)
            .execute(&mut *$tx)
            .await?
            .rows_affected();
        if used == 0 {
            return Err(used_up!($tx, new.tenant, new.challenge));
        }
    }};
}

/// The newest event of a tenant, for a receipt.
macro_rules! newest_event {
    ($tx:expr, $new:expr) => {
        match last_event!($tx, $new.tenant) {
            None => Some(event::NONE),
            Some((seq, digest)) if !digest.is_empty() => Some(head_of(seq, &digest)?),
            Some((seq, _)) => {
                // Events of version 0.1 have no digest, and precede all that have one.
                let later: Option<(i64,)> = sqlx::query_as(
                    "SELECT seq FROM event WHERE tenant = $1 AND OCTET_LENGTH(digest) > 0 LIMIT 1",
                )
                .bind($new.tenant)
                .fetch_optional(&mut *$tx)
                .await?;
                if later.is_some() {
                    return Err(Kind::Broken
                        .because(format!("event {seq} has lost its digest: audit the database")));
                }
                None
            }
        }
    };
}

/// Whether a receipt continues both chains: the one of receipts ends where it says, and the event
/// that it names is there. There may be newer ones.
macro_rules! continues {
    ($tx:expr, $new:expr, $signed:expr, $receipts:expr) => {{
        let ends: &Ends = &$signed.ends;
        let there = match ends.events {
            None | Some(event::NONE) => true,
            Some(event) => {
                let found: Option<(Vec<u8>,)> =
                    sqlx::query_as("SELECT digest FROM event WHERE tenant = $1 AND seq = $2")
                        .bind($new.tenant)
                        .bind(event.seq as i64)
                        .fetch_optional(&mut *$tx)
                        .await?;
                found.is_some_and(|(digest,)| digest == event.digest)
            }
        };
        there && ends.receipts == $receipts
    }};
}

/// Counts a release, and inserts its box, its receipt and the new head of the tenant's chain.
macro_rules! insert_release {
    ($tx:expr, $new:expr, $released:expr, $time:expr) => {{
        let (new, released): (&NewRelease<'_>, &Released) = ($new, &$released);
        let seq = released.head.seq as i64;
        sqlx::query("UPDATE key_version SET released = released + 1 WHERE tenant = $1 AND name = $2 AND version = $3")
            .bind(new.tenant)
            .bind(new.name)
            .bind(new.version)
            .execute(&mut *$tx)
            .await?;
        sqlx::query(
            "INSERT INTO released (tenant, name, version, evidence, recipient, box, seq, expires) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(new.tenant)
        .bind(new.name)
        .bind(new.version)
        .bind(new.evidence.to_vec())
        .bind(new.recipient)
        .bind(&released.bytes)
        .bind(seq)
        .bind(released.expires)
        .execute(&mut *$tx)
        .await?;
        sqlx::query("INSERT INTO receipt (tenant, seq, time, name, content) VALUES ($1, $2, $3, $4, $5)")
            .bind(new.tenant)
            .bind(seq)
            .bind($time)
            .bind(new.name)
            .bind(&released.receipt)
            .execute(&mut *$tx)
            .await?;
        sqlx::query("UPDATE tenant SET head = $2 WHERE name = $1")
            .bind(new.tenant)
            .bind(released.head.digest.to_vec())
            .execute(&mut *$tx)
            .await?;
    }};
}

impl Store {
    /// Commits a release: nonce, count, box, receipt and head in one transaction, on disk before
    /// the response. The same evidence for the same key version gets the same bytes again until
    /// they expire, without another count.
    ///
    /// `sign` seals the box and signs the receipt. If `slow`, it does so outside of the transaction,
    /// so that others need not wait for it. `certain` says, at the last moment, whether the caller still
    /// has the right to the release.
    ///
    /// # Errors
    /// The nonce was used for something else, the session or the box has expired, a limit of the
    /// key was reached, `sign` fails, or the database does not answer.
    pub async fn release(
        &self,
        new: &NewRelease<'_>,
        slow: bool,
        sign: impl Fn(Ends) -> Result<Signed>,
        certain: impl Fn() -> bool,
    ) -> Result<Outcome> {
        // Each receipt names the one before.
        let _releases = self.turns.release(new.tenant).await?;
        let (mut signed, mut outside) = (None, if slow { OUTSIDE } else { 0 });
        loop {
            let inside = (outside == 0).then_some(&sign);
            match self.attempt(new, signed.take(), inside, slow, &certain).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Unsigned(ends) => signed = Some(sign(ends)?),
            }
            outside -= 1;
        }
    }

    /// Commits a release with an earlier signature, or else with that of `sign`, if it is there.
    async fn attempt(
        &self,
        new: &NewRelease<'_>,
        signed: Option<Signed>,
        sign: Option<&impl Fn(Ends) -> Result<Signed>>,
        slow: bool,
        certain: impl Fn() -> bool,
    ) -> Result<Attempt> {
        let _turn = self.turns.durable(new.tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            // The tenant's row is the lock under which its chain grows.
            let (seq, head, generation): (i64, Vec<u8>, i64) = sqlx::query_as(concat!(
                same_erasures!("UPDATE tenant SET seq = seq + 1 WHERE name = $1"),
                " RETURNING seq, head, generation"
            ))
            .bind(new.tenant)
            .bind(self.served.erasures(new.tenant))
            .fetch_optional(&mut *tx)
            .await?
            .ok_or_else(|| gone(new.tenant))?;
            if generation != new.generation {
                return Ok(Attempt::Done(Outcome::Changed));
            }
            if !certain() {
                return Ok(Attempt::Done(Outcome::Doubted));
            }
            let now = new.clock.now();
            let limits: Option<LimitsRow> = sqlx::query_as(LIMITS)
                .bind(new.tenant)
                .bind(new.name)
                .bind(new.version)
                .fetch_optional(&mut *tx)
                .await?;
            let limits = limits.ok_or_else(|| {
                Kind::NotFound.because(format!("key {} has no version {}", new.name, new.version))
            })?;
            limits.check_enabled(new)?;
            if let Some(released) = released_before!(tx, new, now) {
                return Ok(Attempt::Done(Outcome::Released(released)));
            }
            new.check_session(now)?;
            limits.check_release(now)?;
            if !new.used {
                use_nonce!(tx, new);
            }
            let receipts = head_of(seq - 1, &head)?;
            let signed = match signed {
                Some(signed) if continues!(tx, new, signed, receipts) => signed,
                _ => {
                    let ends = Ends { receipts, events: newest_event!(tx, new) };
                    let Some(sign) = sign else { return Ok(Attempt::Unsigned(ends)) };
                    if slow {
                        sqlx::query(self.by_database(AWAIT_SIGNATURE)).execute(&mut *tx).await?;
                    }
                    sign(ends)?
                }
            };
            let Signed { bytes, receipt, time, .. } = signed;
            let head = head_of(seq, &receipt::digest(&receipt))?;
            let released = Released { bytes, receipt, head, expires: new.expires, fresh: true };
            insert_release!(tx, new, released, time);
            record!(tx, new.tenant, new.record);
            if !certain() {
                return Ok(Attempt::Done(Outcome::Doubted));
            }
            tx.commit().await?;
            Ok(Attempt::Done(Outcome::Released(released)))
        })
    }
}
