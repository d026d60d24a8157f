use std::cell::RefCell;

use super::*;

fn servers(names: &[&'static str]) -> Vec<(String, &'static str)> {
    names.iter().map(|name| ((*name).to_owned(), *name)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_tried_again_only_while_the_server_can_not_answer() {
    let mut tries = 0;
    let answer = call_in_turn(servers(&["a"]), "asking", |_| {
        tries += 1;
        let tried = tries;
        async move {
            if tried < 3 {
                Err(Status::unavailable("away"))
            } else {
                Ok(Response::new(tried))
            }
        }
    });
    assert_eq!(answer.await.unwrap(), 3);

    let mut tries = 0;
    let refused = call_in_turn::<_, (), _>(servers(&["a", "b"]), "asking", |_| {
        tries += 1;
        async { Err(Status::not_found("no")) }
    });
    let error = refused.await.unwrap_err();
    assert_eq!(error.exit, wakelog_contract::Exit::NotFound);
    assert_eq!(tries, 1, "what one server refuses, another one would refuse");

    let away = call_in_turn::<_, (), _>(servers(&["a"]), "asking", |_| async {
        Err(Status::unavailable("away"))
    });
    let error = away.await.unwrap_err();
    assert_eq!(error.exit, wakelog_contract::Exit::Dependency);
    assert!(error.message.starts_with("asking: a: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_next_server_is_asked_at_once_and_all_are_named_in_the_end() {
    let started = Instant::now();
    let asked = RefCell::new(Vec::new());
    let answer = call_in_turn(servers(&["a", "b"]), "asking", |server| {
        asked.borrow_mut().push(server);
        async move {
            match server {
                "a" => Err(Status::unavailable("away")),
                _ => Ok(Response::new(server)),
            }
        }
    });
    assert_eq!(answer.await.unwrap(), "b");
    let broken = call_in_turn(servers(&["a", "b"]), "asking", |server| async move {
        match server {
            "a" => Err(Status::cancelled("connection closed")),
            _ => Ok(Response::new(server)),
        }
    });
    assert_eq!(broken.await.unwrap(), "b", "the call had not left yet");
    assert_eq!(*asked.borrow(), ["a", "b"]);
    assert_eq!(started.elapsed(), Duration::ZERO);

    let away = call_in_turn::<_, (), _>(servers(&["a", "b"]), "asking", |server| async move {
        match server {
            "a" => std::future::pending().await,
            _ => Err(Status::unavailable("away")),
        }
    });
    let error = away.await.unwrap_err();
    assert!(error.message.contains("a: no answer within 45s"), "{error}");
    assert!(error.message.contains("b: "), "{error}");
}
