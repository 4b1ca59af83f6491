//! Identity of a caller: a client certificate's SAN URI, or a bearer token. Its role. Its rate
//! limit: token buckets of its tenant, itself, or its address.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_trait::async_trait;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq as _;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::config::Config;
use crate::name::is_name;
use crate::problem::{Because, Kind, Result};
use crate::role::{Need, Role};
use crate::secrets::sha256;

/// The name of callers without credentials.
const ANONYMOUS: &str = "Anonymous";

/// The rights of the caller of a request, which may be taken away while the request waits.
#[async_trait]
pub trait Standing: Send + Sync {
    /// Whether nothing has changed since the caller was identified.
    fn is_certain(&self) -> bool;

    /// Identifies the caller again if anything has changed.
    ///
    /// # Errors
    /// The caller has not the same rights any more.
    async fn confirmed(&self) -> Result<Arc<dyn Standing>>;
}

tokio::task_local! {
    /// The caller of the request that this task handles, if the request may give a right.
    static CALLER: Arc<dyn Standing>;
}

/// Handles a request. Its changes are committed only while its caller is [`certain`].
pub async fn on_behalf_of<T>(
    caller: Option<Arc<dyn Standing>>,
    work: impl Future<Output = T>,
) -> T {
    match caller {
        Some(caller) => CALLER.scope(caller, work).await,
        None => work.await,
    }
}

/// Checks, before a change is committed, that nothing has changed since its caller was identified: the
/// change may have waited for the database.
///
/// # Errors
/// The caller may have lost its rights.
pub fn certain() -> Result<()> {
    if CALLER.try_with(|caller| caller.is_certain()).unwrap_or(true) {
        return Ok(());
    }
    let text = "the configuration has changed since this request began; send it again";
    Err(Kind::Busy.because(text).retry_after(1))
}

/// A known caller: the key under which its requests and their bodies are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Tenant.
    pub tenant: String,
    /// Name in the audit log.
    pub name: String,
    /// Its role.
    pub role: Role,
}

impl Identity {
    /// The URI of a client certificate: `urn:shef:TENANT:ROLE:NAME`.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("urn:shef:{}:{}:{}", self.tenant, self.role.name(), self.name)
    }

    fn from_uri(uri: &str) -> Option<Self> {
        let mut parts = uri.strip_prefix("urn:shef:")?.split(':');
        let (tenant, role, name) = (parts.next()?, Role::from_name(parts.next()?)?, parts.next()?);
        (parts.next().is_none() && is_name(tenant) && is_name(name)).then(|| Self {
            tenant: tenant.into(),
            name: name.into(),
            role,
        })
    }

    /// The identity in a client certificate that TLS has verified: the certificate's only URI of
    /// that form.
    #[must_use]
    pub fn from_certificate(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let (_, names) = certificate.tbs_certificate().get_extension::<SubjectAltName>().ok()??;
        let mut found = names.0.iter().filter_map(|name| match name {
            GeneralName::UniformResourceIdentifier(uri) => Self::from_uri(uri.as_str()),
            _ => None,
        });
        let identity = found.next()?;
        found.next().is_none().then_some(identity)
    }

    /// The identity of callers without credentials, if the configuration admits them: they may
    /// submit evidence of this tenant.
    #[must_use]
    pub fn anonymous(tenant: &str) -> Self {
        Self { tenant: tenant.into(), name: ANONYMOUS.into(), role: Role::Attest }
    }

    /// Whether this is the anonymous identity. Its name has an upper-case letter, which no name in
    /// a certificate or of a token has.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// Requires a right.
    ///
    /// # Errors
    /// The role does not have it.
    pub fn demand(&self, need: Need) -> Result<()> {
        if self.role.may(need) {
            return Ok(());
        }
        Err(Kind::Forbidden.because(format!(
            "role {} may not do this; it needs {}",
            self.role.name(),
            match need {
                Need::Open | Need::Attest => "attest, release or operator",
                Need::Release => "release or operator",
                Need::Read => "audit or operator",
                Need::Operate => "operator",
            }
        )))
    }
}

fn bearer(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().as_bytes().to_vec());
    }
    // The browser's form of the same: the token is the password.
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = STANDARD.decode(rest.trim()).ok()?;
        let at = pair.iter().position(|byte| *byte == b':')?;
        return Some(pair[at + 1..].to_vec());
    }
    None
}

/// SHA-256 of the bearer token of a request, as the configuration has it.
#[must_use]
pub fn shown_token(headers: &HeaderMap) -> Option<[u8; 32]> {
    bearer(headers).map(|token| sha256(&token))
}

/// The identity of a request. A certificate takes precedence over a token.
///
/// # Errors
/// Unknown credentials, or a tenant that is not in the configuration.
pub fn identify(
    config: &Config,
    certificate: Option<&Identity>,
    headers: &HeaderMap,
) -> Result<Identity> {
    if let Some(identity) = certificate {
        if config.tenants.iter().any(|tenant| tenant.name == identity.tenant) {
            return Ok(identity.clone());
        }
        return Err(
            Kind::Unauthenticated.because("the certificate names a tenant that is not configured")
        );
    }
    let digest = shown_token(headers).ok_or_else(|| {
        Kind::Unauthenticated.because("neither a client certificate nor a bearer token was shown")
    })?;
    let mut found = None;
    for tenant in &config.tenants {
        for token in &tenant.tokens {
            if bool::from(token.sha256.ct_eq(&digest)) {
                found = Some(Identity {
                    tenant: tenant.name.clone(),
                    name: token.name.clone(),
                    role: token.role,
                });
            }
        }
    }
    found.ok_or_else(|| {
        Kind::Unauthenticated.because("the bearer token is none of the configuration")
    })
}

/// The callers that take from one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Account {
    /// One caller.
    Caller(Identity),
    /// All callers of a tenant with credentials and without the role `operator`.
    Callers(String),
    /// The operators of a tenant.
    Operators(String),
    /// The operators of a tenant, when they take rights away.
    Revocations(String),
    /// The callers of a tenant without credentials.
    Strangers(String),
    /// The callers without credentials at an address.
    Address(IpAddr),
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller(who) => write!(f, "{} of tenant {}", who.name, who.tenant),
            Self::Callers(tenant) => write!(f, "tenant {tenant}"),
            Self::Operators(tenant) => write!(f, "operators of tenant {tenant}"),
            Self::Revocations(tenant) => write!(f, "revocations of tenant {tenant}"),
            Self::Strangers(tenant) => write!(f, "callers of tenant {tenant} without credentials"),
            Self::Address(address) => write!(f, "address {address}"),
        }
    }
}

/// A token bucket: its tokens at a time.
type Bucket = (f64, Instant);

/// The rate of a full account, and the requests of a burst after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second.
    pub rate: u32,
    /// Requests in a burst.
    pub burst: u32,
}

impl Rate {
    fn half(self) -> Self {
        Self { rate: (self.rate / 2).max(1), burst: (self.burst / 2).max(1) }
    }
}

/// Token buckets. The operators of a tenant share one, and another for revocations. Its other
/// callers share a third, and each also has a smaller private one: no caller exhausts the rate of
/// the others or of the operators. Callers without credentials have their own, for each tenant and
/// each address.
#[derive(Debug, Default)]
pub struct Rates {
    buckets: Mutex<HashMap<Account, Bucket>>,
}

/// Buckets above this number are removed while they are full.
const BUCKETS: usize = 4096;

impl Rates {
    /// Takes one request from the buckets of a caller: of an address if it is not known. A caller
    /// without the role `operator`, an address, and those without credentials have half of
    /// `whole`.
    ///
    /// # Errors
    /// A bucket is empty.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn take(
        &self,
        who: Option<&Identity>,
        address: Option<IpAddr>,
        revokes: bool,
        whole: Rate,
        now: Instant,
    ) -> Result<()> {
        let half = whole.half();
        let address = address.map(|address| (Account::Address(address), half));
        let all: Vec<(Account, Rate)> = match who {
            None => address.into_iter().collect(),
            Some(who) => {
                let tenant = who.tenant.clone();
                match who.role {
                    _ if who.is_anonymous() => {
                        address.into_iter().chain([(Account::Strangers(tenant), half)]).collect()
                    }
                    Role::Operator if revokes => vec![(Account::Revocations(tenant), whole)],
                    Role::Operator => vec![(Account::Operators(tenant), whole)],
                    _ => vec![
                        (Account::Caller(who.clone()), half),
                        (Account::Callers(tenant), whole),
                    ],
                }
            }
        };
        let mut buckets = self.buckets.lock().expect("no panic under this lock");
        if buckets.len() > BUCKETS {
            // A full bucket equals a new one. After this number of seconds, a bucket is full.
            let full = f64::from(whole.burst) / f64::from(half.rate);
            buckets.retain(|_, bucket| now.duration_since(bucket.1).as_secs_f64() < full);
        }
        for (account, rate) in &all {
            fill(&mut buckets, account, *rate, now)?;
        }
        for (account, _) in &all {
            if let Some(bucket) = buckets.get_mut(account) {
                bucket.0 -= 1.0;
            }
        }
        Ok(())
    }

    /// Demands that an address has a request left, and takes none.
    ///
    /// # Errors
    /// Its bucket is empty.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn demand(&self, address: Option<IpAddr>, whole: Rate, now: Instant) -> Result<()> {
        let Some(address) = address else { return Ok(()) };
        let mut buckets = self.buckets.lock().expect("no panic under this lock");
        fill(&mut buckets, &Account::Address(address), whole.half(), now)
    }
}

/// Adds to a bucket what it has got since the last time.
///
/// # Errors
/// It is empty.
fn fill(
    buckets: &mut HashMap<Account, Bucket>,
    account: &Account,
    Rate { rate, burst }: Rate,
    now: Instant,
) -> Result<()> {
    let (rate, burst) = (f64::from(rate), f64::from(burst));
    let bucket = buckets.entry(account.clone()).or_insert((burst, now));
    let passed = now.saturating_duration_since(bucket.1).as_secs_f64();
    *bucket = ((bucket.0 + passed * rate).min(burst), now);
    if bucket.0 >= 1.0 {
        return Ok(());
    }
    let wait = ((1.0 - bucket.0) / rate).ceil().max(1.0);
    Err(Kind::RateLimited
        .because(format!("{account}: more than {rate} requests a second"))
        .retry_after(wait as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn uris() {
        let identity = Identity { tenant: "a".into(), name: "b".into(), role: Role::Audit };
        assert_eq!(Identity::from_uri(&identity.uri()), Some(identity));
        for bad in [
            "urn:shef:a:audit",
            "urn:shef:a:audit:b:c",
            "urn:shef:A:audit:b",
            "urn:shef:a:root:b",
            "https://a",
        ] {
            assert_eq!(Identity::from_uri(bad), None, "{bad}");
        }
    }

    #[test]
    fn roles_are_no_ladder() {
        assert!(
            !Role::Audit.may(Need::Attest)
                && !Role::Audit.may(Need::Operate)
                && Role::Audit.may(Need::Read)
        );
        assert!(!Role::Attest.may(Need::Release) && !Role::Release.may(Need::Read));
        assert!(
            [Need::Open, Need::Attest, Need::Release, Need::Read, Need::Operate]
                .into_iter()
                .all(|need| Role::Operator.may(need))
        );
    }

    #[test]
    fn buckets_empty_and_fill() {
        let (rates, start) = (Rates::default(), Instant::now());
        let who = |tenant: &str, name: &str, role| Identity {
            tenant: tenant.into(),
            name: name.into(),
            role,
        };
        let whole = Rate { rate: 2, burst: 6 };
        let take = |who: Option<&Identity>, last: u8, revokes, at| {
            let address = Some(IpAddr::from([10, 0, 0, last]));
            rates.take(who, address, revokes, whole, start + Duration::from_secs(at))
        };
        let ask = |who: &Identity, at| take(Some(who), 0, false, at);
        let [one, two, three] = ["one", "two", "three"].map(|name| who("a", name, Role::Attest));
        for who in [&one, &two] {
            for _ in 0..3 {
                ask(who, 0).unwrap();
            }
        }
        let refused = ask(&one, 0).unwrap_err();
        assert_eq!(
            (refused.kind, refused.headers[0].1.to_str().unwrap()),
            (Kind::RateLimited, "1")
        );
        assert_eq!(refused.detail, "one of tenant a: more than 1 requests a second");
        assert_eq!(ask(&three, 0).unwrap_err().detail, "tenant a: more than 2 requests a second");
        ask(&who("b", "one", Role::Attest), 0).unwrap();
        // A caller cannot exhaust the rate of the others, and callers not that of the operators.
        ask(&one, 1).unwrap();
        ask(&one, 1).unwrap_err();
        ask(&three, 1).unwrap();
        let operator = who("a", "operator", Role::Operator);
        for _ in 0..6 {
            ask(&operator, 1).unwrap();
        }
        let another = who("a", "another", Role::Operator);
        ask(&another, 1).unwrap_err();
        // An operator who sends too much does not keep another from a revocation.
        take(Some(&another), 0, true, 1).unwrap();
        // Callers without credentials use the rate of their address, and one that they share.
        let anonymous = Identity::anonymous("c");
        for _ in 0..3 {
            take(None, 1, false, 0).unwrap();
            take(Some(&anonymous), 2, false, 0).unwrap();
        }
        let refused = take(None, 1, false, 0).unwrap_err().detail;
        assert_eq!(refused, "address 10.0.0.1: more than 1 requests a second");
        let refused = take(Some(&anonymous), 3, false, 0).unwrap_err().detail;
        assert!(refused.starts_with("callers of tenant c without credentials: "), "{refused}");
        take(None, 3, false, 0).unwrap();
        ask(&who("c", "one", Role::Attest), 0).unwrap();
    }
}
