//! The report for people: a table, and a page around it.

use std::fmt::Write as _;

use super::{Figure, Goal, MEMORY_GOAL, Machine, Report};

/// The headings of [`figure_rows`].
pub const FIGURE_HEADINGS: [&str; 7] = ["measure", "figure", "baseline", "Wakelog", "ratio", "goal", "met"];

/// The figures and the memory, a row of cells each.
pub fn figure_rows(report: &Report) -> Vec<[String; 7]> {
    let figures = report.figures.iter().map(|figure| {
        [
            figure.measure.to_string(),
            format!("{}, {}", figure.what, figure.unit),
            figure
                .baseline
                .as_ref()
                .map_or_else(String::new, |side| number(side.median)),
            number(figure.ours.median),
            figure
                .ratio
                .map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            figure
                .goal
                .map_or_else(String::new, |goal| goal_text(goal, figure)),
            met(figure.met),
        ]
    });
    let services = ["ingest", "persister", "reconstructor", "archiver"];
    let memory = services.into_iter().filter_map(|service| {
        let most = report
            .memory
            .iter()
            .filter(|memory| memory.service == service)
            .max_by_key(|memory| memory.peak_bytes)?;
        Some([
            "memory".to_owned(),
            format!("{service}, peak of all measures ({}), MB", most.measure),
            String::new(),
            number(most.peak_bytes as f64 / (1024.0 * 1024.0)),
            String::new(),
            format!("at most {}", MEMORY_GOAL / (1024 * 1024)),
            met(Some(most.met)),
        ])
    });
    figures.chain(memory).collect()
}

/// A Markdown page with the figures; `plots` are paths relative to it.
pub fn markdown(report: &Report, plots: &[String]) -> String {
    let mut page = String::from(INTRODUCTION);
    page.push('\n');
    for machine in &report.machines {
        page.push_str(&machine_line(machine));
    }
    page.push('\n');
    table(&mut page, &FIGURE_HEADINGS, figure_rows(report));
    if !report.growth.is_empty() {
        page.push_str("\n## A session as it grows\n\n");
        let headings = [
            "body, MB",
            "append, ack by the log, ms",
            "append, ack by the hot tail, ms",
            "resume, ms",
            "first byte, ms",
        ];
        let rows = report.growth.iter().map(|point| {
            [
                number(point.body_bytes as f64 / 1e6),
                number(point.log_append_ms),
                number(point.store_append_ms),
                number(point.resume_ms),
                number(point.first_byte_ms),
            ]
        });
        table(&mut page, &headings, rows);
    }
    page.push('\n');
    for plot in plots {
        let name = plot.rsplit('/').next().unwrap_or(plot).trim_end_matches(".svg");
        writeln!(page, "![{name}]({plot})").ok();
    }
    page
}

const INTRODUCTION: &str = "\
# Benchmarks

Written by `bench/run.sh`, which installs Apache Kafka, PostgreSQL and VersityGW (an S3 server on a folder), builds the release
binary without the embedded engines, starts the engines in a temporary folder, runs `wakelog bench` and writes this page,
`bench/results.json` and the plots. `bench/run.sh MEASURE --out docs` runs one measure and keeps what is there of the others.
On engines of your own: `wakelog bench all --brokers HOST:PORT --database-url URL --s3-endpoint URL --s3-bucket NAME`, with the
keys in `WAKELOG_S3_ACCESS_KEY` and `WAKELOG_S3_SECRET_KEY`; it makes a topic and a database of its own and puts objects below a
prefix of its own, and drops them.

Everything runs on one machine: the broker, the database, the object store, the services as processes of their own, and the
benchmark itself. So each figure is taken beside what the engines do without Wakelog, baseline and Wakelog in turn, and the ratio is the
median over the rounds of Wakelog's value divided by the baseline's. The first round does not count. Absolute values are this
machine's.

- **Payload**: JSON lines of about 1 KB out of a seed, which zstd makes to about a third in bulk.
- **commits**: 16 writers with 256 entries in flight each, ack by the log, persister stopped; beside librdkafka with the settings
  of `libs/stream`, 4096 records in flight. The raw producer publishes the records that ingest makes of the same entries:
  encoded and compressed, with the same keys to the same partitions; making them is not part of its time.
- **unary**: one writer, one entry in flight, ack by the log, persister stopped; beside the same producer with one in flight.
- **persist**: the persister on a backlog in 8 partitions of 4 sessions each, from its first committed batch to its last; beside
  `INSERT … SELECT FROM unnest(…)` of the same rows into a copy of the table (constraints, indexes, settings), 500 rows a
  transaction as the persister has them, one connection for each of the 8 partitions.
- **resume**: a session of 100 MB in entries of 1 KB, from the call to the checked body (length and SHA-256), bind and barrier
  included; beside a streamed `SELECT` of the same rows, which neither decompresses nor checks. MB are 10^6 plain bytes in both.
- **growth**: one session from 1 to 100 MB; at each size a window of single appends, and resumes.
- **barrier**: resumes of small sessions, one at a time on an idle pipeline, from the call to the first byte of the body: this is
  authorise, look up, publish the bind, have it folded, read.
- **archive**: an archiver that is started on 200 MB of superseded entries in 32 sessions, from its first recorded segment, which
  does not count, to its last; it reads and checks the rows, compresses, puts, asks for what was put, records and prunes. Beside
  zstd (the same level, frames of 1 MiB) and a `PUT` of the same bytes, and beside a `PUT` of the very objects, read back from
  the bucket: two at a time as the archiver, each with its SHA-256 for the server to check, no `HEAD`; that of the objects that were read
  back is made before the time starts.
- **stored**: bytes stored for a byte of an entry. Hot tail: by how much the table of entries has grown after `VACUUM`, its
  indexes included; beside rows of session, number and bytes, which the database compresses as it likes. Archive: the objects that
  the bucket lists; beside one zstd file of level 3 for each session. Recorded sessions: the twelve small session files of
  `tests/fixtures/omp`, 20 times each, a line an entry; the session that grows by recorded calls holds their lines again and again
  and so compresses better than a real one; the session of 50 MB is the payload above. One round: sizes do not vary.
- **spliced**: a body of 100 MB whose first half the valve has moved to the archive. Beside `GET`s of the objects, three at a time,
  and then a streamed `SELECT` of the rows. The memory is the reconstructor's peak after all rounds, less what it had when it had
  just started.
- **history**: a session with 10,000 segments of 100 KB on average before its last checkpoint and 1 MB after it, beside a session of
  1 MB; medians of 20 resumes of each, in turn. The history goes through log, persister and archiver like any other, with a
  checkpoint every 5 ms, so that the archiver makes many small segments of it.
- **valve**: a writer that appends 200 MB in entries of 1 KB and never writes a checkpoint, ack by the hot tail, with an archiver
  whose valve is 8 MB. It fails if there is more than one upload for 100 entries. The resume is beside raw reads as in **spliced**.
- **replay**: `wakelog replay` of a topic with a million entries in 8 partitions into a new database, from the start of its process to
  its end; beside reading every record of all partitions at once and doing nothing with it. It fails unless the new database holds
  what the persister's does: states, rows and bodies, by digest.
- **scale**: as **persist**, with the backlog in 1, 2, 4 or 8 partitions of one persister, and in 8 partitions of 2 or 4 persisters,
  which share them. All are there and frozen when the backlog comes, so that each begins at once. The baseline is that of
  **persist**, 8 connections, for every case.
- **soak**: the whole pipeline, archiver included. First 16 writers go as fast as the hot tail acknowledges, half a minute, which is
  the maximum; then each at its share of half of that, for twenty minutes, with a checkpoint after every 4,000 entries. Every ten seconds
  each service's memory, open files and threads, the database's connections and size, the records that are not folded and the
  archiver's waiting sessions are looked at. What has to be flat is shown as its last quarter beside its second quarter.
- **memory**: `VmHWM` of each service process, read before it is stopped.

Where the time goes, and what was changed because of it: `docs/bench-profile.md`.
";

fn machine_line(machine: &Machine) -> String {
    let day = match &machine.day {
        Some(day) => format!("on {day}"),
        None => "earlier, on a day that was not written down".to_owned(),
    };
    let load = machine
        .load_before
        .map_or_else(|| "unknown".to_owned(), |load| format!("{load:.1}"));
    format!(
        "- {}, measured {day}: {} processors; load average before it started: {load}; PostgreSQL {}, Apache Kafka, topic \
         with {}; {} rounds after a warm-up; scale {}; seed {}.\n",
        machine.measures.join(", "),
        machine.processors,
        machine.postgres,
        match machine.replicas {
            1 => "one replica".to_owned(),
            more => format!("{more} replicas on as many brokers"),
        },
        machine.rounds,
        machine.scale,
        machine.seed
    )
}

fn table<const N: usize>(
    page: &mut String,
    headings: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    writeln!(page, "| {} |", headings.join(" | ")).ok();
    writeln!(page, "|{}", "---|".repeat(N)).ok();
    for row in rows {
        writeln!(page, "| {} |", row.join(" | ")).ok();
    }
}

fn goal_text(goal: Goal, figure: &Figure) -> String {
    match goal {
        Goal::RatioAtLeast(least) => format!("ratio at least {least}"),
        Goal::RatioAtMost(most) => format!("ratio at most {most}"),
        Goal::AtMost(most) => format!("at most {} {}", number(most), figure.unit),
    }
}

fn met(met: Option<bool>) -> String {
    match met {
        Some(true) => "yes".to_owned(),
        Some(false) => "**no**".to_owned(),
        None => String::new(),
    }
}

/// Three digits that count, thousands whole.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{GrowthPoint, Machine, Memory};

    fn report() -> Report {
        let memory = |measure: &'static str, peak_bytes| Memory {
            measure: measure.into(),
            service: "ingest".into(),
            peak_bytes,
            met: peak_bytes < MEMORY_GOAL,
        };
        Report {
            machines: vec![Machine {
                measures: vec!["unary".into(), "barrier".into()],
                day: Some("2026-11-30".to_owned()),
                processors: 2,
                load_before: Some(0.25),
                postgres: "15.18".to_owned(),
                replicas: 1,
                rounds: 3,
                scale: 1.0,
                seed: 1,
            }],
            figures: vec![
                Figure::beside(
                    "unary",
                    "ack p99",
                    "ms",
                    vec![3.0],
                    vec![1.0],
                    Some(Goal::RatioAtMost(2.0)),
                ),
                Figure::alone("barrier", "p99", "ms", vec![12.345], Some(Goal::AtMost(50.0))),
            ],
            growth: vec![GrowthPoint {
                body_bytes: 1_000_000,
                log_append_ms: 0.5,
                store_append_ms: 9.0,
                resume_ms: 30.0,
                first_byte_ms: 20.0,
            }],
            memory: vec![memory("unary", 10 << 20), memory("barrier", 200 << 20)],
            curves: Vec::new(),
        }
    }

    #[test]
    fn rows_say_what_came_out_and_what_should() {
        let rows = figure_rows(&report());
        assert_eq!(
            rows[0],
            [
                "unary",
                "ack p99, ms",
                "1.00",
                "3.00",
                "3.00",
                "ratio at most 2",
                "**no**"
            ]
        );
        assert_eq!(rows[1][2..], ["", "12.3", "", "at most 50.0 ms", "yes"]);
        assert_eq!(rows[2][1], "ingest, peak of all measures (barrier), MB");
        assert_eq!(rows[2][6], "**no**");
    }

    #[test]
    fn the_page_has_a_table_a_growth_and_its_plots() {
        let page = markdown(&report(), &["bench/ratios.svg".to_owned()]);
        assert!(page.contains("| unary | ack p99, ms | 1.00 | 3.00 |"));
        assert!(page.contains("| 1.00 | 0.50 | 9.00 | 30.0 | 20.0 |"));
        assert!(page.contains("![ratios](bench/ratios.svg)"));
        assert!(page.contains("- unary, barrier, measured on 2026-11-30: 2 processors;"));
    }
}
