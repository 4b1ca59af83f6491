//! `shef attest`: fetches evidence from a device, for a challenge from a verifier service or a
//! local one.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use shef::{Challenge, Host, OpenOptions, SdkError, Service, SystemEntropy, Uri};
use shef_device::SimParameters;
use shef_proto::evidence::{Layer, NONCE_MAX, NONCE_MIN};
use shef_verify::cmw::{Cmw, Record};

use crate::image::MAX_CONTAINER;
use crate::verify::read;
use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_console::file::{self, Outputs};
use shef_console::hex;
use shef_flags::ServiceArgs;
use shef_flags::TlsArgs;

/// Layer of a device that provides the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LayerArg {
    /// The Security Kernel: receives image keys
    Kernel,
    /// The loaded Shield: receives data keys
    Shield,
}

impl LayerArg {
    /// The layer.
    pub fn layer(self) -> Layer {
        match self {
            Self::Kernel => Layer::Kernel,
            Self::Shield => Layer::Shield,
        }
    }
}

/// An image to load before the Shield is attested: the previous user's image is gone.
#[derive(clap::Args)]
pub struct ImageArgs {
    /// Load this image first (layer shield); its key comes from the service
    #[arg(long = "load", value_name = "FILE", requires = "image_key")]
    image: Option<PathBuf>,
    /// Name of the image's key at the service
    #[arg(long, value_name = "NAME", requires = "image")]
    image_key: Option<String>,
}

impl ImageArgs {
    /// Reads the image, which is an input of the command from then on.
    ///
    /// # Errors
    /// I/O errors of the file.
    pub fn read(&self) -> Result<Vec<u8>, CliError> {
        self.image.as_ref().map_or(Ok(Vec::new()), |image| read(image, MAX_CONTAINER))
    }

    /// Requests the release of the image key to the kernel behind `host`, and loads the image as
    /// read.
    ///
    /// # Errors
    /// Service and kernel errors.
    pub fn load(
        &self,
        container: Vec<u8>,
        service: Option<&Service>,
        host: &mut Host,
    ) -> Result<(), CliError> {
        let (Some(_), Some(key)) = (&self.image, &self.image_key) else { return Ok(()) };
        let Some(service) = service else {
            return Err(CliError::new(
                "SHEF-CLI-001",
                "--load has the image's key from a service: expected --verifier https://HOST:PORT",
            ));
        };
        let (release, _) = service.release_image_key(host, key, None)?;
        host.load_image(container, release.key_box)?;
        Ok(())
    }
}

/// Formats of an evidence file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The signed token (COSE_Sign1)
    Cose,
    /// In a conceptual message wrapper (CBOR)
    Cmw,
    /// In a conceptual message wrapper (JSON)
    CmwJson,
}

impl Form {
    /// The content of an evidence file.
    fn encode(self, evidence: &[u8]) -> Vec<u8> {
        let cmw = || Cmw::Record(Record::evidence(evidence));
        match self {
            Self::Cose => evidence.to_vec(),
            Self::Cmw => cmw().to_cbor(),
            Self::CmwJson => cmw().to_json().into_bytes(),
        }
    }
}

/// Flags of `shef attest`.
#[derive(clap::Args)]
pub struct AttestArgs {
    /// Device URI
    device: String,
    /// Layer to attest
    #[arg(long, value_enum, default_value_t = LayerArg::Kernel)]
    layer: LayerArg,
    /// Output file for the evidence; the challenge goes beside it, as FILE.nonce and FILE.audience
    /// for `shef verify`
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Format of the evidence
    #[arg(long, value_enum, default_value_t = Form::Cose)]
    form: Form,
    /// Nonce in hexadecimal, 32 to 64 bytes, if no verifier service provides one; random by default
    #[arg(long, value_name = "HEX", conflicts_with = "verifier")]
    nonce: Option<String>,
    /// Audience of the evidence, if no verifier service provides one; defaults to "shef attest"
    #[arg(long, value_name = "NAME", conflicts_with = "verifier")]
    audience: Option<String>,
    /// Policy of the service, `name` or `name@version`; defaults to its `default`
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Output file for the service's signed result (EAR as JWT); without one, as for denied
    /// evidence, a file of this name is removed
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
    #[command(flatten)]
    image: ImageArgs,
    /// The verifier service that provides challenge and verdict
    #[command(flatten)]
    service: ServiceArgs,
    /// Certificates for an agent
    #[command(flatten)]
    tls: TlsArgs,
}

impl AttestArgs {
    /// The verifier service, if one provides the challenge.
    fn service(&self, output: &Output) -> Result<Option<Service>, CliError> {
        // A local challenge is not the service's, so a service from the environment does not apply.
        let local = self.nonce.is_some() || self.audience.is_some();
        if let (true, Some(flag)) = (local, self.service.given()) {
            let what = format!(
                "{flag} is for a challenge of a verifier service, and --nonce and --audience make a local one"
            );
            return Err(CliError::new("SHEF-CLI-001", what));
        }
        let service = if local { None } else { self.service.find()? };
        if local && std::env::var_os("SHEF_VERIFIER").is_some_and(|url| !url.is_empty()) {
            output.note("the challenge is local: the service in SHEF_VERIFIER appraises nothing");
        }
        if service.is_none() && (self.policy.is_some() || self.result.is_some()) {
            let what = "--policy and --result are of a verifier service: expected --verifier https://HOST:PORT, or SHEF_VERIFIER in the environment";
            return Err(CliError::new("SHEF-CLI-001", what));
        }
        Ok(service)
    }

    /// The challenge of these flags, without a service.
    fn local_challenge(&self) -> Result<Challenge, CliError> {
        let audience = self.audience.as_deref().unwrap_or("shef attest");
        let Some(nonce) = &self.nonce else {
            return Ok(Challenge::draw(audience, &mut SystemEntropy::new()?));
        };
        let nonce = hex::decode(nonce, "--nonce")?;
        if !(NONCE_MIN..=NONCE_MAX).contains(&nonce.len()) {
            let message = format!("--nonce has {} bytes, expected 32 to 64", nonce.len());
            return Err(CliError::new("SHEF-CLI-018", message));
        }
        Ok(Challenge::of(nonce, audience.to_owned()))
    }
}

#[derive(Serialize)]
struct Document {
    device: String,
    layer: &'static str,
    evidence: file::PathText,
    bytes: usize,
    nonce: String,
    audience: String,
    /// Absent if no service appraised the evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// The first check that failed, if the service denied the evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// The outputs of a command that uses this device, after it has read its files. Those of a simulated
/// card are its waves. No output replaces the sources of its project; the card compares the waves with
/// them itself.
///
/// # Errors
/// An invalid URI, SHEF-CLI-015 and -026.
pub fn outputs_with(device: &str) -> Result<Outputs, CliError> {
    let uri: Uri = device.parse()?;
    let mut outputs = Outputs::new([])?;
    uri.wave().map_or(Ok(()), |wave| outputs.elsewhere(wave))?;
    if let Uri::SimRtl(SimParameters { project: Some(project), .. }) = &uri {
        file::are_inputs(project);
    }
    Ok(outputs)
}

/// Opens a device, and warns on stderr if the owner's certificate expires soon.
///
/// # Errors
/// Device errors.
pub fn open(output: &Output, device: &str, tls: &TlsArgs) -> Result<(Uri, Host), CliError> {
    let uri: Uri = device.parse()?;
    warn_of_end(output, &uri, tls)?;
    let host = shef::open_with(&uri, OpenOptions { tls: tls.files()?, progress: None })?;
    Ok((uri, host))
}

/// Warns on stderr if the owner's certificate for an agent expires soon. This does not need the
/// agent: the expiry is in the file.
///
/// # Errors
/// SHEF-CLI-001 if a file is missing.
pub fn warn_of_end(output: &Output, uri: &Uri, tls: &TlsArgs) -> Result<(), CliError> {
    if !matches!(uri, Uri::Tls { .. }) {
        return Ok(());
    }
    let files = tls.files()?.map_or_else(|| shef::TlsFiles::find().ok(), Some);
    if let Some(notice) = files.and_then(|files| files.notice()) {
        output.warn(notice);
    }
    Ok(())
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Runs `shef attest`.
///
/// # Errors
/// Device and service errors; denied evidence ends with exit status 1.
pub fn run(output: &Output, args: &AttestArgs) -> Result<Exit, CliError> {
    let layer = args.layer.layer();
    let service = args.service(output)?;
    let container = args.image.read()?;
    args.tls.files()?;
    let mut outputs = outputs_with(&args.device)?;
    let [out, nonce_out, audience_out] = [
        outputs.file(&args.out)?,
        outputs.file(&beside(&args.out, ".nonce"))?,
        outputs.file(&beside(&args.out, ".audience"))?,
    ];
    let result_out = args.result.as_ref().map(|path| outputs.file(path)).transpose()?;
    let (uri, mut host) = open(output, &args.device, &args.tls)?;
    args.image.load(container, service.as_ref(), &mut host)?;
    let session = service.as_ref().map(|service| service.session(layer, None)).transpose()?;
    let challenge = match &session {
        Some(session) => session.challenge().clone(),
        None => args.local_challenge()?,
    };
    let evidence = match layer {
        Layer::Kernel => host.kernel_evidence(&challenge)?,
        Layer::Shield => host.shield_evidence(&challenge)?,
    };
    let bytes = args.form.encode(&evidence);
    let nonce = hex::encode(challenge.nonce());
    outputs.fill(out, &bytes)?;
    outputs.fill(nonce_out, format!("{nonce}\n"))?;
    outputs.fill(audience_out, format!("{}\n", challenge.audience()))?;
    let appraised = match (&service, &session) {
        (Some(service), Some(session)) => {
            Some((service, service.appraise(session, &evidence, args.policy.as_deref())))
        }
        _ => None,
    };
    if let (Some(slot), Some((_, Ok(answer)))) = (result_out, &appraised) {
        outputs.fill(slot, format!("{}\n", answer.result))?;
    }
    // Denied evidence is kept too.
    outputs.place()?;
    output.line(format_args!(
        "{} evidence of {uri}: {} bytes in {}",
        layer.name(),
        bytes.len(),
        args.out.display()
    ))?;

    let (mut verdict, mut policy, mut denied) = (None, None, None);
    match appraised {
        Some((service, Ok(answer))) => {
            let (by, said) = (service.url(), answer.verdict.name());
            output.line(format_args!("{} by {by} under {}", output.good(said), answer.policy))?;
            (verdict, policy) = (Some(said.to_owned()), Some(answer.policy));
        }
        Some((_, Err(error @ SdkError::Denied { .. }))) => {
            verdict = Some("denied".to_owned());
            denied = Some(CliError::from(error));
        }
        Some((_, Err(error))) => return Err(error.into()),
        None => {}
    }
    output.document(&Document {
        device: uri.to_string(),
        layer: layer.name(),
        evidence: (&args.out).into(),
        bytes: bytes.len(),
        nonce,
        audience: challenge.audience().to_owned(),
        verdict,
        policy,
        code: denied.as_ref().map(|denied| denied.code.to_string()),
    })?;
    denied.map_or(Ok(Exit::Done), Err)
}
