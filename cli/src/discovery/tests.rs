use super::*;

fn announcement(pid: u32) -> Announcement {
    Announcement {
        endpoint: "http://127.0.0.1:7420".to_owned(),
        caller_token_file: "/data/caller-token".into(),
        data_dir: "/data".into(),
        pid,
    }
}

#[test]
fn what_is_announced_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = path_in(&folder.path().join("deep/er"));
    assert_eq!(read(&path).unwrap(), None);
    write(&path, &announcement(7)).unwrap();
    write(&path, &announcement(8)).unwrap();
    assert_eq!(read(&path).unwrap(), Some(announcement(8)));
}

#[cfg(unix)]
#[test]
fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = path_in(folder.path());
    write(&path, &announcement(7)).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn only_the_own_announcement_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = path_in(folder.path());
    write(&path, &announcement(8)).unwrap();
    remove(&path, 7).unwrap();
    assert!(read(&path).unwrap().is_some());
    remove(&path, 8).unwrap();
    assert_eq!(read(&path).unwrap(), None);
    remove(&path, 8).unwrap();
}

#[test]
fn a_broken_file_is_an_error_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let path = path_in(folder.path());
    std::fs::write(&path, b"{").unwrap();
    assert!(read(&path).unwrap_err().hint.is_some());
}
