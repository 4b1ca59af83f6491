//! Keys and receipts. A secret only ever leaves in a box.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Extension, Json, Router};
use shef_api as api;
use shef_api::{NewKey, NewVersion, Secret, To, Which};
use shef_proto::entropy::Entropy as _;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::image::ImageKey;
use shef_proto::release::{ImageSecret, MAX_SECRET};
use zeroize::Zeroizing;

use super::collateral::name as check_name;
use super::{Query, Shared, bytes, json as read_json, next, page, stored_layer, text};
use crate::app::App;
use crate::audit;
use crate::auth::Identity;
use crate::flow::DEFAULT_POLICY;
use crate::name::is_path;
use crate::problem::{Because, Kind, Result};
use crate::secrets::SystemEntropy;
use crate::store::{self, Event, Heads, KeyRow, KeyVersionRow};

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/keys", get(keys))
        .route("/v1/keys/{name}", put(add).get(key).delete(delete))
        .route("/v1/keys/{name}/rotate", post(rotate))
        .route("/v1/keys/{name}/disable", post(disable))
        .route("/v1/keys/{name}/enable", post(enable))
        .route("/v1/receipts", get(receipts))
}

/// Maximum size of a resource in bytes.
const MAX_RESOURCE: usize = 16 * 1024;

/// A key's name, or the path of a resource.
fn check_key(name: &str) -> Result<()> {
    if is_path(name) { Ok(()) } else { check_name("key", name) }
}

fn secret(name: &str, layer: Layer, version: &NewVersion) -> Result<Zeroizing<Vec<u8>>> {
    let bad = |text: &str| Kind::Key.because(text);
    match (&version.secret, version.generate, &version.image) {
        (Some(secret), None, None) => {
            let secret = Zeroizing::new(bytes("secret", secret.expose())?);
            let most = if is_path(name) { MAX_RESOURCE } else { MAX_SECRET };
            if !(1..=most).contains(&secret.len()) {
                return Err(bad(&format!("secret must have 1 to {most} bytes")));
            }
            // No kernel accepts anything else, and an image that has lost its key does not load.
            let image =
                layer != Layer::Kernel || is_path(name) || ImageSecret::from_bytes(&secret).is_ok();
            if !image {
                return Err(bad(
                    "secret: a key for the layer kernel is that of an image; give `image`",
                ));
            }
            Ok(secret)
        }
        (None, Some(len), None) => {
            if layer == Layer::Kernel && !is_path(name) {
                return Err(bad(
                    "generate: an image key belongs to an image that exists; give `image`",
                ));
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
            let key = Zeroizing::new(bytes("image.key", image.key.expose())?);
            let key: &[u8; 32] =
                key.as_slice().try_into().map_err(|_| bad("image.key must have 32 bytes"))?;
            let vendor = PublicKey::from_bytes(&bytes("image.vendor", &image.vendor)?)
                .map_err(|_| bad("image.vendor is not a point of P-256"))?;
            Ok(ImageSecret { key: ImageKey::from_bytes(key), min_svn: image.min_svn, vendor }
                .to_bytes())
        }
        _ => Err(bad("expected exactly one of secret, generate, image")),
    }
}

fn event<'a>(app: &App, identity: &'a Identity) -> Event<'a> {
    Event {
        tenant: &identity.tenant,
        who: &identity.name,
        role: identity.role.name(),
        time: app.now(),
    }
}

async fn store(
    app: &App,
    identity: &Identity,
    name: &str,
    new_key: Option<(Layer, To)>,
    version: NewVersion,
) -> Result<(StatusCode, Json<api::AddedKey>)> {
    let tenant = identity.tenant.as_str();
    let (layer, to) = match new_key {
        Some(new) => new,
        None => {
            let (key, _) = app.store.key(tenant, name).await?;
            (stored_layer(&key.layer)?, to(&key))
        }
    };
    let secret = secret(name, layer, &version)?;
    if to == To::Host && !is_path(name) {
        return Err(Kind::Key.because(
            "to = \"host\" is for resources of the KBS, which are named REPOSITORY/TYPE/TAG",
        ));
    }
    if version.not_after != 0 && version.not_after <= version.not_before {
        return Err(Kind::Key.because("not_after is not behind not_before"));
    }
    let policy = app.read_collateral(tenant).await?.policy(&version.policy)?;
    if to == To::Host && !policy.to_host() {
        return Err(Kind::Key.because(format!(
            "to = \"host\": policy {} does not say `to_host = true`",
            policy.id()
        )));
    }
    let new = store::NewVersion {
        policy: policy.name.clone(),
        policy_version: policy.version,
        max_releases: i64::from(version.max_releases),
        not_before: version.not_before,
        not_after: version.not_after,
        created: app.now(),
    };
    let number = app
        .store
        .add_version(
            &event(app, identity),
            name,
            new_key.map(|(layer, to)| (layer.name(), to == To::Host)),
            &new,
            &app.kek.load_full(),
            &secret,
        )
        .await?;
    audit::change(
        identity,
        if new_key.is_some() { "key-add" } else { "key-rotate" },
        &format!("{name} version {number}"),
    );
    let answer = api::AddedKey {
        name: name.to_owned(),
        version: number.unsigned_abs(),
        layer: layer.into(),
        policy: policy.id(),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Stores a resource from its bytes alone: the next version of the one at this path, or a new one
/// for evidence of the kernel's layer, under the default policy for requests that name no policy.
pub async fn store_resource(
    app: &App,
    identity: &Identity,
    path: &str,
    secret: &[u8],
) -> Result<StatusCode> {
    let known = match app.store.key(&identity.tenant, path).await {
        Ok((_, versions)) => versions.first().map(|newest| newest.policy.clone()),
        Err(problem) if problem.kind == Kind::NotFound => None,
        Err(problem) => return Err(problem),
    };
    let new_key = known.is_none().then_some((Layer::Kernel, To::Evidence));
    let version = NewVersion {
        policy: known.unwrap_or_else(|| DEFAULT_POLICY.into()),
        secret: Some(Secret::new(text(secret))),
        generate: None,
        image: None,
        max_releases: 0,
        not_before: 0,
        not_after: 0,
    };
    Ok(store(app, identity, path, new_key, version).await?.0)
}

async fn add(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<api::AddedKey>)> {
    check_key(&name)?;
    let new: NewKey = read_json(&body)?;
    store(&app, &identity, &name, Some((new.layer.into(), new.to)), new.version()).await
}

async fn rotate(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<api::AddedKey>)> {
    let version: NewVersion = read_json(&body)?;
    store(&app, &identity, &name, None, version).await
}

async fn set_disabled(
    app: &App,
    identity: &Identity,
    name: &str,
    body: &[u8],
    disabled: bool,
) -> Result<StatusCode> {
    let which = if body.is_empty() { Which::default() } else { read_json(body)? };
    let version = which.version.map(u64::cast_signed);
    if let Some(what) =
        app.store.disable_key(&event(app, identity), name, version, disabled).await?
    {
        audit::change(identity, if disabled { "key-disable" } else { "key-enable" }, &what);
    }
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

async fn enable(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<StatusCode> {
    set_disabled(&app, &identity, &name, &body, false).await
}

async fn delete(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    Query(which): Query<Which>,
) -> Result<StatusCode> {
    let version = which.version.map(u64::cast_signed);
    let what = app.store.delete_key(&event(&app, &identity), &name, version).await?;
    audit::change(&identity, "key-delete", &what);
    app.erase_soon();
    Ok(StatusCode::NO_CONTENT)
}

fn show(key: &KeyRow) -> Result<api::Key> {
    Ok(api::Key {
        name: key.name.clone(),
        layer: stored_layer(&key.layer)?.into(),
        to: to(key),
        disabled: key.disabled != 0,
        version: key.version.unsigned_abs(),
        version_disabled: key.version_disabled != 0,
    })
}

fn show_version(version: &KeyVersionRow) -> api::KeyVersion {
    api::KeyVersion {
        version: version.version.unsigned_abs(),
        policy: format!("{}@{}", version.policy, version.policy_version),
        max_releases: version.max_releases.unsigned_abs(),
        released: version.released.unsigned_abs(),
        not_before: version.not_before,
        not_after: version.not_after,
        disabled: version.disabled != 0,
        created: version.created,
    }
}

fn to(key: &KeyRow) -> To {
    if key.to_host == 0 { To::Evidence } else { To::Host }
}

async fn keys(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<api::RowsAfter>,
) -> Result<Json<api::Keys>> {
    let rows = app
        .store
        .keys(&identity.tenant, query.after.as_deref().unwrap_or(""), page(query.limit))
        .await?;
    let next = next(&rows, query.limit, |row| row.name.clone());
    Ok(Json(api::Keys { keys: rows.iter().map(show).collect::<Result<_>>()?, next }))
}

async fn key(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
) -> Result<Json<api::WholeKey>> {
    let (key, versions) = app.store.key(&identity.tenant, &name).await?;
    let versions = versions.iter().map(show_version).collect();
    Ok(Json(api::WholeKey { key: show(&key)?, versions }))
}

async fn receipts(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<api::RowsOfKey>,
) -> Result<Json<api::Receipts>> {
    let rows = app
        .store
        .receipts(
            &identity.tenant,
            query.key.as_deref(),
            query.after.unwrap_or(0),
            page(query.limit),
        )
        .await?;
    let Heads { head, kept, signed } = app.store.heads(&identity.tenant).await?;
    let next = next(&rows, query.limit, |row| row.seq.unsigned_abs());
    let receipts = rows
        .into_iter()
        .map(|row| api::Receipt {
            seq: row.seq.unsigned_abs(),
            time: row.time,
            key: row.name,
            receipt: text(&row.content),
        })
        .collect();
    Ok(Json(api::Receipts {
        tenant: identity.tenant,
        receipts,
        head: api::Head { seq: head.seq, digest: hex::encode(head.digest) },
        kept: api::Forgotten {
            seq: kept.seq,
            digest: hex::encode(kept.digest),
            statement: (!signed.is_empty()).then(|| text(&signed)),
        },
        next,
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;
    use crate::secrets::random;

    /// Inverts all bits, so that the search pattern does not match itself.
    fn turned(bytes: &[u8]) -> Vec<u8> {
        bytes.iter().map(|byte| !byte).collect()
    }

    /// Searches this process's memory without allocating: a fresh allocation could reuse the freed
    /// bytes that it searches for.
    struct Search {
        maps: Vec<u8>,
        window: Zeroizing<Vec<u8>>,
    }

    impl Search {
        fn new() -> Self {
            Self { maps: vec![0; 1 << 20], window: Zeroizing::new(vec![0; 1 << 20]) }
        }

        /// Whether memory holds any of these byte strings, each given inverted.
        fn holds(&mut self, turned: &[Vec<u8>]) -> bool {
            let mut maps = std::fs::File::open("/proc/self/maps").unwrap();
            let mut length = 0;
            loop {
                let read = maps.read(&mut self.maps[length..]).unwrap();
                length += read;
                if read == 0 {
                    break;
                }
            }
            let own = self.window.as_ptr() as u64;
            let own = own..own + self.window.len() as u64;
            let mut memory = std::fs::File::open("/proc/self/mem").unwrap();
            let mut found = false;
            let lines = std::str::from_utf8(&self.maps[..length]).unwrap().lines();
            for line in lines.filter(|line| line.contains(" rw-p ")) {
                let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
                let [from, to] = [from, to].map(|at| u64::from_str_radix(at, 16).unwrap());
                // Skip the search window itself.
                for (mut from, to) in [(from, to.min(own.start)), (from.max(own.end), to)] {
                    while from < to {
                        let length = self.window.len().min((to - from) as usize);
                        let window = &mut self.window[..length];
                        if memory.seek(std::io::SeekFrom::Start(from)).is_err()
                            || memory.read_exact(window).is_err()
                        {
                            break;
                        }
                        found |= is_in(window, turned);
                        // Windows overlap, so that no match is lost at a boundary.
                        from +=
                            if from + length as u64 == to { length } else { length - 4096 } as u64;
                    }
                }
            }
            found
        }
    }

    fn is_in(bytes: &[u8], turned: &[Vec<u8>]) -> bool {
        let is_at = |at: usize, turned: &[u8]| {
            bytes
                .get(at..at + turned.len())
                .is_some_and(|found| found.iter().zip(turned).all(|(a, b)| *a == !*b))
        };
        bytes.chunks(64).zip((0..).step_by(64)).any(|(block, first)| {
            // The library's search for one byte is fast even in a debug build.
            turned
                .iter()
                .filter(|turned| block.contains(&!turned[0]))
                .any(|turned| (first..first + 64).any(|at| is_at(at, turned)))
        })
    }

    #[test]
    fn a_secret_is_read_into_nothing_but_its_own_place() {
        const BYTES: usize = 3000;
        let mut search = Search::new();
        let mut body = Zeroizing::new(Vec::with_capacity(8192));
        body.extend_from_slice(b"{\"layer\": \"shield\", \"policy\": \"default\", \"secret\": \"");
        let (start, length) = (body.len(), BYTES / 3 * 4);
        body.resize(start + length, 0);
        {
            let mut plain = Zeroizing::new([0; BYTES]);
            SystemEntropy.fill(&mut plain[..]);
            URL_SAFE_NO_PAD.encode_slice(&plain[..], &mut body[start..]).unwrap();
        }
        body.extend_from_slice(b"\"}");
        let written = [turned(&body[start + 1000..start + 1400])];
        let opened;
        {
            let new: NewKey = read_json(&body).unwrap();
            let secret = secret("a/b/c", Layer::Shield, &new.version()).unwrap();
            assert_eq!(secret.len(), BYTES);
            opened = [turned(&secret[1000..1400])];
            assert!(search.holds(&written) && search.holds(&opened), "body and secret are there");
        }
        assert!(!search.holds(&opened), "the secret is still in memory");
        drop(body);
        assert!(!search.holds(&written), "its text is still in memory");
    }

    #[test]
    fn a_new_key_has_the_members_of_a_version() {
        let read = |text: &str| {
            read_json::<NewKey>(text.as_bytes()).map(|_| ()).map_err(|problem| problem.detail)
        };
        let id = hex::encode(random::<4>());
        assert_eq!(
            read(&format!("{{\"layer\": \"shield\", \"policy\": \"{id}\", \"generate\": 32}}")),
            Ok(())
        );
        assert!(
            read("{\"layer\": \"shield\", \"policy\": \"a\", \"strange\": 1}")
                .unwrap_err()
                .contains("unknown field `strange`")
        );
        assert!(
            read("{\"layer\": \"shield\", \"policy\": \"a\", \"secret\": \"\\u0041AAA\"}")
                .unwrap_err()
                .contains("without escapes")
        );
    }
}
