//! What the database's settings cost, said at the start.

use wakelog_store::Store;

use super::store_error;
use crate::exit::Error;

/// Says aloud what the server may lose although it has confirmed it. It is used all the same.
pub(crate) async fn warn_of_weaknesses(store: &Store) -> Result<(), Error> {
    for weak in store.weaknesses().await.map_err(store_error)? {
        tracing::warn!(hint = weak.mend, "database setting: {}", weak.what);
    }
    Ok(())
}
