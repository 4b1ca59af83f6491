//! One appraisal, for any API: challenge, input, appraisal, record, used challenge, counter, audit
//! event, signed result.
//!
//! `/v1/appraise`, `/v1/release`, Veraison's protocol and the KBS differ only in the form of
//! requests and responses.

use std::sync::Arc;

use serde_json::json;
use shef_proto::evidence::Layer;
use shef_verify::ear::{self, Dialect, Issue, Reader};
use shef_verify::{Check, Outcome, Verdict};

use crate::app::App;
use crate::appraiser::{self, AppraisalInput, Received};
use crate::audit;
use crate::auth::Identity;
use crate::collateral::{Collateral, StoredPolicy};
use crate::metrics::Counter;
use crate::problem::{Because, Kind, Problem, Result};
use crate::role::Role;
use crate::secrets::{Signer, random};
use crate::session::Challenge;
use crate::spans;
use crate::store::AppraisalRecord;
use crate::work_queue::WorkQueue;

/// The policy of a request that names no policy.
pub const DEFAULT_POLICY: &str = "default";

/// The policy for a caller's evidence, and the collateral that it belongs to: the newest version of
/// a policy that the caller may name.
///
/// # Errors
/// There is no policy of this name, the caller may not name it, or the caller names a version and
/// is not an operator: those who submit evidence do not choose the rules.
pub async fn policy(
    app: &App,
    identity: &Identity,
    wanted: Option<&str>,
) -> Result<(Arc<Collateral>, Arc<StoredPolicy>)> {
    let wanted = wanted.unwrap_or(DEFAULT_POLICY);
    let name = wanted.split_once('@').map_or(wanted, |(name, _)| name);
    if name != wanted && identity.role != Role::Operator {
        let text = format!(
            "policy {wanted:?}: a version is the operator's to choose; {name:?} is held against its newest one"
        );
        return Err(Kind::Forbidden.because(text));
    }
    let config = app.config.load_full();
    let submitter =
        config.tenant(&identity.tenant).and_then(|tenant| tenant.submitters.get(&identity.name));
    if let Some(allowed) =
        submitter.filter(|allowed| !allowed.iter().any(|allowed| allowed == name))
    {
        let text = format!(
            "policy {name:?}: {} may have evidence held against {}",
            identity.name,
            allowed.join(", ")
        );
        return Err(Kind::Forbidden.because(text));
    }
    let collateral = app.collateral(&identity.tenant).await?;
    let policy = collateral.policy(wanted)?;
    Ok((collateral, policy))
}

/// Evidence, and everything that its appraisal needs.
pub struct Case<'a> {
    /// The service.
    pub app: &'a App,
    /// The caller.
    pub identity: &'a Identity,
    /// The action in the audit log.
    pub action: &'static str,
    /// The challenge.
    pub challenge: Challenge,
    /// The layer whose evidence is expected.
    pub layer: Layer,
    /// The evidence.
    pub evidence: &'a Received,
    /// The tenant's collateral.
    pub collateral: Arc<Collateral>,
    /// The policy.
    pub policy: Arc<StoredPolicy>,
    /// Time of the appraisal.
    pub now: i64,
    signer: Arc<Signer>,
    audience: String,
    shown_svn: u64,
}

/// Format of a result.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Names of the claims.
    pub dialect: Dialect,
    /// Which parser reads it.
    pub reader: Reader,
    /// `jti`.
    pub id: [u8; 16],
}

impl Form {
    /// A format with a unique id.
    #[must_use]
    pub fn new(dialect: Dialect, reader: Reader) -> Self {
        Self { dialect, reader, id: random() }
    }
}

/// An appraised case.
pub struct Appraised {
    /// The outcome.
    pub outcome: Outcome,
    /// The record to keep.
    pub record: AppraisalRecord,
}

impl Appraised {
    /// Whether the evidence was accepted.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.outcome.verified.is_some()
    }
}

impl<'a> Case<'a> {
    /// Evidence of a layer against a policy of `collateral`.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn new(
        app: &'a App,
        identity: &'a Identity,
        action: &'static str,
        challenge: Challenge,
        layer: Layer,
        evidence: &'a Received,
        (collateral, policy): (Arc<Collateral>, Arc<StoredPolicy>),
    ) -> Result<Self> {
        let (signer, audience) = (app.signer.load_full(), app.config.load().audience.clone());
        let shown_svn = app.shown_svn(&identity.tenant, evidence).await?;
        Ok(Self {
            app,
            identity,
            action,
            challenge,
            layer,
            evidence,
            collateral,
            policy,
            now: app.now(),
            signer,
            audience,
            shown_svn,
        })
    }

    /// Appraises; uses nothing up and records nothing yet. If a denial may be due to another
    /// replica's change, appraises again with the newest collateral.
    ///
    /// # Errors
    /// The tenant has too many appraisals in progress, or the database does not answer.
    pub async fn appraise(&mut self) -> Result<Appraised> {
        let (appraised, identity) = (self.hold().await?, self.identity);
        let tenant = &identity.tenant;
        if appraised.accepted()
            || self.app.store.generation(tenant).await? == self.collateral.generation
        {
            return Ok(appraised);
        }
        self.collateral = self.app.read_collateral(tenant).await?;
        self.policy = self.collateral.policy(&self.policy.id())?;
        self.hold().await
    }

    /// Appraises the evidence with the current collateral of the case.
    async fn hold(&self) -> Result<Appraised> {
        let (collateral, policy, signer) =
            (Arc::clone(&self.collateral), Arc::clone(&self.policy), Arc::clone(&self.signer));
        let (evidence, challenge, audience) =
            (self.evidence.clone(), self.challenge.clone(), self.audience.clone());
        let (layer, shown_svn, now, chains) =
            (self.layer, self.shown_svn, self.now, Arc::clone(&self.app.chains));
        let (caller, step) = (self.identity.clone(), spans::step("appraise"));
        let work = move |work_queue: &WorkQueue| {
            let _inside = step.enter();
            let input = AppraisalInput {
                evidence: &evidence,
                layer,
                nonce: &challenge.nonce,
                audience: &audience,
                challenged: challenge.drawn,
                own_keys: signer.public_keys(),
                shown_svn,
                now,
            };
            let outcome = collateral.appraise(&policy, &input, chains.as_ref(), work_queue);
            let record = appraiser::record(&outcome, &policy, &input, &caller);
            Appraised { outcome, record }
        };
        self.app.work_queue(&self.identity.tenant).work(self.identity, work).await
    }

    /// Uses the challenge up and records the appraisal, with the data that a repeated request
    /// needs. Evidence that no certified device signed does not use the challenge up, so that
    /// strangers cannot. Returns the id of the record.
    ///
    /// # Errors
    /// The challenge was used before, or the database does not answer.
    pub async fn keep(&self, appraised: &Appraised, kept: Option<&str>) -> Result<String> {
        let (tenant, store, record) = (&self.identity.tenant, &self.app.store, &appraised.record);
        let mut id = record.id.to_vec();
        if !record.genuine {
            let unproven = self.app.config.load().retention.unproven;
            id = store.record(tenant, record, unproven).await?;
        } else {
            store.use_challenge(tenant, &self.challenge, kept, record).await?;
        }
        self.tell(appraised);
        Ok(hex::encode(id))
    }

    /// What [`Case::keep`] keeps, so that the caller gets its result again if the answer is lost:
    /// caller, evidence, and the id of the record.
    #[must_use]
    pub fn mark(&self, appraised: &Appraised) -> String {
        let record = &appraised.record;
        json!([self.identity.uri(), hex::encode(record.sha256), hex::encode(record.id)]).to_string()
    }

    /// The id of the record, if this caller has used the challenge for the same evidence before.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn before(&self, appraised: &Appraised) -> Result<Option<String>> {
        let kept = self.app.store.kept(&self.identity.tenant, &self.challenge).await?.flatten();
        let kept: Option<[String; 3]> = kept.and_then(|kept| serde_json::from_str(&kept).ok());
        Ok(kept.and_then(|[caller, evidence, id]| {
            let same =
                caller == self.identity.uri() && evidence == hex::encode(appraised.record.sha256);
            same.then_some(id)
        }))
    }

    /// Counts the appraisal, and writes it to the audit log.
    pub fn tell(&self, appraised: &Appraised) {
        let verdict = if appraised.accepted() { "accepted" } else { "denied" };
        let code = appraised.outcome.appraisal.first_failure().map_or("none", |check| check.code);
        self.app.metrics.count(
            Counter::Appraisals,
            Some(&self.identity.tenant),
            &[self.layer.name(), verdict, code],
        );
        audit::appraisal(self.identity, self.action, &appraised.record);
    }

    /// The signed result.
    ///
    /// # Errors
    /// The signing key cannot be used.
    pub fn result(&self, appraised: &Appraised, form: Form) -> Result<String> {
        let _step = spans::step("sign result");
        let (id, policy) = (hex::encode(form.id), self.policy.id());
        let issue = Issue {
            dialect: form.dialect,
            reader: form.reader,
            issuer: &self.audience,
            audience: &self.identity.tenant,
            issued: self.now,
            expires: self.now + self.app.config.load().limits.result_seconds,
            id: &id,
            nonce: &self.challenge.nonce,
            policy: Some(&policy),
            developer: "shef-verifierd",
            build: env!("CARGO_PKG_VERSION"),
            with_ueid: true,
        };
        let caller = self.identity.uri();
        let key = self.signer.jwt(&self.identity.tenant, &caller);
        let signed = ear::sign(&appraised.outcome, self.layer, &issue, &key);
        signed.map_err(|error| {
            key.problem().unwrap_or_else(|| Kind::Internal.because(error.to_string()))
        })
    }

    /// The answer to denied evidence, with every check.
    #[must_use]
    pub fn denied(&self, appraised: &Appraised) -> Problem {
        let appraisal = &appraised.outcome.appraisal;
        let detail = appraisal.first_failure().map_or_else(
            || "no check failed, but nothing was verified".to_owned(),
            |check| {
                format!(
                    "{} ({}): expected {}, found {}",
                    check.id.name(),
                    check.code,
                    check.expected,
                    check.actual
                )
            },
        );
        Kind::Denied.because(detail).with(|finding| {
            finding.appraisal = Some(self.shown(appraised));
            finding.revocations = Some(self.revocations());
        })
    }

    /// The revocations that the evidence falls under.
    #[must_use]
    pub fn revocations(&self) -> Vec<shef_api::Revocation> {
        self.collateral.revocations_of(self.evidence).into_iter().map(Into::into).collect()
    }

    /// The appraisal as answers show it.
    #[must_use]
    pub fn shown(&self, appraised: &Appraised) -> shef_api::Appraisal {
        let appraisal = &appraised.outcome.appraisal;
        shef_api::Appraisal {
            verdict: shef_api::Verdict::of(appraisal.verdict == Verdict::Accepted),
            layer: self.layer.into(),
            policy: appraisal.policy.clone(),
            policy_ids: appraisal.policy_ids.clone(),
            status: appraisal.status.name().to_owned(),
            vector: appraisal.vector.claims().map(|(of, value)| (of.to_owned(), value)).collect(),
            anchor: appraisal.anchor.clone(),
            warnings: appraisal.warnings.clone(),
            checks: appraisal.checks.iter().map(shown_check).collect(),
        }
    }
}

/// A check as answers show it.
#[must_use]
pub fn shown_check(check: &Check) -> shef_api::Check {
    shef_api::Check {
        id: check.id.name().to_owned(),
        code: check.code.to_owned(),
        passed: check.passed,
        reached: check.reached,
        expected: check.expected.to_string(),
        actual: check.actual.to_string(),
    }
}
