//! What is logged: JSON where JSON was asked for, and never a secret or a payload.

use serde_json::Value;
use wakelog_proto::v1::AckLevel;

use crate::ran::{DONE, Ran, client, import, resume, run, run_with_input};
use crate::support::embedded::EmbeddedStack as Stack;
use crate::support::session::{open_and_attach, resume as resume_over_grpc};
use crate::support::within;

const MARKER: &str = "the-payload-marker-7f3a9c";

/// Logs at debug level of the stack and of every client, text and JSON.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_payload_in_any_log() {
    let mut stack = Stack::prepare();
    stack.set_up_args(&["--no-discovery", "--log", "debug", "--log-format", "json"]);
    stack.up().await;
    let mut secrets = Secrets::default();
    secrets.add(stack.token().as_bytes());
    secrets.add(&std::fs::read(stack.data_dir().join("lifetime-token.key")).unwrap());
    secrets.add(MARKER.as_bytes());

    // A writer of the library, whose lifetime token is known here.
    let connection = stack.connect().await;
    let (lifetime, mut writer) = open_and_attach(&connection, "secrets", AckLevel::Store).await;
    secrets.add(lifetime.token.as_bytes());
    writer.append(MARKER.into(), true).await.unwrap();
    within("a drain", writer.drain()).await.unwrap();
    let (grant, _) = resume_over_grpc(&connection, &lifetime.session_id, "again")
        .await
        .unwrap();
    secrets.add(grant.token.as_bytes());
    writer.append(MARKER.into(), false).await.ok();
    within("the fenced writer", writer.drain())
        .await
        .expect_err("it was superseded");

    // Every client command, at debug level too.
    let session = import(&stack, MARKER.repeat(60_000).as_bytes(), "kind=secrets");
    let mut said = Vec::new();
    for format in ["text", "json"] {
        let out = format!("resumed-{format}");
        said.push(client(&stack, &with_logs(&["resume", &session, "--out", &out], format)).with(DONE));
        let mut append = stack.client(&with_logs(&["append", &session], format));
        said.push(run_with_input(&mut append, format!("{MARKER}\n").as_bytes()).with(DONE));
        let out = format!("exported-{format}");
        said.push(client(&stack, &with_logs(&["export", &session, "--out", &out], format)).with(DONE));
        said.push(client(&stack, &with_logs(&["tail", &session], format)).with(DONE));
        said.push(client(&stack, &with_logs(&["sessions", "show", &session], format)).with(DONE));
        said.push(client(
            &stack,
            &with_logs(&["resume", &session, "--out", &out], format),
        ));
        let doctor = client(&stack, &with_logs(&["doctor"], format));
        secrets.must_not_be_in("doctor", &doctor.text());
        said.push(doctor);
    }
    assert_eq!(
        resume(&stack, &session).len(),
        MARKER.len() * 60_000 + 2 * (MARKER.len() + 1)
    );
    assert!(stack.stop().success());

    let log = stack.whole_log();
    assert!(
        log.lines().count() > 100 && log.contains("DEBUG"),
        "it was at debug level"
    );
    for line in log.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(object)) => {
                assert!(
                    ["timestamp", "level", "target"]
                        .iter()
                        .all(|key| object.contains_key(*key)),
                    "{line}"
                );
            }
            other => panic!("no JSON object: {line}: {other:?}"),
        }
    }
    secrets.must_not_be_in("the stack's log", &log);
    for Ran { stderr, .. } in &said {
        secrets.must_not_be_in("a client's log", stderr);
    }
}

fn with_logs<'a>(args: &[&'a str], format: &'a str) -> Vec<&'a str> {
    [args, &["--log", "debug", "--log-format", format]].concat()
}

/// `wakelog config` shows where a secret came from and nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_in_the_shown_configuration() {
    let stack = Stack::prepare();
    let mut secrets = Secrets::default();
    for secret in ["token-of-the-flag", "password-of-the-url", "password-of-kafka"] {
        secrets.add(secret.as_bytes());
    }
    let file = stack.folder().join("wakelog.toml");
    std::fs::write(
        &file,
        "database_url = \"postgres://me:password-of-the-url@db/wakelog?sslpassword=password-of-the-url\"\n\
         [kafka]\n\"sasl.password\" = \"password-of-kafka\"\n\"client.rack\" = \"shown\"\n",
    )
    .unwrap();
    let ran = run(stack
        .command()
        .args(["config", "--log", "debug", "--token", "token-of-the-flag"]))
    .with(DONE);
    let text = ran.text();
    assert!(
        text.contains("flag --token") && text.contains("sasl.password") && text.contains("shown"),
        "{text}"
    );
    assert!(
        text.contains("me:") && text.contains("@db/wakelog"),
        "the rest of the URL is shown: {text}"
    );
    secrets.must_not_be_in("the configuration", &text);
    secrets.must_not_be_in("its log", &ran.stderr);
}

/// What must not be seen, in every form in which bytes are printed.
#[derive(Default)]
struct Secrets {
    forms: Vec<String>,
}

impl Secrets {
    fn add(&mut self, secret: &[u8]) {
        assert!(secret.len() >= 8, "a secret that can be searched for");
        self.forms.push(hex::encode(secret));
        // As `{:?}` of bytes has it.
        let start = &secret[..secret.len().min(12)];
        self.forms
            .push(start.iter().map(u8::to_string).collect::<Vec<_>>().join(", "));
        self.forms
            .push(start.iter().map(u8::to_string).collect::<Vec<_>>().join(","));
        if let Ok(text) = std::str::from_utf8(secret) {
            self.forms.push(text.to_owned());
        }
    }

    #[track_caller]
    fn must_not_be_in(&self, what: &str, text: &str) {
        for form in &self.forms {
            if let Some(at) = text.find(form.as_str()) {
                let line = text[..at].lines().count().saturating_sub(1);
                panic!(
                    "{what} holds a secret: {}",
                    text.lines().nth(line).unwrap_or_default()
                );
            }
        }
    }
}
