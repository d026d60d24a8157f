//! What the archiver made of the session's checkpoints, and that the next resume needs nothing of it.

use std::path::Path;
use std::time::Instant;

use wakelog_client::{Connection, ReceivedBody};
use wakelog_model::SessionId;
use wakelog_proto::v1::LifetimeGrant;

use super::stage::Stage;
use super::{PATIENCE, resume};
use crate::exit::Error;
use crate::services::store_error;
use crate::up::stack::RunningStack;

/// Segments that are shown.
const SHOWN: u32 = 20;

/// Waits until what the checkpoints superseded has left the hot tail, and shows where it went.
pub(super) async fn show_segments(
    stage: &Stage,
    stack: &RunningStack,
    session_id: &str,
) -> Result<(), Error> {
    let session: SessionId = session_id
        .parse()
        .map_err(|error: wakelog_model::Error| Error::failed(error.to_string()))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let tails = stack.store.hot_tails(&[session]).await.map_err(store_error)?;
        let is_settled = tails
            .first()
            .is_some_and(|tail| !tail.superseded_rows && tail.last_checkpoint_seq > 1);
        if is_settled {
            break;
        }
        if Instant::now() > deadline {
            return Err(Error::failed(format!(
                "superseded entries were not archived within {PATIENCE:?}"
            )));
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let segments = stack
        .store
        .segments_page(session, None, SHOWN)
        .await
        .map_err(store_error)?;
    stage.step("entries that a checkpoint superseded have moved to the archive, PUT before prune")?;
    for segment in segments {
        stage.detail(&format!(
            "entries {:>2} to {:>2}  {:<11} {:>6} B in {:>5} B  {}",
            segment.min_entry_seq,
            segment.max_entry_seq,
            segment.kind.name(),
            segment.plain_bytes,
            segment.object_bytes,
            segment.key.rsplit('/').next().unwrap_or_default(),
        ))?;
    }
    Ok(())
}

/// Resumes once more, and says how often that asked the archive.
pub(super) async fn resume_without_archive(
    stage: &Stage,
    stack: &RunningStack,
    connection: &Connection,
    session_id: &str,
    file: &Path,
) -> Result<(LifetimeGrant, ReceivedBody, bool), Error> {
    let requests = || {
        stack
            .objects
            .as_ref()
            .map_or(0, wakelog_archive::ObjectStore::requests)
    };
    let before = requests();
    let (lifetime, body) = resume(connection, "container-c", session_id, file).await?;
    let asked = requests() - before;
    let line = format!(
        "container C resumes {} bytes from the hot tail alone: {asked} requests to the archive",
        body.length
    );
    match asked {
        0 => stage.good(&line)?,
        _ => stage.bad(&line)?,
    }
    Ok((lifetime, body, asked == 0))
}
