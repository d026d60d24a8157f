//! Whether the server is still the one that it was: where it is not, commits may be missing that it had confirmed.

use crate::error::{During, convert};
use crate::{Error, Store};

/// When its statistics began, which PostgreSQL throws away when it recovers from a crash, and when it was started: a server that
/// takes over, or comes back from a copy of its files, was started since, even where the statistics came with the files. The sum
/// of both, in microseconds: on one server it rises with either.
macro_rules! server_run {
    () => {
        "(SELECT coalesce((extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000)::bigint, 0)
               + coalesce((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, 0))"
    };
}

pub(crate) use server_run;

impl Store {
    /// A number that changes when the server was started again or has recovered from a crash, and when another one has taken over:
    /// what was confirmed a moment before may be lost. It also changes, for nothing, when an administrator resets the statistics of
    /// the background writer.
    pub async fn server_run(&self) -> Result<i64, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query_scalar(concat!("SELECT ", server_run!()))
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| convert(During::Statement("the server's run"), error))
    }
}
