use super::*;

fn flaws(replication: i32, settings: &[(&str, &str)]) -> Vec<Flaw> {
    let options = Options {
        replication,
        ..Options::new("127.0.0.1:9092", "log")
    };
    let settings = settings
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    of_settings(&options, &settings.collect())
}

#[test]
fn good_settings_and_none_at_all_are_not_worth_a_warning() {
    assert!(flaws(3, &[]).is_empty());
    let good = [
        ("cleanup.policy", "delete"),
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.bytes", "-1"),
        ("min.insync.replicas", "2"),
        ("max.message.bytes", "1048588"),
    ];
    assert!(flaws(3, &good).is_empty());
}

#[test]
fn each_bad_setting_is_named_and_weighed() {
    for (replication, key, value, breaks) in [
        (1, "cleanup.policy", "compact,delete", true),
        (1, "message.timestamp.type", "CreateTime", false),
        (1, "retention.bytes", "1073741824", false),
        (1, "min.insync.replicas", "1", false),
        (2, "min.insync.replicas", "1", false),
        (3, "min.insync.replicas", "1", true),
        (1, "max.message.bytes", "524288", false),
    ] {
        let flaws = flaws(replication, &[(key, value)]);
        assert_eq!(flaws.len(), 1, "{key}");
        assert!(flaws[0].what.starts_with(key), "{flaws:?}");
        assert_eq!(flaws[0].breaks_durability, breaks, "{flaws:?}");
    }
}

#[test]
fn too_few_replicas_break_what_was_asked_for_and_only_that() {
    for (asked, replicas, brokers, breaks) in [
        (1, 1, 1, None),
        (1, 1, 3, Some(false)),
        (3, 1, 3, Some(true)),
        (3, 2, 3, Some(true)),
        (3, 3, 3, None),
        (1, 3, 3, None),
    ] {
        let options = Options {
            replication: asked,
            ..Options::new("127.0.0.1:9092", "log")
        };
        let layout = Layout {
            partitions: 8,
            replicas,
            brokers,
        };
        let found = of_layout(&options, layout)
            .pop()
            .map(|flaw| flaw.breaks_durability);
        assert_eq!(found, breaks, "{asked} {replicas} {brokers}");
    }
}
