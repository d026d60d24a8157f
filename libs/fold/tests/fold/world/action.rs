//! What can happen in the world. `pick` counts from the newest.

use proptest::prelude::*;

use super::script::Version;

#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// The session is opened, as always or differently.
    Open { equal: bool },
    /// A resume, a rival's or a late one: asks for the generation that is `ahead` of the current one.
    Bind { ahead: i8, request: u8, attach: bool },
    /// A bind is published again.
    RepeatBind { pick: u8 },
    /// A lifetime ends.
    End { pick: u8 },
    /// A writer attaches: the first of its lifetime, or a second one, or one that is late.
    Attach { pick: u8 },
    /// A role is given or taken.
    Access { account: u8, grant: bool },
    /// The persister restarts.
    Restart,
    /// Somebody publishes nonsense.
    Malformed,
    /// A writer does something.
    ByWriter { pick: u8, action: ByWriter },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ByWriter {
    /// The next parts of one of its attempts.
    Publish { attempt: u8, parts: u8, ack_lost: bool },
    /// A part or an entry of one of its attempts is lost on the way.
    Skip { attempt: u8, whole_entry: bool },
    /// One of its attempts starts again, at what is not acknowledged, or before it.
    Rewind { attempt: u8, back: u8 },
    /// Whole entries from the first that is not acknowledged, one by one.
    Commit { entries: u16 },
    /// Parts of another version of the entry that an attempt is at, or that comes next, or of an earlier one.
    Lie {
        version: Version,
        attempt: u8,
        back: u16,
        from_start: bool,
        to_end: bool,
    },
    /// A part on another partition.
    Misroute,
}

pub(crate) fn any_action() -> impl Strategy<Value = Action> {
    let pick = || prop_oneof![4 => Just(0), 1 => 0_u8..4];
    prop_oneof![
        50 => (pick(), by_writer()).prop_map(|(pick, action)| Action::ByWriter { pick, action }),
        1 => any::<bool>().prop_map(|equal| Action::Open { equal }),
        2 => (-2_i8..=2, 0_u8..3, prop::bool::weighted(0.7))
            .prop_map(|(ahead, request, attach)| Action::Bind { ahead, request, attach }),
        2 => (0_u8..3).prop_map(|request| Action::Bind { ahead: 1, request, attach: true }),
        1 => pick().prop_map(|pick| Action::RepeatBind { pick }),
        1 => pick().prop_map(|pick| Action::End { pick }),
        1 => pick().prop_map(|pick| Action::Attach { pick }),
        2 => (any::<u8>(), any::<bool>())
            .prop_map(|(account, grant)| Action::Access { account, grant }),
        3 => Just(Action::Restart),
        1 => Just(Action::Malformed),
    ]
}

fn by_writer() -> impl Strategy<Value = ByWriter> {
    let attempt = || 0_u8..2;
    let lie = (
        any_lie(),
        attempt(),
        prop_oneof![6 => Just(0), 2 => 1_u16..4, 1 => 0_u16..300],
        any::<bool>(),
        any::<bool>(),
    );
    prop_oneof![
        24 => (attempt(), 1_u8..8, prop::bool::weighted(0.2))
            .prop_map(|(attempt, parts, ack_lost)| ByWriter::Publish { attempt, parts, ack_lost }),
        4 => (attempt(), any::<bool>())
            .prop_map(|(attempt, whole_entry)| ByWriter::Skip { attempt, whole_entry }),
        6 => (attempt(), prop_oneof![8 => 0_u8..4, 1 => any::<u8>()])
            .prop_map(|(attempt, back)| ByWriter::Rewind { attempt, back }),
        6 => prop_oneof![20 => 1_u16..4, 1 => 200_u16..400]
            .prop_map(|entries| ByWriter::Commit { entries }),
        3 => lie.prop_map(|(version, attempt, back, from_start, to_end)| {
            ByWriter::Lie { version, attempt, back, from_start, to_end }
        }),
        1 => Just(ByWriter::Misroute),
    ]
}

fn any_lie() -> impl Strategy<Value = Version> {
    prop::sample::select(vec![
        Version::OtherLastPart,
        Version::OtherFirstPart,
        Version::OtherFlag,
        Version::Longer,
        Version::Shorter,
        Version::WrongCount,
        Version::WrongDigest,
    ])
}
