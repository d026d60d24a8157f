use super::*;

fn options() -> Options {
    Options::new("127.0.0.1:1", "log")
}

#[test]
fn the_producer_is_idempotent_and_waits_for_all_replicas() {
    let config = producer(&options()).unwrap();
    for (key, value) in [
        ("acks", "all"),
        ("enable.idempotence", "true"),
        ("linger.ms", "0"),
        ("compression.type", "none"),
        ("message.timeout.ms", "5000"),
        ("queue.buffering.max.kbytes", "32768"),
    ] {
        assert_eq!(config.get(key), Some(value), "{key}");
    }
    assert_eq!(config.get("transactional.id"), None);
    config.create_native_config().unwrap();
}

#[test]
fn a_group_consumer_never_takes_offsets_from_the_brokers() {
    let config = group_consumer(&options()).unwrap();
    for (key, value) in [
        ("auto.offset.reset", "error"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("partition.assignment.strategy", "cooperative-sticky"),
        ("session.timeout.ms", "10000"),
        ("max.poll.interval.ms", "60000"),
    ] {
        assert_eq!(config.get(key), Some(value), "{key}");
    }
    config.create_native_config().unwrap();
}

#[test]
fn every_kind_of_client_takes_its_settings() {
    for config in [
        admin(&options()),
        metadata(&options()),
        range_consumer(&options()),
    ] {
        config.unwrap().create_native_config().unwrap();
    }
}

#[test]
fn an_override_reaches_every_client_but_not_what_the_guarantees_rest_on() {
    let mut options = options();
    options
        .overrides
        .insert("sasl.password".to_owned(), "hunter2".to_owned());
    for config in [producer(&options), group_consumer(&options), metadata(&options)] {
        assert_eq!(config.unwrap().get("sasl.password"), Some("hunter2"));
    }
    assert!(!format!("{options:?}").contains("hunter2"));

    options.overrides.insert("acks".to_owned(), "1".to_owned());
    let refused = producer(&options).unwrap_err();
    assert!(
        matches!(&refused, Error::Config { key, .. } if key == "acks"),
        "{refused}"
    );
}

#[test]
fn a_setting_that_is_not_known_is_named_without_its_value() {
    let mut options = options();
    options
        .overrides
        .insert("sasl.pasword".to_owned(), "hunter2".to_owned());
    let error = crate::Producer::new(&options).err().unwrap();
    let text = format!("{error} {error:?}");
    assert!(
        text.contains("sasl.pasword") && !text.contains("hunter2"),
        "{text}"
    );
}
