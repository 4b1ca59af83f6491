//! The environment's proxy for a verifier service.

use ureq::http::Uri;
use ureq::{Proxy, ProxyProtocol};

use crate::SdkError;

/// Variables that name a proxy; the first one set counts. `NO_PROXY` names hosts that are reached
/// directly.
const VARIABLES: [&str; 6] =
    ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

/// A proxy, and its name in messages: without the password that its address may hold.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) proxy: Proxy,
    pub(crate) name: String,
}

/// The environment's proxy for `uri`.
///
/// # Errors
/// [`SdkError::Proxy`] if this program cannot use it: bypassing it is not this program's decision.
pub(crate) fn for_service(uri: &Uri) -> Result<Option<Named>, SdkError> {
    let variable = |name: &'static str| {
        std::env::var(name).ok().filter(|value| !value.is_empty()).map(|value| (name, value))
    };
    let Some((variable, value)) = VARIABLES.into_iter().find_map(variable) else { return Ok(None) };
    let named = named(variable, &value)?;
    // The same variables, with NO_PROXY applied.
    let excluded = Proxy::try_from_env().is_some_and(|proxy| proxy.is_no_proxy(uri));
    Ok((!excluded).then_some(named))
}

fn named(variable: &str, value: &str) -> Result<Named, SdkError> {
    let refused =
        |name: String, reason: &str| Err(SdkError::Proxy { name, reason: reason.to_owned() });
    let Ok(proxy) = Proxy::new(value) else {
        return refused(
            variable.to_owned(),
            "not the address of a proxy, such as http://proxy.example:3128",
        );
    };
    let scheme = match proxy.protocol() {
        ProxyProtocol::Http => "http",
        ProxyProtocol::Https => "https",
        _ => {
            return refused(
                variable.to_owned(),
                "a SOCKS proxy, and this program uses proxies of http:// and https:// only",
            );
        }
    };
    let name = format!("{scheme}://{}:{} ({variable})", proxy.host(), proxy.port());
    Ok(Named { proxy, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_used_or_refused_and_named_without_its_password() {
        assert_eq!(
            named("HTTPS_PROXY", "http://127.0.0.1:9").unwrap().name,
            "http://127.0.0.1:9 (HTTPS_PROXY)"
        );
        let with_password = named("ALL_PROXY", "http://user:secret@proxy.example:3128").unwrap();
        assert_eq!(with_password.name, "http://proxy.example:3128 (ALL_PROXY)");
        for value in [
            "socks5://127.0.0.1:9",
            "socks5h://127.0.0.1:9",
            "socks4://127.0.0.1:9",
            "ftp://127.0.0.1",
            "http://",
        ] {
            let error = named("ALL_PROXY", value).unwrap_err();
            assert!(
                error.code() == "SHEF-SDK-052" && error.to_string().contains("ALL_PROXY"),
                "{value}: {error}"
            );
        }
    }
}
