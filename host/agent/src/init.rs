//! `shef-agent init` and `add-owner`: a CA of the agent's own, certificates, configuration, systemd unit.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
    date_time_ymd,
};
use shef_device::wire::is_name;
use shef_device::{Iommu, Uri};

use crate::AgentError;

/// Years that the CA is good for.
const CA_YEARS: i32 = 10;
/// Years that a certificate is good for.
const YEARS: i32 = 2;
/// Common name of the CA.
const CA_NAME: &str = "shef-agent CA";
/// The unit as it is in the repository, for an agent in /etc/shef-agent.
const UNIT: &str = include_str!("../shef-agent.service");

/// What is set up.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of everything; made where it does not exist.
    pub dir: PathBuf,
    /// Where the agent listens.
    pub listen: String,
    /// Names and addresses under which owners reach it.
    pub names: Vec<String>,
    /// Owners that get a certificate.
    pub owners: Vec<String>,
    /// Devices by name.
    pub devices: Vec<(String, Uri)>,
}

/// Sets an agent up. Nothing that exists is overwritten.
///
/// # Errors
/// SHEF-AGT-016 for a bad name, SHEF-AGT-017.
pub fn init(plan: &Plan) -> Result<(), AgentError> {
    for owner in plan.owners.iter().chain(plan.devices.iter().map(|(name, _)| name)) {
        check(owner)?;
    }
    let listen: std::net::SocketAddr = plan
        .listen
        .parse()
        .map_err(|e| AgentError::Config { message: format!("--listen {:?}: {e}; expected ADDRESS:PORT, as 0.0.0.0:7433", plan.listen) })?;
    folder(&plan.dir)?;
    let ca_key = KeyPair::generate().map_err(|e| wrong(&e))?;
    let ca = ca_params()?.self_signed(&ca_key).map_err(|e| wrong(&e))?;
    // The key first: where it exists, there is an agent already.
    private(&plan.dir.join("ca.key"), ca_key.serialize_pem().as_bytes())?;
    public(&plan.dir.join("ca.pem"), ca.pem().as_bytes())?;
    let issuer = Issuer::new(ca_params()?, ca_key);

    let mut params = CertificateParams::new(plan.names.clone()).map_err(|e| wrong(&e))?;
    params.distinguished_name.push(DnType::CommonName, "shef-agent");
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    let (cert, key) = issue(params, &issuer)?;
    private(&plan.dir.join("agent.key"), key.as_bytes())?;
    public(&plan.dir.join("agent.pem"), cert.as_bytes())?;
    for owner in &plan.owners {
        certify(&plan.dir, owner, &issuer)?;
    }
    public(&plan.dir.join("agent.toml"), config(listen, &plan.devices).as_bytes())?;
    let dir = std::path::absolute(&plan.dir).map_err(|e| AgentError::file("find", &plan.dir, &e))?;
    public(&plan.dir.join("shef-agent.service"), UNIT.replace("/etc/shef-agent", &dir.display().to_string()).as_bytes())
}

/// Issues a certificate for one more owner.
///
/// # Errors
/// SHEF-AGT-016 for a bad name, SHEF-AGT-017.
pub fn add_owner(dir: &Path, owner: &str) -> Result<(), AgentError> {
    check(owner)?;
    let path = dir.join("ca.key");
    let pem = fs::read_to_string(&path).map_err(|e| AgentError::file("read", &path, &e))?;
    let key = KeyPair::from_pem(&pem).map_err(|e| AgentError::file("read", &path, &e))?;
    certify(dir, owner, &Issuer::new(ca_params()?, key))
}

/// Certificate, key and client.toml of an owner: what it takes to its own machine.
fn certify(dir: &Path, owner: &str, issuer: &Issuer<'_, KeyPair>) -> Result<(), AgentError> {
    let mut params = CertificateParams::new(Vec::<String>::new()).map_err(|e| wrong(&e))?;
    params.distinguished_name.push(DnType::CommonName, owner);
    params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    let (cert, key) = issue(params, issuer)?;
    let mine = dir.join("owners").join(owner);
    folder(&mine)?;
    private(&mine.join("key.pem"), key.as_bytes())?;
    public(&mine.join("cert.pem"), cert.as_bytes())?;
    let ca = dir.join("ca.pem");
    public(&mine.join("ca.pem"), &fs::read(&ca).map_err(|e| AgentError::file("read", &ca, &e))?)?;
    public(
        &mine.join("client.toml"),
        b"# SHEF_TLS_CONFIG names this file; paths are beside it.\nca = \"ca.pem\"\ncert = \"cert.pem\"\nkey = \"key.pem\"\n",
    )
}

fn config(listen: std::net::SocketAddr, devices: &[(String, Uri)]) -> String {
    let mut text = format!(
        "# Configuration of shef-agent; paths are relative to this file.\n\
         listen = \"{listen}\"\nca = \"ca.pem\"\ncert = \"agent.pem\"\nkey = \"agent.key\"\n\
         # Seconds after which a card whose owner vanished is wiped and free.\ngrace_seconds = 30\nmax_connections = 64\n"
    );
    for (name, uri) in devices {
        // The name is of characters that need no quotes but '.'; the URI is one that parsed.
        text.push_str(&format!(
            "\n[devices.\"{name}\"]\nuri = {}\n# owners = [\"NAME\"]  # without it, every owner with a certificate\n",
            toml::Value::String(uri.to_string())
        ));
        if uri.iommu() == Some(Iommu::None) {
            text.push_str("# Nothing confines this card's DMA: it reads and writes all memory of this machine. Say so to use it:\n# card_reaches_all_memory = true\n");
        }
    }
    text
}

fn check(name: &str) -> Result<(), AgentError> {
    if is_name(name) {
        return Ok(());
    }
    Err(AgentError::Config { message: format!("{name:?} is no name: expected 1 to 64 letters, digits, '-', '_', '.'") })
}

fn ca_params() -> Result<CertificateParams, AgentError> {
    let mut params = CertificateParams::new(Vec::<String>::new()).map_err(|e| wrong(&e))?;
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    validity(&mut params, CA_YEARS);
    Ok(params)
}

fn issue(mut params: CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<(String, String), AgentError> {
    params.key_usages.push(KeyUsagePurpose::DigitalSignature);
    params.use_authority_key_identifier_extension = true;
    validity(&mut params, YEARS);
    let mut serial = [0; 16];
    getrandom::fill(&mut serial).map_err(|e| wrong(&e))?;
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from(serial.to_vec()));
    let key = KeyPair::generate().map_err(|e| wrong(&e))?;
    let cert = params.signed_by(&key, issuer).map_err(|e| wrong(&e))?;
    Ok((cert.pem(), key.serialize_pem()))
}

/// From yesterday on, for some years.
fn validity(params: &mut CertificateParams, years: i32) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
    let (year, month, day) = date((now - 86_400).div_euclid(86_400));
    params.not_before = date_time_ymd(year, month, day);
    // The 28th is in every month of every year.
    params.not_after = date_time_ymd(year + years, month, day.min(28));
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar.
fn date(day: i64) -> (i32, u8, u8) {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut left) = (1970, day);
    while left >= 365 + i64::from(leap(year)) {
        left -= 365 + i64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= months[month] {
        left -= months[month];
        month += 1;
    }
    (year as i32, month as u8 + 1, left as u8 + 1)
}

fn wrong(error: &dyn std::fmt::Display) -> AgentError {
    AgentError::Files { message: format!("cannot make a certificate: {error}") }
}

fn folder(path: &Path) -> Result<(), AgentError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| AgentError::file("make", path, &e))
}

fn private(path: &Path, bytes: &[u8]) -> Result<(), AgentError> {
    write(path, bytes, 0o600)
}

fn public(path: &Path, bytes: &[u8]) -> Result<(), AgentError> {
    write(path, bytes, 0o644)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), AgentError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    options.open(path).and_then(|mut file| file.write_all(bytes)).map_err(|e| AgentError::file("write", path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn days_become_dates() {
        for (day, expected) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_454, (2026, 1, 1)),
            (20_453, (2025, 12, 31)),
        ] {
            assert_eq!(date(day), expected, "{day}");
        }
    }

    #[test]
    fn an_agent_is_set_up_once_and_keys_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan {
            dir: dir.path().join("agent"),
            listen: "127.0.0.1:7433".into(),
            names: vec!["localhost".into()],
            owners: vec!["alice".into()],
            devices: vec![("card.0".into(), "vfio-user:/run/a \"b\".sock".parse().unwrap())],
        };
        init(&plan).unwrap();
        let config = crate::Config::load(&plan.dir.join("agent.toml")).unwrap();
        assert_eq!(config.devices["card.0"].uri, plan.devices[0].1);
        for file in ["ca.key", "agent.key", "owners/alice/key.pem"] {
            assert_eq!(fs::metadata(plan.dir.join(file)).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
        }
        assert!(fs::read_to_string(plan.dir.join("shef-agent.service")).unwrap().contains(&plan.dir.display().to_string()));
        assert_eq!(init(&plan).unwrap_err().code(), "SHEF-AGT-017");
        add_owner(&plan.dir, "bob").unwrap();
        assert_eq!(add_owner(&plan.dir, "bob").unwrap_err().code(), "SHEF-AGT-017");
        assert_eq!(add_owner(&plan.dir, "../bob").unwrap_err().code(), "SHEF-AGT-016");
        let bad = Plan { dir: dir.path().join("other"), owners: vec!["a b".into()], ..plan };
        assert_eq!(init(&bad).unwrap_err().code(), "SHEF-AGT-016");
        assert!(!bad.dir.exists());
    }
}
