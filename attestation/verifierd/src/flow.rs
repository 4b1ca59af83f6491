//! One appraisal, for any API: challenge, input, appraisal, record, used challenge,
//! counter, audit event, signed result.
//!
//! `/v1/appraise`, `/v1/release`, Veraison's protocol and the KBS differ in how they ask and
//! answer, and in nothing else.

use std::sync::Arc;

use serde_json::json;
use shef_proto::evidence::Layer;
use shef_verify::Outcome;
use shef_verify::ear::{self, Dialect, Issue, Reader};

use crate::app::App;
use crate::appraiser::{self, AppraisalInput, Collateral, Received, StoredPolicy};
use crate::audit;
use crate::auth::Identity;
use crate::lanes::Lane;
use crate::metrics::Counter;
use crate::problem::{Kind, Problem, Result};
use crate::role::Role;
use crate::secrets::{Signer, random};
use crate::session::Challenge;
use crate::store::AppraisalRecord;

/// The policy of a request that names none.
pub const DEFAULT_POLICY: &str = "default";

/// The policy that somebody may have their evidence held against, and the collateral that it is of:
/// the newest version of a policy that is theirs to name.
///
/// # Errors
/// There is none of this name, it is not theirs to name, or they name a version and are no
/// operator: who submits evidence does not choose the rules.
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

/// Evidence, and everything that it is held against.
pub struct Case<'a> {
    /// The service.
    pub app: &'a App,
    /// Who asks.
    pub identity: &'a Identity,
    /// What they ask for; in the audit log.
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
    /// When it is appraised.
    pub now: i64,
    signer: Arc<Signer>,
    audience: String,
    shown_svn: u64,
}

/// How a result is written.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Names of its claims.
    pub dialect: Dialect,
    /// Whose parser reads it.
    pub reader: Reader,
    /// `jti`.
    pub id: [u8; 16],
}

impl Form {
    /// With an id that nothing else has.
    #[must_use]
    pub fn new(dialect: Dialect, reader: Reader) -> Self {
        Self { dialect, reader, id: random() }
    }
}

/// A case that was appraised.
pub struct Appraised {
    /// What came of it.
    pub outcome: Outcome,
    /// What is kept of it.
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

    /// Appraises; nothing is used up or recorded yet. Nothing is denied for what another replica
    /// has changed meanwhile: then it is appraised again, against the newest collateral.
    ///
    /// # Errors
    /// The tenant has more appraisals under way than it may, or the database does not answer.
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

    /// Holds the evidence against the collateral that the case has.
    async fn hold(&self) -> Result<Appraised> {
        let (collateral, policy, signer) =
            (Arc::clone(&self.collateral), Arc::clone(&self.policy), Arc::clone(&self.signer));
        let (evidence, challenge, audience) =
            (self.evidence.clone(), self.challenge.clone(), self.audience.clone());
        let (layer, shown_svn, now, chains) =
            (self.layer, self.shown_svn, self.now, Arc::clone(&self.app.chains));
        let work = move |lane: &Lane| {
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
            let outcome = collateral.appraise(&policy, &input, &*chains, lane);
            let record = appraiser::record(&outcome, &policy, &input);
            Appraised { outcome, record }
        };
        self.app.lane(&self.identity.tenant).work(work).await
    }

    /// Uses the challenge up and records, with what is kept for whoever asks again. Evidence that
    /// no certified device signed uses nothing up, so that strangers cannot.
    ///
    /// # Errors
    /// The challenge was used before; the database does not answer.
    pub async fn keep(&self, appraised: &Appraised, kept: Option<&str>) -> Result<()> {
        let (tenant, store, record) = (&self.identity.tenant, &self.app.store, &appraised.record);
        if !record.genuine {
            store.record(tenant, record, self.app.config.load().retention.unproven).await?;
        } else if !store.use_challenge(tenant, &self.challenge, kept, record).await? {
            return Err(Kind::NonceUsed.because("evidence for this challenge was submitted before"));
        }
        self.tell(appraised);
        Ok(())
    }

    /// Counts, and tells the audit log.
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
    /// The key cannot be used.
    pub fn result(&self, appraised: &Appraised, form: Form) -> Result<String> {
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
        ear::sign(&appraised.outcome, self.layer, &issue, self.signer.jwt())
            .map_err(|error| Kind::Internal.because(error.to_string()))
    }

    /// The answer to denied evidence: every check.
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
        Kind::Denied
            .because(detail)
            .with("appraisal", json!(appraisal))
            .with("revocations", json!(self.collateral.revocations_of(self.evidence)))
    }
}
