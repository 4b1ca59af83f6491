//! What every request passes through: identity, rate limit, role, a complete body within the time
//! and size limits, a place in its lane, origin, and media type; then logging and metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use opentelemetry::Context;
use opentelemetry::context::FutureExt as _;
use shef_tls::admission::network;
use tracing::Instrument as _;
use zeroize::Zeroizing;

use crate::api::{Route, Shared, kbs, routes};
use crate::app::App;
use crate::audit;
use crate::auth::{Identity, Rate, Standing, identify, on_behalf_of};
use crate::bodies::Held;
use crate::config::Config;
use crate::lanes::{Lane, Place};
use crate::metrics::Counter;
use crate::oidc;
use crate::problem::{Answered, Because, Kind, Result};
use crate::role::Need;
use crate::secrets::random;
use crate::server::Peer;
use crate::traces;

/// The header that names a request in its response, as the log does in each line about it.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Middleware: admits a request or answers in its place, names it, and counts it.
pub async fn every_request(State(app): Shared, request: Request, next: Next) -> Response {
    let id = hex::encode(random::<16>());
    // As an error, so that a filter that lets lines through lets it through with them.
    let span = tracing::error_span!(target: "audit", "request", id);
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .and_then(|path| routes::find(request.method(), path.as_str()));
    let mut response = answer(&app, route, request, next, &id).instrument(span).await;
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

async fn answer(
    app: &Arc<App>,
    route: Option<&'static Route>,
    request: Request,
    next: Next,
    id: &str,
) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let mut who = None;
    let mut unread = !request.body().is_end_stream();
    let path = route.map(|route| route.path);
    let draft = traces::draft(app.traces.as_ref(), &method, path, request.headers(), id);
    let admitted = admit(app, route, request, &mut who, &mut unread).await;
    let tenant = who.as_ref().map(|who| who.tenant.as_str());
    // What exceeds its rate has no span either.
    let exceeds = admitted.as_ref().is_err_and(|problem| problem.kind == Kind::RateLimited);
    let context = draft.filter(|_| !exceeds).map_or_else(Context::new, |draft| draft.begin(tenant));
    let mut response = match admitted {
        Ok((request, place, held)) => {
            let caller = request.extensions().get::<Arc<dyn Standing>>();
            let caller = caller.filter(|_| route.is_some_and(Route::may_give)).cloned();
            let response = next.run(request).with_context(context.clone());
            let response = on_behalf_of(caller, response).await;
            drop((place, held));
            response
        }
        Err(problem) => problem.into_response(),
    };
    if let (Some(who), Some(what)) = (&who, route.and_then(|route| refusal(route, &response))) {
        app.refused(who, &what).await;
    }
    let headers = response.headers_mut();
    if unread || route.is_some_and(Route::brings_key) {
        // After a body that was not read, the client must not send another request on this
        // connection. After a key, the buffers of the connection hold it until they are freed.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    let path = path.unwrap_or("other");
    let status = status_label(response.status().as_u16());
    app.metrics.count(Counter::Requests, tenant, &[path, status]);
    traces::answered(&context, &response);
    app.metrics.took(start.elapsed().as_secs_f64());
    let code = response.extensions().get::<Answered>().map_or("", |code| code.0);
    tracing::debug!(%method, path, status, code, "request");
    response
}

/// The summary of a refusal to record: requests beyond the caller's rights, and changes that
/// failed. Denied evidence has its own records.
fn refusal(route: &Route, response: &Response) -> Option<String> {
    let status = response.status();
    let of_a_change = route.need == Need::Operate && route.changes() && status.is_client_error();
    let code = response.extensions().get::<Answered>().map_or("", |code| code.0);
    (status == StatusCode::FORBIDDEN || of_a_change)
        .then(|| format!("{} {} {} {code}", route.method, route.path, status.as_u16()))
}

/// The metrics label of a status; those without one share `other`.
fn status_label(status: u16) -> &'static str {
    const LABELS: [(u16, &str); 20] = [
        (200, "200"),
        (201, "201"),
        (202, "202"),
        (204, "204"),
        (303, "303"),
        (400, "400"),
        (401, "401"),
        (403, "403"),
        (404, "404"),
        (405, "405"),
        (406, "406"),
        (408, "408"),
        (409, "409"),
        (410, "410"),
        (413, "413"),
        (415, "415"),
        (422, "422"),
        (429, "429"),
        (500, "500"),
        (503, "503"),
    ];
    LABELS.iter().find(|(number, _)| *number == status).map_or("other", |(_, label)| label)
}

async fn admit(
    app: &Arc<App>,
    route: Option<&'static Route>,
    mut request: Request,
    who: &mut Option<Identity>,
    unread: &mut bool,
) -> Result<(Request, Option<Place>, Option<Held>)> {
    let config = app.config.load_full();
    let peer = request.extensions().get::<Peer>().cloned();
    let address = peer.as_ref().map(|peer| network(peer.address.ip()));
    let lane = route.and_then(Route::lane);
    let rate = rate(&config);
    let take = |who: Option<&Identity>| {
        app.rates.take(who, address, lane == Some(Lane::Revoke), rate, Instant::now())
    };
    let Some(route) = route else {
        // No such path or method: the fallbacks answer without reading the body.
        take(None)?;
        return Ok((request, None, None));
    };
    if route.need == Need::Open {
        take(None)?;
    } else {
        let caller = (peer.as_ref(), request.headers());
        let identity = match known(app, &config, route, caller, &|| take(None)).await {
            Ok(identity) => identity,
            // Guesses take from their address, too.
            Err(problem) => return Err(take(None).err().unwrap_or(problem)),
        };
        *who = Some(identity.clone());
        take(Some(&identity))?;
        identity.demand(route.need)?;
        let headers = request.headers().clone();
        let caller: Arc<dyn Standing> = Arc::new(Caller {
            app: Arc::clone(app),
            identity: identity.clone(),
            peer,
            headers,
            route,
            config: Arc::clone(&config),
        });
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(identity);
    }
    let limit = if route.path.starts_with("/v1/corims")
        || route.path.starts_with("/endorsement-provisioning/")
    {
        config.limits.corim_bytes
    } else {
        config.limits.body_bytes
    };
    let (mut parts, body) = request.into_parts();
    let mut held = app.bodies.hold(who.as_ref(), &config.limits);
    let body =
        read(body, limit, Duration::from_secs(config.limits.body_seconds), &mut held).await?;
    *unread = false;
    let place = match lane {
        None => None,
        Some(lane) => {
            let alone = config.tenants.len() == 1;
            Some(app.lanes.enter(lane, who.as_ref(), address, alone).await?)
        }
    };
    // Body and place may have taken their time.
    if let Some(caller) = parts.extensions.get::<Arc<dyn Standing>>().cloned() {
        parts.extensions.insert(caller.confirmed().await?);
    }
    // After the body: an earlier answer would cost the client its connection.
    if route.changes() {
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let authority =
            parts.uri.authority().map(|authority| authority.as_str()).or(host).unwrap_or("");
        routes::demand_same_site(&parts.headers, authority)?;
        route.takes.demand(&parts.headers)?;
    }
    Ok((Request::from_parts(parts, Body::from(body)), place, Some(held)))
}

/// The caller of a request, as it was identified.
#[derive(Clone)]
struct Caller {
    app: Arc<App>,
    identity: Identity,
    peer: Option<Peer>,
    headers: HeaderMap,
    route: &'static Route,
    config: Arc<Config>,
}

#[async_trait]
impl Standing for Caller {
    fn is_certain(&self) -> bool {
        let stale = self.peer.as_ref().is_some_and(|peer| peer.stale().is_some());
        !stale && Arc::ptr_eq(&self.app.config.load(), &self.config)
    }

    async fn confirmed(&self) -> Result<Arc<dyn Standing>> {
        if self.is_certain() {
            return Ok(Arc::new(self.clone()));
        }
        let (app, config) = (&*self.app, self.app.config.load_full());
        let address = self.peer.as_ref().map(|peer| network(peer.address.ip()));
        let take = || app.rates.take(None, address, false, rate(&config), Instant::now());
        let caller = (self.peer.as_ref(), &self.headers);
        let identity = known(app, &config, self.route, caller, &take).await?;
        if identity != self.identity {
            let text = "the configuration has changed since this request began; send it again";
            return Err(Kind::Unauthenticated.because(text));
        }
        Ok(Arc::new(Self { config, ..self.clone() }))
    }
}

/// The rate of a full account.
fn rate(config: &Config) -> Rate {
    Rate { rate: config.limits.rate, burst: config.limits.burst }
}

/// Identifies the caller of a request, and logs a refusal. `take` runs before an identity provider is
/// asked.
async fn known(
    app: &App,
    config: &Config,
    route: &'static Route,
    (peer, headers): (Option<&Peer>, &HeaderMap),
    take: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Identity> {
    let certificate = peer.and_then(|peer| peer.identity.as_ref());
    let stale = peer.and_then(Peer::stale);
    let known = match stale {
        Some(text) => Err(Kind::Unauthenticated.because(text).header(header::CONNECTION, "close")),
        None => identify(config, certificate, headers),
    };
    let nobody =
        certificate.is_none() && peer.is_some() && stale.is_none() && is_compat(route.path);
    let shown = match certificate {
        None if stale.is_none() => oidc::shown(config, headers),
        _ => None,
    };
    let identity = match known {
        Err(_) if let Some((provider, token)) = shown => {
            // Signatures are verified within the rate of the address, which only forged ones take from.
            let address = peer.filter(|peer| !peer.is_recognised());
            let address = address.map(|peer| network(peer.address.ip()));
            match app.rates.demand(address, rate(config), Instant::now()) {
                Ok(()) => oidc::identify(&app.provider_keys, provider, token, take).await,
                Err(problem) => Err(problem),
            }
        }
        Err(_) if nobody && !headers.contains_key(header::AUTHORIZATION) => anonymous(config),
        Err(_) if nobody && kbs::takes_result(route) && kbs::bearer(headers).is_some() => {
            kbs::who_attested(app, config, headers).await
        }
        other => other,
    };
    match (&identity, peer) {
        (Ok(who), Some(peer)) if certificate.is_none() && !who.is_anonymous() => {
            peer.recognise(who);
        }
        (Ok(_), _) => {}
        (Err(problem), _) => {
            audit::login_refused(&app.logins, peer.map(|peer| peer.address), &problem.with_cause());
        }
    }
    identity
}

/// Whether a path belongs to another service's protocol, whose clients cannot authenticate.
fn is_compat(path: &str) -> bool {
    path.starts_with("/challenge-response/") || path.starts_with("/kbs/")
}

/// The identity of clients without credentials, if the configuration admits them: they may submit
/// evidence.
fn anonymous(config: &Config) -> Result<Identity> {
    let tenant = config.compat.anonymous_tenant.clone();
    let tenant = tenant.ok_or_else(|| {
        Kind::Unauthenticated.because("neither a client certificate nor a bearer token was shown")
    })?;
    Ok(Identity::anonymous(&tenant))
}

/// Reads the whole body. It may hold a secret: dropping the last handle erases it.
async fn read(body: Body, limit: usize, time: Duration, held: &mut Held) -> Result<Bytes> {
    match tokio::time::timeout(time, collect(body, limit, held)).await {
        Ok(body) => body
            .map(Bytes::from_owner)
            .map_err(|problem| problem.header(header::CONNECTION, "close")),
        Err(_) => Err(Kind::Slow
            .because(format!("the body was not there after {} s", time.as_secs()))
            .header(header::CONNECTION, "close")),
    }
}

async fn collect(body: Body, limit: usize, held: &mut Held) -> Result<Zeroizing<Vec<u8>>> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limit).min(limit);
    held.grow(announced)?;
    let mut body = Limited::new(body, limit);
    let mut whole = Zeroizing::new(Vec::with_capacity(announced));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Kind::TooLarge.because(format!("more than {limit} bytes"))
            } else {
                Kind::Malformed.because("the body broke off")
            }
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.capacity() - whole.len() < data.len() {
            // A growing vector would leave a copy of its old content behind.
            let capacity = (whole.len() + data.len()).next_power_of_two().min(limit);
            held.grow(capacity)?;
            let mut larger = Zeroizing::new(Vec::with_capacity(capacity));
            larger.extend_from_slice(&whole);
            whole = larger;
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}
