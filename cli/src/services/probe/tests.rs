use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// Longer than health lets pass, and than it takes to ask again.
const LONG: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn a_dependency_is_away_while_it_answers_wrongly_and_back_when_it_answers() {
    let health = Health::default();
    let is_away = Arc::new(AtomicBool::new(true));
    let away = is_away.clone();
    let asking = tokio::spawn(ask_for_ever(health.clone(), LOG, move || {
        let away = away.load(Ordering::SeqCst);
        async move {
            match away {
                true => Err("no such topic".to_owned()),
                false => Ok(()),
            }
        }
    }));
    tokio::time::sleep(LONG).await;
    let obstacles = health.obstacles();
    assert!(
        obstacles.len() == 1 && obstacles[0].ends_with("no such topic"),
        "{obstacles:?}"
    );
    is_away.store(false, Ordering::SeqCst);
    tokio::time::sleep(2 * INTERVAL).await;
    assert!(health.obstacles().is_empty());
    asking.abort();
}

#[tokio::test(start_paused = true)]
async fn one_question_at_a_time_is_under_way_and_a_hanging_one_ends() {
    let health = Health::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let asking = tokio::spawn(ask_for_ever(health.clone(), DATABASE, move || {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match number {
                0 => std::future::pending().await,
                _ => Ok(()),
            }
        }
    }));
    tokio::time::sleep(LONG).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(health.obstacles()[0].ends_with("no answer within 5s"));
    tokio::time::sleep(LONGEST_QUESTION).await;
    assert!(health.obstacles().is_empty(), "it was asked again");
    asking.abort();
}
