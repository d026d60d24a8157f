//! Whether the user of a store may do what the services do in it. Asked before they begin: a right that is missing would
//! otherwise show with the first batch, or the first erasure.

use crate::error::{During, convert};
use crate::{Error, Store};

const RIGHTS: During = During::Statement("the user's rights");

/// What a service does in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Ingest reads sessions, lifetimes and progress.
    Ingest,
    /// The reconstructor reads them and what is stored of a session, and pins sessions.
    Reconstructor,
    /// The persister writes the hot tail.
    Persister,
    /// The archiver writes the manifest and prunes the hot tail.
    Archiver,
}

impl Use {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Ingest, Self::Reconstructor, Self::Persister, Self::Archiver];

    /// Tables, with the rights in each beyond reading it.
    fn tables(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Self::Ingest => &[
                ("agent_sessions", &[]),
                ("session_lifetimes", &[]),
                ("session_pins", &[]),
                ("stream_progress", &[]),
            ],
            Self::Reconstructor => &[
                ("agent_session_archive_segments", &[]),
                ("agent_session_transcript_entries", &[]),
                ("agent_sessions", &[]),
                ("session_lifetimes", &[]),
                ("session_pins", &["INSERT", "UPDATE"]),
                ("session_subscribers", &[]),
                ("stream_progress", &[]),
            ],
            Self::Persister => &[
                ("agent_session_transcript_entries", &["INSERT", "DELETE"]),
                ("agent_sessions", &["INSERT", "UPDATE"]),
                ("quarantined_records", &["INSERT", "UPDATE"]),
                ("session_lifetimes", &["INSERT", "UPDATE"]),
                ("session_pins", &["INSERT"]),
                ("session_subscribers", &["INSERT", "UPDATE", "DELETE"]),
                ("stream_progress", &["INSERT", "UPDATE"]),
            ],
            Self::Archiver => &[
                ("agent_session_archive_segments", &["INSERT", "UPDATE", "DELETE"]),
                ("agent_session_transcript_entries", &["DELETE"]),
                ("agent_sessions", &["UPDATE"]),
                ("archive_staged_objects", &["INSERT", "UPDATE", "DELETE"]),
                ("partition_coverage", &["INSERT", "UPDATE"]),
                ("session_archive_erasures", &["INSERT", "UPDATE"]),
                ("session_archive_snapshots", &["INSERT", "UPDATE", "DELETE"]),
                ("session_lifetimes", &[]),
                ("session_subscribers", &[]),
                ("stream_progress", &[]),
                ("topic_incarnations", &[]),
            ],
        }
    }
}

impl Store {
    /// [`Error::NotAllowed`] with every right that the user lacks for these uses. The schema must have been checked.
    pub async fn check_rights(&self, uses: &[Use]) -> Result<(), Error> {
        let (mut tables, mut rights) = (Vec::new(), Vec::new());
        for (table, further) in uses.iter().flat_map(|of| of.tables()) {
            for right in ["SELECT"].iter().chain(*further) {
                tables.push(*table);
                rights.push(*right);
            }
        }
        let mut connection = self.acquire().await?;
        let (user, lacking): (String, Vec<String>) = sqlx::query_as(
            "SELECT current_user::text, coalesce(array_agg(DISTINCT lacks), '{}')
             FROM (SELECT wanted.held || ' on ' || wanted.relation AS lacks
                   FROM unnest($1::text[], $2::text[]) AS wanted (relation, held)
                   WHERE NOT has_table_privilege(wanted.relation, wanted.held)) AS lacking",
        )
        .bind(tables)
        .bind(rights)
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(RIGHTS, error))?;
        match lacking.is_empty() {
            true => Ok(()),
            false => Err(Error::NotAllowed {
                reason: format!("user {user} lacks {}", lacking.join(", ")),
            }),
        }
    }

    /// [`Error::ReadOnly`] if the server takes no writes from this user.
    pub async fn check_writable(&self) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        let (is_standby, is_read_only): (bool, bool) =
            sqlx::query_as("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean")
                .fetch_one(&mut *connection)
                .await
                .map_err(|error| convert(RIGHTS, error))?;
        let reason = match (is_standby, is_read_only) {
            (true, _) => "it is a standby of another server",
            (false, true) => "its transactions are read-only by default",
            (false, false) => return Ok(()),
        };
        Err(Error::ReadOnly {
            reason: reason.to_owned(),
        })
    }

    /// [`Error::NotAllowed`] if the user may make no tables where they would be made.
    pub(crate) async fn check_may_create(&self) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        let (user, schema, may): (String, Option<String>, bool) = sqlx::query_as(
            "SELECT current_user::text, current_schema()::text,
                    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)",
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(RIGHTS, error))?;
        let schema = schema.unwrap_or_else(|| "(none in search_path)".to_owned());
        match may {
            true => Ok(()),
            false => Err(Error::NotAllowed {
                reason: format!("user {user} may make no tables in schema {schema}"),
            }),
        }
    }
}
