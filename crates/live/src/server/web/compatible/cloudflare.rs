//! The engine of Cloudflare's speed test (`@cloudflare/speedtest`), which pages of other sites run.

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::load::{Exact, receive};
use super::nq::{CONGESTION, octets};
use super::{Caller, Name, Program, Refused};
use crate::server::web::content::Content;
use crate::server::web::requests::field;

const NAME: Name = Name { program: Program::Cloudflare, number: None };
/// The engine's pings are downloads of nothing; so few bytes are no load.
const SHORT: u64 = 1024;
/// What it downloads or uploads at the same time.
const FLOWS: usize = 1;
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// `GET /__down?bytes=N`.
pub(super) async fn down(caller: &Arc<Caller>, query: Option<&str>) -> Result<Response<Content>, Refused> {
    let asked = Instant::now();
    let bytes = field(query.unwrap_or_default(), "bytes").map_or(Some(0), |text| text.parse().ok());
    let bytes = bytes.ok_or(Refused::new(StatusCode::BAD_REQUEST, "bytes is not a number"))?;
    let content = if bytes <= SHORT {
        caller.short(NAME)?;
        Content::Whole((bytes > 0).then(|| vec![b'0'; bytes as usize].into()))
    } else {
        let flow = caller.flow(NAME, FLOWS).await?;
        caller.sends(&flow.other, CONGESTION);
        Content::Exact(Box::new(Exact::new(flow, bytes)))
    };
    Ok(timed(octets(content), asked))
}

/// `POST /__up`.
pub(super) async fn up(caller: &Arc<Caller>, request: Request<Incoming>) -> Result<Response<Content>, Refused> {
    let flow = caller.flow(NAME, FLOWS).await?;
    receive(request.into_body(), &flow).await?;
    Ok(timed(Response::new(Content::from("OK")), Instant::now()))
}

/// The engine subtracts the server's own time from round trips.
fn timed(mut response: Response<Content>, since: Instant) -> Response<Content> {
    let text = format!("cfReqDur;dur={:.3}", since.elapsed().as_secs_f64() * 1000.0);
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().insert(SERVER_TIMING, value);
    }
    response
}
