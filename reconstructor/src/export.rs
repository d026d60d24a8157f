//! Handing out a body: the part that a resume and an export have in common, and the export.

use tokio_util::sync::CancellationToken;
use wakelog_model::SessionId;
use wakelog_proto::v1::{ExportSessionResponse, ResumeBody, ResumeBodyClose};

use crate::body::{PartReader, Range};
use crate::chunks::Chunks;
use crate::core::{Core, body_start};
use crate::outlet::Outlet;
use crate::sequence::Rule;
use crate::{Error, failpoint, metrics};

impl Core {
    /// Fixes the body of an export: all that was acknowledged before the call.
    pub(crate) async fn prepare_export(
        &self,
        session: SessionId,
        account: &str,
        abandoned: &CancellationToken,
    ) -> Result<Range, Error> {
        let partition = self.visible(session, account).await?.partition;
        self.pass_end(partition, abandoned).await?;
        let row = self.visible(session, account).await?;
        if row.last_entry_seq == 0 {
            return Err(Error::SessionEmpty);
        }
        Ok(Range {
            session,
            first: body_start(&row),
            last: row.last_entry_seq,
        })
    }

    /// Hands out the body, and its close.
    pub(crate) async fn export(
        &self,
        range: Range,
        outlet: &Outlet<ExportSessionResponse>,
    ) -> Result<(), Error> {
        let message = |resume_body| ExportSessionResponse {
            resume_body: Some(resume_body),
        };
        let reader = self.parts(range, Rule::Body);
        let close = send_body(reader, range, outlet, message).await?;
        failpoint::reach(failpoint::BEFORE_CLOSE)?;
        outlet.send(message(closing(close))).await
    }
}

/// Hands out all of a body but its close.
pub(crate) async fn send_body<T>(
    mut reader: PartReader,
    range: Range,
    outlet: &Outlet<T>,
    message: impl Fn(ResumeBody) -> T,
) -> Result<ResumeBodyClose, Error> {
    let chunk = |session_body| {
        message(ResumeBody {
            session_body,
            close: None,
        })
    };
    let mut chunks = Chunks::default();
    while let Some(part) = reader.next().await? {
        for bytes in chunks.push(part.plain).into_iter().flatten() {
            metrics::body_bytes(bytes.len() as u64);
            outlet.send(chunk(bytes)).await?;
        }
    }
    let (rest, close) = chunks.finish(range);
    if let Some(bytes) = rest {
        metrics::body_bytes(bytes.len() as u64);
        outlet.send(chunk(bytes)).await?;
    }
    Ok(close)
}

/// The message that makes a body usable.
pub(crate) fn closing(close: ResumeBodyClose) -> ResumeBody {
    ResumeBody {
        close: Some(close),
        ..ResumeBody::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::StreamExt as _;
    use sha2::{Digest as _, Sha256};
    use wakelog_model::limits::PART_SIZE;

    use super::*;
    use crate::fixtures::{Pages, entry, session};
    use crate::outlet::outlet;

    fn reader(pages: &Pages, range: Range) -> PartReader {
        PartReader::new(pages.clone(), range, Rule::Body, PART_SIZE)
    }

    #[tokio::test]
    async fn the_close_is_of_what_was_handed_out() {
        let pages = Pages::of([
            entry(1, true, vec![b'a'; PART_SIZE * 3 + 1]),
            entry(2, false, &b"b\n"[..]),
            entry(3, false, &b"c\n"[..]),
        ]);
        let range = Range {
            session: session(),
            first: 1,
            last: 3,
        };
        let (outlet, ending, stream) = outlet(CancellationToken::new(), Duration::from_secs(5));
        let sending = tokio::spawn(async move {
            let close = send_body(reader(&pages, range), range, &outlet, |body| body).await;
            ending.send(Ok(())).unwrap();
            close
        });
        let bodies: Vec<ResumeBody> = stream.map(Result::unwrap).collect().await;
        let received = bodies.iter().fold(Vec::new(), |mut all, body| {
            all.extend_from_slice(&body.session_body);
            all
        });
        let close = sending.await.unwrap().unwrap();
        assert!(bodies.iter().all(|body| body.close.is_none()));
        assert_eq!(close.length, received.len() as u64);
        assert_eq!(close.length, (PART_SIZE * 3 + 5) as u64);
        assert_eq!(close.sha256, Sha256::digest(&received).to_vec());
        assert_eq!((close.first_entry_seq, close.last_entry_seq), (1, 3));
    }

    #[tokio::test]
    async fn a_body_with_a_hole_has_no_close() {
        let pages = Pages::of([entry(1, true, &b"a\n"[..]), entry(3, false, &b"c\n"[..])]);
        let range = Range {
            session: session(),
            first: 1,
            last: 3,
        };
        let (outlet, _ending, _stream) = outlet(CancellationToken::new(), Duration::from_secs(5));
        let result = send_body(reader(&pages, range), range, &outlet, |body| body).await;
        assert!(matches!(result, Err(Error::Corrupt(_))));
    }
}
