//! Faults as the schedule says: each subject's one after the other, and each is mended before the next of that subject.
//!
//! | module | what it hurts |
//! |---|---|
//! | `services` | one service, by signals and failpoints |
//! | `brokers` | one broker |
//! | `database` | PostgreSQL, and the way to it |
//! | `objects` | the S3 server, and the way to it |

mod brokers;
mod database;
mod objects;
mod services;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::availability::{Availability, Struck};
use crate::schedule::{Fault, Schedule, Strike};
use crate::support::native::pg_proxy::PgProxy;
use crate::support::native::s3_proxy::S3Proxy;
use crate::support::native::{Engines, Kind, NativeStack};

pub use services::bring_all_up;
use services::one_of;

/// What faults need.
pub struct Place {
    pub engines: Arc<Engines>,
    pub topic: String,
    /// The way of each kind of service to the database.
    pub to_database: Vec<(Kind, PgProxy)>,
    pub to_objects: S3Proxy,
    pub availability: Arc<Availability>,
    /// Services with a failpoint that may still end them.
    armed: Mutex<BTreeSet<(Kind, usize)>>,
    failures: Mutex<Vec<String>>,
}

impl Place {
    /// Puts proxies between a stack that is not started yet and its engines.
    pub async fn around(
        stack: &mut NativeStack,
        engines: Arc<Engines>,
        availability: Arc<Availability>,
    ) -> Self {
        let to_objects = S3Proxy::before(engines.s3.port()).await;
        let mut to_database = Vec::new();
        for kind in Kind::ALL {
            let proxy = PgProxy::before(engines.postgres.port()).await;
            let url = engines.postgres.url_of(proxy.port(), stack.topic());
            for number in 0..stack.count(kind) {
                stack.set_of(kind, number, "WAKELOG_DATABASE_URL", &url);
                stack.set_of(kind, number, "WAKELOG_S3_ENDPOINT", &to_objects.endpoint());
            }
            to_database.push((kind, proxy));
        }
        Self {
            engines,
            topic: stack.topic().to_owned(),
            to_database,
            to_objects,
            availability,
            armed: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Something happened that no fault explains.
    pub fn fail(&self, what: String) {
        eprintln!("{:8.1} s  FAILURE {what}", self.availability.now() as f64 / 1e3);
        self.failures.lock().expect("not poisoned").push(what);
    }

    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().expect("not poisoned").clone()
    }

    /// A service has a failpoint now, or not.
    fn set_armed(&self, kind: Kind, number: usize, is_armed: bool) {
        let mut armed = self.armed.lock().expect("not poisoned");
        match is_armed {
            true => armed.insert((kind, number)),
            false => armed.remove(&(kind, number)),
        };
    }

    fn is_armed(&self, kind: Kind, number: usize) -> bool {
        self.armed.lock().expect("not poisoned").contains(&(kind, number))
    }

    /// Waits until a strike is due; no if the run is over by then.
    async fn is_due(&self, strike: &Strike, length: Duration) -> bool {
        self.availability.sleep_until(strike.at).await;
        self.availability.now() < length.as_millis() as u64
    }

    /// A strike is mended.
    fn mended(&self, strike: &Strike, from: u64, note: String) {
        let (to, kind) = (self.availability.now(), strike.fault.to_string());
        eprintln!(
            "{:8.1} s  {kind} until {:.1} s: {note}",
            from as f64 / 1e3,
            to as f64 / 1e3
        );
        self.availability.struck(Struck { kind, from, to });
    }
}

/// Hurts everything as the schedule says, until all of it is mended. Services are started by the thread that polls this, and die
/// with it.
pub async fn strike_all(stack: &mut NativeStack, place: &Arc<Place>, schedule: &Schedule, length: Duration) {
    let of = |is_it: fn(&Fault) -> bool| -> Vec<Strike> {
        let strikes = schedule.strikes.iter();
        strikes.filter(|strike| is_it(&strike.fault)).copied().collect()
    };
    let of_services = of(|fault| matches!(fault, Fault::Service(..)));
    let others = [
        tokio::spawn(brokers::strike_all(
            place.clone(),
            of(|fault| matches!(fault, Fault::Broker(_))),
            length,
        )),
        tokio::spawn(database::strike_all(
            place.clone(),
            of(|fault| matches!(fault, Fault::Database(_))),
            length,
        )),
        tokio::spawn(objects::strike_all(
            place.clone(),
            of(|fault| matches!(fault, Fault::ObjectStore(_))),
            length,
        )),
    ];
    services::strike_all(stack, place, of_services, length).await;
    for other in others {
        if let Err(panicked) = other.await {
            place.fail(format!("faults: {panicked}"));
        }
    }
}
