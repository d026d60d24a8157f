//! PostgreSQL, and the way to it.

use std::sync::Arc;
use std::time::Duration;

use super::{Place, one_of};
use crate::schedule::{DatabaseFault, Fault, Strike};
use crate::support::native::Kind;

/// COMMITs of one kind of service that are not answered in one strike.
const LOST_COMMITS: u64 = 3;

pub(super) async fn strike_all(place: Arc<Place>, strikes: Vec<Strike>, length: Duration) {
    for strike in strikes {
        if !place.is_due(&strike, length).await {
            break;
        }
        let Fault::Database(fault) = strike.fault else {
            continue;
        };
        let from = place.availability.now();
        let note = hurt(&place, &strike, fault).await;
        place.mended(&strike, from, note);
    }
}

async fn hurt(place: &Place, strike: &Strike, fault: DatabaseFault) -> String {
    let postgres = &place.engines.postgres;
    match fault {
        DatabaseFault::Killed => {
            postgres.kill().await;
            tokio::time::sleep(strike.lasts).await;
            postgres.start().await;
            String::new()
        }
        DatabaseFault::Frozen => {
            postgres.freeze();
            tokio::time::sleep(strike.lasts).await;
            postgres.thaw();
            String::new()
        }
        DatabaseFault::Terminated => match postgres.terminate_connections(&place.topic).await {
            Ok(ended) => format!("{ended} connections"),
            Err(error) => {
                place.fail(format!("connections could not be terminated: {error}"));
                String::new()
            }
        },
        DatabaseFault::CutOff => {
            let (kind, proxy) = &place.to_database[one_of(strike, 0, place.to_database.len())];
            proxy.cut();
            tokio::time::sleep(strike.lasts).await;
            proxy.mend();
            kind.command().to_owned()
        }
        // Who commits: the persister batches, the archiver flushes.
        DatabaseFault::LostCommits => {
            let wanted = match one_of(strike, 0, 3) {
                0 => Kind::Archive,
                _ => Kind::Persist,
            };
            let of_kind = place.to_database.iter().find(|(kind, _)| *kind == wanted);
            let (kind, proxy) = of_kind.expect("a way to the database");
            let before = proxy.lost();
            proxy.lose_commits(LOST_COMMITS);
            tokio::time::sleep(strike.lasts).await;
            proxy.lose_commits(0);
            format!("{} of {}", proxy.lost() - before, kind.command())
        }
    }
}
