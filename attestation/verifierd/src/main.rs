//! The command `shef-verifierd`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Parser, Subcommand};
use shef_console::{CliError, Common, Exit, Log, Output, applied, exit, output, program, shell};
use shef_verifierd::auth::Identity;
use shef_verifierd::config::Config;
use shef_verifierd::init::Listed;
use shef_verifierd::name::{is_name, name_rule};
use shef_verifierd::problem::{Because, Kind, Problem, Result};
use shef_verifierd::role::Role;
use shef_verifierd::{
    backup, check, erase, init, keyring, rekey, run, secrets, signing, store, time,
};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Libraries keep copies of keys in their buffers.
#[global_allocator]
static ALLOCATOR: shef_erase::Erasing = shef_erase::Erasing;

/// Writers of the log: audit lines go first.
struct Lines(Log);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.0.clone()
    }

    fn make_writer_for(&'a self, line: &tracing::Metadata<'_>) -> Log {
        if line.target() == "audit" { self.0.first() } else { self.0.clone() }
    }
}

#[derive(Parser)]
#[command(
    name = "shef-verifierd",
    version,
    about = "Verifier service: appraises evidence, releases keys, keeps receipts",
    after_help = exit::help(),
    max_term_width = 100
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a working set-up with a local CA in an empty folder.
    Init {
        /// The folder.
        #[arg(long)]
        dir: PathBuf,
        /// Address to listen on.
        #[arg(long, default_value = "127.0.0.1:8443")]
        listen: String,
        /// Host name or address at which clients reach the service, for its certificate; may be
        /// repeated. Clients reject the service under any other name.
        #[arg(long, default_values_t = [String::from("localhost"), String::from("127.0.0.1")])]
        host: Vec<String>,
        /// Audience that evidence must name; by default `https://HOST:PORT` of the first host.
        #[arg(long)]
        audience: Option<String>,
        /// First tenant.
        #[arg(long, default_value = "default")]
        tenant: String,
    },
    /// Serve.
    Run {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
    },
    /// Check a configuration, its files and its database, without serving or writing; also beside a
    /// running service.
    Check {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
    },
    /// Issue a client certificate by the CA in a folder.
    Client {
        /// The folder created by init.
        #[arg(long)]
        dir: PathBuf,
        /// Tenant.
        #[arg(long, default_value = "default")]
        tenant: String,
        /// Role: attest, release, audit or operator.
        #[arg(long)]
        role: String,
        /// Name in the audit log, and of the files.
        #[arg(long)]
        name: String,
    },
    /// Issue another server certificate by the CA in a folder, to replace one that expires.
    Server {
        /// The folder created by init.
        #[arg(long)]
        dir: PathBuf,
        /// Name of the files.
        #[arg(long)]
        name: String,
        /// Host name or address at which clients reach the service, for the certificate; may be
        /// repeated.
        #[arg(long, default_values_t = [String::from("localhost"), String::from("127.0.0.1")])]
        host: Vec<String>,
    },
    /// Renew the CA's list of revoked client certificates, crl.pem; optionally add certificates. Waits
    /// until the running service applies the list; status 3 if unconfirmed, or if the configuration
    /// beside it does not pass check.
    Revoke {
        /// The folder created by init.
        #[arg(long)]
        dir: PathBuf,
        /// Certificates to revoke.
        #[arg(value_name = "FILE")]
        certificates: Vec<PathBuf>,
        /// Days until the list expires. Run this again before then, or every client certificate is
        /// rejected.
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: u32,
        /// Begin the first list. Restore a lost list instead: a new one would readmit its
        /// certificates.
        #[arg(long)]
        new_list: bool,
    },
    /// Create a bearer token and its entry for the configuration.
    Token {
        /// Name in the audit log.
        #[arg(long)]
        name: String,
        /// Role: attest, release, audit or operator.
        #[arg(long)]
        role: String,
    },
    /// Write a consistent copy of the database (SQLite) while the service runs.
    Backup {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
        /// The copy; must not exist yet.
        #[arg(long)]
        out: PathBuf,
    },
    /// Restore a backup if the database is missing (SQLite), or take a database into use that
    /// PostgreSQL's tools have restored: audits it, and ends the sessions that were open.
    Restore {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
        /// The copy (SQLite).
        #[arg(long)]
        from: Option<PathBuf>,
    },
    /// Seal all keys in the database under another KEK, in one transaction.
    Rekey {
        /// The configuration; its storage.kek is the current KEK.
        #[arg(long)]
        config: PathBuf,
        /// File of the new KEK; created if missing.
        #[arg(long)]
        to: PathBuf,
    },
    /// The key that signs results and receipts.
    Signing {
        /// What to do with the key.
        #[command(subcommand)]
        command: Signing,
    },
    /// Print all changes and refusals, with their callers, as JSON lines, and verify the chain of
    /// these events.
    Events {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
        /// Only events of this tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Verify the chains of receipts and events of every tenant, also beside the running service.
    Audit {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
    },
    /// Make the keys that [pkcs11] of a configuration names and its token lacks, and print the public
    /// key that signs.
    TokenKeys {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
    },
    /// Delete everything of a tenant that the configuration no longer names, but its receipts and
    /// events.
    Erase {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
        /// The tenant.
        #[arg(long)]
        tenant: String,
    },
    #[command(flatten)]
    Common(Common),
}

#[derive(Subcommand)]
enum Signing {
    /// Make the next key beside the present one, for `rotate`, and publish its public key: copy the
    /// retired keys to every replica and send SIGHUP, so that all publish it before one signs with it.
    Prepare {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
    },
    /// Exchange the key for the prepared one, or a new one. The old public key stays published.
    /// SIGHUP puts the key into use.
    Rotate {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
    },
}

/// Prints a line.
macro_rules! say {
    ($output:expr, $($text:tt)*) => { $output.line(format_args!($($text)*))? };
}

fn role(name: &str) -> Result<Role> {
    Role::from_name(name).ok_or_else(|| {
        Kind::Config.because(format!("role {name:?} is none of attest, release, audit, operator"))
    })
}

fn named(name: &str) -> Result<String> {
    if is_name(name) {
        Ok(name.to_owned())
    } else {
        Err(Kind::Name.because(format!("{name:?}: {}", name_rule())))
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs() as i64)
}

fn block<T, E: From<Problem>>(future: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Kind::Internal.because(error.to_string()))?.block_on(future)
}

/// Protects this process's memory, which holds keys, from other processes of the same user and from
/// core dumps.
fn close_memory() -> Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).map_err(|error| {
        Kind::Internal.because(format!("the system does not keep the memory of this process from others (PR_SET_DUMPABLE): {error}"))
    })?;
    Ok(())
}

fn command(output: &Output, command: Command) -> Result<Exit, CliError> {
    close_memory()?;
    match command {
        Command::Init { dir, listen, host, audience, tenant } => {
            set_up(output, &dir, listen, &host, audience, &tenant)?;
        }
        Command::Run { config } => block(run::run(config, |address| {
            // Keep serving all the same.
            if let Err(error) = output.line(format_args!("{{\"listen\": \"{address}\"}}")) {
                tracing::warn!(code = %error.code, %error, "cannot announce that the service listens");
            }
        }))?,
        Command::Check { config } => {
            let report = block(check::check(&Config::read(&config)?, now()))?;
            report.warnings.iter().for_each(output::warn);
            report.notes.iter().try_for_each(|note| output.line(note))?;
            say!(output, "the configuration is good");
        }
        Command::Signing { command: Signing::Prepare { config } } => {
            let config = Config::read(&config)?;
            let next = signing::prepare(&config)?;
            say!(output, "{} is {next}, for `signing rotate`", config.next_key().display());
            say!(
                output,
                "its public key is in {}: copy that file to every replica, then SIGHUP",
                config.rotated().display()
            );
        }
        Command::Signing { command: Signing::Rotate { config } } => {
            let config = Config::read(&config)?;
            let (old, new) = signing::rotate(&config)?;
            say!(
                output,
                "{} is {new}; a running service signs as {old} until SIGHUP",
                config.signing_key.display()
            );
            say!(
                output,
                "{old} is retired: its public key is in {}, which every replica needs",
                config.rotated().display()
            );
        }
        Command::Events { config, tenant } => {
            let config = Config::read(&config)?;
            block(backup::events(&config, tenant.as_deref(), |line| output.line(line)))?;
        }
        Command::Client { dir, tenant, role: role_name, name } => {
            let identity =
                Identity { tenant: named(&tenant)?, name: named(&name)?, role: role(&role_name)? };
            init::client(&dir, &name, &identity, now())?;
            say!(
                output,
                "made {0}/{name}.pem and {0}/{name}.key for {1}",
                dir.display(),
                identity.uri()
            );
        }
        Command::Server { dir, name, host } => {
            init::server(&dir, &named(&name)?, &host, now())?;
            say!(
                output,
                "made {0}/{name}.pem and {0}/{name}.key for the configuration in {0}: below [tls]",
                dir.display()
            );
            say!(output, "    certificate = \"{name}.pem\"");
            say!(output, "    key = \"{name}.key\"");
            say!(output, "then SIGHUP");
        }
        Command::Revoke { dir, certificates, days, new_list } => {
            return revoke(output, &dir, &certificates, days, new_list);
        }
        Command::Token { name, role: role_name } => token(output, &name, &role_name)?,
        Command::Backup { config, out } => {
            block(backup::backup(&Config::read(&config)?, &out))?;
            say!(output, "made {}", out.display());
        }
        Command::Restore { config, from } => {
            let config = Config::read(&config)?;
            match from {
                Some(from) => block(backup::restore(&config, &from, now()))?,
                None => show(output, block(backup::restored(&config, now()))?)?,
            }
            say!(
                output,
                "restored as of the copy: post again what was changed since then, revocations first; sessions that were open must be asked for again"
            );
        }
        Command::Rekey { config, to } => rekey(output, &config, &to)?,
        Command::Audit { config } => audit(output, &config)?,
        Command::TokenKeys { config } => token_keys(output, &config)?,
        Command::Erase { config, tenant } => {
            block(erase::erase(&Config::read(&config)?, &tenant, now()))?;
            say!(output, "erased {tenant}; its receipts and events stay");
        }
        Command::Common(common) => {
            let version = matches!(common, Common::Version);
            let exit = common.run::<Args>(output)?;
            if version {
                say!(output, "schema {}, serves beside {}", store::version(), store::beside());
            }
            return Ok(exit);
        }
    }
    Ok(Exit::Done)
}

/// Makes a folder for the service, and says how to start it.
fn set_up(
    output: &Output,
    dir: &Path,
    listen: String,
    host: &[String],
    audience: Option<String>,
    tenant: &str,
) -> Result<(), CliError> {
    let port = listen.rsplit(':').next().unwrap_or("8443");
    let host = host.iter().map(|host| init::host(host)).collect::<Result<Vec<_>>>()?;
    let audience =
        audience.unwrap_or_else(|| match host.first().map_or("localhost", String::as_str) {
            address if address.contains(':') => format!("https://[{address}]:{port}"),
            name => format!("https://{name}:{port}"),
        });
    init::init(dir, &init::Setup { listen, hosts: host, audience, tenant: named(tenant)? }, now())?;
    let config = dir.join("verifierd.toml");
    say!(output, "made {}", dir.display());
    say!(output, "start with: shef-verifierd run --config {}", shell::word(&config));
    Ok(())
}

/// Writes the list of revoked client certificates, and waits until the running services apply it.
/// Undecided if no service confirms it, or not every one, or if the configuration beside it cannot be
/// checked or fails the check.
fn revoke(
    output: &Output,
    dir: &Path,
    certificates: &[PathBuf],
    days: u32,
    new_list: bool,
) -> Result<Exit, CliError> {
    let Listed { all, added, until } = init::revoke(dir, certificates, days, new_list, now())?;
    let (list, file) = (dir.join("crl.pem"), dir.join("verifierd.toml"));
    let shown = list.display();
    let end = time::text(until);
    say!(
        output,
        "{shown} names {all} certificates, {added} of them new; it ends {end}, and then every client certificate is refused"
    );
    // The configuration may be elsewhere.
    let config = init::is_there(&file).then(|| Config::read(&file));
    if matches!(&config, Some(Ok(config)) if !config.names_list(&list)) {
        let text = format!(
            "{} does not name {shown}, so nothing is revoked; below [tls]: crls = [\"crl.pem\"], then SIGHUP",
            file.display()
        );
        return Err(Kind::Config.because(text).into());
    }
    let mut exit = Exit::Done;
    match confirmed(dir, &list) {
        Ok(1) => say!(output, "the running service applies it"),
        Ok(services) => say!(output, "{services} running services apply it"),
        Err(why) => {
            exit = Exit::Undecided;
            if config.is_none() {
                say!(output, "for the service's configuration: below [tls]");
                say!(output, "    crls = [\"crl.pem\"]");
                say!(output, "then SIGHUP, once");
            }
            output::warn(format!(
                "it is not confirmed that every running service applies the list: {why}. A service that does not accepts revoked clients; a service applies the list when it starts, and a running one that names it within a second"
            ));
        }
    }
    let checked = config.map(|read| read.and_then(|config| block(check::check(&config, now()))));
    if let Some(Err(problem)) = checked {
        exit = Exit::Undecided;
        output::warn(format!("a service does not start again with {}: {problem}", file.display()));
    }
    Ok(exit)
}

/// Waits until the running services apply a list of `dir` as it is now, and returns their number.
/// They run as root, as this user, or as the owner of the folder.
fn confirmed(dir: &Path, list: &Path) -> std::result::Result<usize, String> {
    use std::os::unix::fs::MetadataExt as _;
    let mut believed = vec![0, rustix::process::geteuid().as_raw()];
    believed.extend(std::fs::metadata(dir).map(|dir| dir.uid()));
    applied::confirm("service", list, &believed, || {
        let file = shef_files::open(list).and_then(|file| shef_files::contents(&file));
        let pem = file.map_err(|error| format!("{}: {error}", list.display()))?;
        Ok(applied::digest(&pem))
    })
}

/// Prints a new bearer token and its entry for the configuration.
fn token(output: &Output, name: &str, role_name: &str) -> Result<(), CliError> {
    let (name, role) = (named(name)?, role(role_name)?);
    let token = format!("shef_{}", hex::encode(secrets::random::<32>()));
    say!(output, "token (shown once): {token}");
    say!(output, "");
    say!(output, "for the configuration, below its [[tenant]]:");
    say!(output, "");
    say!(output, "[[tenant.token]]");
    say!(output, "name = {name:?}");
    say!(output, "role = {:?}", role.name());
    say!(output, "sha256 = \"{}\"", hex::encode(secrets::sha256(token.as_bytes())));
    Ok(())
}

/// Makes missing keys in a token, and says what the configuration needs for them.
fn token_keys(output: &Output, config: &Path) -> Result<(), CliError> {
    let config = Config::read(config)?;
    for label in keyring::make(&config)? {
        say!(output, "made {label}");
    }
    let token = config.pkcs11.as_ref();
    if token.is_some_and(|token| token.signing.is_some()) {
        let key = *keyring::signer(&config)?.public_key();
        say!(output, "signs as {}", hex::encode(key.as_bytes()));
    }
    if let Some(label) = token.and_then(|token| token.kek.as_deref()) {
        say!(output, "`shef-verifierd rekey` makes KEKs that {label} seals");
    }
    Ok(())
}

/// Seals the database under another KEK, and says what the configuration has to name.
fn rekey(output: &Output, config: &Path, to: &Path) -> Result<(), CliError> {
    let read = Config::read(config)?;
    match block(rekey::rekey(&read, to, now()))? {
        Some(count) => say!(output, "{count} secrets are sealed under {}", to.display()),
        None => say!(output, "the database is sealed under {} already", to.display()),
    }
    say!(output, "in {}, below [storage]", config.display());
    say!(output, "    kek = {:?}", read.named(to));
    say!(output, "then SIGHUP");
    Ok(())
}

/// Prints the heads of the receipts and events of each tenant, after checking the chains.
fn audit(output: &Output, config: &Path) -> Result<(), CliError> {
    show(output, block(backup::audit(&Config::read(config)?))?)
}

fn show(output: &Output, audited: Vec<backup::Audited>) -> Result<(), CliError> {
    for audited in audited {
        if !audited.configured {
            say!(output, "{}: the configuration does not name this tenant", audited.tenant);
        }
        let digest = hex::encode(audited.head.digest);
        if audited.head.seq == 0 {
            say!(output, "{}: there is no receipt yet", audited.tenant);
        } else {
            say!(
                output,
                "{}: receipts {} to {} hold, head {digest}",
                audited.tenant,
                audited.from.seq + 1,
                audited.head.seq
            );
        }
        say!(
            output,
            "{}: {} events hold, head {}",
            audited.tenant,
            audited.events,
            hex::encode(&audited.events_head)
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    if let Some(ended) = shef_rego::serve() {
        return ended;
    }
    let ended = program::main(
        "shef-verifierd",
        shef_verifierd::codes,
        |_| Output::plain(),
        |output, args: Args| {
            let filter =
                EnvFilter::try_from_env("SHEF_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
            tracing_subscriber::fmt()
                .json()
                .flatten_event(true)
                .with_span_list(false)
                .with_env_filter(filter)
                .with_writer(Lines(Log::install()))
                .log_internal_errors(false)
                .init();
            command(output, args.command)
        },
    );
    shef_verifierd::vault::settle();
    ended.into()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn every_command_closes_its_memory() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        command(&Output::plain(), Command::Common(Common::Version)).unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
