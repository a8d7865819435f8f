//! Bodies of requests, read into memory that has a bound: for all tenants together, and for each.
//!
//! Room is taken as the bytes come, not as they are announced: who announces much and sends little
//! keeps nobody out. A tenant that sends much has half of the room at most.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, StatusCode, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use ucl_link::{MAX_ENVELOPE, Name};

use super::problem::Problem;

/// How long a request may take to arrive and be answered, its body aside.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes in a second that the body of a request has to come with.
const SLOWEST: u64 = 4 << 10;
/// Bytes for which room is taken at once.
const PIECE: usize = 1 << 10;

/// How long a request of this head may take.
pub fn patience(headers: &HeaderMap) -> Duration {
    let bytes = if headers.contains_key(header::TRANSFER_ENCODING) { MAX_ENVELOPE } else { announced(headers) };
    // What is larger is refused by its head.
    PATIENCE + Duration::from_secs(bytes.min(MAX_ENVELOPE) as u64 / SLOWEST)
}

/// The length of a body, as its head says.
fn announced(headers: &HeaderMap) -> usize {
    headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0)
}

/// Memory for bodies.
pub struct Room {
    pieces: Arc<Semaphore>,
    share: usize,
    tenants: Mutex<HashMap<Name, Arc<Semaphore>>>,
}

/// A body, and the room that it takes as long as anybody has it.
#[derive(Default)]
struct Taken {
    bytes: Vec<u8>,
    pieces: usize,
    permits: Vec<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Taken {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Room {
    /// Room for so many bytes.
    pub fn new(bytes: usize) -> Self {
        let share = (bytes / 2).max(MAX_ENVELOPE).div_ceil(PIECE);
        let pieces = Arc::new(Semaphore::new(bytes.div_ceil(PIECE)));
        Self { pieces, share, tenants: Mutex::default() }
    }

    fn of_tenant(&self, tenant: &Name) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tenants.entry(tenant.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.share))))
    }

    /// Reads a body of at most so many bytes. The tenant has a token.
    pub async fn take(
        &self,
        tenant: &Name,
        headers: &HeaderMap,
        mut body: Body,
        most: usize,
    ) -> Result<Bytes, Problem> {
        let too_large = || {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a request to this address has at most {most} bytes"))
        };
        let packed = headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        if packed {
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the body as it is, not compressed"));
        }
        let most = match announced(headers) {
            0 => most,
            announced if announced > most => return Err(too_large()),
            announced => announced,
        };
        let rooms = [Arc::clone(&self.pieces), self.of_tenant(tenant)];
        let mut taken = Taken::default();
        while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let broken = |_| Problem::bad_request("the body broke off");
            // What is no data are trailers, which say nothing here.
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            let length = taken.bytes.len() + data.len();
            if length > most {
                return Err(too_large());
            }
            if length > taken.bytes.capacity() {
                taken.grow(&rooms, (2 * taken.bytes.capacity()).clamp(length, most))?;
            }
            taken.bytes.extend_from_slice(&data);
        }
        Ok(Bytes::from_owner(taken))
    }
}

impl Taken {
    /// Makes room for so many bytes in all.
    fn grow(&mut self, rooms: &[Arc<Semaphore>], bytes: usize) -> Result<(), Problem> {
        let pieces = bytes.div_ceil(PIECE);
        for room in rooms {
            let permit = Arc::clone(room).try_acquire_many_owned((pieces - self.pieces) as u32);
            self.permits.push(permit.map_err(|_| Problem::busy("too many bytes are waiting to be taken"))?);
        }
        self.pieces = pieces;
        self.bytes.reserve_exact(bytes - self.bytes.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_take_as_long_as_it_is() {
        let head = |name: header::HeaderName, value: &str| HeaderMap::from_iter([(name, value.parse().unwrap())]);
        let seconds = |headers: &HeaderMap| patience(headers).as_secs();
        assert_eq!(seconds(&HeaderMap::new()), 60);
        assert_eq!(seconds(&head(header::CONTENT_LENGTH, "1048576")), 60 + 256);
        let longest = 60 + (MAX_ENVELOPE >> 12) as u64;
        assert_eq!(seconds(&head(header::CONTENT_LENGTH, "18446744073709551615")), longest);
        assert_eq!(seconds(&head(header::TRANSFER_ENCODING, "chunked")), longest);
    }
}
