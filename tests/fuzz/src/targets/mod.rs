//! The decoders, each with valid messages and the invariants of accepted input.

mod attestation;
mod card;
mod good;
mod service;

use attestation::*;
use card::*;
use service::*;

use crate::Target;
use good::{good, seeds};

macro_rules! targets {
    ($($name:ident = ($seeds:expr, $run:expr),)*) => {
        /// All targets.
        #[must_use]
        pub fn all() -> &'static [Target] {
            &[$(Target { name: stringify!($name), seeds: $seeds, run: $run },)*]
        }
    };
}

targets! {
    // Formats of attestation.
    cbor = (|| vec![good().shield.clone(), good().key_box.clone()], run_cbor),
    certificate = (|| good().chain.clone(), run_certificate),
    evidence = (|| vec![good().kernel.clone(), good().shield.clone()], run_evidence),
    claims = (seeds::claims, run_claims),
    appraisal = (|| vec![good().kernel.clone()], run_appraisal),
    key_box = (|| vec![good().key_box.clone()], run_key_box),
    release_info = (|| vec![good().info.clone()], run_release_info),
    image_secret = (|| vec![good().secret.clone()], run_image_secret),
    image = (|| vec![good().image.clone(), good().header.clone()], run_image),
    load_key = (|| vec![good().load_key.clone()], run_load_key),
    mailbox_request = (|| good().requests.clone(), run_request),
    mailbox_answer = (seeds::answers, run_answer),
    kernel = (|| good().requests.clone(), run_kernel),
    kernel_image = (|| vec![good().kernel_image.clone()], run_kernel_image),
    medium = (seeds::media, run_medium),
    identity = (seeds::identities, run_identity),
    close_record = (seeds::close_records, run_close_record),
    receipt = (seeds::receipts, run_receipt),
    shield_config = (seeds::configs, run_config),
    public_key = (seeds::public_keys, run_public_key),
    cmw = (|| good().wrappers.clone(), run_cmw),
    media_type = (seeds::media_types, run_media_type),
    result = (|| good().results.clone(), run_result),
    result_claims = (seeds::result_claims, run_result_claims),
    corim = (|| vec![good().corim.clone()], run_corim),
    corim_content = (|| vec![good().unsigned_corim.clone()], run_corim_content),
    corim_signers = (seeds::signers, run_signers),
    policy = (seeds::policies, run_policy),
    rego = (seeds::rego, run_rego),
    reference_values = (|| good().reference.clone(), run_reference),
    trust_anchors = (|| vec![good().anchors_toml.clone()], run_anchors),
    revocations = (seeds::revocations, run_revocations),
    bundle = (|| vec![good().bundle.clone()], run_bundle),
    bundle_content = (seeds::bundle_contents, run_bundle_content),
    // Other input of the verifier service.
    session = (seeds::sessions, run_session),
    jwk = (seeds::jwks, run_jwk),
    service_config = (seeds::service_configs, run_service_config),
    certificate_list = (seeds::certificate_lists, run_certificate_list),
    // Between the owner and the card.
    sealed_chunks = (seeds::sealed_chunks, run_sealed_chunks),
    tree_node = (seeds::tree_nodes, run_tree_node),
    channel_answer = (seeds::channel_answers, run_channel_answer),
    statement = (seeds::statements, run_statement),
    descriptor = (seeds::descriptors, run_descriptor),
    agent_requests = (seeds::agent_requests, run_agent_requests),
    agent_answers = (seeds::agent_answers, run_agent_answers),
    vfio_user_request = (seeds::vfio_user_requests, run_vfio_user_request),
    vfio_user_answer = (seeds::vfio_user_answers, run_vfio_user_answer),
    shield_toml = (seeds::shield_tomls, run_shield_toml),
    device_uri = (seeds::uris, run_uri),
}

const ACCEPTED: &str = "accepted";

fn outcome<T, E: std::fmt::Display>(result: Result<T, E>, holds: impl FnOnce(T)) -> String {
    match result {
        Ok(value) => {
            holds(value);
            ACCEPTED.into()
        }
        Err(error) => error.to_string(),
    }
}

fn utf8(bytes: &[u8], run: impl FnOnce(&str) -> String) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| "not UTF-8".into(), run)
}
