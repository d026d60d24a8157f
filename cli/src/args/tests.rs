use clap::CommandFactory as _;

use super::flags::Flags;
use super::*;
use crate::config::keys::KEYS;

fn flags(line: &str) -> Flags {
    Cli::try_parse_from(line.split_whitespace()).unwrap().flags()
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn every_flag_has_a_key() {
    let all = flags(
        "wakelog config --data-dir d --brokers b --database-url u --database-connections 2 --topic t --group g \
         --partitions 3 --replication 1 --listen 127.0.0.1:1 --http-listen 127.0.0.1:2 --token-key-file k \
         --caller-token-file c --server s --relay r --token-file f --no-discovery --log info --log-format json \
         --s3-endpoint e --s3-bucket b --s3-region r --s3-access-key a --s3-prefix p --s3-path-style true \
         --spool-dir d --archive-valve-bytes 1 --archive-resweep-seconds 1",
    );
    let keys: Vec<&str> = KEYS
        .iter()
        .map(|key| key.name)
        .filter(|name| !["token", "s3_secret_key"].contains(name))
        .collect();
    assert!(all.keys().all(|key| keys.contains(key)));
    assert_eq!(all.len(), keys.len());
}

#[test]
fn a_benchmark_measures_everything_unless_told_otherwise_and_names_no_topic() {
    let measure = |line: &str| match Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command) {
        Ok(Command::Bench(args)) => Some(args.measure),
        _ => None,
    };
    assert_eq!(
        measure("wakelog bench --brokers b --database-url u"),
        Some(BenchMeasure::All)
    );
    assert_eq!(measure("wakelog bench unary --json"), Some(BenchMeasure::Unary));
    assert_eq!(measure("wakelog bench nothing"), None);
    assert_eq!(measure("wakelog bench --topic t"), None);
    let set = flags("wakelog bench --brokers b --database-url u --replication 3");
    assert_eq!(
        set.keys().copied().collect::<Vec<_>>(),
        ["brokers", "database_url", "replication"]
    );
}

#[test]
fn labels_keep_equals_signs_in_values() {
    assert_eq!(parse_label("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
    assert_eq!(parse_label("a="), Ok(("a".to_owned(), String::new())));
    assert!(parse_label("=b").is_err());
    assert!(parse_label("ab").is_err());
}

#[test]
fn a_token_and_a_token_file_exclude_each_other() {
    assert!(Cli::try_parse_from(["wakelog", "sessions", "ls", "--token", "a", "--token-file", "b"]).is_err());
}
