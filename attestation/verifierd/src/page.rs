//! The operator's page: rendered on the server, usable without scripts, nothing from other origins.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Extension, Router};
use maud::{DOCTYPE, Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::api::{self, Begin, Query, Shared, Target};
use crate::app::App;
use crate::auth::Identity;
use crate::problem::{Because, Kind, Result};
use crate::role::Need;
use crate::secrets::sha256;
use crate::store::{
    AnchorRow, AppraisalRow, CorimRow, DeviceRow, Heads, KeyRow, PolicyRow, ReceiptRow,
    RevocationRow, revoked_value,
};
use crate::time;

const STYLE: &str = include_str!("page.css");
const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const ROWS: i64 = 50;

/// The paths of the page.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(overview))
        .route(
            "/style.css",
            get(async || ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)),
        )
        .route("/appraisals/{id}", get(appraisal))
        .route("/revoke", get(ask).post(revoke))
}

fn page(title: &str, who: &Identity, body: &Markup) -> Response {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · shef-verifierd" }
                link rel="stylesheet" href="/style.css";
            }
            body {
                header {
                    a href="/" { strong { "shef-verifierd" } }
                    span { "tenant " b { (who.tenant) } " · " (who.name) " (" (who.role.name()) ")" }
                }
                main { h1 { (title) } (body) }
            }
        }
    };
    let mut response = markup.into_string().into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // With no-referrer, the browser would hide that the form comes from this page.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn short(bytes: &[u8]) -> String {
    let text = hex::encode(bytes);
    if text.len() > 20 { format!("{}…", &text[..20]) } else { text }
}

fn badge(verdict: &str) -> Markup {
    html! { span class=(format!("badge {verdict}")) { (verdict) } }
}

fn revoke_link(who: &Identity, kind: &str, value: &str) -> Markup {
    html! {
        @if who.role.may(Need::Operate) {
            a class="danger" href=(format!("/revoke?kind={kind}&value={value}")) { "revoke…" }
        }
    }
}

fn empty(columns: u8, text: &str) -> Markup {
    html! { tr { td class="empty" colspan=(columns) { (text) } } }
}

fn devices(who: &Identity, rows: &[DeviceRow], now: i64, stale: i64) -> Markup {
    html! {
        table {
            thead { tr { th { "Device" } th { "Type" } th { "Kernel SVN" } th { "Last verdict" } th { "Last accepted" } th {} } }
            tbody {
                @if rows.is_empty() { (empty(6, "No device has shown genuine evidence yet.")) }
                @for row in rows {
                    tr {
                        td { code title=(hex::encode(&row.ueid)) { (short(&row.ueid)) } }
                        td { (row.target) }
                        td { (row.kernel_svn) }
                        td { (badge(&row.verdict)) }
                        td {
                            @if row.last_appraised == 0 { "never" } @else { (time::text(row.last_appraised)) }
                            @if row.last_appraised < now - stale { " " (badge("stale")) }
                        }
                        td { (revoke_link(who, "device", &hex::encode(&row.ueid))) }
                    }
                }
            }
        }
    }
}

fn appraisals(rows: &[AppraisalRow]) -> Markup {
    html! {
        table {
            thead { tr { th { "Time" } th { "Layer" } th { "Verdict" } th { "Why not" } th { "Policy" } th { "Device" } th {} } }
            tbody {
                @if rows.is_empty() { (empty(7, "Nothing was appraised yet.")) }
                @for row in rows {
                    tr {
                        td { (time::text(row.time)) }
                        td { (row.layer) }
                        td { (badge(&row.verdict)) }
                        td { (why(&row.code)) }
                        td { (row.policy) }
                        td { code title=(hex::encode(&row.ueid)) { (short(&row.ueid)) } }
                        td { a href=(format!("/appraisals/{}", hex::encode(&row.id))) { "checks" } }
                    }
                }
            }
        }
    }
}

fn keys(rows: &[KeyRow]) -> Markup {
    html! {
        table {
            thead { tr { th { "Key" } th { "Layer" } th { "Newest version" } th { "State" } } }
            tbody {
                @if rows.is_empty() { (empty(4, "There is no key.")) }
                @for key in rows {
                    tr {
                        td { (key.name) } td { (key.layer) } td { (key.version) }
                        td { (badge(if key.disabled == 0 { "active" } else { "disabled" })) }
                    }
                }
            }
        }
    }
}

fn receipts(rows: &[ReceiptRow]) -> Markup {
    html! {
        table {
            thead { tr { th { "Receipt" } th { "Time" } th { "Key" } } }
            tbody {
                @if rows.is_empty() { (empty(3, "No key was released.")) }
                @for row in rows.iter().rev() { tr { td { (row.seq) } td { (time::text(row.time)) } td { (row.name) } } }
            }
        }
    }
}

fn corims(rows: &[CorimRow]) -> Markup {
    html! {
        table {
            thead { tr { th { "Id" } th { "Form" } th { "SHA-256" } th { "Since" } th { "State" } } }
            tbody {
                @if rows.is_empty() { (empty(5, "There are none: every image and kernel is unknown, and everything is denied.")) }
                @for row in rows {
                    tr {
                        td { (row.id) } td { (row.media_type) } td { code { (short(&sha256(&row.content))) } } td { (time::text(row.created)) }
                        td { (badge(if row.active == 0 { "inactive" } else { "active" })) }
                    }
                }
            }
        }
    }
}

fn policies(rows: &[PolicyRow]) -> Markup {
    html! {
        table {
            thead { tr { th { "Policy" } th { "Version" } th { "SHA-256" } th { "Since" } } }
            tbody {
                @if rows.is_empty() { (empty(4, "There is none: nothing can be appraised.")) }
                @for row in rows {
                    tr { td { (row.name) } td { (row.version) } td { code { (short(&row.sha256)) } } td { (time::text(row.created)) } }
                }
            }
        }
    }
}

fn anchors(who: &Identity, rows: &[AnchorRow], authorities: &HashMap<String, String>) -> Markup {
    let authority = |row: &AnchorRow| authorities.get(&row.name).map_or("", String::as_str);
    html! {
        table {
            thead { tr { th { "Name" } th { "Root of trust" } th { "Devices" } th { "SHA-256" } th {} } }
            tbody {
                @if rows.is_empty() { (empty(5, "There is none: no device is trusted.")) }
                @for row in rows {
                    tr {
                        td { (row.name) } td { (row.kind) } td { (if row.debug == 0 { "in normal mode" } else { "in debug mode" }) }
                        td { code { (short(&sha256(&row.certificate))) } } td { (revoke_link(who, "authority", authority(row))) }
                    }
                }
            }
        }
    }
}

fn revocations(rows: &[RevocationRow]) -> Markup {
    html! {
        table {
            thead { tr { th { "Kind" } th { "Value" } th { "Reason" } th { "Since" } } }
            tbody {
                @if rows.is_empty() { (empty(4, "Nothing is revoked.")) }
                @for row in rows {
                    tr { td { (row.kind) } td { code { (row.value) } } td { (row.reason) } td { (time::text(row.created)) } }
                }
            }
        }
    }
}

/// Explains a code.
fn why(code: &str) -> Markup {
    let known = shef_verify::CODES.iter().find(|known| known.id == code);
    html! {
        @if let Some(known) = known { span title=(known.help) { (known.summary) } " " code { (code) } }
        @else { (code) }
    }
}

/// The link to further rows of a table, if there may be any.
fn more(table: &str, rows: usize, next: impl FnOnce() -> Option<String>) -> Markup {
    let next = if rows as i64 == ROWS { next() } else { None };
    html! { @if let Some(next) = next { p { a href=(format!("/?{table}={next}#{table}")) { "more…" } } } }
}

async fn overview(
    State(app): Shared,
    Extension(who): Extension<Identity>,
    Query(from): Query<Begin>,
) -> Result<Response> {
    let tenant = who.tenant.as_str();
    let rows = app.store.collateral(tenant).await?;
    let authorities = api::authorities(&app, tenant).await?;
    let seen = app
        .store
        .devices(tenant, &api::unhex("devices", from.devices.as_deref().unwrap_or(""))?, ROWS)
        .await?;
    let (time, id) = api::cursor(from.appraisals.as_deref())?;
    let recent = app.store.appraisals(tenant, time, &id, ROWS).await?;
    let named = app.store.keys(tenant, from.keys.as_deref().unwrap_or(""), ROWS).await?;
    let Heads { head, kept, .. } = app.store.heads(tenant).await?;
    let last = from.receipts.unwrap_or(i64::MAX).clamp(0, head.seq as i64);
    let released = app.store.receipts(tenant, None, (last - ROWS).max(0), ROWS.min(last)).await?;
    let (now, stale) = (app.now(), app.config.load().retention.stale_seconds);
    let body = html! {
        section id="devices" {
            h2 { "Devices" } (devices(&who, &seen, now, stale))
            (more("devices", seen.len(), || seen.last().map(|row| hex::encode(&row.ueid))))
        }
        section id="appraisals" {
            h2 { "Recent appraisals" } (appraisals(&recent))
            (more("appraisals", recent.len(), || recent.last().map(|row| api::cursor_of(row.time, &row.id))))
        }
        section id="keys" {
            h2 { "Keys" } (keys(&named))
            (more("keys", named.len(), || named.last().map(|row| row.name.replace('/', "%2F"))))
        }
        section id="receipts" {
            h2 { "Receipts" }
            p { "Head of the chain: receipt " b { (head.seq) } ", " code { (hex::encode(head.digest)) } ". Kept behind receipt " (kept.seq) "." }
            (receipts(&released))
            (more("receipts", released.len(), || released.first().map(|row| row.seq - 1).filter(|seq| *seq > 0).map(|seq| seq.to_string())))
        }
        section {
            h2 { "Reference values" } (corims(&rows.corims))
        }
        section {
            h2 { "Policies" } (policies(&rows.policies))
        }
        section {
            h2 { "Trust anchors" } (anchors(&who, &rows.anchors, &authorities))
        }
        section {
            h2 { "Revocations" } (revocations(&rows.revocations))
        }
    };
    Ok(page("Overview", &who, &body))
}

async fn appraisal(
    State(app): Shared,
    Extension(who): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Response> {
    let bytes = hex::decode(&id).map_err(|_| Kind::Malformed.because("id is not hexadecimal"))?;
    let row = app
        .store
        .appraisal(&who.tenant, &bytes)
        .await?
        .ok_or_else(|| Kind::NotFound.because("there is no such appraisal"))?;
    let report: Value = serde_json::from_str(&row.report).unwrap_or(Value::Null);
    let claims = crate::appraiser::Received::new(row.evidence.clone()).describe();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let body = html! {
        p { (time::text(row.time)) " · layer " (row.layer) " · policy " (row.policy) " · " (badge(&row.verdict)) }
        section {
            h2 { "Checks" }
            table {
                thead { tr { th { "Check" } th { "Result" } th { "Expected" } th { "Found" } } }
                tbody {
                    @for check in report["checks"].as_array().into_iter().flatten() {
                        @let passed = check["passed"] == true;
                        @let state = if passed { "passed" } else if check["reached"] == false { "not reached" } else { "failed" };
                        tr class=[(!passed).then_some("failed")] {
                            td { (text(&check["id"])) @if state == "failed" { br; small { (why(check["code"].as_str().unwrap_or(""))) } } }
                            td { (state) }
                            td class="long" { (text(&check["expected"])) }
                            td class="long" { (text(&check["actual"])) }
                        }
                    }
                }
            }
        }
        section {
            h2 { "Claims" }
            p { "As the evidence has them; proven only where the checks passed." }
            table { tbody {
                @for (name, value) in claims.as_object().into_iter().flatten() { tr { th { (name) } td class="long" { (text(value)) } } }
            } }
        }
    };
    Ok(page("Appraisal", &who, &body))
}

fn form_parts<'a>(who: &'a Identity, kind: &'a str, value: &'a str) -> [&'a [u8]; 6] {
    [
        b"revoke",
        who.tenant.as_bytes(),
        who.name.as_bytes(),
        who.role.name().as_bytes(),
        kind.as_bytes(),
        value.as_bytes(),
    ]
}

async fn ask(
    State(app): Shared,
    Extension(who): Extension<Identity>,
    Query(target): Query<Target>,
) -> Result<Response> {
    let Target { kind, value } = &target;
    let known = api::is_known(&app, &who.tenant, kind, &revoked_value(kind, value)?).await?;
    let body = html! {
        form method="post" action="/revoke" {
            p { "Revoke the " b { (kind) } " " code { (value) } "?" }
            @if !known {
                p { b { "No trust anchor, reference value or recent appraisal has this value." } " Check it: a value with an error in it revokes nothing." }
            }
            p { "Evidence that rests on it is denied from now on, and boxes that were given out are not given out again. Sessions that a Shield has already opened go on: close them at their owners." }
            input type="hidden" name="kind" value=(kind);
            input type="hidden" name="value" value=(value);
            input type="hidden" name="token" value=(app.kek.load().form_token(&form_parts(&who, kind, value)));
            label { "Reason " input type="text" name="reason" required maxlength="256"; }
            p { button type="submit" class="danger" { "Revoke" } " " a href="/" { "Cancel" } }
        }
    };
    Ok(page("Revoke", &who, &body))
}

#[derive(Deserialize)]
struct Confirmed {
    kind: String,
    value: String,
    reason: String,
    token: String,
}

async fn revoke(
    State(app): Shared,
    Extension(who): Extension<Identity>,
    body: Bytes,
) -> Result<Redirect> {
    let bad = |_| Kind::Malformed.because("the form is not complete");
    let uri: Uri = format!("/?{}", String::from_utf8_lossy(&body))
        .parse()
        .map_err(|_| Kind::Malformed.because("not a form"))?;
    let axum::extract::Query(form) =
        axum::extract::Query::<Confirmed>::try_from_uri(&uri).map_err(bad)?;
    // The browser sends certificate or password automatically: only a form of this page, for this
    // very target, counts.
    if !app.kek.load().form_verify(&form_parts(&who, &form.kind, &form.value), &form.token) {
        return Err(
            Kind::Forbidden.because("the form is not one that this service gave to this identity")
        );
    }
    api::add_revocation(&app, &who, form.kind, form.value, form.reason).await?;
    Ok(Redirect::to("/"))
}
