//! `wakelog bench`: what the pipeline does beside what its engines do raw.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use wakelog_bench::report::{Report, json, merge, page, plot};
use wakelog_bench::{Measure, Options};
use wakelog_contract::Exit;

use crate::args::{BenchArgs, BenchMeasure};
use crate::config::Settings;
use crate::exit::{Error, with_sources};
use crate::output::{Table, print, print_json, progress};
use crate::services::archive::{archive_error, check, configured};
use crate::services::{signals, store_error, stream_error};

/// Where the plots and the results are, beside the page.
const FOLDER: &str = "bench";

/// The results for programs, in that folder.
const RESULTS: &str = "results.json";

pub(crate) async fn run(settings: &Settings, args: &BenchArgs) -> Result<Exit, Error> {
    let program = std::env::current_exe().map_err(|error| Error::io("this program", &error))?;
    let measures = measures(args.measure);
    let archive = archive_place(settings, args, &measures).await?;
    let options = Options {
        archive,
        program,
        brokers: settings.required(&settings.brokers, "brokers")?.clone(),
        database_url: settings
            .required(&settings.database_url, "database_url")?
            .0
            .clone(),
        kafka: settings.kafka.clone(),
        replication: settings.replication,
        rounds: args.rounds,
        scale: args.scale,
        seed: args.seed,
    };
    // Asked to stop, it still stops its services and drops what it made.
    let stop = signals::shutdown_token()?;
    let bar = progress("bench", None);
    let say = |what: &str| match io::stderr().is_terminal() {
        true => bar.set_message(what.to_owned()),
        false => eprintln!("{what}"),
    };
    if cfg!(debug_assertions) {
        say(
            "this is an unoptimised build: its figures tell little, `cargo build --release` makes one for figures",
        );
    }
    let outcome = wakelog_bench::run(&options, &measures, &say, &stop).await;
    bar.finish_and_clear();
    let report = outcome.map_err(bench_error)?;
    if let Some(folder) = &args.out {
        write(report.clone(), folder)?;
    }
    if args.json {
        for object in json::objects(&report) {
            print_json(&object)?;
        }
    } else {
        let mut table = Table::new(&page::FIGURE_HEADINGS);
        for row in page::figure_rows(&report) {
            table.row(row.map(|cell| cell.replace("**", "")));
        }
        print(&table.render())?;
    }
    Ok(Exit::Done)
}

/// The bucket that the flags and the settings name, if a measure needs one.
async fn archive_place(
    settings: &Settings,
    args: &BenchArgs,
    measures: &[Measure],
) -> Result<Option<wakelog_archive::Options>, Error> {
    let Some(measure) = measures.iter().find(|measure| measure.needs_archive()) else {
        return Ok(None);
    };
    let mut settings = settings.clone();
    settings.s3 = args.place.over(settings.s3);
    let Some(objects) = configured(&settings)? else {
        return Err(
            Error::usage(format!("{measure} needs an object store, and `s3_bucket` is not set")).or_hint(
                "give --s3-endpoint, --s3-bucket and --s3-access-key, and set WAKELOG_S3_SECRET_KEY; or name a measure that needs none",
            ),
        );
    };
    check(&objects).await?;
    Ok(Some(objects.options().clone()))
}

fn measures(asked: BenchMeasure) -> Vec<Measure> {
    match asked {
        BenchMeasure::Commits => vec![Measure::Commits],
        BenchMeasure::Unary => vec![Measure::Unary],
        BenchMeasure::Persist => vec![Measure::Persist],
        BenchMeasure::Resume => vec![Measure::Resume],
        BenchMeasure::Growth => vec![Measure::Growth],
        BenchMeasure::Barrier => vec![Measure::Barrier],
        BenchMeasure::Archive => vec![Measure::Archive],
        BenchMeasure::Stored => vec![Measure::Stored],
        BenchMeasure::Spliced => vec![Measure::Spliced],
        BenchMeasure::History => vec![Measure::History],
        BenchMeasure::Valve => vec![Measure::Valve],
        BenchMeasure::Replay => vec![Measure::Replay],
        BenchMeasure::Scale => vec![Measure::Scale],
        BenchMeasure::Soak => vec![Measure::Soak],
        BenchMeasure::All => {
            let takes_its_time = |measure: &Measure| *measure == Measure::Soak;
            let all = Measure::ALL.into_iter();
            all.filter(|measure| !takes_its_time(measure)).collect()
        }
    }
}

/// Writes `bench.md`, and `bench/` with the results and the plots. What is there of measures that were not run stays.
fn write(report: Report, folder: &Path) -> Result<(), Error> {
    let save = |path: PathBuf, text: String| {
        std::fs::write(&path, text).map_err(|error| Error::io(path.display(), &error))
    };
    let inner = folder.join(FOLDER);
    std::fs::create_dir_all(&inner).map_err(|error| Error::io(inner.display(), &error))?;
    let results = inner.join(RESULTS);
    let report = match std::fs::read_to_string(&results) {
        Ok(text) => merge::merge(report, json::read(&text).map_err(bench_error)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => report,
        Err(error) => return Err(Error::io(results.display(), &error)),
    };
    let lines = json::objects(&report)
        .into_iter()
        .map(|object| format!("{object}\n"));
    save(results, lines.collect())?;
    let plots = plot::draw(&report, &inner).map_err(bench_error)?;
    let plots: Vec<String> = plots.iter().map(|name| format!("{FOLDER}/{name}")).collect();
    save(folder.join("bench.md"), page::markdown(&report, &plots))
}

fn bench_error(error: wakelog_bench::Error) -> Error {
    use wakelog_bench::Error as Bench;
    match error {
        Bench::Options(reason) => Error::usage(reason),
        Bench::Store(error) => store_error(error),
        Bench::Stream(error) => stream_error(error),
        Bench::Archive(error) => archive_error(error),
        Bench::Client(error) => Error::from(*error),
        error @ (Bench::Database(_) | Bench::Kafka(_)) => Error::dependency(with_sources(&error))
            .or_hint("the benchmark makes a database and topics of its own: it must be allowed to"),
        error => Error::failed(with_sources(&error)),
    }
}
