//! Removals.

use fail::fail_point;
use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use super::ObjectStore;
use super::failure::{Failure, Operation, RequestError};
use crate::Error;

/// Removals that are on their way at a time.
const DELETES_AT_A_TIME: usize = 8;

impl ObjectStore {
    /// Removes an object. One that is absent is removed.
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        fail_point!("archive::before_delete", |_| Err(Error::Failpoint {
            name: "archive::before_delete",
            effect: crate::error::Effect::CertainlyNot,
        }));
        let operation = Operation::Delete;
        let deleted = self
            .request(operation, key, || async {
                let delete = self
                    .client()
                    .delete_object()
                    .bucket(self.bucket())
                    .key(self.stored_name(key));
                Box::pin(delete.send())
                    .await
                    .map_err(|error| RequestError::of_sdk(operation, key, error))
            })
            .await;
        match deleted {
            Ok(_) => Ok(()),
            Err(error) if error.failure() == Some(Failure::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes every object whose name begins with `prefix`, which ends in a slash. Returns how many. What is written
    /// meanwhile may stay: a sweep again later finds it. After an error some are removed.
    pub async fn delete_prefix(&self, prefix: &str) -> Result<u64, Error> {
        // "sessions/1" would take "sessions/12" with it, and an empty one everything.
        if !prefix.ends_with('/') || prefix.starts_with('/') {
            return Err(Error::Bug(format!("removal of the prefix {prefix:?}")));
        }
        let mut removed = 0;
        let mut last: Option<String> = None;
        loop {
            let page = self.list_page(prefix, last.as_deref()).await?;
            removed += page.objects.len() as u64;
            last = page.objects.last().map(|object| object.key.clone());
            stream::iter(page.objects)
                .map(|object| Ok::<_, Error>(async move { self.delete(&object.key).await }))
                .try_buffer_unordered(DELETES_AT_A_TIME)
                .try_collect::<()>()
                .await?;
            if !page.more {
                return Ok(removed);
            }
        }
    }
}
