//! What readers use of a session instead of its state, against what the state says. Pure.

use wakelog_fold::SessionState;
use wakelog_model::SessionId;
use wakelog_store::SessionColumns;

use super::differences::Differences;
use super::report::DifferenceKind;

/// Compares the columns of one session. Authorisation and listings read these, so a wrong one is as bad as a wrong state.
pub(crate) fn compare_columns(
    session: SessionId,
    state: &SessionState,
    found: &SessionColumns,
    differences: &mut Differences,
) {
    let Some(opened) = state.opened() else {
        return;
    };
    let expected = SessionColumns {
        pin: Some(opened.partition),
        partition: opened.partition,
        owner: opened.owner.clone(),
        labels: opened.labels.clone(),
        parent: opened.parent,
        subpath: opened.subpath.clone(),
        last_entry_seq: state.last_entry_seq(),
        last_checkpoint_seq: state.last_checkpoint_seq(),
        generation: state.generation(),
        lifetime_status: state.lifetime().map_or(0, |lifetime| lifetime.status().into()),
        // A sub-session is erased with the session above it, which its own state does not say.
        erased: state.is_erased() || (opened.parent.is_some() && found.erased),
        // Of an erased session nobody reads anything: its readers are left where they are.
        subscribers: if found.erased {
            found.subscribers.clone()
        } else {
            state.access().keys().cloned().collect()
        },
    };
    let of_expected = columns(&expected);
    for ((column, expected), (_, found)) in of_expected.into_iter().zip(columns(found)) {
        if expected != found {
            differences.add(Some(session), DifferenceKind::Column { column }, expected, found);
        }
    }
}

fn columns(row: &SessionColumns) -> [(&'static str, String); 12] {
    let SessionColumns {
        pin,
        partition,
        owner,
        labels,
        parent,
        subpath,
        last_entry_seq,
        last_checkpoint_seq,
        generation,
        lifetime_status,
        erased,
        subscribers,
    } = row;
    [
        ("pin", format!("{pin:?}")),
        ("partition", partition.to_string()),
        ("owner", owner.clone()),
        ("labels", format!("{labels:?}")),
        ("parent", format!("{parent:?}")),
        ("subpath", subpath.clone()),
        ("last_entry_seq", last_entry_seq.to_string()),
        ("last_checkpoint_seq", last_checkpoint_seq.to_string()),
        ("generation", generation.to_string()),
        ("lifetime_status", lifetime_status.to_string()),
        ("erased", erased.to_string()),
        ("subscribers", format!("{subscribers:?}")),
    ]
}
