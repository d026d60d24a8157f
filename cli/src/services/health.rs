//! When a process is ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wakelog_persister::StatusHandle;

/// For how long a dependency may give no good answer before the process is not ready.
const AWAY: Duration = Duration::from_secs(10);

/// What a part of the process is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartState {
    Starting,
    Running,
    /// It ended by itself and is started again.
    Restarting {
        reason: String,
    },
    Stopping,
}

/// The parts of a process. Clones see the same process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Health {
    parts: Arc<Mutex<Parts>>,
}

#[derive(Debug, Default)]
struct Parts {
    states: BTreeMap<&'static str, PartState>,
    persister: Option<StatusHandle>,
    archiver: Option<wakelog_archiver::StatusHandle>,
    dependencies: BTreeMap<&'static str, Dependency>,
}

/// What the process needs and does not run.
#[derive(Debug)]
struct Dependency {
    /// When it gave a good answer last.
    answered_at: Instant,
    /// What was wrong since then.
    trouble: String,
}

impl Health {
    /// Names the parts that must run before the process is ready.
    pub(crate) fn expecting(names: &[&'static str]) -> Self {
        let health = Self::default();
        for name in names {
            health.set(name, PartState::Starting);
        }
        health
    }

    pub(crate) fn set(&self, name: &'static str, state: PartState) {
        self.lock().states.insert(name, state);
    }

    /// The persister that runs now; it knows of partitions that are stopped.
    pub(crate) fn set_persister(&self, status: StatusHandle) {
        self.lock().persister = Some(status);
    }

    /// The archiver that runs now; it knows what keeps it from its work.
    pub(crate) fn set_archiver(&self, status: wakelog_archiver::StatusHandle) {
        self.lock().archiver = Some(status);
    }

    /// A dependency gives good answers.
    pub(crate) fn answered(&self, dependency: &'static str) {
        let answered = Dependency {
            answered_at: Instant::now(),
            trouble: "no answer".to_owned(),
        };
        self.lock().dependencies.insert(dependency, answered);
    }

    /// A dependency gave no answer, or not the one that it should.
    pub(crate) fn in_trouble(&self, dependency: &'static str, trouble: String) {
        if let Some(dependency) = self.lock().dependencies.get_mut(dependency) {
            dependency.trouble = trouble;
        }
    }

    /// What keeps the process from being ready; empty if it is.
    pub(crate) fn obstacles(&self) -> Vec<String> {
        let parts = self.lock();
        let mut obstacles = Vec::new();
        for (name, state) in &parts.states {
            match state {
                PartState::Running => {}
                PartState::Starting => obstacles.push(format!("{name} is starting")),
                PartState::Stopping => obstacles.push(format!("{name} is stopping")),
                PartState::Restarting { reason } => {
                    obstacles.push(format!("{name} is being restarted: {reason}"))
                }
            }
        }
        if let Some(persister) = parts
            .persister
            .as_ref()
            .filter(|persister| !persister.is_healthy())
        {
            obstacles.push(persister_obstacle(persister));
        }
        obstacles.extend(parts.archiver.as_ref().and_then(|archiver| archiver.obstacle()));
        for (name, dependency) in &parts.dependencies {
            // Reckoned from the last good answer, so that a question that hangs counts as well.
            let silent = dependency.answered_at.elapsed();
            if silent > AWAY {
                let (seconds, trouble) = (silent.as_secs(), &dependency.trouble);
                obstacles.push(format!("no good answer of the {name} for {seconds} s: {trouble}"));
            }
        }
        obstacles
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn persister_obstacle(persister: &StatusHandle) -> String {
    use wakelog_persister::PartitionState;
    for (partition, state) in persister.partitions() {
        match state {
            PartitionState::Stopped { reason } => {
                return format!("partition {partition} is stopped: {reason}");
            }
            PartitionState::Degraded { reason, .. } => {
                return format!("partition {partition} waits for the store: {reason}");
            }
            PartitionState::Starting { .. } | PartitionState::Running { .. } => {}
        }
    }
    format!("the persister is not in its group: {:?}", persister.membership())
}

#[cfg(test)]
mod tests;
