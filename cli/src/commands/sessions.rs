//! `wakelog sessions ls` and `wakelog sessions show`.

use serde_json::{Value, json};
use wakelog_contract::Exit;
use wakelog_proto::v1::{
    DescribeSessionRequest, DescribeSessionResponse, LifetimeStatus, LifetimeSummary, ListSessionsRequest,
    SessionSummary,
};

use super::{call, connect, incomplete, labels_of, session_id};
use crate::args::{SessionsCommand, SessionsLsArgs, SessionsShowArgs};
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{Table, print, print_json, utc};

/// Sessions asked for at a time.
const PAGE: u64 = 500;

pub(crate) async fn run(settings: &Settings, command: &SessionsCommand) -> Result<Exit, Error> {
    match command {
        SessionsCommand::Ls(args) => ls(settings, args).await,
        SessionsCommand::Show(args) => show(settings, args).await,
    }
}

async fn ls(settings: &Settings, args: &SessionsLsArgs) -> Result<Exit, Error> {
    let labels = labels_of(&args.labels)?;
    let connection = connect(settings).await?;
    let mut left = if args.limit == 0 { u64::MAX } else { args.limit };
    let mut page_token = String::new();
    let mut table = Table::new(&["SESSION", "OPENED", "ENTRIES", "GENERATION", "LIFETIME", "LABELS"]);
    loop {
        let request = ListSessionsRequest {
            page_size: left.min(PAGE) as u32,
            page_token,
            labels: labels.clone(),
        };
        let page = call(&connection, "listing sessions", |mut sessions| {
            let request = request.clone();
            async move { sessions.list_sessions(request).await }
        })
        .await?;
        left -= left.min(page.sessions.len() as u64);
        for session in &page.sessions {
            if args.json {
                print_json(&summary_json(session))?;
            } else {
                table.row(summary_row(session));
            }
        }
        page_token = page.next_page_token;
        if page_token.is_empty() || left == 0 {
            break;
        }
    }
    if !args.json {
        print(&table.render())?;
    }
    Ok(Exit::Done)
}

async fn show(settings: &Settings, args: &SessionsShowArgs) -> Result<Exit, Error> {
    let session_id = session_id(&args.session)?;
    let connection = connect(settings).await?;
    let description = call(&connection, "describing the session", |mut sessions| {
        let request = DescribeSessionRequest {
            session_id: session_id.clone(),
        };
        async move { sessions.describe_session(request).await }
    })
    .await?;
    let summary = description
        .summary
        .clone()
        .ok_or_else(|| incomplete("the summary"))?;
    if args.json {
        print_json(&description_json(&summary, &description))?;
    } else {
        print(&description_text(&summary, &description))?;
    }
    Ok(Exit::Done)
}

fn summary_json(session: &SessionSummary) -> Value {
    json!({
        "session_id": session.session_id,
        "owner": session.owner,
        "labels": session.labels,
        "parent_session_id": some(&session.parent_session_id),
        "subpath": some(&session.subpath),
        "partition": session.partition,
        "last_entry_seq": session.last_entry_seq,
        "last_checkpoint_seq": session.last_checkpoint_seq,
        "generation": session.generation,
        "lifetime_status": status_name(session.lifetime_status()),
        "opened_at_ms": session.opened_at_ms,
        "updated_at_ms": session.updated_at_ms,
    })
}

fn description_json(summary: &SessionSummary, description: &DescribeSessionResponse) -> Value {
    let mut object = summary_json(summary);
    object["body_length"] = description.body_length.into();
    object["quarantined_records"] = description.quarantined_records.into();
    object["lifetimes"] = description
        .lifetimes
        .iter()
        .map(|lifetime| lifetime_json(lifetime, summary.generation))
        .collect();
    object
}

fn lifetime_json(lifetime: &LifetimeSummary, current: u64) -> Value {
    json!({
        "lifetime_id": hex::encode(&lifetime.lifetime_id),
        "generation": lifetime.generation,
        "request_id": lifetime.request_id,
        "base": lifetime.base,
        "body_start": lifetime.body_start,
        "applied_entry_seq": lifetime.applied_entry_seq,
        "status": standing(lifetime, current),
        "bound_at_ms": lifetime.bound_at_ms,
    })
}

fn summary_row(session: &SessionSummary) -> [String; 6] {
    [
        session.session_id.clone(),
        utc(session.opened_at_ms),
        session.last_entry_seq.to_string(),
        session.generation.to_string(),
        status_name(session.lifetime_status()).to_owned(),
        labels_text(session),
    ]
}

fn description_text(summary: &SessionSummary, description: &DescribeSessionResponse) -> String {
    let mut facts = Table::new(&["session", &summary.session_id]);
    let mut fact = |name: &str, value: String| facts.row([name.to_owned(), value]);
    fact("owner", summary.owner.clone());
    fact("labels", labels_text(summary));
    if !summary.parent_session_id.is_empty() {
        fact(
            "parent",
            format!("{} at {}", summary.parent_session_id, summary.subpath),
        );
    }
    fact("partition", summary.partition.to_string());
    fact("opened", utc(summary.opened_at_ms));
    fact("updated", utc(summary.updated_at_ms));
    fact("last entry", summary.last_entry_seq.to_string());
    fact("last checkpoint", summary.last_checkpoint_seq.to_string());
    fact("body", format!("{} bytes", description.body_length));
    fact(
        "generation",
        format!(
            "{}, {}",
            summary.generation,
            status_name(summary.lifetime_status())
        ),
    );
    fact(
        "quarantined",
        format!("{} records", description.quarantined_records),
    );
    let mut lifetimes = Table::new(&[
        "GENERATION",
        "LIFETIME",
        "BOUND",
        "BASE",
        "APPLIED",
        "STATUS",
        "REQUEST",
    ]);
    for lifetime in &description.lifetimes {
        lifetimes.row([
            lifetime.generation.to_string(),
            hex::encode(&lifetime.lifetime_id),
            utc(lifetime.bound_at_ms),
            lifetime.base.to_string(),
            lifetime.applied_entry_seq.to_string(),
            standing(lifetime, summary.generation).to_owned(),
            lifetime.request_id.clone(),
        ]);
    }
    format!("{}\n{}", facts.render(), lifetimes.render())
}

fn labels_text(session: &SessionSummary) -> String {
    session
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Only the current lifetime is what its status says.
fn standing(lifetime: &LifetimeSummary, current: u64) -> &'static str {
    if lifetime.generation < current {
        return "superseded";
    }
    status_name(lifetime.status())
}

fn status_name(status: LifetimeStatus) -> &'static str {
    match status {
        LifetimeStatus::Unspecified => "none",
        LifetimeStatus::Active => "active",
        LifetimeStatus::Ended => "ended",
        LifetimeStatus::Failed => "failed",
    }
}
