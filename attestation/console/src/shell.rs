//! Commands that a message proposes, safe to paste.

use std::ffi::OsStr;
use std::path::Path;

/// A path as one word of a shell command.
#[must_use]
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    // A name that begins with a dash would be read as an option.
    quoted(if text.starts_with('-') { format!("./{text}") } else { text })
}

/// An argument as one word of a shell command.
#[must_use]
pub fn argument(argument: &OsStr) -> String {
    quoted(argument.display().to_string())
}

fn quoted(text: String) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        for (path, expected) in [
            ("/etc/shef-agent", "/etc/shef-agent"),
            ("/srv/my agent", "'/srv/my agent'"),
            ("/srv/a'b;rm -rf ~", r"'/srv/a'\''b;rm -rf ~'"),
            ("-R", "./-R"),
            ("/srv/$HOME", "'/srv/$HOME'"),
            ("$(id)", "'$(id)'"),
        ] {
            assert_eq!(word(Path::new(path)), expected);
        }
    }
}
