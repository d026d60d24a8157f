use super::*;

fn announcement(pid: u32) -> Announcement {
    Announcement {
        endpoint: "http://127.0.0.1:7420".to_owned(),
        caller_token_file: "/data/caller-token".into(),
        data_dir: "/data".into(),
        pid,
        http_endpoint: Some("http://127.0.0.1:7421".to_owned()),
        embedded_log: true,
        embedded_database: false,
    }
}

#[track_caller]
fn announced(state_dir: &Path, pid: u32) -> Announced {
    match announce(state_dir, &announcement(pid)).unwrap() {
        Announcing::Ours(announced) => announced,
        Announcing::Theirs(theirs) => panic!("{theirs:?}"),
    }
}

#[test]
fn what_is_announced_is_found_until_it_is_withdrawn() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("deep/er");
    let path = path_in(&state_dir);
    assert_eq!(read(&path).unwrap(), None);
    let ours = announced(&state_dir, 7);
    assert_eq!(read(&path).unwrap(), Some(announcement(7)));
    ours.withdraw().unwrap();
    assert_eq!(read(&path).unwrap(), None);
}

#[cfg(unix)]
#[test]
fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let _ours = announced(folder.path(), 7);
    assert_eq!(
        std::fs::metadata(path_in(folder.path()))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
}

#[test]
fn a_stack_that_runs_stays_announced() {
    let folder = tempfile::tempdir().unwrap();
    let path = path_in(folder.path());
    let first = announced(folder.path(), 7);
    let second = announce(folder.path(), &announcement(8)).unwrap();
    assert!(matches!(second, Announcing::Theirs(Some(theirs)) if theirs.pid == 7));
    assert_eq!(read(&path).unwrap(), Some(announcement(7)));
    // One that died leaves its file behind and no lock.
    drop(first);
    assert!(path.exists());
    announced(folder.path(), 8).withdraw().unwrap();
    assert!(!path.exists());
}

#[test]
fn an_announcement_of_an_older_build_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = path_in(folder.path());
    let text = r#"{"endpoint": "http://h:1", "caller_token_file": "t", "data_dir": "d", "pid": 3}"#;
    std::fs::write(&path, text).unwrap();
    assert_eq!(read(&path).unwrap().unwrap().http_endpoint, None);
}

#[test]
fn a_broken_file_is_an_error_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let path = path_in(folder.path());
    std::fs::write(&path, b"{").unwrap();
    assert!(read(&path).unwrap_err().hint.is_some());
}
