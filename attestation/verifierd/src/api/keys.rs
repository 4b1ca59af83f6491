//! Keys and receipts. A secret comes in and never goes out but in a box.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use shef_proto::entropy::Entropy as _;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::image::ImageKey;
use shef_proto::release::{ImageSecret, MAX_SECRET};
use zeroize::Zeroizing;

use super::appraise::layer;
use super::collateral::name as check_name;
use super::{Shared, bytes, json as read_json, page, text};
use crate::app::App;
use crate::audit;
use crate::auth::Identity;
use crate::problem::{Kind, Result};
use crate::secrets::SystemEntropy;
use crate::store::{KeyRow, KeyVersionRow, NewVersion};

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/keys", get(keys))
        .route("/v1/keys/{name}", put(add).get(key))
        .route("/v1/keys/{name}/rotate", post(rotate))
        .route("/v1/keys/{name}/disable", post(disable))
        .route("/v1/keys/{name}/enable", post(enable))
        .route("/v1/receipts", get(receipts))
}

/// A secret on its way in; erased when dropped.
struct Hidden(Zeroizing<String>);

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    key: Hidden,
    min_svn: u64,
    vendor: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    policy: String,
    secret: Option<Hidden>,
    generate: Option<usize>,
    image: Option<Image>,
    #[serde(default)]
    max_releases: u32,
    #[serde(default)]
    not_before: i64,
    #[serde(default)]
    not_after: i64,
}

#[derive(Deserialize)]
struct NewKey {
    layer: String,
    #[serde(flatten)]
    version: Value,
}

fn secret(layer: Layer, version: &Version) -> Result<Zeroizing<Vec<u8>>> {
    let bad = |text: &str| Kind::Key.because(text);
    match (&version.secret, version.generate, &version.image) {
        (Some(Hidden(secret)), None, None) => {
            let secret = Zeroizing::new(bytes("secret", secret)?);
            if (1..=MAX_SECRET).contains(&secret.len()) { Ok(secret) } else { Err(bad("secret must have 1 to 512 bytes")) }
        }
        (None, Some(len), None) => {
            if layer == Layer::Kernel {
                return Err(bad("generate: an image key belongs to an image that exists; give `image`"));
            }
            if !(16..=64).contains(&len) {
                return Err(bad("generate must be 16 to 64 bytes"));
            }
            let mut secret = Zeroizing::new(vec![0; len]);
            SystemEntropy.fill(&mut secret);
            Ok(secret)
        }
        (None, None, Some(image)) => {
            if layer == Layer::Shield {
                return Err(bad("image: an image key is for the layer kernel"));
            }
            let key = Zeroizing::new(bytes("image.key", &image.key.0)?);
            let key: &[u8; 32] = key.as_slice().try_into().map_err(|_| bad("image.key must have 32 bytes"))?;
            let vendor =
                PublicKey::from_bytes(&bytes("image.vendor", &image.vendor)?).map_err(|_| bad("image.vendor is not a point of P-256"))?;
            Ok(ImageSecret { key: ImageKey::from_bytes(key), min_svn: image.min_svn, vendor }.to_bytes())
        }
        _ => Err(bad("expected exactly one of secret, generate, image")),
    }
}

async fn store(
    app: &App,
    identity: &Identity,
    name: &str,
    new_layer: Option<Layer>,
    version: Version,
) -> Result<(StatusCode, Json<Value>)> {
    let tenant = identity.tenant.as_str();
    let layer = match new_layer {
        Some(layer) => layer,
        None => layer_of(&app.store.key(tenant, name).await?.0)?,
    };
    let secret = secret(layer, &version)?;
    if version.not_after != 0 && version.not_after <= version.not_before {
        return Err(Kind::Key.because("not_after is not behind not_before"));
    }
    let policy = app.read_collateral(tenant).await?.policy(&version.policy)?;
    let new = NewVersion {
        policy: policy.name.clone(),
        policy_version: policy.version,
        max_releases: i64::from(version.max_releases),
        not_before: version.not_before,
        not_after: version.not_after,
        created: app.now(),
    };
    let number = app.store.add_version(tenant, name, new_layer.map(Layer::name), &new, &app.kek.load_full(), &secret).await?;
    audit::change(identity, if number == 1 { "key-add" } else { "key-rotate" }, &format!("{name} version {number}"));
    Ok((StatusCode::CREATED, Json(json!({"name": name, "version": number, "layer": layer.name(), "policy": policy.id()}))))
}

fn layer_of(key: &KeyRow) -> Result<Layer> {
    Layer::from_name(&key.layer).ok_or_else(|| Kind::Internal.because("a stored key has an unknown layer"))
}

async fn add(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>)> {
    check_name("key", &name)?;
    let new: NewKey = read_json(&body)?;
    let layer = layer(&new.layer)?;
    let version: Version = serde_json::from_value(new.version).map_err(|error| Kind::Malformed.because(error.to_string()))?;
    store(&app, &identity, &name, Some(layer), version).await
}

async fn rotate(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>)> {
    let version: Version = read_json(&body)?;
    store(&app, &identity, &name, None, version).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    version: Option<i64>,
}

async fn set_disabled(app: &App, identity: &Identity, name: &str, body: &[u8], disabled: bool) -> Result<StatusCode> {
    let which = if body.is_empty() { Which { version: None } } else { read_json(body)? };
    if !app.store.disable_key(&identity.tenant, name, which.version, disabled).await? {
        return Err(Kind::NotFound.because("there is no such key or version"));
    }
    let what = which.version.map_or_else(|| name.to_owned(), |version| format!("{name} version {version}"));
    audit::change(identity, if disabled { "key-disable" } else { "key-enable" }, &what);
    Ok(StatusCode::NO_CONTENT)
}

async fn disable(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<StatusCode> {
    set_disabled(&app, &identity, &name, &body, true).await
}

async fn enable(State(app): Shared, Extension(identity): Extension<Identity>, Path(name): Path<String>, body: Bytes) -> Result<StatusCode> {
    set_disabled(&app, &identity, &name, &body, false).await
}

fn show(key: &KeyRow) -> Value {
    json!({"name": key.name, "layer": key.layer, "disabled": key.disabled != 0, "version": key.version})
}

fn show_version(version: &KeyVersionRow) -> Value {
    json!({
        "version": version.version, "policy": format!("{}@{}", version.policy, version.policy_version),
        "max_releases": version.max_releases, "released": version.released, "not_before": version.not_before,
        "not_after": version.not_after, "disabled": version.disabled != 0, "created": version.created,
    })
}

#[derive(Deserialize)]
struct After {
    after: Option<String>,
    limit: Option<i64>,
}

async fn keys(State(app): Shared, Extension(identity): Extension<Identity>, Query(query): Query<After>) -> Result<Json<Value>> {
    let rows = app.store.keys(&identity.tenant, query.after.as_deref().unwrap_or(""), page(query.limit)).await?;
    Ok(Json(json!({"keys": rows.iter().map(show).collect::<Vec<_>>()})))
}

async fn key(State(app): Shared, Extension(identity): Extension<Identity>, Path(name): Path<String>) -> Result<Json<Value>> {
    let (key, versions) = app.store.key(&identity.tenant, &name).await?;
    let mut shown = show(&key);
    shown["versions"] = versions.iter().map(show_version).collect();
    Ok(Json(shown))
}

#[derive(Deserialize)]
struct Receipts {
    key: Option<String>,
    after: Option<i64>,
    limit: Option<i64>,
}

async fn receipts(State(app): Shared, Extension(identity): Extension<Identity>, Query(query): Query<Receipts>) -> Result<Json<Value>> {
    let rows = app.store.receipts(&identity.tenant, query.key.as_deref(), query.after.unwrap_or(0), page(query.limit)).await?;
    let (head, kept) = app.store.heads(&identity.tenant).await?;
    let show = |head: shef_proto::receipt::Head| json!({"seq": head.seq, "digest": hex::encode(head.digest)});
    let list: Vec<_> =
        rows.iter().map(|row| json!({"seq": row.seq, "time": row.time, "key": row.name, "receipt": text(&row.content)})).collect();
    Ok(Json(json!({"tenant": identity.tenant, "receipts": list, "head": show(head), "kept": show(kept)})))
}
