//! Which value of a setting counts, and what is wrong with one that can't be used.

use crate::ran::{DONE, USAGE, run};
use crate::support::embedded::EmbeddedStack as Stack;

/// Flags over variables over the file over the default, and the origin is shown.
#[tokio::test(flavor = "multi_thread")]
async fn flags_over_variables_over_the_file() {
    let stack = Stack::prepare();
    std::fs::write(
        stack.folder().join("wakelog.toml"),
        "topic = \"of.the.file\"\ngroup = \"of.the.file\"\npartitions = 3\n",
    )
    .unwrap();
    let mut config = stack.command();
    config
        .env("WAKELOG_GROUP", "of.the.variable")
        .env("WAKELOG_PARTITIONS", "5");
    let text = run(config.args(["config", "--partitions", "7"]))
        .with(DONE)
        .text();
    for line in [
        "topic = \"of.the.file\"  # file wakelog.toml",
        "group = \"of.the.variable\"  # variable WAKELOG_GROUP",
        "partitions = 7  # flag --partitions",
        "replication = 1  # default",
    ] {
        assert!(text.contains(line), "{line:?} is missing: {text}");
    }
    // An empty variable is none, and another file may be named.
    std::fs::write(stack.folder().join("other.toml"), "group = \"of.the.other\"\n").unwrap();
    let mut config = stack.command();
    config
        .env("WAKELOG_GROUP", "")
        .env("WAKELOG_CONFIG", "other.toml");
    let text = run(config.arg("config")).with(DONE).text();
    assert!(
        text.contains("group = \"of.the.other\"  # file other.toml"),
        "{text}"
    );
    assert!(
        text.contains("topic = \"wakelog.transcript\"  # default"),
        "{text}"
    );
    // What is printed can be read again.
    std::fs::write(stack.folder().join("printed.toml"), &text).unwrap();
    let again = run(stack.command().args(["config", "--config", "printed.toml"]))
        .with(DONE)
        .text();
    assert!(
        again.contains("group = \"of.the.other\"  # file printed.toml"),
        "{again}"
    );
}

/// What can't be used is a usage error that names the place.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_setting_is_named() {
    let stack = Stack::prepare();
    let files = [
        ("unknown = 1\n", "`unknown` is not a setting"),
        ("topic = [1]\n", "`topic` is not a plain value"),
        ("topic = \n", "configuration file"),
        ("listen = \"nonsense\"\n", "`listen` from file"),
        ("partitions = 0\n", "`partitions` must be at least 1"),
        ("partitions = \"many\"\n", "`partitions` from file"),
        ("log_format = \"xml\"\n", "it must be text or json"),
        (
            "server = 3\n",
            "`server` from file wrong.toml is \"3\": it must start with http://",
        ),
        ("relay = \"https://h:1\"\n", "TLS is not built yet"),
        (
            "brokers = \"kafka-1\"\n",
            "`brokers` from file wrong.toml is \"kafka-1\": a broker is host:port",
        ),
    ];
    for (text, expected) in files {
        std::fs::write(stack.folder().join("wrong.toml"), text).unwrap();
        run(stack.command().args(["config", "--config", "wrong.toml"]))
            .with(USAGE)
            .saying(&[expected]);
        // Not only the command that shows it.
        run(stack.command().args(["sessions", "ls", "--config", "wrong.toml"]))
            .with(USAGE)
            .saying(&[expected]);
    }
    run(stack.command().args(["config", "--config", "absent.toml"]))
        .with(USAGE)
        .saying(&["absent.toml"]);
    run(stack.command().args(["config", "--no-such-flag"])).with(USAGE);
    run(stack.command().arg("no-such-command")).with(USAGE);
    run(&mut stack.command()).with(USAGE);
    run(stack.command().env("WAKELOG_HTTP_LISTEN", "x").arg("config"))
        .with(USAGE)
        .saying(&["WAKELOG_HTTP_LISTEN"]);
    std::fs::write(stack.folder().join("file"), b"labelled\n").unwrap();
    run(stack
        .command()
        .args(["import", "file", "--label", "a=1", "--label", "a=2"]))
    .with(USAGE)
    .saying(&["--label a is given twice"]);
    run(stack.command().args(["config", "--log", "==="]))
        .with(USAGE)
        .saying(&["`log`"]);
    let help = run(stack.command().arg("--help")).with(DONE).text();
    assert!(help.contains("Exit codes: 0 done"), "{help}");
}
