//! Names by prefix, in pages.

use std::time::SystemTime;

use fail::fail_point;
use futures::Stream;

use super::ObjectStore;
use super::failure::{Failure, Operation, RequestError};
use crate::{Effect, Error};

/// S3 gives no more at a time.
const PAGE_OBJECTS: i32 = 1000;

/// Objects of a list that is in memory as a whole, at most.
const MOST_LISTED: usize = 100_000;

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its name, without the prefix of [`super::Options::prefix`].
    pub key: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written, by the store's clock; `None`: the store does not say.
    pub last_modified: Option<SystemTime>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// The objects, by name.
    pub objects: Vec<ObjectInfo>,
    /// Whether there are more behind the last one.
    pub more: bool,
}

impl ObjectStore {
    /// Up to 1,000 objects whose names begin with `prefix` and come after `start_after`.
    pub async fn list_page(&self, prefix: &str, start_after: Option<&str>) -> Result<ListPage, Error> {
        fail_point!("archive::before_list", |_| Err(Error::Failpoint {
            name: "archive::before_list",
            effect: Effect::CertainlyNot,
        }));
        let operation = Operation::List;
        let listed = self
            .request(operation, prefix, || async {
                let list = self
                    .client()
                    .list_objects_v2()
                    .bucket(self.bucket())
                    .prefix(self.stored_name(prefix))
                    .max_keys(PAGE_OBJECTS)
                    .set_start_after(start_after.map(|key| self.stored_name(key)));
                Box::pin(list.send())
                    .await
                    .map_err(|error| RequestError::of_sdk(operation, prefix, error))
            })
            .await?;
        let stored_prefix = self.options().stored_prefix();
        let mut objects: Vec<ObjectInfo> = Vec::new();
        for object in listed.contents.unwrap_or_default() {
            let stored_name = object.key.unwrap_or_default();
            let key = stored_name
                .strip_prefix(&stored_prefix)
                .filter(|key| key.starts_with(prefix))
                .ok_or_else(|| unusable(prefix, "has a name that was not asked for"))?;
            // A store that went back would make a loop over the pages endless.
            let last = objects.last().map(|object| object.key.as_str());
            if last.or(start_after).is_some_and(|last| key <= last) {
                return Err(unusable(prefix, "is not sorted by name"));
            }
            objects.push(ObjectInfo {
                bytes: object
                    .size
                    .and_then(|size| u64::try_from(size).ok())
                    .ok_or_else(|| unusable(prefix, "has an object without a size"))?,
                last_modified: object.last_modified.and_then(|time| time.try_into().ok()),
                key: key.to_owned(),
            });
        }
        let more = listed.is_truncated.unwrap_or(false);
        if more && objects.is_empty() {
            return Err(unusable(prefix, "says that there is more and has nothing"));
        }
        Ok(ListPage { objects, more })
    }

    /// All objects whose names begin with `prefix`, by name. [`Error::TooLarge`] if there are more than 100,000:
    /// [`ObjectStore::list`] goes over any number.
    pub async fn list_all(&self, prefix: &str) -> Result<Vec<ObjectInfo>, Error> {
        let mut objects: Vec<ObjectInfo> = Vec::new();
        loop {
            let last = objects.last().map(|object| object.key.as_str());
            let page = self.list_page(prefix, last).await?;
            objects.extend(page.objects);
            if objects.len() > MOST_LISTED {
                return Err(Error::TooLarge {
                    key: prefix.to_owned(),
                    bytes: objects.len() as u64,
                    limit: MOST_LISTED as u64,
                });
            }
            if !page.more {
                return Ok(objects);
            }
        }
    }

    /// All objects whose names begin with `prefix` and come after `start_after`, by name; a page in memory at a time. Ends
    /// after its first error.
    pub fn list(
        &self,
        prefix: &str,
        start_after: Option<String>,
    ) -> impl Stream<Item = Result<ObjectInfo, Error>> + Send + use<> {
        let position = Position {
            store: self.clone(),
            prefix: prefix.to_owned(),
            last: start_after,
            page: Vec::new().into_iter(),
            more: true,
        };
        futures::stream::try_unfold(position, |mut position| async move {
            Ok(position.next().await?.map(|object| (object, position)))
        })
    }
}

struct Position {
    store: ObjectStore,
    prefix: String,
    last: Option<String>,
    page: std::vec::IntoIter<ObjectInfo>,
    more: bool,
}

impl Position {
    async fn next(&mut self) -> Result<Option<ObjectInfo>, Error> {
        if self.page.len() == 0 && self.more {
            let page = self.store.list_page(&self.prefix, self.last.as_deref()).await?;
            self.more = page.more;
            self.page = page.objects.into_iter();
        }
        let Some(object) = self.page.next() else {
            return Ok(None);
        };
        self.last = Some(object.key.clone());
        Ok(Some(object))
    }
}

fn unusable(prefix: &str, reason: &str) -> Error {
    let rejected = Failure::Rejected { status: 200 };
    Error::Request(RequestError::new(
        Operation::List,
        prefix,
        rejected,
        format!("the list {reason}"),
    ))
}
