//! `cargo xtask firmware`: boot ROM and Security Kernel for the processor of `shef_kernel`.
//!
//! The programs are built with the library sources of the same compiler (Debian's `rust-src`,
//! pinned), signed, and written to the paths of the committed files. The bytes depend on the
//! sources alone: `--check` builds in two folders, with the library in two folders, and compares
//! both with each other and with the committed files.
//!
//! cargo derives the identity of a crate, and with it the order of a program's functions, from the
//! crate's folder. This program wraps the compiler and uses name, version and features instead.

use crate::debian::{Apt, unpack};
use crate::process::{self, Context, Failure, Result, anyhow, bail, ensure, say, stdout};
use crate::{files, root, tools};
use elf::abi::PT_LOAD;
use elf::{ElfBytes, endian::LittleEndian};
use fs_err as fs;
use sha2::{Digest, Sha256};
use shef_firmware::signer::{LEAST_SVN, SIGNER};
use shef_kernel::{KernelImage, Measurement, SIGNATURE_FILE_LEN, SIMULATED_SIGNER, admit};
use shef_proto::cose::SigningKey;
use shef_proto::crypto::to_low_s;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Build twice, in two folders, and compare with each other and with the committed files
    #[arg(long, conflicts_with = "signature")]
    check: bool,
    /// Signature of the image by your own signer, named in attestation/firmware/src/signer.rs: 128
    /// bytes, r | s | x | y of ECDSA with P-256 and SHA-256
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
}

/// The compiler of the committed programs; the package holds its library's sources.
const RUSTC: &str = "1.95.0";
/// Debian's package of the library sources: name, version, SHA-256.
const PACKAGE: (&str, &str, &str) = (
    "rust-src",
    "1.95.0+dfsg1-2~bpo13+1",
    "7b76db5b880a77f9e52975d2baa6209d2f76d2c9c2789515c3088cb960e2c83b",
);
const TARGET: &str = "riscv32imc-unknown-none-elf";

/// Boot ROM as an RTL package.
const ROM: &str = "shell-rtl/rtl/kernel/shef_kernel_rom_pkg.sv";
/// Kernel image, whose SHA-256 is the kernel digest.
const IMAGE: &str = "attestation/firmware/kernel.img";
/// Signature and public key of its signer.
const SIGNATURE: &str = "attestation/firmware/kernel.sig";

/// Security version of the kernel.
const SVN: u64 = 1;

/// The committed files: path and content.
pub type Products = Vec<(&'static str, Vec<u8>)>;

/// Tells this program, as cargo's wrapper, to act as the compiler.
const COMPILER: &str = "SHEF_FIRMWARE_COMPILER";

/// Runs the compiler, if cargo called this program as its wrapper.
pub fn compiler() -> Option<ExitCode> {
    std::env::var_os(COMPILER)?;
    let mut args = std::env::args_os().skip(1);
    let mut rustc = Command::new(args.next()?);
    rustc.args(identified(args.map(|arg| arg.to_string_lossy().into_owned()).collect()));
    Some(match rustc.status() {
        Ok(status) => {
            ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err(e) => {
            eprintln!("error: {}: {e}", rustc.get_program().display());
            ExitCode::FAILURE
        }
    })
}

/// Arguments of the compiler with an identity that does not depend on a folder.
fn identified(mut args: Vec<String>) -> Vec<String> {
    const DECIDE: [&str; 4] = ["--crate-name", "--cfg", "--crate-type", "--target"];
    let of_crate = args.windows(2).filter(|pair| DECIDE.contains(&pair[0].as_str()));
    let package =
        ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(|name| std::env::var(name).unwrap_or_default());
    let mut hash = Sha256::new();
    for word in of_crate.map(|pair| &pair[1]).chain(&package) {
        hash.update(word);
        hash.update([0]);
    }
    let identity = hex::encode(&hash.finalize()[..8]);
    for arg in args.iter_mut().filter(|arg| arg.starts_with("metadata=")) {
        *arg = format!("metadata={identity}");
    }
    args
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let show = |path: &str, bytes: &[u8]| println!("{path}: {}", described(bytes));
    if args.check {
        check(true)?.iter().for_each(|(path, bytes)| show(path, bytes));
        return Ok(());
    }
    let write = |path: &str, bytes: &[u8]| {
        show(path, bytes);
        fs::write(root().join(path), bytes)
    };
    let built = build("one", &sources()?)?;
    for (path, bytes) in &built {
        write(path, bytes)?;
    }
    // A separate signer may have to sign the new image.
    Ok(write(SIGNATURE, &signature(&built, args.signature.as_deref())?)?)
}

/// A file's size and digest, as text.
fn described(bytes: &[u8]) -> String {
    format!("{} bytes, SHA-256 {}", bytes.len(), files::digest(bytes))
}

/// Builds, and compares with the committed files; with `twice`, in two folders, whose programs must
/// not differ.
pub fn check(twice: bool) -> Result<Products> {
    let library = sources()?;
    let mut built = build("one", &library)?;
    if twice {
        same_in_another_folder(&built, &library)?;
    }
    built.push((SIGNATURE, signature(&built, None)?.to_vec()));
    for (path, expected) in &built {
        let found = fs::read(root().join(path))?;
        ensure!(
            found == *expected,
            "{path} is not what its sources give: expected {}, found {}; run `cargo xtask \
             firmware` and commit it",
            described(expected),
            described(&found)
        );
    }
    Ok(built)
}

/// Builds in a folder of another name, with the library in another folder.
fn same_in_another_folder(built: &Products, library: &Path) -> Result<()> {
    let two = "two/in a folder of another name";
    let other = process::target_dir().join("firmware").join(two).join("library of another name");
    files::copy(library, &other, |_| true)?;
    let again = build(two, &other)?;
    for ((path, first), (_, second)) in built.iter().zip(&again) {
        ensure!(
            first == second,
            "{path}: two builds in two folders differ; something of the folder enters the program"
        );
    }
    Ok(())
}

/// The sources of the compiler's library, fetched if need be.
///
/// # Errors
/// This machine cannot rebuild the firmware.
fn sources() -> Result<PathBuf> {
    library().map_err(|reason| {
        Failure::missing(format!(
            "the firmware cannot be rebuilt here: {reason:#}; the committed files stay as they are"
        ))
    })
}

fn library() -> Result<PathBuf> {
    let version = stdout(Command::new("rustc").arg("--version"))?;
    let found = version.split_whitespace().nth(1);
    let version = version.trim();
    ensure!(found == Some(RUSTC), "it is built with rustc {RUSTC}, and this is {version}");
    let (name, package, digest) = PACKAGE;
    let done = tools::folder().join(format!("{name}-{RUSTC}"));
    let fetch = |part: &Path| {
        say(&format!("downloading {name} {package} from Debian (45 MB)"));
        let apt = Apt::new(&part.join("apt"))?;
        let deb = apt.download(&format!("{name}={package}"))?;
        let found = files::digest(fs::read(&deb)?);
        if found != digest {
            bail!("{} has SHA-256 {found}, expected {digest}", deb.display());
        }
        let tree = part.join("tree");
        unpack(&apt.dir, &tree)?;
        Ok(fs::rename(tree.join(format!("usr/src/rustc-{RUSTC}/library")), &done)?)
    };
    tools::once(name, || done.is_dir(), fetch)?;
    Ok(done)
}

/// Builds from a copy of the repository's files below `target/firmware/FOLDER`.
fn build(folder: &str, library: &Path) -> Result<Products> {
    let work = process::target_dir().join("firmware").join(folder);
    let copy = work.join("shef");
    copy_sources(&copy)?;
    say(&format!("building the firmware in {}", work.display()));
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from);
    let mut flags = vec![
        "-Zunstable-options".to_owned(),
        "-Cpanic=immediate-abort".to_owned(),
        "-Zlocation-detail=none".to_owned(),
        "--cfg=sha2_backend=\"soft\"".to_owned(),
        "--cfg=sha2_backend_soft=\"compact\"".to_owned(),
    ];
    for (path, name) in [(copy.as_path(), "/shef"), (library, "/rust"), (&cargo_home, "/cargo")] {
        flags.push(format!("--remap-path-prefix={}={name}", path.display()));
    }
    let target = work.join("target");
    let mut cargo = process::cargo(
        "build --quiet --locked --profile firmware --package shef-firmware --features hardware \
         --bins -Zbuild-std=core,alloc",
    );
    cargo
        .args(["--target", TARGET, "--target-dir"])
        .arg(&target)
        .current_dir(&copy)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("__CARGO_TESTS_ONLY_SRC_ROOT", library)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env(COMPILER, "1")
        .env("RUSTC_WRAPPER", std::env::current_exe()?)
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    process::run(&mut cargo, "building the firmware")?;
    let program = |name: &str| {
        let path = target.join(TARGET).join("firmware").join(name);
        flat(&fs::read(&path)?).with_context(|| path.display().to_string())
    };
    let version = env!("CARGO_PKG_VERSION");
    let image = KernelImage { svn: SVN, version, code: &program("kernel")? }.to_bytes();
    Ok(vec![(ROM, rom_package(&program("rom")?).into_bytes()), (IMAGE, image)])
}

/// Content of the signature file: by the signer of simulated devices, or, if the ROM trusts another
/// signer, the given or the committed one.
fn signature(built: &Products, given: Option<&Path>) -> Result<[u8; SIGNATURE_FILE_LEN]> {
    let image = built.iter().find(|(path, _)| *path == IMAGE);
    let (_, image) = image.context("no image was built")?;
    let key = SigningKey::derive(SIMULATED_SIGNER);
    let simulated: [u8; 32] = Sha256::digest(key.public_key().xy()).into();
    if given.is_none() && simulated == SIGNER {
        let all = [&key.sign(image)[..], &key.public_key().xy()].concat();
        return Ok(core::array::from_fn(|at| all[at]));
    }
    let path = given.map_or_else(|| root().join(SIGNATURE), Path::to_path_buf);
    let digest: [u8; 32] = Sha256::digest(image).into();
    let refused = |found: &str| {
        anyhow!(
            "{}: expected 128 bytes, r | s | x | y of a signature of {IMAGE} (SHA-256 {}) by the \
             signer of attestation/firmware/src/signer.rs (SHA-256 of x | y: {}), found {found}; \
             sign the image, and run `cargo xtask firmware --signature FILE`",
            path.display(),
            hex::encode(digest),
            hex::encode(SIGNER)
        )
    };
    let bytes = fs::read(&path).map_err(|e| refused(&e.to_string()))?;
    let mut signature = <[u8; SIGNATURE_FILE_LEN]>::try_from(&bytes[..])
        .map_err(|_| refused(&format!("{} bytes", bytes.len())))?;
    // Another signer may produce a high s; the ROM accepts the low one only.
    if let Some(rs) = signature.first_chunk_mut() {
        *rs = to_low_s(*rs);
    }
    let parsed = KernelImage::parse(image).map_err(|e| refused(&e.to_string()))?;
    let kernel = Measurement { digest, svn: parsed.svn, version: parsed.version };
    admit(&kernel, &signature, &SIGNER, LEAST_SVN).map_err(|e| refused(&e.to_string()))?;
    Ok(signature)
}

/// Copies the files that git tracks or would add, and removes files that are gone since the last
/// copy.
fn copy_sources(to: &Path) -> Result<()> {
    let list = files::tracked()?;
    let stamp = to.join(".files");
    if let Ok(old) = fs::read_to_string(&stamp) {
        for gone in old.split('\0').filter(|path| !list.iter().any(|now| now == path)) {
            let _ = fs::remove_file(to.join(gone));
        }
    }
    for path in &list {
        // A tracked file that is deleted does not count.
        if let Ok(bytes) = fs::read(root().join(path)) {
            files::update(&to.join(path), &bytes)?;
        }
    }
    Ok(fs::write(&stamp, list.join("\0"))?)
}

/// The bytes that an ELF file loads, from its lowest address on.
fn flat(program: &[u8]) -> Result<Vec<u8>> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(program)?;
    let segments = file.segments().context("not a program")?;
    let loaded: Vec<_> =
        segments.iter().filter(|s| s.p_type == PT_LOAD && s.p_filesz > 0).collect();
    let base = loaded.iter().map(|s| s.p_paddr).min().context("nothing to load")?;
    let mut out = Vec::new();
    for segment in loaded {
        let (at, bytes) = ((segment.p_paddr - base) as usize, file.segment_data(&segment)?);
        out.resize(out.len().max(at + bytes.len()), 0);
        out[at..at + bytes.len()].copy_from_slice(bytes);
    }
    Ok(out)
}

/// The SystemVerilog package with the words of the boot ROM.
fn rom_package(bytes: &[u8]) -> String {
    let words: Vec<String> = bytes
        .chunks(4)
        .map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            format!("32'h{:08x}", u32::from_le_bytes(word))
        })
        .collect();
    let lines: Vec<String> =
        words.chunks(8).map(|line| format!("    {}", line.join(", "))).collect();
    format!(
        "// Boot ROM of the Security Kernel: attestation/firmware/src/bin/rom.rs as words. Generated by\n\
         // `cargo xtask firmware`; do not edit.\n`default_nettype none\npackage shef_kernel_rom_pkg;\n  \
         localparam logic [31:0] WORDS[{}] = '{{\n{}\n  }};\nendpackage\n`default_nettype wire\n",
        words.len(),
        lines.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_image_is_signed_by_the_signer_that_the_rom_trusts() {
        let image = fs::read(root().join(IMAGE)).expect("image");
        let signature: [u8; SIGNATURE_FILE_LEN] =
            fs::read(root().join(SIGNATURE)).expect("signature").try_into().expect("length");
        let parsed = KernelImage::parse(&image).expect("an image");
        let digest = Sha256::digest(&image).into();
        let kernel = Measurement { digest, svn: parsed.svn, version: parsed.version };
        admit(&kernel, &signature, &SIGNER, LEAST_SVN).expect("admitted");
        let changed = Measurement { digest: [1; 32], ..kernel };
        let refused = admit(&changed, &signature, &SIGNER, LEAST_SVN).expect_err("refused");
        assert_eq!(refused.code(), "SHEF-KRN-004");
    }

    #[test]
    fn a_signature_of_another_signer_or_image_is_refused() {
        let image = fs::read(root().join(IMAGE)).expect("image");
        let built = |image: &[u8]| vec![(IMAGE, image.to_vec())];
        let committed = root().join(SIGNATURE);
        let own = signature(&built(&image), None).expect("signed");
        assert_eq!(signature(&built(&image), Some(&committed)).expect("admitted"), own);
        let mut changed = image.clone();
        changed[200] ^= 1;
        for (image, path, found) in [
            (&changed, committed.as_path(), "SHEF-KRN-004"),
            (&image, &root().join(IMAGE), &format!("{} bytes", image.len())),
            (&image, Path::new("/nowhere"), "No such file"),
        ] {
            let error = signature(&built(image), Some(path)).expect_err(found);
            let message = error.to_string();
            assert!(message.contains("expected 128 bytes"), "{message}");
            assert!(
                message.contains(found)
                    || found.starts_with("SHEF") && message.contains("does not verify"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_crate_is_what_its_name_and_features_say() {
        let identity = |feature: &str, metadata: &str| {
            let args =
                format!("--crate-name one --cfg {feature} -C {metadata} -C extra-filename=-1");
            identified(args.split(' ').map(str::to_owned).collect())
        };
        let one = identity("feature=\"a\"", "metadata=0123");
        assert_eq!(one, identity("feature=\"a\"", "metadata=4567"));
        assert!(
            one[5].starts_with("metadata=")
                && one[5] != "metadata=0123"
                && one[7] == "extra-filename=-1"
        );
        assert_ne!(one, identity("feature=\"b\"", "metadata=0123"));
    }

    #[test]
    fn segments_lie_where_they_are_loaded() {
        let mut elf = vec![0; 52 + 2 * 32];
        // 32 bits, little-endian.
        elf[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
        (elf[28], elf[42], elf[44]) = (52, 32, 2);
        for (header, offset, address) in [(52, 116_u32, 0x104_u32), (84, 118, 0x100)] {
            elf[header] = 1;
            elf[header + 4..header + 8].copy_from_slice(&offset.to_le_bytes());
            elf[header + 12..header + 16].copy_from_slice(&address.to_le_bytes());
            elf[header + 16] = 2;
        }
        elf.extend_from_slice(b"abcd");
        assert_eq!(flat(&elf).expect("flat"), b"cd\0\0ab");
        assert!(flat(&elf[..117]).is_err() && flat(b"").is_err());
    }
}
