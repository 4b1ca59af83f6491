//! Errors of a project and of its sources.

use std::path::{Path, PathBuf};

use shef_gen::shield::Place;

use crate::verilog::Text;

shef_proto::coded! {
    /// Why a project or a design cannot be read.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// A top module or a named source does not exist.
        #[error("no source for module {module}: looked for {module}.sv in {searched}")]
        SourceMissing {
            /// Module or package.
            module: String,
            /// Folders searched.
            searched: String,
        } = "SHEF-RTL-004": "a module has no source file",
            "One module a file, file name = module name; look at the folders that the message lists.",
        /// A source contains something that a measured design must not contain.
        #[error("{place}: {what}")]
        Source {
            /// File, with line and column if known.
            place: String,
            /// Actual and expected content.
            what: String,
        } = "SHEF-RTL-018": "a source reads what is not measured",
            "A design's digest covers every byte that a tool reads for it: sources and headers are regular files of the project, and no \
             file, program or option outside of it decides what the design does. Write tables as constants or functions instead of \
             $readmemh; docs/how-to/your-accelerator.md has the rules.",
        /// Two files have the same name.
        #[error("{name} has two files: {first} and {second}")]
        Ambiguous {
            /// Module, package or header.
            name: String,
            /// One file.
            first: String,
            /// The other.
            second: String,
        } = "SHEF-RTL-019": "two files have one name",
            "One module a file, file name = module name, and each name once in a project (names that differ by case only are one, and \
             macros may make a name): remove or rename one of the two. The names of the Shield's modules are taken.",
        /// The folder of a user's design is incomplete.
        #[error("project {}: {what}", dir.display())]
        Folder {
            /// The folder.
            dir: PathBuf,
            /// What is wrong.
            what: String,
        } = "SHEF-CARD-003": "the folder of a design of your own lacks something",
            "a project is a folder with shield.toml and a module shef_accel in shef_accel.sv, or with a shef.toml that names them; \
             docs/how-to/your-accelerator.md shows how",
        /// The Shield's configuration is invalid.
        #[error("{}:{error}", file.display())]
        Shield {
            /// The file.
            file: PathBuf,
            /// The error, with its position.
            error: shef_gen::shield::ShieldError,
        } => { error, .. } error.code(),
        /// No sources of Ibex at the expected place.
        #[error("no Ibex at {0}, expected rtl/ibex_core.sv below it: run `cargo xtask setup` without SHEF_IBEX, or set SHEF_IBEX to its folder")]
        IbexMissing(String) = "SHEF-RTL-017": "Ibex is not there",
            "The Security Kernel's processor comes from Ibex. `cargo xtask setup` fetches the pinned sources; SHEF_IBEX names others (the \
             folder that holds rtl and vendor).",
        /// A file system error.
        #[error("{what} {path}: {reason}")]
        Io {
            /// The operation.
            what: &'static str,
            /// Its path.
            path: String,
            /// The system's message.
            reason: String,
        } = "SHEF-PRJ-001": "a source cannot be read",
            "The message has the path and the system's words: look at its permissions and at links that lead nowhere.",
        /// The payload of an image cannot be packed.
        #[error("the payload cannot be packed: {0}")]
        Packed(String) = "SHEF-PRJ-002": "the sources do not fit into an image's archive",
            "The message says why: names of sources have at most a few hundred bytes.",
        /// `shef.toml` is not TOML, or has an unknown key or a value of the wrong type.
        #[error("{}:{}", file.display(), place.render(message))]
        File {
            /// The file.
            file: PathBuf,
            /// Position.
            place: Place,
            /// The parser's message.
            message: String,
        } = "SHEF-PRJ-003": "shef.toml is not TOML, or has an unknown key or a value of the wrong type",
            "The message points at line and column. docs/reference/project.md lists all keys.",
        /// `shef.toml` breaks a rule.
        #[error("{}:{}", file.display(), place.render(message))]
        Rule {
            /// The file.
            file: PathBuf,
            /// Position.
            place: Place,
            /// The rule, and what was found.
            message: String,
        } = "SHEF-PRJ-004": "shef.toml describes an impossible project",
            "The message points at line and column and names the rule. docs/reference/project.md lists all rules.",
        /// A file list.
        #[error("{place}: {what}")]
        List {
            /// File, with line and column if known.
            place: String,
            /// Actual and expected content.
            what: String,
        } = "SHEF-PRJ-005": "a file list has something that a project cannot use",
            "The message points at line and column. Paths are relative to the list's folder or to the project's; every file is in the \
             project's folder. docs/reference/project.md lists the options.",
        /// The top module.
        #[error("{place}: {what}")]
        Top {
            /// File, with line and column if known.
            place: String,
            /// Actual and expected module.
            what: String,
        } = "SHEF-PRJ-006": "the project has no module that can be the accelerator",
            "The top module, shef_accel or the one that `top` names, has the ports that docs/how-to/your-accelerator.md lists in section 2.",
        /// The front end that reads the ports.
        #[error("{0}")]
        FrontEnd(String) = "SHEF-PRJ-007": "the netlist's front end did not read the project",
            "`cargo xtask setup` fetches the pinned yosys; SHEF_YOSYS names another one with the slang front end. If it refuses the \
             sources, the message has its errors.",
    }
}

impl Error {
    /// Two files of a name, with the places where they declare it, if they do.
    pub(crate) fn ambiguous(name: &str, first: &Path, second: &Path) -> Self {
        let [first, second] = [first, second].map(|path| {
            let bytes = std::fs::read(path).unwrap_or_default();
            let text = Text::of(&bytes);
            let declared = text.declared.iter().find(|(_, declared)| *declared == name);
            declared.map_or(path.display().to_string(), |(at, _)| place(path, &bytes, *at))
        });
        Self::Ambiguous { name: name.to_owned(), first, second }
    }

    /// A source with line and column of the byte at `offset`.
    pub(crate) fn at(path: &Path, text: &[u8], offset: usize, what: String) -> Self {
        Self::Source { place: place(path, text, offset), what }
    }

    pub(crate) fn io(what: &'static str, path: &Path, e: &std::io::Error) -> Self {
        Self::Io { what, path: path.display().to_string(), reason: e.to_string() }
    }
}

/// A file with line and column of the byte at `offset`.
pub(crate) fn place(path: &Path, text: &[u8], offset: usize) -> String {
    let before = &text[..offset.min(text.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
    format!("{}:{line}:{column}", path.display())
}
