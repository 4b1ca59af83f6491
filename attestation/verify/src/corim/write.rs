//! Writing CoRIMs.

use corim::builder::{ComidBuilder, CorimBuilder};
use corim::cbor::value::Value as CborValue;
use corim::types::common::{ClassIdChoice, MeasuredElement, TagIdChoice};
use corim::types::corim::CorimId;
use corim::types::environment::{ClassMap, EnvironmentMap};
use corim::types::measurement::{
    Digest as CorimDigest, MeasurementMap, MeasurementValuesMap, SvnChoice,
};
use corim::types::signed::{CoseAlgorithm, CwtClaims, SignedCorimBuilder};
use corim::types::triples::ReferenceTriple;
use shef_proto::cose::{ESP256, SigningKey};

use super::{CLASS_VENDOR, CorimError, KERNEL_MODEL, SHA_256, SHELL_MODEL, form};
use crate::reference::ReferenceValues;

/// Metadata of a CoRIM to be written.
#[derive(Clone, Copy, Debug)]
pub struct Describe<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its version. A newer one of the same id and signer replaces it.
    pub version: u64,
    /// Name of the signer.
    pub issuer: &'a str,
    /// End of validity, seconds since 1970; `None` for no end.
    pub not_after: Option<i64>,
}

/// An unsigned CoRIM of these reference values.
///
/// # Errors
/// There are no values, or a text is not allowed in a CoRIM.
pub fn write(reference: &ReferenceValues, describe: &Describe<'_>) -> Result<Vec<u8>, CorimError> {
    let class = |class_id, model: &str, layer| EnvironmentMap {
        class: Some(ClassMap {
            class_id,
            vendor: Some(CLASS_VENDOR.into()),
            model: Some(model.into()),
            layer: Some(layer),
            index: None,
        }),
        instance: None,
        group: None,
    };
    let measurement = |key: &str, name: Option<&str>, digest: &[u8; 32], svn: Option<u64>| {
        let mut mval = MeasurementValuesMap::default();
        mval.svn = svn.map(SvnChoice::ExactValue);
        mval.digests = Some(vec![CorimDigest::new(SHA_256, digest.to_vec())]);
        mval.name = name.map(str::to_owned);
        MeasurementMap { mkey: Some(MeasuredElement::Text(key.into())), mval, authorized_by: None }
    };
    let mut comid =
        ComidBuilder::new(TagIdChoice::Text(describe.id.into())).set_tag_version(describe.version);
    for k in &reference.kernels {
        let values = vec![measurement("kernel", Some(&k.name), &k.digest, Some(k.svn))];
        comid =
            comid.add_reference_triple(ReferenceTriple::new(class(None, KERNEL_MODEL, 1), values));
    }
    for s in &reference.shells {
        let values = vec![measurement("shell", Some(&s.name), &s.digest, None)];
        comid =
            comid.add_reference_triple(ReferenceTriple::new(class(None, SHELL_MODEL, 0), values));
    }
    for i in &reference.images {
        let values = vec![
            measurement("image", Some(&i.name), &i.digest, Some(i.svn)),
            measurement("configuration", None, &i.config_digest, None),
            measurement("design", None, &i.design_digest, None),
        ];
        let vendor = ClassIdChoice::Bytes(i.vendor.to_vec());
        comid = comid.add_reference_triple(ReferenceTriple::new(
            class(Some(vendor), &i.accelerator, 2),
            values,
        ));
    }
    let comid = comid.build().map_err(form)?;
    let mut corim =
        CorimBuilder::new(CorimId::Text(describe.id.into())).add_comid_tag(comid).map_err(form)?;
    if let Some(not_after) = describe.not_after {
        corim = corim.set_validity(None, not_after).map_err(form)?;
    }
    corim.build_bytes().map_err(form)
}

/// Signs a CoRIM. `certificate` is the signer's, for verifiers that know only its CA.
///
/// # Errors
/// The bytes cannot be wrapped.
pub fn sign(
    unsigned: Vec<u8>,
    issuer: &str,
    key: &SigningKey,
    certificate: Option<&[u8]>,
) -> Result<Vec<u8>, CorimError> {
    let mut builder = SignedCorimBuilder::new(CoseAlgorithm::from_i64(ESP256), unsigned)
        .set_cwt_claims(CwtClaims::new(issuer));
    if let Some(der) = certificate {
        builder = builder.add_unprotected(CborValue::Integer(33), CborValue::Bytes(der.to_vec()));
    }
    let message = builder.to_be_signed(b"").map_err(form)?;
    builder.build_with_signature(key.sign(&message).to_vec()).map_err(form)
}

/// Writes and signs a CoRIM.
///
/// # Errors
/// As [`write()`] and [`sign`].
pub fn write_signed(
    reference: &ReferenceValues,
    describe: &Describe<'_>,
    key: &SigningKey,
    certificate: Option<&[u8]>,
) -> Result<Vec<u8>, CorimError> {
    sign(write(reference, describe)?, describe.issuer, key, certificate)
}
