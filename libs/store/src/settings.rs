//! Whether the server keeps what it has confirmed. Wakelog acknowledges what a COMMIT has confirmed, and leaves these settings as
//! they are; what is off is said (acked-is-durable, level `STORE`).

use crate::error::{During, convert};
use crate::{Error, Store};

/// A setting of the server, or of its user or database, that weakens what a COMMIT means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weakness {
    /// What the setting is, and what it means.
    pub what: String,
    /// What to do about it.
    pub mend: &'static str,
}

/// Settings that have to be on, what they being off means, and what to do then.
const HAS_TO_BE_ON: [(&str, &str, &str); 3] = [
    (
        "fsync",
        "a crash of its machine may lose or damage anything in it",
        "set fsync = on in postgresql.conf",
    ),
    (
        "full_page_writes",
        "a crash of its machine in the middle of a write may damage what had long been stored",
        "set full_page_writes = on in postgresql.conf",
    ),
    (
        "synchronous_commit",
        "a crash may lose what it has confirmed a moment before",
        "set synchronous_commit = on, for the server, the database and the user",
    ),
];

impl Store {
    /// Settings that are off and should be on, as they are for this user in this database.
    pub async fn weaknesses(&self) -> Result<Vec<Weakness>, Error> {
        let mut connection = self.acquire().await?;
        let names: Vec<&str> = HAS_TO_BE_ON.iter().map(|(name, ..)| *name).collect();
        let off: Vec<String> =
            sqlx::query_scalar("SELECT name FROM pg_settings WHERE name = ANY($1) AND setting = 'off'")
                .bind(names)
                .fetch_all(&mut *connection)
                .await
                .map_err(|error| convert(During::Statement("the server's settings"), error))?;
        Ok(weaknesses_of(&off))
    }
}

fn weaknesses_of(off: &[String]) -> Vec<Weakness> {
    let weak = |(name, meaning, mend): &(&str, &str, &'static str)| Weakness {
        what: format!("{name} is off: {meaning}"),
        mend,
    };
    let is_off = |(name, ..): &&(&str, &str, &str)| off.iter().any(|off| off == name);
    HAS_TO_BE_ON.iter().filter(is_off).map(weak).collect()
}
