//! A part of a bucket of the benchmark's own: the archive of the stage's services, and what raw clients put.

use toml::{Table, Value};
use wakelog_archive::{ObjectStore, Options};

use crate::Error;

/// A part of a bucket, below a prefix that nobody else has.
pub(crate) struct Bucket {
    /// The user's bucket, with the user's prefix.
    whole: Options,
    folder: String,
}

impl Bucket {
    /// The part of the bucket below `folder`.
    pub(crate) fn new(whole: Options, folder: &str) -> Self {
        Self {
            whole,
            folder: folder.to_owned(),
        }
    }

    /// Where the services archive to.
    pub(crate) fn archive(&self) -> Options {
        self.below("archive")
    }

    /// Where raw clients put the same objects.
    pub(crate) fn raw(&self) -> Options {
        self.below("raw")
    }

    fn below(&self, name: &str) -> Options {
        let own = format!("{}/{name}", self.folder);
        let prefix = match &self.whole.prefix {
            Some(prefix) => format!("{prefix}/{own}"),
            None => own,
        };
        Options {
            prefix: Some(prefix),
            ..self.whole.clone()
        }
    }

    /// Adds the archive to the settings of the services.
    pub(crate) fn add_to(&self, settings: &mut Table) {
        let archive = self.archive();
        let texts = [
            ("s3_endpoint", archive.endpoint),
            ("s3_bucket", Some(archive.bucket)),
            ("s3_region", Some(archive.region)),
            ("s3_access_key", archive.access_key),
            ("s3_secret_key", archive.secret_key),
            ("s3_prefix", archive.prefix),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                settings.insert(key.to_owned(), Value::String(text));
            }
        }
        settings.insert("s3_path_style".to_owned(), Value::Boolean(archive.path_style));
    }

    /// Deletes everything that is below the prefix.
    pub(crate) async fn empty(&self) -> Result<(), Error> {
        let objects = ObjectStore::new(self.whole.clone())?;
        objects.delete_prefix(&format!("{}/", self.folder)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_puts_is_below_a_prefix_of_its_own() {
        let mut whole = Options::new("region", "bucket");
        assert_eq!(
            Bucket::new(whole.clone(), "own").archive().prefix.as_deref(),
            Some("own/archive")
        );
        whole.prefix = Some("team/a".to_owned());
        let bucket = Bucket::new(whole, "own");
        assert_eq!(bucket.archive().prefix.as_deref(), Some("team/a/own/archive"));
        assert_eq!(bucket.raw().prefix.as_deref(), Some("team/a/own/raw"));
        let mut settings = Table::new();
        bucket.add_to(&mut settings);
        assert_eq!(settings["s3_prefix"].as_str(), Some("team/a/own/archive"));
        assert!(!settings.contains_key("s3_endpoint"));
    }
}
