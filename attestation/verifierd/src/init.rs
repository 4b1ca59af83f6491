//! `shef-verifierd init`: a working local set-up with a CA of its own. And certificates of that CA later on.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rcgen::string::Ia5String;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use shef_proto::hpke_suite::generate_key_pair;

use crate::auth::Identity;
use crate::problem::{Kind, Result};
use crate::secrets::{SystemEntropy, random};
use crate::time::{DAY, ymd};

const CA_NAME: &str = "shef-verifierd CA";
const CA_YEARS: i64 = 10;
const LEAF_DAYS: i64 = 365;

fn write(path: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    let mut open = std::fs::OpenOptions::new();
    let file = open.write(true).create_new(true).mode(mode).open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Kind::Exists.because(format!("{} exists", path.display())),
        _ => Kind::Material.because(format!("{}: {error}", path.display())),
    })
}

fn cannot(error: impl std::fmt::Display) -> crate::problem::Problem {
    Kind::Material.because(format!("certificate: {error}"))
}

fn valid(params: &mut CertificateParams, from: i64, to: i64) {
    let date = |seconds| {
        let (year, month, day) = ymd(seconds);
        rcgen::date_time_ymd(year, month, day)
    };
    (params.not_before, params.not_after) = (date(from), date(to));
}

fn ca_params(now: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut params, now, now + CA_YEARS * 365 * DAY);
    params
}

fn leaf_params(name: &str, purpose: ExtendedKeyUsagePurpose, names: Vec<SanType>, now: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = names;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    valid(&mut params, now, now + LEAF_DAYS * DAY);
    params
}

/// A key and the certificate that the CA in `folder` gives it, as PEM.
fn issue(folder: &Path, params: &CertificateParams, now: i64) -> Result<(String, String)> {
    let path = folder.join("ca.key");
    let pem = std::fs::read_to_string(&path).map_err(|error| Kind::Material.because(format!("{}: {error}", path.display())))?;
    let ca = Issuer::new(ca_params(now), KeyPair::from_pem(&pem).map_err(cannot)?);
    let key = KeyPair::generate().map_err(cannot)?;
    let certificate = params.signed_by(&key, &ca).map_err(cannot)?;
    Ok((key.serialize_pem(), certificate.pem()))
}

/// Writes `NAME.key` and `NAME.pem` for a client of this identity.
///
/// # Errors
/// The folder has no CA, or the files exist.
pub fn client(folder: &Path, name: &str, identity: &Identity, now: i64) -> Result<()> {
    let uri = Ia5String::try_from(identity.uri()).map_err(cannot)?;
    let params = leaf_params(&identity.name, ExtendedKeyUsagePurpose::ClientAuth, vec![SanType::URI(uri)], now);
    let (key, certificate) = issue(folder, &params, now)?;
    write(&folder.join(format!("{name}.key")), 0o600, key.as_bytes())?;
    write(&folder.join(format!("{name}.pem")), 0o644, certificate.as_bytes())
}

/// Writes `server.key` and `server.pem` for these host names and addresses.
///
/// # Errors
/// The folder has no CA, or the files exist.
pub fn server(folder: &Path, hosts: &[String], now: i64) -> Result<()> {
    let mut names = Vec::new();
    for host in hosts {
        names.push(match host.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(Ia5String::try_from(host.as_str()).map_err(cannot)?),
        });
    }
    let params = leaf_params(hosts.first().map_or("localhost", String::as_str), ExtendedKeyUsagePurpose::ServerAuth, names, now);
    let (key, certificate) = issue(folder, &params, now)?;
    write(&folder.join("server.key"), 0o600, key.as_bytes())?;
    write(&folder.join("server.pem"), 0o644, certificate.as_bytes())
}

/// What [`init`] makes.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Address to listen on.
    pub listen: String,
    /// Host names and addresses of the server certificate.
    pub hosts: Vec<String>,
    /// Audience that evidence must name.
    pub audience: String,
    /// First tenant.
    pub tenant: String,
}

/// Makes a set-up in an empty or missing folder: CA, server certificate, an operator's client certificate, signing key, KEK, configuration.
///
/// # Errors
/// The folder holds something already, or cannot be written.
pub fn init(folder: &Path, setup: &Setup, now: i64) -> Result<()> {
    let cannot_write = |error: std::io::Error| Kind::Material.because(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(cannot_write)?;
    if std::fs::read_dir(folder).map_err(cannot_write)?.next().is_some() {
        return Err(Kind::Exists.because(format!("{} is not empty", folder.display())));
    }
    let ca = KeyPair::generate().map_err(cannot)?;
    let certificate = ca_params(now).self_signed(&ca).map_err(cannot)?;
    write(&folder.join("ca.key"), 0o600, ca.serialize_pem().as_bytes())?;
    write(&folder.join("ca.pem"), 0o644, certificate.pem().as_bytes())?;
    server(folder, &setup.hosts, now)?;
    let operator = Identity { tenant: setup.tenant.clone(), name: "operator".into(), role: crate::auth::Role::Operator };
    client(folder, "operator", &operator, now)?;
    let (signing, _) = generate_key_pair(&mut SystemEntropy);
    write(&folder.join("signing.key"), 0o600, format!("{}\n", hex::encode(&signing.to_bytes()[..])).as_bytes())?;
    write(&folder.join("kek"), 0o600, format!("{}\n", hex::encode(random::<32>())).as_bytes())?;
    write(&folder.join("verifierd.toml"), 0o644, config_text(setup).as_bytes())
}

fn config_text(setup: &Setup) -> String {
    format!(
        "# Configuration of shef-verifierd. Relative paths start at this folder. SIGHUP reads it again.\n\
         listen = {:?}\n\
         # What evidence must name, and the issuer of results.\n\
         audience = {:?}\n\n\
         [tls]\n\
         certificate = \"server.pem\"\n\
         key = \"server.key\"\n\
         client_ca = \"ca.pem\"\n\
         # required: no connection without a client certificate; optional: or a bearer token; off.\n\
         client_auth = \"optional\"\n\n\
         [storage]\n\
         # sqlite:FILE, or postgres://USER@HOST/DATABASE for several replicas.\n\
         url = \"sqlite:verifierd.db\"\n\
         # Keys are sealed under it. Keep a copy where the database's backups are not.\n\
         kek = \"kek\"\n\n\
         [signing]\n\
         key = \"signing.key\"\n\n\
         [[tenant]]\n\
         name = {:?}\n\
         # `shef-verifierd token` makes bearer tokens and prints an entry [[tenant.token]] for here.\n",
        setup.listen, setup.audience, setup.tenant
    )
}
