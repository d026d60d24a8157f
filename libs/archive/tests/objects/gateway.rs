//! The same against a real S3 server on a folder: VersityGW, if `WAKELOG_TEST_S3_GATEWAY` names its binary.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use wakelog_archive::{BucketState, ObjectStore, Options, RetryPolicy};

use crate::support::{ACCESS_KEY, BUCKET, SECRET_KEY};
use crate::workload;

/// Ends with the test, however it ends.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test]
async fn a_real_server_does_what_the_archive_needs() {
    let Some(binary) = std::env::var_os("WAKELOG_TEST_S3_GATEWAY") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let _gateway = Gateway(
        Command::new(binary)
            .args(["--access", ACCESS_KEY, "--secret", SECRET_KEY])
            .args(["--port", &format!("127.0.0.1:{port}"), "posix"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let store = ObjectStore::new(Options {
        endpoint: Some(format!("http://127.0.0.1:{port}")),
        access_key: Some(ACCESS_KEY.to_owned()),
        secret_key: Some(SECRET_KEY.to_owned()),
        path_style: true,
        retry: RetryPolicy {
            initial: Duration::from_millis(10),
            max_interval: Duration::from_millis(50),
            ..RetryPolicy::default()
        },
        ..Options::new("us-east-1", BUCKET)
    })
    .unwrap();
    let mut left = 200;
    while store.check().await.unwrap() != BucketState::Ready {
        left -= 1;
        assert!(left > 0, "the gateway does not come up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    workload::run(&store).await;
}
