//! Made-up sessions: a good one is good, and each fault has its name.

use bytes::Bytes;

use super::{Finding, FoundEntry, Holdings, Observed, Sent, SentEntry, SentLifetime, Verdict, check};

fn entry(text: &str) -> SentEntry {
    SentEntry {
        bytes: Bytes::from(text.to_owned()),
        checkpoint: text.starts_with('C'),
    }
}

/// `a` sends five entries, four are acknowledged; `b` takes over when four were sent, and sends three.
fn sent() -> Sent {
    let lifetime = |texts: &[&str], acked, fenced_at| SentLifetime {
        entries: texts.iter().map(|text| entry(text)).collect(),
        acked,
        fenced_at,
    };
    Sent {
        session: "made up".to_owned(),
        lifetimes: vec![
            lifetime(&["C1", "a2", "a2", "a4", "a5"], 3, Some(4)),
            lifetime(&["b1", "b2", "b3"], 2, None),
        ],
    }
}

fn observed(texts: &[&str]) -> Observed {
    let entries = (1..).zip(texts).map(|(entry_seq, text)| FoundEntry {
        entry_seq,
        checkpoint: text.starts_with('C'),
        bytes: entry(text).bytes,
    });
    let history: Vec<FoundEntry> = entries.collect();
    let start = history.iter().rposition(|entry| entry.checkpoint).unwrap_or(0);
    let body: Vec<u8> = history[start..]
        .iter()
        .flat_map(|entry| entry.bytes.to_vec())
        .collect();
    let last_entry = history.len() as u64;
    Observed {
        bodies: vec![("export", Ok(body.into()))],
        holdings: Holdings {
            last_entry,
            hot: (3..=last_entry).map(|entry| (entry, true)).collect(),
            segments: vec![(1, 2)],
        },
        history: Ok(history),
    }
}

fn findings(texts: &[&str]) -> Vec<Finding> {
    check(&sent(), &observed(texts)).findings
}

const GOOD: [&str; 7] = ["C1", "a2", "a2", "a4", "b1", "b2", "b3"];

/// What was acknowledged must be there, what was not may be.
pub fn what_was_acknowledged_must_be_there_and_the_rest_may() {
    let verdict = check(&sent(), &observed(&GOOD));
    let expected = Verdict {
        sent: 8,
        acked: 5,
        found: 7,
        bodies: 1,
        findings: Vec::new(),
    };
    assert_eq!(verdict, expected);
    for good in [
        &["C1", "a2", "a2", "b1", "b2"][..],
        &["C1", "a2", "a2", "a4", "b1", "b2"],
        &["C1", "a2", "a2", "b1", "b2", "b3"],
    ] {
        assert_eq!(findings(good), [], "{good:?}");
    }
}

/// Each fault of a history is called what it is.
pub fn each_fault_of_a_history_has_its_name() {
    for (what, texts, expected) in [
        (
            "drop",
            &["C1", "a2", "a4", "b1", "b2"][..],
            vec![Finding::Lost { entry: 3 }],
        ),
        (
            "drop at the end",
            &["C1", "a2", "a2", "b1"],
            vec![Finding::Lost { entry: 5 }],
        ),
        (
            "swap",
            &["C1", "a2", "a2", "a4", "b2", "b1"],
            vec![Finding::OutOfOrder { entry: 6 }],
        ),
        (
            "double",
            &["C1", "a2", "a2", "a4", "b1", "b2", "b2"],
            vec![Finding::Doubled { entry: 7 }],
        ),
        (
            "alter",
            &["C1", "a2", "a2", "a4", "bX", "b2"],
            vec![Finding::Altered { entry: 5 }],
        ),
        (
            "invent",
            &["C1", "a2", "a2", "a4", "b1", "b2", "x"],
            vec![Finding::Altered { entry: 7 }],
        ),
        (
            "an entry of the superseded writer after the bind",
            &["C1", "a2", "a2", "b1", "a4", "b2"],
            vec![Finding::BindIgnored { entry: 5 }],
        ),
        (
            "an entry that was sent after the bind",
            &["C1", "a2", "a2", "a4", "a5", "b1", "b2"],
            vec![Finding::BindIgnored { entry: 5 }],
        ),
    ] {
        assert_eq!(findings(texts), expected, "{what}");
    }
    let mut late = sent();
    late.lifetimes[1].acked = 1;
    let hole = check(&late, &observed(&["C1", "a2", "a2", "b1", "b3"])).findings;
    assert_eq!(hole, [Finding::Gap { entry: 5 }]);
    let mut flagged = observed(&GOOD);
    if let Ok(history) = &mut flagged.history {
        history[3].checkpoint = true;
    }
    let found = check(&sent(), &flagged).findings;
    assert!(found.contains(&Finding::Altered { entry: 4 }), "{found:?}");
    let mut acked = sent();
    acked.lifetimes[0].acked = 5;
    let found = check(&acked, &observed(&GOOD)).findings;
    assert!(
        found.contains(&Finding::AckedTooMuch { lifetime: 0 }),
        "{found:?}"
    );
}

/// Bodies, numbers and what is held where are looked at too.
pub fn each_fault_of_bodies_and_holdings_has_its_name() {
    let with = |change: &dyn Fn(&mut Observed)| {
        let mut observed = observed(&GOOD);
        change(&mut observed);
        check(&sent(), &observed).findings
    };
    let shorter = with(&|observed| {
        observed
            .bodies
            .push(("resume", Ok(Bytes::from_static(b"C1a2a2a4b1b2"))))
    });
    let expected = Finding::OtherBody {
        what: "resume",
        length: 12,
        expected: 14,
    };
    assert_eq!(shorter, [expected]);
    let unreadable = with(&|observed| observed.bodies.push(("resume", Err("no".to_owned()))));
    assert!(matches!(
        unreadable[..],
        [Finding::Unreadable { what: "resume", .. }]
    ));
    let unreadable = with(&|observed| observed.history = Err("no".to_owned()));
    assert!(matches!(
        unreadable[..],
        [Finding::Unreadable { what: "history", .. }]
    ));
    let skipped = with(&|observed| {
        if let Ok(history) = &mut observed.history {
            history[6].entry_seq = 8;
        }
    });
    assert_eq!(skipped, [Finding::Miscounted { entry: 7 }]);
    let dropped = with(&|observed| {
        observed.holdings.hot.insert(5, false);
    });
    assert_eq!(dropped, [Finding::Lost { entry: 5 }]);
    let pruned = with(&|observed| observed.holdings.segments.clear());
    assert_eq!(pruned, [Finding::PrunedWithoutSegment { first: 1, last: 2 }]);
}
