//! The database.

use super::case::{ALONE, Case, WHO_MIGRATES, WRITERS, check_all};
use super::site::{Site, WRONG_SECRET};
use super::{NOBODY, no_host};

const DATABASE_URL: &str = "WAKELOG_DATABASE_URL";

fn database(name: &'static str, url: impl Into<String>, says: &[&str], hint: &'static str) -> Case {
    Case::new(name, says, hint).with(DATABASE_URL, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_or_no_postgres_is_named() {
    let site = Site::shared().await;
    let away = "is the database running";
    let at = |address: &str| format!("postgres://wakelog:{WRONG_SECRET}@{address}/DATABASE");
    let of_port = |port: u16| at(&format!("127.0.0.1:{port}"));
    let kafka = at(&site.engines.kafka.brokers());
    let silence = "gives no answer as PostgreSQL does";
    let cases = vec![
        database("no server", at(NOBODY), &["127.0.0.1:1/", "refused"], away),
        database("no host", at(&no_host()), &["xxx.invalid:5432/", "lookup"], away),
        database("silence", of_port(site.silent), &[silence], away),
        database(
            "an HTTP server",
            of_port(site.engines.s3.port()),
            &[silence],
            away,
        ),
        database("a broker", kafka, &[silence], away),
        database(
            "an old server",
            of_port(site.old_postgres),
            &["PostgreSQL 13", "15 or newer is needed"],
            "has to be upgraded",
        ),
    ];
    check_all(&site, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_refuses_is_named() {
    let site = Site::shared().await;
    let port = site.engines.postgres.port();
    let who = |user: &str| format!("postgres://{user}@127.0.0.1:{port}/DATABASE");
    let credentials = "are user, password and database of --database-url right?";
    let may_not = "grant it to the user";
    let cases = vec![
        database(
            "a wrong password",
            who(&format!("with_password:{WRONG_SECRET}")),
            &["password authentication failed", "with_password"],
            credentials,
        ),
        database(
            "no password",
            who("with_password"),
            &["password authentication failed"],
            credentials,
        ),
        database(
            "an unknown user",
            who("stranger"),
            &["\"stranger\" does not exist"],
            credentials,
        ),
        database(
            "an unknown database",
            format!("postgres://wakelog@127.0.0.1:{port}/nowhere"),
            &["\"nowhere\" does not exist"],
            "`createdb` does",
        ),
        Case {
            doctor: Some(("permission denied", may_not)),
            ..database(
                "no rights",
                who("nobody"),
                &["permission denied for table"],
                may_not,
            )
        },
        database(
            "rights to read alone",
            who("reader"),
            &["user reader lacks", "INSERT on"],
            may_not,
        )
        .of(WRITERS),
        database(
            "read-only",
            who("stuck"),
            &["read-only by default"],
            "name the primary server",
        ),
        Case {
            has_tables: false,
            doctor: Some(("migration 1 is not applied", "wakelog migrate")),
            ..database(
                "no right to make tables",
                who("nobody"),
                &["nobody may make no tables"],
                may_not,
            )
            .of(WHO_MIGRATES)
        },
        database(
            "TLS is wanted",
            who("tls_only"),
            &["without TLS", "tls_only"],
            "pg_hba.conf",
        ),
        database(
            "TLS is demanded",
            who("wakelog") + "?sslmode=require",
            &["TLS is asked for", "127.0.0.1"],
            "take sslmode out",
        ),
    ];
    check_all(&site, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_not_this_builds_is_named() {
    let site = Site::shared().await;
    let case = |name, damage, says: &[&str], hint| Case {
        damage,
        ..Case::new(name, says, hint)
    };
    let cases = vec![
        case(
            "newer",
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (99, 'from the future', true, '\\x00', 0)",
            &["the schema is at version 99", "this build knows"],
            "use that version",
        ),
        case(
            "a hole",
            "DELETE FROM _sqlx_migrations WHERE version = 2",
            &["migration 2 is missing below a newer one"],
            "_sqlx_migrations",
        ),
        case(
            "other content",
            "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 2",
            &["migration 2 was applied with other content"],
            "another program",
        ),
        case(
            "half applied",
            "UPDATE _sqlx_migrations SET success = false WHERE version = 3",
            &["migration 3 is half applied"],
            "restore a backup",
        ),
        Case {
            has_tables: false,
            ..Case::new(
                "no tables",
                &["migration 1 is not applied"],
                "run `wakelog migrate`",
            )
            .of(ALONE)
        },
    ];
    check_all(&site, cases).await;
}
