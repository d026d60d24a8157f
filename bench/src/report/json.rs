//! The results for programs: one object a line.

use serde::{Deserialize, Serialize};

use super::{Figure, GrowthPoint, Machine, Memory, Report};
use crate::Error;

#[derive(Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line<'a> {
    Machine(&'a Machine),
    Figure(&'a Figure),
    GrowthPoint(&'a GrowthPoint),
    Memory(&'a Memory),
}

#[derive(Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum ReadLine {
    Machine(Machine),
    Figure(Figure),
    GrowthPoint(GrowthPoint),
    Memory(Memory),
}

/// Reads what [`objects`] wrote, one object a line. Curves are not written, so there are none. [`Error::Results`].
pub fn read(text: &str) -> Result<Report, Error> {
    let mut report = Report::default();
    for line in text.lines() {
        let line = serde_json::from_str(line).map_err(|error| Error::Results(error.to_string()))?;
        match line {
            ReadLine::Machine(machine) => report.machines.push(machine),
            ReadLine::Figure(figure) => report.figures.push(figure),
            ReadLine::GrowthPoint(point) => report.growth.push(point),
            ReadLine::Memory(memory) => report.memory.push(memory),
        }
    }
    Ok(report)
}

/// The report as JSON objects; `record` says what each one is.
pub fn objects(report: &Report) -> Vec<serde_json::Value> {
    let machines = report.machines.iter().map(Line::Machine);
    let figures = report.figures.iter().map(Line::Figure);
    let growth = report.growth.iter().map(Line::GrowthPoint);
    let memory = report.memory.iter().map(Line::Memory);
    machines
        .chain(figures)
        .chain(growth)
        .chain(memory)
        // Numbers and texts always serialise.
        .filter_map(|line| serde_json::to_value(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Goal;

    #[test]
    fn every_object_says_what_it_is() {
        let figure = Figure::beside(
            "commits",
            "pipelined commits",
            "entries/s",
            vec![50.0],
            vec![100.0],
            Some(Goal::RatioAtLeast(0.5)),
        );
        let report = Report {
            machines: vec![Machine {
                measures: vec!["commits".into()],
                day: Some("2026-11-30".to_owned()),
                processors: 2,
                load_before: Some(0.5),
                postgres: "15".to_owned(),
                replicas: 1,
                rounds: 1,
                scale: 1.0,
                seed: 1,
            }],
            figures: vec![figure],
            growth: Vec::new(),
            memory: vec![Memory {
                measure: "commits".into(),
                service: "ingest".into(),
                peak_bytes: 7,
                met: true,
            }],
            curves: Vec::new(),
        };
        let objects = objects(&report);
        let kinds: Vec<_> = objects.iter().map(|object| object["record"].as_str()).collect();
        assert_eq!(kinds, [Some("machine"), Some("figure"), Some("memory")]);
        assert_eq!(objects[1]["ratio"], 0.5);
        assert_eq!(objects[1]["goal"]["kind"], "ratio_at_least");
        assert_eq!(objects[1]["met"], true);

        let lines: Vec<String> = objects.iter().map(ToString::to_string).collect();
        assert_eq!(read(&lines.join("\n")).unwrap(), report);
        assert!(read("{\"record\":\"figure\"}").is_err());
    }
}
