//! Names of tenants, keys, policies and identities, and paths of KBS resources.

/// Name of a tenant, key, policy: `[a-z0-9][a-z0-9._-]{0,63}`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let good =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(byte);
    (1..=64).contains(&bytes.len())
        && bytes.iter().all(good)
        && bytes[0].is_ascii_alphanumeric()
        && !name.contains("..")
}

/// Path of a KBS resource, `REPOSITORY/TYPE/TAG`, as its clients write it: each part
/// `[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}`, in upper or lower case.
#[must_use]
pub fn is_path(path: &str) -> bool {
    let part = |part: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        (1..=64).contains(&part.len())
            && part.bytes().all(good)
            && !part.starts_with('.')
            && !part.contains("..")
    };
    path.split('/').count() == 3 && path.split('/').all(part)
}

/// The rule of [`is_name`], for error messages.
#[must_use]
pub fn name_rule() -> &'static str {
    "names are 1 to 64 characters: lower-case letters, digits, '-', '_' and '.', beginning with a letter or digit"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "0", "default", "a.b-c_d", &"x".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in
            ["", "A", "../a", "a/b", "a..b", ".a", "-a", "é", "a b", "a%2f", "a\0", &"x".repeat(65)]
        {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
