//! From the folder of an image to its tarball: the flows of the HDK's script, judged by the files
//! that they leave and never by their status, which is 0 after failures.
//!
//! | step | runs | left, and looked at |
//! |---|---|---|
//! | first search | nothing | no file of the project, or of an earlier call's programs, with the secret |
//! | synthesis | `aws_build_dcp_from_cl.py -f SynthCL` | encrypted sources, post-synthesis checkpoint |
//! | implementation | `aws_build_dcp_from_cl.py -f ImplCL` | routed checkpoint, timing report |
//! | comparison | `vivado` with `pr_verify` | report and log |
//! | tarball | nothing | tarball with manifest |
//! | search | nothing | no file with the secret |
//! | clean-up | nothing | tarball and reports only |
//!
//! `build.json` has each step that is done, with the digest of its result: the same command again
//! continues after the last one whose result is still there, with the scripts and the Vivado that the
//! build began with, and with the shell of the image. A secret that was found is recorded there, too:
//! the image is never used.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use shef_console::file::PathText;

use crate::hdk::{Hdk, digest};
use crate::logic::{self, Folder, Image, OUT, TOP};
use crate::run::{self, Limits};
use crate::scan::{self, Report, Scan};
use crate::tarball::{self, Checked, Manifest};
use crate::tools::{self, Call};
use crate::{CloudError, Step, Watch, place};

/// The record of the steps.
const RECORD: &str = "build.json";
/// Our script for the comparison.
const VERIFY_SCRIPT: &str = include_str!("scripts/pr_verify.tcl");
/// What a secret's file is called, for messages.
const LOGS: &str = "logs";
/// Folder of the temporary files that programs make.
const TEMPORARY: &str = "tmp";
/// Folder of Vivado's files below HOME.
const XILINX: &str = ".Xilinx";
/// Variables that name further start-up scripts, packages and patches of Vivado (AMD UG894, UG835,
/// answer records 53090 and 66722; the wiki of XilinxTclStore), packages of Python, scripts of a shell,
/// and folders outside of HOME.
const WITHOUT: &[&str] = &[
    "MYVIVADO",
    "XILINX_PATH",
    "XILINX_TCLAPP_REPO",
    "XILINX_TCLSTORE_USERAREA",
    "TCLLIBPATH",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "BASH_ENV",
    "ENV",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS",
    "TEMP",
    "TMP",
];

/// Choices of a build.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directive of `place_design`.
    pub place: String,
    /// Directive of `route_design`.
    pub route: String,
    /// Digest of an encryption script that the user has read.
    pub encrypt_script: Option<String>,
    /// Limits of the programs.
    pub limits: Limits,
}

/// The steps that are done, each with the digest of its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Tag of the build.
    pub tag: String,
    /// Digest of everything that it was made from.
    pub inputs: String,
    /// Choices of the build, for messages.
    pub choices: String,
    /// SHA-256 of each of the kit's scripts.
    pub scripts: BTreeMap<String, String>,
    /// Version of Vivado, once it is known.
    pub vivado: Option<String>,
    /// Post-synthesis checkpoint.
    pub synthesis: Option<String>,
    /// Routed checkpoint.
    pub implementation: Option<String>,
    /// Report of the comparison.
    pub comparison: Option<String>,
    /// Checkpoint of the shell that it compared with.
    pub shell: Option<String>,
    /// Tarball.
    pub tarball: Option<String>,
    /// Files that were searched for the secret.
    pub searched: Option<usize>,
    /// The secret, where a search found it.
    pub leak: Option<Leak>,
    /// Whether everything but the results is gone.
    pub clean: bool,
}

/// A secret that a search found. The image must not be used, also after the file is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leak {
    /// The first file, for messages.
    pub file: String,
    /// How it is written there.
    pub form: String,
    /// All hits.
    pub hits: usize,
}

/// The result of a build.
#[derive(Debug, Clone, Serialize)]
pub struct Built {
    /// The tarball.
    pub tarball: PathText,
    /// Its SHA-256.
    pub digest: String,
    /// Tag of the build.
    pub tag: String,
    /// Files that were searched for the secret.
    pub searched: usize,
    /// Worst slack of the timing report in ns, if it has one.
    pub slack_ns: Option<f64>,
}

/// The record that a build goes on with, after every check that comes before its first step. `tag`
/// names a new build. Nothing is changed.
///
/// # Errors
/// Those of an input or a program that is not as the build needs it.
fn begin(
    folder: &Path,
    image: &Image,
    hdk: &Hdk,
    options: &Options,
    environment: &dyn Fn(&str) -> Option<OsString>,
    tag: String,
) -> Result<Record, CloudError> {
    let (inputs, choices) = (inputs(image, options)?, options.text());
    let found = Record::read(folder)?;
    found.iter().try_for_each(Record::usable)?;
    let record = match found {
        Some(record) if record.inputs == inputs => record,
        Some(record) if record.clean => {
            let now =
                if record.choices == choices { "another image.toml".to_owned() } else { choices };
            return Err(CloudError::Spent { dir: folder.to_owned(), before: record.choices, now });
        }
        _ => Record { tag, inputs, choices, ..Record::default() },
    };
    let tarball = folder.join(OUT).join(tarball_name(&record.tag));
    if record.clean || record.searched.is_some() && record.is(&record.tarball, &tarball) {
        return Ok(record);
    }
    hdk.encrypts(options.encrypt_script.as_deref())?;
    hdk.environment(environment)?;
    logic::unchanged(folder, hdk, image)?;
    logic::same_shell(hdk, image)?;
    let scripts = hdk.scripts()?;
    if record.scripts.is_empty() {
        return Ok(Record { scripts, ..record });
    }
    same(&record.scripts, &scripts).map(|()| record)
}

/// Compares the kit's scripts with those that the build began with.
fn same(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Result<(), CloudError> {
    let mut names = before.keys().chain(now.keys());
    let Some(name) = names.find(|name| before.get(*name) != now.get(*name)) else { return Ok(()) };
    let digest = |all: &BTreeMap<String, String>| {
        all.get(name).map_or("missing".to_owned(), |digest| format!("SHA-256 {digest}"))
    };
    Err(CloudError::Began { what: name.clone(), before: digest(before), now: digest(now) })
}

/// Each thing that a build would do, after the steps that are done.
///
/// # Errors
/// As [`build`], before its first step.
pub fn plan(
    folder: &Path,
    image: &Image,
    hdk: &Hdk,
    options: &Options,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<Step>, CloudError> {
    let folder = &folder.canonicalize().map_err(CloudError::io("find", folder))?;
    let record = begin(folder, image, hdk, options, &environment, "TAG".to_owned())?;
    let paths = Paths::new(folder, &record.tag);
    let tarball = folder.join(OUT).join(tarball_name(&record.tag));
    if record.clean {
        let done = format!("nothing but look at {}: the build is done", tarball.display());
        return Ok(vec![Step::Change(done)]);
    }
    // As the build: each step is done if its result is the recorded one, and those before it are.
    let results = [
        (&record.synthesis, paths.checkpoint("post_synth")),
        (&record.implementation, paths.checkpoint("post_route")),
        (&record.comparison, paths.comparison()),
        (&record.tarball, tarball.clone()),
    ];
    let done = match record.is(&record.tarball, &tarball) && record.searched.is_some() {
        true => results.len(),
        false => results.iter().take_while(|(digest, file)| record.is(digest, file)).count(),
    };
    let dir = folder.display();
    let change = |text: String| Ok(Step::Change(text));
    let mut steps = Vec::new();
    let searched = record.searched.is_some() && done == results.len();
    let left = paths.temporary.exists().then(|| format!("what programs left in {dir}"));
    let first = left.into_iter().chain(image.project.clone());
    let first = first.collect::<Vec<_>>().join(" and ");
    if !searched && !first.is_empty() {
        steps.push(change(format!("search every file of {first} for the secret")));
    }
    if !searched {
        steps.push(paths.version().map(Step::from));
    }
    if done > 0 {
        let names = ["synthesis", "place and route", "pr_verify", "the tarball"];
        steps.push(change(format!("continue after {}, of {}", names[done - 1], record.tag)));
    }
    let each = [
        paths.flow("SynthCL", options).map(Step::from),
        paths.flow("ImplCL", options).map(Step::from),
        paths.verify(hdk).map(Step::from),
        change(format!("write {}", tarball.display())),
    ];
    steps.extend(each.into_iter().skip(done));
    if !searched {
        steps.push(change(format!("search every file below {dir} and the project for the secret")));
    }
    steps.push(change(format!("remove {dir}/{TOP}, but for reports")));
    steps.into_iter().collect()
}

/// Name of the tarball of a build.
fn tarball_name(tag: &str) -> String {
    format!("{tag}.Developer_CL.tar")
}

impl Options {
    /// The choices, for messages.
    fn text(&self) -> String {
        format!("--place {} --route {}", self.place, self.route)
    }
}

/// The paths of a build's files, and its programs.
struct Paths {
    folder: PathBuf,
    build: PathBuf,
    checkpoints: PathBuf,
    reports: PathBuf,
    logs: PathBuf,
    temporary: PathBuf,
    tag: String,
}

impl Paths {
    fn new(folder: &Path, tag: &str) -> Self {
        let build = folder.join(TOP).join("build");
        Self {
            checkpoints: build.join("checkpoints"),
            reports: build.join("reports"),
            logs: folder.join(LOGS),
            temporary: folder.join(TEMPORARY),
            folder: folder.to_owned(),
            build,
            tag: tag.to_owned(),
        }
    }

    fn checkpoint(&self, stage: &str) -> PathBuf {
        self.checkpoints.join(format!("{TOP}.{}.{stage}.dcp", self.tag))
    }

    fn timing(&self) -> PathBuf {
        self.reports.join(format!("{TOP}.{}.post_route_timing.rpt", self.tag))
    }

    fn comparison(&self) -> PathBuf {
        self.reports.join(format!("{TOP}.{}.pr_verify.txt", self.tag))
    }

    /// HOME of programs: Vivado sources `.Xilinx/Vivado/Vivado_init.tcl` there (AMD UG894), and
    /// Python has packages.
    fn home(&self) -> PathBuf {
        self.temporary.join("home")
    }

    /// Files that programs of an earlier call left. The sources that synthesis reads are not among
    /// them: the check of their encryption reports a plain one.
    fn left(&self) -> [PathBuf; 5] {
        let scripts = self.build.join("scripts");
        let [temporary, logs, checkpoints, reports] =
            [&self.temporary, &self.logs, &self.checkpoints, &self.reports].map(PathBuf::clone);
        [temporary, logs, scripts, checkpoints, reports]
    }

    /// Makes HOME anew. Of the user's own it has copies of what AMD's license manager looks for: a
    /// link would lead a program out of it.
    fn make_home(&self, own: Option<OsString>) -> Result<(), CloudError> {
        let home = self.home();
        remove_folder(&home)?;
        let xilinx = home.join(XILINX);
        fs::create_dir_all(&xilinx).map_err(CloudError::io("make", &xilinx))?;
        let Some(own) = own.map(PathBuf::from) else { return Ok(()) };
        let licenses = fs::read_dir(own.join(XILINX)).into_iter().flatten().flatten();
        let licenses = licenses.map(|entry| entry.path());
        let is_license = |path: &PathBuf| path.extension().is_some_and(|it| it == "lic");
        let licenses = licenses.filter(|path| is_license(path) && path.is_file());
        let copies = licenses.map(|path| (xilinx.join(path.file_name().unwrap_or_default()), path));
        let server = own.join(".flexlmrc");
        let server = server.is_file().then(|| (home.join(".flexlmrc"), server));
        for (copy, path) in copies.chain(server) {
            fs::copy(&path, &copy).map_err(CloudError::io("copy", &path))?;
        }
        Ok(())
    }

    /// A program that leaves its files in the folder, where they are searched and removed, and that
    /// starts without scripts of the user: also none of Vivado's files below HOME (AMD's answer
    /// record 63253).
    fn own(&self, call: Call, within: &Path) -> Call {
        let mut call = call.within(within);
        call.without = WITHOUT;
        call.variables = vec![
            ("HOME", self.home().into()),
            ("TMPDIR", self.temporary.clone().into()),
            ("XILINX_LOCAL_USER_DATA", "no".into()),
        ];
        call
    }

    /// The version of Vivado.
    fn version(&self) -> Result<Call, CloudError> {
        Ok(self.own(tools::VIVADO_VERSION.call(&[])?, &self.logs))
    }

    /// A flow of the kit's script.
    fn flow(&self, flow: &str, options: &Options) -> Result<Call, CloudError> {
        let call = tools::BUILD.call(&[
            ("cl", TOP),
            ("flow", flow),
            ("place", &options.place),
            ("route", &options.route),
            ("tag", &self.tag),
        ])?;
        let mut call = self.own(call, &self.build.join("scripts"));
        call.variables.push(("CL_DIR", self.folder.join(TOP).into()));
        Ok(call)
    }

    /// The comparison with the shell's checkpoint.
    fn verify(&self, hdk: &Hdk) -> Result<Call, CloudError> {
        let text = |path: &Path| path.display().to_string();
        let call = tools::VERIFY.call(&[
            ("log", &text(&self.logs.join("pr_verify.log"))),
            ("script", &text(&self.folder.join("pr_verify.tcl"))),
            ("shell", &text(&hdk.checkpoint())),
            ("routed", &text(&self.checkpoint("post_route"))),
            ("report", &text(&self.comparison())),
        ])?;
        Ok(self.own(call, &self.logs))
    }
}

/// Removes a folder, if it is there.
fn remove_folder(folder: &Path) -> Result<(), CloudError> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(CloudError::io("remove", folder)(e))
        }
        _ => Ok(()),
    }
}

/// Builds the tarball, or continues.
///
/// # Errors
/// [`CloudError`]; everything that was done is recorded.
pub fn build(
    folder: &Folder,
    image: &Image,
    hdk: &Hdk,
    options: &Options,
    environment: impl Fn(&str) -> Option<OsString>,
    watch: Watch<'_>,
) -> Result<Built, CloudError> {
    let dir = folder.path();
    let mut record = begin(dir, image, hdk, options, &environment, tag())?;
    let paths = Paths::new(dir, &record.tag);
    let tarball = folder.out().join(tarball_name(&record.tag));
    if !record.clean {
        if !record.is(&record.tarball, &tarball) || record.searched.is_none() {
            record.write(dir)?;
            for folder in [&paths.logs, &paths.temporary, &paths.checkpoints, &paths.reports] {
                fs::create_dir_all(folder).map_err(CloudError::io("make", folder))?;
            }
            let scripts = record.scripts.clone();
            let steps = Steps { folder, image, hdk, options, paths: &paths, scripts };
            steps.first(&mut record, watch)?;
            paths.make_home(environment("HOME"))?;
            let version = steps.vivado(&mut record)?;
            steps.synthesis(&mut record, watch)?;
            steps.implementation(&mut record, watch)?;
            steps.comparison(&mut record, watch)?;
            steps.tarball(&mut record, &version, &tarball, watch)?;
            steps.search(&mut record, watch)?;
        }
        clean(folder, &paths, &tarball, watch)?;
        record.clean = true;
        record.write(dir)?;
    }
    let checked = Record::result(dir, image)?;
    let report = folder.out().join(paths.timing().file_name().unwrap_or_default());
    Ok(Built {
        tarball: PathText::from(&checked.file),
        digest: checked.digest,
        tag: record.tag,
        searched: record.searched.unwrap_or(0),
        slack_ns: slack(&report),
    })
}

/// Digest of everything that decides the result.
fn inputs(image: &Image, options: &Options) -> Result<String, CloudError> {
    let json = serde_json::to_string(image).map_err(|e| CloudError::Value {
        what: "the description of the image",
        found: e.to_string(),
        expected: "JSON",
    })?;
    let text = format!("{json}\n{}\n{}\n", options.place, options.route);
    Ok(hex::encode(shef_proto::crypto::sha256(text.as_bytes())))
}

/// A tag as the HDK's script makes it, from the time.
fn tag() -> String {
    let seconds =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in years that begin in March.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}_{month:02}_{day_of_month:02}-{hour:02}{minute:02}{second:02}")
}

impl Record {
    /// The tarball of a whole build in this folder, as the build left it: for the shell of the image,
    /// all files were searched for the secret, and nothing but the results is left.
    ///
    /// # Errors
    /// SHEF-CLD-024, SHEF-CLD-026, SHEF-CLD-027, SHEF-CLD-053, SHEF-CLD-055, SHEF-CLD-056.
    pub fn result(dir: &Path, image: &Image) -> Result<Checked, CloudError> {
        let unfinished = |found| CloudError::NotBuilt { dir: dir.to_owned(), found };
        let record = Self::read(dir)?.ok_or_else(|| unfinished("no build has begun"))?;
        record.usable()?;
        let (Some(digest), Some(_), true) = (record.tarball, record.searched, record.clean) else {
            return Err(unfinished("a build that did not end"));
        };
        let shell = record.shell.unwrap_or_else(|| "not recorded".to_owned());
        if shell != image.shell {
            let what = format!("its shell is {shell}, and the image was made for {}", image.shell);
            return Err(CloudError::Changed { file: dir.join(RECORD), what });
        }
        // A program that works elsewhere reads it.
        let dir = dir.canonicalize().map_err(CloudError::io("find", dir))?;
        let file = dir.join(OUT).join(tarball_name(&record.tag));
        let tarball = tarball::check(&file, &image.shell_version)?;
        if tarball.digest == digest {
            return Ok(tarball);
        }
        let found = format!("it has SHA-256 {}", tarball.digest);
        Err(CloudError::Tarball { file, found, expected: "the SHA-256 of build.json" })
    }

    /// Checks that no search has found the secret.
    fn usable(&self) -> Result<(), CloudError> {
        let Some(Leak { file, form, hits }) = self.leak.clone() else { return Ok(()) };
        Err(CloudError::Secret { file: file.into(), form, hits, earlier: true })
    }

    fn read(dir: &Path) -> Result<Option<Self>, CloudError> {
        let path = dir.join(RECORD);
        match fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(CloudError::io("read", &path)(e)),
            // A record of another version: the build begins again.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        }
    }

    fn write(&self, dir: &Path) -> Result<(), CloudError> {
        let path = dir.join(RECORD);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| CloudError::io("write", &path)(std::io::Error::other(e)))?;
        place::write(&path, &text)
    }

    /// Whether a result is the recorded one.
    fn is(&self, recorded: &Option<String>, file: &Path) -> bool {
        recorded.as_ref().is_some_and(|recorded| digest(file).is_ok_and(|found| found == *recorded))
    }
}

/// The steps of a build.
struct Steps<'a> {
    folder: &'a Folder,
    image: &'a Image,
    hdk: &'a Hdk,
    options: &'a Options,
    paths: &'a Paths,
    /// The kit's scripts, as they were when the build began.
    scripts: BTreeMap<String, String>,
}

impl Steps<'_> {
    /// Runs a flow of the kit's script. Its status says nothing, except that it ran.
    fn flow(&self, record: &mut Record, flow: &str) -> Result<PathBuf, CloudError> {
        let log = self.paths.logs.join(format!("{flow}.log"));
        // That of another flow, whose secret the search at the end would not see.
        let before = self.vivado_log();
        self.clean(record, before.exists().then_some(&*before).into_iter())?;
        // Files of an earlier attempt prove nothing.
        place::erase(&self.vivado_log())?;
        remove_folder(&self.encrypted())?;
        let mut call = self.paths.flow(flow, self.options)?;
        call.log = Some(log.clone());
        self.kit()?;
        let ended = run::any(&call, self.options.limits);
        // A flow of a changed script or for another shell has no result that counts.
        self.kit()?;
        match ended {
            Ok(_) => Ok(log),
            // The log has the reason, as for a script that goes on.
            Err(CloudError::Died { signal: 9, .. }) => Ok(log),
            Err(error) => Err(error),
        }
    }

    /// Checks that scripts and shell are still those of the build.
    fn kit(&self) -> Result<(), CloudError> {
        same(&self.scripts, &self.hdk.scripts()?)?;
        logic::same_shell(self.hdk, self.image)
    }

    /// The log that the script lets Vivado write.
    fn vivado_log(&self) -> PathBuf {
        self.paths.build.join(format!("scripts/{}.vivado.log", self.paths.tag))
    }

    /// The error for a result that is missing: by the log.
    fn missing(&self, step: &'static str, expected: &Path, log: &Path) -> CloudError {
        let below = expected.strip_prefix(self.folder.path()).unwrap_or(expected);
        let expected = below.display().to_string();
        let vivado = self.vivado_log();
        for log in [log, &vivado] {
            if let Some((line, _)) = find(log, |line| line.trim_end().ends_with("Killed")) {
                return CloudError::Killed { step, expected, log: log.to_owned(), line };
            }
        }
        let error = [&vivado, log].into_iter().find_map(|log| {
            let (line, text) = find(log, |line| {
                let line = line.trim_start();
                ["ERROR", "CRITICAL ERROR", "Traceback", "Error:"]
                    .iter()
                    .any(|it| line.starts_with(it))
            })?;
            Some(format!("{}:{line}: {}", log.display(), text.trim()))
        });
        let found = error.unwrap_or_else(|| format!("no error in {}", log.display()));
        CloudError::NoOutput { step, expected, found }
    }

    fn synthesis(&self, record: &mut Record, watch: Watch<'_>) -> Result<(), CloudError> {
        let checkpoint = self.paths.checkpoint("post_synth");
        if record.is(&record.synthesis, &checkpoint) {
            return Ok(());
        }
        watch("synthesis (tens of minutes)");
        place::erase(&checkpoint)?;
        let log = self.flow(record, "SynthCL")?;
        self.encrypts(&[&checkpoint])?;
        if !is_file(&checkpoint) {
            return Err(self.missing("synthesis", &checkpoint, &log));
        }
        record.synthesis = Some(digest(&checkpoint)?);
        (record.implementation, record.comparison, record.tarball) = (None, None, None);
        record.write(self.folder.path())
    }

    /// The files that synthesis reads.
    fn encrypted(&self) -> PathBuf {
        self.paths.build.join("src_post_encryption")
    }

    /// Checks a flow's encryption, before any of its results counts. Without a result and without
    /// encrypted files, the flow ended before.
    fn encrypts(&self, results: &[&Path]) -> Result<(), CloudError> {
        if results.iter().any(|result| result.exists()) || self.encrypted().exists() {
            self.envelopes()?;
        }
        Ok(())
    }

    /// Checks that each file that synthesis reads is an envelope, and that all of them are there.
    fn envelopes(&self) -> Result<(), CloudError> {
        let folder = &self.encrypted();
        let wrong = |file: &Path, found: &str| CloudError::Envelope {
            file: file.to_owned(),
            found: found.to_owned(),
        };
        let mut names = std::collections::BTreeSet::new();
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) => return Err(wrong(folder, &e.to_string())),
        };
        for entry in entries {
            let path = entry.map_err(CloudError::io("list", folder))?.path();
            if path.extension().is_some_and(|it| it == "svh") {
                return Err(wrong(&path, "a .svh, which encrypt.tcl leaves in the clear"));
            }
            let bytes = fs::read(&path).map_err(CloudError::io("read", &path))?;
            if let Some(line) = in_the_clear(&bytes) {
                return Err(wrong(&path, &format!("line {line} is in the clear")));
            }
            names.extend(path.file_name().map(std::ffi::OsStr::to_owned));
        }
        let design = self.folder.logic().join("design");
        for entry in fs::read_dir(&design).map_err(CloudError::io("list", &design))? {
            let name = entry.map_err(CloudError::io("list", &design))?.file_name();
            if !names.contains(&name) {
                return Err(wrong(&folder.join(name), "no such file, and the design has it"));
            }
        }
        Ok(())
    }

    fn implementation(&self, record: &mut Record, watch: Watch<'_>) -> Result<(), CloudError> {
        let checkpoint = self.paths.checkpoint("post_route");
        if record.is(&record.implementation, &checkpoint) {
            return Ok(());
        }
        watch("place and route (hours)");
        let violated = self.paths.checkpoint("post_route.VIOLATED");
        let report = self.paths.timing();
        for old in [&checkpoint, &violated, &report] {
            place::erase(old)?;
        }
        let log = self.flow(record, "ImplCL")?;
        // The flow encrypts again.
        self.encrypts(&[&checkpoint, &violated, &report])?;
        let slack = find(&report, |line| {
            line.contains("(VIOLATED)") || line.contains("Timing constraints are not met")
        });
        if violated.exists() || slack.is_some() {
            let found = slack.map_or_else(
                || format!("{} exists", violated.file_name().unwrap_or_default().display()),
                |(_, line)| line.split_whitespace().collect::<Vec<_>>().join(" "),
            );
            return Err(CloudError::Timing { found, report });
        }
        for file in [&checkpoint, &report] {
            if !is_file(file) {
                return Err(self.missing("place and route", file, &log));
            }
        }
        record.implementation = Some(digest(&checkpoint)?);
        (record.comparison, record.tarball) = (None, None);
        record.write(self.folder.path())
    }

    fn comparison(&self, record: &mut Record, watch: Watch<'_>) -> Result<(), CloudError> {
        let report = self.paths.comparison();
        if record.is(&record.comparison, &report) {
            return Ok(());
        }
        watch("pr_verify (minutes)");
        place::erase(&report)?;
        let (script, log) =
            (self.folder.path().join("pr_verify.tcl"), self.paths.logs.join("pr_verify.log"));
        place::erase(&log)?;
        place::write(&script, VERIFY_SCRIPT.as_bytes())?;
        let mut call = self.paths.verify(self.hdk)?;
        call.log = Some(self.paths.logs.join("pr_verify.out"));
        logic::same_shell(self.hdk, self.image)?;
        let ended = run::any(&call, self.options.limits);
        logic::same_shell(self.hdk, self.image)?;
        match ended {
            Ok(_) | Err(CloudError::Died { signal: 9, .. }) => {}
            Err(error) => return Err(error),
        }
        let wrong = |found: String| CloudError::Compatible { found, log: log.clone() };
        if let Some((_, line)) = find(&log, |line| {
            line.starts_with("ERROR")
                || line.contains("HDPRVerify-41")
                || line.contains("not compatible")
        }) {
            return Err(wrong(line.trim().to_owned()));
        }
        if !is_file(&report) {
            return Err(self.missing("pr_verify", &report, &call.log.unwrap_or_default()));
        }
        let agrees = |line: &str| {
            line.contains("PR_VERIFY: check points") && line.contains("are compatible")
        };
        if find(&log, agrees).is_none() {
            return Err(wrong(
                "the log has no line \"check points ... are compatible\"".to_owned(),
            ));
        }
        record.comparison = Some(digest(&report)?);
        record.shell = Some(self.image.shell.clone());
        record.tarball = None;
        record.write(self.folder.path())
    }

    fn tarball(
        &self,
        record: &mut Record,
        version: &str,
        to: &Path,
        watch: Watch<'_>,
    ) -> Result<(), CloudError> {
        let image = self.image;
        if record.is(&record.tarball, to) {
            return Ok(());
        }
        watch("tarball");
        let manifest = Manifest {
            shell_version: image.shell_version.clone(),
            hdk_version: image.hdk_release.clone(),
            tool_version: version.to_owned(),
            tag: record.tag.clone(),
        };
        tarball::pack(&self.paths.checkpoint("post_route"), &manifest, to)?;
        tarball::check(to, &image.shell_version)?;
        record.tarball = Some(digest(to)?);
        record.searched = None;
        record.write(self.folder.path())
    }

    /// Asks Vivado for its version, before the hours of synthesis: the kit must support it, and the
    /// results that are there must be of the same one.
    fn vivado(&self, record: &mut Record) -> Result<String, CloudError> {
        let said = run::run(&self.paths.version()?, self.options.limits)?;
        self.hdk.supports(&said.text)?;
        let now = said.text.split_whitespace().nth(1).unwrap_or_default().to_owned();
        match record.vivado.replace(now.clone()) {
            Some(before) if before != now && record.synthesis.is_some() => {
                Err(CloudError::Began { what: "Vivado".to_owned(), before, now })
            }
            _ => Ok(now),
        }
    }

    /// Searches only the project and what programs of an earlier call left, before anything of it is
    /// removed: a build fails here and not after hours of synthesis.
    fn first(&self, record: &mut Record, watch: Watch<'_>) -> Result<(), CloudError> {
        watch("first search for the secret");
        let left = self.paths.left();
        let all =
            left.iter().map(PathBuf::as_path).chain(self.image.project.as_ref().map(Path::new));
        self.clean(record, all).map(drop)
    }

    fn search(&self, record: &mut Record, watch: Watch<'_>) -> Result<(), CloudError> {
        watch("search for the secret");
        let project = self.image.project.as_ref().map(Path::new);
        let report = self.clean(record, [self.folder.path()].into_iter().chain(project))?;
        record.searched = Some(report.files + report.members);
        record.write(self.folder.path())
    }

    /// Searches folders for the secret, and records that it was found.
    fn clean<'a>(
        &self,
        record: &mut Record,
        mut folders: impl Iterator<Item = &'a Path>,
    ) -> Result<Report, CloudError> {
        let package = self.folder.secret();
        let mut scan = Scan::new(&scan::secret(&package)?);
        let looked = folders.try_for_each(|folder| scan.below(folder, Some(&package)));
        let report = scan.report();
        match report.clean() {
            Err(CloudError::Secret { file, form, hits, earlier }) => {
                let name = file.display().to_string();
                record.leak = Some(Leak { file: name, form: form.clone(), hits });
                record.write(self.folder.path())?;
                Err(CloudError::Secret { file, form, hits, earlier })
            }
            // After a finding: a file that cannot be read is not clean either.
            clean => looked.and(clean).map(|()| report),
        }
    }
}

/// Removes everything but tarball, reports and the files of `shef cloud new` that outlive a build.
fn clean(
    folder: &Folder,
    paths: &Paths,
    tarball: &Path,
    watch: Watch<'_>,
) -> Result<(), CloudError> {
    watch("clean-up");
    let out = folder.out();
    // Tarballs of other choices, whose builds did not end.
    for old in fs::read_dir(&out).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_tarball = old.extension().is_some_and(|it| it == "tar" || it == "part");
        if is_tarball && old != tarball {
            place::erase(&old)?;
        }
    }
    if let Ok(reports) = fs::read_dir(&paths.reports) {
        for report in reports.flatten() {
            let to = out.join(report.file_name());
            fs::rename(report.path(), &to).map_err(CloudError::io("move", &to))?;
        }
    }
    place::erase(&folder.secret())?;
    for gone in [folder.logic(), paths.logs.clone(), paths.temporary.clone()] {
        remove_folder(&gone)?;
    }
    place::erase(&folder.path().join("pr_verify.tcl"))
}

/// Whether there is a file with content.
fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
}

/// The first line of a file that has a property, with its number from 1.
fn find(file: &Path, has: impl Fn(&str) -> bool) -> Option<(usize, String)> {
    let mut lines = BufReader::new(File::open(file).ok()?).split(b'\n');
    (1..).zip(lines.by_ref()).find_map(|(number, line)| {
        let line = String::from_utf8_lossy(&line.ok()?).into_owned();
        has(&line).then(|| (number, line.chars().take(200).collect()))
    })
}

/// The worst slack of a timing report.
fn slack(report: &Path) -> Option<f64> {
    let text = fs::read_to_string(report).ok()?;
    let lines = text.lines().filter(|line| line.trim_start().starts_with("Slack"));
    let numbers = lines.filter_map(|line| {
        let number = line.split(':').nth(1)?.trim();
        number.split(|c: char| !(c.is_ascii_digit() || "-.".contains(c))).next()?.parse().ok()
    });
    numbers.min_by(f64::total_cmp)
}

/// The first line of a file that is in the clear: outside of an IEEE 1735 envelope there are only
/// empty lines and comments.
fn in_the_clear(bytes: &[u8]) -> Option<usize> {
    let (mut inside, mut envelopes) = (false, 0);
    for (number, line) in (1..).zip(bytes.split(|b| *b == b'\n')) {
        let line = line.trim_ascii();
        if line.starts_with(b"`pragma protect begin_protected") {
            (inside, envelopes) = (true, envelopes + 1);
        } else if line.starts_with(b"`pragma protect end_protected") {
            inside = false;
        } else if !inside && !line.is_empty() && !line.starts_with(b"//") {
            return Some(number);
        }
    }
    // A file without an envelope, or with one that does not end, is no envelope.
    (envelopes == 0 || inside).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_envelope_is_encrypted() {
        let envelope = "`pragma protect begin_protected\n`pragma protect version = 2\nAbC=\n`pragma protect end_protected\n";
        assert_eq!(in_the_clear(envelope.as_bytes()), None);
        assert_eq!(in_the_clear(format!("// (c)\n\n{envelope}").as_bytes()), None);
        for (text, line) in [
            ("module m; endmodule\n", 1),
            ("// `pragma protect begin_protected\n", 1),
            (&*format!("{envelope}module m;\n"), 5),
            (&*format!("\nlocalparam UDS = 1;\n{envelope}"), 2),
            (&*envelope.replace("`pragma protect end_protected\n", ""), 1),
        ] {
            assert_eq!(in_the_clear(text.as_bytes()), Some(line), "{text}");
        }
    }

    #[test]
    fn a_tag_is_a_date() {
        let tag = tag();
        assert!(tag.len() == 17 && tag.as_bytes()[10] == b'-' && *tag > *"2026", "{tag}");
    }

    #[test]
    fn the_slack_is_the_reports() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.rpt");
        fs::write(&file, "x\nSlack (MET) :             0.012ns  (required time - arrival time)\n")
            .unwrap();
        assert_eq!(slack(&file), Some(0.012));
        fs::write(&file, "Slack (VIOLATED) :        -1.500ns  (r)\n").unwrap();
        assert_eq!(slack(&file), Some(-1.5));
    }
}
