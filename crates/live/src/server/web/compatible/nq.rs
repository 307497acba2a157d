//! Responsiveness under working conditions (draft-ietf-ippm-responsiveness).

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::json;

use super::load::{Exact, receive};
use super::{Caller, HOUR, Name, Program, Refused, headers_of};
use crate::server::control::drawn;
use crate::server::web::content::Content;
use crate::server::web::requests::field;
use crate::time::monotonic_ns;

pub(super) const SMALL: &str = "/api/v1/small";
pub(super) const LARGE: &str = "/api/v1/large";
pub(super) const UPLOAD: &str = "/api/v1/upload";
/// The draft asks for at least 8 GB, so that no answer ends within a test.
const LARGE_BYTES: u64 = 8_000_000_000;
/// The congestion control of downloads, which is that of our own test: it fills buffers.
pub(super) const CONGESTION: &str = "cubic";
/// The field of a query that tells two tests behind one address apart.
const TEST: &str = "test";

/// Where the other resources are. Drafts before -03 had other names for the addresses, and some clients know only those.
pub(super) fn config(caller: &Caller, secret: Option<&str>, name: &str) -> Result<Response<Content>, Refused> {
    // It is another test than the one that may still run, except that this address may ask again.
    match caller.other_test(Name { program: Program::Nq, number: None }) {
        Ok(_) if !caller.asks() => return Err(Refused::limited("too many requests".to_owned(), HOUR)),
        Ok(_) => {}
        Err(refused) => return Err(refused),
    }
    let address = caller.from.ip();
    caller.server.ledger.may_begin(address, monotonic_ns()).map_err(|reason| Refused::limited(reason, HOUR))?;
    let (number, _) = drawn().map_err(|error| Refused::new(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()))?;
    let scheme = if caller.is_secure { "https" } else { "http" };
    let secret = secret.map_or_else(String::new, |secret| format!("/{secret}"));
    let url = |path: &str| format!("{scheme}://{name}{secret}{path}?{TEST}={:016x}", number.0);
    let (large, small, upload) = (url(LARGE), url(SMALL), url(UPLOAD));
    let text = json!({
        "version": 1,
        "urls": {
            "large_download_url": large,
            "small_download_url": small,
            "upload_url": upload,
            "large_https_download_url": large,
            "small_https_download_url": small,
            "https_upload_url": upload,
        },
    });
    let mut response = Response::new(Content::Whole(Some(text.to_string().into())));
    headers_of(&mut response, header::CONTENT_TYPE, "application/json");
    Ok(response)
}

fn test(query: Option<&str>) -> Name {
    let number = field(query.unwrap_or_default(), TEST).and_then(|text| u64::from_str_radix(text, 16).ok());
    Name { program: Program::Nq, number }
}

/// One byte.
pub(super) fn small(caller: &Caller, query: Option<&str>) -> Result<Response<Content>, Refused> {
    caller.short(test(query))?;
    Ok(octets(Content::from("x")))
}

/// The load from the server.
pub(super) async fn large(caller: &Arc<Caller>, query: Option<&str>) -> Result<Response<Content>, Refused> {
    let flow = caller.flow(test(query), caller.most_flows()).await?;
    caller.sends(&flow.other, CONGESTION);
    Ok(octets(Content::Exact(Box::new(Exact::new(flow, LARGE_BYTES)))))
}

/// The load to the server.
pub(super) async fn upload(caller: &Arc<Caller>, request: Request<Incoming>) -> Result<Response<Content>, Refused> {
    let flow = caller.flow(test(request.uri().query()), caller.most_flows()).await?;
    receive(request.into_body(), &flow).await?;
    Ok(Response::new(Content::Whole(None)))
}

pub(super) fn octets(content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    response
}
