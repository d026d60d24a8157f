use super::*;

type Change = fn(&mut Options);

#[test]
fn the_defaults_are_valid() {
    assert!(Options::new("wakelog.transcript").validate().is_ok());
}

#[test]
fn values_that_make_no_sense_are_refused_by_name() {
    let broken: [(&str, Change); 7] = [
        ("topic", |options| options.topic.clear()),
        ("max_entry_bytes", |options| options.max_entry_bytes = 0),
        ("max_entry_bytes", |options| {
            options.max_entry_bytes = MAX_ENTRY_BYTES + 1
        }),
        ("max_unacked_bytes", |options| options.max_unacked_bytes = 1000),
        ("max_in_flight_bytes", |options| {
            options.max_in_flight_bytes = 1000
        }),
        ("max_lanes", |options| options.max_lanes = 0),
        ("max_fence_age", |options| {
            options.max_fence_age = options.fence_interval
        }),
    ];
    for (name, change) in broken {
        let mut options = Options::new("t");
        change(&mut options);
        let error = options.validate().unwrap_err();
        assert!(
            matches!(error, Error::InvalidOption { option, .. } if option == name),
            "{error}"
        );
    }
}
