//! The S3 server, and the way to it.

use std::sync::Arc;
use std::time::Duration;

use super::Place;
use crate::schedule::{Fault, ObjectStoreFault, Strike};
use crate::support::native::s3_proxy;

/// How much later answers come when it is slow.
const SLOW: Duration = Duration::from_millis(900);

pub(super) async fn strike_all(place: Arc<Place>, strikes: Vec<Strike>, length: Duration) {
    for strike in strikes {
        if !place.is_due(&strike, length).await {
            break;
        }
        let Fault::ObjectStore(fault) = strike.fault else {
            continue;
        };
        let from = place.availability.now();
        hurt(&place, &strike, fault).await;
        let met = place.to_objects.met();
        place.to_objects.set(s3_proxy::Fault::None);
        place.mended(&strike, from, format!("{met} requests"));
    }
}

async fn hurt(place: &Arc<Place>, strike: &Strike, fault: ObjectStoreFault) {
    match fault {
        ObjectStoreFault::Killed => {
            place.engines.s3.kill();
            tokio::time::sleep(strike.lasts).await;
            let place = place.clone();
            let started = tokio::task::spawn_blocking(move || place.engines.s3.start()).await;
            started.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
        }
        ObjectStoreFault::Frozen => {
            place.engines.s3.signal("STOP");
            tokio::time::sleep(strike.lasts).await;
            place.engines.s3.signal("CONT");
        }
        ObjectStoreFault::Slow => behave(place, strike, s3_proxy::Fault::Slow(SLOW)).await,
        ObjectStoreFault::Refuses => behave(place, strike, s3_proxy::Fault::SlowDown).await,
        ObjectStoreFault::LosesAnswers => behave(place, strike, s3_proxy::Fault::LoseAnswers).await,
    }
}

async fn behave(place: &Place, strike: &Strike, fault: s3_proxy::Fault) {
    place.to_objects.set(fault);
    tokio::time::sleep(strike.lasts).await;
}
