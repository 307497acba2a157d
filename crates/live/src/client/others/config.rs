//! What a server of responsiveness offers: the answer to a request for its configuration.

use hyper::Uri;
use serde::Deserialize;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::client::http::host_and_port;

/// Where a server's configuration is if a URL names no path (draft-ietf-ippm-responsiveness, section "Server").
pub const WELL_KNOWN: &str = "/.well-known/nq";
/// No configuration is longer.
pub const LONGEST: usize = 64 << 10;
/// The version of the format.
const VERSION: u64 = 1;

/// A server's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// An object that is large enough for any download.
    pub large: Uri,
    /// An object of one byte.
    pub small: Uri,
    /// Where uploads go.
    pub upload: Uri,
    /// The host to connect to instead of the one in the URLs, which stays the name in TLS and HTTP.
    pub test_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    version: Option<serde_json::Value>,
    urls: Option<Urls>,
    test_endpoint: Option<String>,
}

/// The names of the draft; older servers have those with `https`.
#[derive(Deserialize)]
struct Urls {
    large_download_url: Option<String>,
    small_download_url: Option<String>,
    upload_url: Option<String>,
    large_https_download_url: Option<String>,
    small_https_download_url: Option<String>,
    https_upload_url: Option<String>,
}

/// Reads a configuration. The error says what is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Config, String> {
    let found: Document = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is no such configuration: {:.200}", error.to_string()))?;
    match &found.version {
        Some(version) if version.as_u64() == Some(VERSION) => {}
        Some(version) => {
            // JSON allows control characters above 127 as they are.
            let version = version.to_string().replace(char::is_control, " ");
            return Err(format!("found version {version:.40}; known: {VERSION}"));
        }
        None => return Err("it has no version".to_owned()),
    }
    let urls = found.urls.ok_or("it has no urls")?;
    let config = Config {
        large: url("large_download_url", urls.large_download_url.or(urls.large_https_download_url))?,
        small: url("small_download_url", urls.small_download_url.or(urls.small_https_download_url))?,
        upload: url("upload_url", urls.upload_url.or(urls.https_upload_url))?,
        test_endpoint: found.test_endpoint.filter(|name| !name.is_empty()).map(host_name).transpose()?,
    };
    let host = host_and_port(&config.large);
    if [&config.small, &config.upload].into_iter().any(|url| host_and_port(url) != host) {
        return Err("its URLs have different hosts".to_owned());
    }
    Ok(config)
}

/// A name or an address: other messages repeat it, and go to terminals.
fn host_name(text: String) -> Result<String, String> {
    match ServerName::try_from(text.as_str()) {
        Ok(_) => Ok(text),
        Err(_) => Err(format!("test_endpoint: found {}; allowed: the name of a host", shown(&text))),
    }
}

/// The first characters of a string, as they may go to a terminal.
fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}

fn url(key: &str, text: Option<String>) -> Result<Uri, String> {
    let text = text.ok_or_else(|| format!("it has no {key}"))?;
    let url: Uri = text.parse().map_err(|error| format!("{key}: {error}"))?;
    match (url.scheme_str(), host_and_port(&url)) {
        (Some("https"), Some(_)) => Ok(url),
        _ => Err(format!("{key}: found {}; allowed: a URL that begins with https://", shown(&text))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn document(version: &str, urls: &str) -> String {
        format!(r#"{{"version": {version}, "urls": {{{urls}}}, "test_endpoint": "edge.example", "more": [1]}}"#)
    }

    const URLS: &str = r#""large_download_url": "https://h/large", "small_download_url": "https://h/small", "upload_url": "https://h:443/up""#;

    #[test]
    fn the_names_of_the_draft_and_older_ones_are_read() {
        let found = parse(document("1", URLS).as_bytes()).unwrap();
        assert_eq!((found.large.path(), found.upload.path()), ("/large", "/up"));
        assert_eq!(found.test_endpoint.as_deref(), Some("edge.example"));
        let older = URLS
            .replace("large_download", "large_https_download")
            .replace("small_download", "small_https_download")
            .replace("upload_url", "https_upload_url");
        assert_eq!(parse(document("1", &older).as_bytes()).unwrap().large, found.large);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            (String::new(), "no such configuration"),
            ("[]".to_owned(), "no such configuration"),
            (document("2", URLS), "version 2"),
            (document("\"1\"", URLS), "version"),
            (document("1", URLS).replace("\"version\": 1,", ""), "no version"),
            (document("1", &URLS.replace("upload_url", "upload")), "no upload_url"),
            (document("1", &URLS.replace("https://h/small", "http://h/small")), "https://"),
            (document("1", &URLS.replace("https://h/small", "https://other/small")), "different hosts"),
            (document("1", &URLS.replace("https://h/small", "https:///small")), "small_download_url"),
            (r#"{"version": 1}"#.to_owned(), "no urls"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_shortly_and_without_codes_for_terminals() {
        let long = "a".repeat(10_000);
        let with = |from: &str, to: &str| document("1", URLS).replace(from, to);
        for text in [
            with("edge.example", "edge\\u001b[2Jexample"),
            with("edge.example", &long),
            with("https://h/small", "ftp://h/\u{9b}2J"),
            format!(r#"{{"version": 1, "urls": "{long}"}}"#),
            document(&format!("\"{long}\""), URLS),
            document("\"\u{9b}2J\"", URLS),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.chars().count() < 700 && !error.contains(char::is_control), "{error:?}");
        }
        assert_eq!(
            parse(with("edge.example", "2001:db8::1").as_bytes()).unwrap().test_endpoint.unwrap(),
            "2001:db8::1"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
