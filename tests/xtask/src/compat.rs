//! `cargo xtask compat`: the crates `ear` and `kbs-types`, Veraison's documented calls, and tokens of
//! the OpenID provider `oidc-provider` against a running verifier service.

use crate::process::{self, Failure, Result, ensure, output};
use crate::{debian, files, root, tools};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Record the exchanges in tests/compat/exchanges again
    #[arg(long)]
    write: bool,
}

/// Debian packages that it needs, and their purpose.
pub const PACKAGES: (&str, &str) =
    ("libssl-dev pkg-config", "other people's clients, whose crate `ear` wants OpenSSL");

/// The packages of npm's registry that make the provider, `oidc-provider` and its dependencies, all
/// under the licenses MIT or ISC; the second file has their digests.
const NPM: [(&str, &str); 2] = [
    ("package.json", include_str!("../../compat/openid/package.json")),
    ("package-lock.json", include_str!("../../compat/openid/package-lock.json")),
];

/// The folder in which npm has installed the provider's packages, once.
fn provider(node: &Path, npm: &Path) -> Result<PathBuf> {
    let digest = files::digest(NPM[1].1);
    let folder = tools::folder().join(format!("oidc-provider-{}", &digest[..16]));
    tools::once(
        "oidc-provider",
        || folder.is_dir(),
        |part| {
            process::say("installing oidc-provider (3 MB)");
            for (name, text) in NPM {
                fs::write(part.join(name), text)?;
            }
            let mut install = Command::new(node);
            install
                .arg(npm)
                .args("ci --ignore-scripts --no-audit --no-fund --no-update-notifier".split(' '));
            let out = output(install.current_dir(part))?;
            ensure!(
                out.status.success(),
                Failure::missing(format!(
                    "SHEF-RTL-025: npm cannot install oidc-provider: {}",
                    out.all()
                ))
            );
            Ok(fs::rename(part, &folder)?)
        },
    )?;
    Ok(folder)
}

/// Runs the cases.
pub fn run(args: &Args) -> Result<()> {
    let (packages, what) = PACKAGES;
    if let Err(command) = debian::install(packages, what, debian::has_openssl) {
        return Err(Failure::missing(format!(
            "OpenSSL's headers are missing ({what}): run `{command}`"
        )));
    }
    process::hand_over(
        program()?.args(args.json.then_some("--json")).args(args.write.then_some("--write")),
    )
}

/// The program with the clients, built in its own workspace. It starts the service.
pub fn program() -> Result<Command> {
    let service = process::built("shef-verifierd")?;
    let (node, npm) = tools::node()?;
    let modules = provider(&node, &npm)?;
    process::say("building other people's clients; the first time that is some minutes");
    let target = process::target_dir().join("compat");
    let mut build =
        process::cargo("build --quiet --locked --manifest-path tests/compat/Cargo.toml");
    process::run(build.env("CARGO_TARGET_DIR", &target), "building tests/compat")?;
    let mut program = Command::new(target.join("debug/shef-compat"));
    program.arg(service.get_program()).args([node, modules]).current_dir(root());
    Ok(program)
}
