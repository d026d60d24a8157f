use std::path::Path;

use super::{StorageUrl, plain_url};

#[test]
fn a_plain_absolute_path_stays_as_it_is() {
    let url = plain_url(Path::new("/srv/wakelog/log/tansu.db")).unwrap();
    assert_eq!(url.as_str(), "sqlite:////srv/wakelog/log/tansu.db");
    assert_eq!(url.path(), "//srv/wakelog/log/tansu.db");
}

#[test]
fn a_percent_sign_is_not_an_escape() {
    assert_eq!(
        plain_url(Path::new("/srv/%41/t.db")).unwrap().path(),
        "//srv/%41/t.db"
    );
}

#[test]
fn what_a_url_would_change_has_no_plain_url() {
    for path in [
        "relative/t.db",
        "/a b/t.db",
        "/grün/t.db",
        "/a?b/t.db",
        "/a#b/t.db",
        "/a/../t.db",
        "/a{b/t.db",
    ] {
        assert!(plain_url(Path::new(path)).is_none(), "{path}");
    }
}

#[test]
fn an_odd_folder_is_reached_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("grün und #1?");
    std::fs::create_dir(&odd).unwrap();
    let url = StorageUrl::of_file(&odd.join("tansu.db")).unwrap();
    let path = Path::new(url.url().path()).to_path_buf();
    std::fs::write(&path, b"x").unwrap();
    assert_eq!(std::fs::read(odd.join("tansu.db")).unwrap(), b"x");
    let link_folder = path.parent().unwrap().parent().unwrap().to_path_buf();
    drop(url);
    assert!(!link_folder.exists());
}
