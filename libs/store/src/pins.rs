//! The partition of a session, and the generation that is about to be bound.

use wakelog_model::SessionId;

use crate::error::{During, convert};
use crate::numbers::to_bigint;
use crate::{Error, Store};

const PIN: During = During::Statement("session pin");

impl Store {
    /// Pins the session to the partition unless it is pinned already, and says where it is pinned.
    pub async fn ensure_pin(&self, session: SessionId, partition: i32) -> Result<i32, Error> {
        let mut connection = self.acquire().await?;
        let inserted = sqlx::query(
            "INSERT INTO session_pins (session_id, partition) VALUES ($1, $2) ON CONFLICT (session_id) DO NOTHING",
        )
        .bind(session.0)
        .bind(partition)
        .execute(&mut *connection)
        .await
        .map_err(|error| convert(PIN, error))?;
        if inserted.rows_affected() == 1 {
            return Ok(partition);
        }
        // A statement of its own: one with the insert would not see a row that was committed meanwhile.
        sqlx::query_scalar("SELECT partition FROM session_pins WHERE session_id = $1")
            .bind(session.0)
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| convert(PIN, error))
    }

    /// Where the session is pinned; `None` if nowhere.
    pub async fn pin(&self, session: SessionId) -> Result<Option<i32>, Error> {
        let mut connection = self.acquire().await?;
        sqlx::query_scalar("SELECT partition FROM session_pins WHERE session_id = $1")
            .bind(session.0)
            .fetch_optional(&mut *connection)
            .await
            .map_err(|error| convert(PIN, error))
    }

    /// Announces a bind before it is published. The generation only ever rises. Announcing the same one again renews
    /// the time: each publish is followed by its whole message time-out.
    pub async fn raise_binding_generation(&self, session: SessionId, generation: u64) -> Result<(), Error> {
        let generation = to_bigint("generation", generation)?;
        let mut connection = self.acquire().await?;
        let updated = sqlx::query(
            "UPDATE session_pins
             SET binding_raised_at = CASE WHEN $2 >= binding_generation THEN now() ELSE binding_raised_at END,
                 binding_generation = greatest(binding_generation, $2)
             WHERE session_id = $1",
        )
        .bind(session.0)
        .bind(generation)
        .execute(&mut *connection)
        .await
        .map_err(|error| convert(PIN, error))?;
        if updated.rows_affected() == 0 {
            return Err(Error::Bug(format!(
                "a bind was announced for session {session}, which has no pin"
            )));
        }
        Ok(())
    }
}
