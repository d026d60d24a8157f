use super::*;

fn new_session() -> NewSession {
    NewSession {
        session: SessionId::for_request("ann", "one"),
        owner: "ann".to_owned(),
        labels: Labels::from([("team".to_owned(), "blue".to_owned())]),
        parent: Some(SessionId::for_request("ann", "parent")),
        subpath: "agents/1".to_owned(),
    }
}

fn row_of(new: &NewSession) -> SessionRow {
    crate::fixtures::session_row(new.session, |row| {
        row.owner.clone_from(&new.owner);
        row.labels.clone_from(&new.labels);
        row.parent = new.parent;
        row.subpath.clone_from(&new.subpath);
    })
}

#[test]
fn a_repeat_is_the_same_session() {
    let new = new_session();
    assert_eq!(same_session(&new, row_of(&new)).unwrap().session, new.session);
}

#[test]
fn a_repeat_with_other_contents_is_a_conflict_that_names_the_field() {
    let new = new_session();
    let conflict = |change: &dyn Fn(&mut SessionRow)| {
        let mut row = row_of(&new);
        change(&mut row);
        match same_session(&new, row) {
            Err(Error::Conflict(field)) => field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(conflict(&|row| row.owner = "bob".to_owned()), "owner");
    assert_eq!(conflict(&|row| row.labels.clear()), "labels");
    assert_eq!(conflict(&|row| row.parent = None), "parent");
    assert_eq!(conflict(&|row| row.subpath.clear()), "subpath");
}

#[test]
fn every_partition_gets_its_share_of_new_sessions() {
    let partitions = 6;
    let mut counts = vec![0_u32; 6];
    for request in 0..6_000 {
        let partition = partition_of(SessionId::for_request("ann", &request.to_string()), partitions);
        counts[usize::try_from(partition).unwrap()] += 1;
    }
    assert!(
        counts.iter().all(|count| (850..=1_150).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_partition_is_always_one_that_exists() {
    let session = SessionId::for_request("ann", "one");
    for count in [1, 2, 7, 1_000] {
        assert!((0..count).contains(&partition_of(session, count)));
    }
    assert_eq!(partition_of(session, 0), 0);
    assert_eq!(partition_of(session, -1), 0);
}

fn progress(claimed: &[i32], next_offset: i64) -> Vec<Progress> {
    let of = |partition: &i32| Progress {
        partition: *partition,
        epoch: 1,
        next_offset,
        last_record_crc: None,
    };
    claimed.iter().map(of).collect()
}

#[test]
fn new_sessions_go_where_somebody_folds() {
    let open = |claimed: &[i32]| open_partitions(6, &progress(claimed, 1));
    assert_eq!(open(&[0, 1, 2, 3, 4, 5]), 6);
    assert_eq!(open(&[0, 1, 2, 3]), 4, "two were just added");
    assert_eq!(open(&[0, 1, 2, 3, 5]), 4, "one of them was claimed");
    assert_eq!(open(&[]), 6, "nobody has begun");
    assert_eq!(
        open(&[0, 1, 2, 3, 4, 5, 6]),
        6,
        "it was claimed after the count was read"
    );
}

/// Partitions of a new topic are claimed one by one: its first sessions must not all go to the first ones.
#[test]
fn the_first_sessions_go_to_all_partitions() {
    for claimed in [&[0][..], &[0, 1, 2], &[2, 3], &[]] {
        assert_eq!(open_partitions(6, &progress(claimed, 0)), 6, "{claimed:?}");
    }
}
