//! The paths of LibreSpeed's server (`backend/*.php`).

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use super::load::{Exact, receive};
use super::nq::{CONGESTION, octets};
use super::{Caller, Name, Program, Refused};
use crate::server::web::content::Content;
use crate::server::web::requests::field;

const NAME: Name = Name { program: Program::LibreSpeed, number: None };
/// A chunk, the unit of `ckSize`.
const CHUNK: u64 = 1 << 20;
/// Chunks of an answer, if the request names no number, and at most.
const CHUNKS: [u64; 2] = [4, 1024];

/// `GET garbage.php?ckSize=N`.
pub(super) async fn garbage(caller: &Arc<Caller>, query: Option<&str>) -> Result<Response<Content>, Refused> {
    let chunks = field(query.unwrap_or_default(), "ckSize").map_or(Some(CHUNKS[0]), |text| text.parse().ok());
    let chunks = chunks.ok_or(Refused::new(StatusCode::BAD_REQUEST, "ckSize is not a number"))?;
    let flow = caller.flow(NAME, caller.most_flows()).await?;
    caller.sends(&flow.other, CONGESTION);
    Ok(octets(Content::Exact(Box::new(Exact::new(flow, chunks.clamp(1, CHUNKS[1]) * CHUNK)))))
}

/// `empty.php`: a ping with GET, an upload with POST.
pub(super) async fn empty(caller: &Arc<Caller>, request: Request<Incoming>) -> Result<Response<Content>, Refused> {
    if request.method() == Method::POST {
        let flow = caller.flow(NAME, caller.most_flows()).await?;
        receive(request.into_body(), &flow).await?;
    } else {
        caller.short(NAME)?;
    }
    Ok(Response::new(Content::Whole(None)))
}

/// `getIP.php`: the client's own address.
pub(super) fn address(caller: &Caller) -> Result<Response<Content>, Refused> {
    caller.short(NAME)?;
    let text = json!({"processedString": caller.from.ip().to_canonical().to_string(), "rawIspInfo": ""});
    let mut response = Response::new(Content::Whole(Some(text.to_string().into())));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    Ok(response)
}
