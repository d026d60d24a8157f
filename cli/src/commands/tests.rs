use super::*;

#[test]
fn a_token_file_may_hold_a_bare_token_or_an_account_and_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "# mine\n\n  0123456789abcdef \nother\n").unwrap();
    assert_eq!(token_of_file(&path).unwrap(), "0123456789abcdef");
    std::fs::write(&path, "local 0123456789abcdef\n").unwrap();
    assert_eq!(token_of_file(&path).unwrap(), "0123456789abcdef");
    std::fs::write(&path, "#\n").unwrap();
    assert!(token_of_file(&path).is_err());
}

#[test]
fn a_session_id_is_checked_before_it_is_sent() {
    assert!(session_id("3F2504E0-4F89-11D3-9A0C-0305E82C3301").is_err());
    assert!(session_id("../x").is_err());
    assert!(session_id("3f2504e0-4f89-11d3-9a0c-0305e82c3301").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_is_tried_again_only_while_the_server_can_not_answer() {
    let mut tries = 0;
    let answer = call("asking", || {
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
    let refused = call::<(), _>("asking", || {
        tries += 1;
        async { Err(Status::not_found("no")) }
    });
    assert_eq!(refused.await.unwrap_err().exit, wakelog_contract::Exit::NotFound);
    assert_eq!(tries, 1);

    let error = call::<(), _>("asking", || async { Err(Status::unavailable("away")) })
        .await
        .unwrap_err();
    assert_eq!(error.exit, wakelog_contract::Exit::Dependency);
}
